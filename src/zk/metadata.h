/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_METADATA_H
#define DLOCK_ZK_METADATA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/record.h"
#include "zk/wire.h"

/*
 * The data of a lock node: lines of a name and a value, the first of which is "dlock 1".
 *
 *	dlock 1
 *	owner user@host:pid
 *	label ...
 *	ttl_ms 30000
 *	since_ms 0
 *	slot 2
 *	kept min-hold
 *	asked user@host:pid
 *	replaces yes
 *	hold first
 *	hold 8xAbc-_1
 *
 * A lease without "slot" waits for one.  Without "kept" the lock was not released.  "asked" is who asks the holder to
 * end; a client with "replaces" asks others.  The data of the node of a KEY has "broken", the beginning of the token of
 * the last lock that was broken, and "owner", who broke it.  In a value, % and control characters are escaped as %XX.
 * Lines with other names are skipped.
 */
enum {
	METADATA_SIZE = 4096, /* data of this length is not ours */
	METADATA_HOLDS = 64,
	METADATA_OPTION_SIZE = 16,
	METADATA_HOLD_LENGTH = 8
};

/* The hold of the token that acquired the lock. */
#define METADATA_FIRST_HOLD "first"

struct metadata {
	char owner[OWNER_MAX + 1];
	char label[LABEL_MAX + 1];
	int64_t ttl_ms;
	int64_t since_ms;		    /* from the creation of the node to the grant of the lock */
	int64_t slot;			    /* of a lease: the number of its slot; 0: none */
	char kept_by[METADATA_OPTION_SIZE]; /* the lock was released, and this option keeps it; "": it was not */
	char asked_by[OWNER_MAX + 1];	    /* the owner who asks the client to end; "": nobody */
	bool replaces;			    /* it asks the holder, and gives way if it is asked while it waits */
	char broken[TOKEN_SIZE];
	/* The holds, if the lock was entered again.  Without one: only the token that acquired it has it. */
	char hold[METADATA_HOLDS][METADATA_HOLD_LENGTH + 1];
	int holds;
};

void metadata_write(const struct metadata *, char data[METADATA_SIZE]);

/* Read the data of a node.  False: it was not written by dlock; then *metadata is undefined. */
bool metadata_read(const char *bytes, size_t length, struct metadata *);

/* The number of holds: at least one. */
int metadata_holds(const struct metadata *);

bool metadata_has_hold(const struct metadata *, const char *hold);

/* Add a hold, if it is not there yet.  False: there are too many. */
bool metadata_add_hold(struct metadata *, const char *hold);

/* Remove a hold.  False: there is no such hold. */
bool metadata_remove_hold(struct metadata *, const char *hold);

/*
 * The tokens, which another process needs to renew and release a lock, as 64 characters of base64url.
 *
 * The token of a further hold is that of the lock, a dot and the hold.  A token is no secret here: a server tells every
 * client the session of a node, and the password of a session can be computed from that.
 */
enum {
	ZK_UUID_SIZE = 16,
	ZK_UUID_LENGTH = 22, /* the characters at the start of a token that have the UUID */
	ZK_TOKEN_LENGTH = 64,
	ZK_UUID_TEXT_SIZE = 37
};

struct zk_token {
	unsigned char uuid[ZK_UUID_SIZE]; /* of the entry in the queue; first, so that a token begins at random */
	struct wire_session session;
	int32_t number; /* of the lock node */
	char hold[METADATA_HOLD_LENGTH + 1];
	bool shared; /* of a reader */
};

void zk_token_write(const struct zk_token *, char text[TOKEN_SIZE]);

/* False: it is no token; then *token is undefined. */
bool zk_token_read(const char *text, struct zk_token *token);

/* Make a UUID, so that the token does not begin with a dash.  False: the kernel has no random numbers. */
bool zk_uuid_new(unsigned char uuid[ZK_UUID_SIZE]);

/* The UUID in the form 8-4-4-4-12. */
void zk_uuid_write(const unsigned char uuid[ZK_UUID_SIZE], char text[ZK_UUID_TEXT_SIZE]);

/* The beginning of the tokens of an entry, by which it is known.  False: the entry has no name such as dlock's. */
bool zk_token_begin(const char *name, size_t length, char begin[TOKEN_SIZE]);

#endif
