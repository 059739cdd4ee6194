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

	(void)now_us;
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
