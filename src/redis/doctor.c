/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/info.h"

#define LATEST_S ((int64_t)1 << 42)

enum {
	FIRST, /* TIME, including the set-up of the connection */
	TIMED, /* TIME again, TIMINGS times */
	TIMINGS = 5,
	INFO_STEP = TIMED + TIMINGS, /* INFO */
	PARAMETER		     /* CONFIG GET, for each parameter */
};

/* Every node goes through the same steps, independently of the others, with one pending request at a time. */
struct probing {
	struct redis_backend *backend;
	struct node_facts *facts;
	bool all;
	int64_t until_us; /* extended by every reply */
	struct node_steps {
		int step;
		bool done;
		int64_t sent_us, sent_wall_us;
		int64_t rtt_us[TIMINGS];
		int64_t least_us; /* the shortest of them: its clock reading is the most accurate */
	} node[NODES_MAX];
};

static void replied(void *context, int node, const struct result *);

static void
ask(struct probing *e, int node)
{
	struct node_steps *p = &e->node[node];
	struct command request;

	if (p->step < INFO_STEP)
		command_begin(&request, "TIME");
	else if (p->step == INFO_STEP)
		command_begin(&request, "INFO");
	else {
		command_begin(&request, "CONFIG");
		command_add(&request, "GET");
		command_add(&request, info_parameter((size_t)(p->step - PARAMETER)));
	}
	p->sent_us = clock_now_us();
	p->sent_wall_us = clock_wall_us();
	node_send(e->backend->nodes.node[node], &request, replied, e);
}

static int
compare(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Parse {seconds, microseconds}.  False if it is no time, or if its year has more than six digits. */
static bool
read_time(const struct reply *time, int64_t *us)
{
	const int64_t seconds = strtoll(reply_text(reply_item(time, 0)), NULL, 10);
	const int64_t rest = strtoll(reply_text(reply_item(time, 1)), NULL, 10);

	*us = seconds < 0 || seconds > LATEST_S || rest < 0 || rest >= 1000000 ? -1 : seconds * 1000000 + rest;
	return reply_items(time) == 2 && *us >= 0;
}

/* Record a round trip time, and the clock offset, which assumes that the server read its clock half way. */
static void
note_time(struct node_steps *p, struct node_facts *f, const struct reply *time, int64_t now_us)
{
	const int64_t rtt = now_us - p->sent_us;
	int64_t us;

	p->rtt_us[p->step - TIMED] = rtt;
	if (read_time(time, &us) && (!f->clock_known || rtt < p->least_us)) {
		f->clock_known = true;
		f->offset_us = us - (p->sent_wall_us + rtt / 2);
		p->least_us = rtt;
	}
	if (p->step != INFO_STEP - 1)
		return;
	qsort(p->rtt_us, TIMINGS, sizeof(p->rtt_us[0]), compare);
	f->rtt_us = p->rtt_us[TIMINGS / 2];
}

static void
note_answer(struct node_steps *p, struct node_facts *f, const struct reply *reply, int64_t now_us)
{
	if (p->step == FIRST)
		f->rtt_us = now_us - p->sent_us;
	else if (p->step < INFO_STEP)
		note_time(p, f, reply, now_us);
	else if (p->step == INFO_STEP && reply_kind(reply) == REPLY_TEXT)
		info_read(reply_text(reply), f);
	else if (p->step > INFO_STEP && reply_items(reply) == 2)
		info_set((size_t)(p->step - PARAMETER), reply_text(reply_item(reply, 1)), f);
}

/*
 * Does the node serve us?  An error for a command that an ACL or a provider forbids only means that metadata is
 * missing.
 */
static bool
serves_us(const struct node_steps *p, const struct result *d, struct node_error *error)
{
	if (answer_is_reply(d, error))
		return true;
	return d->reply != NULL && (p->step != FIRST || strstr(reply_text(d->reply), "NOPERM") != NULL);
}

static void
replied(void *context, int node, const struct result *d)
{
	struct probing *e = context;
	struct node_steps *p = &e->node[node];
	struct node_facts *f = &e->facts[node];
	struct node_error error;

	e->until_us = clock_add(clock_now_us(), e->backend->nodes.node_timeout_us);
	f->up = serves_us(p, d, &error);
	if (!f->up) {
		f->denied = error.denied;
		f->reason = error.reason;
		p->done = true;
		return;
	}
	f->local = node_local(e->backend->nodes.node[node]);
	note_answer(p, f, d->reply, clock_now_us());
	p->step++;
	p->done = !e->all || (p->step >= PARAMETER && info_parameter((size_t)(p->step - PARAMETER)) == NULL);
	if (!p->done)
		ask(e, node);
}

static bool
all_done(const struct probing *e)
{
	int i;

	for (i = 0; i < e->backend->nodes.count; i++) {
		if (!e->node[i].done)
			return false;
	}
	return true;
}

static void
explain_silence(struct probing *e, int node)
{
	struct node_facts *f = &e->facts[node];

	f->up = false;
	reason_set(&f->reason, "%s", node_waits_for(e->backend->nodes.node[node]));
}

int
redis_probe(struct backend *backend, bool all, struct node_facts *facts)
{
	struct redis_backend *s = (struct redis_backend *)backend;
	struct probing e = { .backend = s, .facts = facts, .all = all };
	struct nodes *f = &s->nodes;
	int i;

	e.until_us = clock_add(clock_now_us(), f->node_timeout_us);
	for (i = 0; i < f->count; i++) {
		info_forget(&facts[i]);
		facts[i].name = node_name(f->node[i]);
		facts[i].fails_over = node_url(f->node[i])->kind == URL_SENTINEL;
		ask(&e, i);
	}
	while (!all_done(&e) && loop_turn(&f->loop, e.until_us, -1) != LOOP_TIME)
		;
	nodes_cancel(f, &e);
	for (i = 0; i < f->count; i++) {
		if (!e.node[i].done)
			explain_silence(&e, i);
	}
	return f->count;
}
