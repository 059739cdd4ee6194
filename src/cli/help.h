/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_HELP_H
#define DLOCK_CLI_HELP_H
#include <stdio.h>

#include "cli/command.h"

/* Print the help, generated from the option and command tables; `command` NULL: of dlock.  At most 80 columns. */
void help_show(FILE *, const struct command *command);
void help_version(FILE *);

#endif
