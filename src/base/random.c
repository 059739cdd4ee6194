/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/clock.h"

bool
random_bytes(void *bytes, size_t length)
{
	ssize_t n;

	do
		n = getrandom(bytes, length, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)length; /* as many as this are never interrupted in part */
}

uint32_t
random_u32(void)
{
	uint32_t bits;

	if (!random_bytes(&bits, sizeof(bits)))
		bits = (uint32_t)clock_wall_us() * UINT32_C(2654435761);
	return bits;
}
