/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_CURSOR_H
#define DLOCK_REDIS_CURSOR_H
#include <stdbool.h>
#include <stddef.h>

/*
 * How far a SCAN has come, and whether it ever ends: a server may answer with cursors for ever.
 */
enum {
	CURSOR_SIZE = 24,
	CURSOR_KEYS = 1000 /* that one SCAN looks at: a server is never held up for long */
};

struct cursor {
	char text[CURSOR_SIZE]; /* for the next SCAN */
	char mark[CURSOR_SIZE]; /* one of before */
	unsigned long answers;	/* since then... */
	unsigned long reach;	/* ...and when the mark moves on */
	unsigned long all;	/* answers in all */
	size_t names;
};

/* Begin at the first server, or, where it goes on from one server of a Cluster to the next, at the next one. */
void cursor_start(struct cursor *);
void cursor_next_server(struct cursor *);

/*
 * Note the cursor of an answer, shorter than CURSOR_SIZE, and how many names came with it.  False: it is one of before, or
 * there were more names than any server has locks, or more answers than it takes to look at all keys that a Redis can have.
 */
bool cursor_note(struct cursor *, const char *text, size_t names);

/* Has this server told everything? */
bool cursor_at_end(const struct cursor *);

#endif
