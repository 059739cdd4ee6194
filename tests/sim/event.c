/* SPDX-License-Identifier: MIT */
#include "event.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	EVENTS = 16384
};

struct event {
	int64_t at_us;
	unsigned long order;
	event_happen *happen;
	void *subject;
	unsigned int number;
};

static struct event heap[EVENTS]; /* a binary heap, earliest event first */
static int events;
static unsigned long planned, happened;
static int64_t now;

void
event_reset(int64_t now_us)
{
	events = 0;
	planned = happened = 0;
	now = now_us;
}

int64_t
event_now(void)
{
	return now;
}

unsigned long
event_count(void)
{
	return happened;
}

static bool
before(const struct event *a, const struct event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

void
event_at(int64_t at_us, event_happen *happen, void *subject, unsigned int number)
{
	const struct event e = { at_us > now ? at_us : now, ++planned, happen, subject, number };
	int i = events++;

	if (events > EVENTS) {
		fprintf(stderr, "dlock-sim: too many events\n");
		abort();
	}
	for (; i > 0 && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static struct event
pop(void)
{
	const struct event top = heap[0], last = heap[--events];
	int i = 0, child;

	for (child = 1; child < events; i = child, child = 2 * i + 1) {
		if (child + 1 < events && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return top;
}

bool
event_next(int64_t until_us)
{
	struct event e;

	if (events == 0 || heap[0].at_us > until_us) {
		now = until_us > now ? until_us : now;
		return false;
	}
	e = pop();
	now = e.at_us;
	happened++;
	e.happen(e.subject, e.number);
	return true;
}
