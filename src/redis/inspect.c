/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lock/census.h"

#define GRACE_US 50000
#define SHORT_US 2000 /* for those that were silent the time before */

/* One lock that is looked at. */
struct look {
	const char *key;
	bool heard[NODES_MAX];
	enum vote vote[NODES_MAX];
	struct fault fault[NODES_MAX];
	struct holder holder[NODES_MAX];
	char mark[NODES_MAX][MARK_SIZE];
	struct lock_view view;
};

/* Some locks that are looked at in the same time.  The tags of their requests follow one another. */
struct looks {
	struct redis_service *service;
	struct look *look;
	int count;
	int told;   /* locks that a majority has told about */
	int silent; /* answers that are still to come */
	unsigned int first_tag;
	unsigned int mark_tag; /* of the request for the marks; 0: none */
	struct fault mark_fault[NODES_MAX];
};

static int
count_told(const struct look *l)
{
	int i, told = 0;

	for (i = 0; i < l->view.nodes; i++)
		told += l->vote[i] == VOTE_YES;
	return told;
}

static void
note_answer(struct looks *ls, struct look *l, int node, const struct delivery *d)
{
	bool held = false;

	l->heard[node] = true;
	ls->silent--;
	l->view.answered += d->reply != NULL;
	if (!answer_inspect(d, &held, &l->holder[node], &l->fault[node]))
		return;
	l->vote[node] = VOTE_YES;
	ls->told += count_told(l) == quorum_majority(l->view.nodes);
	l->view.node[node].state = census_state(held, &l->holder[node]);
	l->view.node[node].left_ms = held ? l->holder[node].left_ms : 0;
}

static void
deliver(void *context, int node, const struct delivery *d)
{
	struct looks *ls = context;
	const unsigned int index = d->tag - ls->first_tag;

	if (ls->mark_tag != 0 && d->tag == ls->mark_tag) {
		if (answer_is_reply(d, &ls->mark_fault[node]))
			(void)snprintf(ls->look[0].mark[node], MARK_SIZE, "%s", reply_text(d->reply));
	} else if (ls->first_tag != 0 && index < (unsigned int)ls->count)
		note_answer(ls, &ls->look[index], node, d);
}

static void
start_look(struct look *l, const struct fleet *f, const char *key)
{
	int i;

	memset(l, 0, sizeof(*l));
	l->key = key;
	l->view.nodes = f->nodes;
	for (i = 0; i < f->nodes; i++) {
		l->view.node[i].name = node_name(f->node[i]);
		l->view.node[i].state = LOCK_UNKNOWN;
	}
}

static void
ask(struct looks *ls, const char *const *keys)
{
	struct fleet *f = &ls->service->fleet;
	struct request request;
	struct names names;
	unsigned int tag;
	int i;

	if (f->tag > UINT_MAX - 2 * INSPECT_MAX) /* these tags must not wrap around */
		f->tag = 0;
	for (i = 0; i < ls->count; i++) {
		start_look(&ls->look[i], f, keys[i]);
		names_of(keys[i], &names);
		request_eval(&request, SCRIPT_INSPECT, &names);
		tag = i == 0 && ls->mark_tag == 0 ? fleet_new_round(f, deliver, ls) : fleet_new_tag(f);
		if (i == 0)
			ls->first_tag = tag;
		fleet_send_all(f, tag, &request);
	}
	ls->silent = ls->count * f->nodes;
}

/* Have all told everything that were not silent the time before? */
static bool
only_suspects_are_silent(const struct looks *ls)
{
	const struct fleet *f = &ls->service->fleet;
	int i, k;

	for (k = 0; k < ls->count; k++) {
		for (i = 0; i < f->nodes; i++) {
			if (!ls->look[k].heard[i] && !f->suspect[i])
				return false;
		}
	}
	return true;
}

/* Wait for all, but not for long once a majority has told everything: one of the others may be hung. */
static enum status
listen(struct looks *ls, int64_t began_us, int interrupt_fd)
{
	struct fleet *f = &ls->service->fleet;
	const int64_t until = clock_add(began_us, f->round_us);
	enum fleet_event event = FLEET_ANSWERED;
	int64_t grace = until, now;

	while (ls->silent > 0 && event == FLEET_ANSWERED) {
		event = fleet_turn(f, grace, interrupt_fd, deliver, ls);
		now = clock_now_us();
		if (grace == until && ls->told == ls->count)
			grace = clock_add(now, GRACE_US + 8 * (now - began_us));
		if (ls->told == ls->count && only_suspects_are_silent(ls) &&
		    grace > began_us + SHORT_US + 3 * (now - began_us))
			grace = began_us + SHORT_US + 3 * (now - began_us);
		if (grace > until)
			grace = until;
	}
	return event == FLEET_INTERRUPTED ? ST_INTERRUPTED : ST_OK;
}

static void
suspect_the_silent(const struct looks *ls)
{
	struct fleet *f = &ls->service->fleet;
	int i, k;

	for (k = 0; k < ls->count; k++) {
		for (i = 0; i < f->nodes; i++)
			f->suspect[i] = f->suspect[i] || !ls->look[k].heard[i];
	}
}

static void
explain_unknown(struct look *l, const struct fleet *f)
{
	int i;

	for (i = 0; i < l->view.nodes; i++) {
		if (l->view.node[i].state != LOCK_UNKNOWN)
			continue;
		if (l->fault[i].is)
			l->view.node[i].err = l->fault[i].err;
		else
			(void)err_set(&l->view.node[i].err, ST_NO_QUORUM, "%s", node_silence(f->node[i]));
	}
}

static enum status
conclude(struct look *l, const struct fleet *f, struct err *err)
{
	explain_unknown(l, f);
	if (census_take(&l->view, l->holder))
		return ST_OK;
	return fault_no_quorum(f, l->vote, l->fault, true, err);
}

enum status
redis_survey(struct service *service, const char *const *keys, int count, int interrupt_fd, survey_tell *tell,
    void *context, struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	struct looks ls = { .service = s, .count = count };
	const int64_t began = clock_now_us();
	struct err own;
	enum status status;
	int i;

	ls.look = malloc((size_t)count * sizeof(*ls.look));
	if (ls.look == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	ask(&ls, keys);
	status = listen(&ls, began, interrupt_fd);
	suspect_the_silent(&ls);
	for (i = 0; i < count && status == ST_OK; i++) {
		const enum status outcome = conclude(&ls.look[i], &s->fleet, &own);

		tell(context, keys[i], &ls.look[i].view, outcome, &own);
	}
	free(ls.look);
	return status;
}

/* -- Pinning down ----------------------------------------------------------- */

/* The marks are asked for first: should the holder change between the two answers, force() finds something else there. */
static void
ask_marks(struct looks *ls, const char *key)
{
	struct fleet *f = &ls->service->fleet;
	struct request request;
	struct names names;

	names_of(key, &names);
	request_eval(&request, SCRIPT_BREAK, &names);
	request_add(&request, "");
	ls->mark_tag = fleet_new_round(f, deliver, ls);
	fleet_send_all(f, ls->mark_tag, &request);
}

/* Our own tokens tell enough by themselves. */
static bool
is_on(const struct pinned_side *side, const struct holder *holder, const char *mark)
{
	return strcmp(side->holder.token, holder->token) == 0 && side->holder.foreign == holder->foreign &&
	    (!holder->foreign || strcmp(side->mark, mark) == 0);
}

static void
count_side(struct pinned *p, const struct holder *holder, const char *mark)
{
	struct pinned_side *side = p->side;

	while (side < p->side + p->sides && !is_on(side, holder, mark))
		side++;
	if (side == p->side + p->sides) {
		side->holder = *holder;
		memcpy(side->mark, mark, MARK_SIZE);
		side->nodes = 0;
		p->sides++;
	}
	side->nodes++;
}

/* The side that has a majority, else all. */
static void
take_sides(struct pinned *p, const struct look *l)
{
	int i;

	p->view = l->view;
	p->sides = 0;
	for (i = 0; i < l->view.nodes; i++) {
		if (l->view.node[i].state != LOCK_UNKNOWN && l->view.node[i].state != LOCK_FREE)
			count_side(p, &l->holder[i], l->mark[i]);
	}
	for (i = 0; i < p->sides; i++) {
		if (p->side[i].nodes < quorum_majority(l->view.nodes))
			continue;
		p->side[0] = p->side[i];
		p->side[0].holder.left_ms = l->view.holder.left_ms;
		p->sides = 1;
	}
}

/* A foreign client's lock can't be broken without its mark. */
static enum status
check_marks(const struct looks *ls, struct err *err)
{
	const struct look *l = &ls->look[0];
	int i;

	for (i = 0; i < l->view.nodes; i++) {
		if (l->view.node[i].state == LOCK_FOREIGN && l->mark[i][0] == '\0' && ls->mark_fault[i].is)
			return err_set(err, ls->mark_fault[i].denied ? ST_DENIED : ST_NO_QUORUM, "%s: %s",
			    l->view.node[i].name, ls->mark_fault[i].err.text);
	}
	return ST_OK;
}

enum status
redis_pin(struct service *service, const char *key, struct pinned *pinned, struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	struct looks ls = { .service = s, .count = 1 };
	const int64_t began = clock_now_us();
	enum status status;

	ls.look = calloc(1, sizeof(*ls.look));
	if (ls.look == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	ask_marks(&ls, key);
	ask(&ls, &key);
	(void)listen(&ls, began, -1);
	suspect_the_silent(&ls);
	status = conclude(&ls.look[0], &s->fleet, err);
	take_sides(pinned, &ls.look[0]);
	if (status == ST_OK)
		status = check_marks(&ls, err);
	free(ls.look);
	return status;
}
