/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SHELL_H
#define DLOCK_CLI_SHELL_H
#include <sys/types.h>

/*
 * The script that calls dlock: its process, and commands for it to evaluate.
 */
enum shell {
	SHELL_SH, /* and bash, dash, ksh, zsh */
	SHELL_FISH
};

/*
 * The process that called dlock.  A shell makes copies of itself for pipelines and substitutions, which end sooner than
 * the script does: of those the original counts.
 */
pid_t shell_caller(void);

/* Print a command that sets and exports a variable, NAME=VALUE, for eval. */
void shell_print_variable(enum shell, const char *variable);

/* Print commands that remove the variables of a lock, and end with a status, for eval. */
void shell_print_failure(enum shell, int status);

#endif
