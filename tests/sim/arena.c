/* SPDX-License-Identifier: MIT */
#include "arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK (1u << 20)

static struct chunk {
	struct chunk *next;
	size_t used;
	_Alignas(16) char bytes[CHUNK];
} * first, *current;

static struct chunk *
new_chunk(void)
{
	struct chunk *c = malloc(sizeof(*c));

	if (c == NULL) {
		perror("dlock-sim");
		exit(71);
	}
	c->next = NULL;
	c->used = 0;
	return c;
}

char *
arena_bytes(size_t size)
{
	char *memory;

	size = (size + 15) & ~(size_t)15;
	if (size > CHUNK)
		abort();
	if (current == NULL)
		current = first = new_chunk();
	if (current->used + size > CHUNK) {
		if (current->next == NULL)
			current->next = new_chunk();
		current = current->next;
		current->used = 0;
	}
	memory = current->bytes + current->used;
	current->used += size;
	return memory;
}

void *
arena_alloc(size_t size)
{
	return memset(arena_bytes(size), 0, size);
}

char *
arena_copy(const char *bytes, size_t length)
{
	char *copy = arena_bytes(length + 1);

	if (length > 0)
		memcpy(copy, bytes, length);
	copy[length] = '\0';
	return copy;
}

void
arena_reset(void)
{
	current = first;
	if (current != NULL)
		current->used = 0;
}
