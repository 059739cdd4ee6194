/* SPDX-License-Identifier: MIT */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096

void *
array_room(void *items, size_t needed, size_t *capacity, size_t size)
{
	size_t more = *capacity > 0 ? *capacity : 1 + (FIRST_BYTES - 1) / size;
	void *grown = items;

	while (more < needed)
		more *= 2;
	if (more != *capacity) {
		grown = realloc(items, more * size);
		if (grown != NULL)
			*capacity = more;
	}
	return grown;
}

bool
names_add(struct names *n, const char *name)
{
	char **const grown = array_room(n->at, n->count + 1, &n->room, sizeof(*grown));

	if (grown == NULL)
		return false;
	n->at = grown;
	n->at[n->count] = strdup(name);
	if (n->at[n->count] == NULL)
		return false;
	n->count++;
	return true;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
names_sort(struct names *n)
{
	size_t i, count = 0;

	if (n->count > 0)
		qsort(n->at, n->count, sizeof(*n->at), compare);
	for (i = 0; i < n->count; i++) {
		if (count > 0 && strcmp(n->at[i], n->at[count - 1]) == 0)
			free(n->at[i]);
		else
			n->at[count++] = n->at[i];
	}
	n->count = count;
}

void
names_free(struct names *n)
{
	while (n->count > 0)
		free(n->at[--n->count]);
	free(n->at);
	*n = (struct names){ NULL, 0, 0 };
}
