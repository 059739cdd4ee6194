/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "tap.h"

/* A label, and commands that have it: words that are separated by |, or a line for the shell. */
struct row {
	const char *label, *command[8];
};

static const struct row plain[] = {
	{ "job", { "job", "/usr/bin/job|secret", "my prog/job" } },
	{ "c++-1.2_x", { "c++-1.2_x" } },
	{ "", { "nightly job", "a:b", "bin/", "", "=b|job" } },
	/* assignments */
	{ "job",
	    { "env|A=b|job|secret", "env|-u|HOME|-i|A=b|B=c d|job", "sudo|PGPASSWORD=x|job", "PGPASSWORD=x|job" } },
	{ "job", { "sudo|-u|root|PGPASSWORD=a b|nice|A=b|job|secret" } },
	{ "env", { "env", "env|A=b", "env|-S|A=b job|secret" } },
	{ "", { "PGPASSWORD=x y/z" } },
	/* wrappers */
	{ "job", { "nice|-n|5|job|secret", "nice|-n5|job|secret", "nice|ionice|-c|3|env|job" } },
	{ "job", { "timeout|-k|5|10|job|secret", "timeout|--signal=KILL|10|nice|job" } },
	{ "job", { "sudo|-nu|root|job|secret", "sudo|-uroot|job|secret", "sudo|-s|job|secret", "sudo|--|job" } },
	{ "sudo", { "sudo", "sudo|-p" } },
	{ "job", { "chrt|-D|1|-P|1|-T|1|9|job", "doas|-C|x|-u|x|job", "env|-C|x|job", "nohup|setsid|job" } },
	{ "job", { "stdbuf|-e|0|-i|0|-o|0|job", "ionice|-P|1|-n|1|-p|1|-u|1|job", "timeout|-s|1|9|job" } },
	{ "job", { "sudo|-C|1|-D|x|-R|x|-T|1|-U|x|-g|x|-h|x|-p|x|-r|x|-t|x|job" } },
	{ "job", { "bash|-O|x|-o|x|job", "dash|-o|x|job", "ksh|-o|x|job", "sh|-o|x|job", "zsh|-o|x|job" } },
	{ "job", { "python|-W|x|-X|x|job", "python3|-W|x|-X|x|job" } },
	{ "bash", { "bash|-c|secret" } },
	{ "dash", { "dash|-c|secret" } },
	{ "ksh", { "ksh|-c|secret" } },
	{ "zsh", { "zsh|-c|secret" } },
	{ "python", { "python|-c|secret" } },
	{ "python3", { "python3|-c|secret" } },
	{ "job.sh", { "bash|./job.sh|secret", "sh|-e|./job.sh" } },
	{ "sh", { "sh|-c|curl secret|arg", "/bin/sh|-ec|curl secret|arg" } },
	{ "job.py", { "python3|-u|./job.py" } },
	{ "json.tool", { "python3|-m|json.tool|job.json" } },
	/* an inner dlock */
	{ "job", { "dlock|run|inner|job|secret", "/usr/bin/dlock|--ttl|10s|run|--|inner|--|job" } },
	{ "job", { "dlock|run|--wait|5m|-N|redis://:x@h|-vt|10s|-qt10s|inner|--label=x|--|nice|job" } },
	{ "job", { "sudo|dlock|run|a|--|dlock|run|b|--|job", "dlock|run|-c|inner|PGPASSWORD=x nice job secret" } },
	{ "job", { "dlock|run|inner|--shell|job secret" } },
	{ "dlock", { "dlock|run|inner", "dlock|run|--wait", "dlock|status|inner|secret" } },
};

static const struct row lines[] = {
	{ "job", { "job secret", " \t\n/bin/job 'secret'", "PGPASSWORD=x job secret", "dlock run inner -- job" } },
	{ "job", { "A=b PGPASSWORD=x:@, sudo B=c nice -n 5 /bin/job" } },
	{ "", { "PGPASSWORD='x y' job", "PGPASSWORD=\"x y z\" job", "PGPASSWORD=x\\ y job", "PGPASSWORD=x;job" } },
	{ "", { "PGPASSWORD=$(cat secret) job", "'my job'", "job;other", "" } },
	{ "sudo", { "sudo -p 'x y z' job" } },
};

static void
check(const struct row *row, bool shell)
{
	char text[256], *argv[32], *rest, label[LABEL_MAX + 1];
	size_t words;

	for (size_t i = 0; row->command[i] != NULL; i++) {
		(void)snprintf(text, sizeof(text), "%s", row->command[i]);
		for (words = 0, rest = text; (argv[words] = strsep(&rest, shell ? "" : "|")) != NULL; words++)
			;
		cmd_run_label(argv, shell, label);
		is_str(label, row->label, shell ? "-c '%s'" : "%s", row->command[i]);
	}
}

TEST(labels)
{
	for (size_t i = 0; i < COUNT(plain); i++)
		check(&plain[i], false);
	for (size_t i = 0; i < COUNT(lines); i++)
		check(&lines[i], true);
}

/* A quote and the like may change what is a word. */
TEST(characters_of_the_shell)
{
	char line[32], *argv[] = { line, NULL }, label[LABEL_MAX + 1];

	for (const char *c = "'\"\\`$(){}[]<>;&|*?!#~"; *c != '\0'; c++) {
		(void)snprintf(line, sizeof(line), "A=x%cy secret", *c);
		cmd_run_label(argv, true, label);
		each(label[0] == '\0', "-c '%s': %s", line, label);
	}
	each_ok("a line with a character that has a meaning for the shell");
}
