/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_TEXT_H
#define DLOCK_BASE_TEXT_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Text in a buffer of the caller's, always terminated.  What does not fit is left out whole, and the text ends in
 * "..." then; adding never fails.
 */
struct text {
	char *buffer;
	size_t size;
	size_t length;
	size_t keep; /* of these, what leaves room for "..." */
	bool cut;
};

struct text text_in(char *buffer, size_t size);
void text_add(struct text *, const char *bytes, size_t length);
void text_addf(struct text *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Add bytes of unknown origin as they are shown to people: printable ASCII and well-formed UTF-8 as they are, a
 * backslash doubled, everything else as \n, \t, \r, \e or \xHH, so that no terminal is ever told to do anything.
 */
void text_add_shown(struct text *, const char *bytes, size_t length);

/* The same for a string, into a buffer; returns the buffer. */
char *text_show(const char *string, char *buffer, size_t size);

/* How many bytes the well-formed UTF-8 character at the start has, and which it is; 0 if there is none. */
size_t text_character(const char *bytes, size_t length, unsigned long *code);

/* How many bytes the well-formed, printable UTF-8 character at the start has; 0 if there is none. */
size_t text_utf8(const char *bytes, size_t length);

/* How many columns of a terminal a shown text takes: two for a character of East Asia, none for one that joins another. */
size_t text_columns(const char *shown);

/* How many bytes of a shown text fit into so many columns; *taken becomes how many columns these take. */
size_t text_fitting(const char *shown, size_t columns, size_t *taken);

/* Put one * in the place of each occurrence of a secret; nothing happens where it is empty. */
void text_hide(char *text, const char *secret);

#endif
