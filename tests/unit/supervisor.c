/* SPDX-License-Identifier: MIT */
#include "run/supervisor.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory.h"

#define TTL_MS 1000
#define NOT_RELEASED 100 /* added to what supervise() returned */
#define DISORDER 101	 /* a stopped command would go on before the signal, or not at all; or who ended it is wrong */

static int releases;

/* The signals that dlock sends, instead of the function of the C library. */
static int sent[8];
static size_t sent_count;

int
kill(pid_t pid, int signal)
{
	if (signal != 0 && sent_count < sizeof(sent) / sizeof(sent[0]))
		sent[sent_count++] = signal;
	return (int)syscall(SYS_kill, pid, signal);
}

/* What the timer that would kill dlock was set to, first and last. */
static int64_t first_timer_us, last_timer_us;

int
timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *before)
{
	int (*real)(timer_t, int, const struct itimerspec *, struct itimerspec *);

	*(void **)&real = dlsym(RTLD_NEXT, "timer_settime");
	if (flags == 0)
		last_timer_us = (int64_t)value->it_value.tv_sec * 1000000 + value->it_value.tv_nsec / 1000;
	first_timer_us = first_timer_us != 0 ? first_timer_us : last_timer_us;
	return real(timer, flags, value, before);
}

static int refusals; /* so many releases fail */

static enum status
release(struct backend *backend, const struct lease *lease, int64_t keep_ms, enum ownership *ownership, struct err *err)
{
	*ownership = OWNED;
	return releases++ < refusals ? err_set(err, ST_NO_QUORUM, "no node answers") : ST_OK;
}

static int renewals;
static int64_t dawn_us; /* when a command must be ended, unless there is only a warning */

/* The first renewal takes until then, and the next one ends dlock. */
static enum status
renew(struct backend *backend, struct lease *lease, const struct wait *limit, struct renewed *renewed, struct err *err)
{
	const struct wait night = { dawn_us, -1 };

	(void)clock_wait(&night);
	if (++renewals == 2) {
		(void)syscall(SYS_kill, getpid(), SIGTERM);
		/* Until the supervisor stops the renewals, which on a busy machine is after the time for another one. */
		if (clock_wait(limit))
			return err_set(err, ST_INTERRUPTED, "interrupted");
	}
	return err_set(err, ST_NO_QUORUM, "no node answers");
}

/* ^C at the terminal before the command is started; only a process itself can queue what looks as if the kernel had. */
static void
interrupt_early(int signal)
{
	siginfo_t info = { .si_signo = abs(signal), .si_code = signal > 0 ? SI_KERNEL : SI_USER };

	(void)syscall(SYS_rt_sigqueueinfo, getpid(), info.si_signo, &info);
}

static const struct service ops = { .release = release, .renew = renew };
static struct backend backend = { .service = &ops };
static struct signals signals;
static struct supervised result;
static struct lease lease;
static struct supervision plan;
static struct err err;

/* Watch the signals, and fill in what all plans have: the command sleeps for so many seconds. */
static void
prepare(const char *seconds, int64_t ttl_ms, int64_t left_us)
{
	static char sleep[] = "sleep", length[8], *argv[] = { sleep, length, NULL };
	sigset_t mask;

	(void)snprintf(length, sizeof(length), "%s", seconds);
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	if (!signals_open(&signals, &mask))
		_exit(NOT_RELEASED);
	lease = (struct lease){ .key = "key", .ttl_ms = ttl_ms, .sent_us = clock_now_us(), .nodes = 1, .granted = 1 };
	lease.valid_until_us = lease.sent_us + left_us;
	plan = (struct supervision){ .backend = &backend,
		.lease = &lease,
		.argv = argv,
		.shown_key = "key",
		.signals = &signals,
		.first_signal = SIGTERM };
}

/*
 * A process that holds a command's lease which ends in so long, and how it ends: with 128 and more if the command died of
 * a signal.  With `early` it is in the foreground and got that signal already (negative: of another process).  So many
 * releases would fail, but not so many are tried.
 */
static int
supervised_until(int64_t left_us, int early, int failures)
{
	int status;
	const pid_t pid = fork();

	if (pid != 0)
		return end_of(pid);
	prepare(early != 0 ? "30" : "0", TTL_MS, left_us);
	plan.foreground = early != 0;
	plan.records = failures > 0;
	if (early != 0)
		interrupt_early(early);
	refusals = failures;
	status = (int)supervise(&plan, &result, &err);
	if (status == ST_OK && WIFSIGNALED(result.status))
		status = 128 + WTERMSIG(result.status);
	if (result.ended_by_terminal != (early > 0))
		status = DISORDER;
	_exit(status + (releases == 1 || (releases > 1 && releases < failures) ? 0 : NOT_RELEASED));
}

/* The same of a lock that is lost with a warning only, and whose servers are down: so many renewals are tried. */
static int
warned(void)
{
	const int64_t margin = 200000000;
	const pid_t pid = fork();

	if (pid != 0)
		return end_of(pid);
	prepare("20", 600000, margin + 2000000);
	lease.granted = 0;
	plan.kill_after_us = margin;
	plan.only_warn = true;
	dawn_us = lease.valid_until_us - margin;
	_exit(supervise(&plan, &result, &err) == ST_NO_QUORUM ? -1 : renewals);
}

/* A command that ignores the first signal of --max-run: 0 if dlock has its grace until SIGKILL, and any time behind it. */
static int
supervised_and_killed(void)
{
	const int64_t left = 60000000, grace = (6000000 + 2000) / 4 * 3;
	const pid_t pid = fork();

	if (pid != 0)
		return end_of(pid);
	prepare("60", 600000, left);
	plan.first_signal = SIGCONT;
	plan.max_run_us = plan.kill_after_us = 1;
	if (supervise(&plan, &result, &err) != ST_MAX_RUN)
		_exit(DISORDER);
	_exit((first_timer_us > left + grace / 2 && first_timer_us <= left + grace ? 0 : 1) +
	    (last_timer_us == 0 ? 0 : 2));
}

static void *
break_soon(void *memory)
{
	(void)poll(NULL, 0, 200);
	memory_break(memory);
	return NULL;
}

/*
 * A process that holds a long lease, which is broken long before its first renewal; it ends with the outcome.  Without a
 * first signal it is broken before the command is started, which does not exist.
 */
static int
supervised_and_broken(int first_signal)
{
	static char nowhere[] = "/nowhere/x", *none[] = { nowhere, NULL };
	const struct acquire_args args = { .key = "k", .ttl_ms = 600000, .wait = { 0, -1 } };
	struct memory memory;
	pthread_t thread;
	int status;
	const pid_t pid = fork();

	if (pid != 0)
		return end_of(pid);
	memory_open(&memory, 600000);
	prepare("60", 0, 0);
	plan.backend = &memory.base;
	plan.first_signal = first_signal;
	plan.kill_after_us = 10000000;
	if (memory_acquire(&memory.base, &args, &lease, &err) != ST_OK)
		_exit(NOT_RELEASED);
	if (first_signal == 0) {
		memory.held = false;
		plan.argv = none;
		_exit((int)supervise(&plan, &result, &err));
	}
	if (pthread_create(&thread, NULL, break_soon, &memory) != 0)
		_exit(NOT_RELEASED);
	status = (int)supervise(&plan, &result, &err);
	(void)pthread_join(thread, NULL);
	if (sent_count < 2 || sent[0] != first_signal || sent[1] != SIGCONT)
		_exit(DISORDER);
	_exit(status);
}

TEST(supervisor)
{
	static const int ends[] = { SIGINT, SIGQUIT, -SIGINT, -SIGQUIT, -SIGTERM };
	const int64_t began = clock_now_us();
	int status, tries = 0;

	status = supervised_and_broken(SIGTERM);
	ok(WIFEXITED(status), "a lock is broken");
	is_int(WEXITSTATUS(status), ST_LOST, "the supervisor notices that the lock is lost");
	ok(clock_now_us() - began < INT64_C(60000000), "long before the first renewal, which ends the command");
	status = supervised_and_broken(SIGHUP);
	ok(WIFEXITED(status), "a lock is broken whose command gets SIGHUP first");
	is_int(WEXITSTATUS(status), ST_LOST, "a stopped command is continued behind that, too");

	status = supervised_and_broken(0);
	ok(WIFEXITED(status), "a lock is broken before a command that does not exist");
	is_int(WEXITSTATUS(status), ST_NOT_FOUND, "which matters more");

	status = supervised_until(600000000, 0, 0);
	ok(WIFEXITED(status), "a command is held");
	is_int(WEXITSTATUS(status), ST_OK, "to its end, and the lock is given back");
	for (size_t i = 0; i < COUNT(ends); i++) {
		status = supervised_until(600000000, ends[i], 1);
		ok(WIFEXITED(status), "signal %d before a command in the foreground is started", ends[i]);
		is_int(WEXITSTATUS(status), 128 + abs(ends[i]),
		    "is passed on: the terminal has not sent it to the command; and only one release is tried");
	}
	status = supervised_until(7300000, 0, 20);
	ok(WIFEXITED(status), "a command whose end is to be recorded, and no node answers");
	is_int(WEXITSTATUS(status), ST_OK, "the release is tried until the lease ends");
	do
		status = warned();
	while (WEXITSTATUS(status) == 255 && ++tries < 10); /* too late, on a busy machine */
	is_int(WEXITSTATUS(status), 2, "renewals are tried to the end, where nothing is to be ended");
	is_int(supervised_and_killed(), 0, "a dlock whose command may need time to end has that");
	status = supervised_until(-TTL_MS * 1000, 0, 0);
	ok(WIFEXITED(status), "a dlock that was stopped until its lease was over lives");
	is_int(WEXITSTATUS(status), ST_NO_QUORUM, "to say that it is too late, and gives the lock back");
}
