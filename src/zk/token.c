/* SPDX-License-Identifier: MIT */
#include "zk/token.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"

#define ENTRY_PREFIX 3 /* length of the "_c_" before the UUID in the name of a node */

/* The characters of a token stand for these bytes.  The numbers are big-endian. */
struct token_bytes {
	unsigned char uuid[ZK_UUID_SIZE];
	uint64_t session;
	unsigned char password[WIRE_PASSWORD_SIZE];
	uint32_t length_ms;
	uint32_t number;
};

_Static_assert(sizeof(struct token_bytes) == ZK_TOKEN_LENGTH / 4 * 3, "there is no padding");
_Static_assert(ZK_TOKEN_LENGTH + 1 + METADATA_HOLD_LENGTH < TOKEN_SIZE, "there is room for a hold");

/* -- Tokens ----------------------------------------------------------------- */

void
zk_token_write(const struct zk_token *token, char text[TOKEN_SIZE])
{
	struct token_bytes bytes = { .session = htobe64((uint64_t)token->session.id),
		.length_ms = htobe32((uint32_t)token->session.length_ms),
		.number = htobe32((uint32_t)token->number) };

	memcpy(bytes.uuid, token->uuid, sizeof(bytes.uuid));
	memcpy(bytes.password, token->session.password, sizeof(bytes.password));
	token_encode((const unsigned char *)&bytes, sizeof(bytes), text);
	if (strcmp(token->hold, METADATA_FIRST_HOLD) != 0)
		(void)snprintf(text + ZK_TOKEN_LENGTH, TOKEN_SIZE - ZK_TOKEN_LENGTH, ".%s", token->hold);
}

bool
zk_token_read(const char *text, struct zk_token *token)
{
	const char *hold = METADATA_FIRST_HOLD;
	struct token_bytes bytes;
	unsigned char *byte = (unsigned char *)&bytes;
	uint32_t group = 0;
	int i;

	if (strspn(text, token_alphabet) != ZK_TOKEN_LENGTH)
		return false;
	if (text[ZK_TOKEN_LENGTH] != '\0') {
		hold = text + ZK_TOKEN_LENGTH + 1;
		if (hold[-1] != '.' || strlen(hold) != METADATA_HOLD_LENGTH ||
		    strspn(hold, token_alphabet) != strlen(hold))
			return false;
	}
	for (i = 0; i < ZK_TOKEN_LENGTH; i++) {
		group = group << 6 | (uint32_t)(strchr(token_alphabet, text[i]) - token_alphabet);
		if (i % 4 == 3) {
			*byte++ = (unsigned char)(group >> 16);
			*byte++ = (unsigned char)(group >> 8);
			*byte++ = (unsigned char)group;
		}
	}
	memcpy(token->uuid, bytes.uuid, sizeof(token->uuid));
	memcpy(token->session.password, bytes.password, sizeof(bytes.password));
	token->session.id = (int64_t)be64toh(bytes.session);
	token->session.length_ms = (int32_t)be32toh(bytes.length_ms);
	token->number = (int32_t)be32toh(bytes.number);
	(void)snprintf(token->hold, sizeof(token->hold), "%s", hold);
	return token->session.id != 0 && token->session.length_ms > 0;
}

/* -- UUIDs ------------------------------------------------------------------ */

bool
zk_uuid_new(unsigned char uuid[ZK_UUID_SIZE])
{
	do {
		if (!random_bytes(uuid, ZK_UUID_SIZE))
			return false;
	} while (token_alphabet[uuid[0] >> 2] == '-');
	return true;
}

void
zk_uuid_write(const unsigned char uuid[ZK_UUID_SIZE], char text[ZK_UUID_TEXT_SIZE])
{
	int i;

	for (i = 0; i < ZK_UUID_SIZE; i++)
		text += snprintf(text, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
		    (unsigned int)uuid[i]);
}

bool
zk_token_begin(const char *name, size_t length, char begin[TOKEN_SIZE])
{
	const char *digit = name + ENTRY_PREFIX;
	unsigned char uuid[ZK_UUID_SIZE] = { 0 };
	int i;

	if (!text_begins_as(name, length, "_c_########-####-####-####-############-"))
		return false;
	for (i = 0; i < 2 * ZK_UUID_SIZE; i++, digit++) {
		if (*digit == '-')
			digit++;
		uuid[i / 2] = (unsigned char)(uuid[i / 2] << 4 | (*digit <= '9' ? *digit - '0' : *digit - 'a' + 10));
	}
	token_encode(uuid, sizeof(uuid) / 3 * 3, begin);
	return true;
}
