/* SPDX-License-Identifier: MIT */
#include "cli/holds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/service.h"

#define VARIABLE "DLOCK_HOLDS"
#define ENTRY_MAX (3 * KEY_MAX + TOKEN_SIZE + 32)
#define LIST_MAX 16384 /* a longer list is cut: the outermost locks are dropped */

/* Write the key as escaped in an entry; returns its length. */
static size_t
escape(const char *key, char *to)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:/";
	char *at = to;

	for (; *key != '\0'; key++) {
		if (strchr(plain, *key) != NULL)
			*at++ = *key;
		else
			at += snprintf(at, 4, "%%%02X", (unsigned int)(unsigned char)*key);
	}
	*at = '\0';
	return (size_t)(at - to);
}

static bool
read_fence(const char *digits, int64_t *fence)
{
	char *end;

	errno = 0;
	*fence = digits[0] >= '0' && digits[0] <= '9' ? strtoll(digits, &end, 10) : 0;
	return *fence > 0 && *end == '\0' && errno == 0;
}

/* Parse TOKEN=FENCE.  False if it is malformed. */
static bool
read_held(const char *entry, size_t length, struct hold *held)
{
	char copy[TOKEN_SIZE + 32], *fence;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, entry, length);
	copy[length] = '\0';
	fence = strchr(copy, '=');
	if (fence == NULL)
		return false;
	*fence++ = '\0';
	if (!service_has_token(copy) || !read_fence(fence, &held->fence))
		return false;
	memcpy(held->token, copy, strlen(copy) + 1);
	return true;
}

/* Find the entry of an escaped key in the list, and its length; NULL if there is none. */
static const char *
find_entry(const char *list, const char *escaped, size_t escaped_length, size_t *length)
{
	const char *at;

	for (at = list + strspn(list, " "); *at != '\0'; at += *length, at += strspn(at, " ")) {
		*length = strcspn(at, " ");
		if (*length > escaped_length && at[escaped_length] == '=' && strncmp(at, escaped, escaped_length) == 0)
			return at;
	}
	return NULL;
}

static bool
find_innermost(const char *operand, struct hold *held)
{
	const char *const key = getenv("DLOCK_KEY"), *const token = getenv("DLOCK_TOKEN");
	const char *const fence = getenv("DLOCK_FENCE");

	if (operand == NULL || key == NULL || token == NULL || strcmp(key, operand) != 0 || !service_has_token(token))
		return false;
	memcpy(held->token, token, strlen(token) + 1);
	if (fence == NULL || !read_fence(fence, &held->fence))
		held->fence = 0;
	return true;
}

static bool
find_listed(const char *key, struct hold *held)
{
	const char *entry = getenv(VARIABLE);
	char escaped[3 * KEY_MAX + 1];
	const size_t escaped_length = escape(key, escaped);
	size_t length;

	while (entry != NULL && (entry = find_entry(entry, escaped, escaped_length, &length)) != NULL) {
		if (read_held(entry + escaped_length + 1, length - escaped_length - 1, held))
			return true;
		entry += length;
	}
	return false;
}

int
holds_find(const char *operand, const char *key, struct hold held[HOLDS_MAX])
{
	int found = 0;

	found += find_listed(key, &held[found]);
	found += find_innermost(operand, &held[found]);
	if (found == 2 && strcmp(held[0].token, held[1].token) == 0)
		found = 1;
	return found;
}

char *
holds_with(const char *key, const struct hold *held)
{
	const char *const given = getenv(VARIABLE), *const list = given != NULL ? given : "";
	const size_t size = ENTRY_MAX + strlen(list) + 2;
	char *const grown = malloc(size);
	const char *old;
	size_t length = 0, escaped_length, before;

	if (grown == NULL)
		return NULL;
	escaped_length = escape(key, grown);
	old = find_entry(list, grown, escaped_length, &length);
	before = old != NULL ? (size_t)(old - list) : strlen(list);
	(void)snprintf(grown + escaped_length, size - escaped_length, "=%s=%" PRId64 " %.*s%s", held->token,
	    held->fence, (int)before, list, old != NULL ? old + length : "");
	if (strlen(grown) > LIST_MAX) {
		for (length = LIST_MAX; length > 0 && grown[length] != ' '; length--)
			;
		grown[length] = '\0';
	}
	length = strlen(grown);
	while (length > 0 && grown[length - 1] == ' ')
		grown[--length] = '\0';
	return grown;
}
