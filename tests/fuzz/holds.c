/* SPDX-License-Identifier: MIT */
#include "cli/holds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "lock/backend.h"

/*
 * The environment variables by which a lock is entered again.  Whatever they contain, a hold that is found has the
 * format of a hold.  A hold that was noted is found again, as the first one for its key, and doesn't hide those of
 * other locks.
 */

static void
set(const char *name, const char *value, bool there)
{
	must((there ? setenv(name, value, 1) : unsetenv(name)) == 0, "%s", name);
}

/* Add a lock to the environment, as for a command that runs under one more lock. */
static void
add(const char *key, const struct hold *held)
{
	char *const value = holds_with(key, held);

	must(value != NULL, "no memory");
	set("DLOCK_HOLDS", value, true);
	free(value);
}

static void
check_found(const char *operand, const char *key, const char *what)
{
	struct hold held[HOLDS_MAX];
	int i, found;

	memset(held, 0x5a, sizeof(held));
	found = holds_find(operand, key, held);
	must(found >= 0 && found <= HOLDS_MAX, "%s: %d found", what, found);
	for (i = 0; i < found; i++)
		must(memchr(held[i].token, '\0', sizeof(held[i].token)) != NULL && hold_valid(held[i].token) &&
			held[i].fence >= 0,
		    "%s: hold %d", what, i);
}

/* Is this hold the first one that is found for the key? */
static bool
is_first(const char *key, const struct hold *wanted)
{
	struct hold held[HOLDS_MAX];

	return holds_find("", key, held) > 0 && strcmp(held[0].token, wanted->token) == 0 &&
	    held[0].fence == wanted->fence;
}

static void
check_added(const char *key, const char *other, struct input *in)
{
	struct hold held, second, before[HOLDS_MAX];
	int found_before;

	must(token_new(held.token) && hold_new(held.token, second.token), "no random numbers");
	held.fence = input_number(in);
	held.fence = held.fence > 0 ? held.fence : 1;
	second.fence = held.fence;
	set("DLOCK_KEY", "", false);
	found_before = holds_find("", other, before);
	add(key, &held);
	must(is_first(key, &held), "%s: what was noted is not found", key);
	must(strlen(getenv("DLOCK_HOLDS")) <= 16384, "%s: the list", key);
	if (strcmp(key, other) != 0 && found_before > 0 && strlen(getenv("DLOCK_HOLDS")) < 8192)
		must(is_first(other, &before[0]), "%s hides %s", key, other);
	add(other, &second);
	must(is_first(other, &second), "%s is not found behind %s", other, key);
	if (strcmp(key, other) != 0)
		must(is_first(key, &held), "%s hides %s", other, key);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static const char *const variables[] = { "DLOCK_KEY", "DLOCK_TOKEN", "DLOCK_FENCE", "DLOCK_HOLDS" };
	struct input in = input_of(bytes, length);
	const unsigned int there = input_byte(&in);
	char *value[4], *key, *other;
	size_t i;

	key = input_string(&in, KEY_MAX);
	other = input_string(&in, KEY_MAX);
	for (i = 0; i < 4; i++) {
		value[i] = input_string(&in, SIZE_MAX);
		set(variables[i], value[i], (there >> i & 1) != 0);
	}
	check_found(value[0], key, "as given");
	check_found(key, key, "as given");
	if (key[0] != '\0' && other[0] != '\0')
		check_added(key, other, &in);
	for (i = 0; i < 4; i++)
		free(value[i]);
	free(key);
	free(other);
	return 0;
}
