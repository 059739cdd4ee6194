/* SPDX-License-Identifier: MIT */
#include "redis/request.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void
add(struct request *r, const char *bytes, size_t length)
{
	if (r->argc == REQUEST_ARGS)
		return;
	r->argv[r->argc] = bytes;
	r->length[r->argc] = length;
	r->argc++;
}

void
request_add(struct request *r, const char *string)
{
	add(r, string, strlen(string));
}

void
request_add_number(struct request *r, int64_t n)
{
	char *digits = r->number[r->numbers++];

	(void)snprintf(digits, sizeof(r->number[0]), "%" PRId64, n);
	request_add(r, digits);
}

void
request_begin(struct request *r, const char *command)
{
	r->argc = r->numbers = 0;
	request_add(r, command);
}

/* Which of a lock's keys a script takes behind KEY, in this order. */
enum sibling {
	FACTS = 1,
	HOLDS = 2,
	WAKE = 4,
	WAITING = 8,
	ANOTHER = 16 /* one that the caller adds */
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
request_eval(struct request *r, enum script script, const struct names *names)
{
	const char *const name[] = { names->facts, names->holds, names->wake, names->waiting };
	const unsigned int wanted = siblings[script];
	size_t length, i;
	const char *source = script_source(script, &length);
	int keys = 1;

	for (i = 0; i <= sizeof(name) / sizeof(name[0]); i++)
		keys += (wanted >> i & 1) != 0;
	request_begin(r, "EVAL");
	add(r, source, length);
	request_add_number(r, keys);
	request_add(r, names->key);
	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if ((wanted >> i & 1) != 0)
			request_add(r, name[i]);
	}
}
