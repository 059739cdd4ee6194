/* SPDX-License-Identifier: MIT */
#include "cli/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

char **
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
