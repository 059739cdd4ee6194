/* SPDX-License-Identifier: MIT */
#include "run/process.h"

#include <errno.h>
#include <sys/wait.h>

pid_t
process_wait(pid_t pid, int *status, int options)
{
	pid_t waited;

	do
		waited = waitpid(pid, status, options);
	while (waited < 0 && errno == EINTR);
	return waited;
}
