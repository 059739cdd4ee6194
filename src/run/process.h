/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_PROCESS_H
#define DLOCK_RUN_PROCESS_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Read the beginning of /proc/PID/FILE, of a file that one read(2) returns, as a string.  False with errno set. */
bool process_read(pid_t, const char *file, char *text, size_t size);

enum {
	PROCESS_NAME_SIZE = 32
};

/* Read the name of a process, which may have any bytes.  False with errno set. */
bool process_name(pid_t, char name[PROCESS_NAME_SIZE]);

/* Is this the name of this process? */
bool process_is_our_name(const char *name);

#endif
