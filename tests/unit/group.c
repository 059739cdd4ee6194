/* SPDX-License-Identifier: MIT */
#include "run/group.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

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

/* So many looks, with time enough between them. */
static bool
ended(struct group_watch *w, pid_t group, int query)
{
	bool all = false;

	while (query-- > 0)
		all = group_ended(w, group, w->look_at_us > clock_now_us() ? w->look_at_us : clock_now_us());
	return all;
}

static void
end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

int
main(void)
{
	struct group_watch w = { 0 };
	pid_t pid;

	pid = start('s');
	ok(!ended(&w, pid, 5) && w.running == pid, "a process that sleeps runs");
	(void)kill(pid, SIGSTOP);
	ok(!ended(&w, pid, 5), "one that is stopped is there, too");
	(void)kill(pid, SIGKILL);
	await_zombie(pid);
	ok(!ended(&w, pid, 1), "one look isn't enough");
	ok(ended(&w, pid, 1), "a zombie does not run");
	(void)waitpid(pid, NULL, 0);
	memset(&w, 0, sizeof(w));
	ok(group_ended(&w, pid, 0) && w.look_at_us == 0, "a reaped process does not run, and needs no second look");

	memset(&w, 0, sizeof(w));
	pid = start('e');
	await_zombie(pid);
	ok(!group_ended(&w, pid, 1000) && !group_ended(&w, pid, 1001) && !group_ended(&w, pid, 50999) &&
		w.only_zombies == 1,
	    "all processes are not looked at twice within 50 ms");
	end(pid);

	memset(&w, 0, sizeof(w));
	pid = start('t');
	await_zombie(pid);
	ok(!ended(&w, pid, 5) && w.running == pid, "a process whose first thread has ended runs");
	end(pid);
	return tap_end();
}
