/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct text
text_in(char *buffer, size_t size)
{
	struct text t = { buffer, size, 0, 0, false };

	buffer[0] = '\0';
	return t;
}

/*
 * `length` more bytes are in the buffer.  If they are too many, remove as many whole pieces as needed to make room for
 * "...".
 */
static void
take(struct text *t, size_t length)
{
	t->cut = length >= t->size - t->length;
	if (!t->cut)
		t->length += length;
	t->buffer[t->length] = '\0';
	if (!t->cut && t->length + 3 < t->size)
		t->keep = t->length;
	if (t->cut && t->size >= 4) {
		memcpy(t->buffer + t->keep, "...", 4);
		t->length = t->keep + 3;
	}
}

void
text_add(struct text *t, const char *bytes, size_t length)
{
	if (t->cut)
		return;
	if (length < t->size - t->length)
		memcpy(t->buffer + t->length, bytes, length);
	take(t, length);
}

void
text_addf(struct text *t, const char *format, ...)
{
	va_list args;
	int length;

	if (t->cut)
		return;
	va_start(args, format);
	length = vsnprintf(t->buffer + t->length, t->size - t->length, format, args);
	va_end(args);
	take(t, length < 0 ? SIZE_MAX : (size_t)length);
}

size_t
text_character(const char *bytes, size_t length, unsigned long *code)
{
	const unsigned char *s = (const unsigned char *)bytes;
	static const unsigned long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n, i;

	if (length == 0)
		return 0;
	*code = s[0];
	if (s[0] < 0x80)
		return 1;
	n = s[0] >= 0xf0 && s[0] < 0xf8 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] >= 0xf8 || n > length)
		return 0;
	*code &= 0xffu >> (n + 1);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	return *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : n;
}

size_t
text_utf8(const char *bytes, size_t length)
{
	unsigned long code = 0;
	const size_t n = text_character(bytes, length, &code);
	/*
	 * Control characters, and those that change the writing direction or start a new line: they could forge output.
	 */
	const bool misleads = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
	    code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);

	return misleads ? 0 : n;
}

void
text_add_shown(struct text *t, const char *bytes, size_t length)
{
	static const char raw[] = "\n\t\r\033", letters[] = "ntre";
	size_t i, n;
	const char *at;

	for (i = 0; i < length; i += n == 0 ? 1 : n) {
		n = text_utf8(bytes + i, length - i);
		if (bytes[i] == '\\')
			text_add(t, "\\\\", 2);
		else if (n > 0)
			text_add(t, bytes + i, n);
		else if (bytes[i] != '\0' && (at = strchr(raw, bytes[i])) != NULL)
			text_addf(t, "\\%c", letters[at - raw]);
		else
			text_addf(t, "\\x%02x", (unsigned int)(unsigned char)bytes[i]);
	}
}

char *
text_show(const char *string, char *buffer, size_t size)
{
	struct text t = text_in(buffer, size);

	text_add_shown(&t, string, strlen(string));
	return buffer;
}

/* Characters that take two columns or none, in order; all others take one. */
static const struct {
	unsigned long first, last;
	size_t columns;
} widths[] = { { 0x300, 0x36f, 0 }, { 0x483, 0x489, 0 }, { 0x591, 0x5bd, 0 }, { 0x610, 0x61a, 0 }, { 0x64b, 0x65f, 0 },
	{ 0x670, 0x670, 0 }, { 0x6d6, 0x6dc, 0 }, { 0x93c, 0x93c, 0 }, { 0x941, 0x948, 0 }, { 0x94d, 0x94d, 0 },
	{ 0xe31, 0xe31, 0 }, { 0xe34, 0xe3a, 0 }, { 0xe47, 0xe4e, 0 }, { 0x1100, 0x115f, 2 }, { 0x1160, 0x11ff, 0 },
	{ 0x1ab0, 0x1aff, 0 }, { 0x1dc0, 0x1dff, 0 }, { 0x200b, 0x200d, 0 }, { 0x2060, 0x2060, 0 },
	{ 0x20d0, 0x20ff, 0 }, { 0x231a, 0x231b, 2 }, { 0x2329, 0x232a, 2 }, { 0x23e9, 0x23ec, 2 },
	{ 0x23f0, 0x23f0, 2 }, { 0x23f3, 0x23f3, 2 }, { 0x25fd, 0x25fe, 2 }, { 0x2614, 0x2615, 2 },
	{ 0x2648, 0x2653, 2 }, { 0x267f, 0x267f, 2 }, { 0x2693, 0x2693, 2 }, { 0x26a1, 0x26a1, 2 },
	{ 0x26aa, 0x26ab, 2 }, { 0x26bd, 0x26be, 2 }, { 0x26c4, 0x26c5, 2 }, { 0x26ce, 0x26ce, 2 },
	{ 0x26d4, 0x26d4, 2 }, { 0x26ea, 0x26ea, 2 }, { 0x26f2, 0x26f3, 2 }, { 0x26f5, 0x26f5, 2 },
	{ 0x26fa, 0x26fa, 2 }, { 0x26fd, 0x26fd, 2 }, { 0x2705, 0x2705, 2 }, { 0x270a, 0x270b, 2 },
	{ 0x2728, 0x2728, 2 }, { 0x274c, 0x274c, 2 }, { 0x274e, 0x274e, 2 }, { 0x2753, 0x2755, 2 },
	{ 0x2757, 0x2757, 2 }, { 0x2795, 0x2797, 2 }, { 0x27b0, 0x27b0, 2 }, { 0x27bf, 0x27bf, 2 },
	{ 0x2b1b, 0x2b1c, 2 }, { 0x2b50, 0x2b50, 2 }, { 0x2b55, 0x2b55, 2 }, { 0x2e80, 0x3029, 2 },
	{ 0x302a, 0x302d, 0 }, { 0x302e, 0x303e, 2 }, { 0x3041, 0x3098, 2 }, { 0x3099, 0x309a, 0 },
	{ 0x309b, 0xa4cf, 2 }, { 0xa960, 0xa97c, 2 }, { 0xac00, 0xd7a3, 2 }, { 0xf900, 0xfaff, 2 },
	{ 0xfe00, 0xfe0f, 0 }, { 0xfe10, 0xfe19, 2 }, { 0xfe20, 0xfe2f, 0 }, { 0xfe30, 0xfe6f, 2 },
	{ 0xff00, 0xff60, 2 }, { 0xffe0, 0xffe6, 2 }, { 0x16fe0, 0x1b2ff, 2 }, { 0x1f004, 0x1f004, 2 },
	{ 0x1f0cf, 0x1f0cf, 2 }, { 0x1f18e, 0x1f18e, 2 }, { 0x1f191, 0x1f19a, 2 }, { 0x1f200, 0x1f64f, 2 },
	{ 0x1f680, 0x1f6ff, 2 }, { 0x1f7e0, 0x1f7f0, 2 }, { 0x1f900, 0x1f9ff, 2 }, { 0x1fa70, 0x1faff, 2 },
	{ 0x20000, 0x3fffd, 2 }, { 0xe0100, 0xe01ef, 0 } };

size_t
text_fitting(const char *shown, size_t columns, size_t *taken)
{
	const size_t length = strlen(shown);
	size_t at, n, i, width;
	unsigned long code;

	*taken = 0;
	for (at = 0; at < length; at += n == 0 ? 1 : n) {
		n = text_character(shown + at, length - at, &code);
		width = 1;
		for (i = 0; n > 0 && i < sizeof(widths) / sizeof(widths[0]) && code >= widths[i].first; i++) {
			if (code <= widths[i].last)
				width = widths[i].columns;
		}
		if (*taken + width > columns)
			break;
		*taken += width;
	}
	return at;
}

size_t
text_columns(const char *shown)
{
	size_t columns;

	(void)text_fitting(shown, SIZE_MAX, &columns);
	return columns;
}

bool
text_begins_as(const char *text, size_t length, const char *shape)
{
	for (; *shape != '\0'; text++, shape++) {
		if (length-- == 0 || *text == '\0')
			return false;
		if (*shape == '#' ? strchr("0123456789abcdef", *text) == NULL : *text != *shape)
			return false;
	}
	return true;
}

/* -- Secrets ---------------------------------------------------------------- */

#define SECRET_SIZE 512

static char secrets[SECRET_TOKEN + 1][SECRETS_MAX][SECRET_SIZE];
static size_t kept[SECRET_TOKEN + 1];
static bool begins[256]; /* does a secret begin with this character? */

/* Of all of these: a password may change while another thread shows text. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void
text_keep_secret(enum secret kind, const char *secret, size_t length)
{
	char *room;

	if (length == 0 || length >= SECRET_SIZE)
		return;
	(void)pthread_mutex_lock(&mutex);
	room = secrets[kind][kept[kind] % SECRETS_MAX];
	memcpy(room, secret, length);
	room[length] = '\0';
	begins[(unsigned char)*secret] = true;
	kept[kind]++;
	(void)pthread_mutex_unlock(&mutex);
}

/* The length of the longest secret at the start; 0: there is none. */
static size_t
secret_at(const char *bytes, size_t length)
{
	size_t kind, i, n, longest = 0;

	for (kind = 0; kind <= SECRET_TOKEN && begins[(unsigned char)*bytes]; kind++) {
		for (i = 0; i < kept[kind] && i < SECRETS_MAX; i++) {
			n = strlen(secrets[kind][i]);
			if (n > longest && n <= length && memcmp(secrets[kind][i], bytes, n) == 0)
				longest = n;
		}
	}
	return longest;
}

void
text_add_quoted(struct text *t, const char *bytes, size_t length)
{
	size_t from = 0, at, n;

	(void)pthread_mutex_lock(&mutex);
	for (at = 0; at < length && !t->cut; at += n > 0 ? n : 1) {
		n = secret_at(bytes + at, length - at);
		if (n == 0)
			continue;
		text_add_shown(t, bytes + from, at - from);
		text_add(t, "*", 1);
		from = at + n;
	}
	(void)pthread_mutex_unlock(&mutex);
	text_add_shown(t, bytes + from, length - from);
}

char *
text_quote(const char *string, char *buffer, size_t size)
{
	struct text t = text_in(buffer, size);

	text_add_quoted(&t, string, strlen(string));
	return buffer;
}
