/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_VIEW_H
#define DLOCK_CLI_VIEW_H
#include <stdbool.h>

#include "base/json.h"
#include "lock/service.h"

/*
 * What there is to say of a lock.
 */
enum {
	CLIENT_SIZE = 64
};

/* A lock as a JSON object in a line of its own. */
void view_print_json(const char *key, const struct lock_view *);

/* "owner", as the JSON of all commands has it: an object, or null for "". */
void view_json_owner(struct json *, const char *owner);

/* Is there a holder to speak of? */
bool view_is_held(const struct lock_view *);

/*
 * Which client holds it: "dlock", "redis-py", "Redisson, thread 57", "a list" ...; NULL for a string that could be anybody's.
 * Of clients of another make it is a guess by what their locks look like.
 */
const char *view_client(const struct holder *, char client[CLIENT_SIZE]);

#endif
