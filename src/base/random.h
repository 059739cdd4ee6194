/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_RANDOM_H
#define DLOCK_BASE_RANDOM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fill with random bytes of the kernel, fit for secrets.  False if the kernel has none to give. */
bool random_bytes(void *bytes, size_t length);

/* 32 random bits to spread retries; where the kernel has none, the clock's low bits serve. */
uint32_t random_u32(void);

#endif
