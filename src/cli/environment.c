/* SPDX-License-Identifier: MIT */
#include "cli/environment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRY_MAX (3 * KEY_MAX + TOKEN_SIZE + 32)
#define LIST_MAX 16384 /* a longer list is cut: the outermost locks are dropped */

/* Write the key as escaped in an entry, and a "="; returns its length. */
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
	(void)memcpy(at, "=", 2);
	return (size_t)(at + 1 - to);
}

static bool
read_fence(const char *digits, int64_t *fence)
{
	char *end;

	errno = 0;
	*fence = digits != NULL && digits[0] >= '0' && digits[0] <= '9' ? strtoll(digits, &end, 10) : 0;
	return *fence > 0 && *end == '\0' && errno == 0;
}

/* Parse TOKEN=FENCE.  False if it is malformed. */
static bool
read_held(const char *entry, size_t length, struct hold *held)
{
	char copy[TOKEN_SIZE + 32], *fence;

	(void)snprintf(copy, sizeof(copy), "%.*s", (int)length, entry);
	fence = strchr(copy, '=');
	if (length >= sizeof(copy) || fence == NULL)
		return false;
	*fence++ = '\0';
	if (!service_has_token(copy) || !read_fence(fence, &held->fence))
		return false;
	memcpy(held->token, copy, strlen(copy) + 1);
	return true;
}

int
environment_holds(const char *operand, const char *key, struct hold held[HOLDS_MAX])
{
	const char *const innermost = getenv("DLOCK_KEY"), *const token = getenv("DLOCK_TOKEN");
	const char *at = getenv("DLOCK_HOLDS");
	char escaped[3 * KEY_MAX + 2];
	const size_t begins = escape(key, escaped);
	size_t length;
	int found = 0;

	for (; at != NULL && *at != '\0' && found == 0; at += length + (at[length] == ' ')) {
		length = strcspn(at, " ");
		if (length > begins && strncmp(at, escaped, begins) == 0)
			found += read_held(at + begins, length - begins, &held[0]);
	}
	if (operand == NULL || innermost == NULL || token == NULL || strcmp(innermost, operand) != 0 ||
	    !service_has_token(token) || (found == 1 && strcmp(held[0].token, token) == 0))
		return found;
	memcpy(held[found].token, token, strlen(token) + 1);
	if (!read_fence(getenv("DLOCK_FENCE"), &held[found].fence))
		held[found].fence = 0;
	return found + 1;
}

/* DLOCK_HOLDS with one more lock, which replaces an entry of the same key. */
static void
add_hold(const char *key, const struct lease *lease, char list[ENTRY_MAX + LIST_MAX])
{
	const char *at = getenv("DLOCK_HOLDS");
	const size_t begins = escape(key, list);
	size_t length, end;

	end = begins + (size_t)snprintf(list + begins, ENTRY_MAX - begins, "%s=%" PRId64, lease->token, lease->fence);
	for (; at != NULL && *at != '\0'; at += length + (at[length] == ' ')) {
		length = strcspn(at, " ");
		if (length == 0 || strncmp(at, list, begins) == 0)
			continue;
		if (end + 1 + length > LIST_MAX)
			break;
		end += (size_t)snprintf(list + end, ENTRY_MAX + LIST_MAX - end, " %.*s", (int)length, at);
	}
}

/*
 * That of this process itself is not modified, since a thread that resolves a name may be reading it.
 */
char **
environment_of_lock(const char *operand, const char *key, const struct lease *lease)
{
	char **environment = NULL, *text = NULL, *holds = malloc(ENTRY_MAX + LIST_MAX), *at;
	size_t i, j, entries = LOCK_VARIABLES;
	int length = -1;

	if (holds != NULL) {
		add_hold(key, lease, holds);
		length = asprintf(&text,
		    "DLOCK_KEY=%s%cDLOCK_TOKEN=%s%cDLOCK_FENCE=%" PRId64 "%cDLOCK_TTL_MS=%" PRId64 "%cDLOCK_HOLDS=%s",
		    operand, 0, lease->token, 0, lease->fence, 0, lease->ttl_ms, 0, holds);
	}
	for (i = 0; environ != NULL && environ[i] != NULL; i++)
		entries++;
	if (length >= 0)
		environment = malloc((entries + 1) * sizeof(*environment) + (size_t)length + 1);
	if (environment == NULL)
		goto out;
	at = memcpy(environment + entries + 1, text, (size_t)length + 1);
	for (i = 0; i < LOCK_VARIABLES; i++, at += strlen(at) + 1)
		environment[i] = at;
	for (entries = LOCK_VARIABLES, i = 0; environ != NULL && environ[i] != NULL; i++) {
		for (j = 0;
		     j < LOCK_VARIABLES && strncmp(environ[i], environment[j], strcspn(environment[j], "=") + 1) != 0;)
			j++;
		if (j == LOCK_VARIABLES)
			environment[entries++] = environ[i];
	}
	environment[entries] = NULL;
out:
	free(text);
	free(holds);
	return environment;
}
