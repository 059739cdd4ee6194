/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "lock/lease.h"
#include "redis/slots.h"

/* The time for which a node keeps a waiter's entry; a waiter tries again after 10 s at the latest. */
#define ENTRY_US 15000000

bool
waitqueue_start(struct acquire *t)
{
	struct waiter self = { .since_ms = clock_wall_us() / 1000 };
	struct waitqueue *const q = &t->queue;

	memset(q, 0, sizeof(*q));
	q->nodes = t->nodes;
	q->names = t->slots != NULL ? t->slots->names : &t->names;
	q->lists = t->slots != NULL ? t->slots->count : 1;
	if (t->args->wait.until_us == 0 && !t->args->replace)
		return true;
	if (!token_new(self.id))
		return false;
	if (t->args->shared)
		token_share(self.id);
	(void)snprintf(self.owner, sizeof(self.owner), "%s", t->args->owner);
	(void)snprintf(self.label, sizeof(self.label), "%s", t->args->label);
	history_write_waiter(&self, q->waiter);
	(void)snprintf(q->names->sibling[LEAVE], sizeof(q->names->sibling[LEAVE]), "%.*s:leave:%.22s",
	    (int)(strlen(q->names->sibling[WAITING]) - strlen(":waiting")), q->names->sibling[WAITING], self.id);
	return true;
}

int64_t
waitqueue_entry_ms(const struct acquire *t)
{
	const int64_t end = t->args->wait.until_us;
	const int64_t left_us = end == 0 || t->queue.refused ? 0 : end - clock_now_us();

	return left_us > ENTRY_US ? ENTRY_US / 1000 : left_us > 0 ? (left_us + 999) / 1000 : 0;
}

/* Is the waiter in the queue of this node? */
static bool
is_at(const struct waitqueue *q, int node)
{
	return q->blocked && q->node == node && !node_differs(q->nodes->node[node], q->nodes->second);
}

static void
take_handoff(struct waitqueue *q, int node, int list, const char *handoff)
{
	if (!token_valid(handoff))
		return;
	memcpy(q->handoff, handoff, TOKEN_LENGTH + 1);
	q->from = node;
	q->list = list;
}

/*
 * BLPOP has ended.  No queue is available here if an error says so.  Some proxies only close the connection.  So does a
 * server that restarts, but not twice in a row.
 */
static void
unblocked(void *context, int node, const struct result *d)
{
	/* Temporary errors, such as that of a server that becomes a replica and disconnects its waiters. */
	static const char *const passing[] = { "UNBLOCKED ", "LOADING ", "BUSY ", "MASTERDOWN ", "READONLY ",
		"CLUSTERDOWN ", "TRYAGAIN ", NULL };
	struct waitqueue *const q = context;
	const bool was_cut = q->cut;
	int i;

	q->blocked = false;
	for (i = 0; i < q->lists && reply_items(d->reply) == 2; i++) {
		if (strcmp(reply_text(reply_item(d->reply, 0)), q->names[i].sibling[WAKE]) == 0)
			take_handoff(q, node, i, reply_text(reply_item(d->reply, 1)));
	}
	q->invited = reply_items(d->reply) == 2 &&
	    strcmp(reply_text(reply_item(d->reply, 0)), q->names->sibling[LEAVE]) == 0 &&
	    strcmp(reply_text(reply_item(d->reply, 1)), "try") == 0;
	q->broken = q->handoff[0] == '\0' && !q->invited;
	q->cut = d->reply == NULL && clock_now_us() - q->joined_us < q->nodes->node_timeout_us;
	q->refused = reply_kind(d->reply) == REPLY_ERROR ? !reply_is_error(d->reply, passing) : q->cut && was_cut;
	if (q->refused)
		log_debug(&q->nodes->log, "%s: it refuses BLPOP; waiting without a place in the queue",
		    node_name(q->nodes->node[node]));
}

/* A short request has a reply: a handoff token, if the request pops one from the list. */
static void
replied(void *context, int node, const struct result *d)
{
	struct waitqueue *const q = context;

	q->pending = false;
	take_handoff(q, node, q->list, reply_text(d->reply));
}

static void
send_leave(struct waitqueue *q, int node, bool blocked)
{
	struct command request;

	command_eval(&request, SCRIPT_LEAVE, q->names, "%s %d", q->waiter, blocked);
	node_send(q->nodes->node[node], &request, blocked ? replied : NULL, q);
	if (!q->invites)
		return;
	command_eval(&request, SCRIPT_INVITE, q->names, " ");
	node_send(q->nodes->node[node], &request, NULL, q);
}

/*
 * Closing the connection instead could lose a handoff token that is on its way to it, and no other waiter would be
 * woken.  A node that does not reply has no handoff token for us.
 */
void
waitqueue_leave(struct waitqueue *q, const bool noted[NODES_MAX], int64_t until_us)
{
	struct waiting w = { .nodes = q->nodes, .limit = { until_us, -1 } };
	const bool blocked = q->blocked;
	int i;

	for (i = 0; i < q->nodes->count; i++) {
		if (noted[i] && (!blocked || i != q->node))
			send_leave(q, i, false);
	}
	q->pending = blocked;
	if (blocked) {
		send_leave(q, q->node, true);
		if (q->nodes->unresponsive[q->node])
			w.limit.until_us = 0;
	}
	while (blocked && (q->pending || q->blocked) && nodes_await(&w, ROUND_OPEN))
		;
	nodes_cancel(q->nodes, q);
	q->blocked = false;
	nodes_close_second(q->nodes);
}

void
waitqueue_pass_on(struct waitqueue *q, int64_t until_us)
{
	struct waiting w = { .nodes = q->nodes, .limit = { until_us, -1 } };
	struct command request;

	if (q->handoff[0] == '\0')
		return;
	command_eval(&request, SCRIPT_PASS, &q->names[q->list], "%s", q->handoff);
	q->pending = true;
	node_send(q->nodes->node[q->from], &request, replied, q);
	while (q->pending && nodes_await(&w, ROUND_OPEN))
		;
	nodes_cancel(q->nodes, q);
	q->handoff[0] = '\0';
}

/* -- Waiting ---------------------------------------------------------------- */

bool
waitqueue_hands_over(const struct holder *holder)
{
	return holder != NULL && holder->state != LOCK_OTHER_CLIENT && !holder->other_type;
}

bool
waitqueue_join(struct waitqueue *q, int node)
{
	struct nodes *const n = q->nodes;
	struct command request;
	int i;

	if (q->refused || is_at(q, node))
		return !q->refused;
	nodes_close_second(n);
	n->second = node_open_second(n->node[node]);
	q->broken = n->second == NULL;
	q->blocked = !q->broken;
	if (q->broken)
		return false;
	command_begin(&request, "BLPOP");
	for (i = 0; i < q->lists; i++)
		command_add(&request, q->names[i].sibling[WAKE]);
	command_add(&request, q->names->sibling[LEAVE]);
	command_add(&request, "0");
	request.key = q->names->sibling[WAKE];
	request.once = true; /* a handoff token may have been lost with the connection: the waiter has to check */
	q->node = node;
	q->joined_us = clock_now_us();
	node_send(n->second, &request, unblocked, q);
	return true;
}

/*
 * Join the queue of the first node that named the holder: that node has recorded this waiter, so the release there sees
 * it.  A place in a queue is kept as long as its node replies, unless nobody holds the lock there, because then nobody
 * releases it there either.
 */
static void
queue_up(struct acquire *t)
{
	struct waitqueue *const q = &t->queue;
	struct nodes *const n = q->nodes;
	enum vote vote;
	int i, first = -1;

	for (i = n->count - 1; i >= 0; i--) {
		vote = t->attempt.grants.vote[i];
		if (attempt_held_at(&t->attempt, i))
			first = i;
		if (is_at(q, i) && (first == i || (!n->unresponsive[i] && (vote == VOTE_NO || vote == VOTE_PENDING))))
			return;
	}
	if (first >= 0 && q->handoff[0] == '\0')
		(void)waitqueue_join(q, first);
}

static int64_t
pause_length(const struct acquire *t, enum attempt_step step, unsigned int tries)
{
	const struct holder *holder = attempt_holder(&t->attempt);
	int64_t pause, guard_ms = INT64_MAX;
	bool other = false;
	int i;

	if (step == ATTEMPT_SPLIT || step == ATTEMPT_TOO_SLOW)
		return lease_wait_split_us(t->splits > 0 ? t->splits : tries, random_u32(),
		    clock_now_us() - t->attempt.started_us);
	if (step == ATTEMPT_HELD && t->queue.blocked && waitqueue_hands_over(holder))
		return lease_wait_queued_us(holder->left_ms, t->before[t->queue.node], random_u32());
	pause = lease_wait_held_us(tries, random_u32());
	if (step == ATTEMPT_HELD)
		return holder == NULL || holder->left_ms < 0 ? pause
							     : clock_sooner(holder->left_ms * 1000 + 1000, pause);
	/*
	 * If the only missing votes are those of nodes that have started too recently, it is useless to try again until
	 * the first of them may be up long enough.  Its uptime is known to the second.
	 */
	for (i = 0; i < t->nodes->count; i++) {
		if (t->error[i].guarded)
			guard_ms = clock_sooner(guard_ms, t->error[i].left_ms);
		else if (t->error[i].why.kind != NO_FAILURE ||
		    (t->attempt.grants.closed && t->attempt.grants.vote[i] == VOTE_PENDING))
			other = true;
	}
	return guard_ms == INT64_MAX || guard_ms <= 1000 || other ? pause : pause + (guard_ms - 1000) * 1000;
}

/*
 * Report the holder to the caller.  Its times are adjusted for the time since the attempt.  Returns when to do it
 * again.
 */
static int64_t
report_holder(const struct acquire *t, int64_t since_us)
{
	const struct holder *const holder = t->slots != NULL ? slots_first(t->slots) : attempt_holder(&t->attempt);
	const int64_t passed_ms = (clock_now_us() - since_us) / 1000;
	struct holder now;

	if (t->args->waiting == NULL)
		return CLOCK_NEVER;
	if (holder == NULL)
		return t->args->waiting(t->args->context, NULL, 0);
	now = *holder;
	if (now.left_ms >= 0)
		now.left_ms = now.left_ms > passed_ms ? now.left_ms - passed_ms : 0;
	if (now.held_ms >= 0)
		now.held_ms += passed_ms;
	now.ended_ms += passed_ms;
	return t->args->waiting(t->args->context, &now, t->queue.blocked ? t->before[t->queue.node] : 0);
}

/*
 * Sleep until a handoff token is received, the place in the queue is lost, or the time has come.  False: interrupted.
 */
static bool
sleep_until(struct acquire *t, int64_t until_us)
{
	const int64_t since = clock_now_us();
	struct wait wait = { since, t->args->wait.interrupt_fd };

	while (t->queue.handoff[0] == '\0' && !t->queue.broken && !t->queue.invited) {
		if (clock_now_us() >= until_us)
			return true;
		if (clock_now_us() >= wait.until_us)
			wait.until_us = clock_sooner(report_holder(t, since), until_us);
		if (loop_turn(&t->nodes->loop, &wait) == LOOP_INTERRUPTED)
			return false;
	}
	return true;
}

/*
 * The node whose reply to the attempt is still needed to choose the queue: the node where the waiter is queued, or the
 * first node before any that named the holder.  Unresponsive nodes don't count.  -1 if there is none.
 */
static int
awaited_node(const struct acquire *t)
{
	int i;

	for (i = 0; i < t->nodes->count; i++) {
		if (!t->queue.blocked && attempt_held_at(&t->attempt, i))
			return -1;
		if ((!t->queue.blocked || is_at(&t->queue, i)) && t->attempt.grants.vote[i] == VOTE_PENDING &&
		    !t->nodes->unresponsive[i])
			return i;
	}
	return -1;
}

bool
waitqueue_await_node(struct acquire *t)
{
	struct wait wait = { clock_sooner(t->attempt.deadline_us, t->args->wait.until_us), t->args->wait.interrupt_fd };
	int node = awaited_node(t);
	const bool far = node >= 0 && node_takes_long(t->nodes->node[node]);

	if (!t->queue.blocked)
		wait.until_us = clock_sooner(wait.until_us,
		    clock_add(clock_now_us(), far ? FAR_FIRST_NODE_US : FIRST_NODE_US));
	while ((node = awaited_node(t)) >= 0 && t->queue.handoff[0] == '\0') {
		if (clock_now_us() >= wait.until_us)
			t->nodes->unresponsive[node] = true;
		else if (loop_turn(&t->nodes->loop, &wait) == LOOP_INTERRUPTED)
			return false;
	}
	return true;
}

int64_t
waitqueue_last_try_us(const struct acquire *t, enum attempt_step step)
{
	return step == ATTEMPT_SPLIT && t->args->wait.until_us < t->split_until_us ? t->split_until_us
										   : t->args->wait.until_us;
}

int
waitqueue_first_node(const struct acquire *t)
{
	int i = 0;

	while (i < t->nodes->count && !attempt_held_at(&t->attempt, i))
		i++;
	return i;
}

bool
waitqueue_admits(struct acquire *t, int node, struct err *err)
{
	const int64_t crowd = t->crowd[node];

	t->admitted = t->admitted || crowd == 0;
	if (!t->admitted)
		(void)holder_crowded(crowd, t->args->max_waiters, err);
	return t->admitted;
}

enum status
waitqueue_wait(struct acquire *t, enum attempt_step step, unsigned int tries, struct err *err)
{
	const bool hands_over = waitqueue_hands_over(attempt_holder(&t->attempt));
	const int64_t last = waitqueue_last_try_us(t, step);
	int64_t now, wake;

	if (t->args->wait.until_us != 0 && !t->queue.refused && step == ATTEMPT_HELD) {
		if (hands_over && !waitqueue_await_node(t))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		if (t->queue.handoff[0] == '\0' && !waitqueue_admits(t, waitqueue_first_node(t), err))
			return ST_HELD;
		if (hands_over)
			queue_up(t);
	}
	now = clock_now_us();
	wake = now < last ? clock_sooner(clock_add(now, pause_length(t, step, tries)), last) : now;
	log_debug(&t->nodes->log, "%s; %s %d ms", err->text,
	    t->queue.blocked ? "in the queue, next try after" : "next try in", (int)((wake - now) / 1000));
	return waitqueue_sleep(t, wake, tries) ? ST_OK : err_set(err, ST_INTERRUPTED, "interrupted");
}

void
waitqueue_unlist(struct waitqueue *q)
{
	int i;

	for (i = 0; i < q->nodes->count; i++)
		send_leave(q, i, false);
}

bool
waitqueue_sleep(struct acquire *t, int64_t until_us, unsigned int tries)
{
	if (!sleep_until(t, until_us))
		return false;
	t->queue.invited = false;
	if (!t->queue.broken || t->queue.handoff[0] != '\0')
		return true;
	/*
	 * The place is lost, and many waiters may have lost theirs at once.  No handoff may go to a waiter that is not
	 * queued, so its entries are removed from all nodes; their replies are not waited for.
	 */
	t->queue.broken = false;
	waitqueue_unlist(&t->queue);
	until_us = clock_add(clock_now_us(), lease_wait_held_us(tries, random_u32()));
	return sleep_until(t, clock_sooner(until_us, t->args->wait.until_us));
}

bool
waitqueue_pop(struct acquire *t, int node, int list)
{
	const int64_t most = clock_add(clock_now_us(), t->nodes->node_timeout_us);
	struct waiting w = { .nodes = t->nodes, .limit = { clock_sooner(most, t->over_us - 3 * t->reserve_us), -1 } };
	struct waitqueue *const q = &t->queue;
	struct command request;

	if (q->pending)
		return false;
	command_begin(&request, "LPOP %s", q->names[list].sibling[WAKE]);
	request.key = q->names[list].sibling[WAKE];
	request.once = true;
	q->pending = true;
	q->list = list;
	node_send(q->nodes->node[node], &request, replied, q);
	while (q->pending && nodes_await(&w, ROUND_OPEN))
		;
	return q->handoff[0] != '\0';
}

bool
waitqueue_find_handoff(struct acquire *t)
{
	const struct holder *const holder = attempt_holder(&t->attempt);
	const int i = waitqueue_first_node(t);

	return i < t->nodes->count && waitqueue_hands_over(holder) && holder_has_ended(holder) &&
	    waitqueue_pop(t, i, 0);
}
