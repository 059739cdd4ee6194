/* SPDX-License-Identifier: MIT */
#include "run/supervisor.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory.h"
#include "tap.h"

#define TTL_MS 1000
#define NOT_RELEASED 100 /* added to what supervise() returned */

static int releases;

static enum status
release(struct backend *backend, const struct lease *lease, int64_t keep_ms, enum ownership *ownership, struct err *err)
{
	(void)backend;
	(void)lease;
	(void)keep_ms;
	(void)err;
	*ownership = OWNED;
	releases++;
	return ST_OK;
}

/* A process that holds a command's lease which ends in so long, and how it ends. */
static int
supervised_until(int64_t left_us)
{
	static char command[] = "true";
	char *const argv[] = { command, NULL };
	const struct backend_ops ops = { .release = release };
	struct backend backend = { .ops = &ops };
	struct signals signals;
	const int64_t now = clock_now_us();
	const struct lease lease = { .key = "key", .ttl_ms = TTL_MS, .sent_us = now, .valid_until_us = now + left_us };
	const struct supervision plan = { .backend = &backend,
		.lease = &lease,
		.argv = argv,
		.shown_key = "key",
		.first_signal = SIGTERM,
		.signals = &signals };
	struct supervised result;
	struct err err;
	sigset_t mask;
	int status = 0;
	const pid_t pid = fork();

	if (pid == 0) {
		(void)sigprocmask(SIG_SETMASK, NULL, &mask);
		status = signals_open(&signals, &mask) ? (int)supervise(&plan, &result, &err) : -1;
		_exit(status + (releases == 1 ? 0 : NOT_RELEASED));
	}
	(void)waitpid(pid, &status, 0);
	return status;
}

static void *
break_soon(void *memory)
{
	(void)poll(NULL, 0, 200);
	memory_break(memory);
	return NULL;
}

/* A process that holds a long lease, which is broken long before its first renewal; it ends with the outcome. */
static int
supervised_and_broken(void)
{
	static char sleep[] = "sleep", seconds[] = "60";
	char *const argv[] = { sleep, seconds, NULL };
	const struct acquire_args args = { .key = "k", .ttl_ms = 600000 };
	struct signals signals;
	struct memory memory;
	struct lease lease;
	const struct supervision plan = { .backend = &memory.base,
		.lease = &lease,
		.argv = argv,
		.shown_key = "k",
		.first_signal = SIGTERM,
		.signals = &signals };
	struct supervised result = { .outcome = OUTCOME_RAN };
	struct err err;
	pthread_t thread;
	sigset_t mask;
	int status = 0;
	const pid_t pid = fork();

	if (pid == 0) {
		memory_open(&memory, 600000);
		(void)sigprocmask(SIG_SETMASK, NULL, &mask);
		if (memory_acquire(&memory.base, &args, -1, &lease, &err) != ST_OK || !signals_open(&signals, &mask) ||
		    pthread_create(&thread, NULL, break_soon, &memory) != 0 || supervise(&plan, &result, &err) != ST_OK)
			_exit(NOT_RELEASED);
		(void)pthread_join(thread, NULL);
		_exit((int)result.outcome);
	}
	(void)waitpid(pid, &status, 0);
	return status;
}

int
main(void)
{
	const int64_t began = clock_now_us();
	int status;

	status = supervised_and_broken();
	ok(WIFEXITED(status), "a lock is broken");
	is_int(WEXITSTATUS(status), OUTCOME_LOST, "the supervisor notices that the lock is lost");
	ok(clock_now_us() - began < INT64_C(60000000), "long before the first renewal, which ends the command");

	status = supervised_until(600000000);
	ok(WIFEXITED(status), "a command is held");
	is_int(WEXITSTATUS(status), ST_OK, "to its end, and the lock is given back");
	status = supervised_until(-TTL_MS * 1000);
	ok(WIFEXITED(status), "a dlock that was stopped until its lease was over lives");
	is_int(WEXITSTATUS(status), ST_NO_QUORUM, "to say that it is too late, and gives the lock back");
	return tap_end();
}
