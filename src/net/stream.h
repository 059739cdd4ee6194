/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_STREAM_H
#define DLOCK_NET_STREAM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/tls.h"

/*
 * A connected socket that never blocks, plain or under TLS, with a buffer for what is still to be written.
 *
 * Bytes may be queued before the socket is there.
 */
struct stream {
	int fd;		 /* -1: none */
	struct tls *tls; /* NULL: plain */
	char *buffer;	 /* queued and not written yet */
	size_t length, room;
	uint64_t queued, written; /* bytes since the buffer was cleared */
};

enum stream_result {
	STREAM_DONE,   /* *done bytes were moved, one at least */
	STREAM_LATER,  /* nothing can be moved now: poll */
	STREAM_CLOSED, /* by the other side */
	STREAM_FAILED  /* errno, or where TLS failed tls_error(), says why */
};

/* No socket, nothing queued. */
void stream_init(struct stream *);

/* Queue a copy.  False if there is no memory. */
bool stream_queue(struct stream *, const char *bytes, size_t length);

/* Write what can be written at once.  STREAM_DONE: all of it. */
enum stream_result stream_write(struct stream *);

enum stream_result stream_read(const struct stream *, char *bytes, size_t size, size_t *done);

/* May there be bytes to read that poll(2) doesn't tell of? */
bool stream_has_buffered(const struct stream *);

/* Close the socket and forget what is queued.  Harmless where there is nothing, and twice. */
void stream_close(struct stream *);

#endif
