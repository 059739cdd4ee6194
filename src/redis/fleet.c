/* SPDX-License-Identifier: MIT */
#include "redis/fleet.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "lock/token.h"

unsigned int
fleet_new_tag(struct fleet *f)
{
	if (++f->tag == 0)
		f->tag = 1;
	return f->tag;
}

void
fleet_send(struct fleet *f, int node, unsigned int tag, const struct request *r)
{
	node_send(f->node[node], tag, r);
}

void
fleet_send_all(struct fleet *f, unsigned int tag, const struct request *r)
{
	int i;

	for (i = 0; i < f->nodes; i++)
		fleet_send(f, i, tag, r);
}

static void
trace_delivery(const struct fleet *f, int node, const struct delivery *d)
{
	const char *name = node_name(f->node[node]);
	char shown[300];

	if (d->reply == NULL)
		trace_say(&f->trace, "%s: %s", name, text_show(d->err.text, shown, sizeof(shown)));
	else if (reply_kind(d->reply) == REPLY_ERROR)
		trace_say(&f->trace, "%s: error: %s", name,
		    token_show_text(reply_text(d->reply), shown, sizeof(shown)));
}

static bool
drain_connection(struct fleet *f, struct node *connection, int node, fleet_deliver *deliver, void *context)
{
	struct delivery d;
	bool any = false;

	while (node_take(connection, &d)) {
		trace_delivery(f, node, &d);
		if (d.reply != NULL)
			f->suspect[node] = false;
		deliver(context, node, &d);
		reply_free(d.reply);
		any = true;
	}
	return any;
}

/* Deliver what has come.  True if there was anything. */
static bool
drain(struct fleet *f, fleet_deliver *deliver, void *context)
{
	bool any = false;
	int i;

	for (i = 0; i < f->nodes; i++)
		any = drain_connection(f, f->node[i], i, deliver, context) || any;
	if (f->second != NULL)
		any = drain_connection(f, f->second, f->second_of, deliver, context) || any;
	return any;
}

bool
fleet_open_second(struct fleet *f, int node)
{
	fleet_close_second(f);
	f->second = node_twin(f->node[node]);
	f->second_of = node;
	return f->second != NULL;
}

void
fleet_close_second(struct fleet *f)
{
	node_close(f->second);
	f->second = NULL;
}

bool
fleet_second_parted(const struct fleet *f)
{
	return f->second != NULL && node_parted(f->node[f->second_of], f->second);
}

void
fleet_send_second(struct fleet *f, unsigned int tag, const struct request *r)
{
	node_send(f->second, tag, r);
}

void
fleet_forget_unsent(struct fleet *f, bool in_time, fleet_deliver *deliver, void *context)
{
	int i;

	for (i = 0; i < f->nodes; i++)
		node_stop_dialling(f->node[i], in_time);
	(void)drain(f, deliver, context);
}

unsigned int
fleet_new_round(struct fleet *f, fleet_deliver *deliver, void *context)
{
	int i;

	for (i = 0; i < f->nodes; i++) {
		if (f->suspect[i])
			node_break(f->node[i]);
	}
	(void)drain(f, deliver, context);
	return fleet_new_tag(f);
}

/* All connections: one for each node, and the second one if there is one. */
static int
connections(const struct fleet *f, struct node *connection[NODES_MAX + 1])
{
	memcpy(connection, f->node, sizeof(f->node));
	connection[f->nodes] = f->second;
	return f->nodes + (f->second != NULL);
}

/* Fill in what to poll for, the interrupt last; returns the instant at which the poll must end. */
static int64_t
prepare(struct node *const *connection, int count, int64_t until_us, int interrupt_fd, struct pollfd *fds)
{
	int i;

	for (i = 0; i < count; i++) {
		fds[i].fd = node_fd(connection[i]);
		fds[i].events = node_events(connection[i]);
		fds[i].revents = 0;
		if (node_wake_us(connection[i]) < until_us)
			until_us = node_wake_us(connection[i]);
	}
	fds[count].fd = interrupt_fd;
	fds[count].events = POLLIN;
	fds[count].revents = 0;
	return until_us;
}

enum fleet_event
fleet_turn(struct fleet *f, int64_t until_us, int interrupt_fd, fleet_deliver *deliver, void *context)
{
	struct node *connection[NODES_MAX + 1];
	struct pollfd fds[NODES_MAX + 2];
	struct timespec timeout;
	int64_t now, wake;
	int i, count, ready;

	if (drain(f, deliver, context))
		return FLEET_ANSWERED;
	count = connections(f, connection);
	wake = prepare(connection, count, until_us, interrupt_fd, fds);
	ready = ppoll(fds, (nfds_t)count + 1, clock_until(clock_now_us(), wake, &timeout), NULL);
	now = clock_now_us();
	for (i = 0; i < count; i++) {
		if ((ready > 0 && fds[i].revents != 0) || node_wake_us(connection[i]) <= now)
			node_handle(connection[i], now);
	}
	(void)drain(f, deliver, context);
	if (ready > 0 && fds[count].revents != 0)
		return FLEET_INTERRUPTED;
	return now >= until_us ? FLEET_TIME : FLEET_ANSWERED;
}

void
fleet_close(struct fleet *f)
{
	int i;

	fleet_close_second(f);
	for (i = 0; i < f->nodes; i++)
		node_close(f->node[i]);
	f->nodes = 0;
}
