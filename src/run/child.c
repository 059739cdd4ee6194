/* SPDX-License-Identifier: MIT */
#include "run/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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

/* The test for the end of a group: */
#define LOOKS 2		    /* this many looks in a row must find only zombies, */
#define LOOK_PAUSE_US 50000 /* with at least this pause between them, */
#define SHARE 20	    /* and at least this many times the duration of a look */

enum state {
	STATE_RUNS, /* or unknown */
	STATE_ZOMBIE,
	STATE_ELSEWHERE /* in another group, or gone */
};

/* -- Start ------------------------------------------------------------------ */

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
	if (plan->own_group) {
		(void)setpgid(0, 0);
		if (!death_pipe_bind(plan->death_pipe, -getpid(), SIGKILL))
			give_up(report, errno);
	}
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

enum status
child_too_late(struct err *err)
{
	return err_set(err, ST_NO_QUORUM,
	    "granted too late: the lease had nearly expired before the command could start; use a longer --ttl");
}

static enum status
not_executed(const char *command, int error, struct err *err)
{
	/* A line of the shell may also begin with a path. */
	const bool line = strpbrk(command, " \t\n;|&") != NULL && access(command, F_OK) != 0;
	const char *const hint = line ? "; use -c for a line of the shell" : "";
	char shown[200];

	if (error == TOO_LATE)
		return child_too_late(err);
	(void)text_show(command, shown, sizeof(shown));
	if (error != ENOENT && error != ENOTDIR)
		return err_set(err, ST_NOT_EXECUTABLE, "%s: cannot be executed: %s", shown, strerror(error));
	if (strchr(command, '/') == NULL)
		return err_set(err, ST_NOT_FOUND, "%s: command not found%s", shown, hint);
	return err_set(err, ST_NOT_FOUND, "%s: command not found: %s%s", shown,
	    access(command, F_OK) == 0 ? "its interpreter or loader does not exist (of a script, see its first line)"
				       : strerror(error),
	    hint);
}

enum status
child_start(const struct child_plan *plan, struct child *child, struct err *err)
{
	const pid_t parent = getpid();
	int ends[2], error;

	memset(child, 0, sizeof(*child));
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_system(err, errno, "cannot start the command");
	/* Processes that the command leaves behind become children of dlock, which can then wait for all of them. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	child->pid = vfork();
	if (child->pid == 0)
		become_command(plan, parent, ends[1]);
	error = errno;
	(void)close(ends[1]);
	if (child->pid < 0) {
		(void)close(ends[0]);
		return err_system(err, error, "cannot start the command");
	}
	child->group = plan->own_group ? child->pid : 0;
	error = 0; /* or what give_up() has written */
	while (read(ends[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	(void)close(ends[0]);
	if (error != 0) {
		(void)wait_for(child->pid, NULL, 0);
		return not_executed(plan->argv[0], error, err);
	}
	return ST_OK;
}

/* -- Signals and the end ---------------------------------------------------- */

pid_t
child_reap(struct child *child, int *status)
{
	const pid_t pid = wait_for(-1, status, WNOHANG | WUNTRACED | WCONTINUED);

	child->others = pid == 0;
	if (pid > 0 && pid == child->pid && !child->ended) {
		child->status = *status;
		child->ended = WIFEXITED(*status) || WIFSIGNALED(*status);
	}
	return pid > 0 ? pid : 0;
}

/* A process whose first thread has ended is shown as a zombie even while other threads of it still run. */
static enum state
state_of(pid_t pid, pid_t group)
{
	uint64_t stat[STAT_FIELDS];

	if (!process_stat(pid, stat))
		return errno == ENOENT || errno == ESRCH ? STATE_ELSEWHERE : STATE_RUNS;
	if (stat[STAT_GROUP] != (uint64_t)group)
		return STATE_ELSEWHERE;
	return (stat[STAT_STATE] == 'Z' || stat[STAT_STATE] == 'X') && stat[STAT_THREADS] <= 1 ? STATE_ZOMBIE
											       : STATE_RUNS;
}

/* Does /proc belong to this PID namespace, and show the processes of all users? */
static bool
proc_shows_all(void)
{
	char line[1024];
	const ssize_t length = readlink("/proc/self", line, sizeof(line) - 1);
	FILE *mounts;
	bool all;

	line[length > 0 ? length : 0] = '\0';
	if (strtol(line, NULL, 10) != (long)getpid())
		return false;
	mounts = fopen("/proc/self/mounts", "re");
	if (mounts == NULL)
		return false;
	for (all = true; all && fgets(line, sizeof(line), mounts) != NULL;)
		all = strstr(line, "hidepid=") == NULL;
	all = all && ferror(mounts) == 0;
	(void)fclose(mounts);
	return all;
}

/*
 * Examine the processes of a group, or those that may not be signalled, until one runs: that process.  0: none does,
 * and *zombies says whether there are any.
 */
static pid_t
find_running(pid_t group, bool forbidden, bool *zombies)
{
	DIR *const proc = opendir("/proc");
	const struct dirent *entry;
	enum state state;
	pid_t pid, running = 0;

	*zombies = false;
	if (proc == NULL)
		return 0;
	while (running == 0 && (errno = 0, entry = readdir(proc)) != NULL) {
		pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid <= 0 || (forbidden && (kill(pid, 0) == 0 || errno != EPERM)))
			continue;
		state = state_of(pid, group);
		*zombies = *zombies || state == STATE_ZOMBIE;
		running = state == STATE_RUNS ? pid : 0;
	}
	if (errno != 0)
		*zombies = false;
	(void)closedir(proc);
	return running;
}

pid_t
child_signal(const struct child *child, int signal)
{
	bool sent = true, ignored;

	if (child->process != NULL)
		sent = process_signal(child->process, signal);
	else if (child->group != 0) { /* one process that may be signalled is enough for kill(2) */
		(void)kill(-child->group, signal);
		return geteuid() != 0 ? find_running(child->group, true, &ignored) : 0;
	} else if (!child->ended)
		sent = kill(child->pid, signal) == 0;
	return !sent && errno == EPERM ? child->pid : 0;
}

/*
 * Has the group of the command ended?  kill(2) counts zombies as well.  A zombie that its parent, a daemon that left
 * the group, never reaps would keep the lock for as long as that parent lives.  So if kill(2) finds the group, /proc is
 * read to see whether any process of it still runs.
 *
 * This is done only after the command itself has ended, normally for one process: the one that was found running
 * before.  If that one has ended, all processes of the host are examined, for at most a twentieth of the time.  A
 * process that forks may escape one such look, so two looks in a row must find only zombies.  If /proc is missing or
 * does not show all processes (hidepid), a zombie counts, as with kill(2).
 */
bool
child_gone(struct child *c)
{
	int64_t now, took_us;
	bool zombies;

	if (c->process != NULL)
		return process_ended(c->process);
	if (!c->ended || c->group == 0 || (kill(-c->group, 0) != 0 && errno == ESRCH))
		return c->ended;
	now = clock_now_us();
	if (now < c->look_at_us || (c->running != 0 && state_of(c->running, c->group) == STATE_RUNS))
		return false;
	c->running = find_running(c->group, false, &zombies);
	c->only_zombies = c->running == 0 && zombies && proc_shows_all() ? c->only_zombies + 1 : 0;
	took_us = clock_now_us() - now;
	c->look_at_us = clock_add(now, took_us * SHARE > LOOK_PAUSE_US ? took_us * SHARE : LOOK_PAUSE_US);
	return c->only_zombies >= LOOKS;
}

pid_t
child_left_behind(const struct child *child, pid_t except, char name[PROCESS_NAME_SIZE])
{
	char file[40], list[1024], *at = list;
	pid_t pid;
	bool is_ours;

	(void)poll(NULL, 0, LEFT_MS);
	while (wait_for(-1, NULL, WNOHANG) > 0)
		;
	(void)snprintf(file, sizeof(file), "task/%ld/children", (long)getpid());
	if (!process_read(getpid(), file, list, sizeof(list)))
		return 0;
	while ((pid = (pid_t)strtol(at, &at, 10)) > 0) {
		/*
		 * Agents do nothing by themselves, and outlive the command that they were started for by some seconds.
		 */
		if (pid > child->pid && pid != except && process_name(pid, name, &is_ours) && !is_ours &&
		    strcmp(name, "ssh-agent") != 0 && strcmp(name, "gpg-agent") != 0)
			return pid;
	}
	return 0;
}
