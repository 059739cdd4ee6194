/* SPDX-License-Identifier: MIT */
#include "cli/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/holds.h"

struct variable {
	const char *name, *value;
};

static bool
is_among(const struct variable *variables, size_t count, const char *entry)
{
	size_t i, length;

	for (i = 0; i < count; i++) {
		length = strlen(variables[i].name);
		if (strncmp(entry, variables[i].name, length) == 0 && entry[length] == '=')
			return true;
	}
	return false;
}

/*
 * The environment of this process with some variables set, in one block of memory.  That of this process itself is not
 * modified, since a thread that resolves a name may be reading it.  NULL: out of memory.
 */
static char **
environment_with(const struct variable *variables, size_t count)
{
	size_t i, entries = 0, most = count + 1, size = 0;
	char **environment, *text;

	for (i = 0; environ != NULL && environ[i] != NULL; i++)
		most++;
	for (i = 0; i < count; i++)
		size += strlen(variables[i].name) + strlen(variables[i].value) + 2;
	environment = malloc(most * sizeof(*environment) + size);
	if (environment == NULL)
		return NULL;
	for (i = 0; environ != NULL && environ[i] != NULL; i++) {
		if (!is_among(variables, count, environ[i]))
			environment[entries++] = environ[i];
	}
	text = (char *)(environment + most);
	for (i = 0; i < count; i++) {
		environment[entries++] = text;
		text = stpcpy(stpcpy(stpcpy(text, variables[i].name), "="), variables[i].value) + 1;
	}
	environment[entries] = NULL;
	return environment;
}

char **
environment_of_lock(const char *operand, const char *key, const struct lease *lease)
{
	struct hold held = { .fence = lease->fence };
	char fence[24], ttl_ms[24], **environment = NULL;
	char *holds;

	memcpy(held.token, lease->token, sizeof(held.token));
	(void)snprintf(fence, sizeof(fence), "%" PRId64, lease->fence);
	(void)snprintf(ttl_ms, sizeof(ttl_ms), "%" PRId64, lease->ttl_ms);
	holds = holds_with(key, &held);
	if (holds != NULL) {
		const struct variable variables[] = {
			{ "DLOCK_KEY", operand },
			{ "DLOCK_TOKEN", lease->token },
			{ "DLOCK_FENCE", fence },
			{ "DLOCK_TTL_MS", ttl_ms },
			{ "DLOCK_HOLDS", holds },
		};

		environment = environment_with(variables, sizeof(variables) / sizeof(variables[0]));
	}
	free(holds);
	return environment;
}
