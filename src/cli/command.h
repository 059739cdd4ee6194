/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_COMMAND_H
#define DLOCK_CLI_COMMAND_H
#include <signal.h>

#include "base/err.h"
#include "cli/option.h"
#include "lock/service.h"

/*
 * The commands.  To add one: a file cmd_NAME.c, a line in the table of command.c, a bit in option.h for its options, a
 * section in the manual, and tests.
 */
struct command;

/* The parsed command line of one call of dlock. */
struct invocation {
	struct options options;
	const struct command *command; /* NULL: none was named */
	const struct service *service; /* of the nodes */
	int operands;
	char **operand; /* KEY and the operands after it; terminated by NULL */
	struct log log;
	sigset_t given_mask; /* the signals that were blocked when dlock was started */
	struct err warning;  /* a warning about the configuration; "" for none */
	int died_of;	     /* set by a command: the signal that ended it */
	int exit_status;     /* set by a command: dlock exits with that of COMMAND or of the keeper; -1: with its own */
	char *text;	     /* the unused part of the memory that begins at `operand` */
	struct config_file config[2]; /* into which options point */
};

struct command {
	const char *name;
	unsigned int bit;
	const char *synopsis;
	const char *summary;
	int least, most; /* operands; most < 0: no limit */
	/*
	 * Err has a message, or is empty if it has been reported.  It is the exit status, unless
	 * exit_status is set; ST_HELD is replaced by --conflict-exit-code, and for ST_INTERRUPTED dlock dies of
	 * died_of.
	 */
	enum status (*run)(struct invocation *, struct err *);
	const char *details; /* a part of the help: whole lines */
};

extern const struct command commands[];
extern const size_t command_count;

/* The command of that name; NULL: there is none. */
const struct command *command_find(const char *name);

/* The error for that: ST_USAGE. */
enum status command_unknown(const char *name, struct err *);

enum status cmd_run(struct invocation *, struct err *);

/*
 * The default label of a lock: the base name of the command, without what precedes it: NAME=VALUE, wrappers such as
 * nice or sudo with their options, and an inner `dlock run`.  "" unless it is a single word of letters, digits and
 * _ . / + -: everybody can read a label, and anything else may be a password.  `shell`: argv[0] is a line for sh -c.
 */
void cmd_run_label(char *const *argv, bool shell, char label[LABEL_MAX + 1]);

enum status cmd_acquire(struct invocation *, struct err *);

/* If acquire --export fails with an exit status: make its eval fail, too. */
void cmd_acquire_failed(const struct invocation *, int code);

enum status cmd_token(struct invocation *, struct err *); /* renew and release */
enum status cmd_status(struct invocation *, struct err *);
enum status cmd_history(struct invocation *, struct err *);
enum status cmd_break(struct invocation *, struct err *);
enum status cmd_doctor(struct invocation *, struct err *);
enum status cmd_config(struct invocation *, struct err *);

/* The help, generated from the option and command tables, at most 80 columns wide; also for --help and --version. */
enum status cmd_help(struct invocation *, struct err *);

/*
 * The words that a shell offers at the cursor, for the scripts in completions: `dlock --complete N WORD...` with all
 * words of the line behind dlock, of which the Nth, from 0 on, ends at the cursor.  The first line that is printed says
 * what follows:
 *
 *	options, commands	lines of a word, a tab, and what it means
 *	values, keys		lines of a word
 *	list			the same, and a word may go on with a comma
 *	files, programs		nothing: the shell knows them; after "--name=" they are the rest of the word
 *	command N		nothing: the words from the Nth on are a command of their own
 *
 * Nothing is printed if there is nothing to offer.
 */
void command_complete(char **argv);

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

/*
 * Parse the command line, with environment and configuration file as defaults.  On failure, too, the caller must call
 * invocation_free().
 */
enum status invocation_parse(struct invocation *, int argc, char **argv, struct err *);
void invocation_free(struct invocation *);

#endif
