/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_OUTPUT_H
#define DLOCK_CLI_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "lock/service.h"

/* Flush standard output.  ST_SYSTEM if anything could not be written. */
enum status output_flush(struct err *);

/*
 * Flush standard output at the end of a command.  Returns `status`, or ST_SYSTEM if that is no error but anything could
 * not be written.
 */
enum status output_end(enum status status, struct err *);

/* The same for what is only to be read: if its reader, of a pipe, has gone, nobody misses the rest. */
enum status output_end_page(enum status status, struct err *err);

/* The size of the terminal that a descriptor is, 80 columns by default; {0, 0} if it is not a terminal. */
struct extent {
	size_t columns, rows;
};
struct extent output_extent(int fd);

/* May colours be used?  Standard output must be a terminal that supports them, and NO_COLOR unset or empty. */
bool output_coloured(void);

/* Escape sequences for good, doubtful, bad and unimportant values, and the one that resets the colour. */
#define COLOUR_GOOD "\033[32m"
#define COLOUR_WARN "\033[33m"
#define COLOUR_BAD "\033[31m"
#define COLOUR_DIM "\033[2m"
#define COLOUR_END "\033[m"

#endif
