/* SPDX-License-Identifier: MIT */
#include "run/guardian.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

#define SHORT_US 100000
#define SECOND_US 1000000
#define BUSY_US 3000000 /* what a busy host, or valgrind, may need for a few calls */
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

	is_int(guardian_open(g, until_us, &err), ST_OK, "it is made ready");
	ok(guardian_bind(g, sign * victim), "and told whom to kill");
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
	const int64_t until = clock_now_us() + BUSY_US;
	struct guardian g;
	const pid_t victim = guarded(&g, sign, until);
	int status;

	is_int(guardian_start(&g), 0, "a guardian starts");
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
	const pid_t victim = guarded(&g, -1, now + BUSY_US);

	is_int(guardian_start(&g), 0, "a guardian starts");
	ok(guardian_extend(&g, now + BUSY_US + SECOND_US), "extended in time");
	ok(guardian_extend(&g, now + BUSY_US), "by less than it has");
	ok(guardian_extend(&g, now + LONG_US), "by much");
	(void)sleep((BUSY_US + SECOND_US) / SECOND_US);
	ok(is_alive(victim), "what was once the end of validity means nothing");
	guardian_dismiss(&g);
	guardian_reap(&g);
	ok(is_alive(victim), "dismissed: it lives");
	end(victim);
}

/* Nothing wakes it for an end of validity that was moved on. */
static void
test_sleep(void)
{
	struct guardian g;
	const int64_t now = clock_now_us();
	const pid_t victim = guarded(&g, -1, now + LONG_US);
	struct itimerspec left = { { 0, 0 }, { 0, 0 } };

	is_int(guardian_start(&g), 0, "a guardian starts");
	do /* until it sleeps */
		(void)timerfd_gettime(g.alarm, &left);
	while (left.it_value.tv_sec == 0);
	ok(left.it_value.tv_sec <= LONG_US / SECOND_US, "it sleeps until validity ends");
	ok(guardian_extend(&g, now + 3 * LONG_US), "extended");
	(void)timerfd_gettime(g.alarm, &left);
	ok(left.it_value.tv_sec > LONG_US / SECOND_US, "it sleeps on until the new end");
	guardian_dismiss(&g);
	guardian_reap(&g);
	end(victim);
}

/* Without a process: a dlock that does nothing is killed in time, and the group with it. */
static void
test_alone(bool extended)
{
	const int64_t now = clock_now_us();
	const int64_t until = now + BUSY_US + (extended ? SHORT_US : 0);
	const pid_t victim = start_victim();
	const pid_t dlock = fork();
	struct guardian g;
	struct err err;
	int status;

	if (dlock == 0) {
		if (guardian_open(&g, extended ? now + BUSY_US : until, &err) != ST_OK || !guardian_bind(&g, -victim))
			_exit(1);
		if (extended && !guardian_extend(&g, until))
			_exit(2);
		(void)raise(SIGSTOP);
		_exit(3);
	}
	(void)waitpid(dlock, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a dlock that is stopped dies when validity ends");
	ok(clock_now_us() >= until, "not before");
	(void)waitpid(victim, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the group dies with it");
}

/* What another process can do to one that has bound a victim, with and without a guardian. */
static void
test_killed(bool with_process)
{
	const pid_t victim = start_victim();
	const pid_t dlock = fork();
	struct guardian g;
	struct err err;
	int status;

	if (dlock == 0) {
		if (guardian_open(&g, clock_now_us() + LONG_US, &err) != ST_OK || !guardian_bind(&g, -victim) ||
		    (with_process && guardian_start(&g) != 0))
			_exit(1);
		(void)raise(SIGKILL);
	}
	(void)waitpid(dlock, &status, 0);
	ok(WIFSIGNALED(status), "dlock is killed");
	(void)waitpid(victim, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the kernel kills the group");
}

/* The system has no timer left: the process is there from the beginning. */
static void
test_no_timer(void)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit before;
	struct guardian g;
	pid_t victim;
	int status;

	(void)getrlimit(RLIMIT_SIGPENDING, &before);
	(void)setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){ none.rlim_cur, before.rlim_max });
	victim = guarded(&g, -1, clock_now_us() + SHORT_US);
	(void)setrlimit(RLIMIT_SIGPENDING, &before);
	ok(g.pid > 0, "a guardian from the beginning");
	(void)waitpid(victim, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed when validity ends");
	guardian_dismiss(&g);
	guardian_reap(&g);
}

/* Validity doesn't matter: only dlock's end does. */
static void
test_never(void)
{
	struct guardian g;
	const pid_t victim = guarded(&g, -1, CLOCK_NEVER);

	is_int(guardian_start(&g), 0, "nothing to start");
	is_int(g.pid, 0, "no process");
	ok(guardian_extend(&g, clock_now_us()), "nothing is too late");
	guardian_dismiss(&g);
	guardian_reap(&g);
	ok(is_alive(victim), "dismissed: it lives");
	end(victim);
}

int
main(void)
{
	test_strike(-1);
	test_strike(1);
	test_extend();
	test_sleep();
	test_alone(false);
	test_alone(true);
	test_killed(false);
	test_killed(true);
	test_no_timer();
	test_never();
	return tap_end();
}
