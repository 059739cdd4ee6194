/* SPDX-License-Identifier: MIT */
#include "strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define DIGITS "0123456789"

/* -- JSON ------------------------------------------------------------------- */

struct reader {
	struct json_read *doc;
	char path[JSON_PATH];
	int depth;
};

static const char *read_value(struct reader *, const char *at);

static bool
note(struct reader *r, enum json_kind kind, char *text)
{
	if (r->doc->count == JSON_MEMBERS || json_kind_of(r->doc, r->path) != JSON_ABSENT) {
		free(text);
		return false;
	}
	memcpy(r->doc->value[r->doc->count].path, r->path, JSON_PATH);
	r->doc->value[r->doc->count].kind = kind;
	r->doc->value[r->doc->count++].text = text;
	return true;
}

/* Read the four digits of \u.  Surrogates and NUL are not accepted. */
static const char *
read_code(const char *at, char **to)
{
	unsigned int code = 0;
	char digits[5];

	memcpy(digits, at, strnlen(at, 4));
	digits[strnlen(at, 4)] = '\0';
	if (strspn(digits, DIGITS "abcdefABCDEF") != 4)
		return NULL;
	code = (unsigned int)strtoul(digits, NULL, 16);
	if (code == 0 || (code >= 0xd800 && code < 0xe000))
		return NULL;
	if (code >= 0x800)
		*(*to)++ = (char)(0xe0 | code >> 12);
	if (code >= 0x80)
		*(*to)++ = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6);
	*(*to)++ = (char)(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
	return at + 4;
}

/* Read and decode a string.  The caller must free *text.  NULL if it is not a string. */
static const char *
read_string(const char *at, char **text)
{
	static const char from[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *found;
	char *to;

	if (*at++ != '"')
		return NULL;
	*text = to = malloc(strlen(at) + 1);
	must(to != NULL, "no memory");
	while (at != NULL && *at != '"') {
		if ((unsigned char)*at < 0x20)
			at = NULL;
		else if (*at != '\\')
			*to++ = *at++;
		else if (at[1] == 'u')
			at = read_code(at + 2, &to);
		else {
			found = at[1] != '\0' ? strchr(from, at[1]) : NULL;
			if (found != NULL)
				*to++ = bytes[found - from];
			at = found != NULL ? at + 2 : NULL;
		}
	}
	*to = '\0';
	if (at != NULL && is_utf8(*text))
		return at + 1;
	free(*text);
	return NULL;
}

/* Read what is between brackets: members with names, or items, which are named by their numbers. */
static const char *
read_members(struct reader *r, const char *at, char end)
{
	const size_t length = strlen(r->path);
	char name[24], *given = NULL;
	int number;

	if (!note(r, JSON_OBJECT, NULL) || r->depth++ > 8)
		return NULL;
	if (*at == end)
		return at + 1;
	for (number = 0; at != NULL; number++) {
		(void)snprintf(name, sizeof(name), "%d", number);
		if (end == '}') {
			at = read_string(at, &given);
			if (at == NULL)
				return NULL;
			(void)snprintf(name, sizeof(name), "%s", given);
			free(given);
			if (*at++ != ':' || name[0] == '\0')
				return NULL;
		}
		(void)snprintf(r->path + length, JSON_PATH - length, "%s%s", length > 0 ? "." : "", name);
		at = read_value(r, at);
		r->path[length] = '\0';
		if (at == NULL || *at != ',')
			break;
		at++;
	}
	r->depth--;
	return at != NULL && *at == end ? at + 1 : NULL;
}

static const char *
read_number(struct reader *r, const char *at)
{
	const char *const first = *at == '-' ? at + 1 : at;
	const size_t digits = strspn(first, DIGITS);

	if (digits == 0 || (*first == '0' && (digits > 1 || first > at)))
		return NULL;
	return note(r, JSON_NUMBER, strndup(at, (size_t)(first - at) + digits)) ? first + digits : NULL;
}

static const char *
read_word(struct reader *r, const char *at)
{
	static const char *const words[] = { "null", "true", "false" };
	size_t i;

	for (i = 0; i < 3; i++) {
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return note(r, i == 0 ? JSON_NULL : JSON_BOOL, NULL) ? at + strlen(words[i]) : NULL;
	}
	return NULL;
}

static const char *
read_value(struct reader *r, const char *at)
{
	char *text;

	switch (*at) {
	case '{':
		return read_members(r, at + 1, '}');
	case '[':
		return read_members(r, at + 1, ']');
	case '"':
		at = read_string(at, &text);
		return at != NULL && note(r, JSON_STRING, text) ? at : NULL;
	case 'n':
	case 't':
	case 'f':
		return read_word(r, at);
	default:
		return read_number(r, at);
	}
}

const char *
json_read_line(const char *text, struct json_read *doc)
{
	struct reader r = { .doc = doc };
	const char *at;

	doc->count = 0;
	at = *text == '{' ? read_value(&r, text) : NULL;
	return at != NULL && *at == '\n' ? at + 1 : NULL;
}

void
json_read_free(struct json_read *doc)
{
	int i;

	for (i = 0; i < doc->count; i++)
		free(doc->value[i].text);
	doc->count = 0;
}

static int
find(const struct json_read *doc, const char *path)
{
	int i;

	for (i = 0; i < doc->count; i++) {
		if (strcmp(doc->value[i].path, path) == 0)
			return i;
	}
	return -1;
}

enum json_kind
json_kind_of(const struct json_read *doc, const char *path)
{
	const int i = find(doc, path);

	return i >= 0 ? doc->value[i].kind : JSON_ABSENT;
}

const char *
json_text_of(const struct json_read *doc, const char *path)
{
	const int i = find(doc, path);

	return i >= 0 && doc->value[i].text != NULL ? doc->value[i].text : "";
}

bool
json_has_string(const struct json_read *doc, const char *path, const char *string)
{
	if (string == NULL)
		return json_kind_of(doc, path) == JSON_NULL;
	return json_kind_of(doc, path) == JSON_STRING && strcmp(json_text_of(doc, path), string) == 0;
}

bool
json_has_number(const struct json_read *doc, const char *path, long long number)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%lld", number);
	return json_kind_of(doc, path) == JSON_NUMBER && strcmp(json_text_of(doc, path), digits) == 0;
}

/* -- Prometheus ------------------------------------------------------------- */

enum {
	NAME_MAX_LENGTH = 64,
	VALUE_MAX_LENGTH = 8192,
	SERIES_MAX = 256
};

struct exposition {
	char metric[NAME_MAX_LENGTH];
	char *series[SERIES_MAX]; /* label values of this metric */
	int count;
	char metrics[SERIES_MAX * 8]; /* names of all metrics so far, each between blanks */
};

static void
forget_series(struct exposition *e)
{
	while (e->count > 0)
		free(e->series[--e->count]);
}

/* Read a metric name.  Returns what follows it, NULL if there is none. */
static const char *
read_name(const char *at, char name[NAME_MAX_LENGTH])
{
	const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_");

	if (length == 0 || length >= NAME_MAX_LENGTH)
		return NULL;
	memcpy(name, at, length);
	name[length] = '\0';
	return at + length;
}

/* Read "# HELP name words" and "# TYPE name gauge".  Each metric may start only once. */
static const char *
read_begin(struct exposition *e, const char *at)
{
	char again[NAME_MAX_LENGTH], entry[NAME_MAX_LENGTH + 2];
	const size_t length = strlen(e->metrics);

	forget_series(e);
	at = read_name(at + strlen("# HELP "), e->metric);
	at = at != NULL && *at == ' ' ? strchr(at, '\n') : NULL;
	if (at == NULL || strncmp(at + 1, "# TYPE ", 7) != 0)
		return NULL;
	at = read_name(at + 8, again);
	(void)snprintf(entry, sizeof(entry), " %s ", again);
	if (at == NULL || strcmp(again, e->metric) != 0 || strstr(e->metrics, entry) != NULL ||
	    strncmp(at, " gauge\n", 7) != 0)
		return NULL;
	(void)snprintf(e->metrics + length, sizeof(e->metrics) - length, "%s", entry);
	return at + 7;
}

static const char *
read_label_value(const char *at, char value[VALUE_MAX_LENGTH])
{
	size_t n = 0;

	while (*at != '"') {
		if (*at == '\0' || *at == '\n' || n + 1 == VALUE_MAX_LENGTH)
			return NULL;
		if (*at == '\\') {
			at++;
			if (*at != '\\' && *at != '"' && *at != 'n')
				return NULL;
			value[n++] = *at == 'n' ? '\n' : *at;
			at++;
		} else
			value[n++] = *at++;
	}
	value[n] = '\0';
	return at + 1;
}

/* Read a decimal number, or +Inf, and the end of the line. */
static const char *
read_sample_number(const char *at, char number[NAME_MAX_LENGTH])
{
	const size_t length = strcspn(at, "\n");
	const char *digits = at[0] == '-' ? at + 1 : at, *end;
	size_t whole;

	if (at[length] == '\0' || length >= NAME_MAX_LENGTH)
		return NULL;
	memcpy(number, at, length);
	number[length] = '\0';
	whole = strspn(digits, DIGITS);
	end = digits + whole;
	if (*end == '.')
		end += 1 + strspn(end + 1, DIGITS);
	if (strcmp(number, "+Inf") != 0 && (whole == 0 || end != at + length))
		return NULL;
	return at + length + 1;
}

/* name{label="value"} number */
static const char *
read_sample(struct exposition *e, const char *at,
    void (*sample)(void *context, const char *metric, const char *label, const char *value, const char *number),
    void *context)
{
	static char value[VALUE_MAX_LENGTH];
	char name[NAME_MAX_LENGTH], label[NAME_MAX_LENGTH], number[NAME_MAX_LENGTH];
	int i;

	at = read_name(at, name);
	if (at == NULL || strcmp(name, e->metric) != 0 || *at != '{')
		return NULL;
	at = read_name(at + 1, label);
	if (at == NULL || strncmp(at, "=\"", 2) != 0)
		return NULL;
	at = read_label_value(at + 2, value);
	if (at == NULL || !is_utf8(value) || strncmp(at, "} ", 2) != 0)
		return NULL;
	for (i = 0; i < e->count; i++) {
		if (strcmp(e->series[i], value) == 0)
			return NULL;
	}
	if (e->count == SERIES_MAX)
		return NULL;
	e->series[e->count++] = strdup(value);
	at = read_sample_number(at + 2, number);
	if (at != NULL)
		sample(context, name, label, value, number);
	return at;
}

bool
prometheus_read(const char *text,
    void (*sample)(void *context, const char *metric, const char *label, const char *value, const char *number),
    void *context)
{
	struct exposition e = { .count = 0 };
	const char *at = text;

	while (at != NULL && *at != '\0') {
		if (strncmp(at, "# HELP ", 7) == 0)
			at = read_begin(&e, at);
		else
			at = read_sample(&e, at, sample, context);
	}
	forget_series(&e);
	return at != NULL;
}
