/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_MASTER_H
#define DLOCK_REDIS_MASTER_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/conn.h"
#include "redis/guide.h"
#include "redis/parcels.h"
#include "redis/route.h"

/*
 * The server in charge: the one of a URL, the master that sentinels name, or that of a slot in a Cluster.  It is found by
 * what the route knows, or else by asking a guide, connected to, and asked whether it is the master where it may not be.
 * What failed, or was denied by a server that is in charge no more, has it looked for anew.
 */
enum {
	MASTER_CHECK = 1 /* the tag of the question whether it is one; parcels have even ones */
};

struct master {
	const struct url *url;
	struct route route;
	struct conn *conn;    /* NULL: none */
	int at;		      /* the place that conn leads to */
	bool checked;	      /* it is what it should be */
	bool stale;	      /* when nothing is outstanding, look for it anew */
	bool told;	      /* the guide has told just now; whoever has it cleared has used that */
	int64_t confirmed_us; /* when a sentinel named it for the last time */
	int misled;	      /* how many sentinels in a row have named a server that isn't there, or no master */

	/* why it is MASTER_UNKNOWN */
	bool denied, local;
	struct err err;

	struct guide guide; /* who is asked for it, if anybody is */
};

enum master_state {
	MASTER_READY,  /* what is sent on conn goes to it */
	MASTER_SOUGHT, /* not yet */
	MASTER_UNKNOWN /* it can't be found, or not be connected to: for the reason in err */
};

/* The URL must outlive it.  False if there is no memory. */
bool master_open(struct master *, const struct url *);
void master_close(struct master *);

/* Get at the one in charge of a parcel.  It isn't left for another one as long as answers to others are outstanding. */
enum master_state master_reach(struct master *, const struct parcel *, const struct parcels *others);

/* MASTER_CHECK was answered. */
enum master_state master_checked(struct master *, const struct delivery *);

/* A request was answered: is it still in charge?  A failure is told with its name. */
void master_answered(struct master *, struct delivery *);

/* What poll(2) must wait for (-1: nothing), and the instant at which master_handle() wants to be called anyway. */
int master_fd(const struct master *);
short master_events(const struct master *);
int64_t master_wake_us(const struct master *);

/* Go on.  MASTER_UNKNOWN: asking has come to nothing; any other: see master_reach(). */
enum master_state master_handle(struct master *, int64_t now_us);

/* See node_break() and node_stop_dialling(). */
void master_break(struct master *, bool outstanding);
void master_stop_dialling(struct master *, bool in_time);

/* Are the two connected to different servers? */
bool master_parted(const struct master *, const struct master *twin);

/* What it waits for, as a sentence. */
const char *master_silence(const struct master *);

#endif
