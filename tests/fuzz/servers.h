/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_SERVERS_H
#define DLOCK_TESTS_FUZZ_SERVERS_H
#include <stdbool.h>

#include "lock/token.h"
#include "wire.h"

/*
 * The servers of the target service.  The input decides which of them are honest.
 */
enum {
	SERVERS_MOST = 3,
	NOTES_MOST = 64
};

/* What one server has replied, as far as the meaning is clear. */
struct server {
	bool wild;     /* it has sent replies that may mean anything */
	bool faithful; /* it has replied to all requests, and honestly */
	int notes;
	struct note {
		char token[TOKEN_SIZE];
		bool granted, undone, renewed, released;
	} note[NOTES_MOST];
};

/* Indexed by the digit of their names: n0, n1 ...; all other names are the first one. */
extern struct server servers[SERVERS_MOST];

/* Create new servers, which take their replies from the input. */
void servers_begin(struct input *);

/* Forget the recorded replies, but not which servers were wild. */
void servers_forget(void);

/* The note about a token; a new one is created if there is none. */
struct note *servers_note(struct server *, const char *token);

/* Reply to a request.  The context is not used. */
void servers_answer(void *context, struct peer *, int argc, const struct arg *);

#endif
