/* SPDX-License-Identifier: MIT */
#include "redis/round.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* Append the holds that a node returned, if all of them fit. */
static void
note_holds(struct round *r, const char *holds)
{
	const size_t length = strlen(r->holds);

	if (holds[0] != '\0' && length + 1 + strlen(holds) < sizeof(r->holds))
		(void)snprintf(r->holds + length, sizeof(r->holds) - length, " %s", holds);
}

static void
replied(void *context, int node, const struct result *d)
{
	static const char *const words[] = { "it has ended", "another holds it", "done", "done, other holds keep it" };
	static const enum ownership owners[] = { OWNED_BY_NOBODY, OWNED_BY_ANOTHER, OWNED, OWNED_STILL };
	struct round *const r = context;
	struct lock_fields fields;
	int number;

	number = answer_number(d, &fields, &r->error[node]);
	r->server_ms[node] = fields.server_ms;
	r->ttl_ms[node] = fields.ttl_ms;
	r->fence[node] = fields.fence;
	note_holds(r, fields.holds);
	r->replied_us[node] = clock_now_us();
	r->connection[node] = d->reply != NULL ? d->connection : 0;
	r->ballot.vote[node] = number == -2 ? VOTE_FAULT : number > 0 ? VOTE_YES : VOTE_NO;
	r->owner[node] = number == -2	       ? OWNED_BY_NOBODY
	    : number == 0 && fields.ttl_ms > 0 ? OWNED_NO_MORE
					       : owners[number + 1];
	if (number != -2)
		log_debug(&r->nodes->log, "%s: %s", node_name(r->nodes->node[node]), words[number + 1]);
}

void
round_start(struct round *r, struct nodes *n, const struct command *command)
{
	int i;

	nodes_cancel(n, r);
	memset(r, 0, offsetof(struct round, holds));
	r->nodes = n;
	r->holds[0] = '\0';
	error_clear(r->error, n->count);
	r->ballot.nodes = n->count;
	for (i = 0; i < n->count; i++)
		r->ballot.unresponsive[i] = n->unresponsive[i];
	nodes_begin_round(n);
	nodes_send_all(n, command, replied, r);
}

bool
round_heard(const struct round *r)
{
	int i;

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_PENDING && !r->ballot.unresponsive[i])
			return false;
	}
	return true;
}

enum ownership
round_released(const struct round *r)
{
	int i, wholly = 0;

	for (i = 0; i < r->ballot.nodes; i++)
		wholly += r->ballot.vote[i] == VOTE_YES && r->owner[i] == OWNED;
	return wholly >= quorum_majority(r->ballot.nodes) ? OWNED : OWNED_STILL;
}

enum ownership
round_ownership(const struct round *r)
{
	int i, votes[OWNED_BY_ANOTHER + 1] = { 0 };

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_NO)
			votes[r->owner[i]]++;
	}
	if (votes[OWNED_BY_ANOTHER] > votes[OWNED_BY_NOBODY] + votes[OWNED_NO_MORE])
		return OWNED_BY_ANOTHER;
	return votes[OWNED_NO_MORE] > 0 ? OWNED_NO_MORE : OWNED_BY_NOBODY;
}

void
round_close(struct round *r)
{
	int i;

	r->ballot.closed = true;
	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_PENDING)
			r->nodes->unresponsive[i] = true;
	}
}

void
round_end(struct round *r)
{
	nodes_cancel(r->nodes, r);
}
