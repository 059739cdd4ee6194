/* SPDX-License-Identifier: MIT */
#include "run/guardian.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

#define SHORT_US 100000
#define LONG_US 600000000

/* A process that leads a group and sleeps. */
static pid_t
start_victim(void)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(600);
		(void)setpgid(0, 0);
		for (;;)
			(void)pause();
	}
	(void)setpgid(pid, pid);
	return pid;
}

/* A guardian of it; sign -1: of its group. */
static pid_t
guarded(struct guardian *g, int sign, int64_t until_us)
{
	const pid_t victim = start_victim();
	struct err err;

	is_int(guardian_start(g, until_us, &err), ST_OK, "a guardian starts");
	guardian_watch(g->fd, sign * victim);
	return victim;
}

static bool
is_alive(pid_t victim)
{
	return waitpid(victim, NULL, WNOHANG) == 0;
}

static void
end(pid_t victim)
{
	(void)kill(victim, SIGKILL);
	(void)waitpid(victim, NULL, 0);
}

static void
test_strike(int sign)
{
	const int64_t until = clock_now_us() + SHORT_US;
	struct guardian g;
	const pid_t victim = guarded(&g, sign, until);
	int status;

	(void)waitpid(victim, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed when validity ends");
	ok(clock_now_us() >= until, "not before");
	ok(!guardian_extend(&g, until + LONG_US), "then it is too late to extend it");
	guardian_dismiss(&g);
	guardian_reap(&g);
}

static void
test_extend(void)
{
	struct guardian g;
	const int64_t now = clock_now_us();
	const pid_t victim = guarded(&g, -1, now + LONG_US);

	ok(guardian_extend(&g, now + 2 * LONG_US), "extended in time");
	ok(guardian_extend(&g, now + LONG_US), "by less than it has");
	guardian_dismiss(&g);
	guardian_reap(&g);
	ok(is_alive(victim), "dismissed: it lives");
	ok(guardian_extend(&g, now), "without a guardian nothing is too late");
	end(victim);
}

/* The pipe ends without a word. */
static void
test_orphan(void)
{
	struct guardian g;
	pid_t victim = guarded(&g, -1, CLOCK_NEVER);
	int status;

	(void)close(g.fd);
	(void)waitpid(victim, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "dlock is gone: the group is killed");
	guardian_reap(&g);

	victim = guarded(&g, 1, CLOCK_NEVER);
	(void)close(g.fd);
	guardian_reap(&g);
	ok(is_alive(victim), "dlock is gone: a single process is left to its parent-death signal");
	end(victim);
}

int
main(void)
{
	test_strike(-1);
	test_strike(1);
	test_extend();
	test_orphan();
	return tap_end();
}
