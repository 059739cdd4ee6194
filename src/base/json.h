/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_JSON_H
#define DLOCK_BASE_JSON_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A JSON writer.  Values are written in the order of the calls; the writer adds the commas.  `name` is the name of the
 * member, NULL inside an array.  Output errors are left in the stream (ferror).
 */
struct json {
	FILE *out;
	bool comma; /* there is a value before, on this level */
};

/* Begin and end an object on a line of its own. */
struct json json_begin_line(FILE *);
void json_end_line(struct json *);

void json_open(struct json *, const char *name, char bracket);
void json_close(struct json *, char bracket);
void json_number(struct json *, const char *name, int64_t value);
void json_null(struct json *, const char *name);
void json_number_or_null(struct json *, const char *name, int64_t value, bool known);

/*
 * A string of any bytes.  Bytes that are not UTF-8 are escaped as in messages (text.h), since JSON cannot represent
 * them, and a member NAME_hex with all bytes of the value follows, since another value may have the same escaped text.
 */
void json_string(struct json *, const char *name, const char *value);

/* The same, but null for NULL and "". */
void json_string_or_null(struct json *, const char *name, const char *value);

#endif
