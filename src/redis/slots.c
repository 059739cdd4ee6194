/* SPDX-License-Identifier: MIT */
#include "redis/slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "lock/lease.h"

enum status
slots_prepare(struct slots *s, const struct acquire_args *args, struct err *err)
{
	int i;

	*s = (struct slots){ .count = args->slots };
	s->slot = calloc((size_t)s->count, sizeof(*s->slot));
	s->names = calloc((size_t)s->count, sizeof(*s->names));
	if (s->slot == NULL || s->names == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	for (i = 0; i < s->count; i++) {
		if (keys_of_slot(args->key, args->prefix_length, i + 1, s->slot[i].key, err) != ST_OK)
			return ST_USAGE;
		keys_of(s->slot[i].key, &s->names[i]);
	}
	return ST_OK;
}

void
slots_enter(struct acquire *t)
{
	struct slots *const s = t->slots;

	if (t->queue.handoff[0] != '\0')
		s->chosen = t->queue.list;
	else if (t->names.key == NULL)
		s->chosen = (int)(random_u32() % (uint32_t)s->count);
	t->names = s->names[s->chosen];
}

void
slots_free(struct slots *s)
{
	free(s->slot);
	free(s->names);
}

/* -- Decisions -------------------------------------------------------------- */

/* Does a majority name a holder of this slot? */
static bool
is_held(const struct slot *slot)
{
	return record_holder(&slot->record)->state != LOCK_FREE;
}

/* Choose one of the slots that no majority names a holder of, at random.  False: all slots are held. */
static bool
choose(struct slots *s, uint32_t random)
{
	int i, candidates = 0;

	for (i = 0; i < s->count; i++)
		candidates += !is_held(&s->slot[i]);
	if (candidates == 0)
		return false;
	candidates = (int)(random % (uint32_t)candidates);
	for (i = 0; is_held(&s->slot[i]) || candidates-- > 0; i++)
		;
	s->chosen = i;
	return true;
}

/* Is the holder that a majority names for each slot the holder on this node? */
static bool
agrees(const struct slots *s, int node)
{
	const struct slot *slot;

	for (slot = s->slot; slot < s->slot + s->count; slot++) {
		if (!is_held(slot) || slot->record.node[node].state == LOCK_UNKNOWN ||
		    slot->record.node[node].state == LOCK_FREE ||
		    strcmp(slot->said[node].token, slot->record.holder[0].token) != 0)
			return false;
	}
	return true;
}

const struct holder *
slots_first(const struct slots *s)
{
	const struct holder *first = NULL, *h;
	int i;

	for (i = 0; i < s->count; i++) {
		h = &s->slot[i].record.holder[0];
		if (!is_held(&s->slot[i]))
			return NULL;
		if (first == NULL || (h->left_ms >= 0 && (first->left_ms < 0 || h->left_ms < first->left_ms)))
			first = h;
	}
	return first;
}

/* Are all slots kept, after their commands have ended, until this instant or longer? */
static bool
are_kept(const struct slots *s, int64_t now_us, int64_t until_us)
{
	const struct slot *slot;

	for (slot = s->slot; slot < s->slot + s->count; slot++) {
		if (slot->record.state != LOCK_KEPT ||
		    clock_add(now_us, slot->record.holder[0].left_ms * 1000) < until_us)
			return false;
	}
	return true;
}

/* Does each holder wake a waiter when it releases its slot? */
static bool
all_hand_over(const struct slots *s)
{
	int i;

	for (i = 0; i < s->count; i++) {
		if (!waitqueue_hands_over(record_holder(&s->slot[i].record)))
			return false;
	}
	return true;
}

/* -- The look --------------------------------------------------------------- */

static void
looked(void *context, int node, const struct result *d)
{
	struct slots *const s = context;
	struct node_view *view;
	int i;

	s->ballot.vote[node] = VOTE_FAULT;
	if (!answer_is_reply(d, &s->error[node]))
		return;
	for (i = 0; i < s->count; i++) {
		view = &s->slot[i].record.node[node];
		if (!answer_holder(reply_item(d->reply, (size_t)i), &s->slot[i].said[node])) {
			answer_fail_unexpected(&s->error[node]);
			while (i-- > 0) /* its vote does not count for any of them */
				s->slot[i].record.node[node].state = LOCK_UNKNOWN;
			return;
		}
		view->state = s->slot[i].said[node].state;
		view->left_ms = view->state != LOCK_FREE ? s->slot[i].said[node].left_ms : 0;
	}
	s->before[node] = answer_before(reply_item(d->reply, 0));
	s->crowd[node] = answer_crowd(reply_item(d->reply, 0));
	s->ballot.vote[node] = VOTE_YES;
}

static void
send_look(struct acquire *t)
{
	struct slots *const s = t->slots;
	const int64_t entry_ms = waitqueue_entry_ms(t);
	struct command request;
	int i, node;

	nodes_cancel(t->nodes, s);
	nodes_begin_round(t->nodes);
	s->ballot = (struct ballot){ .nodes = t->nodes->count };
	memset(s->error, 0, sizeof(s->error));
	for (i = 0; i < s->count; i++) {
		s->slot[i].record = (struct record){ .key = s->slot[i].key, .nodes = t->nodes->count };
		for (node = 0; node < t->nodes->count; node++)
			s->slot[i].record.node[node].state = LOCK_UNKNOWN;
	}
	command_slots(&request, s->names, s->count);
	command_add(&request, entry_ms > 0 ? t->queue.waiter : "");
	command_add_number(&request, entry_ms);
	command_add_number(&request, t->admitted ? 0 : t->args->max_waiters);
	s->noted = s->noted || entry_ms > 0;
	nodes_send_all(t->nodes, &request, looked, s);
}

/*
 * The state of the look.  A first node that is slower than the others is waited for, for a while, since all waiters
 * should block at the same node.
 */
static enum standing
look_standing(const struct acquire *t, struct waiting *w)
{
	const struct slots *const s = t->slots;
	int i, awaited = 0, first = -1;

	for (i = 0; i < t->nodes->count; i++) {
		if (s->ballot.vote[i] == VOTE_PENDING && !t->nodes->unresponsive[i] && awaited++ == 0)
			first = i;
	}
	if (quorum_count(&s->ballot, VOTE_PENDING) == 0)
		return ROUND_OVER;
	if (quorum_count(&s->ballot, VOTE_YES) < quorum_majority(s->ballot.nodes))
		return ROUND_OPEN;
	for (i = 0; i < first && s->ballot.vote[i] != VOTE_YES; i++)
		;
	if (i < first || t->args->wait.until_us == 0)
		return awaited > 0 ? ROUND_DECIDED : ROUND_OVER;
	w->limit.until_us = clock_sooner(w->limit.until_us,
	    clock_add(w->began_us,
		first >= 0 && node_takes_long(t->nodes->node[first]) ? FAR_FIRST_NODE_US : FIRST_NODE_US));
	return first >= 0 ? ROUND_OPEN : ROUND_OVER;
}

/*
 * Look at the slots, and leave this waiter's entry where all of them are held.  ST_OK: a majority replied.
 * ST_INTERRUPTED.  ST_HELD: there is no time left for it, and the error is as it was.  Otherwise see nodes_no_quorum().
 */
static enum status
look(struct acquire *t, struct err *err)
{
	struct slots *const s = t->slots;
	const int64_t now = clock_now_us();
	struct waiting w = { .nodes = t->nodes,
		.limit = { clock_sooner(clock_add(now, t->nodes->node_timeout_us), t->over_us - t->reserve_us),
		    t->args->wait.interrupt_fd },
		.patience = NEARLY_AS_FAST,
		.began_us = now };
	int i;

	if (now >= w.limit.until_us)
		return ST_HELD;
	log_debug(&t->nodes->log, "looking at all slots");
	send_look(t);
	while (nodes_await(&w, look_standing(t, &w)))
		;
	if (w.event == LOOP_INTERRUPTED)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	s->ballot.closed = clock_now_us() >= w.limit.until_us; /* others were only not waited for */
	nodes_note_unresponsive(t->nodes, &s->ballot);
	memcpy(t->before, s->before, sizeof(t->before));
	memcpy(t->crowd, s->crowd, sizeof(t->crowd));
	for (i = 0; i < s->count; i++)
		(void)record_merge(&s->slot[i].record, s->slot[i].said);
	if (quorum_count(&s->ballot, VOTE_YES) >= quorum_majority(s->ballot.nodes))
		return ST_OK;
	return nodes_no_quorum(t->nodes, &s->ballot, s->error, err);
}

/* -- Waiting ---------------------------------------------------------------- */

/*
 * The first node where each holder that a majority names is the holder, or the one of these at which this waiter is
 * blocked already.  The number of nodes: there is none.
 */
static int
queue_node(const struct acquire *t)
{
	int i = 0;

	if (t->queue.blocked && !t->nodes->unresponsive[t->queue.node] && agrees(t->slots, t->queue.node))
		return t->queue.node;
	while (i < t->nodes->count && !agrees(t->slots, i))
		i++;
	return i;
}

/* All slots are held: see --max-waiters.  False: the error says so. */
static bool
admits(struct acquire *t, struct err *err)
{
	const int node = queue_node(t);

	(void)holder_error(slots_first(t->slots), t->slots->count, err);
	return node == t->nodes->count || waitqueue_admits(t, node, err);
}

/* A node says that a slot is being handed over: is the handoff token there, and nobody blocked? */
static void
find_handoff(struct acquire *t, int list)
{
	const struct slot *const slot = &t->slots->slot[list];
	int i = 0;

	while (i < t->nodes->count && slot->record.node[i].state != LOCK_HANDOVER)
		i++;
	if (i < t->nodes->count && t->slots->noted && !t->queue.blocked)
		(void)waitqueue_pop(t, i, list);
}

/*
 * All slots are held: block at a node, if there is one for it.  Returns how long to sleep.  Where there is none, a slot
 * may have been handed over to this waiter between a look and its leaving.
 */
static int64_t
queue_up(struct acquire *t, unsigned int tries)
{
	const struct slots *const s = t->slots;
	const struct holder *const first = slots_first(s);
	const uint32_t random = random_u32();
	const int i = queue_node(t);
	int64_t pause;
	int list;

	if (i < t->nodes->count && waitqueue_join(&t->queue, i) && all_hand_over(s))
		return lease_wait_queued_us(first->left_ms, random_u32() % (first->waiting + 1), random);
	for (list = 0; i == t->nodes->count && list < s->count && t->queue.handoff[0] == '\0'; list++)
		find_handoff(t, list);
	if (t->queue.handoff[0] != '\0')
		return 0;
	if (!t->queue.blocked)
		waitqueue_unlist(&t->queue);
	pause = lease_wait_held_us(tries, random);
	return first->left_ms < 0 ? pause : clock_sooner(pause, first->left_ms * 1000 + 1000);
}

enum status
slots_wait(struct acquire *t, enum attempt_step step, unsigned int tries, struct err *err)
{
	const int64_t last = waitqueue_last_try_us(t, ATTEMPT_SPLIT);
	struct slots *const s = t->slots;
	bool split = step == ATTEMPT_SPLIT; /* the attempt was just now */
	enum status status;
	int64_t now, pause;

	for (;; tries++, split = false) {
		status = look(t, err);
		now = clock_now_us();
		if (status == ST_HELD) /* there was no time left for it */
			return nodes_explain(t->nodes, &t->attempt, step, t->error, err);
		if (status == ST_OK && choose(s, random_u32())) {
			if (now >= last) /* the last look may have left another error */
				return nodes_explain(t->nodes, &t->attempt, step, t->error, err);
			if (t->queue.handoff[0] == '\0')
				find_handoff(t, s->chosen);
			if (!split || t->queue.handoff[0] != '\0')
				return ST_OK;
			pause = lease_wait_split_us(t->splits, random_u32(), now - t->attempt.started_us);
			if (waitqueue_sleep(t, clock_sooner(clock_add(now, pause), last), tries))
				return ST_OK;
			return err_set(err, ST_INTERRUPTED, "interrupted");
		}
		if (status != ST_OK && status != ST_NO_QUORUM && status != ST_SYSTEM)
			return status;
		if (t->queue.handoff[0] != '\0') /* it came meanwhile */
			return ST_OK;
		if (now >= t->args->wait.until_us || (status == ST_OK && are_kept(s, now, t->args->wait.until_us)))
			return status == ST_OK ? holder_error(slots_first(s), s->count, err) : status;
		if (status == ST_OK && !admits(t, err))
			return ST_HELD;
		pause = status == ST_OK ? queue_up(t, tries) : lease_wait_held_us(tries, random_u32());
		if (!waitqueue_sleep(t, clock_sooner(clock_add(now, pause), t->args->wait.until_us), tries))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		if (t->queue.handoff[0] != '\0')
			return ST_OK;
	}
}
