/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

/*
 * Write a string.  Characters that are unsafe on a terminal are written as \uXXXX.  False: it is not UTF-8, and what is
 * not is escaped.
 */
static bool
put_string(FILE *out, const char *string)
{
	const size_t length = strlen(string);
	unsigned long code;
	bool is_utf8 = true;
	size_t i, n;

	putc('"', out);
	for (i = 0; i < length; i += n == 0 ? 1 : n) {
		n = text_character(string + i, length - i, &code);
		is_utf8 = is_utf8 && n > 0;
		if (n == 0)
			fprintf(out, "\\\\x%02x", (unsigned int)(unsigned char)string[i]);
		else if (string[i] == '"' || string[i] == '\\')
			fprintf(out, "\\%c", string[i]);
		else if (text_utf8(string + i, length - i) == n)
			(void)fwrite(string + i, 1, n, out);
		else
			fprintf(out, "\\u%04lx", code); /* all of these are at most U+FFFF */
	}
	putc('"', out);
	return is_utf8;
}

static void
begin(struct json *j, const char *name)
{
	if (j->comma)
		putc(',', j->out);
	j->comma = true;
	if (name != NULL) {
		(void)put_string(j->out, name);
		putc(':', j->out);
	}
}

void
json_open(struct json *j, const char *name, char bracket)
{
	begin(j, name);
	putc(bracket, j->out);
	j->comma = false;
}

void
json_close(struct json *j, char bracket)
{
	putc(bracket, j->out);
	j->comma = true;
}

struct json
json_begin_line(FILE *out)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	return j;
}

void
json_end_line(struct json *j)
{
	json_close(j, '}');
	putc('\n', j->out);
}

void
json_number(struct json *j, const char *name, int64_t value)
{
	begin(j, name);
	fprintf(j->out, "%" PRId64, value);
}

void
json_null(struct json *j, const char *name)
{
	begin(j, name);
	fputs("null", j->out);
}

void
json_number_or_null(struct json *j, const char *name, int64_t value, bool known)
{
	if (known)
		json_number(j, name, value);
	else
		json_null(j, name);
}

void
json_string(struct json *j, const char *name, const char *value)
{
	begin(j, name);
	if (put_string(j->out, value) || name == NULL)
		return;
	fprintf(j->out, ",\"%s_hex\":\"", name);
	for (; *value != '\0'; value++)
		fprintf(j->out, "%02x", (unsigned int)(unsigned char)*value);
	putc('"', j->out);
}

void
json_string_or_null(struct json *j, const char *name, const char *value)
{
	if (value != NULL && value[0] != '\0')
		json_string(j, name, value);
	else
		json_null(j, name);
}
