/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_UNIT_TAP_H
#define DLOCK_TESTS_UNIT_TAP_H
/*
 * The Test Anything Protocol for the unit tests: ok(condition, name...) for each test, where name
 * is a format as printf's, and at the end of main: return tap_end();
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_count, tap_failures;

/* Evaluates to the condition. */
#define ok(condition, ...) tap_ok((condition), #condition, __FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 5, 6))) static inline bool
tap_ok(bool passed, const char *what, const char *file, int line, const char *name, ...)
{
	va_list args;

	printf("%sok %d - ", passed ? "" : "not ", ++tap_count);
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	if (!passed)
		printf("\n# %s:%d: %s (failure %d)", file, line, what, ++tap_failures);
	putchar('\n');
	fflush(stdout);
	return passed;
}

/* The plan comes last: a test program that dies early has none, and that is a failure too. */
static inline int
tap_end(void)
{
	printf("1..%d\n", tap_count);
	return tap_failures != 0;
}
#endif
