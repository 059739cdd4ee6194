/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_CONNECTION_H
#define DLOCK_ZK_CONNECTION_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "lock/service.h"
#include "net/channel.h"
#include "zk/wire.h"

/*
 * A connection to one server: packets out, packets in.
 *
 * A function that waits runs the loop until it is done, until the limit ends (ZK_TIMEOUT), or until the interrupt
 * descriptor is readable (ZK_INTERRUPTED).  It returns ZK_OK, or why not: ZK_CONNECTION_LOSS, ZK_REFUSED (TLS), ZK_LOCAL.
 */
struct connection {
	struct loop *loop;
	struct channel channel;
	unsigned char *in; /* bytes that came in */
	size_t in_length, in_capacity;
	size_t in_taken;      /* of the packet that was taken last, at the start of them */
	struct reason reason; /* why the last function failed, without the name of the server */
};

/* Is it open, and does it work? */
bool connection_works(const struct connection *);

/* Initialize: not open. */
void connection_init(struct connection *, struct loop *);

/* Connect, with TLS if the endpoint has it.  A connection that is open is closed first. */
enum zk_code connection_open(struct connection *, const struct endpoint *, const struct wait *);

/* Send packets.  ZK_OK: they were handed to the system. */
enum zk_code connection_send(struct connection *, const struct wire_out *, const struct wait *);

/* Take the next packet that came in.  It is valid until the next call. */
enum zk_code connection_take(struct connection *, struct wire_in *packet, const struct wait *);

/*
 * Send a command of four letters, and take its answer, which ends with the connection.  ZK_OK: the text has it, cut to
 * its size.
 */
enum zk_code connection_ask(struct connection *, const char *command, char *text, size_t size, const struct wait *);

/* End it because what came in is not ZooKeeper's.  Returns ZK_CONNECTION_LOSS. */
enum zk_code connection_refuse(struct connection *);

/* Close it, if it is open.  What was received is discarded. */
void connection_close(struct connection *);

#endif
