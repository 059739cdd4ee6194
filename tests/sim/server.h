/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_SERVER_H
#define DLOCK_SIM_SERVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net.h"
#include "store.h"

/*
 * The Redis servers: connections, requests and replies as they go over the wire, clients that are blocked, and a store
 * each.
 */
struct session; /* a connection, as the server sees it */

/* Whose clock is so far off, and so many ten-thousandths fast; up since long ago. */
void server_start(int server, int64_t offset_us, int drift);
void server_refuse(int server);		/* it answers each BLPOP with an error */
struct store *server_store(int server); /* with its clock set */
bool server_is_up(int server);

/* -- For the network --------------------------------------------------------------- */

struct session *server_accept(int server, struct conn *);
void server_take(struct session *, char *bytes, size_t length);
void server_end(struct session *);
bool server_is_idle(const struct session *); /* nothing was asked, nothing is waited for */
void server_reset(struct session *);	     /* what was not read by now is lost */

/* -- What goes wrong --------------------------------------------------------------- */

/* It does nothing until then. */
void server_freeze(int server, int64_t until_us);

/* It was killed; and it is there again, with its data or without. */
void server_stop(int server);
void server_return(int server, bool empty);

/* What is on its disk now; and that is its data, after it was killed. */
void server_save(int server);
void server_restore(int server);

/* Somebody has put a fence of another century into its facts. */
void server_spoil(int server, const char *facts);

/* -- For people and for compare.py ------------------------------------------------- */

/* Told each request that was carried out, and its answer; NULL: nobody wants to know. */
typedef void server_tell(int server, int client, int argc, const struct arg *, const struct value *);
void server_watch(server_tell *);

/* Be a server on standard input and output, by the real clock, until the input ends. */
int server_serve(void);

#endif
