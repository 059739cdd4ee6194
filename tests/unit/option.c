/* SPDX-License-Identifier: MIT */
#include "cli/option.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/duration.h"
#include "lock/lease.h"
#include "tap.h"

static struct options o;
static struct err err, warning;

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

/* The texts are taken apart in place: a copy of the right size each time, which lasts until the next one. */
static enum status
parse(const char *text)
{
	static char *copy;

	options_default(&o);
	err.text[0] = '\0';
	free(copy);
	copy = strdup(text);
	return copy != NULL ? config_parse(copy, "/etc/dlock/config", &o, &err) : ST_SYSTEM;
}

/* Each says the same in its own way. */
static const char *const same[] = { "ttl 10s\nlabel a b", "ttl 10s\nlabel a b\n", "ttl=10s\nlabel=a b\n",
	"ttl = 10s\nlabel = a b\n", "ttl: 10s\nlabel: a b\n", "ttl:10s\nlabel:a b\n", "ttl\t10s\nlabel\t \ta b\n",
	"  ttl   10s  \n\tlabel   a b\t\n", "ttl 10s\r\n\r\nlabel a b\r\n", "ttl \"10s\"\nlabel \"a b\"\n",
	"ttl=\"10s\" \nlabel = \"a b\"\r\n", "\n\n\nttl 10s\n\nlabel a b\n\n",
	"# a comment\nttl 10s\n  # another\nlabel a b\n#", "#ttl 5s\nttl 10s\n#label=x\nlabel a b\n",
	"# \"quoted\" words in a comment\nttl 10s\nlabel a b\n", "# \"no end\nttl 10s\n#\"\nlabel a b\n",
	"# = : \"\nttl 10s\nlabel a b\n", "ttl 5s\nttl 10s\nlabel x\nlabel a b\n" };

TEST(same)
{
	for (size_t i = 0; i < COUNT(same); i++) {
		is_int(parse(same[i]), ST_OK, "'%s'", same[i]);
		ok(o.ttl_ms == 10000 && o.label != NULL && strcmp(o.label, "a b") == 0,
		    "means a ttl of 10s and the label 'a b'");
	}
}

static const struct {
	const char *line, *label;
} labels[] = {
	{ "label x", "x" },
	{ "label \"\"", "" },
	{ "label \" x \"", " x " },
	{ "label \"a \\\"b\\\" c\"", "a \"b\" c" },
	{ "label \"a\\\\b\"", "a\\b" },
	{ "label \"a\\nb\"", "a\\nb" },
	{ "label \"\\\\\"", "\\" },
	{ "label \"\\\"\"", "\"" },
	{ "label \"# x\"", "# x" },
	{ "label \"= x\"", "= x" },
	{ "label \"\t\"", "\t" },
	{ "label x # y", "x # y" },
	{ "label a=b", "a=b" },
	{ "label a:b", "a:b" },
	{ "label a \"b\"", "a \"b\"" },
	{ "label 'x'", "'x'" },
	{ "label a\\b", "a\\b" },
	{ "label gr\xc3\xbc\xff", "gr\xc3\xbc\xff" },
};

TEST(values)
{
	for (size_t i = 0; i < COUNT(labels); i++) {
		is_int(parse(labels[i].line), ST_OK, "%s", labels[i].line);
		is_str(o.label != NULL ? o.label : "(none)", labels[i].label, "its value is stored");
	}
}

TEST(all_kinds)
{
	static const char text[] =
	    "node redis://h:1\nnode = /s\nwait forever\njson\nverbose\non-lost warn\nsignal INT\n"
	    "conflict-exit-code 3\nno-wait\nnode-timeout 1s\nkill-after: 2s\nprefix p:\nshell\n";

	is_int(parse(text), ST_OK, "every kind of option: %s", err.text);
	ok(o.nodes == 2 && strcmp(o.node[0], "redis://h:1") == 0 && strcmp(o.node[1], "/s") == 0, "nodes");
	ok(o.json && o.verbose && o.shell && !o.quiet && o.only_warn, "flags");
	ok(o.first_signal == 2 && o.conflict_exit == 3, "numbers");
	ok(o.wait_ms == 0 && o.node_timeout_ms == 1000 && o.node_timeout_given && o.kill_after_ms == 2000 &&
		o.kill_after_given,
	    "lengths");
	ok(o.prefix[0] == 'p' && strcmp(o.prefix, "p:") == 0, "texts");
	is_int(parse(""), ST_OK, "an empty file");
	ok(o.ttl_ms == 30000 && o.nodes == 0, "leaves the defaults");
}

static const struct {
	const char *text;
	int line;
	const char *hint;
} bad[] = {
	{ "frobnicate 1", 1, "unknown option 'frobnicate'" },
	{ "ttl 10s\nlabel x\ntll 5s\n", 3, "unknown option 'tll'" },
	{ "\n\n# x\n\nwiat 5s", 5, "unknown option 'wiat'" },
	{ "--ttl 10s", 1, "unknown option '--ttl'" },
	{ "TTL 10s", 1, "unknown option 'TTL'" },
	{ "t 10s", 1, "unknown option 't'" },
	{ "ttl10s", 1, "unknown option" },
	{ "config /x", 1, "config is allowed on the command line only" },
	{ "help", 1, "help is allowed on the command line only" },
	{ "version", 1, "version is allowed on the command line only" },
	{ "force", 1, "force is allowed on the command line only" },
	{ "token x", 1, "token is allowed on the command line only" },
	{ "= 10s", 1, "unknown option ''" },
	{ "ttl 10s\n:x", 2, "unknown option ''" },
	{ "\"ttl\" 10s", 1, "unknown option '\"ttl\"'" },
	{ "t\x1b[31m 1", 1, "unknown option 't\\e[31m'" },
	{ "ttl", 1, "ttl needs a value" },
	{ "label x\nttl  \r\n", 2, "ttl needs a value" },
	{ "json true", 1, "json takes no value" },
	{ "json = \"\"", 1, "json takes no value" },
	{ "ttl 10x", 1, "ttl: invalid duration '10x'" },
	{ "ttl 10s # ten", 1, "ttl: invalid duration '10s # ten'" },
	{ "ttl =", 1, "ttl" },
	{ "ttl \"\"", 1, "ttl: invalid duration ''" },
	{ "label \"x", 1, "quote" },
	{ "label \"x\" y", 1, "quote" },
	{ "label \"x\\\"", 1, "quote" },
	{ "label \"", 1, "quote" },
	{ "\n\n\n\n\n\n\n\n\n\nsignal X", 11, "signal: invalid signal 'X'" },
	{ "conflict-exit-code 256", 1, "invalid exit status '256'" },
	{ "on-lost ignore", 1, "invalid choice 'ignore'" },
	{ "node a:1\nnode a:1\nnode a:1\nnode a:1\nnode a:1\nnode a:1\nnode a:1\nnode a:1\n"
	  "node a:1\nnode a:1\nnode a:1\nnode a:1\nnode a:1\nnode a:1\nnode a:1\nnode a:1\n",
	    16, "more than 15 nodes" },
};

TEST(bad)
{
	char where[64];

	for (size_t i = 0; i < COUNT(bad); i++) {
		is_int(parse(bad[i].text), ST_CONFIG, "'%s'", bad[i].text);
		(void)snprintf(where, sizeof(where), "/etc/dlock/config:%d: ", bad[i].line);
		ok(strncmp(err.text, where, strlen(where)) == 0, "is reported for line %d: %s", bad[i].line, err.text);
		ok(strstr(err.text, bad[i].hint) != NULL, "the message says what is wrong: %s", bad[i].hint);
	}
}

TEST(noise)
{
	static const char *const words[] = { "ttl", "label", "node", "json", " ", " ", "=", ":", "\"", "\\", "#", "\n",
		"\n", "10s", "x", "\t", "\r", "\xff", "signal", "forever" };
	char text[256];
	enum status status;
	int j, n;

	for (int i = 0; i < 50000; i++) {
		text[0] = '\0';
		for (j = 0, n = 0; j < 14; j++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", words[below(COUNT(words))]);
		status = parse(text);
		each(status == ST_OK ||
			(status == ST_CONFIG && strncmp(err.text, "/etc/dlock/config:", 18) == 0 &&
			    strchr(err.text, '\n') == NULL),
		    "%s: %d: %s", text, (int)status, err.text);
	}
	each_ok("noise is read or refused, in one line");
}

/* Write the file, if there is a text, and read it: the status, or -1 if the warning is there and shall not be, or not. */
static int
read_file(const char *path, const char *text, mode_t mode, bool warned)
{
	struct config_file file[2];
	enum status status;

	if (text != NULL)
		each(write_file(path, text), "cannot write %s", path);
	(void)chmod(path, mode);
	memset(file, 0, sizeof(file));
	options_default(&o);
	warning.text[0] = '\0';
	status = config_read(path, &o, file, &warning, &err);
	free(file[0].text);
	return (warning.text[0] != '\0') == warned ? (int)status : -1;
}

TEST(files)
{
	static const char password[] = "node redis://u:hidden@h\n";
	char folder[100], path[120], where[140];
	gid_t group;

	if (!ok(temporary_folder(folder, sizeof(folder)), "a folder"))
		return;
	(void)snprintf(path, sizeof(path), "%s/config", folder);
	is_int(read_file(path, NULL, 0600, false), ST_CONFIG, "a file that was named must be there");
	ok(strstr(err.text, path) != NULL, "the message names it: %s", err.text);
	is_int(read_file(path, "label \"a b\"\nttl 7s", 0600, false), ST_OK, "a file is read");
	ok(o.ttl_ms == 7000, "to its end");
	is_int(read_file(path, "ttl 7s\nlabell x\n", 0600, false), ST_CONFIG, "a file with a mistake");
	(void)snprintf(where, sizeof(where), "%s:2: ", path);
	ok(strncmp(err.text, where, strlen(where)) == 0, "the message names file and line: %s", err.text);
	is_int(read_file(path, password, 0640, false), ST_OK, "a password for the group: nothing to warn of");
	is_int(read_file(path, password, 0644, true), ST_OK, "a password for everybody: a warning");
	ok(strstr(warning.text, path) != NULL && strstr(warning.text, "hidden") == NULL, "it is: %s", warning.text);
	group = getegid();
	(void)unlink(path);
	if (geteuid() == 0) /* whose own group is always trusted */
		each(setegid(1) == 0, "a group");
	is_int(read_file(path, "ttl 7s", 0660, false), ST_OK, "our group may write: nothing to warn of");
	is_int(read_file(path, "ttl 7s", 0606, true), ST_OK, "everybody may: a warning");
	each(geteuid() != 0 || chown(path, 0, 0) == 0, "the group of root");
	is_int(read_file(path, "ttl 7s", 0660, false), ST_OK, "it may write: nothing to warn of");
	each(setegid(group) == 0 && (geteuid() != 0 || chown(path, 0, 1) == 0), "our group");
	if (geteuid() == 0)
		is_int(read_file(path, "ttl 7s", 0660, true), ST_OK, "another group may: a warning");
	(void)unlink(path);
	is_int(read_file(folder, NULL, 0700, false), ST_CONFIG, "a folder is no file: %s", err.text);
	(void)rmdir(folder);
	each_ok("files could be written");
}
