/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse a number such as "*3\r\n".  Returns the bytes used; 0: incomplete; -1: something else. */
static long
read_number(const char *bytes, size_t length, char fingerprint, long *n)
{
	const char *at = bytes + 1, *const end = bytes + length;

	if (length > 0 && bytes[0] != fingerprint)
		return -1;
	for (*n = 0; at < end && *at >= '0' && *at <= '9'; at++)
		*n = *n * 10 + (*at - '0');
	if (at + 2 > end)
		return 0;
	return at > bytes + 1 && memcmp(at, "\r\n", 2) == 0 ? (long)(at + 2 - bytes) : -1;
}

long
resp_read(char *bytes, size_t length, struct arg *args, int *argc)
{
	long count, size, took, used;

	used = read_number(bytes, length, '*', &count);
	if (used <= 0 || count > STORE_ARGS)
		return used <= 0 ? used : -1;
	for (*argc = 0; *argc < count; ++*argc) {
		took = read_number(bytes + used, length - (size_t)used, '$', &size);
		if (took <= 0)
			return took;
		used += took;
		if (length - (size_t)used < (size_t)size + 2)
			return 0;
		if (bytes[used + size + 1] != '\n')
			return -1;
		args[*argc] = (struct arg){ bytes + used, (size_t)size };
		bytes[used + size] = '\0'; /* overwrites a CR that is not needed any more */
		used += size + 2;
	}
	return used;
}

static size_t
put(char *bytes, size_t size, char fingerprint, int64_t n)
{
	const int length = snprintf(bytes, size, "%c%" PRId64 "\r\n", fingerprint, n);

	if (length < 0 || (size_t)length >= size)
		abort();
	return (size_t)length;
}

static size_t
put_text(char *bytes, size_t size, const char *text, size_t length)
{
	if (length + 2 > size)
		abort();
	memcpy(bytes, text, length);
	memcpy(bytes + length, "\r\n", 2);
	return length + 2;
}

size_t
resp_write(const struct value *v, char *bytes, size_t size)
{
	size_t used = 0;

	switch (v->kind) {
	case VALUE_NIL:
		used = put(bytes, size, '$', -1);
		break;
	case VALUE_INTEGER:
		used = put(bytes, size, ':', v->integer);
		break;
	case VALUE_TEXT:
		used = put(bytes, size, '$', (int64_t)v->length);
		used += put_text(bytes + used, size - used, v->text, v->length);
		break;
	case VALUE_STATUS:
	case VALUE_ERROR:
		bytes[0] = v->kind == VALUE_STATUS ? '+' : '-';
		used = 1 + put_text(bytes + 1, size - 1, v->text, v->length);
		break;
	case VALUE_LIST:
		used = put(bytes, size, '*', (int64_t)v->items);
		for (size_t i = 0; i < v->items; i++)
			used += resp_write(v->item[i], bytes + used, size - used);
		break;
	}
	return used;
}
