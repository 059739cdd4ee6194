/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <string.h>

#include "client.h"
#include "event.h"
#include "judge.h"
#include "run/death_pipe.h"

#define PUNCTUAL_US INT64_C(1000) /* how late dlock may act */

bool
client_is_inside(int number)
{
	const struct client *c = &client[number];

	return c->command && kernel_time_of(number, event_now()) < c->until_us;
}

const char *
client_relies_on(int number)
{
	return client_is_inside(number) ? client[number].token : "";
}

void
command_dies(struct client *c, const char *why)
{
	if (!c->command)
		return;
	c->command = false;
	world_say("client %d: is outside", c->number);
	world_say("client %d: the command ends (%s)", c->number, why);
	if (!c->by_token)
		kernel_signal(c->number);
}

static void
command_ends(void *subject, unsigned int number)
{
	struct client *c = subject;

	if (!c->command || c->by_token || event_now() < c->ends_at_us)
		return;
	if (c->asleep_until_us > event_now())
		event_at(c->asleep_until_us, command_ends, c, 0);
	else
		command_dies(c, "by itself");
}

void
command_end_in(struct client *c, int64_t us)
{
	const int64_t at = event_now() + us;

	if (at >= c->ends_at_us)
		return;
	c->ends_at_us = at;
	event_at(at, command_ends, c, 0);
}

/* A stopped dlock continues when validity has ended.  If it doesn't act then, it is killed with its command. */
static void
watch_validity(void *subject, unsigned int number)
{
	struct client *c = subject;
	int64_t at;

	if (!c->command || c->by_token)
		return;
	at = kernel_instant(c->number, c->until_us) + 1;
	at = at > c->asleep_until_us ? at : c->asleep_until_us;
	if (event_now() >= at)
		kernel_continue(c->number);
	if (event_now() < at + PUNCTUAL_US) {
		event_at(event_now() < at ? at : at + PUNCTUAL_US, watch_validity, c, 0);
		return;
	}
	if (!kernel_was_paused(c->number, PUNCTUAL_US))
		judge_breach("ending", "client %d did not end its command before its lease ended", c->number);
	command_dies(c, "by its death pipe");
}

void
command_start(struct client *c, const struct lease *lease, const struct turn *turn)
{
	if (kernel_is_killed(c->number))
		return;
	c->by_token = turn->by_token;
	c->turn = turn;
	c->command = true;
	c->until_us = lease->valid_until_us;
	memcpy(c->token, lease->token, sizeof(c->token));
	c->ends_at_us = INT64_MAX;
	judge_enters(c->number, lease);
	if (c->by_token)
		return;
	command_end_in(c, turn->hold_us);
	event_at(event_now(), watch_validity, c, 0);
}

WRAPPED(void, death_pipe_extend, (const struct death_pipe *death_pipe, int64_t until_us))
{
	struct client *c = &client[kernel_current()];

	judge_may_stay(c->number, c->token, c->until_us, until_us);
	c->until_us = until_us > c->until_us ? until_us : c->until_us;
}
