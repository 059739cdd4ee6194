/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_LABEL_H
#define DLOCK_CLI_LABEL_H
#include <stdbool.h>

#include "lock/record.h"

/*
 * The default label of a lock: the base name of the command, without what precedes it: NAME=VALUE, wrappers such as nice
 * or sudo with their options, and an inner `dlock run`.  "" unless it is a single word of letters, digits and _ . / + -:
 * everybody can read a label, and anything else may be a password.  `shell`: argv[0] is a line for sh -c.
 */
void label_default(char *const *argv, bool shell, char label[LABEL_MAX + 1]);

#endif
