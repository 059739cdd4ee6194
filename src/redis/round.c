/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* What a node tells of the holds, behind what others told; it counts as a whole. */
static void
note_holds(struct round *r, const char *holds)
{
	const size_t length = strlen(r->holds);

	if (holds[0] != '\0' && length + 1 + strlen(holds) < sizeof(r->holds))
		(void)snprintf(r->holds + length, sizeof(r->holds) - length, " %s", holds);
}

bool
round_deliver(struct round *r, struct redis_service *s, int node, const struct delivery *d)
{
	static const char *const words[] = { "it has ended", "another holds it", "done", "done, other holds keep it" };
	static const enum ownership owners[] = { OWNED_BY_NOBODY, OWNED_BY_ANOTHER, OWNED, OWNED_STILL };
	struct told told;
	int number;

	if (debts_delivered(&s->debts, node, d) || d->tag != r->tag)
		return false;
	if (d->reply == NULL && (d->broken || d->local) && !d->denied && !r->resent[node]) {
		r->resent[node] = true;
		fleet_send(&s->fleet, node, r->tag, r->again != NULL ? r->again : r->request);
		return true;
	}
	number = answer_number(d, &told, &r->fault[node]);
	r->server_ms[node] = told.server_ms;
	r->ttl_ms[node] = told.ttl_ms;
	r->fence[node] = told.fence;
	note_holds(r, told.holds);
	r->heard_us[node] = clock_now_us();
	r->ballot.vote[node] = number == -2 ? VOTE_FAULT : number > 0 ? VOTE_YES : VOTE_NO;
	r->owner[node] = number == -2 ? OWNED_BY_NOBODY : owners[number + 1];
	if (number != -2)
		trace_say(&s->fleet.trace, "%s: %s", node_name(s->fleet.node[node]), words[number + 1]);
	return true;
}

struct turning {
	struct round *round;
	struct redis_service *service;
};

static void
deliver(void *context, int node, const struct delivery *d)
{
	struct turning *t = context;

	(void)round_deliver(t->round, t->service, node, d);
}

void
round_start(struct round *r, struct redis_service *s, const struct request *request)
{
	struct turning t = { r, s };
	int i;

	memset(r, 0, offsetof(struct round, holds));
	r->holds[0] = '\0';
	fault_clear(r->fault, s->fleet.nodes);
	r->request = request;
	r->ballot.nodes = s->fleet.nodes;
	for (i = 0; i < s->fleet.nodes; i++)
		r->ballot.suspect[i] = s->fleet.suspect[i];
	r->tag = fleet_new_round(&s->fleet, deliver, &t);
	fleet_send_all(&s->fleet, r->tag, request);
}

enum fleet_event
round_turn(struct round *r, struct redis_service *s, int64_t until_us, int interrupt_fd)
{
	struct turning t = { r, s };

	return fleet_turn(&s->fleet, until_us, interrupt_fd, deliver, &t);
}

bool
round_heard(const struct round *r)
{
	int i;

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_PENDING && !r->ballot.suspect[i])
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
	int i, another = 0, nobody = 0;

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_NO && r->owner[i] == OWNED_BY_ANOTHER)
			another++;
		else if (r->ballot.vote[i] == VOTE_NO)
			nobody++;
	}
	return another > nobody ? OWNED_BY_ANOTHER : OWNED_BY_NOBODY;
}

void
round_close(struct round *r, struct redis_service *s)
{
	int i;

	r->ballot.closed = true;
	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_PENDING)
			s->fleet.suspect[i] = true;
	}
}
