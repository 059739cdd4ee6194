/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_STRICT_H
#define DLOCK_TESTS_FUZZ_STRICT_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Strict parsers for the output of dlock, independent of the code that prints it: JSON (RFC 8259) on one line, and
 * the text format of Prometheus.
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
	JSON_OBJECT, /* and lists: their members follow them */
};

/* All values of the document with their paths: "", "owner.pid", "nodes.0.state". */
struct json_read {
	struct {
		char path[JSON_PATH];
		enum json_kind kind;
		char *text; /* a string: decoded; a number: its digits */
	} value[JSON_MEMBERS];
	int count;
};

/*
 * Read one object that ends with a newline.  Returns what follows the newline, or NULL on an error.  Duplicate
 * members, strings that are not UTF-8 or contain a NUL, and numbers that are not integers are errors.
 */
const char *json_read_line(const char *text, struct json_read *);
void json_read_free(struct json_read *);

enum json_kind json_kind_of(const struct json_read *, const char *path);

/* The text of the string or number at the path; "" for anything else. */
const char *json_text_of(const struct json_read *, const char *path);

/* Is the value at the path that string (JSON null if it is NULL), or that number? */
bool json_has_string(const struct json_read *, const char *path, const char *string);
bool json_has_number(const struct json_read *, const char *path, long long number);

/*
 * Read a text in the format of Prometheus in which each sample has one label, and HELP, TYPE and samples of a metric
 * are adjacent.  `sample` is called for each sample with the decoded label value.  False for anything else, or for a
 * duplicate series.
 */
bool prometheus_read(const char *text,
    void (*sample)(void *context, const char *metric, const char *label, const char *value, const char *number),
    void *context);

#endif
