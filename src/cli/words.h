/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_WORDS_H
#define DLOCK_CLI_WORDS_H
#include "cli/command.h"

/*
 * The words of a command line, one after the other.  A loop over them parses the command line; others look for the
 * command behind `dlock run KEY`, or for what may stand at the cursor.
 */
enum word {
	WORD_END,
	WORD_OPTION,   /* spec; value NULL: it has none */
	WORD_LACKING,  /* spec: it needs a value, and no word follows */
	WORD_EXCESS,   /* spec: it takes no value */
	WORD_UNKNOWN,  /* an option; text: from its letter on, or the whole word */
	WORD_COMMAND,  /* text; command NULL: there is none of that name */
	WORD_OPERAND,  /* text */
	WORD_MISPLACED /* in "run -- nice ./job" KEY is missing: text, "nice", is the command, not a lock */
};

struct words {
	char *const *next; /* set by the caller; NULL ends them */
	char *text, *value;
	const struct option_spec *spec;
	const struct command *command;
	int operands;
	bool over;    /* no more options */
	bool named;   /* a command was, even if there is none of that name */
	bool behind;  /* KEY is behind "--", which must be there once more before COMMAND */
	char *letter; /* the next one of a word of letters; NULL: none */
};

enum word words_next(struct words *);

#endif
