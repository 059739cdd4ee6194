/* SPDX-License-Identifier: MIT */
#include "lock/token.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

bool
token_new(char token[TOKEN_SIZE])
{
	unsigned char bytes[16 + 1];
	unsigned int pair;
	int i, bit;

	bytes[16] = 0;
	do {
		if (!random_bytes(bytes, 16))
			return false;
		for (i = 0; i < TOKEN_LENGTH; i++) {
			bit = i * 6;
			pair = (unsigned int)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];
			token[i] = alphabet[pair >> (10 - bit % 8) & 0x3f];
		}
	} while (token[0] == '-'); /* a leading dash would look like an option */
	token[TOKEN_LENGTH] = '\0';
	return true;
}

bool
token_valid(const char *token)
{
	return strlen(token) == TOKEN_LENGTH && strspn(token, alphabet) == TOKEN_LENGTH;
}

void
token_hide(char *text)
{
	size_t length;

	for (; *text != '\0'; text += length > 0 ? length : 1) {
		length = strspn(text, alphabet);
		if (length == TOKEN_LENGTH)
			memset(text, '*', length);
	}
}

const char *
token_show_text(const char *text, char *buffer, size_t size)
{
	(void)text_show(text, buffer, size);
	token_hide(buffer);
	return buffer;
}

bool
hold_new(const char *token, char hold[HOLD_SIZE])
{
	char extra[TOKEN_SIZE];

	if (!token_new(extra))
		return false;
	(void)snprintf(hold, HOLD_SIZE, "%.*s.%.*s", TOKEN_LENGTH, token, HOLD_EXTRA, extra);
	return true;
}

bool
hold_valid(const char *hold)
{
	const size_t length = strlen(hold);

	if (strspn(hold, alphabet) != TOKEN_LENGTH)
		return false;
	if (length == TOKEN_LENGTH)
		return true;
	return length == HOLD_LENGTH && hold[TOKEN_LENGTH] == '.' &&
	    strspn(hold + TOKEN_LENGTH + 1, alphabet) == HOLD_EXTRA;
}
