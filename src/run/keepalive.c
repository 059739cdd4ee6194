/* SPDX-License-Identifier: MIT */
#include "run/keepalive.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "run/loss.h"

void
keepalive_open(struct keepalive *r, struct backend *backend, const struct lease *lease, int64_t margin_us,
    const struct death_pipe *death_pipe)
{
	*r = (struct keepalive){ .backend = backend,
		.lease = *lease,
		.margin_us = margin_us,
		.death_pipe = death_pipe,
		.state.valid_until_us = lease->valid_until_us,
		.callers_alarm = -1,
		.alarm = -1,
		.stop_fd = -1,
		.news_fd = -1 };
	lease_start(&r->schedule, lease);
	(void)pthread_mutex_init(&r->mutex, NULL);
}

void
keepalive_close(struct keepalive *r)
{
	if (r->alarm >= 0)
		(void)close(r->alarm);
	if (r->stop_fd >= 0)
		(void)close(r->stop_fd);
	if (r->news_fd >= 0)
		(void)close(r->news_fd);
	(void)pthread_mutex_destroy(&r->mutex);
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
set_callers_alarm(const struct keepalive *r)
{
	if (r->callers_alarm >= 0)
		clock_alarm_set(r->callers_alarm,
		    clock_sooner(r->alarm_at_us, policy_due_us(&r->policy, r->state.valid_until_us)));
}

static void
publish(struct keepalive *r, const struct err *err, const struct renewed *result, bool renewed, int64_t began_us)
{
	const bool recovers = renewed && r->state.failed_since_us != 0;
	const bool asked = renewed && result->asked_by[0] != '\0' && r->state.asked_by[0] == '\0';

	(void)pthread_mutex_lock(&r->mutex);
	r->state.valid_until_us = r->schedule.valid_until_us;
	r->state.lost = r->schedule.lost;
	r->state.released = r->schedule.lost && result->released;
	if (asked)
		memcpy(r->state.asked_by, result->asked_by, sizeof(result->asked_by));
	r->state.err = *err;
	if (recovers)
		r->state.outage_us = clock_now_us() - r->state.failed_since_us;
	if (renewed)
		r->state.failed_since_us = 0;
	else if (r->state.failed_since_us == 0)
		r->state.failed_since_us = began_us;
	set_callers_alarm(r);
	(void)pthread_mutex_unlock(&r->mutex);
	if (!renewed || recovers || asked)
		ring(r->news_fd);
}

/* Do one round and update the schedule.  False if the thread was asked to stop meanwhile. */
static bool
renew(struct keepalive *r)
{
	const int64_t now = clock_now_us();
	const struct wait until_lost = { r->schedule.valid_until_us, r->stop_fd };
	struct renewed renewed = { .ownership = OWNED };
	struct loss loss = { .interrupt_fd = r->stop_fd };
	struct err err = { "" };
	enum status status;

	if (lease_over(&r->schedule, clock_add(now, r->margin_us))) {
		r->schedule.renew_at_us = CLOCK_NEVER;
		return true;
	}
	status = r->backend->service->renew(r->backend, &r->lease, &until_lost, &renewed, &err);
	if (status == ST_INTERRUPTED)
		return false;
	loss.ownership = renewed.ownership;
	if (status == ST_NO)
		(void)loss_explain(r->backend, &r->lease, &loss, &err);
	if (status == ST_OK && lease_over(&r->schedule, clock_now_us()))
		status = err_set(&err, ST_NO, "the lease ended before it was renewed");
	if (status == ST_OK) {
		lease_renewed(&r->schedule, renewed.sent_us, renewed.valid_until_us);
		death_pipe_extend(r->death_pipe, r->schedule.valid_until_us);
		err.text[0] = '\0';
	} else if (status == ST_NO)
		lease_lost(&r->schedule);
	else
		lease_failed(&r->schedule, now, random_u32());
	publish(r, &err, &renewed, status == ST_OK, now);
	if (status == ST_OK && r->backend->service->heal != NULL)
		lease_hasten(&r->schedule,
		    r->backend->service->heal(r->backend, &r->lease, r->schedule.valid_until_us,
			&(struct wait){ r->schedule.renew_at_us, r->stop_fd }));
	return true;
}

int
keepalive_alert_fd(const struct keepalive *r)
{
	return r->backend->service->alert_fd != NULL ? r->backend->service->alert_fd(r->backend) : -1;
}

static void *
work(void *arg)
{
	struct keepalive *r = arg;
	struct pollfd fds[3] = { { .fd = r->stop_fd, .events = POLLIN }, { .fd = r->alarm, .events = POLLIN },
		{ .events = POLLIN } };

	for (;;) {
		while (clock_now_us() >= r->schedule.renew_at_us) {
			if (!renew(r))
				return NULL;
		}
		/* Before each poll: data that came in one read with the replies to a renewal makes nothing readable. */
		if (keepalive_alert_fd(r) >= 0 && r->backend->service->alerted(r->backend))
			lease_hasten(&r->schedule, 0);
		fds[2].fd = keepalive_alert_fd(r);
		clock_alarm_set(r->alarm, r->schedule.renew_at_us);
		(void)poll(fds, 3, -1);
		if (fds[0].revents != 0)
			return NULL;
	}
}

int
keepalive_start(struct keepalive *r)
{
	int error;

	/* Descriptors that were opened before a failure stay open for the next try. */
	if (r->alarm < 0)
		r->alarm = clock_alarm_open();
	if (r->alarm >= 0 && r->stop_fd < 0)
		r->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->stop_fd >= 0 && r->news_fd < 0)
		r->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->news_fd < 0)
		return errno;
#ifdef M_ARENA_MAX
	(void)mallopt(M_ARENA_MAX, 1); /* an arena per thread would waste memory while a lock is held */
#endif
	error = pthread_create(&r->thread, NULL, work, r);
	r->running = error == 0;
	return error;
}

void
keepalive_stop(struct keepalive *r)
{
	uint64_t n;

	if (!r->running)
		return;
	ring(r->stop_fd);
	(void)pthread_join(r->thread, NULL);
	(void)!read(r->stop_fd, &n, sizeof(n));
	r->running = false;
}

void
keepalive_set_alarm(struct keepalive *r, int alarm, int64_t at_us, const struct policy *policy)
{
	(void)pthread_mutex_lock(&r->mutex);
	r->callers_alarm = alarm;
	r->alarm_at_us = at_us;
	r->policy = *policy;
	set_callers_alarm(r);
	(void)pthread_mutex_unlock(&r->mutex);
}

void
keepalive_read(struct keepalive *r, struct keepalive_state *state)
{
	uint64_t n;

	if (r->news_fd >= 0)
		(void)!read(r->news_fd, &n, sizeof(n));
	(void)pthread_mutex_lock(&r->mutex);
	*state = r->state;
	(void)pthread_mutex_unlock(&r->mutex);
}
