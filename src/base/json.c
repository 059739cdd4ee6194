/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

static void
put_character(FILE *out, const char *at, size_t utf8_length)
{
	unsigned char c = (unsigned char)*at;

	if (c == '"' || c == '\\')
		fprintf(out, "\\%c", c);
	else if (utf8_length > 0)
		(void)fwrite(at, 1, utf8_length, out);
	else if (c < 0x80)
		fprintf(out, "\\u%04x", c);
	else
		fprintf(out, "\\\\x%02x", c);
}

static void
put_string(FILE *out, const char *string)
{
	size_t i = 0, n, length = strlen(string);

	putc('"', out);
	while (i < length) {
		n = text_utf8(string + i, length - i);
		put_character(out, string + i, n);
		i += n > 0 ? n : 1;
	}
	putc('"', out);
}

static void
begin(struct json *j, const char *name)
{
	if (j->comma)
		putc(',', j->out);
	j->comma = true;
	if (name != NULL) {
		put_string(j->out, name);
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
json_bool(struct json *j, const char *name, bool value)
{
	begin(j, name);
	fputs(value ? "true" : "false", j->out);
}

void
json_string(struct json *j, const char *name, const char *value)
{
	begin(j, name);
	put_string(j->out, value);
}
