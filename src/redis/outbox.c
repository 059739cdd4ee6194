/* SPDX-License-Identifier: MIT */
#include "redis/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
make_room(struct outbox *o, size_t length)
{
	size_t room = o->room == 0 ? 4096 : o->room;
	char *grown;

	while (room < o->length + length)
		room *= 2;
	if (room == o->room)
		return true;
	grown = realloc(o->bytes, room);
	if (grown == NULL)
		return false;
	o->bytes = grown;
	o->room = room;
	return true;
}

static void
add(struct outbox *o, const char *bytes, size_t length)
{
	memcpy(o->bytes + o->length, bytes, length);
	o->length += length;
	o->given += length;
}

/* "*3" or "$12" */
static void
add_count(struct outbox *o, char kind, size_t count)
{
	char line[32];

	add(o, line, (size_t)snprintf(line, sizeof(line), "%c%zu\r\n", kind, count));
}

bool
outbox_add(struct outbox *o, int argc, const char *const *argv, const size_t *length)
{
	size_t room = 32;
	int i;

	for (i = 0; i < argc; i++)
		room += length[i] + 34;
	if (!make_room(o, room))
		return false;
	add_count(o, '*', (size_t)argc);
	for (i = 0; i < argc; i++) {
		add_count(o, '$', length[i]);
		add(o, argv[i], length[i]);
		add(o, "\r\n", 2);
	}
	return true;
}

enum link_result
outbox_write(struct outbox *o, const struct link *link)
{
	enum link_result result = LINK_DONE;
	size_t done = 0;

	while (o->length > 0 && (result = link_write(link, o->bytes, o->length, &done)) == LINK_DONE) {
		o->length -= done;
		o->written += done;
		memmove(o->bytes, o->bytes + done, o->length);
	}
	return result;
}

void
outbox_clear(struct outbox *o)
{
	free(o->bytes);
	memset(o, 0, sizeof(*o));
}
