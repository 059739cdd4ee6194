/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_SETTINGS_H
#define DLOCK_TESTS_FUZZ_SETTINGS_H
#include "cli/option.h"

/*
 * Writes options back to text.  It uses the table of options but not its parser.
 */
enum {
	SETTINGS_MAX = OPTIONS_MAX + NODES_MAX
};

struct setting {
	const struct option_spec *spec;
	char *value; /* NULL: the option takes no value */
};

/* All settings that differ, or may differ, from the defaults.  Returns their number; free them by settings_free(). */
int settings_of(const struct options *, struct setting settings[SETTINGS_MAX]);
void settings_free(struct setting settings[SETTINGS_MAX], int count);

/* Is every value in its range?  Aborts if not. */
void settings_check(const struct options *);

/* The name of an option in which the two differ; NULL if they are the same. */
const char *settings_difference(const struct options *, const struct options *);

#endif
