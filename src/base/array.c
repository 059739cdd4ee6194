/* SPDX-License-Identifier: MIT */
#include "base/array.h"

#include <stdlib.h>

#define FIRST_BYTES 4096

void *
array_room(void *items, size_t needed, size_t *capacity, size_t size)
{
	size_t more = *capacity > 0 ? *capacity : 1 + (FIRST_BYTES - 1) / size;
	void *grown = items;

	while (more < needed)
		more *= 2;
	if (more != *capacity) {
		grown = realloc(items, more * size);
		if (grown != NULL)
			*capacity = more;
	}
	return grown;
}
