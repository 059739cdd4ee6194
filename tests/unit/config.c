/* SPDX-License-Identifier: MIT */
#include "cli/option.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static struct options o;
static struct err err, warning;

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
