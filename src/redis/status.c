/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lock/census.h"

#define GRACE_US 50000
#define SHORT_US 2000 /* for those that were silent the time before */

struct looks;

/* One lock that is looked at. */
struct look {
	struct looks *all;
	const char *key;
	bool heard[NODES_MAX];
	enum vote vote[NODES_MAX];
	struct node_error error[NODES_MAX];
	struct holder holder[NODES_MAX];
	char mark[NODES_MAX][MARK_SIZE];
	struct lock_view view;
};

/* Some locks that are looked at in the same time. */
struct looks {
	struct redis_service *service;
	struct look *look;
	int count;
	int told;   /* locks that a majority has told about */
	int silent; /* answers that are still to come */
	struct node_error mark_error[NODES_MAX];
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
inspect_replied(void *context, int node, const struct result *d)
{
	struct look *const l = context;
	struct looks *const ls = l->all;
	bool held = false;

	l->heard[node] = true;
	ls->silent--;
	l->view.answered += d->reply != NULL;
	if (!answer_inspect(d, &held, &l->holder[node], &l->error[node]))
		return;
	l->vote[node] = VOTE_YES;
	ls->told += count_told(l) == quorum_majority(l->view.nodes);
	l->view.node[node].state = census_state(held, &l->holder[node]);
	l->view.node[node].left_ms = held ? l->holder[node].left_ms : 0;
}

static void
mark_replied(void *context, int node, const struct result *d)
{
	struct looks *const ls = context;

	if (answer_is_reply(d, &ls->mark_error[node]))
		(void)snprintf(ls->look[0].mark[node], MARK_SIZE, "%s", reply_text(d->reply));
}

static void
start_look(struct looks *all, struct look *l, const char *key)
{
	const struct nodes *const f = &all->service->nodes;
	int i;

	memset(l, 0, sizeof(*l));
	l->all = all;
	l->key = key;
	l->view.nodes = f->count;
	for (i = 0; i < f->count; i++) {
		l->view.node[i].name = node_name(f->node[i]);
		l->view.node[i].state = LOCK_UNKNOWN;
	}
}

static void
ask(struct looks *ls, const char *const *keys)
{
	struct nodes *f = &ls->service->nodes;
	struct command request;
	struct keys names;
	int i;

	for (i = 0; i < ls->count; i++) {
		start_look(ls, &ls->look[i], keys[i]);
		keys_of(keys[i], &names);
		command_eval(&request, SCRIPT_INSPECT, &names);
		nodes_send_all(f, &request, inspect_replied, &ls->look[i]);
	}
	ls->silent = ls->count * f->count;
}

/* Have all told everything that were not silent the time before? */
static bool
only_unresponsive_are_silent(const struct looks *ls)
{
	const struct nodes *f = &ls->service->nodes;
	int i, k;

	for (k = 0; k < ls->count; k++) {
		for (i = 0; i < f->count; i++) {
			if (!ls->look[k].heard[i] && !f->unresponsive[i])
				return false;
		}
	}
	return true;
}

/* Wait for all, but not for long once a majority has told everything: one of the others may be hung. */
static enum status
listen(struct looks *ls, int64_t began_us, int interrupt_fd)
{
	struct nodes *f = &ls->service->nodes;
	const int64_t until = clock_add(began_us, f->node_timeout_us);
	enum loop_event event = LOOP_ACTIVE;
	int64_t grace = until, now;

	while (ls->silent > 0 && event == LOOP_ACTIVE) {
		event = nodes_turn(f, grace, interrupt_fd);
		now = clock_now_us();
		if (grace == until && ls->told == ls->count)
			grace = clock_add(now, GRACE_US + 8 * (now - began_us));
		if (ls->told == ls->count && only_unresponsive_are_silent(ls) &&
		    grace > began_us + SHORT_US + 3 * (now - began_us))
			grace = began_us + SHORT_US + 3 * (now - began_us);
		if (grace > until)
			grace = until;
	}
	return event == LOOP_INTERRUPTED ? ST_INTERRUPTED : ST_OK;
}

static void
note_unresponsive(const struct looks *ls)
{
	struct nodes *f = &ls->service->nodes;
	int i, k;

	for (k = 0; k < ls->count; k++) {
		for (i = 0; i < f->count; i++)
			f->unresponsive[i] = f->unresponsive[i] || !ls->look[k].heard[i];
	}
}

/* What is still said doesn't matter any more. */
static void
forget(struct looks *ls)
{
	int k;

	nodes_cancel(&ls->service->nodes, ls);
	for (k = 0; k < ls->count; k++)
		nodes_cancel(&ls->service->nodes, &ls->look[k]);
	free(ls->look);
}

static void
explain_unknown(struct look *l, const struct nodes *f)
{
	int i;

	for (i = 0; i < l->view.nodes; i++) {
		if (l->view.node[i].state != LOCK_UNKNOWN)
			continue;
		if (l->error[i].is)
			l->view.node[i].reason = l->error[i].reason;
		else
			reason_set(&l->view.node[i].reason, "%s", node_waits_for(f->node[i]));
	}
}

static enum status
conclude(struct look *l, const struct nodes *f, struct err *err)
{
	explain_unknown(l, f);
	if (census_take(&l->view, l->holder))
		return ST_OK;
	return error_no_quorum(f, l->vote, l->error, true, err);
}

enum status
redis_survey(struct service *service, const struct survey *survey, struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	struct looks ls = { .service = s, .count = survey->count };
	const int64_t began = clock_now_us();
	struct err own;
	enum status status, outcome;
	int i;

	ls.look = malloc((size_t)ls.count * sizeof(*ls.look));
	if (ls.look == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	nodes_begin_round(&s->nodes);
	ask(&ls, survey->keys);
	status = listen(&ls, began, survey->interrupt_fd);
	note_unresponsive(&ls);
	for (i = 0; i < ls.count && status == ST_OK; i++) {
		outcome = conclude(&ls.look[i], &s->nodes, &own);
		survey->tell(survey->context, survey->keys[i], &ls.look[i].view, outcome, &own);
	}
	forget(&ls);
	return status;
}

/* -- Pinning down ----------------------------------------------------------- */

/* The marks are asked for first: should the holder change between the two answers, force() finds something else there. */
static void
ask_marks(struct looks *ls, const char *key)
{
	struct nodes *f = &ls->service->nodes;
	struct command request;
	struct keys names;

	keys_of(key, &names);
	command_eval(&request, SCRIPT_BREAK, &names);
	command_add(&request, "");
	nodes_send_all(f, &request, mark_replied, ls);
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
		if (l->view.node[i].state == LOCK_FOREIGN && l->mark[i][0] == '\0' && ls->mark_error[i].is)
			return err_set(err, ls->mark_error[i].denied ? ST_DENIED : ST_NO_QUORUM, "%s: %s",
			    l->view.node[i].name, ls->mark_error[i].reason.text);
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
	nodes_begin_round(&s->nodes);
	ask_marks(&ls, key);
	ask(&ls, &key);
	(void)listen(&ls, began, -1);
	note_unresponsive(&ls);
	status = conclude(&ls.look[0], &s->nodes, err);
	take_sides(pinned, &ls.look[0]);
	if (status == ST_OK)
		status = check_marks(&ls, err);
	forget(&ls);
	return status;
}
