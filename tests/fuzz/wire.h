/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_WIRE_H
#define DLOCK_TESTS_FUZZ_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../sim/resp.h"
#include "fuzz.h"

/*
 * A simulation without sockets and clocks.  It replaces src/base/clock.c, src/base/random.c and src/net/channel.c.
 *
 * Each connection leads to a peer.  The bytes sent to it are passed to the target as requests, and the target
 * provides the bytes that the peer sends.  Time advances only while all wait.  A wait that nothing can end violates
 * an assertion.
 */
struct peer {
	int fd; /* -1: not connected */
	char host[256], port[8];
	char *sent; /* received by the peer: an incomplete request */
	size_t sent_length;
	char *output; /* sent by the peer, and not read yet */
	size_t output_length, output_at;
	size_t piece; /* maximum number of bytes in one read */
	bool closed;  /* the connection is closed after the bytes in `output` */
	bool mute;    /* it hangs and sends nothing more */
	bool floods;  /* when `output` is read, it sends more, without end */
};

/* Start a new simulation.  The functions of the target are called with `context`. */
void wire_begin(struct input *, void (*request)(void *context, struct peer *, int argc, const struct arg *),
    void *context);

/* Free the simulation.  All connections must have been closed. */
void wire_end(void);

/* Let a peer send bytes. */
void wire_say(struct peer *, const char *bytes, size_t length);

/* A descriptor that is readable. */
int wire_readable(void);

/* Set the maximum duration of an operation. */
void wire_set_limit(int64_t length_us);

#endif
