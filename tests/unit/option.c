/* SPDX-License-Identifier: MIT */
#include "cli/option.h"

#include "base/duration.h"
#include "lock/lease.h"
#include "tap.h"

static struct options o;
static struct err err;

static const struct option_spec *
find(const char *name)
{
	return option_find(name, strlen(name));
}

/* The value that an option of any kind has now, as a number; texts are compared elsewhere. */
static int64_t
number_of(const struct option_spec *spec)
{
	const char *at = (const char *)&o + spec->offset;

	switch (spec->kind) {
	case OPTION_DURATION:
	case OPTION_WAIT:
	case OPTION_GUARD:
	case OPTION_NO_WAIT:
		return *(const int64_t *)(const void *)at;
	case OPTION_EXIT_CODE:
	case OPTION_COUNT:
	case OPTION_SLOTS:
	case OPTION_WAITERS:
	case OPTION_PID:
	case OPTION_SIGNAL:
		return *(const int *)(const void *)at;
	default:
		return *at != 0;
	}
}

/* Of each option some values, and the numbers that they mean; "" is none. */
static const struct {
	const char *name;
	struct {
		const char *text;
		int64_t number;
	} value[8];
} good[] = {
	{ "ttl", { { "10s", 10000 }, { "0.5", 500 }, { "1m30s", 90000 }, { "10ms", TTL_MIN_MS } } },
	{ "wait", { { "0", 0 }, { "5m", 300000 }, { "forever", DURATION_FOREVER }, { "inf", DURATION_FOREVER } } },
	{ "no-wait", { { "", 0 } } },
	{ "node-timeout", { { "1ms", 1 }, { "2", 2000 } } },
	{ "min-hold", { { "0", 0 }, { "1h", 3600000 } } },
	{ "once-per", { { "26h", 93600000 } } },
	{ "max-run", { { "infinity", DURATION_FOREVER }, { "1d", 86400000 } } },
	{ "kill-after", { { "0", 0 }, { "250ms", 250 } } },
	{ "restart-guard", { { "auto", GUARD_AUTO }, { "0", 0 }, { "1h", 3600000 } } },
	{ "replicas", { { "0", 0 }, { "2", 2 } } },
	{ "replicas-timeout", { { "100ms", 100 } } },
	{ "slots", { { "1", 1 }, { "64", 64 } } },
	{ "max-waiters", { { "1", 1 }, { "255", 255 } } },
	{ "conflict-exit-code", { { "0", 0 }, { "1", 1 }, { "255", 255 }, { "075", 75 } } },
	{ "signal", { { "TERM", SIGTERM }, { "SIGTERM", SIGTERM }, { "15", SIGTERM }, { "sigterm", SIGTERM } } },
	{ "signal", { { "HUP", SIGHUP }, { "SIGUSR1", SIGUSR1 }, { "KILL", SIGKILL }, { "9", SIGKILL } } },
	{ "signal", { { "INT", SIGINT }, { "1", SIGHUP } } },
	{ "on-lost", { { "kill", 0 }, { "warn", 1 } } },
	{ "json", { { "", 1 } } },
	{ "quiet", { { "", 1 } } },
	{ "verbose", { { "", 1 } } },
	{ "foreground", { { "", 1 } } },
	{ "shell", { { "", 1 } } },
	{ "export", { { "sh", 0 }, { "fish", 1 } } },
	{ "help", { { "all", 1 } } },
	{ "version", { { "", 1 } } },
};

TEST(good)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		const struct option_spec *spec = find(good[i].name);

		for (size_t j = 0; j < COUNT(good[i].value) && good[i].value[j].text != NULL; j++) {
			const char *text = good[i].value[j].text;

			options_default(&o);
			if (!ok(spec != NULL, "--%s is there", good[i].name))
				continue;
			is_int(option_set(&o, spec, text[0] != '\0' ? text : NULL, &err), ST_OK, "--%s %s",
			    good[i].name, text);
			is_int(number_of(spec), good[i].value[j].number, "its value is stored");
		}
	}
}

static const struct {
	const char *name;
	const char *hint; /* a part of the message */
	const char *value[12];
} invalid[] = {
	{ "ttl", "duration", { "", "-1", "10x", "auto" } },
	{ "ttl", "10ms", { "0", "9ms" } },
	{ "ttl", "30s", { "1e3" } },
	{ "ttl", "too long", { "forever" } },
	{ "ttl", "too long; the maximum is 36525d", { "200000d" } },
	{ "wait", "duration", { "", "Forever", "never", "-1", "forever " } },
	{ "wait", "too long; the maximum is 36525d00h, or forever", { "200000d" } },
	{ "node-timeout", "1ms", { "0" } },
	{ "replicas-timeout", "1ms", { "0" } },
	{ "watch", "100ms", { "99ms" } },
	{ "node-timeout", "duration", { "fast" } },
	{ "min-hold", "too long", { "forever" } },
	{ "min-hold", "duration", { "1 s" } },
	{ "max-run", "duration", { "+1" } },
	{ "kill-after", "duration", { "5 s" } },
	{ "restart-guard", "duration", { "never" } },
	{ "restart-guard", "too long", { "forever" } },
	{ "export", "sh or fish", { "csh" } },
	{ "sni", "invalid name", { "" } },
	{ "sentinel-user", "invalid name", { "" } },
	{ "password-command", "invalid name", { "" } },
	{ "replicas", "0 to 255", { "256" } },
	{ "max-waiters", "1 to 255", { "0", "256" } },
	{ "conflict-exit-code", "0 to 255", { "", "256", "-1", "+1", " 1", "1 ", "1x", "0x10", "1.0" } },
	{ "conflict-exit-code", "0 to 255", { "99999999999999999999", "4294967371" } },
	{ "signal", "signal", { "", "NONE", "SIG", "SIGSIGTERM", "SIG15", "TERMX" } },
	{ "signal", "signal", { "0", "-15", "+15", " 15", "15x", "1000", "4294967311", "99999999999999999999" } },
	{ "on-lost", "kill or warn", { "", "Kill", "warn ", "ignore" } },
};

static void
check_invalid(const char *name, const char *value, const char *hint)
{
	const struct option_spec *spec = find(name);
	char named[64], where[64];

	options_default(&o);
	if (!ok(spec != NULL, "--%s is there", name))
		return;
	is_int(option_set(&o, spec, value, &err), ST_USAGE, "--%s '%s'", name, value);
	(void)snprintf(named, sizeof(named), "'%s'", value);
	(void)snprintf(where, sizeof(where), "--%s: ", name);
	ok(strncmp(err.text, where, strlen(where)) == 0 && strstr(err.text, named) != NULL &&
		strstr(err.text, hint) != NULL,
	    "the message says where, what and how: %s", err.text);
}

TEST(invalid)
{
	for (size_t i = 0; i < COUNT(invalid); i++) {
		for (size_t j = 0; invalid[i].value[j] != NULL; j++)
			check_invalid(invalid[i].name, invalid[i].value[j], invalid[i].hint);
	}
	options_default(&o);
	(void)option_set(&o, find("ttl"), "1\n\x1b[31m\xff", &err);
	is_str(err.text, "--ttl: invalid duration '1\\n\\e[31m\\xff'; use 250ms, 30s, 5m, 2h, 1d, 1m30s or seconds",
	    "a value is shown escaped");
}

/* All that take a duration, and nothing else of the kind. */
TEST(durations)
{
	static const char *const refused[] = { "-5s", "5x", "", " 5s", "36526d", "99999999999999999999" };
	static const char *const longer[] = { "forever", "inf" };

	options_default(&o);
	for (size_t i = 0; i < option_count; i++) {
		const struct option_spec *spec = &option_specs[i];
		const bool waits = spec->kind == OPTION_WAIT || strcmp(spec->name, "max-run") == 0;

		if (spec->kind != OPTION_DURATION && spec->kind != OPTION_WAIT && spec->kind != OPTION_GUARD)
			continue;
		for (size_t j = 0; j < COUNT(refused); j++)
			each(option_set(&o, spec, refused[j], &err) == ST_USAGE, "--%s '%s'", spec->name, refused[j]);
		for (size_t j = 0; j < COUNT(longer); j++)
			each((option_set(&o, spec, longer[j], &err) == ST_OK) == waits, "--%s %s", spec->name,
			    longer[j]);
	}
	each_ok("every option with a duration");
}

TEST(texts)
{
	static const char *const names[] = { "label", "prefix", "config", "password-file", "report" };
	static const char text[] = "any \xff text", again[] = "";

	for (size_t i = 0; i < COUNT(names); i++) {
		const struct option_spec *spec = find(names[i]);
		const char *const *value = (const char *const *)(const void *)((const char *)&o + spec->offset);

		options_default(&o);
		ok(option_set(&o, spec, text, &err) == ST_OK && *value == text, "--%s takes any text", names[i]);
		ok(option_set(&o, spec, again, &err) == ST_OK && *value == again, "--%s: the last one counts",
		    names[i]);
	}
}

TEST(given)
{
	options_default(&o);
	ok(!o.node_timeout_given && !o.kill_after_given, "nothing is given at first");
	(void)option_set(&o, find("ttl"), "5s", &err);
	ok(!o.node_timeout_given && !o.kill_after_given, "--ttl is something else");
	(void)option_set(&o, find("node-timeout"), "5s", &err);
	ok(o.node_timeout_given && !o.kill_after_given, "--node-timeout is given");
	(void)option_set(&o, find("kill-after"), "5s", &err);
	ok(o.kill_after_given, "--kill-after is given");
}

TEST(nodes)
{
	static const char node[] = "h:1";

	options_default(&o);
	for (int i = 0; i < NODES_MAX; i++)
		each(option_set(&o, find("node"), node, &err) == ST_OK && o.nodes == i + 1 && o.node[i] == node,
		    "node %d", i);
	each_ok("the maximum number of nodes can be given");
	is_int(option_set(&o, find("node"), node, &err), ST_USAGE, "one more can't");
	is_str(err.text, "--node: more than 15 nodes", "the message says so");
	is_int(o.nodes, NODES_MAX, "none is added");
	o.nodes = 1;
	is_int(option_set(&o, find("node"), "h:x", &err), ST_USAGE, "an invalid node");
	is_int(o.nodes, 1, "is not added");
	ok(strncmp(err.text, "--node: invalid node: ", 22) == 0, "the message says where and what: %s", err.text);
}

TEST(names)
{
	for (size_t i = 0; i < option_count; i++) {
		const struct option_spec *spec = &option_specs[i];

		each(find(spec->name) == spec, "--%s is not found", spec->name);
		each(spec->commands != 0 && (spec->commands & ~(unsigned int)(CMD_ALL | CMD_KEEP | CMD_LINE_ONLY)) == 0,
		    "--%s has no command", spec->name);
		each((spec->argument == NULL) == (spec->kind == OPTION_FLAG || spec->kind == OPTION_NO_WAIT),
		    "--%s: its argument does not fit its kind", spec->name);
		for (size_t j = 0; j < i; j++)
			each(spec->letter == 0 || spec->letter != option_specs[j].letter, "-%c twice", spec->letter);
	}
	each(option_count < OPTIONS_MAX, "%zu options", option_count);
	each_ok("the table is in order");
	ok(find("tt") == NULL && find("TTL") == NULL && find("ttl ") == NULL, "names are exact");
}

TEST(defaults)
{
	memset(&o, 0x5a, sizeof(o));
	options_default(&o);
	ok(o.ttl_ms == 30000 && o.wait_ms == 0 && o.restart_guard_ms == GUARD_AUTO && o.kill_after_ms == 5000,
	    "lengths");
	ok(o.watch_ms == 2000 && o.history == 20 && !o.watch, "of commands that look");
	ok(o.conflict_exit == 75 && o.first_signal == SIGTERM, "status and signal");
	ok(o.nodes == 0 && o.label == NULL && o.prefix != NULL && o.prefix[0] == '\0', "nodes and texts");
	ok(!o.only_warn && !o.json && !o.quiet && !o.verbose && !o.shell && !o.foreground && !o.help, "flags");
	ok(o.min_hold_ms == 0 && o.max_run_ms == 0 && o.report == NULL && o.config == NULL && o.password_file == NULL,
	    "options without a default");
}

static void
clear_environment(void)
{
	for (size_t i = 0; i < option_count; i++) {
		if (option_specs[i].environment != NULL)
			(void)unsetenv(option_specs[i].environment);
	}
}

static bool ttl_on_line; /* --ttl was given */

static enum status
from_environment(const char *name, const char *value)
{
	static char buffer[256];

	clear_environment();
	(void)setenv(name, value, 1);
	options_default(&o);
	if (ttl_on_line)
		o.source[find("ttl") - option_specs].origin = ORIGIN_LINE;
	return options_from_environment(&o, buffer, &err);
}

TEST(precedence)
{
	ttl_on_line = true;
	ok(from_environment("DLOCK_TTL", "5s") == ST_OK && o.ttl_ms == 30000,
	    "an option takes precedence over the environment");
	ok(from_environment("DLOCK_TTL", "junk") == ST_OK, "an option takes precedence over an invalid variable");
	ok(from_environment("DLOCK_WAIT", "5s") == ST_OK && o.wait_ms == 5000, "other variables are still used");
	ttl_on_line = false;
}

TEST(environment)
{
	ok(from_environment("DLOCK_TTL", "5s") == ST_OK && o.ttl_ms == 5000, "DLOCK_TTL");
	ok(from_environment("DLOCK_WAIT", "forever") == ST_OK && o.wait_ms == DURATION_FOREVER, "DLOCK_WAIT");
	ok(from_environment("DLOCK_NODE_TIMEOUT", "1s") == ST_OK && o.node_timeout_ms == 1000 && o.node_timeout_given,
	    "DLOCK_NODE_TIMEOUT");
	ok(from_environment("DLOCK_LABEL", "a b") == ST_OK && strcmp(o.label, "a b") == 0, "DLOCK_LABEL");
	ok(from_environment("DLOCK_PREFIX", "p:") == ST_OK && strcmp(o.prefix, "p:") == 0, "DLOCK_PREFIX");
	ok(from_environment("DLOCK_TTL", "") == ST_OK && o.ttl_ms == 30000, "an empty variable is ignored");
	is_int(from_environment("DLOCK_TTL", "5 s"), ST_USAGE, "an invalid value in a variable");
	ok(strncmp(err.text, "DLOCK_TTL: ", 11) == 0, "the message names the variable: %s", err.text);
}

TEST(flags)
{
	static char buffer[256];

	ok(from_environment("DLOCK_INSECURE", "1") == ST_OK && o.insecure, "1 sets a flag");
	ok(from_environment("DLOCK_INSECURE", "0") == ST_OK && !o.insecure, "0 does not");
	is_int(from_environment("DLOCK_INSECURE", "yes"), ST_USAGE, "anything else is refused");
	clear_environment();
	options_default(&o);
	o.insecure = true;
	ok(options_from_environment(&o, buffer, &err) == ST_OK && o.insecure, "a flag that the file set stays set");
	(void)setenv("DLOCK_INSECURE", "0", 1);
	ok(options_from_environment(&o, buffer, &err) == ST_OK && !o.insecure,
	    "a variable that is 0 resets a flag of the file");
}

/* A comma in DLOCK_NODES separates the hosts of one node. */
TEST(node_lists)
{
	static const struct {
		const char *list;
		int nodes;
		const char *first;
	} cases[] = {
		{ "redis+cluster://a,b", 1, "redis+cluster://a,b" },
		{ "zk://a,b:1,[::1]:2/locks", 1, "zk://a,b:1,[::1]:2/locks" },
		{ "zks://u:p,w@a,b", 1, "zks://u:p,w@a,b" },
		{ "zk://a,b redis://c", 2, "zk://a,b" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		is_int(from_environment("DLOCK_NODES", cases[i].list), ST_OK, "%s", cases[i].list);
		is_int(o.nodes, cases[i].nodes, "its nodes");
		is_str(o.node[0], cases[i].first, "the first");
	}
	clear_environment();
}

TEST(list_of_nodes)
{
	static const char *const commas[] = { "h:1,g:2", "h:1,", "redis://a,redis://b", "redis://:p@a,redis://:q@b",
		"h:1 g:2,/s" };
	static const char several[] = "redis+sentinel://a,b:1/s zk://a,b/c redis+cluster://c,d redis://:a,b@h";
	static const char *const zk[] = { "zk://h:1,", "zk://h:1,g:1,/chroot" };

	ok(from_environment("DLOCK_NODES", "h:1") == ST_OK && o.nodes == 1 && strcmp(o.node[0], "h:1") == 0,
	    "one node");
	ok(from_environment("DLOCK_NODES", " h:1 g:2\t/s\n") == ST_OK && o.nodes == 3, "blanks");
	ok(strcmp(o.node[0], "h:1") == 0 && strcmp(o.node[1], "g:2") == 0 && strcmp(o.node[2], "/s") == 0,
	    "the nodes are separated");
	ok(from_environment("DLOCK_NODES", several) == ST_OK && o.nodes == 4,
	    "commas separate the servers of a service, and may be in a password");
	for (size_t i = 0; i < COUNT(commas); i++) {
		is_int(from_environment("DLOCK_NODES", commas[i]), ST_USAGE, "%s", commas[i]);
		ok(strstr(err.text, "by blanks") != NULL, "%s", err.text);
	}
	for (size_t i = 0; i < COUNT(zk); i++) {
		is_int(from_environment("DLOCK_NODES", zk[i]), ST_USAGE, "%s", zk[i]);
		ok(strstr(err.text, "missing behind a comma") != NULL, "%s", err.text);
	}
	is_int(from_environment("DLOCK_NODES", " "), ST_USAGE, "only blanks");
	is_int(from_environment("DLOCK_NODES", ""), ST_USAGE, "set, but empty");
	is_int(from_environment("DLOCK_NODES", "/1 /2 /3 /4 /5 /6 /7 /8 /9 /a /b /c /d /e /f"), ST_OK,
	    "the maximum number");
	is_int(from_environment("DLOCK_NODES", "/1 /2 /3 /4 /5 /6 /7 /8 /9 /a /b /c /d /e /f /g"), ST_USAGE,
	    "one too many");
	clear_environment();
}
