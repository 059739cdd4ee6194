/* SPDX-License-Identifier: MIT */
#include "net/loop.h"

#include <poll.h>
#include <stddef.h>
#include <time.h>

void
loop_add(struct loop *l, struct watch *w)
{
	struct watch **end = &l->watches;

	while (*end != NULL)
		end = &(*end)->next;
	*end = w;
	w->loop = l;
	w->next = NULL;
	w->polled = -1;
}

void
loop_remove(struct loop *l, struct watch *w)
{
	struct watch **at = &l->watches;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (l->upcoming == w)
		l->upcoming = w->next;
}

void
loop_post(struct loop *l, struct task *t)
{
	struct task **end = &l->tasks;

	while (*end != NULL)
		end = &(*end)->next;
	*end = t;
	t->next = NULL;
}

void
loop_cancel(struct loop *l, const struct task *t)
{
	struct task **at = &l->tasks;

	while (*at != NULL && *at != t)
		at = &(*at)->next;
	if (*at != NULL)
		*at = t->next;
}

bool
loop_run_tasks(struct loop *l)
{
	struct task *t;
	bool any = false;

	while ((t = l->tasks) != NULL) {
		l->tasks = t->next;
		t->run(t);
		any = true;
	}
	return any;
}

/* A callback may add and remove any watch, including its own and the next one. */
static void
dispatch(struct loop *l, const struct pollfd *fds, int64_t now_us)
{
	struct watch *w;

	for (w = l->watches; w != NULL; w = l->upcoming) {
		l->upcoming = w->next;
		if ((w->polled < 0 || fds[w->polled].revents == 0) && w->at_us > now_us)
			continue;
		w->ready(w->context, now_us);
		(void)loop_run_tasks(l);
	}
}

enum loop_event
loop_turn(struct loop *l, const struct wait *wait)
{
	struct pollfd fds[LOOP_DESCRIPTORS + 1];
	int64_t now, wake = wait->until_us;
	struct timespec timeout;
	struct watch *w;
	int i, count = 0;

	if (loop_run_tasks(l))
		return LOOP_ACTIVE;
	for (w = l->watches; w != NULL; w = w->next) {
		w->polled = -1;
		wake = clock_sooner(wake, w->at_us);
		if (w->fd < 0 || count == LOOP_DESCRIPTORS)
			continue;
		w->polled = count;
		fds[count++] = (struct pollfd){ .fd = w->fd, .events = w->events };
	}
	fds[count] = (struct pollfd){ .fd = wait->interrupt_fd, .events = POLLIN };
	if (ppoll(fds, (nfds_t)count + 1, clock_until(clock_now_us(), wake, &timeout), NULL) <= 0) {
		for (i = 0; i <= count; i++)
			fds[i].revents = 0;
	}
	now = clock_now_us();
	dispatch(l, fds, now);
	if (fds[count].revents != 0)
		return LOOP_INTERRUPTED;
	return now >= wait->until_us ? LOOP_TIME : LOOP_ACTIVE;
}
