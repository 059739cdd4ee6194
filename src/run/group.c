/* SPDX-License-Identifier: MIT */
#include "run/group.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/process.h"

#define LOOKS 2	       /* this many looks in a row must find only zombies, */
#define PAUSE_US 50000 /* with at least this pause between them, */
#define SHARE 20       /* and at least this many times the duration of a look */
#define LINE_SIZE 512  /* of /proc/PID/stat, up to the number of threads */

enum state {
	STATE_RUNS, /* or unknown */
	STATE_ZOMBIE,
	STATE_ELSEWHERE /* in another group, or gone */
};

/* A process whose first thread has ended is shown as a zombie even while other threads of it still run. */
static enum state
state_of(pid_t pid, pid_t group)
{
	char line[LINE_SIZE], state;
	const char *behind_name;
	long its_group, threads;

	if (!process_read(pid, "stat", line, sizeof(line)))
		return errno == ENOENT || errno == ESRCH ? STATE_ELSEWHERE : STATE_RUNS;
	behind_name = strrchr(line, ')');
	if (behind_name == NULL ||
	    sscanf(behind_name, ") %c %*d %ld %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state,
		&its_group, &threads) != 3)
		return STATE_RUNS;
	if (its_group != group)
		return STATE_ELSEWHERE;
	return (state == 'Z' || state == 'X') && threads <= 1 ? STATE_ZOMBIE : STATE_RUNS;
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

/* Examine all processes.  True if the group has only zombies. */
static bool
finds_only_zombies(struct group_watch *w, pid_t group)
{
	DIR *const proc = opendir("/proc");
	const struct dirent *entry;
	enum state state;
	bool zombies = false;

	w->running = 0;
	if (proc == NULL)
		return false;
	while (w->running == 0 && (errno = 0, entry = readdir(proc)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		state = state_of((pid_t)strtol(entry->d_name, NULL, 10), group);
		zombies = zombies || state == STATE_ZOMBIE;
		if (state == STATE_RUNS)
			w->running = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (errno != 0)
		zombies = false;
	(void)closedir(proc);
	return zombies && w->running == 0 && proc_shows_all();
}

pid_t
group_forbidden(pid_t group)
{
	DIR *const proc = geteuid() != 0 ? opendir("/proc") : NULL;
	const struct dirent *entry;
	pid_t pid, forbidden = 0;

	if (proc == NULL)
		return 0;
	while (forbidden == 0 && (entry = readdir(proc)) != NULL) {
		pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid > 0 && kill(pid, 0) != 0 && errno == EPERM && state_of(pid, group) == STATE_RUNS)
			forbidden = pid;
	}
	(void)closedir(proc);
	return forbidden;
}

bool
group_ended(struct group_watch *w, pid_t group, int64_t now_us)
{
	int64_t took_us;

	if (kill(-group, 0) != 0 && errno == ESRCH)
		return true;
	if (now_us < w->look_at_us || (w->running != 0 && state_of(w->running, group) == STATE_RUNS))
		return false;
	w->only_zombies = finds_only_zombies(w, group) ? w->only_zombies + 1 : 0;
	took_us = clock_now_us() - now_us;
	w->look_at_us = clock_add(now_us, took_us * SHARE > PAUSE_US ? took_us * SHARE : PAUSE_US);
	return w->only_zombies >= LOOKS;
}
