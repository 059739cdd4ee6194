/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_TEXT_H
#define DLOCK_BASE_TEXT_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Text in a buffer of the caller, always terminated.  A piece that does not fit is omitted entirely, and the text then
 * ends in "..."; adding never fails.
 */
struct text {
	char *buffer;
	size_t size;
	size_t length;
	size_t keep; /* the part of it that leaves room for "..." */
	bool cut;
};

struct text text_in(char *buffer, size_t size);
void text_add(struct text *, const char *bytes, size_t length);
void text_addf(struct text *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Add bytes of unknown origin, escaped: printable ASCII and well-formed UTF-8 unchanged, a backslash doubled,
 * everything else as \n, \t, \r, \e or \xHH, so that no control sequence reaches a terminal.
 */
void text_add_shown(struct text *, const char *bytes, size_t length);

/* The same for a string, into a buffer; returns the buffer. */
char *text_show(const char *string, char *buffer, size_t size);

/* The length in bytes of the well-formed UTF-8 character at the start, and its code; 0 if there is none. */
size_t text_character(const char *bytes, size_t length, unsigned long *code);

/* The length in bytes of the well-formed, printable UTF-8 character at the start; 0 if there is none. */
size_t text_utf8(const char *bytes, size_t length);

/* The number of terminal columns of an escaped text: two for a wide East Asian character, none for a combining one. */
size_t text_columns(const char *shown);

/* The number of bytes of an escaped text that fit into `columns`; *taken is the number of columns that these take. */
size_t text_fitting(const char *shown, size_t columns, size_t *taken);

/* Does the text begin as this shape, in which # stands for a hexadecimal digit in lower case? */
bool text_begins_as(const char *text, size_t length, const char *shape);

/*
 * Remember a password or a token of this process, at most SECRETS_MAX of either; then the oldest is forgotten.
 * Other threads may show text meanwhile.
 */
enum secret {
	SECRET_PASSWORD,
	SECRET_TOKEN
};
enum {
	SECRETS_MAX = 16
};
void text_keep_secret(enum secret, const char *secret, size_t length);

/* text_add_shown() and text_show() for text of a server, which may repeat a secret: each becomes one "*". */
void text_add_quoted(struct text *, const char *bytes, size_t length);
char *text_quote(const char *string, char *buffer, size_t size);

#endif
