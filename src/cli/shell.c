/* SPDX-License-Identifier: MIT */
#include "cli/shell.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANCESTORS_MAX 16 /* that are looked at */

static const struct {
	const char *name;
	enum shell shell;
} shells[] = {
	{ "sh", SHELL_SH },
	{ "fish", SHELL_FISH },
	{ "csh", SHELL_CSH },
	{ "tcsh", SHELL_CSH },
	{ "bsd-csh", SHELL_CSH },
	{ "bash", SHELL_SH },
	{ "dash", SHELL_SH },
	{ "zsh", SHELL_SH },
	{ "ksh", SHELL_SH },
	{ "ksh93", SHELL_SH },
	{ "mksh", SHELL_SH },
	{ "yash", SHELL_SH },
	{ "busybox", SHELL_SH },
};

static bool
find_shell(const char *name, size_t count, enum shell *shell)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(shells[i].name, name) == 0) {
			*shell = shells[i].shell;
			return true;
		}
	}
	return false;
}

bool
shell_named(const char *name, enum shell *shell)
{
	return find_shell(name, 3, shell);
}

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

enum shell
shell_of_caller(void)
{
	enum shell shell = SHELL_SH;
	pid_t pid = getppid();
	char path[40], exe[1024];
	const char *base;
	struct process p;
	ssize_t length;
	int i;

	for (i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = p.parent) {
		(void)snprintf(path, sizeof(path), "/proc/%ld/exe", (long)pid);
		length = readlink(path, exe, sizeof(exe) - 1);
		exe[length > 0 ? length : 0] = '\0';
		base = strrchr(exe, '/');
		if ((base != NULL && find_shell(base + 1, sizeof(shells) / sizeof(shells[0]), &shell)) ||
		    !read_process(pid, &p))
			break;
	}
	return shell;
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

/* -- Commands --------------------------------------------------------------- */

/* Print a string as one word. */
static void
print_word(enum shell shell, const char *string)
{
	putchar('\'');
	for (; *string != '\0'; string++) {
		if (*string == '\'')
			fputs(shell == SHELL_FISH ? "\\'" : "'\\''", stdout);
		else if ((*string == '\\' && shell == SHELL_FISH) ||
		    (shell == SHELL_CSH && strchr("!\n", *string) != NULL))
			printf("\\%c", *string);
		else
			putchar(*string);
	}
	putchar('\'');
}

void
shell_print_variable(enum shell shell, const char *name, const char *value)
{
	static const char *const before[] = { [SHELL_SH] = "", [SHELL_FISH] = "set -gx ", [SHELL_CSH] = "setenv " };

	printf("%s%s%c", before[shell], name, shell == SHELL_SH ? '=' : ' ');
	print_word(shell, value);
	if (shell == SHELL_SH)
		printf("; export %s", name);
	fputs(";\n", stdout);
}

void
shell_print_failure(enum shell shell, int status)
{
	static const char *const names[] = { "DLOCK_KEY", "DLOCK_TOKEN", "DLOCK_FENCE", "DLOCK_TTL_MS" };
	static const char *const unset[] = { [SHELL_SH] = "unset", [SHELL_FISH] = "set -e", [SHELL_CSH] = "unsetenv" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("%s %s;\n", unset[shell], names[i]);
	printf(shell == SHELL_SH ? "(exit %d)\n" : "sh -c 'exit %d'\n", status);
}
