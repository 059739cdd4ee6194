/* SPDX-License-Identifier: MIT */
#include "run/kill_policy.h"

#include "base/clock.h"

static int64_t
before(int64_t valid_until_us, int64_t lead_us)
{
	return lead_us == CLOCK_NEVER ? CLOCK_NEVER : valid_until_us - lead_us;
}

static enum kill_policy_order
wait_until(struct kill_policy *e, int64_t until_us, int64_t lead_us)
{
	e->until_us = until_us;
	e->lead_us = lead_us;
	return KILL_POLICY_WAIT;
}

/* The lock is lost, or its lease is about to end: TERM, or KILL at once if there is no time left. */
static enum kill_policy_order
lose(struct kill_policy *e, int64_t valid_until_us, int64_t now_us)
{
	const bool ended_before = e->why == KILL_POLICY_MAX_RUN;
	const int64_t kill_at = clock_sooner(clock_add(now_us, e->margin_us), valid_until_us);

	e->why = KILL_POLICY_LOST;
	if (e->no_kill) {
		e->kill_at_us = CLOCK_NEVER;
		return KILL_POLICY_TERM;
	}
	e->kill_at_us = ended_before ? clock_sooner(e->kill_at_us, kill_at) : kill_at;
	if (now_us >= e->kill_at_us) {
		e->killed = true;
		return KILL_POLICY_KILL;
	}
	return ended_before ? wait_until(e, e->kill_at_us, CLOCK_NEVER) : KILL_POLICY_TERM;
}

static enum kill_policy_order
stop_running(struct kill_policy *e, int64_t now_us)
{
	e->why = KILL_POLICY_MAX_RUN;
	e->kill_at_us = e->kill_after_us > 0 ? clock_add(now_us, e->kill_after_us) : CLOCK_NEVER;
	return KILL_POLICY_TERM;
}

enum kill_policy_order
kill_policy_next(struct kill_policy *e, int64_t valid_until_us, bool lost, int64_t now_us)
{
	const int64_t lead = e->warned ? CLOCK_NEVER : e->only_warn ? 0 : e->margin_us;
	const int64_t term_at = before(valid_until_us, lead);

	if (e->killed)
		return wait_until(e, CLOCK_NEVER, CLOCK_NEVER);
	if (e->only_warn && !e->warned && (lost || now_us >= term_at)) {
		e->warned = true;
		return KILL_POLICY_WARN;
	}
	if (!e->only_warn && e->why != KILL_POLICY_LOST && (lost || now_us >= term_at))
		return lose(e, valid_until_us, now_us);
	if (e->why == KILL_POLICY_NOT && now_us >= e->max_run_at_us)
		return stop_running(e, now_us);
	if (e->why == KILL_POLICY_NOT)
		return wait_until(e, e->max_run_at_us, lead);
	if (now_us >= e->kill_at_us) {
		e->killed = true;
		return KILL_POLICY_KILL;
	}
	if (e->why == KILL_POLICY_LOST)
		return wait_until(e, e->kill_at_us, e->no_kill ? 0 : CLOCK_NEVER);
	return wait_until(e, e->kill_at_us, lead);
}

int64_t
kill_policy_due_us(const struct kill_policy *e, int64_t valid_until_us)
{
	return clock_sooner(e->until_us, before(valid_until_us, e->lead_us));
}

bool
kill_policy_done(const struct kill_policy *e, int64_t valid_until_us, bool lost, int64_t now_us)
{
	return e->killed || e->warned ||
	    (e->no_kill && e->why == KILL_POLICY_LOST && (lost || now_us >= valid_until_us));
}
