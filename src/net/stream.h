/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_STREAM_H
#define DLOCK_NET_STREAM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/tls.h"

/*
 * A connected non-blocking socket, plain or with TLS, with a write buffer.
 *
 * Bytes may be queued before there is a socket.
 */
struct stream {
	int fd;		 /* -1: none */
	struct tls *tls; /* NULL: plain */
	char *buffer;	 /* bytes that are queued and not yet written; NULL: none */
	size_t length, capacity;
	uint64_t queued, written; /* bytes since stream_init() or stream_close() */
};

enum stream_result {
	STREAM_DONE,   /* success */
	STREAM_LATER,  /* the operation would block: poll and call again */
	STREAM_CLOSED, /* the peer has closed the connection */
	STREAM_FAILED  /* the cause is in errno, or with TLS in tls_error() */
};

/* Initialize: no socket, nothing queued. */
void stream_init(struct stream *);

/* Append a copy of the bytes to the buffer.  False if there is no memory; then nothing is queued. */
bool stream_queue(struct stream *, const char *bytes, size_t length);

/*
 * The same, but first write as much of the bytes as possible without blocking, if nothing is queued before them.
 * Whether the write failed is found out by the next stream_write().
 */
bool stream_send(struct stream *, const char *bytes, size_t length);

/* Write as much of the buffer as possible without blocking.  STREAM_DONE: the buffer is empty. */
enum stream_result stream_write(struct stream *);

/* Read at most `size` bytes without blocking.  STREAM_DONE: *done bytes were read, at least one. */
enum stream_result stream_read(const struct stream *, char *bytes, size_t size, size_t *done);

/* Does TLS hold received bytes that poll(2) doesn't report? */
bool stream_has_buffered(const struct stream *);

/* How the peer is connected if only this host can reach its address: "loopback" or "a unix socket"; otherwise NULL. */
const char *stream_local(const struct stream *);

/* Close the socket, end TLS and discard the buffer.  Without a socket, or called twice, it only resets the stream. */
void stream_close(struct stream *);

#endif
