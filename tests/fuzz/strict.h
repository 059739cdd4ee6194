/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_STRICT_H
#define DLOCK_TESTS_FUZZ_STRICT_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Strict readers of what dlock prints, apart from the code that prints it: JSON (RFC 8259) in a line, and the text
 * format of Prometheus.
 */
enum {
	JSON_MEMBERS = 512,
	JSON_PATH = 64
};

enum json_kind {
	JSON_ABSENT,
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_OBJECT, /* and lists: what is in them stands behind them */
};

/* Every value in the document, by where it stands: "", "owner.pid", "nodes.0.state". */
struct json_read {
	struct {
		char path[JSON_PATH];
		enum json_kind kind;
		char *text; /* of a string decoded, of a number its digits */
	} value[JSON_MEMBERS];
	int count;
};

/*
 * Read one object from a text; returns what follows the newline behind it, or NULL if there is anything but that.  A
 * member that comes twice, a string that is no UTF-8 or has a NUL in it, a number that is no integer, are errors.
 */
const char *json_read_line(const char *text, struct json_read *);
void json_read_free(struct json_read *);

enum json_kind json_kind_of(const struct json_read *, const char *path);

/* The text of the string or number at the path; "" for anything else. */
const char *json_text_of(const struct json_read *, const char *path);

/* Is it that string, null where that is NULL; that number? */
bool json_has_string(const struct json_read *, const char *path, const char *string);
bool json_has_number(const struct json_read *, const char *path, long long number);

/*
 * Read a text in Prometheus's format of which every sample has one label, by HELP, TYPE and samples that stand
 * together. `tell` gets each sample with the label's value decoded.  False for anything else, or for a series that
 * comes twice.
 */
bool prometheus_read(const char *text,
    void (*tell)(void *context, const char *metric, const char *label, const char *value, const char *number),
    void *context);

#endif
