/* SPDX-License-Identifier: MIT */
#include "run/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define DISMISSED 0	 /* where a target would stand */
#define STRUCK INT64_MIN /* where the end of validity would stand */

/* Close every descriptor but one, so that no connection or pipe stays open longer than dlock wants. */
static void
keep_only(int fd)
{
	int i, most;

	if (fd > 0)
		(void)close_range(0, (unsigned int)fd - 1, 0);
	if (close_range((unsigned int)fd + 1, ~0u, 0) == 0)
		return;
	most = (int)sysconf(_SC_OPEN_MAX); /* Linux before 5.9 */
	for (i = 0; i < (most < 0 || most > 65536 ? 65536 : most); i++) {
		if (i != fd)
			(void)close(i);
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

static void
alarm_set(int alarm, pid_t target, struct guarded *shared)
{
	const int64_t until = atomic_load(&shared->until_us);

	clock_alarm_set(alarm, target == 0 || until == STRUCK ? CLOCK_NEVER : until);
}

/* Whom to kill is known, or all has ended.  False: nothing more will come. */
static bool
hear(int fd, pid_t *target)
{
	pid_t word;
	const ssize_t n = read(fd, &word, sizeof(word));

	if (n < 0 && errno == EINTR)
		return true;
	if (n != (ssize_t)sizeof(word))
		return false;
	if (word == DISMISSED)
		_exit(0);
	*target = word;
	return true;
}

static _Noreturn void
guard(int fd, struct guarded *shared)
{
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	const struct sched_param urgent = { .sched_priority = 1 }; /* punctual on a busy host, where that is allowed */
	pid_t target = 0;
	sigset_t all;

	(void)prctl(PR_SET_NAME, "lock-guardian");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	keep_only(fd);
	fds[1].fd = clock_alarm_open();
	(void)sched_setscheduler(0, SCHED_FIFO, &urgent);
	for (;;) {
		alarm_set(fds[1].fd, target, shared);
		(void)poll(fds, 2, -1);
		if (fds[0].revents != 0 && !hear(fd, &target))
			break;
		if (target != 0 && validity_is_over(shared))
			(void)kill(target, SIGKILL);
	}
	if (target < -1)
		(void)kill(target, SIGKILL);
	_exit(0);
}

static struct guarded *
share(int64_t until_us)
{
	struct guarded *shared;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return NULL;
	atomic_init(&shared->until_us, until_us);
	return shared;
}

enum status
guardian_start(struct guardian *g, int64_t valid_until_us, struct err *err)
{
	int ends[2], error;

	g->fd = -1;
	g->shared = share(valid_until_us);
	if (g->shared == NULL || pipe2(ends, O_CLOEXEC) != 0)
		return err_system(err, errno, "cannot start the guardian of the command");
	g->pid = fork();
	error = errno;
	if (g->pid == 0) {
		(void)close(ends[1]);
		guard(ends[0], g->shared);
	}
	(void)close(ends[0]);
	if (g->pid < 0) {
		(void)close(ends[1]);
		return err_system(err, error, "cannot start the guardian of the command");
	}
	g->fd = ends[1];
	return ST_OK;
}

void
guardian_watch(int fd, pid_t target)
{
	(void)!write(fd, &target, sizeof(target));
}

bool
guardian_extend(const struct guardian *g, int64_t valid_until_us)
{
	int64_t until;

	if (g->shared == NULL)
		return true;
	until = atomic_load(&g->shared->until_us);
	while (until != STRUCK && until < valid_until_us) {
		if (atomic_compare_exchange_weak(&g->shared->until_us, &until, valid_until_us))
			return true;
	}
	return until != STRUCK;
}

void
guardian_dismiss(struct guardian *g)
{
	if (g->fd < 0)
		return;
	guardian_watch(g->fd, DISMISSED);
	(void)close(g->fd);
	g->fd = -1;
}

void
guardian_reap(struct guardian *g)
{
	if (g->pid > 0 && waitpid(g->pid, NULL, WNOHANG) == 0) {
		(void)kill(g->pid, SIGCONT); /* who stopped all of us may have continued dlock alone */
		while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	g->pid = 0;
	if (g->shared != NULL)
		(void)munmap(g->shared, sizeof(*g->shared));
	g->shared = NULL;
}
