/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <stdlib.h>

#include "tap.h"

enum {
	DEPTH_MAX = 6,
	EVENTS_MAX = 1 << 16
};

/*
 * What a document says, as a line of events: brackets, m and s with the bytes of a member's name or a string in hexadecimal,
 * n with a number, t, f and 0 for null.  One line is written while the writer is called, one by a strict reader.
 */
struct events {
	char text[EVENTS_MAX];
	size_t length;
};

static void
add_event(struct events *e, char kind, const char *bytes, size_t length)
{
	size_t i;

	if (e->length + 2 * length + 3 > sizeof(e->text))
		return;
	e->text[e->length++] = kind;
	for (i = 0; i < length; i++)
		e->length += (size_t)snprintf(e->text + e->length, 3, "%02x", (unsigned int)(unsigned char)bytes[i]);
	e->text[e->length] = '\0';
}

static void
add_number(struct events *e, const char *digits, size_t length)
{
	e->length += (size_t)snprintf(e->text + e->length, 32, "n%.*s", (int)length, digits);
}

/* -- A strict reader (RFC 8259) --------------------------------------------- */

static const char *read_value(const char *at, struct events *e, int depth);

/* The code point of four hexadecimal digits, -1 where there are none.  Pairs of surrogates are not expected. */
static int
read_hex(const char *at)
{
	char digits[5] = "";

	memcpy(digits, at, strnlen(at, 4));
	if (strlen(digits) < 4 || strspn(digits, "0123456789abcdefABCDEF") < 4)
		return -1;
	return (int)strtol(digits, NULL, 16);
}

static size_t
put_utf8(int code, char *out)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	out[0] = (char)(0xe0 | code >> 12);
	out[1] = (char)(0x80 | (code >> 6 & 0x3f));
	out[2] = (char)(0x80 | (code & 0x3f));
	return 3;
}

/* What stands behind a backslash; returns what follows it. */
static const char *
read_escape(const char *at, char *out, size_t *n)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found = *at != '\0' ? strchr(from, *at) : NULL;
	int code;

	if (found != NULL) {
		out[(*n)++] = to[found - from];
		return at + 1;
	}
	code = *at == 'u' ? read_hex(at + 1) : -1;
	if (code < 0 || (code >= 0xd800 && code < 0xe000))
		return NULL;
	*n += put_utf8(code, out + *n);
	return at + 5;
}

static const char *
read_string(const char *at, struct events *e, char kind)
{
	char out[4096];
	size_t n = 0;

	if (*at++ != '"')
		return NULL;
	while (at != NULL && *at != '"') {
		if ((unsigned char)*at < 0x20 || n > sizeof(out) - 8)
			return NULL;
		if (*at == '\\')
			at = read_escape(at + 1, out, &n);
		else
			out[n++] = *at++;
	}
	add_event(e, kind, out, n);
	return at != NULL ? at + 1 : NULL;
}

static const char *
read_number(const char *at, struct events *e)
{
	const char *start = at;
	size_t digits;

	at += *at == '-';
	digits = strspn(at, "0123456789");
	if (digits == 0 || (*at == '0' && digits > 1))
		return NULL;
	at += digits;
	add_number(e, start, (size_t)(at - start));
	return at;
}

static const char *
read_null(const char *at, struct events *e)
{
	if (strncmp(at, "null", 4) != 0)
		return NULL;
	add_event(e, '0', "", 0);
	return at + 4;
}

static const char *
read_members(const char *at, struct events *e, char closing, int depth)
{
	if (*at == closing)
		return at;
	for (;;) {
		if (closing == '}') {
			at = read_string(at, e, 'm');
			if (at == NULL || *at++ != ':')
				return NULL;
		}
		at = read_value(at, e, depth + 1);
		if (at == NULL || *at == closing)
			return at;
		if (*at++ != ',')
			return NULL;
	}
}

static const char *
read_value(const char *at, struct events *e, int depth)
{
	const char closing = *at == '{' ? '}' : ']';

	if (*at == '"')
		return read_string(at, e, 's');
	if (*at == '-' || (*at >= '0' && *at <= '9'))
		return read_number(at, e);
	if ((*at != '{' && *at != '[') || depth > DEPTH_MAX)
		return read_null(at, e);
	add_event(e, *at, "", 0);
	at = read_members(at + 1, e, closing, depth);
	if (at == NULL)
		return NULL;
	add_event(e, closing, "", 0);
	return at + 1;
}

/* -- Random documents ------------------------------------------------------- */

/* Random well-formed UTF-8 of one to three bytes a character, controls and quotes among it. */
static void
random_string(char *out)
{
	static const char likely[] = "abc \"\\/{}[]:,\n\t\r\b\f\x1b\x01\x7f";
	int i, code;
	size_t n = 0;

	for (i = (int)below(12); i > 0; i--) {
		code = below(2) == 0 ? likely[below((int64_t)sizeof(likely) - 1)] : (int)below(0xd7ff) + 1;
		n += put_utf8(code, out + n);
	}
	out[n] = '\0';
}

static int64_t
random_number(void)
{
	static const int64_t special[] = { 0, 1, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 53 };

	return below(3) == 0 ? special[below(COUNT(special))] : (int64_t)dice() >> below(64);
}

static void write_value(struct json *j, struct events *e, const char *name, int depth);

static void
write_group(struct json *j, struct events *e, const char *name, int depth)
{
	const bool object = below(2) == 0;
	const char opening = object ? '{' : '[', closing = object ? '}' : ']';
	char member[64];
	int64_t i;

	json_open(j, name, opening);
	add_event(e, opening, "", 0);
	for (i = below(5); i > 0; i--) {
		random_string(member);
		if (object)
			add_event(e, 'm', member, strlen(member));
		write_value(j, e, object ? member : NULL, depth + 1);
	}
	json_close(j, closing);
	add_event(e, closing, "", 0);
}

static void
write_value(struct json *j, struct events *e, const char *name, int depth)
{
	const int64_t number = random_number();
	char text[64];

	switch (depth == 0 ? 4 : below(depth < DEPTH_MAX ? 5 : 3)) {
	case 0:
		json_null(j, name);
		add_event(e, '0', "", 0);
		break;
	case 1:
		json_number(j, name, number);
		(void)snprintf(text, sizeof(text), "%" PRId64, number);
		add_number(e, text, strlen(text));
		break;
	case 2:
		random_string(text);
		json_string(j, name, text);
		add_event(e, 's', text, strlen(text));
		break;
	default:
		write_group(j, e, name, depth);
	}
}

static void
test_documents(void)
{
	static struct events written, read;
	struct json j;
	char *document = NULL;
	const char *end;
	size_t size;
	int i;

	for (i = 0; i < 2000; i++) {
		written.length = read.length = 0;
		j = (struct json){ open_memstream(&document, &size), false };
		if (!each(j.out != NULL, "out of memory"))
			break;
		write_value(&j, &written, NULL, 0);
		(void)fclose(j.out);
		end = read_value(document, &read, 0);
		each(end != NULL && *end == '\0', "not JSON: %s", document);
		each(strcmp(written.text, read.text) == 0, "%s: %s, wanted %s", document, read.text, written.text);
		free(document);
	}
	each_ok("a strict reader reads what was written");
}

/* -- Strings ---------------------------------------------------------------- */

static const struct {
	const char *bytes;
	const char *read; /* NULL: the same */
} strings[] = {
	{ "", NULL },
	{ "plain", NULL },
	{ "\"quoted\"", NULL },
	{ "back\\slash", NULL },
	{ "\\n", NULL },
	{ "\\u0041", NULL },
	{ "</script>", NULL },
	{ "\b\f\n\r\t", NULL },
	{ "\x01\x1f\x7f", NULL },
	{ "gr\xc3\xbc\xc3\x9f", NULL },
	{ "\xe2\x82\xac", NULL },
	{ "\xf0\x9f\x94\x92", NULL },
	{ "\xc2\x85\xc2\x9b", NULL },	      /* C1 controls, which are UTF-8 */
	{ "\xd8\x9c\xe2\x80\xae", NULL },     /* characters that turn the direction */
	{ "\xe2\x80\xa8\xe2\x80\xa9", NULL }, /* separators of lines and paragraphs */
	{ "\xff", "\\xff" },
	{ "a\x80z", "a\\x80z" },
	{ "\xc3", "\\xc3" },
	{ "\xe2\x82", "\\xe2\\x82" },
	{ "\xc0\xaf", "\\xc0\\xaf" },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
	{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
	{ "\xfe\xc3\xbc", "\\xfe\xc3\xbc" },
};

static void
test_strings(void)
{
	static struct events wanted, read;
	const char *text;
	char buffer[256];
	struct json j;
	size_t i;

	for (i = 0; i < COUNT(strings); i++) {
		j = (struct json){ fmemopen(buffer, sizeof(buffer), "w"), false };
		if (!ok(j.out != NULL, "a stream for string %zu", i))
			return;
		json_string(&j, NULL, strings[i].bytes);
		(void)fclose(j.out);
		wanted.length = read.length = 0;
		text = strings[i].read != NULL ? strings[i].read : strings[i].bytes;
		add_event(&wanted, 's', text, strlen(text));
		ok(read_value(buffer, &read, 0) != NULL, "string %zu is JSON: %s", i, buffer);
		is_str(read.text, wanted.text, "string %zu is read as it should be", i);
	}
}

static void
test_layout(void)
{
	char buffer[256];
	struct json j = { fmemopen(buffer, sizeof(buffer), "w"), false };

	if (!ok(j.out != NULL, "a stream"))
		return;
	json_open(&j, NULL, '{');
	json_number(&j, "a", INT64_MIN);
	json_open(&j, "b", '[');
	json_open(&j, NULL, '{');
	json_close(&j, '}');
	json_null(&j, NULL);
	json_close(&j, ']');
	json_string(&j, "c", "d\xff");
	json_close(&j, '}');
	(void)fclose(j.out);
	is_str(buffer, "{\"a\":-9223372036854775808,\"b\":[{},null],\"c\":\"d\\\\xff\",\"c_hex\":\"64ff\"}",
	    "commas and colons in their places");
}

int
main(void)
{
	test_layout();
	test_strings();
	test_documents();
	return tap_end();
}
