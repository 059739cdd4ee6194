/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_CONFIG_H
#define DLOCK_CLI_CONFIG_H
#include "cli/option.h"

/*
 * The configuration file: lines of long options without dashes ("ttl 10s"), as curl's.  Lines that are empty or begin with #
 * are skipped; a value may stand between double quotes; "=" or ":" may stand between name and value.
 */

/*
 * Read the file that `path` names, or where it is NULL the first of $XDG_CONFIG_HOME/dlock/config ($HOME/.config where that is
 * unset) and /etc/dlock/config that is there; none is no error.  *text is what the options point into: the caller's to free,
 * after them.  ST_CONFIG names file and line.  A password in a file that everybody may read is worth a sentence in *warning.
 */
enum status config_read(const char *path, struct options *, char **text, struct err *warning, struct err *);

/* The same for a text that is already there and is taken apart in place. */
enum status config_parse(char *text, const char *name, struct options *, struct err *);

#endif
