/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_PROCESS_H
#define DLOCK_RUN_PROCESS_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Read the beginning of /proc/PID/FILE, of a file that one read(2) returns, as a string.  False with errno set. */
bool process_read(pid_t, const char *file, char *text, size_t size);

#endif
