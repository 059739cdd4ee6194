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

/* Names stand one behind the other in blocks, since malloc(3) would take twice as much for short ones. */
struct names_block {
	struct names_block *next;
	size_t left;
	char *end;
};

static char *
room_for(struct names *n, size_t size)
{
	const size_t most = FIRST_BYTES - sizeof(struct names_block);
	struct names_block *block = n->block;

	if (block == NULL || block->left < size) {
		block = malloc(sizeof(*block) + (size > most ? size : most));
		if (block == NULL)
			return NULL;
		*block = (struct names_block){ n->block, size > most ? size : most, (char *)(block + 1) };
		n->block = block;
	}
	block->left -= size;
	block->end += size;
	return block->end - size;
}

bool
names_add(struct names *n, const char *name)
{
	return names_add_more(n, name, strlen(name) + 1);
}

bool
names_add_more(struct names *n, const char *name, size_t size)
{
	char **const grown = array_room(n->at, n->count + 1, &n->room, sizeof(*grown));

	if (grown == NULL)
		return false;
	n->at = grown;
	n->at[n->count] = room_for(n, size);
	if (n->at[n->count] == NULL)
		return false;
	memcpy(n->at[n->count++], name, size);
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
	size_t i, all = n->count;

	for (i = 1; i < all && strcmp(n->at[i - 1], n->at[i]) < 0; i++)
		;
	if (i >= all) /* they are sorted */
		return;
	qsort(n->at, all, sizeof(*n->at), compare);
	for (i = 0, n->count = 0; i < all; i++) {
		if (n->count == 0 || strcmp(n->at[i], n->at[n->count - 1]) != 0)
			n->at[n->count++] = n->at[i];
	}
}

bool
names_shrink(struct names *n)
{
	struct names kept = { .count = 0 };

	while (kept.count < n->count && names_add(&kept, n->at[kept.count]))
		;
	if (kept.count < n->count) {
		names_free(&kept);
		return false;
	}
	names_free(n);
	*n = kept;
	return true;
}

void
names_free(struct names *n)
{
	struct names_block *block;

	while ((block = n->block) != NULL) {
		n->block = block->next;
		free(block);
	}
	free(n->at);
	*n = (struct names){ .count = 0 };
}
