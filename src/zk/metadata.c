/* SPDX-License-Identifier: MIT */
#include "zk/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define DEPTH_MAX 8

char *
metadata_write(const struct metadata *m)
{
	struct json j = { .out = NULL };
	char *text = NULL;
	size_t length;
	int i;

	j.out = open_memstream(&text, &length);
	if (j.out == NULL)
		return NULL;
	json_open(&j, NULL, '{');
	json_number(&j, "dlock", 1);
	json_string(&j, "owner", m->owner);
	json_string(&j, "label", m->label);
	json_number(&j, "ttl_ms", m->ttl_ms);
	json_number(&j, "since_ms", m->since_ms);
	if (m->kept_by[0] != '\0')
		json_string(&j, "kept", m->kept_by);
	if (m->broken[0] != '\0')
		json_string(&j, "broken", m->broken);
	json_open(&j, "holds", '[');
	for (i = 0; i < m->holds; i++)
		json_string(&j, NULL, m->hold[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	if (fclose(j.out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* -- Reading JSON ----------------------------------------------------------- */

/* Text that is being read; `bad` if it is not JSON. */
struct reader {
	const char *at, *end;
	bool bad;
};

static char
peek(struct reader *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) != NULL && *r->at != '\0')
		r->at++;
	return r->at < r->end ? *r->at : '\0';
}

static bool
take(struct reader *r, char c)
{
	if (peek(r) != c || c == '\0')
		return false;
	r->at++;
	return true;
}

static void
expect(struct reader *r, char c)
{
	if (!take(r, c))
		r->bad = true;
}

static unsigned int
read_hex(struct reader *r, int count)
{
	unsigned int value = 0;
	const char *digit;
	int i;

	for (i = 0; i < count; i++) {
		static const char digits[] = "0123456789abcdef0123456789ABCDEF";

		digit = r->at < r->end && *r->at != '\0' ? strchr(digits, *r->at) : NULL;
		if (digit == NULL) {
			r->bad = true;
			return 0;
		}
		value = value << 4 | (unsigned int)((digit - digits) & 15);
		r->at++;
	}
	return value;
}

/* Write a code point of at most four hexadecimal digits as UTF-8.  A half of a pair becomes "?". */
static size_t
encode(unsigned int code, char out[3])
{
	if (code < 0x80) {
		out[0] = (char)(code == 0 ? '?' : code);
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code >= 0xd800 && code <= 0xdfff) {
		out[0] = '?';
		return 1;
	}
	out[0] = (char)(0xe0 | code >> 12);
	out[1] = (char)(0x80 | (code >> 6 & 0x3f));
	out[2] = (char)(0x80 | (code & 0x3f));
	return 3;
}

/* Read one character of a string, which may be escaped.  Returns its number of bytes. */
static size_t
read_character(struct reader *r, char out[3])
{
	static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *escape;

	out[0] = *r->at++;
	if (out[0] != '\\')
		return 1;
	if (r->at == r->end)
		return 0;
	if (*r->at == 'u') {
		r->at++;
		return encode(read_hex(r, 4), out);
	}
	escape = *r->at != '\0' ? strchr(escapes, *r->at) : NULL;
	if (escape == NULL) {
		r->bad = true;
		return 0;
	}
	out[0] = meanings[escape - escapes];
	r->at++;
	return 1;
}

/* Read a string; what does not fit into `size` is cut off.  size 0: nothing is stored. */
static void
read_string(struct reader *r, char *text, size_t size)
{
	size_t n = 0, length;
	char c[3];

	expect(r, '"');
	while (!r->bad && r->at < r->end && *r->at != '"') {
		length = read_character(r, c);
		if (n + length < size) {
			memcpy(text + n, c, length);
			n += length;
		} else if (size > 0)
			size = n + 1;
	}
	if (size > 0)
		text[n] = '\0';
	expect(r, '"');
}

static int64_t
read_number(struct reader *r)
{
	const bool negative = take(r, '-');
	int64_t value = 0;
	int digits = 0;

	(void)peek(r);
	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++, digits++) {
		if (digits < 18)
			value = value * 10 + (*r->at - '0');
	}
	if (digits == 0 || digits > 18)
		r->bad = true;
	return negative ? -value : value;
}

/* Skip a number, true, false or null. */
static void
skip_word(struct reader *r)
{
	const char *const begin = r->at;

	while (r->at < r->end && *r->at != '\0' && strchr("{}[]:,\" \t\r\n", *r->at) == NULL)
		r->at++;
	r->bad = r->bad || r->at == begin;
}

/* Skip a value that another version of dlock may have written.  Of lists only the brackets are counted. */
static void
skip_value(struct reader *r)
{
	int depth = 0;

	do {
		switch (peek(r)) {
		case '"':
			read_string(r, NULL, 0);
			break;
		case '{':
		case '[':
			r->at++;
			r->bad = r->bad || depth++ == DEPTH_MAX;
			break;
		case '}':
		case ']':
			r->at++;
			r->bad = r->bad || depth-- == 0;
			break;
		case ',':
		case ':':
			r->at++;
			r->bad = r->bad || depth == 0;
			break;
		default:
			skip_word(r);
		}
	} while (!r->bad && depth > 0);
}

/* -- The members ------------------------------------------------------------ */

/* Read the bytes of a text that is not UTF-8; they replace its escaped form. */
static void
read_bytes(struct reader *r, char *text, size_t size)
{
	size_t n;
	char byte;

	expect(r, '"');
	for (n = 0; !r->bad && r->at < r->end && *r->at != '"'; n++) {
		byte = (char)read_hex(r, 2);
		r->bad = r->bad || byte == '\0' || n + 1 >= size;
		if (!r->bad)
			text[n] = byte;
	}
	if (n < size)
		text[n] = '\0';
	expect(r, '"');
}

/* Read the name of an option, which is printed as it is. */
static void
read_option(struct reader *r, char *name, size_t size)
{
	read_string(r, name, size);
	r->bad = r->bad || name[0] == '\0' || strspn(name, "abcdefghijklmnopqrstuvwxyz-") != strlen(name);
}

static void
read_holds(struct reader *r, struct metadata *m)
{
	expect(r, '[');
	if (take(r, ']'))
		return;
	do {
		if (m->holds == METADATA_HOLDS)
			r->bad = true;
		else
			read_string(r, m->hold[m->holds++], METADATA_HOLD_LENGTH + 1);
	} while (!r->bad && take(r, ','));
	expect(r, ']');
}

static void
read_member(struct reader *r, struct metadata *m, int64_t *version)
{
	char name[16];

	(void)peek(r);
	read_string(r, name, sizeof(name));
	expect(r, ':');
	if (strcmp(name, "dlock") == 0)
		*version = read_number(r);
	else if (strcmp(name, "owner") == 0)
		read_string(r, m->owner, sizeof(m->owner));
	else if (strcmp(name, "owner_hex") == 0)
		read_bytes(r, m->owner, sizeof(m->owner));
	else if (strcmp(name, "label") == 0)
		read_string(r, m->label, sizeof(m->label));
	else if (strcmp(name, "label_hex") == 0)
		read_bytes(r, m->label, sizeof(m->label));
	else if (strcmp(name, "ttl_ms") == 0)
		m->ttl_ms = read_number(r);
	else if (strcmp(name, "since_ms") == 0)
		m->since_ms = read_number(r);
	else if (strcmp(name, "kept") == 0)
		read_option(r, m->kept_by, sizeof(m->kept_by));
	else if (strcmp(name, "broken") == 0)
		read_string(r, m->broken, sizeof(m->broken));
	else if (strcmp(name, "holds") == 0)
		read_holds(r, m);
	else
		skip_value(r);
}

bool
metadata_read(const char *bytes, size_t length, struct metadata *m)
{
	struct reader r = { bytes, bytes + length, length > METADATA_MAX };
	int64_t version = 0;

	memset(m, 0, sizeof(*m));
	if (r.bad || !take(&r, '{'))
		return false;
	do {
		read_member(&r, m, &version);
	} while (!r.bad && take(&r, ','));
	expect(&r, '}');
	return !r.bad && peek(&r) == '\0' && r.at == r.end && version == 1 && m->ttl_ms >= 0 && m->since_ms >= 0;
}

/* -- Holds ------------------------------------------------------------------ */

int
metadata_holds(const struct metadata *m)
{
	return m->holds > 0 ? m->holds : 1;
}

static int
find_hold(const struct metadata *m, const char *hold)
{
	int i;

	for (i = 0; i < m->holds; i++) {
		if (strcmp(m->hold[i], hold) == 0)
			return i;
	}
	return -1;
}

bool
metadata_has_hold(const struct metadata *m, const char *hold)
{
	return m->holds == 0 ? strcmp(hold, METADATA_FIRST_HOLD) == 0 : find_hold(m, hold) >= 0;
}

bool
metadata_add_hold(struct metadata *m, const char *hold)
{
	if (m->holds == 0)
		(void)snprintf(m->hold[m->holds++], sizeof(m->hold[0]), "%s", METADATA_FIRST_HOLD);
	if (find_hold(m, hold) >= 0) /* added by an earlier try, whose reply was lost */
		return true;
	if (m->holds == METADATA_HOLDS)
		return false;
	(void)snprintf(m->hold[m->holds++], sizeof(m->hold[0]), "%s", hold);
	return true;
}

bool
metadata_remove_hold(struct metadata *m, const char *hold)
{
	const int at = find_hold(m, hold);

	if (at < 0)
		return false;
	m->holds--;
	memmove(m->hold[at], m->hold[at + 1], (size_t)(m->holds - at) * sizeof(m->hold[0]));
	return true;
}
