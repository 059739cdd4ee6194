/* SPDX-License-Identifier: MIT */
#include "redis/waitqueue.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

bool
waitqueue_start(struct waitqueue *q, struct nodes *nodes, const struct keys *names)
{
	memset(q, 0, sizeof(*q));
	q->nodes = nodes;
	q->names = names;
	if (!token_new(q->waiter))
		return false;
	(void)snprintf(q->leave, sizeof(q->leave), "%s:leave:%s", names->facts, q->waiter);
	return true;
}

bool
waitqueue_is_at(const struct waitqueue *q, int node)
{
	return q->blocked && q->node == node && !node_differs(q->nodes->node[node], q->nodes->second);
}

static void
take_handoff(struct waitqueue *q, int node, const char *handoff)
{
	if (!token_valid(handoff))
		return;
	memcpy(q->handoff, handoff, TOKEN_SIZE);
	q->from = node;
}

/* Is this a temporary error, such as that of a server that becomes a replica and disconnects its waiters? */
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
 * Is no queue available here?  An error says so.  Some proxies only close the connection.  So does a server that
 * restarts, but not twice in a row.
 */
static bool
is_refused(struct waitqueue *q, const struct result *d)
{
	const bool was_cut = q->cut;

	q->cut = d->reply == NULL && clock_now_us() - q->joined_us < q->nodes->node_timeout_us;
	if (reply_kind(d->reply) == REPLY_ERROR)
		return !is_passing(reply_text(d->reply));
	return q->cut && was_cut;
}

/* BLPOP has ended. */
static void
unblocked(void *context, int node, const struct result *d)
{
	struct waitqueue *const q = context;

	q->blocked = false;
	if (reply_items(d->reply) == 2 && strcmp(reply_text(reply_item(d->reply, 0)), q->names->wake) == 0)
		take_handoff(q, node, reply_text(reply_item(d->reply, 1)));
	q->broken = q->handoff[0] == '\0';
	q->refused = is_refused(q, d);
	if (q->refused)
		log_debug(&q->nodes->log, "%s: it refuses BLPOP; waiting without a place in the queue",
		    node_name(q->nodes->node[node]));
}

void
waitqueue_join(struct waitqueue *q, int node)
{
	struct command request;

	if (q->refused || waitqueue_is_at(q, node))
		return;
	q->broken = !nodes_open_second(q->nodes, node);
	q->blocked = false;
	if (q->broken)
		return;
	command_begin(&request, "BLPOP");
	command_add(&request, q->names->wake);
	command_add(&request, q->leave);
	command_add(&request, "0");
	request.once = true; /* a handoff token may have been lost with the connection: the waiter has to check */
	q->node = node;
	q->joined_us = clock_now_us();
	q->blocked = true;
	node_send(q->nodes->second, &request, unblocked, q);
}

/* A short request has a reply: a handoff token, if the request pops one from the list. */
static void
replied(void *context, int node, const struct result *d)
{
	struct waitqueue *const q = context;

	q->asked = false;
	take_handoff(q, node, reply_text(d->reply));
}

static void
await_reply(const struct waitqueue *q, int64_t until_us)
{
	while (q->asked && clock_now_us() < until_us)
		(void)loop_turn(&q->nodes->loop, until_us, -1);
}

bool
waitqueue_glance(struct waitqueue *q, int node, int64_t until_us)
{
	struct command request;

	command_begin(&request, "LPOP");
	command_add(&request, q->names->wake);
	request.once = true;
	q->asked = true;
	node_send(q->nodes->node[node], &request, replied, q);
	await_reply(q, until_us);
	return q->handoff[0] != '\0';
}

void
waitqueue_cancel(struct waitqueue *q)
{
	nodes_cancel(q->nodes, q);
	q->blocked = q->asked = false;
}

static void
send_leave(struct waitqueue *q, int node, bool blocked)
{
	struct command request;

	command_eval(&request, SCRIPT_LEAVE, q->names);
	command_add(&request, q->leave);
	command_add(&request, q->waiter);
	command_add(&request, blocked ? "1" : "0");
	node_send(q->nodes->node[node], &request, blocked ? replied : NULL, q);
}

void
waitqueue_withdraw(struct waitqueue *q)
{
	int i;

	for (i = 0; i < q->nodes->count; i++)
		send_leave(q, i, false);
}

/*
 * Closing the connection instead could lose a handoff token that is on its way to it, and no other waiter would be
 * woken.  A node that does not reply has no handoff token for us.
 */
void
waitqueue_leave(struct waitqueue *q, const bool noted[NODES_MAX], int64_t until_us)
{
	const bool blocked = q->blocked;
	int i;

	for (i = 0; i < q->nodes->count; i++) {
		if (noted[i] && (!blocked || i != q->node))
			send_leave(q, i, false);
	}
	if (blocked) {
		q->asked = true;
		send_leave(q, q->node, true);
		if (q->nodes->unresponsive[q->node])
			until_us = 0;
		await_reply(q, until_us);
	}
	while (q->blocked && !q->asked && clock_now_us() < until_us)
		(void)loop_turn(&q->nodes->loop, until_us, -1);
	waitqueue_cancel(q);
	nodes_close_second(q->nodes);
}

void
waitqueue_pass_on(struct waitqueue *q, int64_t until_us)
{
	struct command request;
	char handoff[TOKEN_SIZE];

	if (q->handoff[0] == '\0')
		return;
	memcpy(handoff, q->handoff, sizeof(handoff));
	command_eval(&request, SCRIPT_PASS, q->names);
	command_add(&request, handoff);
	q->asked = true;
	node_send(q->nodes->node[q->from], &request, replied, q);
	await_reply(q, until_us);
	waitqueue_cancel(q);
	q->handoff[0] = '\0';
}
