/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "redis/operations.h"

#define MONTH_MS INT64_C(2592000000) /* the list expires so long after the last lease, see history.lua */
#define GRACE_US 20000		     /* for the nodes beyond a majority */

#define LATEST_MS (INT64_C(1) << 53) /* no time of day, and no length of time, is greater */

struct recall {
	struct redis_backend *backend;
	struct history *history;
	struct ballot ballot; /* yes: its entries have been read */
	struct node_error error[NODES_MAX];
	bool no_memory;
};

/* A number of milliseconds that is safe for arithmetic, whatever the server sent; -1 if it is not known. */
static int64_t
read_ms(const struct reply *list, size_t index)
{
	const int64_t ms = reply_integer(reply_item(list, index));

	return ms >= 0 && ms <= LATEST_MS ? ms : -1;
}

static void
read_reply(struct recall *r, int node, const struct reply *list)
{
	const struct reply *const entries = reply_item(list, 3), *const waiters = reply_item(list, 4);
	const int64_t now_ms = read_ms(list, 0), expires_ms = read_ms(list, 2);
	const struct history_source source = { .now_ms = now_ms,
		.holder = reply_text(reply_item(list, 1)),
		.lease_ended_ms = expires_ms < 0 ? -1 : now_ms + expires_ms - MONTH_MS };
	size_t i;

	for (i = 0; i < reply_items(entries); i++)
		r->no_memory = r->no_memory || !history_add(r->history, &source, i, reply_text(reply_item(entries, i)));
	for (i = 0; i < reply_items(waiters); i++)
		r->no_memory = r->no_memory ||
		    !history_add_waiter(r->history, node, i, reply_text(reply_item(waiters, i)));
}

static void
replied(void *context, int node, const struct result *d)
{
	struct recall *const r = context;

	r->ballot.vote[node] = VOTE_FAULT;
	if (!answer_is_reply(d, &r->error[node]))
		return;
	if (reply_items(d->reply) != 5) {
		answer_fail_unexpected(&r->error[node]);
		return;
	}
	r->ballot.vote[node] = VOTE_YES;
	read_reply(r, node, d->reply);
}

/*
 * Wait for all nodes, but only a short time once a majority has replied and the others cannot change what is shown.
 * False: interrupted.
 */
static bool
collect_replies(struct recall *r, const struct wait *wait)
{
	const int64_t began = clock_now_us(), most = clock_add(began, r->backend->nodes.node_timeout_us);
	const int nodes = r->ballot.nodes;
	enum loop_event event = LOOP_ACTIVE;
	int64_t until = most;

	while (quorum_count(&r->ballot, VOTE_PENDING) > 0 && event == LOOP_ACTIVE) {
		event = loop_turn(&r->backend->nodes.loop, until, wait->interrupt_fd);
		if (until == most && quorum_count(&r->ballot, VOTE_YES) >= quorum_majority(nodes) &&
		    history_is_settled(r->history, nodes, quorum_count(&r->ballot, VOTE_PENDING)))
			until = clock_sooner(most, clock_add(clock_now_us(), GRACE_US + clock_now_us() - began));
	}
	r->ballot.closed = true;
	nodes_note_unresponsive(&r->backend->nodes, &r->ballot);
	return event != LOOP_INTERRUPTED;
}

enum status
redis_history(struct backend *backend, const char *key, const struct wait *wait, struct history *history,
    struct err *err)
{
	struct redis_backend *const s = (struct redis_backend *)backend;
	struct recall recall = { .backend = s, .history = history, .ballot = { .nodes = s->nodes.count } };
	char name[KEY_MAX + 64];
	struct command request;
	struct keys names;
	bool complete;

	memset(history, 0, sizeof(*history));
	keys_of(key, &names);
	(void)snprintf(name, sizeof(name), "%s:history", names.metadata);
	command_eval(&request, SCRIPT_HISTORY, &names);
	command_add(&request, name);
	nodes_begin_round(&s->nodes);
	nodes_send_all(&s->nodes, &request, replied, &recall);
	complete = collect_replies(&recall, wait);
	nodes_cancel(&s->nodes, &recall);
	if (!complete)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	if (recall.no_memory)
		return err_set(err, ST_SYSTEM, "out of memory");
	if (quorum_count(&recall.ballot, VOTE_YES) < quorum_majority(s->nodes.count))
		return nodes_no_quorum(&s->nodes, &recall.ballot, recall.error, err);
	history_finish(history, s->nodes.count, s->nodes.count - quorum_count(&recall.ballot, VOTE_YES));
	return ST_OK;
}
