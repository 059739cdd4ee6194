/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_CHANCE_H
#define DLOCK_SIM_CHANCE_H
#include <stdbool.h>
#include <stdint.h>

/* Pseudorandom numbers from a seed, reproducible (splitmix64; Steele, Lea, Flood 2014). */
struct chance {
	uint64_t state;
};

static inline uint64_t
chance_next(struct chance *c)
{
	uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A number in the range, both ends included. */
static inline int64_t
chance_between(struct chance *c, int64_t least, int64_t most)
{
	return least + (int64_t)(chance_next(c) % (uint64_t)(most - least + 1));
}

static inline bool
chance_one_in(struct chance *c, int64_t n)
{
	return chance_between(c, 1, n) == 1;
}

#endif
