/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_FUZZ_H
#define DLOCK_TESTS_FUZZ_FUZZ_H
/*
 * Shared by the fuzz targets.
 *
 * A target is LLVMFuzzerTestOneInput().  It accepts any bytes, ends soon, leaves no state that affects a later input,
 * and aborts if the code violates an assertion.  libFuzzer calls it with generated inputs, replay.c with the inputs
 * of the corpus.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* libFuzzer calls it once.  At the limit of CPU time libFuzzer then ends as by ^C and prints its statistics. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* An assertion.  The further arguments are a printf format and its arguments. */
#define must(condition, ...) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__, __VA_ARGS__))

_Noreturn void fuzz_fail(const char *what, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* -- Input ------------------------------------------------------------------ */

/* Bytes that are consumed from the front.  After the end, everything that is read is zero or "". */
struct input {
	const uint8_t *at;
	size_t left;
};

struct input input_of(const uint8_t *bytes, size_t length);

unsigned int input_byte(struct input *);

/* A number.  Small numbers and the limits of the integer types are frequent. */
int64_t input_number(struct input *);

/*
 * The bytes before the next NUL as a string, truncated to `most` bytes.  Its memory has the exact size, so that a
 * sanitizer detects reads behind it.  The caller must free it.
 */
char *input_string(struct input *, size_t most);

/* -- Output ----------------------------------------------------------------- */

/* Is it UTF-8 that can be printed, as text_utf8() has it, which a unit test compares with all of Unicode? */
bool is_harmless(const char *text);

/* The same, and a single line that is not empty, as required for an error message? */
bool is_sentence(const char *text);

#endif
