/* SPDX-License-Identifier: MIT */
#include "redis/nodes.h"

#include <stddef.h>

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
nodes_send(struct nodes *n, int node, const struct command *command, node_completion *completion, void *context)
{
	node_send(n->node[node], command, completion, context);
}

void
nodes_send_all(struct nodes *n, const struct command *command, node_completion *completion, void *context)
{
	int i;

	for (i = 0; i < n->count; i++)
		nodes_send(n, i, command, completion, context);
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
nodes_stop_connecting(struct nodes *n, bool in_time)
{
	int i;

	for (i = 0; i < n->count; i++)
		node_stop_connecting(n->node[i], in_time);
	(void)loop_run_tasks(&n->loop);
}

/* -- The second connection -------------------------------------------------- */

bool
nodes_open_second(struct nodes *n, int node)
{
	nodes_close_second(n);
	n->second = node_open_second(n->node[node]);
	n->second_of = node;
	return n->second != NULL;
}

void
nodes_close_second(struct nodes *n)
{
	node_close(n->second);
	n->second = NULL;
}

bool
nodes_second_differs(const struct nodes *n)
{
	return n->second != NULL && node_differs(n->node[n->second_of], n->second);
}

void
nodes_send_second(struct nodes *n, const struct command *command, node_completion *completion, void *context)
{
	node_send(n->second, command, completion, context);
}

/* -- The loop --------------------------------------------------------------- */

enum loop_event
nodes_turn(struct nodes *n, int64_t until_us, int interrupt_fd)
{
	return loop_turn(&n->loop, until_us, interrupt_fd);
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
