/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "redis/acquire_state.h"
#include "redis/operations.h"

/* Upper limit of the time reserved for a rollback, and again for leaving the queue, before the end of the operation. */
#define RESERVE_US 20000

/* The last attempts may end this much after the wait: a node that replies at all has done so by then. */
#define OVERTIME_US 100000

#define FAR_US 20000	/* see collect_late_replies() */
#define REACH_US 100000 /* see reach_queue() */

#define RESENDS 2 /* of a rollback that failed */

/* A node as near as those that decided the attempt replies within this time, or within took_us. */
#define LATE_REPLY_US 1000

/* -- Requests and replies --------------------------------------------------- */

static void
acquire_replied(void *context, int node, const struct result *d)
{
	struct acquire *const t = context;
	const struct attempt_answer answer = answer_acquire(d, t->args, &t->error[node]);

	attempt_answer(&t->attempt, node, &answer);
	t->connection[node] = d->connection;
	if (answer.vote == VOTE_NO) {
		t->ticket[node] = answer.ticket;
		t->before[node] = answer.before;
	}
	answer_log(&t->nodes->log, node_name(t->nodes->node[node]), &answer, &t->error[node]);
}

static void
raise_replied(void *context, int node, const struct result *d)
{
	struct acquire *const t = ((const struct raise *)context)->attempt_of;
	struct lock_fields fields;
	const int number = answer_number(d, &fields, &t->error[node]);

	attempt_raised(&t->attempt, node, number == 1 ? VOTE_YES : number == -2 ? VOTE_FAULT : VOTE_NO, number == 2);
}

static void
write_request(const struct acquire *t, int node, struct command *request)
{
	command_eval(request, SCRIPT_ACQUIRE, &t->names);
	command_add(request, t->token);
	command_add_number(request, t->args->ttl_ms);
	command_add_number(request, t->candidate_us);
	command_add(request, t->args->owner);
	command_add(request, t->args->label);
	command_add_number(request, answer_guard_s(t->args));
	command_add_number(request, node + 1);
	command_add(request, t->handoff);
	command_add(request, t->queue.waiter);
	command_add_number(request, waitqueue_entry_ms(t));
	command_add_number(request, t->ticket[node]);
	command_add_number(request, (t->attempt.started_us - t->began_us) / 1000);
	command_add_number(request, t->args->history);
}

static void
send_again(struct acquire *t)
{
	struct command request;
	int i;

	for (i = 0; i < t->nodes->count; i++) {
		if (!t->attempt.early[i])
			continue;
		write_request(t, i, &request);
		node_send(t->nodes->node[i], &request, acquire_replied, t);
	}
	attempt_repeated(&t->attempt);
}

static void
send_raise(struct acquire *t)
{
	struct nodes *f = t->nodes;
	struct command request;
	int i;

	command_eval(&request, SCRIPT_FENCE, &t->names);
	command_add(&request, t->token);
	command_add_number(&request, t->attempt.fence);
	nodes_cancel(f, &t->raise); /* replies about a greater fence that was given up */
	t->raise.attempt_of = t;
	for (i = 0; i < f->count; i++) {
		if (t->attempt.raises.vote[i] == VOTE_PENDING)
			node_send(f->node[i], &request, raise_replied, &t->raise);
	}
}

/* -- Rollbacks -------------------------------------------------------------- */

/*
 * Rollback: removal of the tokens of failed attempts from nodes that may have granted them.
 *
 * A rollback is sent after the unfinished request, on the same connection.  If it fails, it is sent again with the next
 * attempt.  It is done when the node has replied to it.  A lock that can't be rolled back expires with its lease.
 */

/* Record that the node may hold this token. */
static void
note(struct nodes *n, int node, const char *token)
{
	struct rollbacks *const all = &n->rollbacks[node];
	struct rollback *const r = &all->rollback[all->next];

	node_cancel(n->node[node], r);
	all->next = (all->next + 1) % ROLLBACKS_MAX;
	memcpy(r->token, token, TOKEN_SIZE);
	r->sent = false;
}

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
	struct command command;
	bool any = false;

	for (r = all; r < all + ROLLBACKS_MAX; r++) {
		if (r->token[0] == '\0' || r->sent)
			continue;
		command_eval(&command, SCRIPT_UNDO, &t->names);
		command_add(&command, r->token);
		command_add(&command, t->names.metadata);
		r->sent = true;
		node_send(t->nodes->node[node], &command, rolled_back, r);
		any = true;
	}
	return any;
}

/* Is there a rollback that was sent and has no reply yet? */
static bool
is_pending(const struct rollbacks *all)
{
	int i;

	for (i = 0; i < ROLLBACKS_MAX; i++) {
		if (all->rollback[i].token[0] != '\0' && all->rollback[i].sent)
			return true;
	}
	return false;
}

/* How long it goes on to roll back an attempt. */
struct rolling_back {
	struct acquire *acquire;
	bool noted[NODES_MAX]; /* the rollback is recorded */
	int resends;
	enum {
		LATE,  /* nodes that are about to reply to the attempt may do so first */
		GRACE, /* what was not reached by the attempt may be reached by the rollback */
		REST
	} phase;
};

/*
 * Must this node's reply to a rollback be awaited?  Yes, if the node has replied to the attempt, or may have executed it.
 * Otherwise only for the grace period: it may be hung, or the connection was given up before it was established.  It is
 * not enough that the rollback was written: a server that finds the connection closed when it replies to the attempt
 * reads no further, and the rollback is lost.  An unresponsive node is not waited for.
 */
static bool
is_awaited(const struct acquire *t, int node, bool in_grace)
{
	const enum vote vote = t->attempt.grants.vote[node];
	const bool reached = vote == VOTE_FAULT ? attempt_perhaps_granted(&t->attempt, node) : vote != VOTE_PENDING;

	return is_pending(&t->nodes->rollbacks[node]) && (reached || (in_grace && !t->nodes->unresponsive[node]));
}

/*
 * May this node reply soon?  Not for a Cluster, whose server may redirect the attempt: there the rollback must have
 * been sent already, so that the attempt is not resent.
 */
static bool
is_about_to_reply(const struct acquire *t, int node)
{
	return t->attempt.grants.vote[node] == VOTE_PENDING && attempt_perhaps_granted(&t->attempt, node) &&
	    !t->nodes->unresponsive[node] && node_url(t->nodes->node[node])->kind != URL_CLUSTER;
}

/* Record and send what is due.  Nodes that are about to reply are left out in the first phase. */
static enum standing
take_back(struct rolling_back *r)
{
	struct acquire *const t = r->acquire;
	bool waits, awaited = false, about_to_reply = false, more = false, sent = false;
	int i;

	for (i = 0; i < t->nodes->count; i++) {
		waits = r->phase == LATE && is_about_to_reply(t, i);
		about_to_reply = about_to_reply || waits;
		if (r->noted[i] || waits || !attempt_perhaps_granted(&t->attempt, i))
			continue;
		note(t->nodes, i, t->token);
		r->noted[i] = more = true;
	}
	for (i = 0; i < t->nodes->count && (more || r->resends > 0); i++)
		sent = send_rollbacks(t, i) || sent;
	if (more)
		log_debug(&t->nodes->log, "rolling back what may have been granted");
	else if (sent)
		r->resends--;
	for (i = 0; i < t->nodes->count; i++)
		awaited = awaited || is_awaited(t, i, r->phase != REST);
	if (r->phase == LATE)
		return about_to_reply ? ROUND_OPEN : ROUND_OVER;
	return awaited ? ROUND_OPEN : ROUND_OVER;
}

static int64_t
at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/*
 * Send a rollback to every node that may have granted the failed attempt, and wait for the replies until until_us, or
 * for one round.  The attempt still receives its own replies meanwhile.  Rollbacks that are not done in time stay
 * recorded.  Nodes that had not replied at the deadline of the attempt are marked as unresponsive.
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
	struct waiting w = { .nodes = n, .limit = { .interrupt_fd = -1 } };
	int64_t end[REST + 1];

	end[REST] = clock_sooner(clock_add(now, at_least(n->node_timeout_us, GRACE_US)), until_us);
	end[GRACE] = clock_sooner(clock_add(now, at_least(8 * took, GRACE_US)), end[REST]);
	end[LATE] = clock_sooner(clock_add(now, at_least(took, LATE_REPLY_US)), end[GRACE]);
	nodes_note_unresponsive(n, &t->attempt.grants);
	if (!refused || t->attempt.grants.closed || now >= waitqueue_last_try_us(t, step))
		nodes_stop_connecting(n, !t->attempt.grants.closed);
	for (; r.phase <= REST; r.phase++) {
		w.event = LOOP_ACTIVE;
		w.limit.until_us = end[r.phase];
		while (nodes_await(&w, take_back(&r)))
			;
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

static enum attempt_step
drive(struct acquire *t, int interrupt_fd, bool *interrupted)
{
	struct wait wait = { .interrupt_fd = interrupt_fd };
	enum attempt_step step;

	for (;;) {
		step = attempt_next(&t->attempt, clock_now_us());
		if (step == ATTEMPT_RAISE) {
			log_debug(&t->nodes->log, "raising the fence on a majority of the nodes");
			send_raise(t);
		} else if (step == ATTEMPT_AGAIN)
			send_again(t);
		else if (step == ATTEMPT_GRANTED && lose_grants(t))
			continue;
		else if (step != ATTEMPT_WAIT)
			return step;
		wait.until_us = clock_sooner(t->attempt.again_us, t->attempt.deadline_us);
		if (loop_turn(&t->nodes->loop, &wait) == LOOP_INTERRUPTED) {
			*interrupted = true;
			return ATTEMPT_NO_QUORUM;
		}
	}
}

/*
 * A node that stopped replying during the wait must not prolong it, and the cleanup after a failed attempt must finish
 * before the end of the operation.
 */
static int64_t
round_length(const struct acquire *t)
{
	const int64_t least = 4 * t->took_us > OVERTIME_US ? 4 * t->took_us : OVERTIME_US;
	const int64_t now = clock_now_us();
	int64_t round = t->nodes->node_timeout_us, left = t->args->wait.until_us - now;

	if (t->args->wait.until_us != 0 && t->took_us != 0) {
		left = left > least ? left : least;
		round = left < round ? left : round;
	}
	left = t->over_us - 2 * t->reserve_us - now;
	left = left > t->reserve_us ? left : t->reserve_us;
	return left < round ? left : round;
}

/* Begin an attempt.  False: no random numbers for a token. */
static bool
begin(struct acquire *t)
{
	struct nodes *f = t->nodes;
	struct attempt_terms terms = {
		.nodes = f->count,
		.ttl_us = t->args->ttl_ms * 1000,
		.node_timeout_us = round_length(t),
		.handoff = t->handoff,
	};

	if (!token_new(t->token))
		return false;
	text_keep_secret(SECRET_TOKEN, t->token, TOKEN_LENGTH);
	memcpy(t->handoff, t->queue.handoff, sizeof(t->handoff));
	t->queue.handoff[0] = '\0';
	memcpy(terms.unresponsive, f->unresponsive, sizeof(terms.unresponsive));
	memset(t->error, 0, (size_t)f->count * sizeof(t->error[0]));
	attempt_start(&t->attempt, &terms, clock_now_us());
	log_debug(&f->log, f->count == 1 ? "asking %d node for the lock" : "asking %d nodes for the lock", f->count);
	t->candidate_us = clock_wall_us();
	nodes_cancel(f, t); /* replies to an older attempt no longer matter */
	nodes_cancel(f, &t->raise);
	nodes_begin_round(f);
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
 * Other waiters are blocked at the node that sent the handoff token.  Without the request it keeps the released token
 * for the window, and does not wake them when this lock is released.  If it needs a new connection, wait until the
 * request has been written: dlock may be about to end.
 */
static void
reach_queue(struct acquire *t)
{
	const struct node *node = t->nodes->node[t->queue.from];
	struct waiting w = { .nodes = t->nodes, .limit = { clock_add(clock_now_us(), REACH_US), -1 } };

	while (t->handoff[0] != '\0' && t->attempt.grants.vote[t->queue.from] == VOTE_PENDING && node_needs_us(node) &&
	    nodes_await(&w, ROUND_OPEN))
		;
}

/*
 * Make one attempt with a fresh token.  ST_OK: granted, see t->attempt.  Otherwise *step is the reason, and grants have
 * been rolled back on all nodes that could be reached; the other rollbacks are sent again with the next attempt.
 */
static enum status
acquire_attempt(struct acquire *t, int interrupt_fd, enum attempt_step *step, struct err *err)
{
	bool interrupted = false;
	struct command request;
	int64_t until;
	int i;

	*step = ATTEMPT_WAIT;
	if (!begin(t))
		return err_set(err, ST_SYSTEM, "the kernel provides no random numbers for a token");
	for (i = 0; i < t->nodes->count; i++) {
		(void)send_rollbacks(t, i);
		write_request(t, i, &request);
		node_send(t->nodes->node[i], &request, acquire_replied, t);
	}
	*step = drive(t, interrupt_fd, &interrupted);
	if (!interrupted && !t->attempt.grants.closed)
		t->took_us = clock_now_us() - t->attempt.started_us;
	if (*step == ATTEMPT_GRANTED || (*step == ATTEMPT_NO_QUORUM && !interrupted && !t->attempt.grants.closed))
		collect_late_replies(t);
	if (*step == ATTEMPT_GRANTED)
		reach_queue(t);
	if (*step == ATTEMPT_GRANTED && clock_now_us() >= t->attempt.valid_until_us)
		*step = ATTEMPT_TOO_SLOW; /* waiting for more replies took time */
	if (*step == ATTEMPT_GRANTED) {
		log_debug(&t->nodes->log, "the lock is ours, fence %" PRId64 ", for %d ms", t->attempt.fence,
		    (int)((t->attempt.valid_until_us - clock_now_us()) / 1000));
		return ST_OK;
	}
	until = clock_add(clock_now_us(), t->reserve_us);
	roll_back_attempt(t, until > t->over_us - t->reserve_us ? until : t->over_us - t->reserve_us, *step);
	return interrupted ? err_set(err, ST_INTERRUPTED, "interrupted")
			   : nodes_explain(t->nodes, &t->attempt, *step, t->error, err);
}

/* -- The operation ---------------------------------------------------------- */

static void
fill_lease(const struct acquire *t, struct lease *lease)
{
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
}

/* Does a node refuse because it has started too recently? */
static bool
is_guarded(const struct acquire *t)
{
	int i;

	for (i = 0; i < t->nodes->count; i++) {
		if (t->error[i].guarded)
			return true;
	}
	return false;
}

/*
 * Set the deadlines of the operation.  A split vote is retried even without a wait, for up to one round: of two hosts
 * that start together, otherwise neither might get the lock.  A wait ends at its limit plus one round, including the
 * last attempt, its rollback, and leaving the queue.
 */
static void
set_bounds(struct acquire *t)
{
	const int64_t now = clock_now_us(), timeout_us = t->nodes->node_timeout_us;
	const bool waits = t->args->wait.until_us != 0;
	const int64_t end = t->args->wait.until_us > now ? t->args->wait.until_us : now;

	t->began_us = now;
	t->split_until_us = clock_add(now, waits ? timeout_us / 2 : timeout_us);
	t->over_us = clock_add(waits ? end : t->split_until_us, timeout_us);
	t->reserve_us = timeout_us / 8 < RESERVE_US ? timeout_us / 8 : RESERVE_US;
}

/*
 * May there be another attempt?  If the first attempt finds no quorum, it is the last one, unless a node has started
 * too recently.  An operation that is already waiting continues: a server that restarts must not make its waiters fail.
 */
static bool
tries_again(const struct acquire *t, enum attempt_step step, bool waiting)
{
	if (step == ATTEMPT_NO_QUORUM && !waiting && !is_guarded(t))
		return false;
	if (step == ATTEMPT_HELD && attempt_kept(&t->attempt, t->args->wait.until_us))
		return false;
	return clock_now_us() < waitqueue_last_try_us(t, step);
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
	const int64_t now = clock_now_us(), least = clock_add(now, t->reserve_us);
	const int64_t most = clock_add(now, took > GRACE_US ? took : GRACE_US);
	const int64_t until = clock_sooner(most, t->over_us > least ? t->over_us : least);
	int i;

	for (i = 0; i < t->nodes->count; i++)
		refused = refused || t->ticket[i] != 0;
	for (i = 0; i < t->nodes->count; i++)
		noted[i] = !acquired || (refused && t->attempt.grants.vote[i] != VOTE_YES);
	if (t->args->wait.until_us != 0)
		waitqueue_leave(&t->queue, noted, until);
	if (!acquired)
		waitqueue_pass_on(&t->queue, until);
	nodes_cancel(t->nodes, t);
	nodes_cancel(t->nodes, &t->raise);
}

/* Was there a signal while the lock was being granted?  Then release it, for the next waiter. */
static bool
gave_up_meanwhile(struct backend *backend, const struct acquire_args *args, const struct lease *lease)
{
	struct pollfd fd = { .fd = args->wait.interrupt_fd, .events = POLLIN };
	enum ownership ownership;
	struct err ignored;

	if (args->wait.until_us == 0 || fd.fd < 0 || poll(&fd, 1, 0) != 1)
		return false;
	(void)backend->service->release(backend, lease, 0, &ownership, &ignored);
	return true;
}

enum status
redis_acquire(struct backend *backend, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct redis_backend *const s = (struct redis_backend *)backend;
	struct acquire t;
	enum attempt_step step = ATTEMPT_WAIT;
	enum status status;
	unsigned int tries;

	memset(&t, 0, offsetof(struct acquire, attempt));
	t.nodes = &s->nodes;
	t.args = args;
	status = redis_reenter(s, args, lease, err);
	if (status != ST_NO || args->must_hold)
		return status;
	keys_of(args->key, &t.names);
	set_bounds(&t);
	if (!waitqueue_start(&t))
		return err_set(err, ST_SYSTEM, "the kernel provides no random numbers for a token");
	for (tries = 1;; tries++) {
		/*
		 * A lock that was granted by a handoff token must be released, which wakes the next waiter.  A rollback
		 * would not.
		 */
		status = acquire_attempt(&t, t.queue.handoff[0] != '\0' ? -1 : args->wait.interrupt_fd, &step, err);
		if (status == ST_OK)
			break;
		t.splits = step == ATTEMPT_SPLIT ? t.splits + 1 : 0;
		if (status != ST_HELD && status != ST_NO_QUORUM && !(status == ST_SYSTEM && step == ATTEMPT_NO_QUORUM))
			break;
		if (!tries_again(&t, step, tries > 1))
			break;
		if (step == ATTEMPT_SPLIT && tries > 1 && args->wait.until_us != 0 && waitqueue_find_handoff(&t))
			continue;
		if (!waitqueue_wait(&t, step, tries, err)) {
			status = err_set(err, ST_INTERRUPTED, "interrupted");
			break;
		}
	}
	leave(&t, status == ST_OK);
	if (status == ST_HELD && args->refused_by != NULL && attempt_holder(&t.attempt) != NULL)
		*args->refused_by = *attempt_holder(&t.attempt);
	if (status != ST_OK)
		return status;
	fill_lease(&t, lease);
	memcpy(s->taken.token, t.token, sizeof(t.token));
	/*
	 * A handoff token that arrived while the lock was granted without it: the release removes what is left of it at
	 * its node.
	 */
	memcpy(s->taken.handoff, t.handoff[0] != '\0' ? t.handoff : t.queue.handoff, sizeof(t.handoff));
	if (gave_up_meanwhile(backend, args, lease))
		return err_set(err, ST_INTERRUPTED, "interrupted");
	return ST_OK;
}
