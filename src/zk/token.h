/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_TOKEN_H
#define DLOCK_ZK_TOKEN_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/token.h"
#include "zk/metadata.h"
#include "zk/wire.h"

/*
 * Tokens: what another process needs to renew and release a lock, as 64 characters of base64url.
 *
 * The token of a further hold is that of the lock, a dot and the hold.  A token is no secret here: a server tells every
 * client the session of a node, and the password of a session can be computed from that.
 */
enum {
	ZK_UUID_SIZE = 16,
	ZK_TOKEN_LENGTH = 64,
	ZK_UUID_TEXT_SIZE = 37
};

struct zk_token {
	unsigned char uuid[ZK_UUID_SIZE]; /* of the entry in the queue; first, so that a token begins at random */
	struct wire_session session;
	int32_t number; /* of the lock node */
	char hold[METADATA_HOLD_LENGTH + 1];
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
