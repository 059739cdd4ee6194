/* SPDX-License-Identifier: MIT */
#include "redis/acquire_state.h"

#include <string.h>

#include "base/clock.h"

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
roll_back(struct rolling_back *r)
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
		sent = rollback_send(t, i) || sent;
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

void
rollback_attempt(struct acquire *t, int64_t until_us, enum attempt_step step)
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
		while (nodes_await(&w, roll_back(&r)))
			;
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
