/* SPDX-License-Identifier: MIT */
#include "run/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
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
	struct supervision plan = { .argv = argv, .shown_key = "key", .first_signal = SIGTERM, .signals = &signals };
	const int64_t now = clock_now_us();
	struct lease lease = { .key = "key", .ttl_ms = TTL_MS, .sent_us = now, .valid_until_us = now + left_us };
	struct supervised result;
	struct err err;
	sigset_t mask;
	int status = 0;
	const pid_t pid = fork();

	if (pid == 0) {
		(void)sigprocmask(SIG_SETMASK, NULL, &mask);
		status = signals_open(&signals, &mask) ? (int)supervise(&plan, &backend, &lease, &result, &err) : -1;
		_exit(status + (releases == 1 ? 0 : NOT_RELEASED));
	}
	(void)waitpid(pid, &status, 0);
	return status;
}

int
main(void)
{
	int status;

	status = supervised_until(600000000);
	ok(WIFEXITED(status), "a command is held");
	is_int(WEXITSTATUS(status), ST_OK, "to its end, and the lock is given back");
	status = supervised_until(-TTL_MS * 1000);
	ok(WIFEXITED(status), "a dlock that was stopped until its lease was over lives");
	is_int(WEXITSTATUS(status), ST_NO_QUORUM, "to say that it is too late, and gives the lock back");
	return tap_end();
}
