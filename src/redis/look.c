/* SPDX-License-Identifier: MIT */
/* Looking at locks: inspect.lua for the state, break.lua for what exactly the nodes hold, history.lua for the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lock/history.h"
#include "redis/operations.h"

#define SHORT_US 2000		     /* for nodes that were unresponsive before */
#define MONTH_MS INT64_C(2592000000) /* the history expires so long after the last lease, see history.lua */
#define LATEST_MS (INT64_C(1) << 53) /* no time of day, and no length of time, is greater */

/* What is asked about one lock: one script on all nodes. */
struct query {
	struct look *look;
	struct record *record;
	enum script script;
	struct ballot ballot; /* yes: the reply has been read */
	struct node_error error[NODES_MAX];
	struct holder said[NODES_MAX]; /* SCRIPT_INSPECT; SCRIPT_BREAK: only the fingerprint is set */
};

/* The queries of several locks at the same time. */
struct look {
	struct nodes *nodes;
	const struct look_args *args;
	struct query *query;
	int queries;
	bool no_memory;
};

/* -- Replies ---------------------------------------------------------------- */

/* A number of milliseconds that is safe for arithmetic, whatever the server sent; -1 if it is not known. */
static int64_t
read_ms(const struct reply *list, size_t index)
{
	const int64_t ms = reply_integer(reply_item(list, index));

	return ms >= 0 && ms <= LATEST_MS ? ms : -1;
}

static bool
read_history(struct query *q, int node, const struct result *d)
{
	const struct reply *const entries = reply_item(d->reply, 3), *const waiters = reply_item(d->reply, 4);
	struct history_source source = { .lease_ended_ms = -1 };
	bool fine = true;
	size_t i;

	if (!answer_is_reply(d, &q->error[node]))
		return false;
	if (reply_items(d->reply) != 5) {
		answer_fail_unexpected(&q->error[node]);
		return false;
	}
	source.now_ms = read_ms(d->reply, 0);
	source.holder = reply_text(reply_item(d->reply, 1));
	if (read_ms(d->reply, 2) >= 0)
		source.lease_ended_ms = source.now_ms + read_ms(d->reply, 2) - MONTH_MS;
	for (i = 0; i < reply_items(entries); i++)
		fine = fine && history_add(q->record, &source, i, reply_text(reply_item(entries, i)));
	for (i = 0; i < reply_items(waiters); i++)
		fine = fine && history_add_waiter(q->record, node, i, reply_text(reply_item(waiters, i)));
	q->look->no_memory |= !fine;
	return true;
}

static bool
read_state(struct query *q, int node, const struct result *d)
{
	struct node_view *const view = &q->record->node[node];
	struct holder *const said = &q->said[node];
	struct broken broken;

	q->record->answered += d->reply != NULL;
	if (!answer_inspect(d, said, &broken, &q->error[node]))
		return false;
	record_note_break(q->record, &broken);
	view->state = said->state;
	view->up_s = reply_integer(reply_item(d->reply, 14));
	view->left_ms = said->state != LOCK_FREE ? said->left_ms : 0;
	return true;
}

static bool
read_fingerprint(struct query *q, int node, const struct result *d)
{
	if (!answer_is_reply(d, &q->error[node]))
		return false;
	(void)snprintf(q->said[node].fingerprint, FINGERPRINT_SIZE, "%s", reply_text(d->reply));
	return true;
}

static void
replied(void *context, int node, const struct result *d)
{
	struct query *const q = context;
	const bool fine = q->script == SCRIPT_INSPECT ? read_state(q, node, d)
	    : q->script == SCRIPT_HISTORY	      ? read_history(q, node, d)
						      : read_fingerprint(q, node, d);

	q->ballot.vote[node] = fine ? VOTE_YES : VOTE_FAULT;
}

/* -- A look ----------------------------------------------------------------- */

static void
ask(struct look *l, struct record *record, enum script script)
{
	struct query *const q = &l->query[l->queries++];
	struct command request;
	struct keys names;
	int i;

	q->look = l;
	q->record = record;
	q->script = script;
	q->ballot.nodes = record->nodes = l->nodes->count;
	for (i = 0; i < l->nodes->count; i++) {
		record->node[i].name = node_name(l->nodes->node[i]);
		record->node[i].state = LOCK_UNKNOWN;
	}
	keys_of(record->key, &names);
	command_eval(&request, script, &names, " ");
	if (script == SCRIPT_BREAK)
		command_add(&request, "");
	else if (script == SCRIPT_INSPECT && l->args->lost != NULL)
		command_add(&request, l->args->lost);
	nodes_send_all(l->nodes, &request, replied, q);
}

/* How many replies are pending; of all nodes, or only of those that replied last time. */
static int
count_pending(const struct look *l, bool responsive)
{
	int i, k, pending = 0;

	for (k = 0; k < l->queries; k++) {
		for (i = 0; i < l->nodes->count; i++)
			pending += l->query[k].ballot.vote[i] == VOTE_PENDING &&
			    !(responsive && l->nodes->unresponsive[i]);
	}
	return pending;
}

/* Has a majority replied about everything, and can the others not change what is shown? */
static bool
is_settled(const struct look *l)
{
	const struct query *q;

	for (q = l->query; q < l->query + l->queries; q++) {
		if (q->script != SCRIPT_BREAK && quorum_count(&q->ballot, VOTE_YES) < quorum_majority(q->ballot.nodes))
			return false;
		if (q->script == SCRIPT_HISTORY &&
		    !history_is_settled(q->record, q->ballot.nodes, quorum_count(&q->ballot, VOTE_PENDING)))
			return false;
	}
	return true;
}

/*
 * Wait for all replies, but only a short time once it is settled: another node may be hung.  A break waits: without the vote
 * of a node that is merely late, a holder seems to have no majority, and the others would be broken, too.
 */
static enum loop_event
collect_replies(struct look *l, int64_t began_us)
{
	struct waiting w = { .nodes = l->nodes,
		.limit = { clock_add(began_us, l->nodes->node_timeout_us), l->args->wait.interrupt_fd },
		.patience = (l->args->what & LOOK_EXACT) != 0 ? EVERYBODY : AS_FAR_AWAY,
		.began_us = began_us };
	enum standing standing;
	int i;

	do {
		standing = count_pending(l, false) == 0 ? ROUND_OVER : is_settled(l) ? ROUND_DECIDED : ROUND_OPEN;
		if (standing == ROUND_DECIDED && count_pending(l, true) == 0)
			w.limit.until_us = clock_sooner(w.limit.until_us,
			    clock_now_us() + SHORT_US + 2 * (clock_now_us() - began_us));
	} while (nodes_await(&w, standing));
	for (i = 0; i < l->queries; i++) {
		l->query[i].ballot.closed = true;
		nodes_note_unresponsive(l->nodes, &l->query[i].ballot);
	}
	return w.event;
}

/* -- The result ------------------------------------------------------------- */

/* Take the fingerprints.  The lock of another client can't be broken without its own. */
static enum status
take_fingerprints(struct query *state, const struct query *exact, struct err *err)
{
	int i;

	for (i = 0; i < exact->ballot.nodes; i++) {
		memcpy(state->said[i].fingerprint, exact->said[i].fingerprint, FINGERPRINT_SIZE);
		if (state->record->node[i].state == LOCK_OTHER_CLIENT && exact->said[i].fingerprint[0] == '\0' &&
		    exact->error[i].why.kind != NO_FAILURE)
			return err_set(err, exact->error[i].why.kind == DENIED ? ST_DENIED : ST_NO_QUORUM, "%s: %s",
			    state->record->node[i].name, exact->error[i].why.reason.text);
	}
	return ST_OK;
}

/* The query for the fingerprints, if there is one, precedes the one for the state. */
static void
conclude(struct query *q)
{
	const int known = quorum_count(&q->ballot, VOTE_YES), nodes = q->ballot.nodes;
	struct record *const r = q->record;
	bool enough = known >= quorum_majority(nodes);
	enum status status = ST_OK;
	struct err err;
	int i;

	if (q->script == SCRIPT_HISTORY && enough)
		history_finish(r, nodes, nodes - known);
	else if (q->script == SCRIPT_HISTORY)
		record_free(r);
	else if (q->script == SCRIPT_INSPECT) {
		for (i = 0; i < nodes; i++) {
			if (r->node[i].state != LOCK_UNKNOWN)
				continue;
			r->hidden |= q->error[i].of_keys;
			if (q->error[i].why.kind != NO_FAILURE)
				r->node[i].reason = q->error[i].why.reason;
			else
				reason_set(&r->node[i].reason, "%s", node_waits_for(q->look->nodes->node[i]));
		}
		if (q > q->look->query && q[-1].script == SCRIPT_BREAK)
			status = take_fingerprints(q, q - 1, &err);
		(void)record_merge(r, q->said);
	}
	if (!enough)
		status = nodes_no_quorum(q->look->nodes, &q->ballot, q->error, &err);
	if (status != ST_OK && (q->script == SCRIPT_INSPECT || (q->look->args->what & LOOK_STATE) == 0)) {
		r->status = status;
		r->err = err;
	}
}

enum status
redis_look(struct backend *backend, const struct look_args *args, struct record *record, struct err *err)
{
	struct look l = { &((struct redis_backend *)backend)->nodes, args, NULL, 0, false };
	const bool state = (args->what & LOOK_STATE) != 0;
	const int64_t began = clock_now_us();
	enum loop_event event = LOOP_ACTIVE;
	int i;

	l.query = calloc((size_t)args->count * 3, sizeof(*l.query));
	if (l.query == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	nodes_begin_round(l.nodes);
	for (i = 0; i < args->count; i++) {
		/* First: if the holder changes between the two replies, break_holder() finds a different fingerprint. */
		if ((args->what & LOOK_EXACT) != 0)
			ask(&l, &record[i], SCRIPT_BREAK);
		if (state)
			ask(&l, &record[i], SCRIPT_INSPECT);
		if ((args->what & (LOOK_WAITERS | LOOK_HISTORY)) != 0)
			ask(&l, &record[i], SCRIPT_HISTORY);
	}
	event = collect_replies(&l, began);
	for (i = 0; i < l.queries; i++) {
		nodes_cancel(l.nodes, &l.query[i]);
		if (l.query[i].script != SCRIPT_BREAK && event != LOOP_INTERRUPTED && !l.no_memory)
			conclude(&l.query[i]);
	}
	free(l.query);
	if (event == LOOP_INTERRUPTED)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	return l.no_memory ? err_set(err, ST_SYSTEM, OUT_OF_MEMORY) : ST_OK;
}
