/* SPDX-License-Identifier: MIT */
#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define TOO_LATE (-1) /* in place of an errno */
#define LEFT_MS 50    /* for what a command leaves behind to end, or to become the program that it is to be */

/* waitpid(2), restarted after EINTR. */
static pid_t
wait_for(pid_t pid, int *status, int options)
{
	pid_t waited;

	do
		waited = waitpid(pid, status, options);
	while (waited < 0 && errno == EINTR);
	return waited;
}

static _Noreturn void
give_up(int report, int error)
{
	(void)!write(report, &error, sizeof(error));
	_exit(ST_NOT_EXECUTABLE);
}

/*
 * Runs between vfork and exec: the parent is suspended and the memory is shared, so only system calls are made here.
 * An error is written to the pipe that exec closes.
 */
static _Noreturn void
become_command(const struct child_plan *plan, pid_t parent, int report)
{
	if (plan->own_group)
		(void)setpgid(0, 0);
	if (plan->own_group && !death_pipe_bind(plan->death_pipe, getpid()))
		give_up(report, errno);
	if (plan->terminal >= 0)
		(void)tcsetpgrp(plan->terminal, getpid()); /* SIGTTOU is blocked */
	/* The parent may have died before the death signal was armed. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() != parent)
		_exit(ST_LOST);
	signals_restore(plan->signals);
	/* Check the clock last: dlock or its host may have been stopped since the last check. */
	if (clock_now_us() >= plan->until_us)
		give_up(report, TOO_LATE);
	(void)execvpe(plan->argv[0], plan->argv, plan->environment != NULL ? plan->environment : environ);
	give_up(report, errno);
}

static pid_t
spawn(const struct child_plan *plan, int report)
{
	const pid_t parent = getpid();
	pid_t pid;

	pid = vfork();
	if (pid == 0)
		become_command(plan, parent, report);
	return pid;
}

/* The errno of a failed exec, TOO_LATE, or 0. */
static int
exec_error(int report)
{
	ssize_t n;
	int error = 0;

	do
		n = read(report, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(error) ? error : 0;
}

enum status
child_too_late(struct err *err)
{
	return err_set(err, ST_NO_QUORUM,
	    "granted too late: the lease had nearly expired before the command could start; use a longer --ttl");
}

/* Why a path is not found: of a script that is there, the interpreter may be missing. */
static const char *
missing_part(const char *path, int error)
{
	return access(path, F_OK) == 0 ? "its interpreter or loader does not exist (of a script, see its first line)"
				       : strerror(error);
}

static enum status
not_executed(const char *command, int error, struct err *err)
{
	char shown[200];

	if (error == TOO_LATE)
		return child_too_late(err);
	(void)text_show(command, shown, sizeof(shown));
	if ((error == ENOENT || error == ENOTDIR) && strchr(command, '/') != NULL)
		return err_set(err, ST_NOT_FOUND, "%s: command not found: %s", shown, missing_part(command, error));
	if (error == ENOENT || error == ENOTDIR)
		return err_set(err, ST_NOT_FOUND, "%s: command not found%s", shown,
		    strpbrk(command, " \t\n;|&") != NULL ? "; use -c for a line of the shell" : "");
	return err_set(err, ST_NOT_EXECUTABLE, "%s: cannot be executed: %s", shown, strerror(error));
}

enum status
child_start(const struct child_plan *plan, struct child *child, struct err *err)
{
	int ends[2], error;

	memset(child, 0, sizeof(*child));
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_system(err, errno, "cannot start the command");
	/* Processes that the command leaves behind become children of dlock, which can then wait for all of them. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	child->pid = spawn(plan, ends[1]);
	error = errno;
	(void)close(ends[1]);
	if (child->pid < 0) {
		(void)close(ends[0]);
		return err_system(err, error, "cannot start the command");
	}
	child->group = plan->own_group ? child->pid : 0;
	error = exec_error(ends[0]);
	(void)close(ends[0]);
	if (error != 0) {
		(void)wait_for(child->pid, NULL, 0);
		return not_executed(plan->argv[0], error, err);
	}
	return ST_OK;
}

void
child_adopt(struct child *child, const struct kept *kept)
{
	memset(child, 0, sizeof(*child));
	child->kept = kept;
	child->pid = kept->pid;
}

enum child_event
child_reap(struct child *child)
{
	int status;
	const pid_t pid = wait_for(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);

	child->others = pid == 0;
	if (pid <= 0)
		return CHILD_NOTHING;
	if (pid != child->pid || child->ended || child->kept != NULL) {
		child->stranger = pid;
		child->stranger_status = status;
		return CHILD_STRANGER;
	}
	child->status = status;
	if (WIFSTOPPED(status))
		return CHILD_STOPPED;
	if (WIFCONTINUED(status))
		return CHILD_CONTINUED;
	child->ended = true;
	return CHILD_ENDED;
}

pid_t
child_signal(const struct child *child, int signal)
{
	bool sent = true;

	if (child->kept != NULL)
		sent = kept_signal(child->kept, signal);
	else if (child->group != 0) { /* one process that may be signalled is enough for kill(2) */
		(void)kill(-child->group, signal);
		return group_forbidden(child->group);
	} else if (!child->ended)
		sent = kill(child->pid, signal) == 0;
	return !sent && errno == EPERM ? child->pid : 0;
}

bool
child_gone(struct child *child)
{
	if (child->kept != NULL)
		return kept_ended(child->kept);
	if (!child->ended)
		return false;
	return child->group == 0 || group_ended(&child->watch, child->group, clock_now_us());
}

/* Agents do nothing by themselves, and outlive the command that they were started for by some seconds. */
static bool
is_agent(const char *name)
{
	return strcmp(name, "ssh-agent") == 0 || strcmp(name, "gpg-agent") == 0;
}

pid_t
child_left_behind(const struct child *child, pid_t except, char name[PROCESS_NAME_SIZE])
{
	char file[40], list[1024], *at = list;
	pid_t pid;

	(void)poll(NULL, 0, LEFT_MS);
	while (wait_for(-1, NULL, WNOHANG) > 0)
		;
	(void)snprintf(file, sizeof(file), "task/%ld/children", (long)getpid());
	if (!process_read(getpid(), file, list, sizeof(list)))
		return 0;
	while ((pid = (pid_t)strtol(at, &at, 10)) > 0) {
		if (pid > child->pid && pid != except && process_name(pid, name) && !process_is_our_name(name) &&
		    !is_agent(name))
			return pid;
	}
	return 0;
}
