/* SPDX-License-Identifier: MIT */
#include "redis/acquire_state.h"

#include <string.h>

#include "base/clock.h"

/* The minimum time for nodes whose reply did not matter to receive a rollback. */
#define GRACE_US 20000
#define RESENDS 2

/* A node as near as those that decided the attempt replies within this time, or within took_us. */
#define LATE_REPLY_US 1000

/* -- The tokens ------------------------------------------------------------- */

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

bool
rollback_send(struct acquire *t, int node)
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

/* -- One attempt ------------------------------------------------------------ */

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

static bool
any_is_awaited(const struct acquire *t, bool in_grace)
{
	int i;

	for (i = 0; i < t->nodes->count; i++) {
		if (is_awaited(t, i, in_grace))
			return true;
	}
	return false;
}

static bool
send_all(struct acquire *t)
{
	bool any = false;
	int i;

	for (i = 0; i < t->nodes->count; i++)
		any = rollback_send(t, i) || any;
	return any;
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

static bool
any_is_about_to_reply(const struct acquire *t)
{
	int i;

	for (i = 0; i < t->nodes->count; i++) {
		if (is_about_to_reply(t, i))
			return true;
	}
	return false;
}

/*
 * Record the rollbacks that are not recorded yet, except those of nodes whose reply is awaited.  True if there was one.
 */
static bool
note_all(struct acquire *t, bool noted[NODES_MAX], bool late_replies)
{
	bool any = false;
	int i;

	for (i = 0; i < t->nodes->count; i++) {
		if (noted[i] || !attempt_perhaps_granted(&t->attempt, i) || (late_replies && is_about_to_reply(t, i)))
			continue;
		note(t->nodes, i, t->token);
		noted[i] = any = true;
	}
	return any;
}

static int64_t
at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void
rollback_attempt(struct acquire *t, int64_t until_us, enum attempt_step step)
{
	struct nodes *const n = t->nodes;
	const int64_t now = clock_now_us();
	const int64_t took = t->took_us > 0 ? t->took_us : now - t->attempt.started_us;
	const int64_t until = clock_sooner(clock_add(now, at_least(n->node_timeout_us, GRACE_US)), until_us);
	const int64_t grace = clock_sooner(clock_add(now, at_least(8 * took, GRACE_US)), until);
	const int64_t late_until = clock_sooner(clock_add(now, at_least(took, LATE_REPLY_US)), grace);
	const bool refused = step == ATTEMPT_HELD || step == ATTEMPT_SPLIT;
	bool noted[NODES_MAX] = { false }, more, in_grace = true, late_replies = step == ATTEMPT_HELD;
	int resends = RESENDS;
	enum loop_event event;
	int64_t end;

	nodes_note_unresponsive(n, &t->attempt.grants);
	if (!refused || t->attempt.grants.closed || now >= waitqueue_last_try_us(t, step))
		nodes_stop_connecting(n, !t->attempt.grants.closed);
	for (;;) {
		late_replies = late_replies && clock_now_us() < late_until && any_is_about_to_reply(t);
		more = note_all(t, noted, late_replies);
		if ((more || resends > 0) && send_all(t) && !more)
			resends--;
		if (more)
			log_debug(&n->log, "rolling back what may have been granted");
		if (!late_replies && !any_is_awaited(t, in_grace))
			break;
		end = in_grace ? grace : until;
		event = loop_turn(&n->loop, late_replies ? late_until : end, -1);
		if (event != LOOP_TIME || late_replies)
			continue;
		if (end == until)
			break;
		in_grace = false;
	}
}

bool
rollback_lost_grants(struct acquire *t)
{
	const struct nodes *f = t->nodes;
	bool any = false;
	int i;

	for (i = 0; f->count > 1 && i < f->count; i++) {
		if (t->attempt.grants.vote[i] != VOTE_YES || node_is_connected(f->node[i], t->connection[i]))
			continue;
		attempt_lost(&t->attempt, i);
		answer_fail(&t->error[i], false, "it closed the connection after it had granted the lock");
		any = true;
	}
	return any;
}
