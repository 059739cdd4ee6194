/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_CONFIG_H
#define DLOCK_CLI_CONFIG_H
#include "cli/option.h"

/*
 * The configuration file: lines of long options without dashes ("ttl 10s"), as in a curl config file.  Empty lines and
 * lines that begin with # are skipped.  A value may be in double quotes.  "=" or ":" may separate name and value.
 */

/*
 * Read the file `path`.  If it is NULL, read $XDG_CONFIG_HOME/dlock/config ($HOME/.config if that is unset) or, if that
 * does not exist, /etc/dlock/config; it is not an error if neither exists.  The options point into *text, which the
 * caller frees after them.  ST_CONFIG: the message names file and line.  *warning is set for a password in a
 * world-readable file.
 */
enum status config_read(const char *path, struct options *, char **text, struct err *warning, struct err *);

/* The same for a text in memory, which is modified. */
enum status config_parse(char *text, const char *name, struct options *, struct err *);

#endif
