/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_OUTPUT_H
#define DLOCK_CLI_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "lock/service.h"

/* Has all that was printed reached standard output?  ST_SYSTEM if not. */
enum status output_flush(struct err *);

/* The end of a command that came to `status`, with err: what was printed must reach standard output, or else ST_SYSTEM. */
enum status output_end(enum status status, struct err *);
/* How wide and high the terminal is to which standard output goes; {0, 0} if it goes elsewhere. */
struct extent {
	size_t columns, rows;
};
struct extent output_extent(void);

/* May standard output be coloured?  It must be a terminal that knows how, and NO_COLOR unset or empty. */
bool output_coloured(void);

/* The escape sequences for what is well, to be seen to, bad and unimportant, and the one that ends them. */
#define COLOUR_GOOD "\033[32m"
#define COLOUR_WARN "\033[33m"
#define COLOUR_BAD "\033[31m"
#define COLOUR_DIM "\033[2m"
#define COLOUR_END "\033[m"

/* A string as one word of a shell's command line. */
void output_shell_word(const char *string);

/* "user@host:pid" taken apart in place; missing parts are "". */
void output_split_owner(char *owner, const char **user, const char **host, const char **pid);

const char *output_state(enum lock_state);

/* The word for whose a lock is, as the JSON of release and renew has it. */
const char *output_ownership(enum ownership, const char *owned);

#endif
