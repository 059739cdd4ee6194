/* SPDX-License-Identifier: MIT */
#include "redis/command.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	char *digits = r->number[r->numbers++];

	(void)snprintf(digits, sizeof(r->number[0]), "%" PRId64, n);
	command_add(r, digits);
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
	r->needs_replicas = r->once = r->patient = false;
	r->connection = 0;
	command_add(r, command);
}

/* The sibling keys that a script takes after KEY, in this order. */
enum sibling {
	FACTS = 1,
	HOLDS = 2,
	WAKE = 4,
	WAITING = 8,
	ANOTHER = 16 /* a key that the caller adds */
};

static const unsigned int siblings[] = {
	[SCRIPT_ACQUIRE] = FACTS | HOLDS | WAKE | WAITING,
	[SCRIPT_BREAK] = 0,
	[SCRIPT_FENCE] = FACTS,
	[SCRIPT_HEAL] = FACTS | HOLDS,
	[SCRIPT_INSPECT] = FACTS | HOLDS | WAITING,
	[SCRIPT_LEAVE] = WAITING | ANOTHER,
	[SCRIPT_PASS] = FACTS | WAKE,
	[SCRIPT_RELEASE] = FACTS | HOLDS | WAKE | WAITING,
	[SCRIPT_RENEW] = FACTS | HOLDS,
	[SCRIPT_UNDO] = 0,
};

void
command_eval(struct command *r, enum script script, const struct keys *names)
{
	const char *const name[] = { names->facts, names->holds, names->wake, names->waiting };
	const unsigned int wanted = siblings[script];
	size_t length, i;
	const char *source = script_source(script, &length);
	int keys = 1;

	for (i = 0; i <= sizeof(name) / sizeof(name[0]); i++)
		keys += (wanted >> i & 1) != 0;
	command_begin(r, "EVAL");
	r->needs_replicas = script == SCRIPT_ACQUIRE || script == SCRIPT_RENEW || script == SCRIPT_HEAL ||
	    script == SCRIPT_FENCE;
	add(r, source, length);
	command_add_number(r, keys);
	command_add(r, names->key);
	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if ((wanted >> i & 1) != 0)
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
	size_t room = COUNT_MAX, n;
	char *bytes;
	int i;

	for (i = 0; i < r->argc; i++)
		room += r->length[i] + COUNT_MAX + 2;
	bytes = malloc(room);
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
