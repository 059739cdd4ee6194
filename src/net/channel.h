/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_CHANNEL_H
#define DLOCK_NET_CHANNEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/authority.h"
#include "net/connect.h"
#include "net/loop.h"
#include "net/tls.h"

/*
 * A connection of bytes to one server, out and in: it resolves the name, tries the addresses, does the TLS handshake
 * if the endpoint uses TLS, and keeps what cannot be written yet.  Nothing here blocks.
 *
 * Its owner embeds it, and is called by the loop.  Each call of `ready` begins with channel_go_on(); then, if the
 * channel is open, the owner reads.  The one reason why a channel does not work is `failure`.  After a failure nothing
 * is written or read until the owner calls channel_close(), and `ready` is called once more, so that the owner may
 * notice a failure in the loop even if it happened elsewhere:
 *
 *	static void
 *	ready(void *context, int64_t now_us)
 *	{
 *		channel_go_on(c, now_us);
 *		if (c->state == CHANNEL_OPEN && (n = channel_read(c, bytes, sizeof(bytes))) > 0)
 *			take(bytes, n);
 *		if (c->failure.kind != NO_FAILURE)
 *			give_up(&c->failure);
 *	}
 */
struct channel {
	enum channel_state {
		CHANNEL_CLOSED,
		CHANNEL_CONNECTING,
		CHANNEL_OPEN
	} state;
	struct failure failure; /* NO_FAILURE: it works, as far as known */
	int64_t began_us; /* when this connection was begun: differs from that of any other, and serves as its number */
	int64_t took_us;  /* the time that the last connection took to be established; 0: there was none */
	int64_t alarm_us; /* set by the owner before it sends: if nothing was received until then, `ready` is called */
	bool received;	  /* a byte was received on this connection */
	bool write_closed;	  /* writing has failed; reading may tell why */
	uint64_t queued, written; /* bytes, since channel_close() */
	size_t length;		  /* of the bytes that are queued and not yet written */

	/* Private to the channel. */
	const struct channel_words *words;
	const struct endpoint *endpoint;
	struct watch watch;
	struct connecting connecting;
	int fd; /* -1: none */
	struct tls *tls;
	char *buffer;
	size_t capacity;
};

/* The words to add to a reason, for servers of this kind. */
struct channel_words {
	const char *refused;	   /* nothing listens there */
	const char *silent;	   /* the server closed the connection without an answer, */
	const char *silent_to_tcp; /* and it was TCP without TLS */
};

/* Initialize: closed.  The words and the loop must outlive the channel. */
void channel_init(struct channel *, struct loop *, const struct channel_words *,
    void (*ready)(void *context, int64_t now_us), void *context);

/* Begin to connect a closed channel, unless it has failed already.  The endpoint must outlive the connection. */
void channel_open(struct channel *, const struct endpoint *);

/* Continue to connect, or write what is queued.  Call it first whenever `ready` is called. */
void channel_go_on(struct channel *, int64_t now_us);

/*
 * Write bytes, after all that are queued; bytes that cannot be written yet are copied and queued.  On a channel that is
 * not open all of it is queued, also before channel_open().  False: out of memory, which is then the failure.
 */
bool channel_send(struct channel *, const char *bytes, size_t length);

/* Read at most `size` bytes of an open channel.  0: there are none now, or the channel has failed. */
size_t channel_read(struct channel *, char *bytes, size_t size);

/* End it for a reason of the owner's.  A channel that has failed already keeps its failure. */
void channel_fail(struct channel *, enum failure_kind, const char *why);

/* Close the connection, and forget what is queued and why it failed.  On a closed channel only the latter. */
void channel_close(struct channel *);

/* The same, and leave the loop.  The channel may then be freed. */
void channel_end(struct channel *);

/*
 * `to` gets the connection of an open channel, to be kept open until channel_close(); it is not read or written any
 * more.  `to` is zeroed, or was used for this before, and is in no loop.
 */
void channel_move(struct channel *to, struct channel *from);

/* Why nothing was received yet, as a sentence; a static string. */
const char *channel_waits_for(const struct channel *);

/* The connection of an open channel if only this host can reach the address: "loopback" or "a unix socket"; or NULL. */
const char *channel_local(const struct channel *);

#endif
