/* SPDX-License-Identifier: MIT */
#include "run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

bool
process_read(pid_t pid, const char *file, char *text, size_t size)
{
	char path[40];
	ssize_t length;
	int fd, error;

	(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, size - 1);
	error = errno;
	(void)close(fd);
	errno = error;
	text[length > 0 ? length : 0] = '\0';
	return length >= 0;
}

bool
process_name(pid_t pid, char name[PROCESS_NAME_SIZE])
{
	if (!process_read(pid, "comm", name, PROCESS_NAME_SIZE))
		return false;
	name[strcspn(name, "\n")] = '\0';
	return true;
}

bool
process_is_our_name(const char *name)
{
	char ours[PROCESS_NAME_SIZE] = "";

	return prctl(PR_GET_NAME, ours) == 0 && strcmp(name, ours) == 0;
}
