/* SPDX-License-Identifier: MIT */
#include "cli/option.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/text.h"
#include "lock/lease.h"
#include "lock/service.h"
#include "net/authority.h"
#include "run/signals.h"

#define AT(member) offsetof(struct options, member)
#define COMMON CMD_SERVICE
#define TAKING (CMD_RUN | CMD_ACQUIRE)
#define SUPERVISING (TAKING | CMD_KEEP)
#define WATCH_MIN_MS 100 /* a shorter interval would not be readable */
#define FILE_MAX (1024 * 1024)

/* One with a member that says whether it was given, or a minimum. */
#define OPT_OF(letter, name, argument, variable, commands, kind, member, help, given, least)              \
	{                                                                                                 \
		letter, name, argument, variable, commands, OPTION_##kind, AT(member), given, least, help \
	}
#define OPT(letter, name, argument, variable, commands, kind, member, help) \
	OPT_OF(letter, name, argument, variable, commands, kind, member, help, 0, 0)

const struct option_spec option_specs[] = {
	OPT('N', "node", "URL", "DLOCK_NODES", COMMON, NODE, node, "URL of a node; may be repeated"),
	OPT_OF('t', "ttl", "DUR", "DLOCK_TTL", TAKING | CMD_RENEW | CMD_DOCTOR, DURATION, ttl_ms,
	    "length of the lease (30s)", AT(ttl_given), TTL_MIN_MS),
	OPT('w', "wait", "DUR", "DLOCK_WAIT", TAKING | CMD_BREAK, WAIT, wait_ms,
	    "maximum wait for a held lock, or forever, infinity (0)"),
	OPT('n', "no-wait", NULL, NULL, TAKING, NO_WAIT, wait_ms, "try once, the same as --wait 0"),
	OPT(0, "max-waiters", "N", "DLOCK_MAX_WAITERS", TAKING, WAITERS, max_waiters, "do not wait if N wait already"),
	OPT_OF(0, "node-timeout", "DUR", "DLOCK_NODE_TIMEOUT", COMMON, DURATION, node_timeout_ms,
	    "time for the nodes to answer (a tenth of the lease)", AT(node_timeout_given), 1),
	OPT(0, "label", "TEXT", "DLOCK_LABEL", TAKING, TEXT, label, "text that status shows beside the owner"),
	OPT(0, "prefix", "TEXT", "DLOCK_PREFIX", COMMON, TEXT, prefix, "text to put before KEY"),
	OPT(0, "restart-guard", "DUR", "DLOCK_RESTART_GUARD", TAKING | CMD_DOCTOR, GUARD, restart_guard_ms,
	    "minimum uptime of a node that grants, or auto (auto)"),
	OPT('E', "conflict-exit-code", "N", NULL, TAKING | CMD_BREAK, EXIT_CODE, conflict_exit,
	    "exit status if another holds the lock (75)"),
	OPT('j', "json", NULL, NULL, COMMON, FLAG, json, "print JSON, one object per line"),
	OPT('q', "quiet", NULL, NULL, COMMON, FLAG, quiet, "print results and errors only"),
	OPT('v', "verbose", NULL, NULL, COMMON, FLAG, verbose, "print each step and each node's answer"),
	OPT(0, "config", "FILE", "DLOCK_CONFIG", COMMON | CMD_LINE_ONLY, TEXT, config,
	    "configuration file: long options without dashes"),
	OPT(0, "password-file", "FILE", "DLOCK_PASSWORD_FILE", COMMON, TEXT, password_file,
	    "its first line is the password, or DLOCK_PASSWORD"),
	OPT_OF(0, "password-command", "CMD", "DLOCK_PASSWORD_COMMAND", COMMON, TEXT, password_command,
	    "sh -c CMD prints it, again if it is refused", 0, 1),
	OPT_OF(0, "sentinel-user", "NAME", "DLOCK_SENTINEL_USER", COMMON, TEXT, sentinel_user,
	    "user of the sentinels, if they have their own", 0, 1),
	OPT(0, "sentinel-password-file", "FILE", "DLOCK_SENTINEL_PASSWORD_FILE", COMMON, TEXT, sentinel_password_file,
	    "its first line is the password of the sentinels"),
	OPT(0, "cacert", "FILE", "DLOCK_CACERT", COMMON, TEXT, cacert,
	    "CA certificates to trust for TLS (the system's)"),
	OPT(0, "cacertdir", "DIR", "DLOCK_CACERTDIR", COMMON, TEXT, cacertdir,
	    "directory of CA certificates, see openssl rehash"),
	OPT(0, "cert", "FILE", "DLOCK_CERT", COMMON, TEXT, cert, "client certificate, if the server requires one"),
	OPT(0, "key", "FILE", "DLOCK_CERT_KEY", COMMON, TEXT, key,
	    "private key of the certificate (the file of --cert)"),
	OPT_OF(0, "sni", "NAME", "DLOCK_SNI", COMMON, TEXT, sni, "server name to send and verify (the URL's host)", 0,
	    1),
	OPT(0, "insecure", NULL, "DLOCK_INSECURE", COMMON, FLAG, insecure,
	    "do not verify the certificate of the server"),
	OPT(0, "replicas", "N", "DLOCK_REPLICAS", TAKING | CMD_RENEW | CMD_DOCTOR, COUNT, replicas,
	    "replicas that must confirm the lock (0)"),
	OPT_OF(0, "replicas-timeout", "DUR", "DLOCK_REPLICAS_TIMEOUT", TAKING | CMD_RENEW | CMD_DOCTOR, DURATION,
	    replicas_timeout_ms, "time for that (half of --node-timeout)", AT(replicas_timeout_given), 1),
	OPT(0, "replace", NULL, NULL, CMD_RUN | CMD_LINE_ONLY, FLAG, replace,
	    "ask the holder to end, and wait for that"),
	OPT(0, "node-wait", "DUR", NULL, TAKING, WAIT, node_wait_ms,
	    "maximum wait for nodes at the start, or forever (0)"),
	OPT(0, "min-hold", "DUR", NULL, CMD_RUN, DURATION, min_hold_ms, "keep the lock at least this long"),
	OPT(0, "once-per", "DUR", NULL, CMD_RUN, DURATION, once_per_ms,
	    "keep it this long from its start if COMMAND succeeds"),
	OPT(0, "max-run", "DUR", NULL, CMD_RUN, WAIT, max_run_ms,
	    "end COMMAND after DUR; exit 124, or 137 if by SIGKILL"),
	OPT_OF('k', "kill-after", "DUR", NULL, SUPERVISING, DURATION, kill_after_ms,
	    "time from the first signal to SIGKILL (5s)", AT(kill_after_given), 0),
	OPT(0, "on-lost", "kill|warn", NULL, SUPERVISING, ON_LOST, only_warn,
	    "what to do with COMMAND if the lock is lost (kill)"),
	OPT(0, "exec-on-lost", "CMD", NULL, SUPERVISING, TEXT, exec_on_lost, "run CMD with sh -c if the lock is lost"),
	OPT(0, "signal", "SIG", NULL, SUPERVISING, SIGNAL, first_signal, "first signal to end COMMAND (TERM)"),
	OPT(0, "foreground", NULL, NULL, CMD_RUN, FLAG, foreground, "keep COMMAND in the process group of dlock"),
	OPT('c', "shell", NULL, NULL, CMD_RUN, FLAG, shell, "COMMAND is a single string for sh -c"),
	OPT(0, "report", "FILE", NULL, CMD_RUN, TEXT, report, "write the outcome to FILE, as JSON"),
	OPT(0, "token", "TOKEN", NULL, TAKING | CMD_LINE_ONLY, TEXT, token, "enter again the lock that TOKEN holds"),
	OPT(0, "slots", "N", "DLOCK_SLOTS", TAKING | CMD_STATUS, SLOTS, slots,
	    "hold one of N slots, so that N may hold KEY at once"),
	OPT(0, "shared", NULL, "DLOCK_SHARED", TAKING, FLAG, shared,
	    "hold KEY together with others that give --shared"),
	OPT(0, "keep", "PID", NULL, CMD_ACQUIRE | CMD_LINE_ONLY, PID, keep_pid,
	    "renew in the background until process PID ends"),
	OPT(0, "history", "N", "DLOCK_HISTORY", TAKING, COUNT, history, "holders to remember, see dlock history (20)"),
	OPT_OF(0, "export", "[SHELL]", NULL, CMD_ACQUIRE, SHELL, export_fish,
	    "print commands that set DLOCK_... variables, for eval", AT(export_lines), 0),
	OPT(0, "all", NULL, NULL, CMD_STATUS | CMD_LINE_ONLY, FLAG, all,
	    "every lock with a history, also free ones, and its end"),
	OPT(0, "failed", NULL, NULL, CMD_STATUS | CMD_LINE_ONLY, FLAG, failed,
	    "those of --all whose last holder did not succeed"),
	OPT('o', "output", "COLUMNS", NULL, CMD_STATUS, TEXT, columns, "columns to show, separated by commas"),
	OPT(0, "no-headings", NULL, NULL, CMD_STATUS | CMD_HISTORY, FLAG, no_headings,
	    "omit the line with the names of the columns"),
	OPT_OF(0, "watch", "[DUR]", NULL, CMD_STATUS, DURATION, watch_ms, "repeat every DUR until ^C (2s)", AT(watch),
	    WATCH_MIN_MS),
	OPT(0, "prometheus", NULL, NULL, CMD_STATUS, FLAG, prometheus,
	    "print metrics for Prometheus's textfile collector"),
	OPT(0, "waiters", NULL, NULL, CMD_STATUS | CMD_LINE_ONLY, FLAG, waiters, "show who waits for KEY, in order"),
	OPT_OF(0, "max-age", "DUR", NULL, CMD_STATUS | CMD_LINE_ONLY, DURATION, max_age_ms,
	    "check that the last success of KEY is not older", AT(max_age_given), 0),
	OPT(0, "ask", NULL, NULL, CMD_BREAK | CMD_LINE_ONLY, FLAG, ask, "ask the holder to end, and wait for that"),
	OPT('f', "force", NULL, NULL, CMD_BREAK | CMD_LINE_ONLY, FLAG, force, "do not ask for confirmation"),
	OPT_OF('h', "help", "[all]", NULL, CMD_ALL | CMD_LINE_ONLY, ALL, help_all,
	    "show this help, with all: common options, too", AT(help), 0),
	OPT('V', "version", NULL, NULL, CMD_ALL | CMD_LINE_ONLY, FLAG, version, "show the version and features"),
};

const size_t option_count = sizeof(option_specs) / sizeof(option_specs[0]);

void
options_default(struct options *o)
{
	memset(o, 0, sizeof(*o));
	o->ttl_ms = 30000;
	o->restart_guard_ms = GUARD_AUTO;
	o->prefix = "";
	o->watch_ms = 2000;
	o->history = HISTORY_DEFAULT;
	o->conflict_exit = ST_HELD;
	o->kill_after_ms = KILL_AFTER_MS;
	o->first_signal = SIGTERM;
}

const struct option_spec *
option_find(const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < option_count; i++) {
		if (strncmp(option_specs[i].name, name, length) == 0 && option_specs[i].name[length] == '\0')
			return &option_specs[i];
	}
	return NULL;
}

bool
option_needs_value(const struct option_spec *spec)
{
	return spec->argument != NULL && spec->argument[0] != '[';
}

/* -- Values ----------------------------------------------------------------- */

static enum status
invalid(enum option_kind kind, const char *value, struct err *err)
{
	static const struct {
		const char *what, *hint;
	} kinds[] = { [OPTION_TEXT] = { "name", "; it is empty" },
		[OPTION_DURATION] = { "duration", "; use 250ms, 30s, 5m, 2h, 1d, 1m30s or seconds" },
		[OPTION_WAIT] = { "duration", "; use 250ms, 30s, 5m, 2h, 1d, 1m30s, seconds or forever" },
		[OPTION_GUARD] = { "duration", "; use 250ms, 30s, 5m, 2h, 1d, 1m30s, seconds or auto" },
		[OPTION_EXIT_CODE] = { "exit status", "; use 0 to 255" },
		[OPTION_COUNT] = { "number", "; use 0 to 255" },
		[OPTION_SIGNAL] = { "signal", "" },
		[OPTION_SLOTS] = { "number of slots", "; use 1 to 64" },
		[OPTION_WAITERS] = { "number of waiters", "; use 1 to 255" },
		[OPTION_PID] = { "process ID", "; use that of the shell: $$" },
		[OPTION_ON_LOST] = { "choice", "; use kill or warn" },
		[OPTION_SHELL] = { "shell", "; use sh or fish" },
		[OPTION_ALL] = { "choice", "; use all" } };
	char shown[200];

	return err_set(err, ST_USAGE, "invalid %s '%s'%s", kinds[kind].what, text_show(value, shown, sizeof(shown)),
	    kinds[kind].hint);
}

static enum status
set_duration(int64_t *ms, const struct option_spec *spec, const char *value, struct err *err)
{
	const bool has_end = spec->kind != OPTION_WAIT;
	int64_t parsed;
	char bound[32], shown[200];

	/* A number is compared with no word: strcasecmp() would touch the tables of the locale. */
	if ((value[0] < '0' || value[0] > '9') &&
	    (strcmp(value, "forever") == 0 || strcasecmp(value, "infinity") == 0 || strcasecmp(value, "inf") == 0)) {
		if (has_end)
			return err_set(err, ST_USAGE, "'%s' is too long; it must be finite", value);
		*ms = DURATION_FOREVER;
		return ST_OK;
	}
	if (spec->kind == OPTION_GUARD && strcmp(value, "auto") == 0) {
		*ms = GUARD_AUTO;
		return ST_OK;
	}
	if (!duration_parse(value, &parsed))
		return invalid(spec->kind, value, err);
	if (parsed < spec->least) {
		duration_show(spec->least, bound, sizeof(bound));
		return err_set(err, ST_USAGE, "'%s' is too short; the minimum is %s", value, bound);
	}
	if (parsed == DURATION_FOREVER) {
		duration_show(DURATION_MOST_MS, bound, sizeof(bound));
		return err_set(err, ST_USAGE, "'%s' is too long; the maximum is %s%s",
		    text_show(value, shown, sizeof(shown)), bound, has_end ? "" : ", or forever");
	}
	*ms = parsed;
	return ST_OK;
}

/* 0 to 255, or a process ID. */
static enum status
set_number(int *number, enum option_kind kind, const char *value, struct err *err)
{
	const long least = kind == OPTION_PID || kind == OPTION_SLOTS || kind == OPTION_WAITERS;
	const long most = kind == OPTION_PID ? INT_MAX : kind == OPTION_SLOTS ? SLOTS_MAX : 255;
	char *end;
	long n;

	errno = 0;
	n = value[0] >= '0' && value[0] <= '9' ? strtol(value, &end, 10) : -1;
	if (n < least || n > most || errno != 0 || *end != '\0')
		return invalid(kind, value, err);
	*number = (int)n;
	return ST_OK;
}

static enum status
add_node(struct options *o, const struct source *before, const char *value, struct err *err)
{
	struct err forms = { "use " };
	struct text text = text_in(forms.text + 4, sizeof(forms.text) - 4);
	const struct service *const *s;

	if (before->origin != o->reading.origin || before->file != o->reading.file)
		o->nodes = 0;
	if (o->nodes == NODES_MAX)
		return err_set(err, ST_USAGE, "more than %d nodes", NODES_MAX);
	if (service_of(value)->check_url(value, err) != ST_OK) {
		for (s = services; *s != NULL; s++)
			text_addf(&text, "%s%s", s == services ? "" : " or ", (*s)->forms);
		err_suffix(err, forms.text);
		err_suffix(err, "see dlock-nodes(7)");
		return ST_USAGE;
	}
	o->node_line[o->nodes] = o->reading.line;
	o->node[o->nodes++] = value;
	return ST_OK;
}

enum origin
options_origin(const struct options *o, const char *name)
{
	return o->source[option_find(name, strlen(name)) - option_specs].origin;
}

/* The value that sets a flag, and the one that resets it. */
static const struct {
	const char *yes, *no;
} choices
    [] = { [OPTION_ON_LOST] = { "warn", "kill" }, [OPTION_SHELL] = { "fish", "sh" }, [OPTION_ALL] = { "all", "all" } };

/* Set the value, which was `before`.  The message does not name the option. */
static enum status
set_value(struct options *o, const struct option_spec *spec, const struct source *before, const char *value,
    struct err *err)
{
	void *const at = (char *)o + spec->offset;
	bool fits = false;

	if (spec->given_offset != 0)
		*(bool *)((char *)o + spec->given_offset) = true;
	if (spec->kind == OPTION_FLAG)
		*(bool *)at = value == NULL || strcmp(value, "0") != 0;
	if (spec->kind == OPTION_FLAG || value == NULL)
		return ST_OK;
	switch (spec->kind) {
	case OPTION_TEXT:
		*(const char **)at = value;
		fits = (int64_t)strlen(value) >= spec->least;
		break;
	case OPTION_NODE:
		return add_node(o, before, value, err);
	case OPTION_DURATION:
	case OPTION_WAIT:
	case OPTION_GUARD:
		return set_duration(at, spec, value, err);
	case OPTION_FLAG:
	case OPTION_NO_WAIT:
		break;
	case OPTION_EXIT_CODE:
	case OPTION_COUNT:
	case OPTION_SLOTS:
	case OPTION_WAITERS:
	case OPTION_PID:
		return set_number(at, spec->kind, value, err);
	case OPTION_SIGNAL:
		*(int *)at = signals_number(value);
		fits = *(int *)at != 0;
		break;
	case OPTION_ON_LOST:
	case OPTION_SHELL:
	case OPTION_ALL:
		*(bool *)at = strcmp(value, choices[spec->kind].yes) == 0;
		fits = *(bool *)at || strcmp(value, choices[spec->kind].no) == 0;
		break;
	}
	return fits ? ST_OK : invalid(spec->kind, value, err);
}

enum status
option_set(struct options *o, const struct option_spec *spec, const char *value, struct err *err)
{
	const enum origin origin = o->reading.origin;
	const char *const name = origin == ORIGIN_ENVIRONMENT ? spec->environment : spec->name;
	struct options unused;
	struct source before;
	char where[64];

	if (spec->kind == OPTION_NO_WAIT) { /* --wait 0, which stands before it in the table */
		o->source[spec-- - option_specs] = o->reading;
		value = "0";
	}
	before = o->source[spec - option_specs];
	if (before.origin > origin) { /* its value is only checked */
		unused = *o;
		o = &unused;
	}
	o->source[spec - option_specs] = o->reading;
	o->source[spec - option_specs].value = value;
	if (set_value(o, spec, &before, value, err) == ST_OK)
		return ST_OK;
	(void)snprintf(where, sizeof(where), "%s%s", origin == ORIGIN_DEFAULT || origin == ORIGIN_LINE ? "--" : "",
	    name);
	err_prefix(err, where);
	return ST_USAGE;
}

/* -- The environment -------------------------------------------------------- */

enum status
options_from_environment(struct options *o, char *buffer, struct err *err)
{
	enum status status = ST_OK;
	char shown[200], *rest, *node;
	const char *value;
	size_t i;

	o->reading = (struct source){ .origin = ORIGIN_ENVIRONMENT };
	for (i = 0; i < option_count && status == ST_OK; i++) {
		const struct option_spec *spec = &option_specs[i];

		value = spec->environment != NULL ? getenv(spec->environment) : NULL;
		if (value == NULL || o->source[i].origin > ORIGIN_ENVIRONMENT)
			continue;
		if (spec->kind == OPTION_NODE) {
			(void)stpcpy(buffer, value);
			node = strtok_r(buffer, " \t\n", &rest);
			/*
			 * It is perhaps of another variable that is missing; the default would be a lock on this host
			 * only.
			 */
			if (node == NULL)
				status = err_set(err, ST_USAGE, "%s is set, but names no node; name one, or unset it",
				    spec->environment);
			for (; status == ST_OK && node != NULL; node = strtok_r(NULL, " \t\n", &rest))
				status = option_set(o, spec, node, err);
		} else if (value[0] == '\0')
			continue;
		else if (spec->kind == OPTION_FLAG && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
			status = err_set(err, ST_USAGE, "%s: invalid flag '%s'; use 1 or 0", spec->environment,
			    text_show(value, shown, sizeof(shown)));
		else
			status = option_set(o, spec, value, err);
	}
	return status;
}

/* -- The configuration file ------------------------------------------------- */

/*
 * Split "name value" in place; in a quoted value, \" and \\ are decoded.  *value is NULL if there is none.  False: the
 * quote is not closed, or text follows it.
 */
static bool
split_line(char *line, char **name, char **value)
{
	char *end = line + strlen(line), *from;

	while (end > line && strchr(" \t\r", end[-1]) != NULL)
		*--end = '\0';
	*name = line + strspn(line, " \t");
	*value = *name + strcspn(*name, " \t=:");
	if (**value == '\0') {
		*value = NULL;
		return true;
	}
	*value += strspn(*value, " \t");
	if (**value == '=' || **value == ':')
		*value += 1 + strspn(*value + 1, " \t");
	(*name)[strcspn(*name, " \t=:")] = '\0';
	if (**value != '"')
		return true;
	for (from = *value + 1, end = *value; *from != '\0' && *from != '"'; *end++ = *from++)
		from += *from == '\\' && (from[1] == '"' || from[1] == '\\');
	if (*from != '"' || from[1] != '\0')
		return false;
	*end = '\0';
	return true;
}

static enum status
set_line(struct options *o, char *line, struct err *err)
{
	const struct option_spec *spec;
	char *name, *value, shown[100];

	line += strspn(line, " \t\r");
	if (*line == '\0' || *line == '#')
		return ST_OK;
	if (!split_line(line, &name, &value))
		return err_set(err, ST_CONFIG, "malformed quoted value");
	spec = option_find(name, strlen(name));
	if (spec == NULL)
		return err_set(err, ST_CONFIG, "unknown option '%s'", text_show(name, shown, sizeof(shown)));
	if ((spec->commands & CMD_LINE_ONLY) != 0)
		return err_set(err, ST_CONFIG, "%s is allowed on the command line only", name);
	if (spec->argument == NULL && value != NULL)
		return err_set(err, ST_CONFIG, "%s takes no value", name);
	if (option_needs_value(spec) && value == NULL)
		return err_set(err, ST_CONFIG, "%s needs a value", name);
	if (spec->kind == OPTION_NODE && url_has_password(value))
		o->secret = true;
	return option_set(o, spec, value, err);
}

enum status
config_parse(char *text, const char *name, struct options *o, struct err *err)
{
	char where[300], *line;
	int number;

	for (number = 1; (line = strsep(&text, "\n")) != NULL; number++) {
		o->reading = (struct source){ ORIGIN_FILE, name, number, NULL };
		if (set_line(o, line, err) != ST_OK) {
			(void)snprintf(where, sizeof(where), "%.250s:%d", name, number);
			err_prefix(err, where);
			return ST_CONFIG;
		}
	}
	return ST_OK;
}

/* Read an open file completely, terminated.  NULL, or why it cannot be used. */
static const char *
read_all(int fd, char **text)
{
	size_t length = 0;
	ssize_t n = 1;

	*text = malloc(FILE_MAX + 2);
	while (*text != NULL && n != 0 && length <= FILE_MAX) {
		n = read(fd, *text + length, FILE_MAX + 1 - length);
		if (n < 0 && errno != EINTR)
			break;
		length += n > 0 ? (size_t)n : 0;
	}
	if (*text == NULL || n < 0)
		return strerror(errno);
	(*text)[length] = '\0';
	return length > FILE_MAX ? strerror(EFBIG) : strlen(*text) < length ? "it contains a NUL byte" : NULL;
}

/* ST_NO: the file does not exist, as errno says, which is an error only if the user named it. */
static enum status
read_file(const char *path, struct options *o, struct config_file *file, struct err *warning, struct err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *why;
	enum status status = ST_CONFIG;
	struct stat info;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return ST_NO;
	why = fd >= 0 ? read_all(fd, &file->text) : strerror(errno);
	o->secret = false;
	(void)text_show(path, file->name, sizeof(file->name));
	if (why != NULL)
		(void)err_set(err, ST_CONFIG, "configuration file %s: %s", file->name, why);
	else
		status = config_parse(file->text, file->name, o, err);
	if (why == NULL && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
		if (o->secret && (info.st_mode & S_IROTH) != 0)
			(void)err_set(warning, ST_CONFIG, "%s contains a password and is world-readable; use chmod o-r",
			    file->name);
		/* A group that is ours alone, as many systems give to each user, is not others. */
		if ((info.st_mode & S_IWOTH) != 0 ||
		    ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0 && info.st_gid != getegid()))
			(void)err_set(warning, ST_CONFIG, "%s can be written by others; use chmod go-w", file->name);
	}
	if (fd >= 0)
		(void)close(fd);
	return status;
}

enum status
config_read(const char *path, struct options *o, struct config_file file[2], struct err *warning, struct err *err)
{
	const char *const base = getenv("XDG_CONFIG_HOME"), *const home = getenv("HOME");
	enum status status;
	char personal[1024];
	const char *why;
	int length = 0;

	if (path != NULL) {
		status = read_file(path, o, &file[0], warning, err);
		if (status != ST_NO)
			return status;
		why = strerror(errno);
		return err_set(err, ST_CONFIG, "configuration file %s: %s",
		    text_show(path, file[0].name, sizeof(file[0].name)), why);
	}
	status = read_file("/etc/dlock/config", o, &file[1], warning, err);
	if (status != ST_OK && status != ST_NO)
		return status;
	if (base != NULL && base[0] == '/')
		length = snprintf(personal, sizeof(personal), "%s/dlock/config", base);
	else if (home != NULL && home[0] == '/')
		length = snprintf(personal, sizeof(personal), "%s/.config/dlock/config", home);
	if (length > 0 && (size_t)length < sizeof(personal))
		status = read_file(personal, o, &file[0], warning, err);
	return status == ST_NO ? ST_OK : status;
}
