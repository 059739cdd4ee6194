/* SPDX-License-Identifier: MIT */
#include "cli/setup.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "lock/lease.h"
#include "lock/service.h"
#include "net/authority.h"
#include "net/password.h"
#include "net/tls.h"
#include "run/process.h"

#define KEY_OPERAND_MAX 512
#define LIST_MAX 16384 /* of DLOCK_HOLDS; a longer list is cut: the outermost locks are dropped */

/* -- Password --------------------------------------------------------------- */

/* Is it a regular file that is world-readable? */
static bool
is_public(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & S_IROTH) != 0;
}

const char *
setup_password_variable(void)
{
	const struct service *const *s = services;
	const char *variable = "DLOCK_PASSWORD", *value;

	for (;; variable = (*s++)->password_variable) {
		value = variable != NULL ? getenv(variable) : NULL;
		if (value != NULL && value[0] != '\0')
			return variable;
		if (*s == NULL)
			return NULL;
	}
}

/* Find out where a password comes from, and read it.  It lives as long as the process: a service may read it again. */
static enum status
open_password(const struct invocation *inv, struct password *p, const char *file, struct err *err)
{
	char shown[256];
	enum status status;

	p->file = file;
	p->log = inv->log;
	if (inv->options.keep_pid != 0) /* the keeper leaves the current directory */
		p->directory = getcwd(NULL, 0);
	status = password_open(p, err);
	if (status == ST_OK && file != NULL && is_public(file))
		setup_warn(inv, "the password file %s is world-readable; use chmod o-r",
		    text_show(file, shown, sizeof(shown)));
	return status;
}

static enum status
find_password(const struct invocation *inv, struct password *p, struct err *err)
{
	const struct options *const o = &inv->options;
	const char *const variable = setup_password_variable(), *const value = variable != NULL ? getenv(variable) : "";
	const bool both = o->password_file != NULL && o->password_command != NULL;
	const int file_wins = both
	    ? (int)options_origin(o, "password-file") - (int)options_origin(o, "password-command")
	    : 1;

	if (both && file_wins == 0)
		return err_set(err, ST_USAGE, "--password-file and --password-command cannot be used together");
	if (o->password_command != NULL && (!both || file_wins < 0)) {
		p->command = o->password_command;
		return open_password(inv, p, NULL, err);
	}
	if (o->password_file == NULL && strlen(value) >= sizeof(p->text))
		return err_set(err, ST_USAGE, "the password in the environment is too long");
	if (o->password_file == NULL)
		(void)snprintf(p->text, sizeof(p->text), "%s", value);
	return open_password(inv, p, o->password_file, err);
}

void
setup_protect(const struct options *o)
{
	bool secret = o->password_file != NULL || o->password_command != NULL || o->sentinel_password_file != NULL ||
	    o->cert != NULL || setup_password_variable() != NULL;
	int i;

	for (i = 0; i < o->nodes; i++)
		secret = secret || url_has_password(o->node[i]);
	if (secret)
		(void)prctl(PR_SET_DUMPABLE, 0);
}

/* Refuse a configuration that the service cannot do.  The confirmation of the replicas must arrive within the round. */
static enum status
check_config(const struct invocation *inv, const struct service_config *config, struct err *err)
{
	const struct options *o = &inv->options;
	const char *why;
	char given[32], most[32];
	int i;

	for (i = 0; i < config->nodes && config->nodes > 1; i++) {
		why = service_of(config->url[i])->why_single;
		if (why != NULL)
			return err_set(err, ST_USAGE, "%s", why);
	}
	if (inv->service->why_no_replicas != NULL && (o->replicas > 0 || o->replicas_timeout_given))
		return err_set(err, ST_USAGE, "--replicas is not for %s: %s", inv->service->name,
		    inv->service->why_no_replicas);
	if (o->replicas == 0 || !o->replicas_timeout_given || config->replicas_timeout_ms < config->node_timeout_ms)
		return ST_OK;
	duration_show(config->replicas_timeout_ms, given, sizeof(given));
	duration_show(config->node_timeout_ms, most, sizeof(most));
	return err_set(err, ST_USAGE,
	    "--replicas-timeout %s is too long; it must be less than --node-timeout, which is %s", given, most);
}

/* -- Service ---------------------------------------------------------------- */

int64_t
setup_node_timeout_ms(const struct options *o)
{
	return o->node_timeout_given ? o->node_timeout_ms : lease_node_timeout_ms(o->ttl_ms);
}

enum status
setup_service(const struct invocation *inv, struct backend **backend, struct err *err)
{
	const struct options *o = &inv->options;
	const char *const key = o->key != NULL ? o->key : o->cert;
	const struct tls_options tls = { o->cacert, o->cacertdir, o->cert, o->key, o->sni, o->insecure };
	struct service_config config = { .nodes = o->nodes,
		.sentinel_user = o->sentinel_user,
		.tls = &tls,
		.node_timeout_ms = setup_node_timeout_ms(o),
		.replicas = o->replicas,
		.log = inv->log };
	static struct password password, sentinel_password;
	char shown[256];
	enum status status = find_password(inv, &password, err);

	if (status == ST_OK && o->sentinel_password_file != NULL) {
		status = open_password(inv, &sentinel_password, o->sentinel_password_file, err);
		config.sentinel_password = &sentinel_password;
	} else if (status == ST_OK && o->sentinel_user != NULL)
		status = err_set(err, ST_USAGE, "--sentinel-user needs --sentinel-password-file");

	if (status != ST_OK)
		return status;
	memcpy(config.url, o->node, sizeof(config.url));
	if (o->nodes == 0) {
		config.url[0] = inv->service->default_url;
		config.nodes = 1;
		log_debug(&inv->log, "no node is configured: using %s, on this host", config.url[0]);
	}
	config.password = &password;
	config.replicas_timeout_ms = o->replicas_timeout_given ? o->replicas_timeout_ms
							       : (config.node_timeout_ms + 1) / 2;
	status = check_config(inv, &config, err);
	if (status != ST_OK)
		return status;
	setup_protect(o);
	if (o->restart_guard_ms > 0 && !inv->service->guards)
		log_debug(&inv->log, "--restart-guard has no effect on %s, which keeps its locks over restarts",
		    inv->service->name);
	status = inv->service->open(&config, backend, err);
	if (status != ST_OK || !(*backend)->tls)
		return status;
	if (o->insecure && (o->cacert != NULL || o->cacertdir != NULL))
		setup_warn(inv, "%s is ignored, as --insecure accepts any certificate",
		    o->cacert != NULL ? "--cacert" : "--cacertdir");
	if (key != NULL && is_public(key))
		setup_warn(inv, "the private key %s is world-readable; use chmod o-r",
		    text_show(key, shown, sizeof(shown)));
	return ST_OK;
}

/* -- The environment -------------------------------------------------------- */

/* Write the key as escaped in an entry, and a "="; returns its length. */
static size_t
escape(const char *key, char *to)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:/";
	char *at = to;

	for (; *key != '\0'; key++) {
		if (strchr(plain, *key) != NULL)
			*at++ = *key;
		else
			at += snprintf(at, 4, "%%%02X", (unsigned int)(unsigned char)*key);
	}
	(void)memcpy(at, "=", 2);
	return (size_t)(at + 1 - to);
}

/* 0: unknown, or malformed. */
static int64_t
read_fence(const char *digits)
{
	char *end;
	int64_t fence;

	errno = 0;
	fence = digits != NULL && digits[0] >= '0' && digits[0] <= '9' ? strtoll(digits, &end, 10) : 0;
	return fence > 0 && *end == '\0' && errno == 0 ? fence : 0;
}

int
setup_holds(const char *operand, const char *key, struct hold held[HOLDS_MAX])
{
	const char *const innermost = getenv("DLOCK_KEY"), *const token = getenv("DLOCK_TOKEN");
	const char *at = getenv("DLOCK_HOLDS");
	char escaped[3 * KEY_MAX + 2], entry[TOKEN_SIZE + 32], *fence; /* TOKEN=FENCE */
	const size_t begins = escape(key, escaped);
	size_t length;
	int found = 0;

	for (; at != NULL && *at != '\0' && found == 0; at += length + (at[length] == ' ')) {
		length = strcspn(at, " ");
		if (length <= begins || length - begins >= sizeof(entry) || strncmp(at, escaped, begins) != 0)
			continue;
		(void)snprintf(entry, sizeof(entry), "%.*s", (int)(length - begins), at + begins);
		fence = entry;
		(void)strsep(&fence, "=");
		held[0].fence = read_fence(fence);
		if (held[0].fence > 0 && service_has_token(entry)) {
			memcpy(held[0].token, entry, strlen(entry) + 1);
			found = 1;
		}
	}
	if (operand == NULL || innermost == NULL || token == NULL || strcmp(innermost, operand) != 0 ||
	    !service_has_token(token) || (found == 1 && strcmp(held[0].token, token) == 0))
		return found;
	memcpy(held[found].token, token, strlen(token) + 1);
	held[found].fence = read_fence(getenv("DLOCK_FENCE"));
	return found + 1;
}

size_t
setup_variables(const struct lease *lease)
{
	return lease->slot > 0 ? LOCK_VARIABLES : LOCK_VARIABLES - 1;
}

/*
 * That of this process itself is not modified, since a thread that resolves a name may be reading it.
 */
char **
setup_environment(const char *name, const struct lease *lease)
{
	const size_t variables = setup_variables(lease);
	const char *held = getenv("DLOCK_HOLDS");
	char **environment, *at, *list, *end, escaped[3 * KEY_MAX + 2];
	const size_t begins = escape(lease->key, escaped), room = strlen(name) + begins + LIST_MAX + 512;
	size_t i, j, length, used, entries = variables;

	for (i = 0; environ != NULL && environ[i] != NULL; i++)
		entries++;
	environment = malloc((entries + 1) * sizeof(*environment) + room);
	if (environment == NULL)
		return NULL;
	at = (char *)(environment + entries + 1);
	end = at + room;
	list = at +
	    snprintf(at, room,
		"DLOCK_KEY=%s%cDLOCK_TOKEN=%s%cDLOCK_FENCE=%" PRId64 "%cDLOCK_TTL_MS=%" PRId64 "%cDLOCK_HOLDS=", name,
		0, lease->token, 0, lease->fence, 0, lease->ttl_ms, 0);
	used = (size_t)snprintf(list, (size_t)(end - list), "%s%s=%" PRId64, escaped, lease->token, lease->fence);
	for (; held != NULL && *held != '\0'; held += length + (held[length] == ' ')) {
		length = strcspn(held, " ");
		if (length == 0 || strncmp(held, escaped, begins) == 0) /* it is replaced */
			continue;
		if (used + 1 + length > LIST_MAX)
			break;
		used += (size_t)snprintf(list + used, (size_t)(end - list) - used, " %.*s", (int)length, held);
	}
	(void)snprintf(list + used + 1, (size_t)(end - list) - used - 1, "DLOCK_SLOT=%d", lease->slot);
	for (i = 0; i < variables; i++, at += strlen(at) + 1)
		environment[i] = at;
	for (entries = variables, i = 0; environ != NULL && environ[i] != NULL; i++) {
		for (j = 0;
		     j < variables && strncmp(environ[i], environment[j], strcspn(environment[j], "=") + 1) != 0;)
			j++;
		if (j == variables)
			environment[entries++] = environ[i];
	}
	environment[entries] = NULL;
	return environment;
}

/* -- The lock --------------------------------------------------------------- */

enum status
setup_key(const struct invocation *inv, const char *key, char full[KEY_MAX + 1], struct err *err)
{
	char shown[64];

	if (key[0] == '\0')
		return err_set(err, ST_USAGE, "KEY is empty; it must have 1 to %d bytes", KEY_OPERAND_MAX);
	if (strlen(key) > KEY_OPERAND_MAX)
		return err_set(err, ST_USAGE, "KEY '%s' has %zu bytes; it must have 1 to %d",
		    text_show(key, shown, sizeof(shown)), strlen(key), KEY_OPERAND_MAX);
	if (strlen(inv->options.prefix) > KEY_MAX - KEY_OPERAND_MAX)
		return err_set(err, ST_USAGE, "--prefix has more than %d bytes", KEY_MAX - KEY_OPERAND_MAX);
	(void)snprintf(full, KEY_MAX + 1, "%s%s", inv->options.prefix, key);
	return ST_OK;
}

/* Read a token: the given one, or for "-" the first line of standard input. */
static enum status
read_token(const struct invocation *inv, const char *given, char token[TOKEN_SIZE], struct err *err)
{
	const char *why;
	char line[128];

	if (strcmp(given, "-") == 0) {
		why = password_line(STDIN_FILENO, line, sizeof(line));
		if (why != NULL)
			return err_set(err, ST_USAGE, "TOKEN cannot be read from standard input: %s", why);
		given = line;
	}
	if (!inv->service->token_valid(given))
		return err_set(err, ST_USAGE,
		    "malformed TOKEN; it must be the output of dlock acquire, %d letters, digits, - or _",
		    inv->service->token_length);
	memcpy(token, given, strlen(given) + 1);
	text_keep_secret(SECRET_TOKEN, token, strcspn(token, ".")); /* in a hold it is what must be hidden */
	return ST_OK;
}

enum status
setup_token(const struct invocation *inv, const char *full_key, struct lease *lease, struct err *err)
{
	const struct options *o = &inv->options;
	const char *const key = getenv("DLOCK_KEY"), *token = getenv("DLOCK_TOKEN");
	struct hold held[HOLDS_MAX];
	enum status status;

	if (token != NULL && token[0] == '\0')
		token = NULL;
	if (inv->operands > 1)
		token = inv->operand[1];
	else if ((token == NULL || (key != NULL && strcmp(key, inv->operand[0]) != 0)) &&
	    setup_holds(inv->operand[0], full_key, held) > 0)
		token = held[0].token; /* DLOCK_TOKEN is missing, or of another key */
	if (token == NULL)
		return err_set(err, ST_USAGE,
		    "TOKEN is missing; give it as an operand, in DLOCK_TOKEN, or use - for standard input");
	memset(lease, 0, sizeof(*lease));
	status = read_token(inv, token, lease->token, err);
	if (status != ST_OK)
		return status;
	lease->key = full_key;
	if (o->ttl_given && (options_origin(o, "ttl") == ORIGIN_LINE || !inv->service->fixed_ttl))
		lease->ttl_ms = o->ttl_ms;
	return ST_OK;
}

/* -- The owner -------------------------------------------------------------- */

void
setup_owner(const struct invocation *inv, char owner[OWNER_MAX + 1])
{
	const pid_t process = inv->options.keep_pid;
	const char *user = getenv("LOGNAME"), *kind = "";
	const struct passwd *entry = NULL;
	pid_t pid = getpid();
	char host[256], number[24];
	uid_t uid;

	if (gethostname(host, sizeof(host)) != 0)
		(void)snprintf(host, sizeof(host), "?");
	host[sizeof(host) - 1] = '\0';
	if (process != 0) {
		pid = process;
		kind = OWNER_OF_KEEPER;
	} else if (inv->command->bit == CMD_ACQUIRE) {
		pid = process_caller();
		kind = OWNER_OF_ACQUIRE;
	}
	/* From the environment if possible: reading the user database takes longer than all requests to a server. */
	if (user == NULL || user[0] == '\0')
		user = getenv("USER");
	if (user == NULL || user[0] == '\0') {
		uid = geteuid();
		(void)snprintf(number, sizeof(number), "%ld", (long)uid);
		entry = uid != 0 ? getpwuid(uid) : NULL;
		user = uid == 0 ? "root" : entry != NULL ? entry->pw_name : number;
	}
	(void)snprintf(owner, OWNER_MAX + 1, "%.40s@%s:%ld%s", user, host, (long)pid, kind);
}

int64_t
setup_guard_ms(const struct options *o)
{
	if (o->restart_guard_ms != GUARD_AUTO)
		return o->restart_guard_ms;
	return o->nodes > 1 ? o->ttl_ms : 0;
}

void
setup_wait(const struct invocation *inv, struct acquire_args *args)
{
	const int64_t wait_ms = inv->options.wait_ms;

	args->wait.until_us = wait_ms == DURATION_FOREVER ? CLOCK_NEVER
	    : wait_ms > 0				  ? clock_add(clock_now_us(), wait_ms * 1000)
							  : 0;
}

bool
setup_is_pattern(const char *operand)
{
	return strpbrk(operand, "*?[") != NULL;
}

enum status
setup_slot_key(const struct invocation *inv, const char *full_key, int slot, char name[KEY_MAX + 1], struct err *err)
{
	if (inv->service->slot_key == NULL)
		return err_set(err, ST_USAGE, "--slots is not for %s", inv->service->name);
	return inv->service->slot_key(full_key, strlen(inv->options.prefix), slot, name, err);
}

/* Ask for one more of the slots. */
static enum status
use_slots(const struct invocation *inv, const char *full_key, struct acquire_args *args, struct err *err)
{
	char name[KEY_MAX + 1];

	if (inv->options.token != NULL)
		return err_set(err, ST_USAGE, "--token and --slots cannot be used together");
	args->slots = inv->options.slots;
	args->prefix_length = strlen(inv->options.prefix);
	return setup_slot_key(inv, full_key, args->slots, name, err);
}

/* Share the lock with other readers.  All other options must go together with that. */
static enum status
share(const struct invocation *inv, struct acquire_args *args, struct err *err)
{
	const struct options *const o = &inv->options;

	if (inv->service->token_shared == NULL)
		return err_set(err, ST_USAGE, "--shared is not for %s", inv->service->name);
	if (o->slots > 0 || o->once_per_ms > 0)
		return err_set(err, ST_USAGE, "--shared and --%s cannot be used together",
		    o->slots > 0 ? "slots" : "once-per");
	args->shared = true;
	return ST_OK;
}

enum status
setup_acquire(const struct invocation *inv, const char *full_key, char owner[OWNER_MAX + 1], struct acquire_args *args,
    struct err *err)
{
	const struct options *o = &inv->options;
	struct hold given = { .fence = 0 }, found[HOLDS_MAX];
	int i, count;

	*args = (struct acquire_args){ .key = full_key,
		.owner = owner,
		.label = o->label != NULL ? o->label : "",
		.ttl_ms = o->ttl_ms,
		.history = o->history,
		.max_waiters = o->max_waiters,
		.min_hold_ms = o->min_hold_ms > o->once_per_ms ? o->min_hold_ms : o->once_per_ms,
		.may_be_shorter = (inv->command->bit & CMD_RUN) != 0,
		.restart_guard_ms = setup_guard_ms(o),
		.guard_if_known = o->restart_guard_ms == GUARD_AUTO };
	if (strlen(args->label) > LABEL_MAX)
		return err_set(err, ST_USAGE, "--label has %zu bytes; the maximum is %d", strlen(args->label),
		    LABEL_MAX);
	setup_owner(inv, owner);
	setup_wait(inv, args);
	args->replace = o->replace;
	if ((o->slots > 0 || o->shared) && o->replace)
		return err_set(err, ST_USAGE, "--replace and %s cannot be used together",
		    o->shared ? "--shared" : "--slots");
	if (o->shared && share(inv, args, err) != ST_OK)
		return ST_USAGE;
	if (o->slots > 0)
		return use_slots(inv, full_key, args, err);
	count = setup_holds(inv->operand[0], full_key, found);
	for (i = 0; i < count; i++) {
		if (!inv->service->token_valid(found[i].token))
			continue; /* of another service */
		text_keep_secret(SECRET_TOKEN, found[i].token, strcspn(found[i].token, "."));
		args->hold[args->holds++] = found[i];
	}
	if (o->token == NULL)
		return ST_OK;
	if (read_token(inv, o->token, given.token, err) != ST_OK)
		return ST_USAGE;
	for (i = 0; i < args->holds && given.fence == 0; i++) {
		if (strncmp(args->hold[i].token, given.token, strcspn(given.token, ".")) == 0)
			given.fence = args->hold[i].fence;
	}
	args->hold[0] = given;
	args->holds = 1;
	args->must_hold = true;
	return ST_OK;
}

/* Does the hold still hold its lock?  The environment of a script may have one that it has released.  ST_NO: no. */
static enum status
still_holds(struct backend *backend, const char *key, const struct hold *hold, struct err *err)
{
	const struct wait limit = { CLOCK_NEVER, -1 };
	struct lease lease = { .key = key };
	struct renewed renewed;

	if (!backend->service->token_valid(hold->token))
		return ST_NO; /* of another service */
	memcpy(lease.token, hold->token, sizeof(lease.token));
	return backend->service->renew(backend, &lease, &limit, &renewed, err);
}

/* A process that has all slots would wait for itself. */
static enum status
check_slots(const struct invocation *inv, struct backend *backend, const struct acquire_args *args, struct err *err)
{
	enum status status = ST_OK;
	struct hold found[HOLDS_MAX];
	char name[KEY_MAX + 1];
	bool asks = false;
	int i;

	do { /* first without asking the servers */
		for (i = 1; i <= args->slots && status == ST_OK; i++) {
			status = setup_slot_key(inv, args->key, i, name, err);
			if (status == ST_OK && setup_holds(NULL, name, found) == 0)
				return ST_OK;
			if (status == ST_OK && asks)
				status = still_holds(backend, name, &found[0], err);
		}
		asks = !asks;
	} while (asks && status == ST_OK);
	if (status != ST_OK)
		return status;
	return err_set(err, ST_USAGE,
	    args->slots == 1 ? "this process is in the only slot already, and would wait for itself"
			     : "this process is in all %d slots already, and would wait for itself",
	    args->slots);
}

/* One of two readers that wait to be alone would wait for the other's end. */
static enum status
check_alone(const struct invocation *inv, struct backend *backend, const struct acquire_args *args, struct err *err)
{
	enum status status = ST_OK;
	int i;

	for (i = 0; i < args->holds && (status == ST_OK || status == ST_NO); i++) {
		if (!inv->service->token_shared(args->hold[i].token))
			continue;
		status = still_holds(backend, args->key, &args->hold[i], err);
		if (status != ST_OK)
			continue;
		(void)err_set(err, ST_USAGE, "this process holds it shared; it cannot become exclusive");
		if (inv->command->bit != CMD_RUN) /* its messages name KEY anyway */
			setup_blame_key(inv, ST_HELD, err);
		return ST_USAGE;
	}
	return status;
}

enum status
setup_nesting(const struct invocation *inv, struct backend *backend, const struct acquire_args *args, struct err *err)
{
	enum status status = ST_OK;

	if (args->slots > 0)
		status = check_slots(inv, backend, args, err);
	else if (!args->shared && inv->service->token_shared != NULL)
		status = check_alone(inv, backend, args, err);
	if (status == ST_NO)
		err->text[0] = '\0';
	return status == ST_NO ? ST_OK : status;
}

/* -- Messages --------------------------------------------------------------- */

void
setup_name_key(const struct invocation *inv, struct err *err)
{
	char shown[200];

	if (inv->command != NULL && inv->command->bit == CMD_RUN && inv->operands > 0 && inv->operand[0][0] != '\0' &&
	    err->text[0] != '\0')
		err_prefix(err, text_show(inv->operand[0], shown, sizeof(shown)));
}

void
setup_warn(const struct invocation *inv, const char *format, ...)
{
	struct err warning;
	va_list args;

	if (inv->options.quiet)
		return;
	va_start(args, format);
	(void)vsnprintf(warning.text, sizeof(warning.text), format, args);
	va_end(args);
	setup_name_key(inv, &warning);
	log_warn(&inv->log, "%s", warning.text);
}

void
setup_blame_denied(const char *key, enum status status, struct err *err)
{
	char shown[200], suffix[240];

	if (status != ST_DENIED)
		return;
	(void)snprintf(suffix, sizeof(suffix), "KEY was %s", text_show(key, shown, sizeof(shown)));
	err_suffix(err, suffix);
}

void
setup_blame_key(const struct invocation *inv, enum status status, struct err *err)
{
	char shown[200];

	if (status == ST_HELD || status == ST_NO)
		err_prefix(err, text_show(inv->operand[0], shown, sizeof(shown)));
	setup_blame_denied(inv->operand[0], status, err);
}
