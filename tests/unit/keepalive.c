/* SPDX-License-Identifier: MIT */
#include "run/keepalive.h"

#include <poll.h>

#include "memory.h"
#include "run/loss.h"

#define WAIT_MS 20000 /* a machine may be busy */
#define SHORT_MS 9000 /* a lease that outlasts a stall of the machine before it is renewed */

/* A lease of the backend in memory, and the thread that renews it. */
static struct fixture {
	int64_t due_us; /* of the first renewal */
	struct memory memory;
	struct lease lease;
	struct death_pipe death_pipe;
	struct keepalive keepalive;
	struct keepalive_state state;
} f;

static const struct service *replacement; /* of that in memory */

static bool
start(int64_t ttl_ms, int64_t margin_us)
{
	const struct acquire_args args = { .key = "k", .ttl_ms = 30000, .may_be_shorter = true, .wait = { 0, -1 } };
	struct err err;

	memset(&f, 0, sizeof(f));
	memory_open(&f.memory, ttl_ms);
	if (replacement != NULL)
		f.memory.base.service = replacement;
	if (memory_acquire(&f.memory.base, &args, &f.lease, &err) != ST_OK)
		return false;
	if (death_pipe_open(&f.death_pipe, CLOCK_NEVER, 0, 0, &err) != ST_OK)
		return false;
	keepalive_open(&f.keepalive, &f.memory.base, &f.lease, margin_us, &f.death_pipe);
	f.due_us = f.keepalive.schedule.renew_at_us;
	return keepalive_start(&f.keepalive) == 0;
}

static void
stop(void)
{
	keepalive_stop(&f.keepalive);
	keepalive_close(&f.keepalive);
	death_pipe_close(&f.death_pipe);
	memory_close(&f.memory.base);
}

/* Wait for news; false: there are none. */
static bool
wait_for_news(int64_t wait_ms)
{
	struct pollfd fd = { .fd = f.keepalive.news_fd, .events = POLLIN };

	if (poll(&fd, 1, (int)wait_ms) != 1)
		return false;
	keepalive_read(&f.keepalive, &f.state);
	return true;
}

TEST(granted_length)
{
	int64_t until;

	ok(start(SHORT_MS, 0), "a lease that is shorter than asked for");
	is_int(f.lease.ttl_ms, SHORT_MS, "the length of the lease is the granted one");
	ok(f.due_us <= f.lease.sent_us + SHORT_MS * 1000 / 3, "it is renewed by the granted length");
	until = clock_now_us() + WAIT_MS * INT64_C(1000);
	do {
		(void)poll(NULL, 0, 10);
		keepalive_read(&f.keepalive, &f.state);
	} while (f.state.valid_until_us <= f.lease.valid_until_us && clock_now_us() < until);
	ok(f.state.valid_until_us > f.lease.valid_until_us && !f.state.lost, "a renewal makes it longer");
	ok(f.state.valid_until_us <= clock_now_us() + SHORT_MS * 1000, "by no more than was granted");
	stop();
}

TEST(break)
{
	int64_t broken;

	ok(start(600000, 0), "a long lease");
	(void)poll(NULL, 0, 150);
	broken = clock_now_us();
	memory_break(&f.memory);
	ok(wait_for_news(WAIT_MS) && f.state.lost, "a break is noticed");
	ok(clock_now_us() - broken < WAIT_MS * INT64_C(1000) / 2, "long before the next renewal");
	is_str(f.state.err.text, "gone: it expired, was broken or was released", "why");
	stop();
	is_int(f.memory.renewals, 1, "one renewal was enough");
}

static int
renewals(struct memory *m)
{
	int n;

	(void)pthread_mutex_lock(&m->mutex);
	n = m->renewals;
	(void)pthread_mutex_unlock(&m->mutex);
	return n;
}

TEST(alarms_in_vain)
{
	const uint64_t one = 1;
	const int64_t began = clock_now_us();
	int64_t most;

	ok(start(600000, 0), "a long lease");
	for (int i = 0; i < 20 || (i < WAIT_MS / 10 && renewals(&f.memory) == 0); i++) {
		(void)!write(f.memory.alert, &one, sizeof(one));
		(void)poll(NULL, 0, 10);
	}
	ok(!wait_for_news(150), "alarms in vain are no news");
	stop();
	most = 2 + (clock_now_us() - began) / 100000;
	ok(f.memory.renewals >= 1 && f.memory.renewals <= most, "%d renewals: at least 100 ms apart",
	    f.memory.renewals);
}

TEST(failure)
{
	int64_t since;

	ok(start(SHORT_MS, 0), "a lease");
	memory_cut_off(&f.memory, true, "early");
	ok(wait_for_news(WAIT_MS) && !f.state.lost, "a renewal that fails is news, not a loss");
	is_str(f.state.err.text, "no server answers", "why");
	since = f.state.failed_since_us;
	ok(wait_for_news(WAIT_MS) && f.state.failed_since_us == since, "so is the next one: it is the same outage");
	is_str(f.state.asked_by, "", "who asks counts only if a renewal succeeds");
	memory_cut_off(&f.memory, false, NULL);
	while (f.state.failed_since_us != 0 && wait_for_news(WAIT_MS))
		;
	ok(f.state.failed_since_us == 0 && f.state.outage_us > 0, "so is its end");
	ok(f.state.outage_us <= clock_now_us() - since, "it has not lasted longer");
	ok(!wait_for_news(0), "that is told once");
	memory_cut_off(&f.memory, false, "first");
	ok(wait_for_news(WAIT_MS), "somebody who asks is news");
	is_str(f.state.asked_by, "first", "who it is");
	stop();
}

/* The lease ends while the server answers. */
static enum status
renew_late(struct backend *backend, struct lease *lease, const struct wait *limit, struct renewed *renewed,
    struct err *err)
{
	f.keepalive.schedule.valid_until_us = clock_now_us();
	return memory_renew(backend, lease, limit, renewed, err);
}

TEST(late)
{
	static const struct service service = { .acquire = memory_acquire,
		.renew = renew_late,
		.alert_fd = memory_alert_fd,
		.alerted = memory_alerted,
		.look = memory_look };

	replacement = &service;
	ok(start(600000, 0), "a lease");
	replacement = NULL;
	(void)!write(f.memory.alert, &(const uint64_t){ 1 }, sizeof(uint64_t));
	ok(wait_for_news(WAIT_MS) && f.state.lost, "a renewal that comes too late is none");
	is_str(f.state.err.text, "the lease ended before it was renewed", "why");
	stop();
}

/* A dlock that was stopped until then has lost its lock: the command gets its first signal. */
TEST(margin)
{
	ok(start(300, 290000), "a lease whose first renewal is due when the command must be ended");
	ok(!wait_for_news(400), "nothing happens");
	keepalive_read(&f.keepalive, &f.state);
	stop();
	is_int(f.memory.renewals, 0, "no renewal is begun");
}

/* What a renewal says of the holder, where that cannot be looked at. */
TEST(another)
{
	const struct lease lease = { .key = "k", .token = "t" };
	struct loss loss = { .ownership = OWNED_BY_ANOTHER, .interrupt_fd = -1 };
	struct memory memory;
	struct err err;

	memory_open(&memory, SHORT_MS);
	is_int(loss_explain(&memory.base, &lease, &loss, &err), ST_NO, "a lock that is gone");
	is_str(err.text, "gone: it expired, was broken or was released; held by another", "to another");
	memory_close(&memory.base);
}

static struct record seen;

static enum status
look(struct backend *backend, const struct look_args *args, struct record *record, struct err *err)
{
	*record = seen;
	return seen.status;
}

/* Uptimes are in whole seconds: a server that may have restarted since the lock was acquired is named. */
TEST(restarted)
{
	static const struct service service = { .look = look };
	const struct lease lease = { .key = "k", .token = "t", .sent_us = clock_now_us() - 9500000 };
	struct backend backend = { .service = &service };
	struct loss loss = { .interrupt_fd = -1 };
	struct err err;

	seen.nodes = 2;
	seen.node[0] = (struct node_view){ .name = "old", .up_s = 31 };
	seen.node[1] = (struct node_view){ .name = "new", .up_s = 11 };
	(void)loss_explain(&backend, &lease, &loss, &err);
	is_str(err.text, "gone: new restarted 10.0s ago, perhaps without its data", "a lock that a server has lost");
	seen.status = ST_NO_QUORUM;
	(void)loss_explain(&backend, &lease, &loss, &err);
	is_str(err.text, "gone: it expired, was broken or was released", "what a minority says does not count");
}
