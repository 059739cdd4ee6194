/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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

/* -- Output ----------------------------------------------------------------- */

bool
is_harmless(const char *text)
{
	size_t length;

	for (; *text != '\0'; text += length) {
		length = text_utf8(text, strlen(text));
		if (length == 0)
			return false;
	}
	return true;
}

bool
is_sentence(const char *text)
{
	return text[0] != '\0' && is_harmless(text);
}
