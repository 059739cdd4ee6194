/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_ERR_H
#define DLOCK_BASE_ERR_H
/*
 * Outcomes and their explanation.
 *
 * A function that can fail returns an enum status and, where it takes a struct err (always the last parameter),
 * leaves one complete sentence there.  Nothing below main prints or exits; main prints the text once, behind
 * "dlock: ".  The statuses are a closed set and are the exit statuses of the manual at the same time.
 */
enum status {
	ST_OK = 0,
	ST_NO = 1, /* the answer is no: not the holder, not locked */
	ST_USAGE = 64,
	ST_NO_QUORUM = 69, /* too few nodes reachable or fit to answer */
	ST_BUG = 70,
	ST_SYSTEM = 71, /* fork, memory, output ... */
	ST_HELD = 75,	/* by another */
	ST_LOST = 76,	/* while the command ran */
	ST_DENIED = 77, /* authentication, ACL */
	ST_CONFIG = 78,
	ST_MAX_RUN = 124,
	ST_NOT_EXECUTABLE = 126,
	ST_NOT_FOUND = 127,
	ST_INTERRUPTED = 128 /* by a signal, or by whoever owns the thread; never an exit status by itself */
};

struct err {
	char text[1024]; /* without a newline; cut when longer */
};

/* Record the sentence and return the status, so that a caller can write `return err_set(...)`. */
enum status err_set(struct err *, enum status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Put "PREFIX: " before the sentence that is there, or "; SUFFIX" behind it. */
void err_prefix(struct err *, const char *prefix);
void err_suffix(struct err *, const char *suffix);

/* The system refused: "WHAT: strerror(number)". */
enum status err_system(struct err *, int number, const char *what);

/* What this host lacks where that is what an errno says of it, and what to do; NULL for every other errno. */
const char *err_lack(int number);

/* What err_lack() says of ENOMEM. */
#define OUT_OF_MEMORY "out of memory"

#endif
