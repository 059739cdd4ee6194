/* SPDX-License-Identifier: MIT */
#include "cli/setup.h"

#include <errno.h>
#include <fcntl.h>
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
#include "net/tls.h"
#include "run/process.h"

#define KEY_OPERAND_MAX 512
#define PASSWORD_MAX 512
#define ANCESTORS_MAX 16 /* that are looked at */

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

/* Read the first line from a descriptor, without its newline.  NULL, or why it cannot be used. */
static const char *
read_line(int fd, char *line, size_t size)
{
	size_t length = 0;
	ssize_t n = 0;

	while (length < size && (n = read(fd, line + length, 1)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return strerror(errno);
		if (line[length] == '\n')
			break;
		length++;
	}
	if (length >= size)
		return "its first line is too long";
	if (memchr(line, '\0', length) != NULL)
		return "its first line contains a NUL byte";
	if (length > 0 && line[length - 1] == '\r')
		length--;
	line[length] = '\0';
	return length > 0 ? NULL : "its first line is empty";
}

static enum status
read_password_file(const struct invocation *inv, char password[PASSWORD_MAX], struct err *err)
{
	const char *const path = inv->options.password_file;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *const why = fd >= 0 ? read_line(fd, password, PASSWORD_MAX) : strerror(errno);
	char shown[256];

	(void)text_show(path, shown, sizeof(shown));
	if (fd >= 0)
		(void)close(fd);
	if (why != NULL)
		return err_set(err, ST_CONFIG, "password file %s: %s", shown, why);
	if (is_public(path))
		setup_warn(inv, "the password file %s is world-readable; use chmod o-r", shown);
	return ST_OK;
}

static enum status
find_password(const struct invocation *inv, char password[PASSWORD_MAX], struct err *err)
{
	const char *const variable = setup_password_variable(),
			  *const value = variable != NULL ? getenv(variable) : NULL;

	if (inv->options.password_file != NULL)
		return read_password_file(inv, password, err);
	if (value != NULL && strlen(value) >= PASSWORD_MAX)
		return err_set(err, ST_USAGE, "the password in the environment is too long");
	(void)snprintf(password, PASSWORD_MAX, "%s", value != NULL ? value : "");
	return ST_OK;
}

void
setup_protect(const struct options *o)
{
	bool secret = o->password_file != NULL || o->cert != NULL || setup_password_variable() != NULL;
	int i;

	for (i = 0; i < o->nodes; i++)
		secret = secret || url_has_password(o->node[i]);
	if (secret)
		(void)prctl(PR_SET_DUMPABLE, 0);
}

static void
warn_of_tls(const struct invocation *inv)
{
	const struct options *o = &inv->options;
	const char *const key = o->key != NULL ? o->key : o->cert;
	char shown[256];

	if (o->insecure && (o->cacert != NULL || o->cacertdir != NULL))
		setup_warn(inv, "%s is ignored, as --insecure accepts any certificate",
		    o->cacert != NULL ? "--cacert" : "--cacertdir");
	if (key != NULL && is_public(key))
		setup_warn(inv, "the private key %s is world-readable; use chmod o-r",
		    text_show(key, shown, sizeof(shown)));
}

/* What the service cannot do.  The confirmation of the replicas must arrive within the round. */
static enum status
check_config(const struct invocation *inv, const struct service_config *config, struct err *err)
{
	const struct options *o = &inv->options;
	const struct service *other = inv->service;
	char given[32], most[32];
	int i;

	for (i = 0; i < config->nodes && config->nodes > 1; i++) {
		if (!service_of(config->url[i])->several)
			other = service_of(config->url[i]);
	}
	if (config->nodes > 1 && !other->several)
		return err_set(err, ST_USAGE,
		    "a %s ensemble is a quorum already, and cannot be combined with other nodes; name its servers in one "
		    "URL",
		    other->name);
	if (!inv->service->replicas && (o->replicas > 0 || o->replicas_timeout_given))
		return err_set(err, ST_USAGE, "--replicas is not for %s: a majority of its servers has every lock",
		    inv->service->name);
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
	const struct tls_options tls = { o->cacert, o->cacertdir, o->cert, o->key, o->sni, o->insecure };
	struct service_config config = { .nodes = o->nodes,
		.tls = &tls,
		.node_timeout_ms = setup_node_timeout_ms(o),
		.replicas = o->replicas,
		.log = inv->log };
	char password[PASSWORD_MAX];
	enum status status;

	status = find_password(inv, password, err);
	if (status != ST_OK)
		return status;
	memcpy(config.url, o->node, sizeof(config.url));
	if (o->nodes == 0) {
		config.url[0] = inv->service->default_url;
		config.nodes = 1;
		log_debug(&inv->log, "no node is configured: using %s, on this host", config.url[0]);
	}
	config.password = password;
	config.replicas_timeout_ms = o->replicas_timeout_given ? o->replicas_timeout_ms
							       : (config.node_timeout_ms + 1) / 2;
	status = check_config(inv, &config, err);
	if (status != ST_OK)
		goto out;
	setup_protect(o);
	if (o->restart_guard_ms > 0 && !inv->service->guards)
		log_debug(&inv->log, "--restart-guard has no effect on %s, which keeps its locks over restarts",
		    inv->service->name);
	status = inv->service->open(&config, backend, err);
	if (status == ST_OK && (*backend)->tls)
		warn_of_tls(inv);
out:
	explicit_bzero(password, sizeof(password));
	return status;
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
		why = read_line(STDIN_FILENO, line, sizeof(line));
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

/* DLOCK_TOKEN, unless it is missing or belongs to another key, and DLOCK_HOLDS has one for this key. */
static const char *
token_of_environment(const struct invocation *inv, const char *full_key, struct hold held[HOLDS_MAX])
{
	const char *const key = getenv("DLOCK_KEY"), *const token = getenv("DLOCK_TOKEN");
	const bool none = token == NULL || token[0] == '\0';

	if ((none || (key != NULL && strcmp(key, inv->operand[0]) != 0)) &&
	    environment_holds(inv->operand[0], full_key, held) > 0)
		return held[0].token;
	return none ? NULL : token;
}

enum status
setup_token(const struct invocation *inv, const char *full_key, struct lease *lease, struct err *err)
{
	const struct options *o = &inv->options;
	struct hold held[HOLDS_MAX];
	const char *const token = inv->operands > 1 ? inv->operand[1] : token_of_environment(inv, full_key, held);
	enum status status;

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

struct ancestor {
	pid_t parent;
	uint64_t stack; /* the address at which its stack begins; 0: unknown */
};

static bool
read_ancestor(pid_t pid, struct ancestor *p)
{
	char line[1024];
	const char *at;
	long parent = 0;

	p->stack = 0;
	if (!process_read(pid, "stat", line, sizeof(line)))
		return false;
	at = strrchr(line, ')'); /* the name before it may contain anything */
	if (at == NULL ||
	    sscanf(at + 1,
		" %*c %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		"%" SCNu64,
		&parent, &p->stack) < 1)
		return false;
	p->parent = (pid_t)parent;
	return true;
}

pid_t
setup_caller(void)
{
	pid_t pid = getppid();
	struct ancestor p, above;
	int i;

	if (pid <= 0) /* it is outside of our container */
		return getpid();
	if (!read_ancestor(pid, &p))
		return pid;
	/* The stack begins at a random address, which a copy has in common with its original. */
	for (i = 0; i < ANCESTORS_MAX && p.stack != 0 && p.parent > 0; i++) {
		if (!read_ancestor(p.parent, &above) || above.stack != p.stack)
			break;
		pid = p.parent;
		p = above;
	}
	return pid;
}

/* From the environment if possible, since reading the user database takes longer than all requests to a server. */
static const char *
user_name(void)
{
	static char number[24];
	const char *user = getenv("LOGNAME");
	const struct passwd *entry;

	if (user == NULL || user[0] == '\0')
		user = getenv("USER");
	if (user != NULL && user[0] != '\0')
		return user;
	if (geteuid() == 0)
		return "root";
	entry = getpwuid(geteuid());
	(void)snprintf(number, sizeof(number), "%ld", (long)geteuid());
	return entry != NULL ? entry->pw_name : number;
}

void
setup_owner(const struct invocation *inv, char owner[OWNER_MAX + 1])
{
	const pid_t kept = inv->options.keep_pid;
	pid_t pid = getpid();
	const char *kind = "";
	char host[256];

	if (gethostname(host, sizeof(host)) != 0)
		(void)snprintf(host, sizeof(host), "?");
	host[sizeof(host) - 1] = '\0';
	if (kept != 0) {
		pid = kept;
		kind = OWNER_OF_KEEPER;
	} else if (inv->command->bit == CMD_ACQUIRE) {
		pid = setup_caller();
		kind = OWNER_OF_ACQUIRE;
	}
	(void)snprintf(owner, OWNER_MAX + 1, "%.40s@%s:%ld%s", user_name(), host, (long)pid, kind);
}

/* Collect the holds that the caller has already, from --token or from the environment of an outer run. */
static enum status
find_holds(const struct invocation *inv, const char *full_key, struct acquire_args *args, struct err *err)
{
	struct hold given = { .fence = 0 }, found[HOLDS_MAX];
	const int count = environment_holds(inv->operand[0], full_key, found);
	int i;

	for (i = 0; i < count; i++) {
		if (!inv->service->token_valid(found[i].token))
			continue; /* of another service */
		text_keep_secret(SECRET_TOKEN, found[i].token, strcspn(found[i].token, "."));
		args->hold[args->holds++] = found[i];
	}
	if (inv->options.token == NULL)
		return ST_OK;
	if (read_token(inv, inv->options.token, given.token, err) != ST_OK)
		return ST_USAGE;
	for (i = 0; i < args->holds && given.fence == 0; i++) {
		if (strncmp(args->hold[i].token, given.token, TOKEN_LENGTH) == 0)
			given.fence = args->hold[i].fence;
	}
	args->hold[0] = given;
	args->holds = 1;
	args->must_hold = true;
	return ST_OK;
}

int64_t
setup_guard_ms(const struct options *o)
{
	if (o->restart_guard_ms != GUARD_AUTO)
		return o->restart_guard_ms;
	return o->nodes > 1 ? o->ttl_ms : 0;
}

bool
setup_records(const struct invocation *inv)
{
	return inv->options.history > 0 && inv->service->keeps_history;
}

int64_t
setup_kill_after_us(const struct options *o, const struct lease *lease)
{
	const int64_t given = o->kill_after_ms * 1000, sixth = lease->ttl_ms * 1000 / 6;

	return o->kill_after_given || given < sixth ? given : sixth;
}

void
setup_wait(const struct invocation *inv, struct acquire_args *args)
{
	const int64_t wait_ms = inv->options.wait_ms;

	args->wait.until_us = wait_ms == DURATION_FOREVER ? CLOCK_NEVER
	    : wait_ms > 0				  ? clock_add(clock_now_us(), wait_ms * 1000)
							  : 0;
}

enum status
setup_acquire(const struct invocation *inv, const char *full_key, char owner[OWNER_MAX + 1], struct acquire_args *args,
    struct err *err)
{
	const struct options *o = &inv->options;

	*args = (struct acquire_args){ .key = full_key,
		.owner = owner,
		.label = o->label != NULL ? o->label : "",
		.ttl_ms = o->ttl_ms,
		.history = o->history,
		.min_hold_ms = o->min_hold_ms > o->once_per_ms ? o->min_hold_ms : o->once_per_ms,
		.may_be_shorter = (inv->command->bit & CMD_RUN) != 0,
		.restart_guard_ms = setup_guard_ms(o),
		.guard_if_known = o->restart_guard_ms == GUARD_AUTO };
	if (strlen(args->label) > LABEL_MAX)
		return err_set(err, ST_USAGE, "--label has %zu bytes; the maximum is %d", strlen(args->label),
		    LABEL_MAX);
	setup_owner(inv, owner);
	setup_wait(inv, args);
	return find_holds(inv, full_key, args, err);
}

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
