/* SPDX-License-Identifier: MIT */
#include "lock/holder.h"

#include <string.h>

#include "base/text.h"

size_t
holder_owner_length(const char *owner)
{
	const size_t length = strlen(owner), suffix = strlen(OWNER_OF_ACQUIRE);

	return length > suffix && strcmp(owner + length - suffix, OWNER_OF_ACQUIRE) == 0 ? length - suffix : length;
}

bool
holder_from_acquire(const struct holder *h)
{
	return h->owner[holder_owner_length(h->owner)] != '\0';
}

void
holder_describe(const struct holder *h, const char *unknown, struct text *text)
{
	if (h->owner[0] != '\0')
		text_add_shown(text, h->owner, holder_owner_length(h->owner));
	else
		text_addf(text, "%s", unknown);
	if (h->label[0] != '\0') {
		text_addf(text, " (");
		text_add_shown(text, h->label, strlen(h->label));
		text_addf(text, ")");
	}
	if (holder_from_acquire(h))
		text_addf(text, " from acquire");
}

/* -- Other clients ---------------------------------------------------------- */

#define HEX "0123456789abcdef"
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/* In a shape, 'x' matches a hexadecimal digit; any other character matches itself. */
static bool
begins_as(const char *token, const char *shape)
{
	for (; *shape != '\0'; token++, shape++) {
		if (*shape == 'x' ? *token == '\0' || strchr(HEX, *token) == NULL : *token != *shape)
			return false;
	}
	return true;
}

/* A UUID as from uuid1() of Python: the version is 1, and the first bits of the variant are 10. */
static bool
is_time_uuid(const char *hex)
{
	return hex[12] == '1' && strchr("89ab", hex[16]) != NULL;
}

static const char *
client_of_string(const char *token)
{
	const size_t length = strlen(token);

	if (length == 32 && strspn(token, HEX) == 32)
		return is_time_uuid(token) ? "redis-py" : "node-redlock";
	if (length == 24 && strspn(token, BASE64) == 22 && strcmp(token + 22, "==") == 0)
		return "redsync";
	return NULL;
}

const char *
holder_other_client(const struct holder *h)
{
	static const char redisson[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx:";
	const char *thread = h->token + sizeof(redisson) - 1;

	if (!h->other_client || h->client != NULL)
		return h->client;
	if (strcmp(h->type, "hash") == 0 && begins_as(h->token, redisson) && thread[0] != '\0' &&
	    strspn(thread, "0123456789") == strlen(thread))
		return "Redisson";
	return strcmp(h->type, "string") == 0 ? client_of_string(h->token) : NULL;
}
