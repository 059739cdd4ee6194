/* SPDX-License-Identifier: MIT */
#include "redis/nodes.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

void
nodes_begin_round(struct nodes *n)
{
	int i;

	for (i = 0; i < n->count; i++) {
		if (n->unresponsive[i])
			node_disconnect(n->node[i]);
	}
	(void)loop_run_tasks(&n->loop);
}

void
nodes_send_all(struct nodes *n, const struct command *command, node_completion *completion, void *context)
{
	int i;

	for (i = 0; i < n->count; i++)
		node_send(n->node[i], command, completion, context);
}

void
nodes_cancel(struct nodes *n, const void *context)
{
	int i;

	for (i = 0; i < n->count; i++)
		node_cancel(n->node[i], context);
	if (n->second != NULL)
		node_cancel(n->second, context);
}

void
nodes_note_unresponsive(struct nodes *n, const struct ballot *b)
{
	int i;

	for (i = 0; i < n->count; i++)
		n->unresponsive[i] = n->unresponsive[i] || (b->closed && b->vote[i] == VOTE_PENDING);
}

void
nodes_stop_connecting(struct nodes *n, bool in_time)
{
	int i;

	for (i = 0; i < n->count; i++)
		node_stop_connecting(n->node[i], in_time);
	(void)loop_run_tasks(&n->loop);
}

/* -- Waiting ---------------------------------------------------------------- */

struct wait
nodes_limit(const struct nodes *n, const struct wait *wait)
{
	const int64_t timeout = clock_add(clock_now_us(), n->node_timeout_us);

	return (struct wait){ clock_sooner(wait->until_us, timeout), wait->interrupt_fd };
}

bool
nodes_await(struct waiting *w, enum standing standing)
{
	struct wait wait = w->limit;
	int64_t now, took;

	if (w->event != LOOP_ACTIVE || standing == ROUND_OVER ||
	    (standing == ROUND_DECIDED && w->patience == UNTIL_DECIDED))
		return false;
	if (standing == ROUND_DECIDED && w->patience != EVERYBODY) {
		now = clock_now_us();
		took = now - w->began_us;
		if (w->late_us == 0 && w->patience == NEARLY_AS_FAST)
			w->late_us = clock_add(now, took < 4000 ? 100 + took / 4 : 1100);
		else if (w->late_us == 0)
			w->late_us = clock_add(now, GRACE_US + 8 * took);
		wait.until_us = clock_sooner(wait.until_us, w->late_us);
	}
	w->event = loop_turn(&w->nodes->loop, &wait);
	return true;
}

/* -- The second connection -------------------------------------------------- */

void
nodes_close_second(struct nodes *n)
{
	node_close(n->second);
	n->second = NULL;
}

void
nodes_close(struct nodes *n)
{
	int i;

	nodes_close_second(n);
	for (i = 0; i < n->count; i++)
		node_close(n->node[i]);
	n->count = 0;
}

/* -- A round ---------------------------------------------------------------- */

static void
replied(void *context, int node, const struct result *d)
{
	static const char *const words[] = { "the lock has expired", "another token holds the lock", "done",
		"done, other holds keep the lock" };
	static const enum ownership owners[] = { OWNED_BY_NOBODY, OWNED_BY_ANOTHER, OWNED, OWNED_STILL };
	struct round *const r = context;
	struct lock_fields *const lock = &r->lock[node];
	const int number = answer_number(d, lock, &r->error[node]);
	const size_t length = r->holds != NULL ? strlen(r->holds) : 0;

	if (r->holds != NULL && lock->holds[0] != '\0' && length + 1 + strlen(lock->holds) < ROUND_HOLDS)
		(void)snprintf(r->holds + length, ROUND_HOLDS - length, " %s", lock->holds);
	r->asked[node] = lock->asked_by[0] != '\0';
	if (r->asked[node])
		(void)snprintf(r->asked_by, sizeof(r->asked_by), "%s", lock->asked_by);
	lock->holds = lock->asked_by = ""; /* the reply will be freed */
	r->replied_us[node] = clock_now_us();
	r->connection[node] = d->reply != NULL ? d->connection : 0;
	r->ballot.vote[node] = number == -2 ? VOTE_FAULT : number > 0 ? VOTE_YES : VOTE_NO;
	if (number == -2)
		return;
	r->owner[node] = number == 0 && lock->ttl_ms > 0 ? OWNED_NO_MORE : owners[number + 1];
	log_debug(&r->nodes->log, "%s: %s", node_name(r->nodes->node[node]), words[number + 1]);
}

void
nodes_round_start(struct round *r, struct nodes *n, const struct command *command)
{
	int i;

	nodes_cancel(n, r);
	memset(r, 0, offsetof(struct round, holds));
	r->nodes = n;
	if (r->holds != NULL)
		r->holds[0] = '\0';
	memset(r->error, 0, (size_t)n->count * sizeof(r->error[0]));
	r->ballot.nodes = n->count;
	for (i = 0; i < n->count; i++)
		r->ballot.unresponsive[i] = n->unresponsive[i];
	nodes_begin_round(n);
	nodes_send_all(n, command, replied, r);
}

enum standing
nodes_round_standing(const struct round *r)
{
	bool complete = true;
	int i;

	for (i = 0; i < r->ballot.nodes; i++)
		complete = complete && (r->ballot.vote[i] != VOTE_PENDING || r->ballot.unresponsive[i]);
	if (quorum_judge(&r->ballot) == VERDICT_OPEN)
		return ROUND_OPEN;
	return complete ? ROUND_OVER : ROUND_DECIDED;
}

void
nodes_round_run(struct round *r, const struct command *command, struct waiting *w)
{
	nodes_round_start(r, w->nodes, command);
	while (nodes_await(w, nodes_round_standing(r)))
		;
}

/*
 * The owner of the lock, by the nodes that replied "not ours": OWNED_BY_ANOTHER if most of them say so, else
 * OWNED_NO_MORE if any does, else OWNED_BY_NOBODY.
 */
enum status
nodes_round_refused(const struct round *r, enum ownership *ownership, struct err *err)
{
	int i, votes[OWNED_BY_ANOTHER + 1] = { 0 };

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_NO)
			votes[r->owner[i]]++;
	}
	if (votes[OWNED_BY_ANOTHER] > votes[OWNED_BY_NOBODY] + votes[OWNED_NO_MORE])
		*ownership = OWNED_BY_ANOTHER;
	else
		*ownership = votes[OWNED_NO_MORE] > 0 ? OWNED_NO_MORE : OWNED_BY_NOBODY;
	return loss_error(*ownership, err);
}

enum status
nodes_round_outcome(const struct round *r, enum ownership *ownership, struct err *err)
{
	const enum verdict verdict = quorum_judge(&r->ballot);

	if (verdict == VERDICT_REFUSED)
		return nodes_round_refused(r, ownership, err);
	if (verdict == VERDICT_SPLIT)
		return err_set(err, ST_NO_QUORUM, "fewer than a majority of the %d nodes report the lock as ours",
		    r->ballot.nodes);
	if (verdict != VERDICT_CARRIED)
		return nodes_no_quorum(r->nodes, &r->ballot, r->error, err);
	*ownership = OWNED;
	return ST_OK;
}

void
nodes_round_close(struct round *r)
{
	r->ballot.closed = true;
	nodes_note_unresponsive(r->nodes, &r->ballot);
}

void
nodes_round_end(struct round *r)
{
	nodes_round_close(r);
	nodes_cancel(r->nodes, r);
}

/* -- No quorum -------------------------------------------------------------- */

static const char *
error_text(const struct nodes *f, int node, const struct node_error *error, bool closed)
{
	/* Redirections of a Cluster that is configured as one have been followed up to the limit. */
	if (error->moved && strstr(node_name(f->node[node]), "+cluster://") != NULL)
		return "its servers redirect to each other, and none grants the lock";
	if (error->why.kind != NO_FAILURE)
		return error->why.reason.text;
	return closed ? node_waits_for(f->node[node]) : "not waited for";
}

enum status
nodes_no_quorum(const struct nodes *f, const struct ballot *b, const struct node_error error[NODES_MAX],
    struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	const int voted = quorum_count(b, VOTE_YES) + quorum_count(b, VOTE_NO);
	int i, denied = 0, local = 0, guarded = 0;

	for (i = 0; i < f->count; i++) {
		denied += error[i].why.kind == DENIED;
		local += error[i].why.kind == LOCAL;
		guarded += error[i].guarded;
	}
	if (f->count == 1)
		text_addf(&text, "%s: %s", node_name(f->node[0]), error_text(f, 0, &error[0], b->closed));
	else {
		text_addf(&text, "no quorum: %d of %d nodes %s, %d are needed", voted, f->count,
		    guarded > 0 ? "voted" : "answered", quorum_majority(f->count));
		for (i = 0; i < f->count; i++) {
			if (b->vote[i] != VOTE_YES && b->vote[i] != VOTE_NO)
				text_addf(&text, "; %s: %s", node_name(f->node[i]),
				    error_text(f, i, &error[i], b->closed));
		}
	}
	if (denied > f->count - quorum_majority(f->count))
		return ST_DENIED;
	return local > 0 && voted + local >= quorum_majority(f->count) ? ST_SYSTEM : ST_NO_QUORUM;
}

/* -- A failed attempt ------------------------------------------------------- */

enum status
nodes_explain(const struct nodes *f, const struct attempt *a, enum attempt_step step,
    struct node_error error[NODES_MAX], struct err *err)
{
	const struct holder *const holder = attempt_holder(a);
	struct text text;
	int i, same;

	for (i = 0; i < f->count; i++) {
		if (a->excluded[i])
			answer_fail(&error[i], false,
			    "its fence for this lock is more than a day ahead of the clocks of other nodes; delete the "
			    "metadata of the lock");
	}
	if (step == ATTEMPT_HELD && holder != NULL)
		return holder_error(holder, 0, err);
	if (step == ATTEMPT_TOO_SLOW)
		return err_set(err, ST_NO_QUORUM, "granted too late: the lease had nearly expired; use a longer --ttl");
	if (step == ATTEMPT_SPLIT) {
		text = text_in(err->text, sizeof(err->text));
		text_addf(&text, "contended: no one of several contenders has a majority of the %d nodes", f->count);
		for (i = 0; i < f->count; i++) {
			if (error[i].guarded) /* it has started too recently */
				text_addf(&text, "; %s: %s", node_name(f->node[i]), error[i].why.reason.text);
		}
		return ST_HELD;
	}
	/* A node has no vote if it is the same server as another one.  Waiting does not change that. */
	for (i = 0; i < f->count && step == ATTEMPT_NO_QUORUM; i++) {
		same = error[i].duplicate;
		if (same >= 1 && same <= f->count && same != i + 1)
			return err_set(err, ST_USAGE, "%s and %s are the same server; a quorum needs independent nodes",
			    node_name(f->node[same - 1]), node_name(f->node[i]));
	}
	return nodes_no_quorum(f, a->raising ? &a->raises : &a->grants, error, err);
}
