/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/clock.h"

bool
random_bytes(void *bytes, size_t length)
{
	unsigned char *at = bytes;
	ssize_t n;

	while (length > 0) {
		n = getrandom(at, length, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		length -= (size_t)n;
	}
	return true;
}

uint32_t
random_u32(void)
{
	uint32_t bits;

	if (!random_bytes(&bits, sizeof(bits)))
		bits = (uint32_t)clock_wall_us() * UINT32_C(2654435761);
	return bits;
}
