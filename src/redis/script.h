/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_SCRIPT_H
#define DLOCK_REDIS_SCRIPT_H
#include <stddef.h>

/* The Lua scripts of src/lua, embedded at build time.  Each file documents its arguments and return value. */
enum script {
	SCRIPT_ACQUIRE,
	SCRIPT_BREAK,
	SCRIPT_FENCE,
	SCRIPT_HEAL,
	SCRIPT_INSPECT,
	SCRIPT_LEAVE,
	SCRIPT_PASS,
	SCRIPT_RELEASE,
	SCRIPT_RENEW,
	SCRIPT_UNDO
};

/* The text of a script, and its length. */
const char *script_source(enum script, size_t *length);

#endif
