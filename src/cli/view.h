/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_VIEW_H
#define DLOCK_CLI_VIEW_H
#include <stdbool.h>

#include "base/json.h"
#include "lock/service.h"

/*
 * Output of a lock, for several commands.
 */
enum {
	CLIENT_SIZE = 64
};

/* Print a lock as a JSON object on a line of its own. */
void view_print_json(const char *key, const struct lock_status *);

/* An owner in the JSON of all commands, mostly the member "owner": an object, or null for "". */
void view_json_owner(struct json *, const char *name, const char *owner);

/* The member "child": how a command ended, or null. */
void view_json_child(struct json *, const struct command_end *);

/* The member "holder" in the JSON of several commands: an object, or null for NULL, or if it is not known. */
void view_json_holder(struct json *, const struct holder *);

/* Does the lock have a holder? */
bool view_is_held(const struct lock_status *);

/*
 * The client that holds the lock: "dlock", the name of a library, "a list" ...; NULL for an unknown string.
 * For other clients it is a guess from the format of the token.
 */
const char *view_client(const struct holder *, char client[CLIENT_SIZE]);

#endif
