/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_NET_H
#define DLOCK_SIM_NET_H
#include <sys/socket.h>

#include "chance.h"

/*
 * The network: TCP connections from processes to servers.  The bytes of a connection stay in order.  The seed decides
 * how long each piece takes, which connections are cut and which writes are partial.
 */
enum {
	SERVERS = 5
};

struct net_plan {
	int64_t delay_us;   /* of a usual message; the actual delay is half to twice of this */
	int slow_per_mille; /* this many messages take up to slow_us */
	int64_t slow_us;
	int64_t far_us[SERVERS]; /* additional delay of a server in each direction */
	int torn_per_mille;	 /* this many writes are partial */
	int64_t idle_us;	 /* idle connections are closed after this time; 0: never */
};

struct conn; /* opaque */

void net_reset(const struct net_plan *, struct chance *);

/* -- The process side ------------------------------------------------------------ */

struct conn *net_connect(int process, const struct sockaddr *);
short net_events(const struct conn *);
int net_error(const struct conn *);
ssize_t net_read(struct conn *, char *bytes, size_t size);
ssize_t net_write(struct conn *, const char *bytes, size_t length);
void net_close(struct conn *);

/* -- The server side ------------------------------------------------------------- */

int net_client(const struct conn *);
void net_reply(struct conn *, const char *bytes, size_t length);

/* -- Faults ---------------------------------------------------------------------- */

/* Until that time, hold up all traffic between a process and a server; process -1: all that the server sends. */
void net_part(int process, int server, int64_t until_us);

/* Close all connections of a server; bytes in transit may be lost.  `refused`: refuse new connections, too. */
void net_cut(int server);
void net_refuse(int server, bool refused);

/* After what it has sent, the server sends more, whenever it is read and without an end. */
void net_flood(struct conn *);

#endif
