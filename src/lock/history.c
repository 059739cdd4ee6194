/* SPDX-License-Identifier: MIT */
#include "lock/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/duration.h"
#include "base/text.h"

#define SAME_EVENT_MS 1000

enum {
	RUNS_SAID = 5
};

/* -- Words ------------------------------------------------------------------ */

/* Where a text is read.  Once it is malformed, nothing more is read. */
struct words {
	const char *at;
	bool bad;
};

/* Copy bytes that end at `length`, and skip them with what follows, if it is a blank. */
static void
take(struct words *w, size_t length, char *to, size_t size)
{
	w->bad = w->bad || length >= size || strnlen(w->at, length) < length;
	if (w->bad)
		length = 0;
	memcpy(to, w->at, length);
	to[length] = '\0';
	w->at += length;
}

/* Copy the next word, which ends at a blank. */
static void
take_word(struct words *w, char *word, size_t size)
{
	const size_t length = strcspn(w->at, " ");

	take(w, length, word, size);
	w->bad = w->bad || length == 0 || *w->at != ' ';
	w->at += w->bad ? 0 : 1;
}

/* A number; `unknown` for "-". */
static int64_t
take_number(struct words *w, int64_t unknown)
{
	char word[24], *end;
	long long n;

	take_word(w, word, sizeof(word));
	if (strcmp(word, "-") == 0)
		return unknown;
	n = strtoll(word, &end, 10);
	w->bad = w->bad || *end != '\0' || n > LATEST_MS || n < -LATEST_MS;
	return w->bad ? unknown : n;
}

static struct command_end
take_end(struct words *w)
{
	const int64_t n = take_number(w, INT64_MIN);

	w->bad = w->bad || (n != INT64_MIN && (n < -255 || n > 255));
	return (struct command_end){ n != INT64_MIN, n != INT64_MIN ? (int)n : 0 };
}

/* The lengths of an owner and a label, and then both. */
static void
take_names(struct words *w, char owner[OWNER_MAX + 1], char label[LABEL_MAX + 1])
{
	const int64_t of_owner = take_number(w, 0), of_label = take_number(w, 0);

	w->bad = w->bad || of_owner < 0 || of_label < 0;
	take(w, (size_t)of_owner, owner, OWNER_MAX + 1);
	take(w, (size_t)of_label, label, LABEL_MAX + 1);
}

/* -- Merging ---------------------------------------------------------------- */

/* Was it completed by a release? */
static bool
is_complete(const struct former *e)
{
	return strcmp(e->outcome, "held") != 0 && strcmp(e->outcome, "expired") != 0;
}

/* Complete what a node reports.  Of an open entry, the token still holds the lock, or its lease has ended. */
static void
complete(struct former *e, const struct history_source *source, size_t index)
{
	const bool open = strcmp(e->outcome, "open") == 0, held = open && strcmp(source->holder, e->token) == 0;
	int64_t until = e->end_ms;

	if (open)
		memcpy(e->outcome, held ? "held" : "expired", held ? sizeof("held") : sizeof("expired"));
	if (open && !held && index == 0 && source->lease_ended_ms >= e->start_ms)
		until = e->end_ms = source->lease_ended_ms < source->now_ms ? source->lease_ended_ms : source->now_ms;
	if (held)
		until = source->now_ms;
	e->held_ms = until < 0 ? -1 : until > e->start_ms ? until - e->start_ms : 0;
	e->ended_ago_ms = held || until < 0 ? -1 : source->now_ms > until ? source->now_ms - until : 0;
}

/*
 * Merge what another node knows about the same holder.  A release that reached only some nodes counts; of different
 * outcomes, that of most nodes.
 */
static void
merge(struct former *e, const struct former *other)
{
	const int64_t fence = e->fence > other->fence ? e->fence : other->fence;
	const int nodes = e->nodes + 1;

	if (strcmp(e->outcome, other->outcome) == 0) {
		e->votes++;
		if (other->held_ms > e->held_ms) { /* together: the clocks of the nodes differ */
			e->start_ms = other->start_ms;
			e->end_ms = other->end_ms;
			e->held_ms = other->held_ms;
			e->ended_ago_ms = other->ended_ago_ms;
		}
	} else if (is_complete(e) ? is_complete(other) && --e->votes == 0
				  : is_complete(other) || strcmp(other->outcome, "held") == 0)
		*e = *other;
	e->fence = fence;
	e->nodes = nodes;
}

/*
 * Note an event if it is later than the one that is known.  By how long ago each was, since the clocks of the nodes
 * differ; the same event may have reached them at slightly different times.
 */
static bool
note_event(struct event *known, int64_t at_ms, int64_t now_ms)
{
	const int64_t age_ms = now_ms > at_ms ? now_ms - at_ms : 0;

	if (at_ms <= 0)
		return false;
	if (known->at_ms > 0 &&
	    (age_ms > known->age_ms + SAME_EVENT_MS ||
		(age_ms >= known->age_ms - SAME_EVENT_MS && at_ms <= known->at_ms)))
		return false;
	*known = (struct event){ at_ms, age_ms };
	return true;
}

bool
history_add(struct record *h, const struct history_source *source, size_t index, const char *text)
{
	struct former entry = { .nodes = 1, .votes = 1 }, *grown;
	struct words w = { text, false };
	int64_t success_ms, run_ms;
	struct command_end run;
	size_t i;

	take_word(&w, entry.token, sizeof(entry.token));
	entry.end_ms = take_number(&w, -1);
	take_word(&w, entry.outcome, sizeof(entry.outcome));
	entry.command = take_end(&w);
	success_ms = take_number(&w, 0);
	run_ms = take_number(&w, 0);
	run = take_end(&w);
	entry.start_ms = take_number(&w, 0);
	entry.waited_ms = take_number(&w, 0);
	entry.fence = take_number(&w, 0);
	take_names(&w, entry.owner, entry.label);
	take(&w, strlen(w.at), entry.by, sizeof(entry.by));
	if (w.bad || !token_valid(entry.token) || entry.start_ms <= 0)
		return true;
	complete(&entry, source, index);
	if (index == 0) {
		(void)note_event(&h->success, success_ms, source->now_ms);
		if (note_event(&h->run, run_ms, source->now_ms))
			h->run_end = run;
	}
	for (i = 0; i < h->formers; i++) {
		if (strcmp(h->former[i].token, entry.token) == 0) {
			merge(&h->former[i], &entry);
			return true;
		}
	}
	grown = array_room(h->former, h->formers + 1, &h->former_room, sizeof(*grown));
	if (grown == NULL)
		return false;
	h->former = grown;
	h->former[h->formers++] = entry;
	return true;
}

bool
history_put_waiter(struct record *h, const struct waiter *w)
{
	struct waiter *grown;
	size_t i;

	if (w->since_ms > LATEST_MS || w->since_ms < -LATEST_MS)
		return true;
	for (i = 0; i < h->waiters; i++) {
		if (strcmp(h->waiter[i].id, w->id) != 0)
			continue;
		if (w->node < h->waiter[i].node)
			h->waiter[i] = *w;
		return true;
	}
	grown = array_room(h->waiter, h->waiters + 1, &h->waiter_room, sizeof(*grown));
	if (grown == NULL)
		return false;
	h->waiter = grown;
	h->waiter[h->waiters++] = *w;
	return true;
}

bool
history_add_waiter(struct record *h, int node, size_t place, const char *text)
{
	struct waiter w = { .node = node, .place = place };
	struct words words = { text, false };

	take_word(&words, w.id, sizeof(w.id));
	w.since_ms = take_number(&words, 0);
	take_names(&words, w.owner, w.label);
	return words.bad || history_put_waiter(h, &w);
}

/* Fences grow from holder to holder; start times are those of different clocks. */
static int
compare_entries(const void *a, const void *b)
{
	const struct former *const x = a, *const y = b;

	return x->fence != y->fence ? (x->fence < y->fence) - (x->fence > y->fence)
				    : (x->start_ms < y->start_ms) - (x->start_ms > y->start_ms);
}

static int
compare_waiters(const void *a, const void *b)
{
	const struct waiter *const x = a, *const y = b;

	return x->node != y->node ? (x->node > y->node) - (x->node < y->node)
				  : (x->place > y->place) - (x->place < y->place);
}

bool
history_is_settled(const struct record *h, int nodes, int missing)
{
	const int majority = quorum_majority(nodes);
	size_t i;

	for (i = 0; i < h->formers; i++) {
		if (!is_complete(&h->former[i]) && h->former[i].nodes < majority &&
		    h->former[i].nodes + missing >= majority)
			return false;
	}
	return true;
}

void
history_finish(struct record *h, int nodes, int missing)
{
	size_t i, count = 0;

	for (i = 0; i < h->formers; i++) {
		if (is_complete(&h->former[i]) || h->former[i].nodes + missing >= quorum_majority(nodes))
			h->former[count++] = h->former[i];
	}
	h->formers = count;
	if (count > 0)
		qsort(h->former, count, sizeof(*h->former), compare_entries);
	if (h->waiters > 0)
		qsort(h->waiter, h->waiters, sizeof(*h->waiter), compare_waiters);
}

void
history_say_runs(const struct record *h, struct text *text)
{
	int64_t least_ms = INT64_MAX, most_ms = 0;
	const struct former *e;
	char least[32], most[32];
	int runs = 0;
	size_t i;

	for (i = 0; i < h->formers && runs < RUNS_SAID; i++) {
		e = &h->former[i];
		if (strcmp(e->outcome, "ran") != 0 || e->command.status < 0 || e->held_ms < 0)
			continue;
		least_ms = e->held_ms < least_ms ? e->held_ms : least_ms;
		most_ms = e->held_ms > most_ms ? e->held_ms : most_ms;
		runs++;
	}
	duration_show(least_ms, least, sizeof(least));
	duration_show(most_ms, most, sizeof(most));
	if (runs == 1)
		text_addf(text, "; the last one took %s", most);
	else if (runs > 1)
		text_addf(text, strcmp(least, most) == 0 ? "; the last %d took %s" : "; the last %d took %s to %s",
		    runs, least, most);
}

void
history_write_waiter(const struct waiter *w, char name[WAITER_NAME_SIZE])
{
	(void)snprintf(name, WAITER_NAME_SIZE, "%s %" PRId64 " %zu %zu %s%s", w->id, w->since_ms, strlen(w->owner),
	    strlen(w->label), w->owner, w->label);
}
