/* SPDX-License-Identifier: MIT */
/*
 * An environment that frees old values.  It replaces the one of the C library, which keeps all values, so that a target
 * that sets millions of them would run out of memory.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

enum {
	VARIABLES = 64
};

static struct {
	char *name, *value;
} variables[VARIABLES];

static int
find(const char *name)
{
	int i, room = -1;

	for (i = 0; i < VARIABLES; i++) {
		if (variables[i].name != NULL && strcmp(variables[i].name, name) == 0)
			return i;
		if (variables[i].name == NULL)
			room = i;
	}
	return room;
}

char *
getenv(const char *name)
{
	static const char ours[] = "top_srcdir="; /* needed by replay.c */
	const int i = find(name);
	char **at;

	for (at = environ; strcmp(name, "top_srcdir") == 0 && *at != NULL; at++) {
		if (strncmp(*at, ours, strlen(ours)) == 0)
			return *at + strlen(ours);
	}
	return i >= 0 ? variables[i].value : NULL;
}

int
unsetenv(const char *name)
{
	const int i = find(name);

	if (i < 0)
		return 0;
	free(variables[i].name);
	free(variables[i].value);
	variables[i].name = variables[i].value = NULL;
	return 0;
}

int
setenv(const char *name, const char *value, int replace)
{
	const int i = find(name);

	must(i >= 0 && replace != 0, "more variables than there is room for");
	(void)unsetenv(name);
	variables[i].name = strdup(name);
	variables[i].value = strdup(value);
	return variables[i].name != NULL && variables[i].value != NULL ? 0 : -1;
}
