/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <string.h>

static void
deliver(void *context, int node, const struct delivery *d)
{
	struct round *r = context;
	int number;

	if (debts_delivered(&r->service->debts, node, d) || d->tag != r->tag)
		return;
	if (d->reply == NULL && d->broken && !r->resent[node]) {
		r->resent[node] = true;
		fleet_send(&r->service->fleet, node, r->tag, r->request);
		return;
	}
	number = answer_number(d, &r->fault[node]);
	r->ballot.vote[node] = number == -2 ? VOTE_FAULT : number == 1 ? VOTE_YES : VOTE_NO;
	r->owner[node] = number == 1 ? OWNED : number == 0 ? OWNED_BY_ANOTHER : OWNED_BY_NOBODY;
	r->service->fleet.suspect[node] = false;
}

void
round_start(struct round *r, struct redis_service *s, const struct request *request)
{
	int i;

	memset(r, 0, sizeof(*r));
	r->service = s;
	r->request = request;
	r->ballot.nodes = s->fleet.nodes;
	for (i = 0; i < s->fleet.nodes; i++)
		r->ballot.suspect[i] = s->fleet.suspect[i];
	r->tag = fleet_new_tag(&s->fleet);
	fleet_send_all(&s->fleet, r->tag, request);
}

enum fleet_event
round_turn(struct round *r, int64_t until_us, int interrupt_fd)
{
	return fleet_turn(&r->service->fleet, until_us, interrupt_fd, deliver, r);
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
round_close(struct round *r)
{
	int i;

	r->ballot.closed = true;
	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_PENDING)
			r->service->fleet.suspect[i] = true;
	}
}
