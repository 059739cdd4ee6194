/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_UNIT_MEMORY_H
#define DLOCK_TESTS_UNIT_MEMORY_H
/*
 * A backend in memory: one lock, which the test can take away, and whose renewals it can let fail.  It decides the
 * length of the lease itself, as an ensemble of ZooKeeper does, and notices at once that the lock was broken.
 */
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "lock/lease.h"
#include "lock/service.h"
#include "tap.h"

struct memory {
	struct backend base;
	pthread_mutex_t mutex;
	int alert;	/* eventfd */
	int64_t ttl_ms; /* of every lease, whatever is asked for */
	int64_t fence;	/* of the last holder */
	bool held;
	bool unreachable; /* renewals fail */
	int renewals, releases, alerts;
	const char *asker; /* who asks the holder to end; NULL: nobody */
};

static inline enum status
memory_acquire(struct backend *backend, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct memory *m = (struct memory *)backend;
	const int64_t now = clock_now_us();

	if (m->held)
		return err_set(err, ST_HELD, "held by another");
	if (m->ttl_ms < args->ttl_ms && !args->may_be_shorter)
		return err_set(err, ST_USAGE, "no lease is so long");
	m->held = true;
	*lease = (struct lease){ .key = args->key,
		.owner = args->owner,
		.label = args->label,
		.ttl_ms = m->ttl_ms,
		.sent_us = now,
		.valid_until_us = lease_valid_until(now, m->ttl_ms * 1000),
		.fence = ++m->fence,
		.nodes = 1,
		.granted = 1 };
	memset(lease->token, 't', TOKEN_SIZE - 1);
	return ST_OK;
}

static inline enum status
memory_renew(struct backend *backend, struct lease *lease, const struct wait *limit, struct renewed *renewed,
    struct err *err)
{
	struct memory *m = (struct memory *)backend;
	enum status status = ST_OK;

	(void)pthread_mutex_lock(&m->mutex);
	m->renewals++;
	renewed->sent_us = clock_now_us();
	renewed->valid_until_us = lease_valid_until(renewed->sent_us, m->ttl_ms * 1000);
	renewed->ownership = m->held ? OWNED : OWNED_BY_NOBODY;
	lease->ttl_ms = m->ttl_ms;
	(void)snprintf(renewed->asked_by, sizeof(renewed->asked_by), "%s", m->asker != NULL ? m->asker : "");
	if (m->unreachable)
		status = err_set(err, ST_NO_QUORUM, "no server answers");
	else if (!m->held)
		status = err_set(err, ST_NO, "broken");
	(void)pthread_mutex_unlock(&m->mutex);
	return status;
}

static inline int
memory_alert_fd(struct backend *backend)
{
	return ((struct memory *)backend)->alert;
}

static inline bool
memory_alerted(struct backend *backend)
{
	struct memory *m = (struct memory *)backend;
	uint64_t n = 0;

	(void)!read(m->alert, &n, sizeof(n));
	m->alerts++;
	return n > 0;
}

static inline enum status
memory_release(struct backend *backend, const struct lease *lease, int64_t keep_ms, enum ownership *ownership,
    struct err *err)
{
	struct memory *m = (struct memory *)backend;

	m->releases++;
	*ownership = m->held ? OWNED : OWNED_BY_NOBODY;
	if (!m->held)
		return err_set(err, ST_NO, "already expired");
	m->held = false;
	return ST_OK;
}

static inline void
memory_close(struct backend *backend)
{
	struct memory *m = (struct memory *)backend;

	(void)close(m->alert);
	(void)pthread_mutex_destroy(&m->mutex);
}

/* It knows of no holder. */
static inline enum status
memory_look(struct backend *backend, const struct look_args *args, struct record *record, struct err *err)
{
	return err_set(err, ST_NO_QUORUM, "unknown");
}

/* Make it ready, with a lock that is free. */
static inline void
memory_open(struct memory *m, int64_t ttl_ms)
{
	static const struct service ops = { .acquire = memory_acquire,
		.renew = memory_renew,
		.alert_fd = memory_alert_fd,
		.alerted = memory_alerted,
		.release = memory_release,
		.look = memory_look,
		.close = memory_close };

	memset(m, 0, sizeof(*m));
	m->base.service = &ops;
	m->ttl_ms = ttl_ms;
	m->alert = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&m->mutex, NULL);
}

/* Break the lock: the holder is alerted. */
static inline void
memory_break(struct memory *m)
{
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&m->mutex);
	m->held = false;
	(void)pthread_mutex_unlock(&m->mutex);
	(void)!write(m->alert, &one, sizeof(one));
}

/* Let renewals fail from now on, or succeed again; somebody asks the holder to end, or nobody does. */
static inline void
memory_cut_off(struct memory *m, bool unreachable, const char *asker)
{
	(void)pthread_mutex_lock(&m->mutex);
	m->unreachable = unreachable;
	m->asker = asker;
	(void)pthread_mutex_unlock(&m->mutex);
}

#endif
