/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_CONFIG_H
#define DLOCK_CLI_CONFIG_H
#include "cli/option.h"

/*
 * The configuration file: lines of long options without dashes ("ttl 10s"), as in a curl config file.  Empty lines and
 * lines that begin with # are skipped.  A value may be in double quotes.  "=" or ":" may separate name and value.
 */

struct config_file {
	char name[256]; /* escaped */
	char *text;	/* NULL: it was not read; the caller frees it */
};

/*
 * Read the file `path`.  If it is NULL, read /etc/dlock/config and then $XDG_CONFIG_HOME/dlock/config ($HOME/.config if
 * that is unset), whose options replace those of the first; it is not an error if one is missing.  The options point into
 * the files, which are zeroed by the caller and outlive them.  ST_CONFIG: the message names file and line.  *warning is
 * set for a password in a world-readable file.
 */
enum status config_read(const char *path, struct options *, struct config_file[2], struct err *warning, struct err *);

/* The same for a text in memory, which is modified; the options point into the name, too. */
enum status config_parse(char *text, const char *name, struct options *, struct err *);

#endif
