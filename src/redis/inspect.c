/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lock/census.h"

#define GRACE_US 50000

struct look {
	struct redis_service *service;
	unsigned int tag;
	bool heard[NODES_MAX];
	enum vote vote[NODES_MAX];
	struct fault fault[NODES_MAX];
	struct holder holder[NODES_MAX];
	char run_id[NODES_MAX][RUN_ID_SIZE];
	struct lock_view *view;
};

static void
deliver(void *context, int node, const struct delivery *d)
{
	struct look *l = context;
	bool held = false;

	if (d->tag != l->tag)
		return;
	l->heard[node] = true;
	l->view->answered += d->reply != NULL;
	if (answer_inspect(d, &held, &l->holder[node], &l->fault[node])) {
		l->vote[node] = VOTE_YES;
		(void)snprintf(l->run_id[node], RUN_ID_SIZE, "%s", answer_run_id(d));
		l->view->node[node].state = census_state(held, &l->holder[node]);
		l->view->node[node].left_ms = held ? l->holder[node].left_ms : 0;
	}
}

static bool
all_heard(const struct look *l)
{
	int i;

	for (i = 0; i < l->service->fleet.nodes; i++) {
		if (!l->heard[i])
			return false;
	}
	return true;
}

static int
count_told(const struct look *l)
{
	int i, told = 0;

	for (i = 0; i < l->service->fleet.nodes; i++)
		told += l->vote[i] == VOTE_YES;
	return told;
}

/* Wait for all, but not for long once a majority has told: one of the others may be hung. */
static void
listen(struct look *l, int64_t began_us)
{
	struct fleet *f = &l->service->fleet;
	const int64_t until = clock_add(began_us, f->round_us);
	int64_t grace = until, now;

	while (!all_heard(l)) {
		if (fleet_turn(f, grace, -1, deliver, l) == FLEET_TIME)
			break;
		now = clock_now_us();
		if (grace == until && count_told(l) >= quorum_majority(f->nodes))
			grace = clock_add(now, GRACE_US + 8 * (now - began_us));
		if (grace > until)
			grace = until;
	}
}

static void
start_view(struct look *l)
{
	struct lock_view *v = l->view;
	int i;

	memset(v, 0, sizeof(*v));
	v->nodes = l->service->fleet.nodes;
	for (i = 0; i < v->nodes; i++) {
		v->node[i].name = node_name(l->service->fleet.node[i]);
		v->node[i].state = LOCK_UNKNOWN;
	}
}

static void
explain_unknown(struct look *l)
{
	int i;

	for (i = 0; i < l->view->nodes; i++) {
		if (l->view->node[i].state != LOCK_UNKNOWN)
			continue;
		if (l->fault[i].is)
			l->view->node[i].err = l->fault[i].err;
		else
			(void)err_set(&l->view->node[i].err, ST_NO_QUORUM, "%s",
			    node_silence(l->service->fleet.node[i]));
	}
}

enum status
redis_inspect(struct service *service, const char *key, struct lock_view *view, struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	const int64_t began = clock_now_us();
	struct look look = { .service = s, .view = view };
	struct request request;
	struct names names;

	start_view(&look);
	names_of(key, &names);
	request_eval(&request, SCRIPT_INSPECT, &names);
	request_add(&request, s->fleet.nodes > 1 ? "1" : "0");
	look.tag = fleet_new_tag(&s->fleet);
	fleet_send_all(&s->fleet, look.tag, &request);
	listen(&look, began);
	explain_unknown(&look);
	if (fleet_has_twins(&s->fleet, look.run_id, err))
		return ST_USAGE;
	if (census_take(view, look.holder))
		return ST_OK;
	return answer_no_quorum(&s->fleet, look.vote, look.fault, true, err);
}
