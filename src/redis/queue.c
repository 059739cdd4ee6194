/* SPDX-License-Identifier: MIT */
#include "redis/queue.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

bool
queue_start(struct queue *q, struct fleet *fleet, const struct names *names)
{
	memset(q, 0, sizeof(*q));
	q->fleet = fleet;
	q->names = names;
	if (!token_new(q->waiter))
		return false;
	(void)snprintf(q->leave, sizeof(q->leave), "%s:leave:%s", names->facts, q->waiter);
	return true;
}

bool
queue_is_at(const struct queue *q, int node)
{
	return q->tag != 0 && q->node == node && !fleet_second_parted(q->fleet);
}

void
queue_join(struct queue *q, int node)
{
	struct request request;

	if (q->refused || queue_is_at(q, node))
		return;
	q->broken = !fleet_open_second(q->fleet, node);
	q->tag = 0;
	if (q->broken)
		return;
	request_begin(&request, "BLPOP");
	request_add(&request, q->names->wake);
	request_add(&request, q->leave);
	request_add(&request, "0");
	request.once = true; /* a baton may have come that was lost with the connection: whoever waits has to look */
	q->node = node;
	q->joined_us = clock_now_us();
	q->tag = fleet_new_tag(q->fleet);
	fleet_send_second(q->fleet, q->tag, &request);
}

static void
take_baton(struct queue *q, int node, const char *baton)
{
	if (!token_valid(baton))
		return;
	memcpy(q->baton, baton, TOKEN_SIZE);
	q->from = node;
}

/* What a server says while it is in a state that passes, as one that becomes a replica and throws its waiters out. */
static bool
is_passing(const char *error)
{
	static const char *const codes[] = { "UNBLOCKED ", "LOADING ", "BUSY ", "MASTERDOWN ", "READONLY ",
		"CLUSTERDOWN ", "TRYAGAIN " };
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (strncmp(error, codes[i], strlen(codes[i])) == 0)
			return true;
	}
	return false;
}

/*
 * Is there no queue for us?  An error says so.  Some proxies just close the connection; so does a server that restarts,
 * but not twice.
 */
static bool
is_refused(struct queue *q, const struct delivery *d)
{
	const bool was_cut = q->cut;

	q->cut = d->reply == NULL && clock_now_us() - q->joined_us < q->fleet->round_us;
	if (reply_kind(d->reply) == REPLY_ERROR)
		return !is_passing(reply_text(d->reply));
	return q->cut && was_cut;
}

bool
queue_delivered(struct queue *q, int node, const struct delivery *d)
{
	if (q->asked != 0 && d->tag == q->asked) {
		q->asked = 0;
		take_baton(q, node, reply_text(d->reply));
		return true;
	}
	if (q->tag == 0 || d->tag != q->tag)
		return false;
	q->tag = 0;
	if (reply_items(d->reply) == 2 && strcmp(reply_text(reply_item(d->reply, 0)), q->names->wake) == 0)
		take_baton(q, node, reply_text(reply_item(d->reply, 1)));
	q->broken = q->baton[0] == '\0';
	q->refused = is_refused(q, d);
	if (q->refused)
		trace_say(&q->fleet->trace, "%s: it refuses BLPOP; waiting without a place in the queue",
		    node_name(q->fleet->node[node]));
	return true;
}

static void
await_answer(const struct queue *q, int64_t until_us, fleet_deliver *deliver, void *context)
{
	while (q->asked != 0 && clock_now_us() < until_us)
		(void)fleet_turn(q->fleet, until_us, -1, deliver, context);
}

bool
queue_glance(struct queue *q, int node, int64_t until_us, fleet_deliver *deliver, void *context)
{
	struct request request;

	request_begin(&request, "LPOP");
	request_add(&request, q->names->wake);
	request.once = true;
	q->asked = fleet_new_tag(q->fleet);
	fleet_send(q->fleet, node, q->asked, &request);
	await_answer(q, until_us, deliver, context);
	return q->baton[0] != '\0';
}

static void
send_leave(struct queue *q, int node, unsigned int tag, bool blocked)
{
	struct request request;

	request_eval(&request, SCRIPT_LEAVE, q->names);
	request_add(&request, q->leave);
	request_add(&request, q->waiter);
	request_add(&request, blocked ? "1" : "0");
	fleet_send(q->fleet, node, tag, &request);
}

void
queue_withdraw(struct queue *q)
{
	int i;

	for (i = 0; i < q->fleet->nodes; i++)
		send_leave(q, i, fleet_new_tag(q->fleet), false);
}

/*
 * Closing the connection would not do: a baton that is on its way to it would be lost, and all others sleep on.  A node
 * that doesn't answer has none for us.
 */
void
queue_leave(struct queue *q, const bool noted[NODES_MAX], int64_t until_us, fleet_deliver *deliver, void *context)
{
	const bool blocked = q->tag != 0;
	int i;

	for (i = 0; i < q->fleet->nodes; i++) {
		if (noted[i] && (!blocked || i != q->node))
			send_leave(q, i, fleet_new_tag(q->fleet), false);
	}
	if (blocked) {
		q->asked = fleet_new_tag(q->fleet);
		send_leave(q, q->node, q->asked, true);
		if (q->fleet->suspect[q->node])
			until_us = 0;
		await_answer(q, until_us, deliver, context);
	}
	while (q->tag != 0 && q->asked == 0 && clock_now_us() < until_us)
		(void)fleet_turn(q->fleet, until_us, -1, deliver, context);
	q->tag = q->asked = 0;
	fleet_close_second(q->fleet);
}

void
queue_pass_on(struct queue *q, int64_t until_us, fleet_deliver *deliver, void *context)
{
	struct request request;
	char baton[TOKEN_SIZE];

	if (q->baton[0] == '\0')
		return;
	memcpy(baton, q->baton, sizeof(baton));
	request_eval(&request, SCRIPT_PASS, q->names);
	request_add(&request, baton);
	q->asked = fleet_new_tag(q->fleet);
	fleet_send(q->fleet, q->from, q->asked, &request);
	await_answer(q, until_us, deliver, context);
	q->asked = 0;
	q->baton[0] = '\0';
}
