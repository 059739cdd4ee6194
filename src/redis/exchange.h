/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_EXCHANGE_H
#define DLOCK_REDIS_EXCHANGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/delivery.h"
#include "redis/link.h"
#include "redis/outbox.h"
#include "redis/request.h"
#include "redis/url.h"

/*
 * What goes over a connection: AUTH and SELECT first, then requests one way and their answers, in the same order, the other.
 *
 * It fails as a whole: what is unanswered then, and what is asked from then on, becomes failures with the reason of the
 * first.
 */
enum {
	UNANSWERED_MAX = 64,
	UNANSWERED_ROOM = UNANSWERED_MAX + 2 /* what is asked together with one too many fails with it */
};

struct exchange {
	const struct url *url;
	struct outbox outbox;
	struct parser *parser; /* NULL: ended */
	struct unanswered {
		unsigned int tag;
		uint64_t begins; /* where in the stream of bytes that go out */
	} unanswered[UNANSWERED_ROOM];
	size_t first, count;
	bool answered; /* a reply has come */
	bool deaf;     /* the server takes no more bytes */
	bool failed;   /* for the reason in err, */
	bool local;    /* which is that this host lacks something, */
	bool closed;   /* or that the server has closed the connection, or accepts none */
	bool denied;   /* the server has refused us, also in err, though it may go on */
	struct err err;
};

/* Begin with a new connection.  AUTH and SELECT, where the URL wants them, are the first to go out; it must outlive it. */
void exchange_begin(struct exchange *, const struct url *);

/* Its connection is closed.  What is unanswered stays, to be taken as failures. */
void exchange_end(struct exchange *);

/* It has failed: something is wrong with the connection. */
void exchange_fail(struct exchange *, const char *why);

/* Ask: the bytes, which are copied, go out with the next writing. */
void exchange_ask(struct exchange *, unsigned int tag, const char *bytes, size_t length);
void exchange_ask_request(struct exchange *, unsigned int tag, const struct request *);

/* Tell a server of a Cluster that what is asked next has been sent to it on purpose. */
void exchange_ask_asking(struct exchange *);

/* Write and read what can be moved at once. */
void exchange_write(struct exchange *, const struct link *);
void exchange_read(struct exchange *, const struct link *);

/* Are there bytes that may still be written? */
bool exchange_has_bytes(const struct exchange *);

/* Take the next answer, while the connection stands.  False if there is none, or it has failed. */
bool exchange_take(struct exchange *, struct delivery *);

/* Take the next failure, when it has failed.  False if nothing is unanswered any more. */
bool exchange_take_failure(struct exchange *, struct delivery *);

#endif
