/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_TOKEN_H
#define DLOCK_LOCK_TOKEN_H
#include <stdbool.h>
#include <stddef.h>

/*
 * A token is the right to release: 128 random bits as 22 characters of base64url, new for every attempt.
 * Nothing else is in it, and nobody but its owner is shown more than its first characters.
 */
enum {
	TOKEN_LENGTH = 22,
	TOKEN_SIZE = TOKEN_LENGTH + 1,
	TOKEN_HINT_SIZE = 5 /* the four characters that may be shown */
};

/*
 * A lock that is entered again by who holds it has several holds.  The first one is called by the lock's token, a further
 * one by that token, a dot and random characters; each can end only itself.
 */
enum {
	HOLD_EXTRA = 8,
	HOLD_LENGTH = TOKEN_LENGTH + 1 + HOLD_EXTRA,
	HOLD_SIZE = HOLD_LENGTH + 1
};

/* False if the kernel has no random bits to give. */
bool token_new(char token[TOKEN_SIZE]);

/* Has it a token's shape? */
bool token_valid(const char *token);

/* Overwrite the words of a text that have a token's shape. */
void token_hide(char *text);

/* text_show() for what a server says, which may repeat what it was sent: tokens are hidden. */
const char *token_show_text(const char *text, char *buffer, size_t size);

/* A further hold on the lock of which `token` is a hold.  False as token_new(). */
bool hold_new(const char *token, char hold[HOLD_SIZE]);

/* Has it the shape of a hold, the first one or a further one? */
bool hold_valid(const char *hold);

#endif
