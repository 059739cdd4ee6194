/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_FUZZ_H
#define DLOCK_TESTS_FUZZ_FUZZ_H
/*
 * What the fuzz targets share.
 *
 * A target is LLVMFuzzerTestOneInput(): it takes any bytes, ends soon, leaves nothing behind that a later input would
 * notice, and aborts where the code breaks a promise.  libFuzzer calls it with inputs that it makes up, replay.c with
 * those of the corpus.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* libFuzzer calls it once: at the limit of processor time it is to end as by ^C, and to print its figures. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A promise; what follows is a format as printf's, and what belongs to it. */
#define must(condition, ...) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__, __VA_ARGS__))

_Noreturn void fuzz_fail(const char *what, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* -- Input ------------------------------------------------------------------ */

/* Bytes that are used up from the front.  Where they have ended all that is read is zero or "". */
struct input {
	const uint8_t *at;
	size_t left;
};

struct input input_of(const uint8_t *bytes, size_t length);

unsigned int input_byte(struct input *);

/* A number; small ones and the borders of what numbers can be are frequent. */
int64_t input_number(struct input *);

/*
 * What stands before the next NUL, as a string in memory of its very size, so that a sanitizer sees what is read
 * behind it; it is cut to `most` bytes.  The caller's to free.
 */
char *input_string(struct input *, size_t most);

/* All that is left, likewise; a NUL in it ends the string early. */
char *input_rest(struct input *);

/* -- Output ----------------------------------------------------------------- */

/* Whatever is printed to standard output from begin to end, as a string that is good until the next begin. */
void capture_begin(void);
const char *capture_end(void);

/* Is it well-formed UTF-8 without anything that a terminal would obey, nor what turns the direction of writing? */
bool is_harmless(const char *text);

/* The same, and one line that is not empty: what the sentence of an error has to be. */
bool is_sentence(const char *text);

/* Is it well-formed UTF-8? */
bool is_utf8(const char *text);

/* As a string without NULs is to be shown to people, by the book; the caller's to free. */
char *shown_form(const char *text);

#endif
