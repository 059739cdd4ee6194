/* SPDX-License-Identifier: MIT */
#include "redis/script.h"

#include "scripts.inc"

#define EMBEDDED(name)                             \
	{                                          \
		lua_##name, sizeof(lua_##name) - 1 \
	}

static const struct embedded {
	const char *source;
	size_t length;
} scripts[] = {
	[SCRIPT_ACQUIRE] = EMBEDDED(acquire),
	[SCRIPT_BREAK] = EMBEDDED(break),
	[SCRIPT_FENCE] = EMBEDDED(fence),
	[SCRIPT_HEAL] = EMBEDDED(heal),
	[SCRIPT_INSPECT] = EMBEDDED(inspect),
	[SCRIPT_LEAVE] = EMBEDDED(leave),
	[SCRIPT_PASS] = EMBEDDED(pass),
	[SCRIPT_RELEASE] = EMBEDDED(release),
	[SCRIPT_RENEW] = EMBEDDED(renew),
	[SCRIPT_UNDO] = EMBEDDED(undo),
};

const char *
script_source(enum script script, size_t *length)
{
	*length = scripts[script].length;
	return scripts[script].source;
}
