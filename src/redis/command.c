/* SPDX-License-Identifier: MIT */
#include "redis/command.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.inc"

#define EMBEDDED(name)                             \
	{                                          \
		lua_##name, sizeof(lua_##name) - 1 \
	}

/* The sibling keys that a script takes after KEY, in this order. */
enum sibling {
	METADATA = 1,
	HOLDS = 2,
	WAKE = 4,
	WAITING = 8,
	ANOTHER = 16 /* a key that the caller adds */
};

static const struct embedded {
	struct source {
		const char *text;
		size_t length;
	} source;
	unsigned int siblings;
	bool needs_replicas;
} scripts[] = {
	[SCRIPT_ACQUIRE] = { EMBEDDED(acquire), METADATA | HOLDS | WAKE | WAITING, true },
	[SCRIPT_BREAK] = { EMBEDDED(break), 0, false },
	[SCRIPT_FENCE] = { EMBEDDED(fence), METADATA, true },
	[SCRIPT_HEAL] = { EMBEDDED(heal), METADATA | HOLDS, true },
	[SCRIPT_HISTORY] = { EMBEDDED(history), METADATA | WAITING | ANOTHER, false },
	[SCRIPT_INSPECT] = { EMBEDDED(inspect), METADATA | HOLDS | WAITING, false },
	[SCRIPT_LEAVE] = { EMBEDDED(leave), WAITING | ANOTHER, false },
	[SCRIPT_PASS] = { EMBEDDED(pass), METADATA | WAKE, false },
	[SCRIPT_RELEASE] = { EMBEDDED(release), METADATA | HOLDS | WAKE | WAITING, false },
	[SCRIPT_RENEW] = { EMBEDDED(renew), METADATA | HOLDS, true },
	[SCRIPT_UNDO] = { EMBEDDED(undo), 0, false },
};

const char *
command_script(enum script script)
{
	return scripts[script].source.text;
}

static void
add(struct command *r, const char *bytes, size_t length)
{
	if (r->argc == COMMAND_ARGS)
		return;
	r->argv[r->argc] = bytes;
	r->length[r->argc] = length;
	r->argc++;
}

void
command_add(struct command *r, const char *string)
{
	add(r, string, strlen(string));
}

void
command_add_number(struct command *r, int64_t n)
{
	char *const end = r->number[r->numbers++] + sizeof(r->number[0]) - 1;
	uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;
	char *digits = end;

	*end = '\0';
	do
		*--digits = (char)('0' + left % 10);
	while ((left /= 10) != 0);
	if (n < 0)
		*--digits = '-';
	add(r, digits, (size_t)(end - digits));
}

void
command_add_again(struct command *r)
{
	r->again = r->argc;
	command_add(r, "0");
}

void
command_begin(struct command *r, const char *command)
{
	r->argc = r->numbers = r->part = r->again = 0;
	r->needs_replicas = r->once = r->keeps_trying = false;
	r->connection = 0;
	command_add(r, command);
}

void
command_eval(struct command *r, enum script script, const struct keys *names)
{
	const char *const name[] = { names->metadata, names->holds, names->wake, names->waiting };
	const struct embedded *const e = &scripts[script];
	int keys = 1;
	size_t i;

	for (i = 0; i <= sizeof(name) / sizeof(name[0]); i++)
		keys += (e->siblings >> i & 1) != 0;
	command_begin(r, "EVAL");
	r->needs_replicas = e->needs_replicas;
	add(r, e->source.text, e->source.length);
	command_add_number(r, keys);
	command_add(r, names->key);
	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if ((e->siblings >> i & 1) != 0)
			command_add(r, name[i]);
	}
}

const char *
command_key(const struct command *r)
{
	if (strcmp(r->argv[0], "EVAL") == 0)
		return r->argv[3];
	return strcmp(r->argv[0], "BLPOP") == 0 || strcmp(r->argv[0], "LPOP") == 0 ? r->argv[1] : NULL;
}

#define COUNT_MAX 26 /* bytes of "*3" or "$12" with the line ending */

/* printf(3) is avoided: it would be a quarter of the C library calls of a short run. */
static size_t
put_count(char *to, char kind, size_t count)
{
	size_t digits = 1, left, i;

	for (left = count; left >= 10; left /= 10)
		digits++;
	to[0] = kind;
	for (i = digits; i > 0; i--, count /= 10)
		to[i] = (char)('0' + count % 10);
	to[digits + 1] = '\r';
	to[digits + 2] = '\n';
	return digits + 3;
}

char *
command_encode(const struct command *r, size_t *length, size_t *again)
{
	size_t size = COUNT_MAX, n;
	char *bytes;
	int i;

	for (i = 0; i < r->argc; i++)
		size += r->length[i] + COUNT_MAX + 2;
	bytes = malloc(size);
	if (bytes == NULL)
		return NULL;
	n = put_count(bytes, '*', (size_t)r->argc);
	for (i = 0; i < r->argc; i++) {
		n += put_count(bytes + n, '$', r->length[i]);
		if (i > 0 && i == r->again)
			*again = n;
		memcpy(bytes + n, r->argv[i], r->length[i]);
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the length stands before it */
		memcpy(bytes + n + r->length[i], "\r\n", 2);
		n += r->length[i] + 2;
	}
	*length = n;
	return bytes;
}
