/* SPDX-License-Identifier: MIT */
#include "lock/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "lock/record.h"

#define LATEST_MS (INT64_C(1) << 53)
#define SAME_EVENT_MS 1000

/* -- Words ------------------------------------------------------------------ */

/* Copy the next word, which ends at a blank.  False if there is none, or it does not fit. */
static bool
take_word(const char **text, char *word, size_t size)
{
	const size_t length = strcspn(*text, " ");

	if (length == 0 || length >= size || (*text)[length] != ' ')
		return false;
	memcpy(word, *text, length);
	word[length] = '\0';
	*text += length + 1;
	return true;
}

/* A number, or "-", which leaves it unchanged. */
static bool
take_number(const char **text, int64_t *number)
{
	char word[24], *end;
	long long n;

	if (!take_word(text, word, sizeof(word)))
		return false;
	if (strcmp(word, "-") == 0)
		return true;
	n = strtoll(word, &end, 10);
	if (*end != '\0' || n > LATEST_MS || n < -LATEST_MS)
		return false;
	*number = n;
	return true;
}

static bool
take_end(const char **text, struct command_end *e)
{
	int64_t n = INT64_MIN;

	if (!take_number(text, &n) || (n != INT64_MIN && (n < -255 || n > 255)))
		return false;
	e->is = n != INT64_MIN;
	e->status = e->is ? (int)n : 0;
	return true;
}

/* Copy so many bytes, and skip them. */
static bool
take_bytes(const char **text, int64_t length, char *to, size_t size)
{
	if (length < 0 || length >= (int64_t)size || strnlen(*text, (size_t)length) < (size_t)length)
		return false;
	memcpy(to, *text, (size_t)length);
	to[length] = '\0';
	*text += length;
	return true;
}

/* The last command, and the last that succeeded. */
struct past {
	int64_t success_ms, run_ms;
	struct command_end run;
};

static bool
parse(const char *text, struct former *e, struct past *past)
{
	int64_t owner = 0, label = 0;

	memset(e, 0, sizeof(*e));
	memset(past, 0, sizeof(*past));
	e->end_ms = -1;
	return take_word(&text, e->token, sizeof(e->token)) && token_valid(e->token) &&
	    take_number(&text, &e->end_ms) && take_word(&text, e->outcome, sizeof(e->outcome)) &&
	    take_end(&text, &e->command) && take_number(&text, &past->success_ms) &&
	    take_number(&text, &past->run_ms) && take_end(&text, &past->run) && take_number(&text, &e->start_ms) &&
	    take_number(&text, &e->waited_ms) && take_number(&text, &e->fence) && take_number(&text, &owner) &&
	    take_number(&text, &label) && take_bytes(&text, owner, e->owner, sizeof(e->owner)) &&
	    take_bytes(&text, label, e->label, sizeof(e->label)) &&
	    take_bytes(&text, (int64_t)strlen(text), e->broken_by, sizeof(e->broken_by)) && e->start_ms > 0;
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
		}
	} else if (!is_complete(e) && (is_complete(other) || strcmp(other->outcome, "held") == 0)) {
		*e = *other;
		e->votes = 1;
	} else if (is_complete(other) && --e->votes == 0) {
		*e = *other;
		e->votes = 1;
	}
	e->fence = fence;
	e->nodes = nodes;
}

/*
 * Is this event later than the one that is known?  By how long ago each was, since the clocks of the nodes differ; the
 * same event may have reached them at slightly different times.
 */
static bool
is_later(int64_t at_ms, int64_t age_ms, int64_t known_ms, int64_t known_age_ms)
{
	if (at_ms <= 0 || known_ms <= 0)
		return at_ms > known_ms;
	return age_ms < known_age_ms - SAME_EVENT_MS || (age_ms <= known_age_ms + SAME_EVENT_MS && at_ms > known_ms);
}

static void
note_past(struct record *h, const struct past *past, int64_t now_ms)
{
	const int64_t success_age_ms = now_ms > past->success_ms ? now_ms - past->success_ms : 0;
	const int64_t run_age_ms = now_ms > past->run_ms ? now_ms - past->run_ms : 0;

	if (is_later(past->success_ms, success_age_ms, h->success_ms, h->success_age_ms)) {
		h->success_ms = past->success_ms;
		h->success_age_ms = success_age_ms;
	}
	if (is_later(past->run_ms, run_age_ms, h->run_ms, h->run_age_ms)) {
		h->run_ms = past->run_ms;
		h->run_age_ms = run_age_ms;
		h->run = past->run;
	}
}

bool
history_add(struct record *h, const struct history_source *source, size_t index, const char *text)
{
	struct former entry, *grown;
	struct past past;
	size_t i;

	if (!parse(text, &entry, &past))
		return true;
	complete(&entry, source, index);
	entry.nodes = entry.votes = 1;
	if (index == 0)
		note_past(h, &past, source->now_ms);
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
	int64_t owner = 0, label = 0;

	if (!take_word(&text, w.id, sizeof(w.id)) || !take_number(&text, &w.since_ms) || !take_number(&text, &owner) ||
	    !take_number(&text, &label) || !take_bytes(&text, owner, w.owner, sizeof(w.owner)) ||
	    !take_bytes(&text, label, w.label, sizeof(w.label)))
		return true;
	return history_put_waiter(h, &w);
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
history_write_waiter(const struct waiter *w, char name[WAITER_NAME_SIZE])
{
	(void)snprintf(name, WAITER_NAME_SIZE, "%s %" PRId64 " %zu %zu %s%s", w->id, w->since_ms, strlen(w->owner),
	    strlen(w->label), w->owner, w->label);
}
