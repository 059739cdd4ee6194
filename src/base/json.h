/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_JSON_H
#define DLOCK_BASE_JSON_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A writer of JSON.  Values go out in the order of the calls; the writer puts the commas.  NAME is the member's
 * name, NULL inside an array.  Output errors stay with the stream (ferror).
 */
struct json {
	FILE *out;
	bool comma; /* something stands before, on this level */
};

void json_open(struct json *, const char *name, char bracket);
void json_close(struct json *, char bracket);
void json_number(struct json *, const char *name, int64_t value);
void json_null(struct json *, const char *name);

/*
 * A string of any bytes.  What is not UTF-8 appears as it is shown to people (text.h), since JSON cannot hold it, and is
 * followed by a member NAME_hex with all bytes of the value, since the text may be that of another one.
 */
void json_string(struct json *, const char *name, const char *value);

/* The same, or null where there is none: for NULL and "". */
void json_string_or_null(struct json *, const char *name, const char *value);

#endif
