/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_CONN_H
#define DLOCK_REDIS_CONN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/delivery.h"
#include "redis/request.h"
#include "redis/url.h"

/*
 * One server: a connection that never blocks.
 *
 * It connects when it is given something to send, again after any failure; AUTH and SELECT go out in front of the first
 * request, in one write with it.  Requests are answered in their order, each exactly once: by a reply or by a failure.
 * What the answers mean is not its business.
 */
struct conn; /* opaque */

/* To the server of a URL.  NULL if there is no memory. */
struct conn *conn_open(const struct url *);

/* Close and free.  Whatever was given to it and can be written at once is on its way.  conn_close(NULL) does nothing. */
void conn_close(struct conn *);

/* Queue a request, whose bytes are copied; tags start at 1.  Never fails at once: failures are delivered like answers. */
void conn_send(struct conn *, unsigned int tag, const char *bytes, size_t length);
void conn_send_request(struct conn *, unsigned int tag, const struct request *);

/* Tell a server of a Cluster that the next request has been sent to it on purpose. */
void conn_send_asking(struct conn *);

/* What poll(2) must wait for (-1: nothing), and the instant at which conn_handle() wants to be called anyway. */
int conn_fd(const struct conn *);
short conn_events(const struct conn *);
int64_t conn_wake_us(const struct conn *);

/* Go on: poll said something, or the wake instant has come. */
void conn_handle(struct conn *, int64_t now_us);

/* Take the next answer.  False if there is none yet. */
bool conn_take(struct conn *, struct delivery *);

/*
 * Give up a connection on which answers are outstanding, so that the next request goes out on a new one.  They become
 * failures, to be taken before anything is sent.
 */
void conn_break(struct conn *);

/* Give up a connection that isn't there yet, in time or too late; what waits for it becomes failures, unsent. */
void conn_stop_dialling(struct conn *, bool in_time);

/*
 * Has the server closed it while nobody used it?  Then it is given up, before a request is lost on it.  Looks where it was
 * not used for a while.
 */
void conn_look(struct conn *);

/* Has it failed, with failures that are still to be taken?  What is sent before that fails with them. */
bool conn_is_broken(const struct conn *);

/* Which of its connections is this?  No two are the same number; 0: there is none now. */
int64_t conn_number(const struct conn *);

/* Has it been connected, and isn't any more? */
bool conn_ended(const struct conn *);

/* Does it take longer than others to get an answer: to connect by a name, or to shake hands? */
bool conn_takes_long(const struct conn *);

/* What the last connection took to stand, or longer, if nobody looked; 0: there was none. */
int64_t conn_dial_us(const struct conn *);

/*
 * Does all that it was given arrive, though nobody waits for the answer?  It must have left this host.  Under TLS it must be
 * answered as well: a socket that is closed before the server's session tickets were read takes what was sent with it.  So
 * it must on a connection that nobody had used for a while: the server, or a proxy, may have forgotten it.
 */
bool conn_flushed(const struct conn *);

/* What a node that hasn't answered is waiting for, as a sentence without the node's name. */
const char *conn_silence(const struct conn *);

#endif
