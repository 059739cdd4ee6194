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

void
request_eval(struct request *r, enum script script, const struct names *names)
{
	size_t length;
	const char *source = script_source(script, &length);
	const bool key_alone = script == SCRIPT_UNDO || script == SCRIPT_BREAK;
	const bool takes_holds = script == SCRIPT_ACQUIRE || script == SCRIPT_HEAL;

	request_begin(r, "EVAL");
	add(r, source, length);
	request_add(r, key_alone ? "1" : takes_holds ? "3" : "2");
	request_add(r, names->key);
	if (!key_alone)
		request_add(r, names->facts);
	if (takes_holds)
		request_add(r, names->holds);
}
