/* SPDX-License-Identifier: MIT */
#include "redis/keys.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SLOTS 16384
#define LARGEST_NUMBER 109757 /* the numbers up to this one reach all slots */
#define SUFFIX ":dlock"
#define NUMBERED_SUFFIX ":dlock-n"

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
 * The hash tag of a key, which decides its slot: the text between the first { and the next }.  False if it is missing
 * or empty.
 */
static bool
find_tag(const char *key, size_t length, const char **tag, size_t *tag_length)
{
	const char *open = memchr(key, '{', length), *close;

	if (open == NULL)
		return false;
	close = memchr(open, '}', length - (size_t)(open - key));
	if (close == NULL || close == open + 1)
		return false;
	*tag = open + 1;
	*tag_length = (size_t)(close - open) - 1;
	return true;
}

int
keys_slot(const char *key, size_t length)
{
	const char *tag = key;
	size_t tag_length = length;

	(void)find_tag(key, length, &tag, &tag_length);
	return (int)(crc16(0, tag, tag_length) % SLOTS);
}

/*
 * The smallest number whose decimal digits hash to the slot.  What a search passes is kept, and the next one continues
 * from there: one name costs no more than its own number, and thousands of names cost one search.
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

void
keys_of(const char *key, struct keys *names)
{
	const size_t length = strlen(key);
	const char *tag = key;
	size_t tag_length = 0;
	const bool tagged = find_tag(key, length, &tag, &tag_length);

	names->key = key;
	if (tagged && tag_length + 2 < length)
		(void)snprintf(names->metadata, sizeof(names->metadata), "%s" SUFFIX, key);
	else if (!tagged && strchr(key, '}') == NULL)
		(void)snprintf(names->metadata, sizeof(names->metadata), "{%s}" SUFFIX, key);
	else
		(void)snprintf(names->metadata, sizeof(names->metadata), "{%d}:%s" NUMBERED_SUFFIX,
		    number_in_slot(keys_slot(key, length)), key);
	(void)snprintf(names->holds, sizeof(names->holds), "%.1048s:holds", names->metadata);
	(void)snprintf(names->wake, sizeof(names->wake), "%.1047s:wake", names->metadata);
	(void)snprintf(names->waiting, sizeof(names->waiting), "%.1047s:waiting", names->metadata);
}

/* Does the name end with the suffix?  *length is the number of bytes before it. */
static bool
ends_with(const char *name, const char *suffix, size_t *length)
{
	const size_t all = strlen(name), end = strlen(suffix);

	*length = all - end;
	return all > end && strcmp(name + *length, suffix) == 0;
}

bool
keys_key(const char *metadata, char key[KEY_MAX + 1])
{
	const char *from = metadata;
	struct keys names;
	size_t length;

	if (ends_with(metadata, NUMBERED_SUFFIX, &length)) {
		from = metadata + strcspn(metadata, ":") + 1;
		if (metadata[0] != '{' || from > metadata + length)
			return false;
		length -= (size_t)(from - metadata);
	} else if (!ends_with(metadata, SUFFIX, &length))
		return false;
	else if (metadata[0] == '{' && memchr(metadata, '}', length) == metadata + length - 1) {
		from++;
		length -= 2;
	}
	if (length == 0 || length > KEY_MAX)
		return false;
	(void)snprintf(key, KEY_MAX + 1, "%.*s", (int)length, from);
	keys_of(key, &names);
	return strcmp(names.metadata, metadata) == 0;
}

/* Are the first `length` bytes the name of a metadata key? */
static bool
follows_metadata(const char *name, size_t length)
{
	char metadata[KEY_MAX + 32], key[KEY_MAX + 1];

	if (length >= sizeof(metadata))
		return false;
	(void)snprintf(metadata, sizeof(metadata), "%.*s", (int)length, name);
	return keys_key(metadata, key);
}

bool
keys_is_auxiliary(const char *name)
{
	static const char *const ends[] = { ":history", ":holds", ":wake", ":waiting" };
	static const char leave[] = ":leave:"; /* followed by a waiter's id */
	const size_t all = strlen(name), leaving = strlen(leave) + TOKEN_LENGTH;
	size_t i, length;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (ends_with(name, ends[i], &length))
			return follows_metadata(name, length);
	}
	return all > leaving && strncmp(name + all - leaving, leave, strlen(leave)) == 0 &&
	    follows_metadata(name, all - leaving);
}
