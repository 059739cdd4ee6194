/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text
text_in(char *buffer, size_t size)
{
	struct text t = { buffer, size, 0, false };

	buffer[0] = '\0';
	return t;
}

/* Take back as much as "..." needs, never leaving half of a character of UTF-8. */
static void
cut(struct text *t)
{
	t->cut = true;
	if (t->size < 4)
		return;
	if (t->length > t->size - 4)
		t->length = t->size - 4;
	while (t->length > 0 && ((unsigned char)t->buffer[t->length] & 0xc0) == 0x80)
		t->length--;
	memcpy(t->buffer + t->length, "...", 4);
	t->length += 3;
}

void
text_add(struct text *t, const char *bytes, size_t length)
{
	if (t->cut)
		return;
	if (length >= t->size - t->length) {
		cut(t);
		return;
	}
	memcpy(t->buffer + t->length, bytes, length);
	t->length += length;
	t->buffer[t->length] = '\0';
}

void
text_addf(struct text *t, const char *format, ...)
{
	char piece[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	text_add(t, piece, strlen(piece));
}

size_t
text_utf8(const char *bytes, size_t length)
{
	const unsigned char *s = (const unsigned char *)bytes;
	static const unsigned long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned long code;
	size_t n, i;

	if (length == 0 || s[0] < 0x20 || s[0] == 0x7f)
		return 0;
	if (s[0] < 0x80)
		return 1;
	n = s[0] >= 0xf0 && s[0] < 0xf8 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] >= 0xf8 || n > length)
		return 0;
	code = s[0] & (0xffu >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || code < 0xa0)
		return 0;
	/* What turns the direction of writing or starts a new line could fake what is shown. */
	if ((code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0x200e ||
	    code == 0x200f)
		return 0;
	return n;
}

static void
add_escape(struct text *t, unsigned char c)
{
	switch (c) {
	case '\n':
		text_add(t, "\\n", 2);
		break;
	case '\t':
		text_add(t, "\\t", 2);
		break;
	case '\r':
		text_add(t, "\\r", 2);
		break;
	case 0x1b:
		text_add(t, "\\e", 2);
		break;
	default:
		text_addf(t, "\\x%02x", c);
	}
}

void
text_add_shown(struct text *t, const char *bytes, size_t length)
{
	size_t i = 0, n;

	while (i < length) {
		n = text_utf8(bytes + i, length - i);
		if (bytes[i] == '\\')
			text_add(t, "\\\\", 2);
		else if (n > 0)
			text_add(t, bytes + i, n);
		else
			add_escape(t, (unsigned char)bytes[i]);
		i += n > 0 ? n : 1;
	}
}

char *
text_show(const char *string, char *buffer, size_t size)
{
	struct text t = text_in(buffer, size);

	text_add_shown(&t, string, strlen(string));
	return buffer;
}

size_t
text_columns(const char *shown)
{
	size_t columns = 0;

	for (; *shown != '\0'; shown++)
		columns += ((unsigned char)*shown & 0xc0) != 0x80;
	return columns;
}
