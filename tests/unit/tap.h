/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_UNIT_TAP_H
#define DLOCK_TESTS_UNIT_TAP_H
/*
 * The Test Anything Protocol for the unit tests.  A name is a format as printf's, with what belongs to it.
 *
 *	TEST(name) { ... }		a function of tests; all of a program run in the order in which they stand
 *	ok(condition, name...)		one test; evaluates to the condition
 *	is_int(got, wanted, name...)	the same for numbers and strings: a failure shows both
 *	is_str(got, wanted, name...)
 *	each(condition, case...)	one of many cases; says nothing while the condition holds
 *	each_ok(name...)		one test: every condition since the last one held, and there was one
 *
 * temporary_folder(PATH, SIZE) makes a folder; its path is short enough for a socket in it.
 * write_file(PATH, TEXT) makes a file; is it written?
 * end_of(PID) waits for the end of a process, whose status it returns; kill_off(PID) ends it first.
 * dice() and below(N) are random numbers, the same in every run, so that a failure comes again.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../sim/chance.h"

/* What stands in for another function has the parameters of that one. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define TEST(name)                                                             \
	static void test_##name(void);                                         \
	__attribute__((constructor)) static void tap_add_##name(void)          \
	{                                                                      \
		static struct tap_test self = { test_##name, __LINE__, NULL }; \
		tap_add(&self);                                                \
	}                                                                      \
	static void test_##name(void)
/* The name comes last: its arguments may be what the condition changes. */
#define ok(condition, ...) \
	(tap_passed = (condition), tap_result(tap_passed, #condition, __FILE__, __LINE__, tap_name(__VA_ARGS__)))
#define is_int(got, wanted, ...) \
	(tap_got = (got), tap_wanted = (wanted), tap_is_int(#got, __FILE__, __LINE__, tap_name(__VA_ARGS__)))
#define is_str(got, wanted, ...) \
	(tap_text = (got), tap_due = (wanted), tap_is_str(#got, __FILE__, __LINE__, tap_name(__VA_ARGS__)))
#define each(condition, ...) \
	(tap_cases++, (condition) || tap_miss(#condition, __FILE__, __LINE__, tap_name(__VA_ARGS__)))
#define each_ok(...) tap_each_ok(__FILE__, __LINE__, tap_name(__VA_ARGS__))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	TAP_TOLD = 5 /* so many cases of each() are shown before it only counts */
};

static struct tap_test {
	void (*run)(void);
	int line;
	struct tap_test *next;
} * tap_tests; /* in the order of their lines: that of constructors is the linker's */

static int tap_count, tap_failures;
static unsigned long tap_cases, tap_misses;
static bool tap_passed;
static int64_t tap_got, tap_wanted;
static const char *tap_text, *tap_due;

/* Text of any kind in one line, and without the mark of a TAP directive. */
static inline void
tap_print(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '#' || *text == '\\' || (unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			printf("\\x%02x", (unsigned int)(unsigned char)*text);
		else
			putchar(*text);
	}
}

__attribute__((format(printf, 1, 2))) static inline const char *
tap_name(const char *format, ...)
{
	static char name[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	return name;
}

/* The line of a test, and where a failure happened; what was found there may follow as notes. */
static inline bool
tap_result(bool passed, const char *what, const char *file, int line, const char *name)
{
	printf("%sok %d - ", passed ? "" : "not ", ++tap_count);
	tap_print(name);
	if (!passed)
		printf("\n# %s:%d: %s (failure %d)", file, line, what, ++tap_failures);
	putchar('\n');
	fflush(stdout);
	return passed;
}

static inline bool
tap_is_int(const char *what, const char *file, int line, const char *name)
{
	if (tap_result(tap_got == tap_wanted, what, file, line, name))
		return true;
	printf("# got %" PRId64 ", wanted %" PRId64 "\n", tap_got, tap_wanted);
	return false;
}

static inline bool
tap_is_str(const char *what, const char *file, int line, const char *name)
{
	if (tap_result(strcmp(tap_text, tap_due) == 0, what, file, line, name))
		return true;
	printf("# got    '");
	tap_print(tap_text);
	printf("'\n# wanted '");
	tap_print(tap_due);
	printf("'\n");
	return false;
}

static inline bool
tap_miss(const char *what, const char *file, int line, const char *name)
{
	if (++tap_misses <= TAP_TOLD) {
		printf("# %s:%d: %s: ", file, line, what);
		tap_print(name);
		putchar('\n');
	}
	return false;
}

static inline bool
tap_each_ok(const char *file, int line, const char *name)
{
	tap_passed = tap_result(tap_misses == 0 && tap_cases > 0, "each", file, line, name);
	printf("# %lu of %lu cases failed\n", tap_misses, tap_cases);
	tap_cases = tap_misses = 0;
	return tap_passed;
}

static inline void
tap_add(struct tap_test *test)
{
	struct tap_test **at;

	for (at = &tap_tests; *at != NULL && (*at)->line < test->line; at = &(*at)->next)
		;
	test->next = *at;
	*at = test;
}

/* The plan comes last: a test program that dies early has none, and that is a failure too. */
int
main(void)
{
	const struct tap_test *test;

	for (test = tap_tests; test != NULL; test = test->next)
		test->run();
	printf("1..%d\n", tap_count);
	return tap_failures != 0;
}

/* valgrind has no pidfd_open(2), and writes core files itself. */
static inline bool
on_valgrind(void)
{
	const char *const preload = getenv("LD_PRELOAD");

	return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

static inline bool
temporary_folder(char *path, size_t size)
{
	const char *base = getenv("TMPDIR");

	if (base == NULL || base[0] != '/' || strlen(base) > 60)
		base = "/tmp";
	(void)snprintf(path, size, "%s/dlock-unit.XXXXXX", base);
	return mkdtemp(path) != NULL;
}

static inline bool
write_file(const char *path, const char *text)
{
	FILE *const file = fopen(path, "w");

	return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}

static inline int
end_of(pid_t pid)
{
	int status = 0;

	(void)waitpid(pid, &status, 0);
	return status;
}

static inline void
kill_off(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)end_of(pid);
}

/* 64 random bits. */
static inline uint64_t
dice(void)
{
	static struct chance chance = { 20240229 };

	return chance_next(&chance);
}

/* 0 to n - 1. */
static inline int64_t
below(int64_t n)
{
	return (int64_t)(dice() % (uint64_t)n);
}
#endif
