/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "tap.h"

/* Words that are separated by |, and their label. */
static const char *const plain[][2] = {
	{ "job", "job" },
	{ "/usr/bin/job|secret", "job" },
	{ "my prog/job", "job" },
	{ "nightly job", "" },
	{ "a:b", "" },
	{ "c++-1.2_x", "c++-1.2_x" },
	{ "bin/", "" },
	{ "", "" },
	/* assignments */
	{ "env|A=b|job|secret", "job" },
	{ "env|-u|HOME|-i|A=b|B=c d|job", "job" },
	{ "env", "env" },
	{ "env|A=b", "env" },
	{ "env|-S|A=b job|secret", "env" },
	{ "sudo|PGPASSWORD=x|job", "job" },
	{ "sudo|-u|root|PGPASSWORD=a b|nice|A=b|job|secret", "job" },
	{ "PGPASSWORD=x|job", "job" },
	{ "PGPASSWORD=x y/z", "" },
	/* wrappers */
	{ "nice|-n|5|job|secret", "job" },
	{ "nice|-n5|job|secret", "job" },
	{ "timeout|-k|5|10|job|secret", "job" },
	{ "timeout|--signal=KILL|10|nice|job", "job" },
	{ "nice|ionice|-c|3|env|job", "job" },
	{ "sudo|-nu|root|job|secret", "job" },
	{ "sudo|-uroot|job|secret", "job" },
	{ "sudo|-s|job|secret", "job" },
	{ "sudo|--|job", "job" },
	{ "sudo", "sudo" },
	{ "sudo|-p", "sudo" },
	{ "bash|./job.sh|secret", "job.sh" },
	{ "sh|-e|./job.sh", "job.sh" },
	{ "sh|-c|curl secret|arg", "sh" },
	{ "/bin/sh|-ec|curl secret|arg", "sh" },
	{ "python3|-u|./job.py", "job.py" },
	{ "python3|-m|json.tool|job.json", "json.tool" },
	/* an inner dlock */
	{ "dlock|run|inner|job|secret", "job" },
	{ "dlock|run|--wait|5m|-N|redis://:x@h|-vt|10s|-qt10s|inner|--label=x|--|nice|job", "job" },
	{ "/usr/bin/dlock|--ttl|10s|run|--|inner|--|job", "job" },
	{ "sudo|dlock|run|a|--|dlock|run|b|--|job", "job" },
	{ "dlock|run|-c|inner|PGPASSWORD=x nice job secret", "job" },
	{ "dlock|run|inner|--shell|job secret", "job" },
	{ "dlock|run|inner", "dlock" },
	{ "dlock|run|--wait", "dlock" },
	{ "dlock|status|inner|secret", "dlock" },
};

static const char *const lines[][2] = {
	{ "job secret", "job" },
	{ " \t\n/bin/job 'secret'", "job" },
	{ "PGPASSWORD=x job secret", "job" },
	{ "A=b PGPASSWORD=x:@, sudo B=c nice -n 5 /bin/job", "job" },
	{ "PGPASSWORD='x y' job", "" },
	{ "PGPASSWORD=\"x y z\" job", "" },
	{ "PGPASSWORD=x\\ y job", "" },
	{ "PGPASSWORD=$(cat secret) job", "" },
	{ "PGPASSWORD=x;job", "" },
	{ "sudo -p 'x y z' job", "sudo" },
	{ "'my job'", "" },
	{ "dlock run inner -- job", "job" },
	{ "job;other", "" },
	{ "", "" },
};

TEST(labels)
{
	char text[256], *argv[32], *rest, label[LABEL_MAX + 1];
	size_t i, words;

	for (i = 0; i < COUNT(plain); i++) {
		(void)snprintf(text, sizeof(text), "%s", plain[i][0]);
		for (words = 0, rest = text; (argv[words] = strsep(&rest, "|")) != NULL; words++)
			;
		cmd_run_label(argv, false, label);
		is_str(label, plain[i][1], "%s", plain[i][0]);
	}
	for (i = 0; i < COUNT(lines); i++) {
		(void)snprintf(text, sizeof(text), "%s", lines[i][0]);
		argv[0] = text;
		argv[1] = NULL;
		cmd_run_label(argv, true, label);
		is_str(label, lines[i][1], "-c '%s'", lines[i][0]);
	}
}
