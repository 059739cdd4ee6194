/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_TOKEN_H
#define DLOCK_LOCK_TOKEN_H
#include <stdbool.h>

/*
 * A token is the right to release: 128 random bits as 22 characters of base64url, new for every attempt.
 * Nothing else is in it, and nobody but its owner is shown more than its first characters.
 */
enum {
	TOKEN_LENGTH = 22,
	TOKEN_SIZE = TOKEN_LENGTH + 1,
	TOKEN_HINT_SIZE = 5 /* the four characters that may be shown */
};

/* False if the kernel has no random bits to give. */
bool token_new(char token[TOKEN_SIZE]);

/* Has it a token's shape? */
bool token_valid(const char *token);

#endif
