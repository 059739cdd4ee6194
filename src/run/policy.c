/* SPDX-License-Identifier: MIT */
#include "run/policy.h"

#include "base/clock.h"

/* When something must be done about the end of the lease; CLOCK_NEVER: it has been done. */
static int64_t
lease_due_us(const struct policy *p, int64_t valid_until_us)
{
	if (p->only_warn)
		return p->warned ? CLOCK_NEVER : valid_until_us;
	if (p->why != ST_LOST)
		return valid_until_us - p->margin_us;
	return p->no_kill ? valid_until_us : CLOCK_NEVER; /* see policy_done() */
}

/* The lock is lost, or its lease is about to end: TERM, and KILL when there is no time left. */
static enum policy_order
lose(struct policy *p, int64_t valid_until_us, int64_t now_us)
{
	const bool ended_before = p->why != ST_OK;
	const int64_t kill_at = clock_sooner(clock_add(now_us, p->margin_us), valid_until_us);

	p->why = ST_LOST;
	if (p->no_kill) {
		p->kill_at_us = CLOCK_NEVER;
		return POLICY_TERM;
	}
	p->kill_at_us = ended_before ? clock_sooner(p->kill_at_us, kill_at) : kill_at;
	return ended_before ? POLICY_WAIT : POLICY_TERM;
}

enum policy_order
policy_next(struct policy *p, int64_t valid_until_us, bool lost, int64_t now_us)
{
	const bool ends = lost || now_us >= lease_due_us(p, valid_until_us);
	enum policy_order order = POLICY_WAIT;

	if (p->killed)
		return POLICY_WAIT;
	if (p->only_warn && !p->warned && ends) {
		p->warned = true;
		return POLICY_WARN;
	}
	if (!p->only_warn && p->why != ST_LOST && ends)
		order = lose(p, valid_until_us, now_us);
	else if (p->why == ST_OK && ((p->asked && !p->only_warn) || now_us >= p->max_run_at_us)) {
		p->why = now_us >= p->max_run_at_us ? ST_MAX_RUN : ST_ASKED;
		p->kill_at_us = p->kill_after_us > 0 && !p->no_kill ? clock_add(now_us, p->kill_after_us) : CLOCK_NEVER;
		order = POLICY_TERM;
	}
	p->killed = p->why != ST_OK && now_us >= p->kill_at_us;
	return p->killed ? POLICY_KILL : order;
}

int64_t
policy_due_us(const struct policy *p, int64_t valid_until_us)
{
	if (p->killed)
		return CLOCK_NEVER;
	return clock_sooner(p->why == ST_OK ? p->max_run_at_us : p->kill_at_us, lease_due_us(p, valid_until_us));
}

bool
policy_done(const struct policy *p, int64_t valid_until_us, bool lost, int64_t now_us)
{
	const bool over = lost || now_us >= valid_until_us;

	return p->warned || (p->killed && (p->why == ST_LOST || over)) || (p->no_kill && p->why == ST_LOST && over);
}
