/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_TOKEN_H
#define DLOCK_LOCK_TOKEN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A token authorizes the release of a lock.  It has 128 random bits as 22 characters of base64url, and is new for every
 * attempt.  It contains nothing else.  Only its owner may see more than the first characters.  Tokens of other backends
 * have other forms, which only the backend knows.
 */
enum {
	TOKEN_LENGTH = 22,
	TOKEN_SIZE = 97,    /* of the memory for a token or a hold of any backend, wherever it is */
	TOKEN_HINT_SIZE = 5 /* the four characters that may be printed */
};

/*
 * A lock that its holder has entered again has several holds.  The first hold is identified by the token of the lock, a
 * further one by that token, a dot and random characters.  Each can end only itself.
 */
enum {
	HOLD_EXTRA = 8,
	HOLD_LENGTH = TOKEN_LENGTH + 1 + HOLD_EXTRA,
	HOLDS_MAX = 2 /* that a caller knows of for one lock */
};

struct hold {
	char token[TOKEN_SIZE];
	int64_t fence; /* 0: unknown */
};

/* The 64 characters of base64url. */
extern const char token_alphabet[];

/* Write bytes, whose number is a multiple of three, as characters. */
void token_encode(const unsigned char *bytes, size_t length, char *text);

/* Generate a token.  False if the kernel provides no random bits. */
bool token_new(char token[TOKEN_SIZE]);

/*
 * Mark a new token as that of a reader: a lock that it holds is shared.  Of the last character only two bits are of the
 * token; the mark is the lowest of the others.
 */
void token_share(char *token);

/* Is it marked, or a hold on a lock whose token is? */
bool token_shared(const char *hold);

/* Does it have the format of a token? */
bool token_valid(const char *token);

/* Generate a further hold on the lock of which `token` is a hold.  False as for token_new(). */
bool hold_new(const char *token, char hold[TOKEN_SIZE]);

/* Does it have the format of a hold, the first one or a further one? */
bool hold_valid(const char *hold);

#endif
