/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_DELIVERY_H
#define DLOCK_REDIS_DELIVERY_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "redis/resp.h"

/*
 * The answer to the request that was sent with this tag: a reply or a failure.
 */
struct delivery {
	unsigned int tag;
	struct reply *reply; /* the caller's now; NULL for a failure */
	bool unsent;	     /* a failure: no byte of the request has left this host */
	bool broken;	     /* a failure of a connection that had been there */
	bool closed;	     /* a failure: the server has closed the connection, or accepts none */
	bool denied;	     /* a failure: the server refused AUTH or SELECT, in its own words */
	bool local;	     /* a failure: not the server's, this host lacks something */
	int64_t connection;  /* a reply: which connection it came by, see conn_number() */
	bool unconfirmed;    /* a reply: what it says may be lost, too few replicas have it; err says how many */
	struct err err;	     /* a failure: why, without the node's name */
};

#endif
