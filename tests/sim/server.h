/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_SERVER_H
#define DLOCK_SIM_SERVER_H
#include "net.h"
#include "store.h"

/*
 * The Redis servers: connections, requests and replies in the wire format, blocked clients, and one store for each
 * server.
 */
struct session; /* a connection, as the server sees it */

/* Start a server with a clock that is off by offset_us and fast by drift/10000.  It may refuse BLPOP.  Its uptime is long. */
void server_start(int server, int64_t offset_us, int drift, bool refuses);
struct store *server_store(int server); /* sets the clock of the store */

/* -- The wire format ---------------------------------------------------------------- */

/*
 * Parse one request in place: each argument is terminated by a NUL.  Returns the bytes used; 0: incomplete; -1: not a
 * request.
 */
long resp_read(char *bytes, size_t length, struct arg *, int *argc);

/* Write a reply.  Returns its length.  The buffer must be large enough. */
size_t resp_write(const struct value *, char *bytes, size_t size);

/* -- For the network --------------------------------------------------------------- */

struct session *server_accept(int server, struct conn *);
void server_take(struct session *, char *bytes, size_t length);
void server_end(struct session *);
bool server_is_idle(const struct session *); /* no request is pending or blocked */
void server_reset(struct session *);	     /* unread bytes are lost */

/* -- Faults ------------------------------------------------------------------------ */

/* The server hangs until that time. */
void server_freeze(int server, int64_t until_us);

/* Kill a server, unless it is down already; start it again, with or without its data. */
bool server_stop(int server);
void server_return(int server, bool empty);

/* Save the data of a server; make the saved data its data, after it was killed. */
void server_save(int server);
void server_restore(int server);

/* Write a fence of a different century into the metadata. */
void server_spoil(int server, const char *metadata);

/* -- For traces, the judge, liars and compare.py ------------------------------------ */

/* Called for each request that is replied to with its reply; NULL: no callback. */
typedef void server_observer(int server, int client, int argc, const struct arg *, const struct value *);

/* Called for each executed request with its reply; nil for a BLPOP that has to wait.  True: the callee has replied. */
typedef bool server_executed(struct conn *, int server, int argc, const struct arg *, const struct value *);
void server_tell(server_executed *, server_observer *);

/* Run as a server on standard input and output, with the real clock, until the end of the input. */
int server_serve(void);

#endif
