/* SPDX-License-Identifier: MIT */
#include "run/hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define REASON "DLOCK_LOST_REASON="
#define WAIT_US 10000000 /* for its end */

/* The environment with the reason, in one block of memory.  NULL: out of memory. */
static char **
environment_with(char *const *given, const char *reason)
{
	char **environment, *text;
	size_t count = 0, kept = 0, i;

	while (given[count] != NULL)
		count++;
	environment = malloc((count + 2) * sizeof(*environment) + sizeof(REASON) + strlen(reason));
	if (environment == NULL)
		return NULL;
	for (i = 0; i < count; i++) {
		if (strncmp(given[i], REASON, strlen(REASON)) != 0)
			environment[kept++] = given[i];
	}
	text = (char *)(environment + count + 2);
	(void)stpcpy(stpcpy(text, REASON), reason);
	environment[kept++] = text;
	environment[kept] = NULL;
	return environment;
}

static void
set_attributes(const struct hook *h, posix_spawnattr_t *attributes)
{
	const struct sched_param none = { .sched_priority = 0 };
	short flags = POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK;

	(void)posix_spawnattr_setsigmask(attributes, &h->signals->given);
	if (sched_getscheduler(0) == SCHED_FIFO) { /* dlock has the priority for itself */
		(void)posix_spawnattr_setschedpolicy(attributes, SCHED_OTHER);
		(void)posix_spawnattr_setschedparam(attributes, &none);
		flags |= POSIX_SPAWN_SETSCHEDULER;
	}
	(void)posix_spawnattr_setflags(attributes, flags);
}

/* Returns 0 or an errno. */
static int
spawn(struct hook *h, char *command, char *const *environment)
{
	/* The child changes directory: if that is on a file system that hangs, this process does not. */
	static char sh[] = "sh", dash_c[] = "-c", there[] = "cd -- \"$0\" 2>/dev/null; exec /bin/sh -c \"$1\"";
	char *const argv[] = { sh, dash_c, h->directory != NULL ? there : command, h->directory, command, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int error;

	error = posix_spawnattr_init(&attributes);
	if (error != 0)
		return error;
	error = posix_spawn_file_actions_init(&actions);
	if (error == 0) {
		error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		set_attributes(h, &attributes);
		if (error == 0)
			error = posix_spawn(&h->pid, "/bin/sh", &actions, &attributes, argv, environment);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	(void)posix_spawnattr_destroy(&attributes);
	return error;
}

void
hook_start(struct hook *h, const char *reason)
{
	char **environment, *command;
	int error = ENOMEM;

	if (h->command == NULL || h->until_us != 0)
		return;
	h->until_us = clock_add(clock_now_us(), WAIT_US);
	environment = environment_with(h->environment != NULL ? h->environment : environ, reason);
	command = strdup(h->command);
	if (environment != NULL && command != NULL)
		error = spawn(h, command, environment);
	free(command);
	free(environment);
	if (error == 0)
		return;
	h->pid = 0;
	log_warn(h->log, "%s: the command of --exec-on-lost could not be started: %s", h->shown_key, strerror(error));
}

void
hook_reaped(struct hook *h, pid_t pid, int status)
{
	char name[SIGNAL_NAME_SIZE];

	if (h->pid == 0 || pid != h->pid || WIFSTOPPED(status) || WIFCONTINUED(status))
		return;
	h->pid = 0;
	if (WIFSIGNALED(status))
		log_warn(h->log, "%s: the command of --exec-on-lost was ended by %s", h->shown_key,
		    signals_name(WTERMSIG(status), name));
	else if (WEXITSTATUS(status) != 0)
		log_warn(h->log, "%s: the command of --exec-on-lost failed with exit status %d", h->shown_key,
		    WEXITSTATUS(status));
}

void
hook_finish(struct hook *h)
{
	struct pollfd fd = { .fd = h->signals->fd, .events = POLLIN };
	struct timespec left;
	int status;

	while (h->pid != 0) {
		if (waitpid(h->pid, &status, WNOHANG) == h->pid) {
			hook_reaped(h, h->pid, status);
			continue;
		}
		if (clock_now_us() >= h->until_us || signals_asked_to_end(h->signals)) {
			log_warn(h->log, "%s: the command of --exec-on-lost still runs; dlock ends without it",
			    h->shown_key);
			return;
		}
		(void)ppoll(&fd, 1, clock_until(clock_now_us(), h->until_us, &left), NULL);
	}
}
