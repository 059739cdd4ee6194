/* SPDX-License-Identifier: MIT */
#include "zk/token.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"

#define TOKEN_BYTES 48 /* UUID, session, password, length, number */
#define ENTRY_PREFIX 3 /* length of the "_c_" before the UUID in the name of a node */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* -- base64url -------------------------------------------------------------- */

/* The number of bytes is a multiple of three. */
static void
write_base64(const unsigned char *bytes, size_t length, char *text)
{
	unsigned long group;
	size_t i;

	for (i = 0; i < length; i += 3) {
		group = (unsigned long)bytes[i] << 16 | (unsigned long)bytes[i + 1] << 8 | bytes[i + 2];
		*text++ = alphabet[group >> 18];
		*text++ = alphabet[group >> 12 & 63];
		*text++ = alphabet[group >> 6 & 63];
		*text++ = alphabet[group & 63];
	}
	*text = '\0';
}

/* The characters are of the alphabet, and their number is a multiple of four. */
static void
read_base64(const char *text, size_t length, unsigned char *bytes)
{
	unsigned long group;
	size_t i, k;

	for (i = 0; i < length; i += 4) {
		group = 0;
		for (k = 0; k < 4; k++)
			group = group << 6 | (unsigned long)(strchr(alphabet, text[i + k]) - alphabet);
		*bytes++ = (unsigned char)(group >> 16);
		*bytes++ = (unsigned char)(group >> 8);
		*bytes++ = (unsigned char)group;
	}
}

static unsigned char *
write_number(unsigned char *at, uint64_t value, int size)
{
	int i;

	for (i = size; i > 0; i--) {
		at[i - 1] = (unsigned char)value;
		value >>= 8;
	}
	return at + size;
}

static uint64_t
read_number(const unsigned char **at, int size)
{
	uint64_t value = 0;

	for (; size > 0; size--)
		value = value << 8 | *(*at)++;
	return value;
}

/* -- Tokens ----------------------------------------------------------------- */

void
zk_token_write(const struct zk_token *token, char text[ZK_HOLD_SIZE])
{
	unsigned char bytes[TOKEN_BYTES], *at = bytes;

	memcpy(at, token->uuid, ZK_UUID_SIZE);
	at = write_number(at + ZK_UUID_SIZE, (uint64_t)token->session, 8);
	memcpy(at, token->password, WIRE_PASSWORD_SIZE);
	at = write_number(at + WIRE_PASSWORD_SIZE, (uint32_t)token->length_ms, 4);
	(void)write_number(at, (uint32_t)token->number, 4);
	write_base64(bytes, sizeof(bytes), text);
	if (strcmp(token->hold, METADATA_FIRST_HOLD) != 0)
		(void)snprintf(text + ZK_TOKEN_LENGTH, ZK_HOLD_SIZE - ZK_TOKEN_LENGTH, ".%s", token->hold);
}

bool
zk_token_read(const char *text, struct zk_token *token)
{
	const char *hold = METADATA_FIRST_HOLD;
	unsigned char bytes[TOKEN_BYTES];
	const unsigned char *at = bytes;

	if (strspn(text, alphabet) != ZK_TOKEN_LENGTH)
		return false;
	if (text[ZK_TOKEN_LENGTH] != '\0') {
		hold = text + ZK_TOKEN_LENGTH + 1;
		if (hold[-1] != '.' || strlen(hold) != METADATA_HOLD_LENGTH || strspn(hold, alphabet) != strlen(hold))
			return false;
	}
	read_base64(text, ZK_TOKEN_LENGTH, bytes);
	memcpy(token->uuid, at, ZK_UUID_SIZE);
	at += ZK_UUID_SIZE;
	token->session = (int64_t)read_number(&at, 8);
	memcpy(token->password, at, WIRE_PASSWORD_SIZE);
	at += WIRE_PASSWORD_SIZE;
	token->length_ms = (int32_t)(uint32_t)read_number(&at, 4);
	token->number = (int32_t)(uint32_t)read_number(&at, 4);
	(void)snprintf(token->hold, sizeof(token->hold), "%s", hold);
	return token->session != 0 && token->length_ms > 0;
}

bool
zk_token_begin(const char *name, size_t length, char begin[TOKEN_SIZE])
{
	unsigned char uuid[ZK_UUID_SIZE];

	if (length <= ENTRY_PREFIX + ZK_UUID_TEXT_SIZE - 1 || strncmp(name, "_c_", ENTRY_PREFIX) != 0 ||
	    !zk_uuid_read(name + ENTRY_PREFIX, uuid))
		return false;
	write_base64(uuid, sizeof(uuid) / 3 * 3, begin);
	return true;
}

/* -- UUIDs and holds -------------------------------------------------------- */

bool
zk_uuid_new(unsigned char uuid[ZK_UUID_SIZE])
{
	do {
		if (!random_bytes(uuid, ZK_UUID_SIZE))
			return false;
	} while (alphabet[uuid[0] >> 2] == '-');
	return true;
}

void
zk_uuid_write(const unsigned char uuid[ZK_UUID_SIZE], char text[ZK_UUID_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	int i;

	for (i = 0; i < ZK_UUID_SIZE; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*text++ = '-';
		*text++ = digits[uuid[i] >> 4];
		*text++ = digits[uuid[i] & 15];
	}
	*text = '\0';
}

bool
zk_uuid_read(const char *text, unsigned char uuid[ZK_UUID_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	const char *high, *low;
	int i;

	for (i = 0; i < ZK_UUID_SIZE; i++) {
		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		high = *text != '\0' ? strchr(digits, *text++) : NULL;
		low = high != NULL && *text != '\0' ? strchr(digits, *text++) : NULL;
		if (low == NULL)
			return false;
		uuid[i] = (unsigned char)((high - digits) << 4 | (low - digits));
	}
	return true;
}

bool
zk_hold_new(char hold[METADATA_HOLD_LENGTH + 1])
{
	unsigned char bytes[METADATA_HOLD_LENGTH / 4 * 3];

	if (!random_bytes(bytes, sizeof(bytes)))
		return false;
	write_base64(bytes, sizeof(bytes), hold);
	return true;
}
