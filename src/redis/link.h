/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_LINK_H
#define DLOCK_REDIS_LINK_H
#include <stddef.h>

#include "redis/tls.h"

/*
 * A connected socket that never blocks, plain or under TLS: bytes in, bytes out.
 */
struct link {
	int fd;		 /* -1: none */
	struct tls *tls; /* NULL: plain */
};

enum link_result {
	LINK_DONE,   /* *done bytes were moved, one at least */
	LINK_LATER,  /* nothing can be moved now: poll */
	LINK_CLOSED, /* by the other side */
	LINK_FAILED  /* errno, or where TLS failed tls_fault(), says why */
};

enum link_result link_read(const struct link *, char *bytes, size_t size, size_t *done);
enum link_result link_write(const struct link *, const char *bytes, size_t length, size_t *done);

/* May there be bytes to read that poll(2) doesn't tell of? */
bool link_holds_bytes(const struct link *);

/* Close it.  Harmless where there is none, and twice. */
void link_close(struct link *);

#endif
