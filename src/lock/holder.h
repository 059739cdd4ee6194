/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_HOLDER_H
#define DLOCK_LOCK_HOLDER_H
#include <stdbool.h>
#include <stdint.h>

/*
 * Who holds a lock, as far as one node tells.  The texts come from whoever took the lock: show them escaped.
 */
enum {
	OWNER_MAX = 320, /* user@host:pid */
	LABEL_MAX = 256,
	OTHER_CLIENT_MAX = 64 /* so much of a other client's token is looked at */
};

struct holder {
	char token[OTHER_CLIENT_MAX + 1]; /* whole for ours, cut for a other client's; never to be shown whole */
	bool other_client;		  /* no dlock, or none that told its facts */
	bool other_type;		  /* the key holds something that is not a string */
	char type[12];			  /* what it holds: "string", "hash" ...; escaped already */
	bool handover;			  /* released already, on its way to the next waiter */
	char owner[OWNER_MAX + 1];	  /* "" if unknown, as all below for a other client */
	char label[LABEL_MAX + 1];
	int64_t left_ms; /* of the lease; -1: it never ends */
	int64_t held_ms; /* -1: unknown */
	int64_t fence;	 /* 0: unknown */
	int64_t holds;	 /* how often it is held: more than once where it was entered again; 0: unknown */
	int64_t waiting; /* how many wait, as far as it is known */
};

struct text;

/* Add "OWNER (LABEL)", as far as they are known; in place of an owner that isn't, what the caller calls it. */
void holder_describe(const struct holder *, const char *unknown, struct text *);

#endif
