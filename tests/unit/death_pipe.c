/* SPDX-License-Identifier: MIT */
#include "run/death_pipe.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

#define SHORT_US 600000 /* longer than a test is held up between its look at the clock and its SIGSTOP */
#define LEAD_US 50000
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

/* In the process that stands for dlock. */
static void
tie(struct death_pipe *t, pid_t victim, int64_t until_us, int64_t grace_us)
{
	struct err err;

	if (death_pipe_open(t, until_us, LEAD_US, grace_us, &err) != ST_OK || !death_pipe_bind(t, -victim, SIGKILL))
		_exit(1);
}

static bool
is_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void
block(int signal)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, signal);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

/* A stopped one is continued some time before the end of validity, whatever it does about SIGCONT. */
static void
test_stopped(bool blocked, bool ignored, bool extended)
{
	const int64_t now = clock_now_us();
	const int64_t until = now + (extended ? BUSY_US : 0) + SHORT_US;
	const pid_t victim = start_victim();
	const pid_t dlock = fork();
	struct death_pipe t;
	int status;

	if (dlock == 0) {
		if (blocked)
			block(SIGCONT);
		if (ignored)
			(void)signal(SIGCONT, SIG_IGN);
		tie(&t, victim, extended ? now + BUSY_US : until, LONG_US);
		if (extended)
			death_pipe_extend(&t, until);
		while (clock_now_us() < until - LEAD_US)
			(void)raise(SIGSTOP);
		_exit(7);
	}
	status = end_of(dlock);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 7,
	    "one that is stopped is continued before validity ends, %d%d%d", blocked, ignored, extended);
	ok(clock_now_us() >= until - LEAD_US, "not too early");
	ok(is_killed(end_of(victim)), "it ended without closing its death pipe: the group dies");
}

/* One that goes on and does nothing is killed a little later, one that can't go on as well. */
static void
test_hung(bool extended)
{
	const int64_t now = clock_now_us();
	const int64_t until = now + (extended ? BUSY_US : 0) + SHORT_US;
	const pid_t victim = start_victim();
	const pid_t dlock = fork();
	struct death_pipe t;

	if (dlock == 0) {
		tie(&t, victim, extended ? now + BUSY_US : until, SHORT_US);
		if (extended)
			death_pipe_extend(&t, until);
		for (;;)
			(void)pause();
	}
	ok(is_killed(end_of(dlock)), "one that hangs is killed");
	ok(clock_now_us() >= until + SHORT_US, "after its grace");
	ok(is_killed(end_of(victim)), "the kernel kills the group");
}

TEST(killed)
{
	const pid_t victim = start_victim();
	const pid_t dlock = fork();
	struct death_pipe t;

	if (dlock == 0) {
		tie(&t, victim, clock_now_us() + LONG_US, SHORT_US);
		(void)raise(SIGKILL);
	}
	ok(is_killed(end_of(dlock)), "dlock is killed");
	ok(is_killed(end_of(victim)), "the kernel kills the group");
}

/* Opened when validity has ended already: there still is the grace, for dlock to say so. */
TEST(late)
{
	struct death_pipe t;
	struct err err;

	is_int(death_pipe_open(&t, clock_now_us() - LONG_US, 0, BUSY_US, &err), ST_OK,
	    "a death pipe opened after the end of validity");
	death_pipe_close(&t);
	ok(true, "dlock is alive");
}

static void
test_closed(int64_t until_us)
{
	struct death_pipe t;
	struct err err;
	sigset_t set;

	block(SIGUSR1);
	is_int(death_pipe_open(&t, until_us, 0, BUSY_US, &err), ST_OK, "tied");
	ok(death_pipe_bind(&t, getpid(), SIGUSR1), "with a process");
	death_pipe_extend(&t, until_us);
	death_pipe_close(&t);
	ok(sigpending(&set) == 0 && !sigismember(&set, SIGUSR1), "let go: it gets no signal");
}

/* Without a timer a dlock that is stopped could not be helped. */
TEST(no_timer)
{
	struct rlimit before;
	struct death_pipe t;
	struct err err = { "" };

	(void)getrlimit(RLIMIT_SIGPENDING, &before);
	(void)setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){ 0, before.rlim_max });
	is_int(death_pipe_open(&t, clock_now_us() + LONG_US, 0, SHORT_US, &err), ST_SYSTEM, "no timer is left");
	ok(strstr(err.text, "timer") != NULL, "the message: %s", err.text);
	death_pipe_close(&t);
	is_int(death_pipe_open(&t, CLOCK_NEVER, 0, SHORT_US, &err), ST_OK,
	    "none is needed where validity does not matter");
	death_pipe_close(&t);
	(void)setrlimit(RLIMIT_SIGPENDING, &before);
}

/* While the host is suspended CLOCK_BOOTTIME goes on and CLOCK_MONOTONIC stands still: so SIGCONT comes first. */
TEST(clocks)
{
	char text[1024] = "";
	struct itimerspec left;
	struct death_pipe t;
	struct err err;
	FILE *file;

	(void)death_pipe_open(&t, clock_now_us() + LONG_US, LONG_US / 2, LONG_US, &err);
	(void)timer_gettime(t.wake, &left);
	ok(left.it_value.tv_sec <= LONG_US / 2 / 1000000, "SIGCONT comes in time before the end of validity");
	(void)timer_gettime(t.kill, &left);
	ok(left.it_value.tv_sec >= LONG_US * 3 / 2 / 1000000, "SIGKILL after it");
	file = fopen("/proc/self/timers", "r");
	if (file != NULL) { /* the kernel may be built without it */
		(void)!fread(text, 1, sizeof(text) - 1, file);
		(void)fclose(file);
		ok(strstr(text, "signal: 18/") < strstr(text, "ClockID: 7"), "SIGCONT on CLOCK_BOOTTIME: %s", text);
		ok(strstr(text, "signal: 9/") < strstr(text, "ClockID: 1"), "SIGKILL on CLOCK_MONOTONIC");
	}
	death_pipe_extend(&t, CLOCK_NEVER);
	ok(timer_gettime(t.wake, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0,
	    "no SIGCONT now");
	ok(timer_gettime(t.kill, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0, "nor SIGKILL");
	death_pipe_close(&t);
}

TEST(all)
{
	test_stopped(false, false, false);
	test_stopped(true, false, false);
	test_stopped(false, true, false);
	test_stopped(true, false, true);
	test_hung(false);
	test_hung(true);
	test_closed(clock_now_us() + LONG_US);
	test_closed(CLOCK_NEVER);
}
