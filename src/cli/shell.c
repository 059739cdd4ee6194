/* SPDX-License-Identifier: MIT */
#include "cli/shell.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANCESTORS_MAX 16 /* that are looked at */

/* -- Processes -------------------------------------------------------------- */

struct process {
	pid_t parent;
	uint64_t stack; /* the address at which its stack begins; 0: unknown */
};

static bool
read_process(pid_t pid, struct process *p)
{
	char path[40], line[1024];
	const char *at;
	FILE *in;
	long parent = 0;
	bool done;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	in = fopen(path, "re");
	if (in == NULL)
		return false;
	done = fgets(line, sizeof(line), in) != NULL;
	(void)fclose(in);
	at = done ? strrchr(line, ')') : NULL; /* the name before it may contain anything */
	p->stack = 0;
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
shell_caller(void)
{
	pid_t pid = getppid();
	struct process p, above;
	int i;

	if (pid <= 0) /* it is outside of our container */
		return getpid();
	if (!read_process(pid, &p))
		return pid;
	/* The stack begins at a random address, which a copy has in common with its original. */
	for (i = 0; i < ANCESTORS_MAX && p.stack != 0 && p.parent > 0; i++) {
		if (!read_process(p.parent, &above) || above.stack != p.stack)
			break;
		pid = p.parent;
		p = above;
	}
	return pid;
}

/* -- Commands -------------------------------------------------------------- */

/*
 * Print a string as one word, in a form that sh and fish read alike: whichever of them evaluates it, no part of it is a
 * command.  In '...' they differ about \ and ', which therefore stand outside of quotes, behind a \.
 */
static void
print_word(const char *string)
{
	size_t plain;

	if (*string == '\0')
		fputs("''", stdout);
	for (; *string != '\0'; string += plain) {
		plain = strcspn(string, "'\\");
		if (plain > 0)
			printf("'%.*s'", (int)plain, string);
		else
			printf("\\%c", string[plain++]);
	}
}

void
shell_print_variable(enum shell shell, const char *variable)
{
	const int name = (int)strcspn(variable, "=");

	printf(shell == SHELL_FISH ? "set -gx %.*s " : "%.*s=", name, variable);
	print_word(variable + name + 1);
	if (shell == SHELL_SH)
		printf("; export %.*s", name, variable);
	fputs(";\n", stdout);
}

void
shell_print_failure(enum shell shell, int status)
{
	static const char *const names[] = { "DLOCK_KEY", "DLOCK_TOKEN", "DLOCK_FENCE", "DLOCK_TTL_MS" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("%s %s;\n", shell == SHELL_FISH ? "set -e" : "unset", names[i]);
	printf(shell == SHELL_FISH ? "sh -c 'exit %d'\n" : "(exit %d)\n", status);
}
