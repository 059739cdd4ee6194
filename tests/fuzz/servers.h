/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_SERVERS_H
#define DLOCK_TESTS_FUZZ_SERVERS_H
#include <stdbool.h>

#include "lock/token.h"
#include "wire.h"

/*
 * The servers of the target service: honest ones, and others, as the input has it.
 */
enum {
	SERVERS_MOST = 3,
	NOTES_MOST = 64
};

/* What one server has said, as far as it spoke plainly. */
struct server {
	bool wild;     /* it has said what may mean anything */
	bool faithful; /* it has answered everything, and honestly */
	int notes;
	struct note {
		char token[HOLD_SIZE];
		bool granted, undone, renewed, released;
	} note[NOTES_MOST];
};

/* By the digit of their names: n0, n1 ...; all others are the first one. */
extern struct server servers[SERVERS_MOST];

/* New servers, which take from the input what they say. */
void servers_begin(struct input *);

/* They forget what they have said, but not who has been wild. */
void servers_forget(void);

/* The note about a token, a new one where there is none. */
struct note *servers_note(struct server *, const char *token);

/* Answer a request; the context is not used. */
void servers_answer(void *context, struct peer *, const struct wire_request *);

#endif
