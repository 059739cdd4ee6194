/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lock/merge.h"

#define GRACE_US 50000
#define SHORT_US 2000 /* for nodes that were unresponsive before */

struct query;

/* The status query of one lock. */
struct lock_query {
	struct query *all;
	const char *key;
	struct ballot ballot; /* yes: its state is known */
	struct node_error error[NODES_MAX];
	struct holder holder[NODES_MAX];
	char fingerprint[NODES_MAX][FINGERPRINT_SIZE];
	struct lock_status view;
};

/* Status queries of several locks at the same time. */
struct query {
	struct redis_backend *backend;
	struct lock_query *lock_query;
	int count;
	const char *lost; /* see struct status_args */
	bool patient;	  /* wait for every node, even when a majority has replied */
	int known;	  /* locks for which a majority has replied */
	int pending;	  /* replies that are pending */
	struct node_error fingerprint_error[NODES_MAX];
};

static void
inspect_replied(void *context, int node, const struct result *d)
{
	struct lock_query *const l = context;
	struct query *const ls = l->all;
	bool held = false;

	l->ballot.vote[node] = VOTE_FAULT;
	ls->pending--;
	l->view.answered += d->reply != NULL;
	if (!answer_inspect(d, &held, &l->holder[node], &l->error[node]))
		return;
	l->ballot.vote[node] = VOTE_YES;
	ls->known += quorum_count(&l->ballot, VOTE_YES) == quorum_majority(l->view.nodes);
	l->view.node[node].state = merge_state(held, &l->holder[node]);
	l->view.node[node].up_s = reply_integer(reply_item(d->reply, 14));
	l->view.node[node].left_ms = held ? l->holder[node].left_ms : 0;
}

static void
fingerprint_replied(void *context, int node, const struct result *d)
{
	struct query *const ls = context;

	if (answer_is_reply(d, &ls->fingerprint_error[node]))
		(void)snprintf(ls->lock_query[0].fingerprint[node], FINGERPRINT_SIZE, "%s", reply_text(d->reply));
}

static void
start_query(struct query *all, struct lock_query *l, const char *key)
{
	const struct nodes *const f = &all->backend->nodes;
	int i;

	memset(l, 0, sizeof(*l));
	l->all = all;
	l->key = key;
	l->view.nodes = l->ballot.nodes = f->count;
	for (i = 0; i < f->count; i++) {
		l->view.node[i].name = node_name(f->node[i]);
		l->view.node[i].state = LOCK_UNKNOWN;
	}
}

static void
ask(struct query *ls, const char *const *keys)
{
	struct nodes *f = &ls->backend->nodes;
	struct command request;
	struct keys names;
	int i;

	for (i = 0; i < ls->count; i++) {
		start_query(ls, &ls->lock_query[i], keys[i]);
		keys_of(keys[i], &names);
		command_eval(&request, SCRIPT_INSPECT, &names);
		if (ls->lost != NULL)
			command_add(&request, ls->lost);
		nodes_send_all(f, &request, inspect_replied, &ls->lock_query[i]);
	}
	ls->pending = ls->count * f->count;
}

/* Have all nodes sent all replies, except those that were unresponsive before? */
static bool
only_unresponsive_are_pending(const struct query *ls)
{
	const struct nodes *f = &ls->backend->nodes;
	int i, k;

	for (k = 0; k < ls->count; k++) {
		for (i = 0; i < f->count; i++) {
			if (ls->lock_query[k].ballot.vote[i] == VOTE_PENDING && !f->unresponsive[i])
				return false;
		}
	}
	return true;
}

/*
 * Wait for all replies, but only a short time once a majority has replied about every lock: another node may be hung.
 * A break waits: without the vote of a node that is merely late, a holder seems to have no majority, and the others
 * would be broken, too.
 */
static enum status
collect_replies(struct query *ls, int64_t began_us, int interrupt_fd)
{
	struct nodes *f = &ls->backend->nodes;
	const int64_t until = clock_add(began_us, f->node_timeout_us);
	enum loop_event event = LOOP_ACTIVE;
	int64_t grace = until, now;

	while (ls->pending > 0 && event == LOOP_ACTIVE) {
		event = loop_turn(&f->loop, grace, interrupt_fd);
		now = clock_now_us();
		if (grace == until && ls->known == ls->count && !ls->patient)
			grace = clock_add(now, GRACE_US + 8 * (now - began_us));
		if (ls->known == ls->count && only_unresponsive_are_pending(ls) &&
		    grace > began_us + SHORT_US + 3 * (now - began_us))
			grace = began_us + SHORT_US + 3 * (now - began_us);
		if (grace > until)
			grace = until;
	}
	return event == LOOP_INTERRUPTED ? ST_INTERRUPTED : ST_OK;
}

static void
note_unresponsive(const struct query *ls)
{
	int k;

	for (k = 0; k < ls->count; k++) {
		ls->lock_query[k].ballot.closed = true;
		nodes_note_unresponsive(&ls->backend->nodes, &ls->lock_query[k].ballot);
	}
}

/* Cancel pending completions, and free. */
static void
forget(struct query *ls)
{
	int k;

	nodes_cancel(&ls->backend->nodes, ls);
	for (k = 0; k < ls->count; k++)
		nodes_cancel(&ls->backend->nodes, &ls->lock_query[k]);
	free(ls->lock_query);
}

static void
explain_unknown(struct lock_query *l, const struct nodes *f)
{
	int i;

	for (i = 0; i < l->view.nodes; i++) {
		if (l->view.node[i].state != LOCK_UNKNOWN)
			continue;
		l->view.hidden = l->view.hidden || (l->error[i].is && l->error[i].of_keys);
		if (l->error[i].is)
			l->view.node[i].reason = l->error[i].reason;
		else
			reason_set(&l->view.node[i].reason, "%s", node_waits_for(f->node[i]));
	}
}

static enum status
conclude(struct lock_query *l, const struct nodes *f, struct err *err)
{
	explain_unknown(l, f);
	if (merge_status(&l->view, l->holder))
		return ST_OK;
	return nodes_no_quorum(f, &l->ballot, l->error, err);
}

enum status
redis_status(struct backend *backend, const struct status_args *args, struct err *err)
{
	struct redis_backend *s = (struct redis_backend *)backend;
	struct query ls = { .backend = s, .count = args->count, .lost = args->lost };
	const int64_t began = clock_now_us();
	struct err own;
	enum status status, outcome;
	int i;

	ls.lock_query = malloc((size_t)ls.count * sizeof(*ls.lock_query));
	if (ls.lock_query == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	nodes_begin_round(&s->nodes);
	ask(&ls, args->keys);
	status = collect_replies(&ls, began, args->wait.interrupt_fd);
	note_unresponsive(&ls);
	for (i = 0; i < ls.count && status == ST_OK; i++) {
		outcome = conclude(&ls.lock_query[i], &s->nodes, &own);
		args->report(args->context, args->keys[i], &ls.lock_query[i].view, outcome, &own);
	}
	forget(&ls);
	return status;
}

/* -- Preparing a break ------------------------------------------------------ */

/*
 * Query the fingerprints first: if the holder changes between the two replies, break_commit() finds a different fingerprint.
 */
static void
query_fingerprints(struct query *ls, const char *key)
{
	struct nodes *f = &ls->backend->nodes;
	struct command request;
	struct keys names;

	keys_of(key, &names);
	command_eval(&request, SCRIPT_BREAK, &names);
	command_add(&request, "");
	nodes_send_all(f, &request, fingerprint_replied, ls);
}

/* Does this holder belong to this side?  The token alone identifies a lock of dlock. */
static bool
is_on(const struct break_side *side, const struct holder *holder, const char *fingerprint)
{
	return strcmp(side->holder.token, holder->token) == 0 && side->holder.other_client == holder->other_client &&
	    (!holder->other_client || strcmp(side->fingerprint, fingerprint) == 0);
}

static void
count_side(struct break_plan *p, const struct holder *holder, const char *fingerprint)
{
	struct break_side *side = p->side;

	while (side < p->side + p->sides && !is_on(side, holder, fingerprint))
		side++;
	if (side == p->side + p->sides) {
		side->holder = *holder;
		memcpy(side->fingerprint, fingerprint, FINGERPRINT_SIZE);
		side->nodes = 0;
		p->sides++;
	}
	side->nodes++;
}

/* Collect the sides: only the one that has a majority, or else all. */
static void
take_sides(struct break_plan *p, const struct lock_query *l)
{
	int i;

	p->view = l->view;
	p->sides = 0;
	for (i = 0; i < l->view.nodes; i++) {
		if (l->view.node[i].state != LOCK_UNKNOWN && l->view.node[i].state != LOCK_FREE)
			count_side(p, &l->holder[i], l->fingerprint[i]);
	}
	for (i = 0; i < p->sides; i++) {
		if (p->side[i].nodes < quorum_majority(l->view.nodes))
			continue;
		p->side[0] = p->side[i];
		p->side[0].holder.left_ms = l->view.holder.left_ms;
		p->sides = 1;
	}
}

/* The lock of another client can't be broken without its fingerprint. */
static enum status
check_fingerprints(const struct query *ls, struct err *err)
{
	const struct lock_query *l = &ls->lock_query[0];
	int i;

	for (i = 0; i < l->view.nodes; i++) {
		if (l->view.node[i].state == LOCK_OTHER_CLIENT && l->fingerprint[i][0] == '\0' &&
		    ls->fingerprint_error[i].is)
			return err_set(err, ls->fingerprint_error[i].denied ? ST_DENIED : ST_NO_QUORUM, "%s: %s",
			    l->view.node[i].name, ls->fingerprint_error[i].reason.text);
	}
	return ST_OK;
}

enum status
redis_break_prepare(struct backend *backend, const char *key, struct break_plan *plan, struct err *err)
{
	struct redis_backend *s = (struct redis_backend *)backend;
	struct query ls = { .backend = s, .count = 1, .patient = true };
	const int64_t began = clock_now_us();
	enum status status;

	ls.lock_query = calloc(1, sizeof(*ls.lock_query));
	if (ls.lock_query == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	nodes_begin_round(&s->nodes);
	query_fingerprints(&ls, key);
	ask(&ls, &key);
	(void)collect_replies(&ls, began, -1);
	note_unresponsive(&ls);
	status = conclude(&ls.lock_query[0], &s->nodes, err);
	take_sides(plan, &ls.lock_query[0]);
	if (status == ST_OK)
		status = check_fingerprints(&ls, err);
	forget(&ls);
	return status;
}
