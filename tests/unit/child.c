/* SPDX-License-Identifier: MIT */
#include "run/child.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

/* Start `sh -c LINE` at the latest at until_us, and wait until it has ended.  NULL: in a group without a death pipe. */
static enum status
run(const char *line, int64_t until_us, struct child *child, struct err *err)
{
	char sh[] = "sh", c[] = "-c", text[64];
	char *argv[] = { sh, c, text, NULL };
	struct signals signals = { .fd = -1 };
	struct death_pipe death_pipe = { .ends = { -1, -1 } };
	const struct child_plan plan = { .argv = argv,
		.own_group = line == NULL,
		.terminal = -1,
		.death_pipe = &death_pipe,
		.until_us = until_us,
		.signals = &signals };
	enum status status;
	int ignored;

	if (line != NULL && death_pipe_open(&death_pipe, CLOCK_NEVER, 0, 0, err) != ST_OK)
		return ST_SYSTEM;
	(void)snprintf(text, sizeof(text), "%s", line != NULL ? line : "exit 0");
	(void)sigprocmask(SIG_BLOCK, NULL, &signals.given);
	status = child_start(&plan, child, err);
	while (status == ST_OK && !child->ended)
		(void)child_reap(child, &ignored);
	death_pipe_close(&death_pipe);
	return status;
}

static void *
sleep_on(void *nothing)
{
	(void)pause();
	return nothing;
}

/* A process in a group of its own that ends, or whose first thread ends while another one goes on, or that goes on. */
static pid_t
start(char how)
{
	pthread_t thread;
	const pid_t pid = fork();

	(void)setpgid(pid, pid);
	if (pid != 0)
		return pid;
	if (how == 'e')
		_exit(0);
	if (how == 't' && pthread_create(&thread, NULL, sleep_on, NULL) == 0)
		pthread_exit(NULL);
	(void)sleep_on(NULL);
	_exit(1);
}

/* Wait until it is shown as a zombie. */
static void
await_zombie(pid_t pid)
{
	char path[40], line[256] = "";
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	while (strstr(line, ") Z ") == NULL) {
		(void)usleep(1000);
		file = fopen(path, "re");
		if (file == NULL || fgets(line, sizeof(line), file) == NULL)
			line[0] = '\0';
		if (file != NULL)
			(void)fclose(file);
	}
}

/* So many looks, with time enough between them: is the group of a command that has ended gone? */
static bool
gone(struct child *child, int looks)
{
	bool all = false;

	while (looks-- > 0) {
		while (clock_now_us() < child->look_at_us)
			(void)usleep(1000);
		all = child_gone(child);
	}
	return all;
}

TEST(group)
{
	struct child child = { .ended = true, .only_zombies = 1 };
	pid_t pid;
	int i;

	child.group = pid = start('s');
	ok(!gone(&child, 5) && child.running == pid && child.only_zombies == 0, "a process that sleeps runs");
	(void)kill(pid, SIGSTOP);
	ok(!gone(&child, 5), "one that is stopped is there, too");
	(void)kill(pid, SIGKILL);
	await_zombie(pid);
	ok(!gone(&child, 1), "one look isn't enough");
	/*
	 * What a look cannot tell counts as running: on a busy machine it may take more than two.  A process that was
	 * killed runs until its last thread has ended, too, such as that of ThreadSanitizer, and such a look takes no time.
	 */
	for (i = 0; i < 10000 && !gone(&child, 1); i++)
		(void)usleep(1000);
	ok(i < 10000, "a zombie does not run");
	(void)waitpid(pid, NULL, 0);
	child = (struct child){ .ended = true, .group = pid };
	ok(child_gone(&child) && child.look_at_us == 0, "a reaped process does not run, and needs no second look");

	child.group = pid = start('e');
	await_zombie(pid);
	child.look_at_us = CLOCK_NEVER;
	ok(!child_gone(&child) && child.only_zombies == 0, "all processes are not looked at before it is time");
	child.look_at_us = 0;
	ok(!child_gone(&child) && child.look_at_us >= clock_now_us() + 20000, "nor twice within 50 ms");
	kill_off(pid);

	child = (struct child){ .ended = true, .group = start('t') };
	await_zombie(child.group);
	ok(!gone(&child, 5) && child.running == child.group, "a process whose first thread has ended runs");
	kill_off(child.group);
}

/* A zombie counts where other processes of the group may be hidden: what a look at a /proc that does so makes of one. */
TEST(hidden)
{
	struct child child = { .ended = true };
	const pid_t pid = fork();

	if (pid == 0) {
		if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("proc", "/proc", "proc", 0, "hidepid=2") != 0)
			_exit(0); /* only root may do that */
		child.group = start('e');
		await_zombie(child.group);
		_exit(gone(&child, 5));
	}
	is_int(end_of(pid), 0, "a zombie where /proc does not show all processes");
}

TEST(too_late)
{
	struct child child;
	struct err err = { "" };
	char folder[64];

	temporary_folder(folder, sizeof(folder));
	ok(chdir(folder) == 0, "a folder");
	is_int(run("echo >in-time; exit 3", CLOCK_NEVER, &child, &err), ST_OK, "in time");
	is_int(child.status, 3 << 8, "its status");
	is_int(access("in-time", F_OK), 0, "it ran");
	is_int(run(NULL, CLOCK_NEVER, &child, &err), ST_NOT_EXECUTABLE, "one that would outlive dlock is not started");
	is_int(run("echo >too-late", clock_now_us(), &child, &err), ST_NO_QUORUM, "too late");
	ok(strstr(err.text, "granted too late") != NULL, "the message: %s", err.text);
	is_int(access("too-late", F_OK), -1, "it never ran");
	(void)unlink("in-time");
	(void)rmdir(folder);
}
