/* SPDX-License-Identifier: MIT */
#include "redis/cursor.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MAX 10000000
#define KEYS_MAX 4294967296 /* 2^32 per Redis server */
#define ANSWERS_MAX (2 * (KEYS_MAX / CURSOR_KEYS))

void
cursor_start(struct cursor *c)
{
	*c = (struct cursor){ .text = "0" };
}

void
cursor_next_server(struct cursor *c)
{
	*c = (struct cursor){ .text = "0", .names = c->names, .all = c->all };
}

/* The mark is moved after 1, 2, 4... replies: a cycle of any length is found once the mark is inside it. */
bool
cursor_note(struct cursor *c, const char *text, size_t names)
{
	c->names += names;
	if (strcmp(text, c->mark) == 0 || c->names > NAMES_MAX || ++c->all > ANSWERS_MAX)
		return false;
	(void)snprintf(c->text, sizeof(c->text), "%s", text);
	if (++c->answers > c->reach) {
		memcpy(c->mark, c->text, sizeof(c->mark));
		c->reach = 2 * c->reach + 1;
		c->answers = 0;
	}
	return true;
}

bool
cursor_at_end(const struct cursor *c)
{
	return strcmp(c->text, "0") == 0;
}
