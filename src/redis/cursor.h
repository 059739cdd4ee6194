/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_CURSOR_H
#define DLOCK_REDIS_CURSOR_H
#include <stdbool.h>
#include <stddef.h>

/* The progress of a SCAN, and a check that it ends: a faulty server may return cursors forever. */
enum {
	CURSOR_SIZE = 24,
	CURSOR_KEYS = 1000 /* COUNT of one SCAN: small enough not to block a server for long */
};

struct cursor {
	char text[CURSOR_SIZE]; /* for the next SCAN */
	char mark[CURSOR_SIZE]; /* an earlier cursor, to detect a cycle */
	unsigned long answers;	/* replies since the mark was set */
	unsigned long reach;	/* the mark is moved after so many */
	unsigned long all;	/* replies in total */
	size_t names;
};

/* Start with the first server, or continue with the next server of a Cluster. */
void cursor_start(struct cursor *);
void cursor_next_server(struct cursor *);

/*
 * Record the cursor of a reply, which is shorter than CURSOR_SIZE, and the number of names that came with it.  False if
 * the SCAN does not end: the cursor was seen before, there were more names than any server has locks, or more replies
 * than it takes to scan all keys that a Redis can have.
 */
bool cursor_note(struct cursor *, const char *text, size_t names);

/* Has this server returned all its keys? */
bool cursor_at_end(const struct cursor *);

#endif
