/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a server or a dlock: its time of day is wrong by the microseconds in the file FAULT_CLOCK, and jumps
 * when that changes.  The clocks that count since the start of the machine stay right, and so do their timers.
 * libfaketime cannot be used: a Redis with jemalloc hangs in it, and it changes the timers.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset_us;

__attribute__((constructor)) static void
map_offset(void)
{
	const char *path = getenv("FAULT_CLOCK");
	const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page;

	if (fd < 0)
		return;
	page = mmap(NULL, sizeof(*offset_us), PROT_READ, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED)
		offset_us = page;
	(void)close(fd);
}

int
clock_gettime(clockid_t clock, struct timespec *t)
{
	const int result = (int)syscall(SYS_clock_gettime, clock, t);
	int64_t us;

	if (result == 0 && offset_us != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		us = t->tv_nsec / 1000 + *offset_us % 1000000;
		t->tv_sec += *offset_us / 1000000 + (us < 0 ? -1 : us / 1000000);
		t->tv_nsec = (us < 0 ? us + 1000000 : us % 1000000) * 1000;
	}
	return result;
}

int(gettimeofday)(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec t;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *result)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	if (result != NULL)
		*result = t.tv_sec;
	return t.tv_sec;
}
