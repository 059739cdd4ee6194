/* SPDX-License-Identifier: MIT */
#include "run/renewer.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

struct renewer {
	struct service *service;
	struct lease lease;
	const struct tether *tether;
	struct keeper keeper;
	pthread_t thread;
	bool running;
	int alarm;   /* the thread's clock */
	int stop_fd; /* to the thread */
	int news_fd; /* from the thread */
	pthread_mutex_t mutex;
	/* under the mutex: */
	struct renewer_state state;
	int callers_alarm; /* -1: none yet */
	int64_t alarm_at_us, alarm_lead_us;
};

struct renewer *
renewer_new(struct service *service, const struct lease *lease, const struct tether *tether)
{
	struct renewer *r = calloc(1, sizeof(*r));
	int error;

	if (r == NULL)
		return NULL;
	r->service = service;
	r->lease = *lease;
	r->tether = tether;
	keeper_start(&r->keeper, lease->sent_us, lease->ttl_ms * 1000, lease->valid_until_us,
	    lease->granted >= lease->nodes);
	r->state.valid_until_us = lease->valid_until_us;
	r->callers_alarm = -1;
	r->alarm = clock_alarm_open();
	r->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&r->mutex, NULL);
	if (r->alarm < 0 || r->stop_fd < 0 || r->news_fd < 0) {
		error = errno;
		renewer_free(r);
		errno = error;
		return NULL;
	}
	return r;
}

void
renewer_free(struct renewer *r)
{
	if (r == NULL)
		return;
	if (r->alarm >= 0)
		(void)close(r->alarm);
	if (r->stop_fd >= 0)
		(void)close(r->stop_fd);
	if (r->news_fd >= 0)
		(void)close(r->news_fd);
	(void)pthread_mutex_destroy(&r->mutex);
	free(r);
}

int64_t
renewer_due_us(const struct renewer *r)
{
	return r->keeper.renew_at_us;
}

static void
ring(int fd)
{
	const uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* The caller holds the mutex. */
static void
set_callers_alarm(const struct renewer *r)
{
	int64_t at = r->alarm_at_us;

	if (r->callers_alarm < 0)
		return;
	if (r->alarm_lead_us != CLOCK_NEVER && r->state.valid_until_us - r->alarm_lead_us < at)
		at = r->state.valid_until_us - r->alarm_lead_us;
	clock_alarm_set(r->callers_alarm, at);
}

static void
publish(struct renewer *r, const struct err *err, bool news)
{
	(void)pthread_mutex_lock(&r->mutex);
	r->state.valid_until_us = r->keeper.valid_until_us;
	r->state.lost = r->keeper.lost;
	r->state.err = *err;
	set_callers_alarm(r);
	(void)pthread_mutex_unlock(&r->mutex);
	if (news)
		ring(r->news_fd);
}

/* Do one round and update the keeper.  False if the thread was told to stop meanwhile. */
static bool
renew(struct renewer *r)
{
	const int64_t now = clock_now_us();
	const struct limit until_lost = { r->keeper.valid_until_us, r->stop_fd };
	struct limit until_next = { .interrupt_fd = r->stop_fd };
	struct renewed renewed = { 0, OWNED };
	struct err err = { "" };
	enum status status;

	if (keeper_over(&r->keeper, now)) {
		r->keeper.renew_at_us = CLOCK_NEVER;
		return true;
	}
	status = r->service->ops->renew(r->service, &r->lease, &until_lost, &renewed, &err);
	if (status == ST_INTERRUPTED)
		return false;
	if (status == ST_OK && keeper_over(&r->keeper, clock_now_us()))
		status = err_set(&err, ST_NO, "the lease ended before it was renewed");
	if (status == ST_OK) {
		keeper_renewed(&r->keeper, renewed.sent_us);
		tether_extend(r->tether, r->keeper.valid_until_us);
		err.text[0] = '\0';
	} else if (status == ST_NO)
		keeper_lost(&r->keeper);
	else
		keeper_failed(&r->keeper, now, random_u32());
	publish(r, &err, status != ST_OK);
	until_next.until_us = r->keeper.renew_at_us;
	if (status == ST_OK)
		r->service->ops->heal(r->service, &r->lease, r->keeper.valid_until_us, &until_next);
	return true;
}

static void *
work(void *arg)
{
	struct renewer *r = arg;
	struct pollfd fds[2] = { { .fd = r->stop_fd, .events = POLLIN }, { .fd = r->alarm, .events = POLLIN } };

	for (;;) {
		if (clock_now_us() >= r->keeper.renew_at_us) {
			if (!renew(r))
				return NULL;
			continue;
		}
		clock_alarm_set(r->alarm, r->keeper.renew_at_us);
		(void)poll(fds, 2, -1);
		if (fds[0].revents != 0)
			return NULL;
	}
}

int
renewer_start(struct renewer *r)
{
	int error;

#ifdef M_ARENA_MAX
	(void)mallopt(M_ARENA_MAX, 1); /* an arena per thread would waste memory while a lock is held */
#endif
	error = pthread_create(&r->thread, NULL, work, r);
	r->running = error == 0;
	return error;
}

void
renewer_stop(struct renewer *r)
{
	if (!r->running)
		return;
	ring(r->stop_fd);
	(void)pthread_join(r->thread, NULL);
	r->running = false;
}

void
renewer_set_alarm(struct renewer *r, int alarm, int64_t at_us, int64_t lead_us)
{
	(void)pthread_mutex_lock(&r->mutex);
	r->callers_alarm = alarm;
	r->alarm_at_us = at_us;
	r->alarm_lead_us = lead_us;
	set_callers_alarm(r);
	(void)pthread_mutex_unlock(&r->mutex);
}

int
renewer_fd(const struct renewer *r)
{
	return r->news_fd;
}

void
renewer_read(struct renewer *r, struct renewer_state *state)
{
	uint64_t n;

	(void)!read(r->news_fd, &n, sizeof(n));
	(void)pthread_mutex_lock(&r->mutex);
	*state = r->state;
	(void)pthread_mutex_unlock(&r->mutex);
}
