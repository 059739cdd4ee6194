/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_WIRE_H
#define DLOCK_TESTS_FUZZ_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuzz.h"

/*
 * A world without sockets and clocks: in place of src/base/clock.c, src/base/random.c, src/net/connect.c and
 * src/net/stream.c.
 *
 * Whatever is connected to is a peer.  What it is sent comes to the target as requests, and the target puts into the
 * peer's mouth what it says.  Time goes on only where everybody waits, and a wait that nothing could end is a broken
 * promise.
 */
enum {
	REQUEST_WORDS = 32
};

struct wire_request {
	int argc;
	const char *argv[REQUEST_WORDS]; /* terminated, though they may have NULs in them */
	size_t length[REQUEST_WORDS];
};

struct peer {
	int fd; /* -1: nobody is connected */
	char host[256], port[8];
	char *sent; /* to it, as far as it is no whole request yet */
	size_t sent_length;
	char *said; /* by it, and not read yet */
	size_t said_length, said_at;
	size_t piece; /* so many bytes at once are read at most */
	bool closed;  /* behind what it said */
	bool mute;    /* it hangs, and will say no more */
	bool floods;  /* when that is read, it says more without an end */
};

/* A new world; the target's functions are called with `context`. */
void wire_begin(struct input *, void (*request)(void *context, struct peer *, const struct wire_request *),
    void *context);

/* Free what is left of it.  Every connection must have been closed. */
void wire_end(void);

/* Let a peer say something. */
void wire_say(struct peer *, const char *bytes, size_t length);

/* A descriptor that is readable. */
int wire_readable(void);

/* So long must an operation take no longer than. */
void wire_set_limit(int64_t length_us);

#endif
