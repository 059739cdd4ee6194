/* SPDX-License-Identifier: MIT */
#include "run/guardian.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/process.h"

#define STRUCK INT64_MIN /* where the end of validity would stand */

/* -- The process ------------------------------------------------------------ */

/* So that no connection or pipe stays open longer than dlock wants. */
static void
close_all_but(int spared)
{
	long i, most;

	if ((spared == 0 || close_range(0, (unsigned int)spared - 1, 0) == 0) &&
	    close_range((unsigned int)spared + 1, ~0u, 0) == 0)
		return;
	most = sysconf(_SC_OPEN_MAX); /* Linux before 5.9 */
	for (i = 0; i < (most < 0 || most > 65536 ? 65536 : most); i++) {
		if (i != spared)
			(void)close((int)i);
	}
}

/* Has validity ended?  Then it stays so: who extends it is told that it is too late. */
static bool
validity_is_over(struct guarded *shared)
{
	int64_t until = atomic_load(&shared->until_us);

	return until != STRUCK && clock_now_us() >= until &&
	    atomic_compare_exchange_strong(&shared->until_us, &until, STRUCK);
}

/* dlock sets the alarm, too, each time that it moves validity on; it may have been stopped between the two. */
static void
sleep_until(int alarm, int64_t until_us)
{
	struct pollfd fd = { .fd = alarm, .events = POLLIN };

	if (until_us == STRUCK)
		(void)pause();
	else {
		clock_alarm_set(alarm, until_us);
		(void)poll(&fd, 1, -1);
	}
}

static _Noreturn void
guard(struct guarded *shared, int alarm, pid_t dlock)
{
	const struct sched_param urgent = { .sched_priority = 1 }; /* punctual on a busy host, where that is allowed */
	sigset_t all;
	pid_t target;

	(void)prctl(PR_SET_NAME, "lock-guardian");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	close_all_but(alarm);
	/* A dlock that was killed is the tether's business. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() != dlock)
		_exit(0);
	(void)sched_setscheduler(0, SCHED_FIFO, &urgent);
	for (;;) {
		target = 0;
		if (validity_is_over(shared))
			target = atomic_load(&shared->target);
		if (target != 0) /* else it has not begun, and will see that it is too late */
			(void)kill(target, SIGKILL);
		sleep_until(alarm, atomic_load(&shared->until_us));
	}
}

/* -- What dlock does with it ------------------------------------------------ */

static bool
share(struct guardian *g)
{
	void *shared;

	g->alarm = clock_alarm_open();
	if (g->alarm < 0)
		return false;
	shared = mmap(NULL, sizeof(*g->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		(void)close(g->alarm);
		return false;
	}
	g->shared = shared;
	atomic_init(&g->shared->until_us, g->until_us);
	atomic_init(&g->shared->target, g->target);
	return true;
}

static void
unshare_again(struct guardian *g)
{
	if (g->shared == NULL)
		return;
	(void)munmap(g->shared, sizeof(*g->shared));
	(void)close(g->alarm);
	g->shared = NULL;
}

int
guardian_start(struct guardian *g)
{
	const pid_t dlock = getpid();
	int error;

	if (g->pid != 0 || g->until_us == CLOCK_NEVER)
		return 0;
	if (!share(g))
		return errno;
	g->pid = fork();
	if (g->pid == 0)
		guard(g->shared, g->alarm, dlock);
	if (g->pid < 0) {
		error = errno;
		g->pid = 0;
		unshare_again(g);
		return error;
	}
	(void)tether_limit(&g->tether, CLOCK_NEVER);
	return 0;
}

enum status
guardian_open(struct guardian *g, int64_t valid_until_us, struct err *err)
{
	enum status status;
	int error;

	memset(g, 0, sizeof(*g));
	g->until_us = valid_until_us;
	status = tether_open(&g->tether, err);
	if (status != ST_OK || tether_limit(&g->tether, valid_until_us))
		return status;
	error = guardian_start(g);
	return error == 0 ? ST_OK : err_system(err, error, "cannot start the guardian of the command");
}

bool
guardian_bind(struct guardian *g, pid_t target)
{
	g->target = target;
	if (g->shared != NULL)
		atomic_store(&g->shared->target, target);
	return target > 0 || tether_bind(&g->tether, -target);
}

bool
guardian_extend(struct guardian *g, int64_t valid_until_us)
{
	int64_t until;

	if (g->shared == NULL) {
		if (valid_until_us > g->until_us) {
			g->until_us = valid_until_us;
			(void)tether_limit(&g->tether, valid_until_us);
		}
		return true;
	}
	until = atomic_load(&g->shared->until_us);
	while (until != STRUCK && until < valid_until_us) {
		if (atomic_compare_exchange_weak(&g->shared->until_us, &until, valid_until_us)) {
			clock_alarm_set(g->alarm, valid_until_us);
			return true;
		}
	}
	return until != STRUCK;
}

void
guardian_dismiss(struct guardian *g)
{
	tether_close(&g->tether);
	if (g->pid > 0 && process_wait(g->pid, NULL, WNOHANG) == 0) /* else the number may be another's by now */
		(void)kill(g->pid, SIGKILL);
}

void
guardian_reap(struct guardian *g)
{
	if (g->pid > 0)
		(void)process_wait(g->pid, NULL, 0);
	g->pid = 0;
	unshare_again(g);
}
