/* SPDX-License-Identifier: MIT */
#include "redis/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "scripts.inc"

/* -- Keys ------------------------------------------------------------------- */

#define SLOTS 16384
#define LARGEST_NUMBER 109757 /* the numbers up to this one reach all slots */
#define SUFFIX ":dlock"
#define NUMBERED_SUFFIX ":dlock-n"

/* The texts that follow the name of the metadata key.  The id of the waiter follows the last one. */
static const char *const suffixes[SIBLINGS] = { [HOLDS] = ":holds",
	[WAKE] = ":wake",
	[WAITING] = ":waiting",
	[HISTORY] = ":history",
	[LEAVE] = ":leave:" };

/* CRC-16/XMODEM, as specified for Redis Cluster, of these bytes behind those whose CRC is given. */
static unsigned int
crc16(unsigned int crc, const char *bytes, size_t length)
{
	unsigned int x;
	size_t i;

	for (i = 0; i < length; i++) {
		x = crc >> 8 ^ (unsigned char)bytes[i];
		x ^= x >> 4;
		crc = (crc << 8 ^ x << 12 ^ x << 5 ^ x) & 0xffff;
	}
	return crc;
}

/*
 * The length of the hash tag of a key, which decides its slot: the text between the first { and the next }.  0 if it is
 * missing or empty.
 */
static size_t
find_tag(const char *key, size_t length, const char **tag)
{
	const char *const open = memchr(key, '{', length);
	const char *const close = open != NULL ? memchr(open, '}', length - (size_t)(open - key)) : NULL;

	if (close == NULL)
		return 0;
	*tag = open + 1;
	return (size_t)(close - *tag);
}

int
keys_slot(const char *key, size_t length)
{
	const char *tag;
	const size_t tag_length = find_tag(key, length, &tag);

	return (int)((tag_length > 0 ? crc16(0, tag, tag_length) : crc16(0, key, length)) % SLOTS);
}

/*
 * The smallest number whose decimal digits hash to the slot.  The numbers that a search passes are kept, and the next
 * search continues from there: one name costs no more than its own number, and thousands of names cost one search.
 */
static int
number_in_slot(int slot)
{
	static int number[SLOTS]; /* plus one; 0: not reached yet */
	static uint16_t crc[LARGEST_NUMBER / 10 + 1];
	static int next;
	unsigned int of;
	char digit;

	for (; number[slot] == 0; next++) {
		digit = (char)('0' + next % 10);
		of = crc16(next < 10 ? 0 : crc[next / 10], &digit, 1);
		if (next <= LARGEST_NUMBER / 10)
			crc[next] = (uint16_t)of;
		if (number[of % SLOTS] == 0)
			number[of % SLOTS] = next + 1;
	}
	return number[slot] - 1;
}

/* The length of what is before ":slot-" and a number at the end of a name; 0: it has another end. */
static int
slot_base(const char *name)
{
	static const char infix[] = ":slot-";
	const char *const at = strrchr(name, ':'), *const digits = at != NULL ? at + sizeof(infix) - 1 : NULL;

	if (at == NULL || strncmp(at, infix, sizeof(infix) - 1) != 0 || digits[0] == '\0' ||
	    digits[strspn(digits, "0123456789")] != '\0')
		return 0;
	return (int)(at - name);
}

enum status
keys_of_slot(const char *key, size_t prefix, int slot, char name[KEY_MAX + 1], struct err *err)
{
	const char *const own = key + prefix, *tag;
	const size_t length = strlen(own), own_tag = find_tag(own, length, &tag);
	const size_t any_tag = find_tag(key, prefix + length, &tag);
	struct text text = text_in(name, KEY_MAX + 1);

	if (length > SLOTS_KEY_MAX)
		return err_set(err, ST_USAGE, "KEY has %zu bytes; with --slots it must have 1 to %d", length,
		    SLOTS_KEY_MAX);
	if (strpbrk(own, "{}") != NULL && (own_tag == 0 || own_tag + 2 == length))
		return err_set(err, ST_USAGE, "--slots needs a KEY without braces, or with a hash tag before or in it");
	if (any_tag == 0 && memchr(key, '{', prefix) != NULL)
		return err_set(err, ST_USAGE, "--slots needs a --prefix without braces, or with a hash tag");
	text_addf(&text, any_tag > 0 ? "%.*s%s" : "%.*s{%s}", (int)prefix, key, own);
	text_addf(&text, slot > 0 ? ":slot-%d" : ":slots", slot);
	return ST_OK;
}

/* The name of the metadata key; returns its length. */
static size_t
put_metadata(const char *key, size_t length, char metadata[KEY_MAX + 64])
{
	const char *tag;
	const size_t tag_length = find_tag(key, length, &tag);
	const bool braces = tag_length == 0 && memchr(key, '}', length) == NULL;

	if (!braces && (tag_length == 0 || tag_length + 2 == length))
		return (size_t)snprintf(metadata, KEY_MAX + 64, "{%d}:%s" NUMBERED_SUFFIX,
		    number_in_slot(keys_slot(key, length)), key);
	metadata[0] = '{';
	memcpy(metadata + braces, key, length);
	memcpy(metadata + braces + length, braces ? "}" SUFFIX : SUFFIX, sizeof("}" SUFFIX) - !braces);
	return length + sizeof(SUFFIX) - 1 + 2 * (size_t)braces;
}

void
keys_of(const char *key, struct keys *names)
{
	const size_t length = strlen(key), size = sizeof(names->sibling[0]);
	char *const metadata = names->sibling[METADATA];
	const size_t metadata_length = put_metadata(key, length, metadata);
	const char *tag;
	const size_t tag_length = find_tag(key, length, &tag);
	const int base = tag_length > 0 && tag_length + 2 < length ? slot_base(key) : 0;
	int i;

	names->key = key;
	for (i = METADATA + 1; i < LEAVE; i++) { /* snprintf(3) takes ten times as long */
		memcpy(names->sibling[i], metadata, metadata_length);
		memcpy(names->sibling[i] + metadata_length, suffixes[i], strlen(suffixes[i]) + 1);
	}
	if (base > 0)
		(void)snprintf(names->sibling[WAITING], size, "%.*s:slots" SUFFIX ":waiting", base, key);
}

/* Does a name of so many bytes end with the suffix, behind something else?  Then *length becomes that of the latter. */
static bool
strip(const char *name, size_t *length, const char *suffix)
{
	const size_t end = strlen(suffix);

	if (*length <= end || memcmp(name + *length - end, suffix, end) != 0)
		return false;
	*length -= end;
	return true;
}

bool
keys_key(const char *metadata, size_t length, char key[KEY_MAX + 1])
{
	char own[KEY_MAX + 64];
	const char *from = metadata;
	size_t left = length;

	if (strip(metadata, &left, NUMBERED_SUFFIX)) {
		from = memchr(metadata, ':', left);
		if (from == NULL)
			return false;
		from++;
	} else if (!strip(metadata, &left, SUFFIX))
		return false;
	else if (metadata[0] == '{' && memchr(metadata, '}', left) == metadata + left - 1) {
		from++;
		left--;
	}
	left -= (size_t)(from - metadata);
	if (left == 0 || left > KEY_MAX)
		return false;
	memcpy(key, from, left);
	key[left] = '\0';
	return memchr(key, '\0', left) == NULL && put_metadata(key, left, own) == length &&
	    memcmp(own, metadata, length) == 0;
}

enum sibling
keys_sibling(const char *name, char key[KEY_MAX + 1])
{
	const size_t all = strlen(name);
	size_t length;
	int i;

	for (i = METADATA + 1; i < SIBLINGS; i++) {
		length = i != LEAVE ? all : all > TOKEN_LENGTH ? all - TOKEN_LENGTH : 0;
		if (strip(name, &length, suffixes[i]))
			return keys_key(name, length, key) ? (enum sibling)i : SIBLINGS;
	}
	return keys_key(name, all, key) ? METADATA : SIBLINGS;
}

/* -- Scripts ---------------------------------------------------------------- */

#define KEY(sibling) (1u << (sibling))
#define ALL (KEY(LEAVE) - 1)

static const struct embedded {
	const char *text;
	unsigned int siblings; /* that it takes after KEY, in their order */
	bool needs_replicas;
} scripts[] = {
	[SCRIPT_ACQUIRE] = { lua_acquire, ALL, true },
	[SCRIPT_ASK] = { lua_ask, KEY(METADATA), true },
	[SCRIPT_BREAK] = { lua_break, 0, false },
	[SCRIPT_FENCE] = { lua_fence, KEY(METADATA) | KEY(HISTORY), true },
	[SCRIPT_HEAL] = { lua_heal, KEY(METADATA) | KEY(HOLDS), true },
	[SCRIPT_HISTORY] = { lua_history, KEY(METADATA) | KEY(WAITING) | KEY(HISTORY), false },
	[SCRIPT_INSPECT] = { lua_inspect, KEY(METADATA) | KEY(HOLDS) | KEY(WAITING), false },
	[SCRIPT_INVITE] = { lua_invite, KEY(METADATA) | KEY(WAITING), false },
	[SCRIPT_LAST] = { lua_last, 0, false },
	[SCRIPT_LEAVE] = { lua_leave, KEY(WAITING) | KEY(LEAVE), false },
	[SCRIPT_PASS] = { lua_pass, KEY(METADATA) | KEY(WAKE), false },
	[SCRIPT_RELEASE] = { lua_release, ALL, false },
	[SCRIPT_RENEW] = { lua_renew, KEY(METADATA) | KEY(HOLDS) | KEY(HISTORY), true },
	[SCRIPT_SHARE] = { lua_share, ALL, true },
	[SCRIPT_SLOTS] = { lua_slots, 0, false },
	[SCRIPT_UNDO] = { lua_undo, KEY(HISTORY), false },
	[SCRIPT_UNSHARE] = { lua_unshare, ALL, false },
};

const char *
command_script(enum script script)
{
	return scripts[script].text;
}

/* -- Commands --------------------------------------------------------------- */

/* Write the digits that end there, and return where they begin.  printf(3) would be a quarter of the calls of libc. */
static char *
put_digits(char *end, uint64_t n)
{
	do
		*--end = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	return end;
}

static void
add(struct command *r, const char *bytes, size_t length)
{
	if (r->argc == COMMAND_ARGS)
		return;
	r->argv[r->argc] = bytes;
	r->length[r->argc] = length;
	r->argc++;
}

void
command_add(struct command *r, const char *string)
{
	add(r, string, strlen(string));
}

void
command_add_number(struct command *r, int64_t n)
{
	char *const end = r->number[r->numbers++] + sizeof(r->number[0]);
	char *digits = put_digits(end, n < 0 ? -(uint64_t)n : (uint64_t)n);

	if (n < 0)
		*--digits = '-';
	add(r, digits, (size_t)(end - digits));
}

static void
add_all(struct command *r, const char *format, va_list arguments)
{
	const char *end;

	while (*format != '\0') {
		if (*format == ' ') {
			format++;
			continue;
		}
		if (*format != '%') {
			end = strchrnul(format, ' ');
			add(r, format, (size_t)(end - format));
			format = end;
			continue;
		}
		switch (format[1]) {
		case 's':
			command_add(r, va_arg(arguments, const char *));
			break;
		case 'd':
			command_add_number(r, va_arg(arguments, int));
			break;
		case 'j':
			command_add_number(r, va_arg(arguments, intmax_t));
			format++;
			break;
		default:
			r->again = r->argc;
			command_add(r, va_arg(arguments, int) == '1' ? "1" : "0");
		}
		format += 2;
	}
}

void
command_begin(struct command *r, const char *format, ...)
{
	va_list arguments;

	memset(r, 0, offsetof(struct command, argv));
	va_start(arguments, format);
	add_all(r, format, arguments);
	va_end(arguments);
}

void
command_eval(struct command *r, enum script script, const struct keys *names, const char *format, ...)
{
	const struct embedded *const e = &scripts[script];
	va_list arguments;
	int i;

	command_begin(r, "EVAL %s %d %s", e->text, 1 + __builtin_popcount(e->siblings), names->key);
	r->needs_replicas = e->needs_replicas;
	r->key = names->key;
	for (i = 0; i < SIBLINGS; i++) {
		if ((e->siblings & KEY(i)) != 0)
			command_add(r, names->sibling[i]);
	}
	va_start(arguments, format);
	add_all(r, format, arguments);
	va_end(arguments);
}

static void
add_pairs(struct command *r, const struct keys *names, int count, enum sibling sibling)
{
	int i;

	r->key = names->key;
	for (i = 0; i < count; i++) {
		command_add(r, names[i].key);
		command_add(r, names[i].sibling[sibling]);
	}
}

void
command_slots(struct command *r, const struct keys *names, int count)
{
	command_begin(r, "EVAL %s %d %s", lua_slots, 1 + 2 * count, names->sibling[WAITING]);
	add_pairs(r, names, count, METADATA);
}

void
command_last(struct command *r, const struct keys *names, int count)
{
	command_begin(r, "EVAL %s %d", lua_last, 2 * count);
	add_pairs(r, names, count, HISTORY);
}

#define COUNT_MAX 26 /* bytes of "*3" or "$12" with the line ending */

static size_t
put_count(char *to, char kind, size_t count)
{
	size_t digits = 1, left;

	for (left = count; left >= 10; left /= 10)
		digits++;
	to[0] = kind;
	(void)put_digits(to + 1 + digits, count);
	to[digits + 1] = '\r';
	to[digits + 2] = '\n';
	return digits + 3;
}

char *
command_encode(const struct command *r, size_t *length, size_t *again)
{
	size_t size = COUNT_MAX, n;
	char *bytes;
	int i;

	for (i = 0; i < r->argc; i++)
		size += r->length[i] + COUNT_MAX + 2;
	bytes = malloc(size);
	if (bytes == NULL)
		return NULL;
	n = put_count(bytes, '*', (size_t)r->argc);
	for (i = 0; i < r->argc; i++) {
		n += put_count(bytes + n, '$', r->length[i]);
		if (i > 0 && i == r->again)
			*again = n;
		memcpy(bytes + n, r->argv[i], r->length[i]);
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the length stands before it */
		memcpy(bytes + n + r->length[i], "\r\n", 2);
		n += r->length[i] + 2;
	}
	*length = n;
	return bytes;
}
