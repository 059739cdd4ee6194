/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
interrupt(int signal)
{
	(void)signal;
	(void)raise(SIGINT);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sigaction action = { .sa_handler = interrupt };

	(void)argc;
	(void)argv;
	return sigaction(SIGXCPU, &action, NULL);
}

void
fuzz_fail(const char *what, const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: broken: %s: ", file, line, what);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

/* -- Input ------------------------------------------------------------------ */

struct input
input_of(const uint8_t *bytes, size_t length)
{
	return (struct input){ bytes, length };
}

unsigned int
input_byte(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

int64_t
input_number(struct input *in)
{
	static const int64_t borders[] = { INT64_MIN, INT64_MIN + 1, -2, -1, INT64_MAX, INT64_MAX - 1, INT64_MAX / 1000,
		(int64_t)1 << 53, (int64_t)1 << 50, (int64_t)1 << 32, INT32_MAX, INT64_C(1800000000000000) };
	const unsigned int first = input_byte(in);
	uint64_t number = 0;

	if (first < 0xe0)
		return (int64_t)first;
	if (first - 0xe0 < sizeof(borders) / sizeof(borders[0]))
		return borders[first - 0xe0];
	for (int i = 0; i < (first < 0xf8 ? 3 : 8); i++)
		number = number << 8 | input_byte(in);
	return (int64_t)number;
}

static char *
copy(const uint8_t *bytes, size_t length)
{
	char *string = malloc(length + 1);

	must(string != NULL, "no memory");
	if (length > 0)
		memcpy(string, bytes, length);
	string[length] = '\0';
	return string;
}

char *
input_string(struct input *in, size_t most)
{
	const uint8_t *const nul = in->left > 0 ? memchr(in->at, 0, in->left) : NULL;
	const size_t length = nul != NULL ? (size_t)(nul - in->at) : in->left;
	char *string = copy(in->at, length < most ? length : most);

	in->at += length;
	in->left -= length;
	(void)input_byte(in);
	return string;
}

/* -- UTF-8, independent of the code under test ------------------------------ */

/* The length of a well-formed character; 0 if it is ill-formed (The Unicode Standard, table 3-7). */
static size_t
character(const unsigned char *s, unsigned long *code)
{
	static const struct {
		unsigned char first, last, low, high;
		size_t length;
	} rows[] = {
		{ 0x00, 0x7f, 0, 0, 1 },
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	size_t row;

	for (row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		if (s[0] >= rows[row].first && s[0] <= rows[row].last)
			break;
	}
	if (row == sizeof(rows) / sizeof(rows[0]))
		return 0;
	*code = s[0] & masks[rows[row].length];
	for (size_t i = 1; i < rows[row].length; i++) {
		if (s[i] < (i == 1 ? rows[row].low : 0x80) || s[i] > (i == 1 ? rows[row].high : 0xbf))
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	return rows[row].length;
}

/* Is it a C0 or C1 control character, a line or paragraph separator, or a bidirectional control? */
static bool
is_obeyed(unsigned long code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
	    (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

bool
is_harmless(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	unsigned long code = 0;
	size_t length;

	for (; *at != '\0'; at += length) {
		length = character(at, &code);
		if (length == 0 || is_obeyed(code))
			return false;
	}
	return true;
}

bool
is_sentence(const char *text)
{
	return text[0] != '\0' && is_harmless(text);
}
