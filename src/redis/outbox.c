/* SPDX-License-Identifier: MIT */
#include "redis/outbox.h"

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

bool
outbox_add(struct outbox *o, const char *bytes, size_t length)
{
	if (!make_room(o, length))
		return false;
	memcpy(o->bytes + o->length, bytes, length);
	o->length += length;
	o->given += length;
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
	if (o->length == 0) { /* a connection is idle for most of its life */
		free(o->bytes);
		o->bytes = NULL;
		o->room = 0;
	}
	return result;
}

void
outbox_clear(struct outbox *o)
{
	free(o->bytes);
	memset(o, 0, sizeof(*o));
}
