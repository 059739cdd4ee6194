/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_RANDOM_H
#define DLOCK_BASE_RANDOM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fill with at most 256 random bytes from the kernel, suitable for secrets.  False if the kernel provides none. */
bool random_bytes(void *bytes, size_t length);

/* 32 random bits to spread retries; the low bits of the clock if the kernel provides none. */
uint32_t random_u32(void);

#endif
