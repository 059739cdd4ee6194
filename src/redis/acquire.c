/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "lock/backoff.h"
#include "redis/acquire_attempt.h"

/* Lower limit for leave(): a node on the same network replies within this time, unless it is hung. */
#define GRACE_US 20000

/* Extra time for a first node that is slower than the others, so that all waiters join the same queue. */
#define HEAR_US 100000

/* Upper limit of the time reserved for a rollback, and again for leaving the queue, before the end of the operation. */
#define ROOM_US 20000

/* Interval of the calls to acquire_args.waiting. */
#define TELL_US 1000000

static void
fill_lease(const struct acquire *t, struct lease *lease)
{
	int i;

	memset(lease, 0, sizeof(*lease));
	lease->key = t->args->key;
	lease->owner = t->args->owner;
	lease->label = t->args->label;
	memcpy(lease->token, t->token, sizeof(lease->token));
	lease->ttl_ms = t->args->ttl_ms;
	lease->sent_us = t->attempt.started_us;
	lease->valid_until_us = t->attempt.valid_until_us;
	lease->fence = t->attempt.fence;
	lease->nodes = t->backend->nodes.count;
	for (i = 0; i < lease->nodes; i++)
		lease->granted += t->attempt.grants.vote[i] == VOTE_YES;
}

/* Does a node refuse because it has started too recently? */
static bool
is_guarded(const struct acquire *t)
{
	int i;

	for (i = 0; i < t->backend->nodes.count; i++) {
		if (t->error[i].is && t->error[i].guarded)
			return true;
	}
	return false;
}

/*
 * Set the deadlines of the claim.  A split vote is retried even without a wait, for up to one round: of two hosts that
 * start together, otherwise neither might get the lock.  A wait ends at its limit plus one round, including the last
 * attempt, its rollback, and leaving the queue.
 */
static void
set_bounds(struct acquire *t)
{
	const int64_t now = clock_now_us(), round_us = t->backend->nodes.node_timeout_us;
	const bool waits = t->args->wait_until_us != 0;
	const int64_t end = t->args->wait_until_us > now ? t->args->wait_until_us : now;

	t->split_until_us = clock_add(now, waits ? round_us / 2 : round_us);
	t->over_us = clock_add(waits ? end : t->split_until_us, round_us);
	t->room_us = round_us / 8 < ROOM_US ? round_us / 8 : ROOM_US;
}

/* When the last attempt may start, if the previous one failed with this step. */
static int64_t
last_try_us(const struct acquire *t, enum attempt_step step)
{
	const int64_t end = t->args->wait_until_us;

	return step == ATTEMPT_SPLIT && end < t->split_until_us ? t->split_until_us : end;
}

/*
 * May there be another attempt?  If the first attempt finds no quorum, it is the last one, unless a node has started
 * too recently.  A claim that is already waiting continues: a server that restarts must not make its waiters fail.
 */
static bool
tries_again(const struct acquire *t, enum attempt_step step, bool waiting)
{
	if (step == ATTEMPT_NO_QUORUM && !waiting && !is_guarded(t))
		return false;
	return clock_now_us() < last_try_us(t, step);
}

/* -- Waiting ---------------------------------------------------------------- */

/*
 * If the only missing votes are those of nodes that have started too recently: how long it is useless to try again,
 * which is until the first of them may be up long enough.  Its uptime is known to the second.  0 if anything else may
 * change before.
 */
static int64_t
guard_pause_us(const struct acquire *t)
{
	int64_t left_ms = INT64_MAX;
	int i;

	for (i = 0; i < t->backend->nodes.count; i++) {
		if (t->error[i].is && t->error[i].guarded)
			left_ms = t->error[i].left_ms < left_ms ? t->error[i].left_ms : left_ms;
		else if (t->error[i].is || (t->attempt.grants.closed && t->attempt.grants.vote[i] == VOTE_PENDING))
			return 0;
	}
	return left_ms == INT64_MAX || left_ms <= 1000 ? 0 : (left_ms - 1000) * 1000;
}

/* Does the release of this holder wake waiters? */
static bool
hands_over(const struct holder *holder)
{
	return holder != NULL && !holder->other_client && !holder->other_type;
}

/*
 * Join the queue of the first node that named the holder: that node has recorded this waiter, so the release there sees
 * it.  A place in a queue is kept as long as its node replies, unless nobody holds the lock there, because then nobody
 * releases it there either.
 */
static void
queue_up(struct acquire *t)
{
	int i, first = -1;

	if (t->queue.handoff[0] != '\0')
		return;
	for (i = 0; i < t->backend->nodes.count; i++) {
		if (!attempt_held_at(&t->attempt, i))
			continue;
		if (waitqueue_is_at(&t->queue, i))
			return;
		if (first < 0)
			first = i;
	}
	for (i = 0; i < t->backend->nodes.count; i++) {
		if (waitqueue_is_at(&t->queue, i) && !t->backend->nodes.unresponsive[i] &&
		    (t->attempt.grants.vote[i] == VOTE_NO || t->attempt.grants.vote[i] == VOTE_PENDING))
			return;
	}
	if (first >= 0)
		waitqueue_join(&t->queue, first);
}

static int64_t
pause_length(const struct acquire *t, enum attempt_step step, unsigned int tries)
{
	const struct holder *holder = attempt_holder(&t->attempt);
	int64_t pause, left_us;

	if (step == ATTEMPT_SPLIT || step == ATTEMPT_TOO_SLOW)
		return backoff_split_us(t->splits > 0 ? t->splits : tries, random_u32(),
		    clock_now_us() - t->attempt.started_us);
	if (step == ATTEMPT_HELD && t->queue.blocked && hands_over(holder))
		return backoff_queued_us(holder->left_ms, t->before[t->queue.node], random_u32());
	pause = backoff_held_us(tries, random_u32());
	if (step == ATTEMPT_NO_QUORUM)
		pause += guard_pause_us(t);
	if (step != ATTEMPT_HELD || holder == NULL || holder->left_ms < 0)
		return pause;
	left_us = holder->left_ms * 1000 + 1000;
	return left_us < pause ? left_us : pause;
}

/* Report the holder to the caller.  Its times are adjusted for the time since the attempt. */
static void
tell(const struct acquire *t, int64_t since_us)
{
	const struct holder *holder = attempt_holder(&t->attempt);
	const int64_t passed_ms = (clock_now_us() - since_us) / 1000;
	struct holder now;

	if (t->args->waiting == NULL)
		return;
	if (holder != NULL) {
		now = *holder;
		if (now.left_ms >= 0)
			now.left_ms = now.left_ms > passed_ms ? now.left_ms - passed_ms : 0;
		if (now.held_ms >= 0)
			now.held_ms += passed_ms;
		holder = &now;
	}
	t->args->waiting(t->args->context, holder);
}

/*
 * Sleep until a handoff token is received, the place in the queue is lost, or the time has come.  False: interrupted.
 */
static bool
sleep_until(struct acquire *t, int64_t until_us, int interrupt_fd)
{
	const int64_t since = clock_now_us();
	int64_t now = since, next;

	while (now < until_us && t->queue.handoff[0] == '\0' && !t->queue.broken) {
		tell(t, since);
		next = t->args->waiting != NULL ? clock_add(now, TELL_US) : until_us;
		next = clock_sooner(next, until_us);
		while (now < next && t->queue.handoff[0] == '\0' && !t->queue.broken) {
			if (loop_turn(&t->backend->nodes.loop, next, interrupt_fd) == LOOP_INTERRUPTED)
				return false;
			now = clock_now_us();
		}
	}
	return true;
}

/*
 * The node whose reply to the attempt is still needed to choose the queue: the node where the waiter is queued, or the
 * first node before any that named the holder.  Unresponsive nodes don't count.  -1 if there is none.
 */
static int
unheard_node(const struct acquire *t)
{
	const bool queued = t->queue.blocked;
	int i;

	for (i = 0; i < t->backend->nodes.count; i++) {
		if (!queued && attempt_held_at(&t->attempt, i))
			return -1;
		if ((!queued || waitqueue_is_at(&t->queue, i)) && t->attempt.grants.vote[i] == VOTE_PENDING &&
		    !t->backend->nodes.unresponsive[i])
			return i;
	}
	return -1;
}

/*
 * Wait for the reply of the first node, even if it is slower than others, because all waiters should queue at the same
 * node.  A node that does not reply in time is marked as unresponsive, and not waited for again.  False: interrupted.
 */
static bool
hear_queue_node(struct acquire *t, int interrupt_fd)
{
	int64_t until = clock_sooner(t->attempt.deadline_us, t->args->wait_until_us);
	int node;

	if (!t->queue.blocked && until > clock_add(clock_now_us(), HEAR_US))
		until = clock_add(clock_now_us(), HEAR_US);
	while ((node = unheard_node(t)) >= 0 && t->queue.handoff[0] == '\0') {
		if (clock_now_us() >= until)
			t->backend->nodes.unresponsive[node] = true;
		else if (loop_turn(&t->backend->nodes.loop, until, interrupt_fd) == LOOP_INTERRUPTED)
			return false;
	}
	return true;
}

/* Wait until it is time for another attempt.  False: interrupted. */
static bool
wait_for_turn(struct acquire *t, enum attempt_step step, unsigned int tries, int interrupt_fd, const struct err *why)
{
	const int64_t last = last_try_us(t, step);
	int64_t now, wake;

	if (t->args->wait_until_us != 0 && !t->queue.refused && step == ATTEMPT_HELD &&
	    hands_over(attempt_holder(&t->attempt))) {
		if (!hear_queue_node(t, interrupt_fd))
			return false;
		queue_up(t);
	}
	now = clock_now_us();
	wake = now < last ? clock_sooner(clock_add(now, pause_length(t, step, tries)), last) : now;
	log_debug(&t->backend->nodes.log, "%s; %s %d ms", why->text,
	    t->queue.blocked ? "in the queue, next try after" : "next try in", (int)((wake - now) / 1000));
	if (!sleep_until(t, wake, interrupt_fd))
		return false;
	if (!t->queue.broken || t->queue.handoff[0] != '\0')
		return true;
	/*
	 * The place is lost, and many waiters may have lost theirs at once.  No handoff may go to a waiter that is not
	 * queued.
	 */
	t->queue.broken = false;
	waitqueue_withdraw(&t->queue);
	wake = clock_add(clock_now_us(), backoff_held_us(tries, random_u32()));
	return sleep_until(t, clock_sooner(wake, t->args->wait_until_us), interrupt_fd);
}

/*
 * After a split vote this waiter is in no queue, and a node that hands over may have no other waiter: look for the
 * handoff token there.  A newcomer, which no earlier attempt has recorded as a waiter, takes none: if the first node is
 * far away, the other nodes also keep the handoff token, although a waiter is blocked at the first one.
 */
static bool
finds_handoff(struct acquire *t, enum attempt_step step, bool waiting)
{
	const struct holder *holder = attempt_holder(&t->attempt);
	const int64_t most = clock_add(clock_now_us(), t->backend->nodes.node_timeout_us);
	const int64_t until = clock_sooner(most, t->over_us - 3 * t->room_us);
	int i;

	if (step != ATTEMPT_SPLIT || !waiting || t->args->wait_until_us == 0)
		return false;
	if (!hands_over(holder) || !holder->handover)
		return false;
	for (i = 0; i < t->backend->nodes.count; i++) {
		if (attempt_held_at(&t->attempt, i))
			return waitqueue_glance(&t->queue, i, until);
	}
	return false;
}

/* -- Leaving ---------------------------------------------------------------- */

/*
 * Leave the queue, so that no entry remains, and pass on a handoff token that other waiters need.  A node that has
 * granted the lock has removed the waiter's entry.  A node whose reply was not awaited may have refused and added it
 * again.
 */
static void
leave(struct acquire *t, bool acquired)
{
	bool refused = false, noted[NODES_MAX];
	const int64_t took = 4 * t->took_us;
	const int64_t now = clock_now_us(), least = clock_add(now, t->room_us);
	const int64_t most = clock_add(now, took > GRACE_US ? took : GRACE_US);
	const int64_t until = clock_sooner(most, t->over_us > least ? t->over_us : least);
	int i;

	for (i = 0; i < t->backend->nodes.count; i++)
		refused = refused || t->ticket[i] != 0;
	for (i = 0; i < t->backend->nodes.count; i++)
		noted[i] = !acquired || (refused && t->attempt.grants.vote[i] != VOTE_YES);
	if (t->args->wait_until_us != 0)
		waitqueue_leave(&t->queue, noted, until);
	if (!acquired)
		waitqueue_pass_on(&t->queue, until);
	nodes_close_second(&t->backend->nodes);
	waitqueue_cancel(&t->queue);
	nodes_cancel(&t->backend->nodes, t);
	nodes_cancel(&t->backend->nodes, &t->raise);
}

/* Was there a signal while the lock was being granted?  Then release it, for the next waiter. */
static bool
gave_up_meanwhile(struct backend *backend, const struct acquire_args *args, int interrupt_fd, const struct lease *lease)
{
	struct pollfd fd = { .fd = interrupt_fd, .events = POLLIN };
	enum ownership ownership;
	struct err ignored;

	if (args->wait_until_us == 0 || interrupt_fd < 0 || poll(&fd, 1, 0) != 1)
		return false;
	(void)backend->ops->release(backend, lease, 0, &ownership, &ignored);
	return true;
}

enum status
redis_acquire(struct backend *backend, const struct acquire_args *args, int interrupt_fd, struct lease *lease,
    struct err *err)
{
	struct acquire t;
	enum attempt_step step = ATTEMPT_WAIT;
	enum status status;
	unsigned int tries;

	memset(&t, 0, offsetof(struct acquire, attempt));
	t.backend = (struct redis_backend *)backend;
	t.args = args;
	status = redis_reenter(t.backend, args, interrupt_fd, lease, err);
	if (status != ST_NO || args->must_hold)
		return status;
	keys_of(args->key, &t.names);
	set_bounds(&t);
	if (!waitqueue_start(&t.queue, &t.backend->nodes, &t.names))
		return err_set(err, ST_SYSTEM, "the kernel has no random numbers for a token");
	for (tries = 1;; tries++) {
		/*
		 * A lock that was granted by a handoff token must be released, which wakes the next waiter.  A rollback
		 * would not.
		 */
		status = acquire_attempt(&t, t.queue.handoff[0] != '\0' ? -1 : interrupt_fd, &step, err);
		if (status == ST_OK)
			break;
		t.splits = step == ATTEMPT_SPLIT ? t.splits + 1 : 0;
		if (status != ST_HELD && status != ST_NO_QUORUM && !(status == ST_SYSTEM && step == ATTEMPT_NO_QUORUM))
			break;
		if (!tries_again(&t, step, tries > 1))
			break;
		if (finds_handoff(&t, step, tries > 1))
			continue;
		if (!wait_for_turn(&t, step, tries, interrupt_fd, err)) {
			status = err_set(err, ST_INTERRUPTED, "interrupted");
			break;
		}
	}
	leave(&t, status == ST_OK);
	if (status != ST_OK)
		return status;
	fill_lease(&t, lease);
	memcpy(t.backend->taken.token, t.token, sizeof(t.token));
	/*
	 * A handoff token that arrived while the lock was granted without it: the release removes what is left of it at
	 * its node.
	 */
	memcpy(t.backend->taken.handoff, t.handoff[0] != '\0' ? t.handoff : t.queue.handoff, sizeof(t.handoff));
	err->text[0] = '\0';
	if (gave_up_meanwhile(backend, args, interrupt_fd, lease))
		return err_set(err, ST_INTERRUPTED, "interrupted");
	return ST_OK;
}
