/* SPDX-License-Identifier: MIT */
#include "lock/token.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"

const char token_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void
token_encode(const unsigned char *bytes, size_t length, char *text)
{
	unsigned long group;
	size_t i;

	for (i = 0; i < length; i += 3) {
		group = (unsigned long)bytes[i] << 16 | (unsigned long)bytes[i + 1] << 8 | bytes[i + 2];
		*text++ = token_alphabet[group >> 18];
		*text++ = token_alphabet[group >> 12 & 63];
		*text++ = token_alphabet[group >> 6 & 63];
		*text++ = token_alphabet[group & 63];
	}
	*text = '\0';
}

bool
token_new(char token[TOKEN_SIZE])
{
	unsigned char bytes[18] = { 0 }; /* 16 that are random, and two for the last group */

	do {
		if (!random_bytes(bytes, 16))
			return false;
		token_encode(bytes, sizeof(bytes), token);
	} while (token[0] == '-'); /* a leading dash would look like an option */
	token[TOKEN_LENGTH] = '\0';
	return true;
}

bool
token_valid(const char *token)
{
	return strlen(token) == TOKEN_LENGTH && strspn(token, token_alphabet) == TOKEN_LENGTH;
}

void
token_share(char *token)
{
	token[TOKEN_LENGTH - 1]++; /* of A, Q, g or w, the four bits at the end are 0 */
}

bool
token_shared(const char *hold)
{
	return strlen(hold) >= TOKEN_LENGTH && strchr("BRhx", hold[TOKEN_LENGTH - 1]) != NULL;
}

bool
hold_new(const char *token, char hold[TOKEN_SIZE])
{
	char extra[TOKEN_SIZE];

	if (!token_new(extra))
		return false;
	(void)snprintf(hold, TOKEN_SIZE, "%.*s.%.*s", TOKEN_LENGTH, token, HOLD_EXTRA, extra);
	return true;
}

bool
hold_valid(const char *hold)
{
	const size_t length = strlen(hold);

	return token_valid(hold) ||
	    (length == HOLD_LENGTH && strspn(hold, token_alphabet) == TOKEN_LENGTH && hold[TOKEN_LENGTH] == '.' &&
		strspn(hold + TOKEN_LENGTH + 1, token_alphabet) == HOLD_EXTRA);
}
