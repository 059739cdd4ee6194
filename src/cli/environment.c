/* SPDX-License-Identifier: MIT */
#include "cli/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/holds.h"

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

bool
environment_variables(struct lock_variables *v, const char *operand, const char *key, const struct lease *lease)
{
	struct hold held = { .fence = lease->fence };

	memcpy(held.token, lease->token, sizeof(held.token));
	(void)snprintf(v->fence, sizeof(v->fence), "%" PRId64, lease->fence);
	(void)snprintf(v->ttl_ms, sizeof(v->ttl_ms), "%" PRId64, lease->ttl_ms);
	v->holds = holds_with(key, &held);
	v->variable[0] = (struct variable){ "DLOCK_KEY", operand };
	v->variable[1] = (struct variable){ "DLOCK_TOKEN", lease->token };
	v->variable[2] = (struct variable){ "DLOCK_FENCE", v->fence };
	v->variable[3] = (struct variable){ "DLOCK_TTL_MS", v->ttl_ms };
	v->variable[4] = (struct variable){ "DLOCK_HOLDS", v->holds };
	return v->holds != NULL;
}

char **
environment_of_lock(const char *operand, const char *key, const struct lease *lease)
{
	char **environment = NULL;
	struct lock_variables v;

	if (environment_variables(&v, operand, key, lease))
		environment = environment_with(v.variable, sizeof(v.variable) / sizeof(v.variable[0]));
	free(v.holds);
	return environment;
}
