/* SPDX-License-Identifier: MIT */
#include "net/loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

static int calls;

/* Like a connection that is replaced by another one. */
static void
register_again(void *context, int64_t now_us)
{
	struct watch *const w = context;

	if (++calls == 5) /* enough to fail */
		return;
	loop_remove(w->loop, w);
	loop_add(w->loop, w);
}

TEST(registered_again)
{
	struct loop loop = { .watches = NULL };
	struct watch w = { .fd = eventfd(1, 0),
		.events = POLLIN,
		.at_us = CLOCK_NEVER,
		.ready = register_again,
		.context = &w };
	struct watch other = { .fd = -1, .at_us = CLOCK_NEVER };
	const struct wait wait = { CLOCK_NEVER, -1 };

	loop_add(&loop, &w);
	loop_add(&loop, &other); /* w stands behind it then, and is checked once more in this turn */
	is_int(loop_turn(&loop, &wait), LOOP_ACTIVE, "a descriptor is ready");
	is_int(calls, 1, "one that its callback registers again is not ready yet");
	(void)loop_turn(&loop, &wait);
	is_int(calls, 2, "it is in the next turn");
	(void)close(w.fd);
}

static void
remove_next(void *context, int64_t now_us)
{
	loop_remove(((struct watch *)context)->loop, context);
}

static void
count_call(void *context, int64_t now_us)
{
	++*(int *)context;
}

/* Like a connection that is given up since another one was established. */
TEST(removes_the_next)
{
	int removed = 0, behind = 0;
	struct loop loop = { .watches = NULL };
	struct watch second = { .fd = -1, .ready = count_call, .context = &removed };
	struct watch first = { .fd = -1, .ready = remove_next, .context = &second };
	struct watch third = { .fd = -1, .ready = count_call, .context = &behind };

	loop_add(&loop, &first);
	loop_add(&loop, &second);
	loop_add(&loop, &third);
	(void)loop_turn(&loop, &(struct wait){ CLOCK_NEVER, -1 });
	is_int(removed, 0, "a watch that was removed is not called any more");
	is_int(behind, 1, "the one behind it is");
}
