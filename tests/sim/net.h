/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_NET_H
#define DLOCK_SIM_NET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "chance.h"

/*
 * The network: TCP connections from processes to servers.  Bytes of one connection stay in order; how long each piece
 * takes, what is cut off and what is torn apart is up to the seed.
 */
enum {
	SERVERS = 5
};

struct net_plan {
	int64_t delay_us;   /* of a usual message: half of it to twice as much */
	int slow_per_mille; /* so many take up to slow_us */
	int64_t slow_us;
	int64_t far_us[SERVERS]; /* one is so much further away, each way */
	int torn_per_mille;	 /* so many writes are carried out in part */
	int64_t idle_us;	 /* a connection on which nothing moves for so long is closed; 0: none is */
};

struct conn; /* opaque */

void net_reset(const struct net_plan *, struct chance *);

/* -- The process's end ----------------------------------------------------------- */

struct conn *net_connect(int process, const struct sockaddr *);
short net_events(const struct conn *);
int net_error(const struct conn *);
ssize_t net_read(struct conn *, char *bytes, size_t size);
ssize_t net_write(struct conn *, const char *bytes, size_t length);
void net_close(struct conn *);

/* -- The server's end ------------------------------------------------------------ */

int net_client(const struct conn *);
void net_reply(struct conn *, const char *bytes, size_t length);

/* -- What goes wrong ------------------------------------------------------------- */

/* Nothing gets through between a process and a server until then; with process -1 nothing from it to anybody. */
void net_part(int process, int server, int64_t until_us);

/* All connections of a server end; what was on its way is lost or not.  With refused, new ones are refused as well. */
void net_cut(int server);
void net_refuse(int server, bool refused);

#endif
