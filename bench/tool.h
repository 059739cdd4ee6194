/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BENCH_TOOL_H
#define DLOCK_BENCH_TOOL_H
/*
 * What the programs of the benchmark share.
 */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* End with a message.  which: NULL, or what it is about. */
static inline _Noreturn void
fail(const char *what, const char *which)
{
	fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, what, which == NULL ? "" : ": ",
	    which == NULL ? "" : which);
	exit(1);
}

static inline int64_t
now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A positive number of an argument. */
static inline unsigned int
number(const char *text)
{
	char *end;
	const unsigned long value = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)text[0]) || *end != '\0' || value == 0 || value > 1000000)
		fail("not a number", text);
	return (unsigned int)value;
}

#endif
