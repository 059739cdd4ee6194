/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "redis/operations.h"
#include "redis/slots.h"

/* Upper limit of the time reserved for a rollback, and again for leaving the queue, before the end of the operation. */
#define RESERVE_US 20000

/* The last attempts may end this much after the wait: a node that replies at all has done so by then. */
#define OVERTIME_US 100000

#define FAR_US 20000	/* see collect_late_replies() */
#define REACH_US 100000 /* see acquire_attempt() */

#define RESENDS 2 /* of a rollback that failed */

#define STAY_US 1000 /* the least time that a reader stays after it has invited others */

/* A node as near as those that decided the attempt replies within this time, or within took_us. */
#define LATE_REPLY_US 1000

/* -- Requests and replies --------------------------------------------------- */

static int64_t
at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void
acquire_replied(void *context, int node, const struct result *d)
{
	struct acquire *const t = context;
	const struct attempt_answer answer = answer_acquire(d, t->args, &t->error[node]);
	const char *const name = node_name(t->nodes->node[node]);
	struct err err;

	attempt_answer(&t->attempt, node, &answer);
	t->connection[node] = d->connection;
	if (t->error[node].gives_way)
		t->gives_way = &t->error[node].why.reason;
	if (answer.vote == VOTE_YES)
		log_debug(&t->nodes->log, "%s: granted, fence %" PRId64, name, answer.fence);
	else if (answer.vote == VOTE_NO) {
		t->ticket[node] = answer.ticket;
		t->before[node] = answer.before;
		t->writers[node] = answer.writers;
		t->crowd[node] = answer.crowd;
		t->number = at_least(t->number, answer.number);
		(void)holder_error(&answer.holder, 0, &err);
		log_debug(&t->nodes->log, "%s: %s", name, err.text);
	} else if (t->error[node].duplicate != 0)
		log_debug(&t->nodes->log, "%s: %s", name, t->error[node].why.reason.text);
}

static void
raise_replied(void *context, int node, const struct result *d)
{
	struct acquire *const t = *(struct acquire **)context;
	struct lock_fields fields;
	const int number = answer_number(d, &fields, &t->error[node]);

	attempt_raised(&t->attempt, node, number == 1 ? VOTE_YES : number == -2 ? VOTE_FAULT : VOTE_NO, number == 2);
}

static void
write_request(const struct acquire *t, int node, struct command *request)
{
	const struct acquire_args *const args = t->args;
	const enum script script = args->shared ? SCRIPT_SHARE : SCRIPT_ACQUIRE;

	command_eval(request, script, &t->names, "%s %jd %jd %s %s %jd %d %s %s %jd %jd %jd %d %d", t->token,
	    args->ttl_ms, t->candidate_us, args->owner, args->label, answer_guard_s(args), node + 1, t->handoff,
	    t->queue.waiter, t->slots == NULL ? waitqueue_entry_ms(t) : 0, t->ticket[node],
	    (t->attempt.started_us - t->began_us) / 1000, args->history, t->admitted ? 0 : args->max_waiters);
	if (args->replace)
		command_add_number(request, args->wait.until_us != 0 ? t->number : -1);
}

static void
send_raise(struct acquire *t)
{
	struct nodes *const n = t->nodes;
	struct command request;
	int i;

	log_debug(&n->log, "raising the fence on a majority of the nodes");
	command_eval(&request, SCRIPT_FENCE, &t->names, "%s %jd", t->token, t->attempt.fence);
	nodes_cancel(n, &t->raise); /* replies about a greater fence that was given up */
	for (i = 0; i < n->count; i++) {
		if (t->attempt.raises.vote[i] == VOTE_PENDING)
			node_send(n->node[i], &request, raise_replied, &t->raise);
	}
}

/* -- Rollbacks -------------------------------------------------------------- */

/*
 * Rollback: removal of the tokens of failed attempts from nodes that may have granted them.
 *
 * A rollback is sent after the unfinished request, on the same connection.  If it fails, it is sent again with the next
 * attempt.  It is done when the node has replied to it.  A lock that can't be rolled back expires with its lease.
 */

static void
rolled_back(void *context, int node, const struct result *result)
{
	struct rollback *const r = context;

	(void)node;
	if (result->reply != NULL && reply_kind(result->reply) == REPLY_INTEGER)
		r->token[0] = '\0';
	r->sent = false;
}

/* Send all rollbacks of a node that are not sent yet.  True if there was one. */
static bool
send_rollbacks(struct acquire *t, int node)
{
	struct rollback *const all = t->nodes->rollbacks[node].rollback, *r;
	const struct keys *names;
	struct command command;
	bool any = false;

	for (r = all; r < all + ROLLBACKS_MAX; r++) {
		if (r->token[0] == '\0' || r->sent)
			continue;
		names = t->slots != NULL ? &t->slots->names[r->slot] : &t->names;
		if (token_shared(r->token)) /* others may have entered it */
			command_eval(&command, SCRIPT_UNSHARE, names, "%s 0 %c %d %jd", r->token, '0',
			    t->nodes->count > 1, redis_window_ms(t->nodes));
		else
			command_eval(&command, SCRIPT_UNDO, names, "%s", r->token);
		r->sent = any = true;
		node_send(t->nodes->node[node], &command, rolled_back, r);
	}
	return any;
}

/* The duration of the rollback of an attempt. */
struct rolling_back {
	struct acquire *acquire;
	bool noted[NODES_MAX]; /* the rollback is recorded */
	bool patient;	       /* no majority can be reached, and the time of the attempt is not over */
	int resends;
	enum {
		LATE,  /* nodes that are about to reply to the attempt may do so first */
		GRACE, /* the rollback may reach nodes that the attempt did not reach */
		REST
	} phase;
};

/*
 * Must this node's reply to a rollback be awaited?  Yes, if the node has replied to the attempt, or may have executed
 * it.  Otherwise only for the grace period: it may be hung, or the connection was given up before it was established.
 * It is not enough that the rollback was written: a server that finds the connection closed when it replies to the
 * attempt reads no further, and the rollback is lost.  An unresponsive node is not waited for.
 *
 * If no majority can be reached, a connected node that has not replied yet is awaited as well, until an interrupt.  It may
 * be slow only, and there is no other outcome to be quick for.
 */
static bool
is_awaited(const struct rolling_back *r, int node)
{
	const struct acquire *const t = r->acquire;
	const struct rollback *const all = t->nodes->rollbacks[node].rollback;
	const enum vote vote = t->attempt.grants.vote[node];
	const bool reached = vote == VOTE_FAULT ? attempt_perhaps_granted(&t->attempt, node) : vote != VOTE_PENDING;
	const bool patient = r->phase != REST ||
	    (r->patient && node_channel(t->nodes->node[node])->state == CHANNEL_OPEN);
	bool pending = false;
	int i;

	for (i = 0; i < ROLLBACKS_MAX; i++)
		pending = pending || all[i].sent;
	return pending && (reached || (patient && !t->nodes->unresponsive[node]));
}

/*
 * Record and send what is due.  In the first phase nodes that may reply soon are left out, but not a Cluster, whose
 * server may redirect the attempt: there the rollback must have been sent already, so that the attempt is not resent.
 */
static enum standing
take_back(struct rolling_back *r)
{
	struct acquire *const t = r->acquire;
	struct nodes *const n = t->nodes;
	bool perhaps, waits, awaited = false, about_to_reply = false, more = false, sent = false;
	struct rollbacks *all;
	int i;

	for (i = 0; i < n->count; i++) {
		perhaps = attempt_perhaps_granted(&t->attempt, i);
		waits = r->phase == LATE && perhaps && t->attempt.grants.vote[i] == VOTE_PENDING &&
		    !n->unresponsive[i] && node_url(n->node[i])->kind != URL_CLUSTER;
		about_to_reply = about_to_reply || waits;
		if (r->noted[i] || waits || !perhaps)
			continue;
		all = &n->rollbacks[i];
		node_cancel(n->node[i], &all->rollback[all->next]);
		memcpy(all->rollback[all->next].token, t->token, TOKEN_SIZE);
		all->rollback[all->next].sent = false;
		all->rollback[all->next].slot = t->slots != NULL ? t->slots->chosen : 0;
		all->next = (all->next + 1) % ROLLBACKS_MAX;
		r->noted[i] = more = true;
	}
	for (i = 0; i < n->count && (more || r->resends > 0); i++)
		sent = send_rollbacks(t, i) || sent;
	if (more)
		log_debug(&n->log, "rolling back what may have been granted");
	else if (sent)
		r->resends--;
	for (i = 0; i < n->count; i++)
		awaited = awaited || is_awaited(r, i);
	return (r->phase == LATE ? about_to_reply : awaited) ? ROUND_OPEN : ROUND_OVER;
}

/*
 * Send a rollback to every node that may have granted the failed attempt, and wait for the replies until until_us, or
 * for one round.  The attempt still receives its own replies meanwhile.  Rollbacks that are not done in time stay
 * recorded.  Nodes that have not replied at the deadline of the attempt are marked as unresponsive.
 *
 * If the attempt was refused (ATTEMPT_HELD), first wait a short time for nodes about as fast as the others, which
 * probably refuse as well.  If there will be another attempt, nodes go on connecting: one that takes longer than an
 * attempt would never be reached otherwise.
 */
static void
roll_back_attempt(struct acquire *t, int64_t until_us, enum attempt_step step)
{
	struct nodes *const n = t->nodes;
	const int64_t now = clock_now_us();
	const int64_t took = t->took_us > 0 ? t->took_us : now - t->attempt.started_us;
	const bool refused = step == ATTEMPT_HELD || step == ATTEMPT_SPLIT;
	struct rolling_back r = { .acquire = t, .resends = RESENDS, .phase = step == ATTEMPT_HELD ? LATE : GRACE };
	struct waiting w = { .nodes = n };
	int64_t end[REST + 1];

	end[REST] = clock_sooner(clock_add(now, at_least(n->node_timeout_us, GRACE_US)), until_us);
	end[GRACE] = clock_sooner(clock_add(now, at_least(8 * took, GRACE_US)), end[REST]);
	end[LATE] = clock_sooner(clock_add(now, at_least(took, LATE_REPLY_US)), end[GRACE]);
	r.patient = step == ATTEMPT_NO_QUORUM && !t->attempt.grants.closed;
	nodes_note_unresponsive(n, &t->attempt.grants);
	if (!refused || t->attempt.grants.closed || now >= waitqueue_last_try_us(t, step))
		nodes_stop_connecting(n, !t->attempt.grants.closed);
	for (; r.phase <= REST; r.phase++) {
		w.event = LOOP_ACTIVE;
		w.limit.until_us = end[r.phase];
		w.limit.interrupt_fd = r.phase == REST && r.patient ? t->args->wait.interrupt_fd : -1;
		while (nodes_await(&w, take_back(&r))) {
			if (w.event != LOOP_INTERRUPTED)
				continue;
			r.patient = false;
			w.event = LOOP_ACTIVE;
			w.limit.interrupt_fd = -1;
		}
	}
	if (r.patient && clock_now_us() >= t->attempt.deadline_us) {
		t->attempt.grants.closed = true;
		nodes_note_unresponsive(n, &t->attempt.grants);
	}
}

/*
 * Discard the grants of nodes that have closed the connection since: such a node may have restarted without its data,
 * and have been healed for another holder.  A single node has no other holder to be healed for.  True if there was one.
 */
static bool
lose_grants(struct acquire *t)
{
	const struct nodes *f = t->nodes;
	const struct channel *channel;
	bool any = false;
	int i;

	for (i = 0; f->count > 1 && i < f->count; i++) {
		channel = node_channel(f->node[i]);
		if (t->attempt.grants.vote[i] != VOTE_YES ||
		    (channel->state == CHANNEL_OPEN && channel->began_us == t->connection[i]))
			continue;
		attempt_lost(&t->attempt, i);
		answer_fail(&t->error[i], false, "it closed the connection after it had granted the lock");
		any = true;
	}
	return any;
}

/* -- One attempt ------------------------------------------------------------ */

/* Go on until the outcome is certain.  ATTEMPT_WAIT: interrupted before. */
static enum attempt_step
drive(struct acquire *t, int interrupt_fd)
{
	struct wait wait = { .interrupt_fd = interrupt_fd };
	enum attempt_step step;
	struct command request;
	int i;

	for (;;) {
		/* With a handoff token the lock is released after it was granted, since that wakes the next waiter. */
		if (t->gives_way != NULL && t->handoff[0] == '\0')
			return ATTEMPT_HELD;
		step = attempt_next(&t->attempt, clock_now_us());
		if (step == ATTEMPT_RAISE)
			send_raise(t);
		else if (step == ATTEMPT_AGAIN) {
			for (i = 0; i < t->nodes->count; i++) {
				if (!t->attempt.early[i])
					continue;
				write_request(t, i, &request);
				node_send(t->nodes->node[i], &request, acquire_replied, t);
			}
			attempt_repeated(&t->attempt);
		} else if (step == ATTEMPT_GRANTED && lose_grants(t))
			continue;
		else if (step != ATTEMPT_WAIT)
			return step;
		wait.until_us = clock_sooner(t->attempt.again_us, t->attempt.deadline_us);
		if (loop_turn(&t->nodes->loop, &wait) == LOOP_INTERRUPTED)
			return ATTEMPT_WAIT;
	}
}

/*
 * Begin an attempt.  A node that stopped replying during the wait must not prolong it, and the cleanup after a failed
 * attempt must finish before the end of the operation.  False: no random numbers for a token.
 */
static bool
begin(struct acquire *t)
{
	struct nodes *const n = t->nodes;
	const int64_t now = clock_now_us(), rest = at_least(t->over_us - 2 * t->reserve_us - now, t->reserve_us);
	struct attempt_terms terms = {
		.nodes = n->count,
		.ttl_us = t->args->ttl_ms * 1000,
		.node_timeout_us = clock_sooner(n->node_timeout_us, rest),
		.handoff = t->handoff,
	};
	int64_t left;

	if (t->args->wait.until_us != 0 && t->took_us != 0) {
		left = at_least(t->args->wait.until_us - now, at_least(4 * t->took_us, OVERTIME_US));
		terms.node_timeout_us = clock_sooner(terms.node_timeout_us, left);
	}
	if (!token_new(t->token))
		return false;
	if (t->args->shared)
		token_share(t->token);
	text_keep_secret(SECRET_TOKEN, t->token, TOKEN_LENGTH);
	memcpy(t->handoff, t->queue.handoff, sizeof(t->handoff));
	t->queue.handoff[0] = '\0';
	memcpy(terms.unresponsive, n->unresponsive, sizeof(terms.unresponsive));
	memset(t->error, 0, (size_t)n->count * sizeof(t->error[0]));
	attempt_start(&t->attempt, &terms, clock_now_us());
	log_debug(&n->log, n->count == 1 ? "asking %d node for the lock" : "asking %d nodes for the lock", n->count);
	t->candidate_us = clock_wall_us();
	nodes_cancel(n, t); /* replies to an older attempt no longer matter */
	nodes_cancel(n, &t->raise);
	nodes_begin_round(n);
	return true;
}

/* -- Beyond a majority ------------------------------------------------------ */

/*
 * The outcome is certain.  Wait for nodes that are about as fast as those that decided it: a bare majority does not
 * survive the loss of one node, and the error after a failure should cover all nodes.  A node that takes longer than
 * others anyway is waited for.
 */
static void
collect_late_replies(struct acquire *t)
{
	const struct nodes *const f = t->nodes;
	struct waiting w = { .nodes = t->nodes,
		.limit = { clock_add(clock_now_us(), FAR_US), -1 },
		.patience = NEARLY_AS_FAST,
		.began_us = t->attempt.started_us };
	enum standing standing;
	int i;

	do {
		standing = ROUND_OVER;
		for (i = 0; i < f->count; i++) {
			if (t->attempt.grants.vote[i] == VOTE_PENDING && !f->unresponsive[i] && standing != ROUND_OPEN)
				standing = node_takes_long(f->node[i]) ? ROUND_OPEN : ROUND_DECIDED;
		}
	} while (nodes_await(&w, standing));
}

/*
 * Make one attempt with a fresh token.  ST_OK: granted, see t->attempt.  Otherwise *step is the reason, and grants have
 * been rolled back on all nodes that could be reached; the other rollbacks are sent again with the next attempt.
 */
static enum status
acquire_attempt(struct acquire *t, int interrupt_fd, enum attempt_step *step, struct err *err)
{
	const struct ballot *const grants = &t->attempt.grants;
	struct waiting reach = { .nodes = t->nodes, .limit.interrupt_fd = -1 };
	struct command request;
	int i;

	*step = ATTEMPT_WAIT;
	if (!begin(t))
		return err_set(err, ST_SYSTEM, "the kernel provides no random numbers for a token");
	for (i = 0; i < t->nodes->count; i++) {
		(void)send_rollbacks(t, i);
		write_request(t, i, &request);
		node_send(t->nodes->node[i], &request, acquire_replied, t);
	}
	*step = drive(t, interrupt_fd);
	if (*step != ATTEMPT_WAIT && !grants->closed)
		t->took_us = clock_now_us() - t->attempt.started_us;
	if (*step == ATTEMPT_GRANTED || (*step == ATTEMPT_NO_QUORUM && !grants->closed))
		collect_late_replies(t);
	/*
	 * Other waiters are blocked at the node that sent the handoff token.  Without the request it keeps the released
	 * token for the window, and does not wake them when this lock is released.  If it needs a new connection, wait
	 * until the request has been written: dlock may be about to end.
	 */
	if (*step == ATTEMPT_GRANTED && t->handoff[0] != '\0') {
		reach.limit.until_us = clock_add(clock_now_us(), REACH_US);
		while (grants->vote[t->queue.from] == VOTE_PENDING && node_needs_us(t->nodes->node[t->queue.from]) &&
		    nodes_await(&reach, ROUND_OPEN))
			;
	}
	if (*step == ATTEMPT_GRANTED && clock_now_us() >= t->attempt.valid_until_us)
		*step = ATTEMPT_TOO_SLOW; /* waiting for more replies took time */
	if (*step == ATTEMPT_GRANTED) {
		log_debug(&t->nodes->log, "the lock is ours, fence %" PRId64 ", for %d ms", t->attempt.fence,
		    (int)((t->attempt.valid_until_us - clock_now_us()) / 1000));
		return ST_OK;
	}
	roll_back_attempt(t, at_least(clock_add(clock_now_us(), t->reserve_us), t->over_us - t->reserve_us), *step);
	if (t->gives_way != NULL) {
		memcpy(t->queue.handoff, t->handoff, sizeof(t->handoff)); /* for the next waiter */
		return err_set(err, ST_HELD, "%s", t->gives_way->text);
	}
	return *step == ATTEMPT_WAIT ? err_set(err, ST_INTERRUPTED, "interrupted")
				     : nodes_explain(t->nodes, &t->attempt, *step, t->error, err);
}

/* -- The operation ---------------------------------------------------------- */

/*
 * Set the deadlines of the operation.  A split vote is retried even without a wait, for up to one round: of two hosts
 * that start together, otherwise neither might get the lock.  A wait ends at its limit plus one round, including the
 * last attempt, its rollback, and leaving the queue.
 */
static void
set_bounds(struct acquire *t)
{
	const int64_t timeout_us = t->nodes->node_timeout_us, end = t->args->wait.until_us;

	t->began_us = clock_now_us();
	t->split_until_us = clock_add(t->began_us, end != 0 ? timeout_us / 2 : timeout_us);
	t->over_us = clock_add(end != 0 ? at_least(end, t->began_us) : t->split_until_us, timeout_us);
	t->reserve_us = clock_sooner(timeout_us / 8, RESERVE_US);
}

/*
 * May there be another attempt?  If the first attempt finds no quorum, it is the last one, unless a node has started
 * too recently.  An operation that is already waiting continues: a server that restarts must not make its waiters fail.
 */
static bool
tries_again(const struct acquire *t, enum attempt_step step, bool waiting)
{
	bool guarded = false;
	int i;

	for (i = 0; i < t->nodes->count; i++)
		guarded = guarded || t->error[i].guarded;
	if (step == ATTEMPT_NO_QUORUM && !waiting && !guarded)
		return false;
	if (step == ATTEMPT_HELD && attempt_kept(&t->attempt, t->args->wait.until_us))
		return false;
	return clock_now_us() < waitqueue_last_try_us(t, step);
}

/*
 * Leave the queue, so that no entry remains, and pass on a handoff token that other waiters need.  A node that has
 * granted the lock has removed the waiter's entry.  A node whose reply was not awaited may have refused, or may still
 * refuse, and add it.
 */
static void
leave(struct acquire *t, bool acquired)
{
	const int64_t now = clock_now_us(), most = clock_add(now, at_least(4 * t->took_us, GRACE_US));
	const int64_t until = clock_sooner(most, at_least(t->over_us, clock_add(now, t->reserve_us)));
	bool noted[NODES_MAX];
	int i;

	for (i = 0; i < t->nodes->count; i++)
		noted[i] = (t->slots == NULL || t->slots->noted) &&
		    (!acquired || t->attempt.grants.vote[i] != VOTE_YES);
	t->queue.invites = !acquired && !t->args->shared && t->slots == NULL;
	if (t->args->wait.until_us != 0)
		waitqueue_leave(&t->queue, noted, until);
	if (!acquired || (t->slots != NULL && t->queue.list != t->slots->chosen))
		waitqueue_pass_on(&t->queue, until);
	nodes_cancel(t->nodes, t);
	nodes_cancel(t->nodes, &t->raise);
}

/* An attempt failed with this step and status: wait until another one makes sense.  ST_OK: make it. */
static enum status
wait_for_attempt(struct acquire *t, enum attempt_step step, unsigned int tries, enum status status, struct err *err)
{
	t->splits = step == ATTEMPT_SPLIT ? t->splits + 1 : 0;
	if (t->gives_way != NULL)
		return status;
	if (status != ST_HELD && status != ST_NO_QUORUM && !(status == ST_SYSTEM && step == ATTEMPT_NO_QUORUM))
		return status;
	if (t->slots != NULL && (step == ATTEMPT_HELD || step == ATTEMPT_SPLIT))
		return slots_wait(t, step, tries, err);
	if (!tries_again(t, step, tries > 1))
		return status;
	if (step == ATTEMPT_SPLIT && tries > 1 && t->args->wait.until_us != 0 && waitqueue_find_handoff(t))
		return ST_OK;
	return waitqueue_wait(t, step, tries, err);
}

/* -- Readers ---------------------------------------------------------------- */

/* Does a majority say that the lock is shared, and that no writer is before us? */
static bool
is_clear(const struct acquire *t)
{
	int i, clear = 0;

	for (i = 0; i < t->nodes->count; i++)
		clear += attempt_held_at(&t->attempt, i) && t->writers[i] == 0;
	return clear >= quorum_majority(t->nodes->count);
}

/*
 * May a reader that was refused enter the lock?  It is shared at the first node that names it, and no writer is before
 * us there.  That node may have a late request of a writer that others have served: then a majority may say otherwise.
 */
static bool
may_enter(const struct acquire *t)
{
	const int first = waitqueue_first_node(t);

	return first < t->nodes->count && (t->writers[first] == 0 || (t->writers[first] > 0 && is_clear(t)));
}

/*
 * The attempt ended with this step.  Enter the lock, if it is shared and it is our turn.  ST_OK: done.  ST_HELD: we are
 * refused; *step is ATTEMPT_SPLIT if the lock changed meanwhile.  Otherwise the status of redis_enter().
 */
static enum status
enter_shared(struct acquire *t, struct redis_backend *s, enum attempt_step *step, struct lease *lease, struct err *err)
{
	const struct holder *const holder = attempt_holder(&t->attempt);
	struct entrance e = { .reader = true, .limit = { t->over_us - t->reserve_us, t->args->wait.interrupt_fd } };
	struct err why = { "" };
	enum status status;

	if (*step != ATTEMPT_HELD || holder == NULL || holder->state != LOCK_SHARED)
		return ST_HELD;
	if (t->args->wait.until_us != 0 && !is_clear(t) && !waitqueue_await_node(t))
		return err_set(err, ST_INTERRUPTED, "interrupted");
	if (!may_enter(t))
		return ST_HELD;
	memcpy(e.hold.token, holder->token, sizeof(e.hold.token));
	status = redis_enter(s, t->args, &e, lease, &why);
	if (status == ST_OK)
		return ST_OK;
	log_debug(&t->nodes->log, "cannot enter: %s", why.text);
	*step = ATTEMPT_SPLIT;
	if (status == ST_NO)
		return ST_HELD;
	*err = why;
	return status;
}

/* A reader that got the lock from the queue: those who wait behind it may enter. */
static void
invite(struct acquire *t, struct redis_backend *s)
{
	struct command request;

	command_eval(&request, SCRIPT_INVITE, &t->names, " ");
	nodes_send_all(t->nodes, &request, NULL, NULL);
	s->taken.stays_until_us = clock_add(clock_now_us(), at_least(2 * t->took_us, STAY_US));
}

/* -- The operation ---------------------------------------------------------- */

/* Prepare the operation; `slots` is for one of several slots.  ST_USAGE, ST_SYSTEM: nothing can be acquired. */
static enum status
prepare(struct acquire *t, struct nodes *nodes, const struct acquire_args *args, struct slots *slots, struct err *err)
{
	enum status status = ST_OK;

	memset(t, 0, offsetof(struct acquire, attempt));
	t->nodes = nodes;
	t->args = args;
	t->raise = t;
	t->slots = args->slots > 0 ? slots : NULL;
	if (t->slots != NULL)
		status = slots_prepare(slots, args, err);
	else
		keys_of(args->key, &t->names);
	set_bounds(t);
	if (status == ST_OK && !waitqueue_start(t))
		status = err_set(err, ST_SYSTEM, "the kernel provides no random numbers for a token");
	return status;
}

/* The lock was granted. */
static void
take(struct acquire *t, struct redis_backend *s, struct lease *lease)
{
	memcpy(s->taken.token, t->token, sizeof(t->token));
	/*
	 * A handoff token that arrived while the lock was granted without it: the release removes what is left of it at
	 * its node.
	 */
	memcpy(s->taken.handoff, t->handoff[0] != '\0' ? t->handoff : t->queue.handoff, sizeof(t->handoff));
	s->taken.stays_until_us = 0;
	if (t->args->shared && t->handoff[0] != '\0')
		invite(t, s);
	*lease = (struct lease){ .key = t->args->key,
		.owner = t->args->owner,
		.label = t->args->label,
		.ttl_ms = t->args->ttl_ms,
		.sent_us = t->attempt.started_us,
		.valid_until_us = t->attempt.valid_until_us,
		.fence = t->attempt.fence,
		.nodes = t->nodes->count,
		.granted = quorum_count(&t->attempt.grants, VOTE_YES) };
	memcpy(lease->token, t->token, sizeof(t->token));
	if (t->slots == NULL)
		return;
	lease->slot = t->slots->chosen + 1;
	lease->key = memcpy(t->args->slot_key, t->slots->slot[t->slots->chosen].key, KEY_MAX + 1);
}

enum status
redis_acquire(struct backend *backend, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct redis_backend *const s = (struct redis_backend *)backend;
	enum attempt_step step = ATTEMPT_WAIT;
	const struct holder *holder;
	enum ownership ownership;
	bool acquired = false, entered = false, interrupted;
	struct slots slots;
	struct acquire t;
	struct err ignored;
	unsigned int tries;
	enum status status;

	status = redis_reenter(s, args, lease, err);
	if (status != ST_NO || args->must_hold)
		return status;
	status = prepare(&t, &s->nodes, args, &slots, err);
	if (status != ST_OK)
		goto out;
	for (tries = 1; status == ST_OK && !acquired && !entered; tries++) {
		if (t.slots != NULL)
			slots_enter(&t);
		/*
		 * A lock that was granted by a handoff token must be released, which wakes the next waiter.  A rollback
		 * would not.
		 */
		status = acquire_attempt(&t, t.queue.handoff[0] != '\0' ? -1 : args->wait.interrupt_fd, &step, err);
		acquired = status == ST_OK;
		if (status == ST_HELD && args->shared)
			status = enter_shared(&t, s, &step, lease, err);
		entered = !acquired && status == ST_OK;
		if (!acquired && !entered)
			status = wait_for_attempt(&t, step, tries, status, err);
	}
	leave(&t, acquired);
	holder = status != ST_HELD ? NULL : t.slots != NULL ? slots_first(&slots) : attempt_holder(&t.attempt);
	if (holder != NULL && args->refused_by != NULL)
		*args->refused_by = *holder;
	if (!acquired && !entered)
		goto out;
	if (acquired)
		take(&t, s, lease);
	interrupted = args->wait.until_us != 0 && clock_wait(&(struct wait){ 0, args->wait.interrupt_fd });
	if (!interrupted && t.gives_way == NULL)
		goto out;
	/* This became known while the lock was being granted: release it, for the next waiter. */
	(void)redis_release(backend, lease, 0, &ownership, &ignored);
	status = interrupted ? err_set(err, ST_INTERRUPTED, "interrupted")
			     : err_set(err, ST_HELD, "%s", t.gives_way->text);
out:
	if (t.slots != NULL) {
		nodes_cancel(&s->nodes, &slots);
		slots_free(&slots);
	}
	return status;
}
