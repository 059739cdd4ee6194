/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SHELL_H
#define DLOCK_CLI_SHELL_H
#include <stdbool.h>
#include <sys/types.h>

/*
 * The script that calls dlock: its process, its shell, and commands for that shell to evaluate.
 */
enum shell {
	SHELL_AUTO, /* that of shell_of_caller() */
	SHELL_SH,
	SHELL_FISH,
	SHELL_CSH
};

/* The shell of that name: "sh", "fish", "csh".  False: there is none. */
bool shell_named(const char *name, enum shell *);

/* The kind of the shell that is nearest among the processes above this one; SHELL_SH if there is none. */
enum shell shell_of_caller(void);

/*
 * The process that called dlock.  A shell makes copies of itself for pipelines and substitutions, which end sooner than
 * the script does: of those the original counts.
 */
pid_t shell_caller(void);

/* Print a command that sets and exports a variable, for eval. */
void shell_print_variable(enum shell, const char *name, const char *value);

/* Print commands that remove the variables of a lock, and end with a status, for eval. */
void shell_print_failure(enum shell, int status);

#endif
