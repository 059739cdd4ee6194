/* SPDX-License-Identifier: MIT */
#include "run/policy.h"

#include "base/clock.h"
#include "tap.h"

enum {
	ORDERS_MAX = 8 /* more at one instant would be no end */
};

/* Ask until it says wait; the orders as letters: t for the first signal, k for SIGKILL, w for a warning. */
static const char *
ask(struct policy *e, int64_t valid_until, bool lost, int64_t now)
{
	static const char letters[] = "-tkw";
	static char orders[ORDERS_MAX + 1];
	size_t n = 0;
	enum policy_order order;

	while (n < ORDERS_MAX && (order = policy_next(e, valid_until, lost, now)) != POLICY_WAIT)
		orders[n++] = letters[order];
	orders[n] = '\0';
	return orders;
}

#define NEVER CLOCK_NEVER

static const struct story {
	const char *what;
	int64_t margin, kill_after, max_run_at;
	bool only_warn;
	struct step {
		int64_t now, valid_until;
		bool lost;
		const char *orders;
		int64_t until; /* 0: not looked at */
	} step[6];
} stories[] = {
	{ "nothing happens", 5, 3, NEVER, false,
	    { { 1, 30, false, "", 25 }, { 10, 40, false, "", 35 }, { 34, 60, false, "", 55 } } },
	{ "the lease ends", 5, 3, NEVER, false,
	    { { 24, 30, false, "", 25 }, { 25, 30, false, "t", 30 }, { 29, 30, false, "", 30 },
		{ 30, 30, false, "k", NEVER }, { 31, 30, false, "", NEVER } } },
	{ "asked a little late", 5, 3, NEVER, false, { { 27, 30, false, "t", 30 }, { 30, 30, false, "k", NEVER } } },
	{ "lost", 5, 3, NEVER, false,
	    { { 10, 30, true, "t", 15 }, { 12, 30, true, "", 15 }, { 15, 30, true, "k", NEVER },
		{ 16, 30, true, "", 0 } } },
	{ "lost when the lease is as good as over", 20, 3, NEVER, false,
	    { { 1, 30, false, "", 10 }, { 12, 30, true, "t", 30 }, { 30, 30, true, "k", NEVER } } },
	{ "ending, then the lock is lost", 5, 3, NEVER, false,
	    { { 25, 30, false, "t", 30 }, { 26, 30, true, "", 30 }, { 30, 30, true, "k", NEVER } } },
	{ "woken up long after the end", 5, 3, NEVER, false,
	    { { 500, 30, false, "k", NEVER }, { 501, 30, true, "", 0 } } },
	{ "woken up at the very end", 5, 3, NEVER, false, { { 30, 30, false, "k", NEVER } } },
	{ "woken up and lost", 5, 3, NEVER, false, { { 30, 30, true, "k", NEVER } } },
	{ "woken up after --max-run as well", 5, 3, 20, false, { { 500, 30, false, "k", NEVER } } },
	{ "no margin", 0, 3, NEVER, false, { { 29, 30, false, "", 30 }, { 30, 30, false, "k", NEVER } } },
	{ "--max-run", 5, 3, 10, false,
	    { { 9, 30, false, "", 10 }, { 10, 30, false, "t", 13 }, { 12, 30, false, "", 13 },
		{ 13, 30, false, "k", NEVER } } },
	{ "--max-run, renewed meanwhile", 5, 3, 10, false,
	    { { 10, 30, false, "t", 13 }, { 11, 41, false, "", 13 }, { 13, 41, false, "k", NEVER } } },
	{ "--max-run without SIGKILL", 5, 0, 10, false,
	    { { 10, 30, false, "t", 25 }, { 11, 500, false, "", 495 }, { 494, 500, false, "", 495 } } },
	{ "--max-run without SIGKILL, then the lease ends", 5, 0, 10, false,
	    { { 10, 30, false, "t", 25 }, { 25, 30, false, "", 30 }, { 30, 30, false, "k", NEVER } } },
	{ "--max-run without SIGKILL, no margin, then the lease ends", 0, 0, 10, false,
	    { { 10, 30, false, "t", 30 }, { 29, 30, false, "", 30 }, { 30, 30, false, "k", NEVER } } },
	{ "--max-run without SIGKILL, then lost", 5, 0, 10, false,
	    { { 10, 30, false, "t", 25 }, { 11, 30, true, "", 16 }, { 16, 30, true, "k", NEVER } } },
	{ "--max-run without SIGKILL, no margin, then lost", 0, 0, 10, false,
	    { { 10, 30, false, "t", 30 }, { 11, 30, true, "k", NEVER } } },
	{ "--max-run without SIGKILL, then a warning", 5, 0, 10, true,
	    { { 10, 30, false, "t", 30 }, { 30, 30, false, "w", NEVER }, { 99, 30, true, "", NEVER } } },
	{ "lost, no margin", 0, 0, NEVER, false, { { 10, 30, true, "k", NEVER } } },
	{ "--max-run, then the lease ends", 5, 100, 10, false,
	    { { 10, 30, false, "t", 25 }, { 25, 30, false, "", 30 }, { 30, 30, false, "k", NEVER } } },
	{ "--max-run, then lost", 5, 100, 10, false,
	    { { 10, 30, false, "t", 25 }, { 11, 30, true, "", 16 }, { 16, 30, true, "k", NEVER } } },
	{ "--max-run, then lost, but killed before that", 5, 3, 10, false,
	    { { 10, 30, false, "t", 13 }, { 11, 30, true, "", 13 }, { 13, 30, true, "k", NEVER } } },
	{ "lost, then --max-run", 5, 3, 12, false,
	    { { 11, 30, true, "t", 16 }, { 12, 30, true, "", 16 }, { 16, 30, true, "k", NEVER } } },
	{ "only a warning when lost", 5, 3, NEVER, true,
	    { { 10, 30, false, "", 30 }, { 11, 30, true, "w", 0 }, { 30, 30, true, "", 0 }, { 99, 30, true, "", 0 } } },
	{ "only a warning when the lease has ended", 5, 3, NEVER, true,
	    { { 29, 30, false, "", 30 }, { 30, 30, false, "w", 0 }, { 31, 30, true, "", 0 } } },
	{ "a warning, then --max-run", 5, 3, 50, true,
	    { { 11, 30, true, "w", 50 }, { 50, 30, true, "t", 53 }, { 53, 30, true, "k", NEVER } } },
	{ "--max-run, then a warning", 5, 30, 10, true,
	    { { 10, 30, false, "t", 30 }, { 30, 30, false, "w", 40 }, { 40, 30, false, "k", NEVER } } },
	{ "asked to end, renewed meanwhile", 5, 20, NEVER, false,
	    { { 10, 30, false, "t", 25 }, { 12, 42, false, "", 30 }, { 30, 60, false, "k", NEVER } } },
	{ "asked to end, without SIGKILL", 5, 0, NEVER, false,
	    { { 10, 30, false, "t", 25 }, { 30, 60, false, "", 55 } } },
	{ "asked to end, then lost", 5, 100, NEVER, false,
	    { { 10, 30, false, "t", 25 }, { 11, 30, true, "", 16 }, { 16, 30, true, "k", NEVER } } },
	{ "asked to end, and only warned", 5, 3, NEVER, true,
	    { { 10, 30, false, "", 30 }, { 30, 30, false, "w", 0 } } },
};

TEST(stories)
{
	for (size_t i = 0; i < COUNT(stories); i++) {
		const struct story *s = &stories[i];
		struct policy e = { .margin_us = s->margin,
			.kill_after_us = s->kill_after,
			.max_run_at_us = s->max_run_at,
			.only_warn = s->only_warn,
			.asked = strncmp(s->what, "asked to end", 12) == 0 };

		for (size_t j = 0; j < COUNT(s->step) && s->step[j].orders != NULL; j++) {
			const struct step *step = &s->step[j];

			is_str(ask(&e, step->valid_until, step->lost, step->now), step->orders, "%s: at %" PRId64,
			    s->what, step->now);
			if (step->until != 0)
				is_int(policy_due_us(&e, step->valid_until), step->until,
				    "%s: at %" PRId64 ", when to ask again", s->what, step->now);
		}
	}
}

TEST(no_kill)
{
	static const struct policy begin = { .margin_us = 5,
		.kill_after_us = 3,
		.max_run_at_us = NEVER,
		.no_kill = true };
	struct policy e = begin;

	is_str(ask(&e, 30, false, 24), "", "no SIGKILL: all is well");
	is_str(ask(&e, 30, false, 25), "t", "no SIGKILL: the first signal before the end of the lease");
	ok(!policy_done(&e, 30, false, 29), "no SIGKILL: the lock may not be lost after all");
	is_int(policy_due_us(&e, 30), 30, "no SIGKILL: until the end of the lease");
	ok(policy_done(&e, 30, false, 30) && policy_done(&e, 30, true, 26), "no SIGKILL: then all is done");
	is_str(ask(&e, 30, false, 40), "", "no SIGKILL: nothing when it has ended");
	e = begin;
	is_str(ask(&e, 30, false, 40), "t", "no SIGKILL: the first signal when the lease has ended long ago");
	e = begin;
	e.asked = true;
	is_str(ask(&e, 30, false, 10), "t", "no SIGKILL: asked to end");
	is_int(e.why, ST_ASKED, "no SIGKILL: which is why");
	ok(ask(&e, 60, false, 30)[0] == '\0' && !policy_done(&e, 60, false, 30),
	    "no SIGKILL: the lock is held until the process ends");
}

TEST(why)
{
	struct policy e = { .margin_us = 5, .kill_after_us = 30, .max_run_at_us = 10 };

	(void)ask(&e, 30, false, 9);
	ok(e.why == ST_OK && !e.killed, "the command is not ended yet");
	(void)ask(&e, 30, false, 10);
	ok(e.why == ST_MAX_RUN && !e.killed, "--max-run ends it");
	(void)ask(&e, 30, true, 11);
	ok(e.why == ST_LOST && !e.killed, "lost while it ended counts as lost");
	(void)ask(&e, 30, true, 16);
	ok(e.why == ST_LOST && e.killed, "the command was killed after its lock was lost");
	e = (struct policy){ .margin_us = 5, .kill_after_us = 3, .max_run_at_us = NEVER, .asked = true };
	(void)ask(&e, 30, false, 1);
	(void)ask(&e, 30, false, 4);
	ok(e.killed && !policy_done(&e, 30, false, 4),
	    "killed since somebody asked: the lock is held until it has ended");
	ok(policy_done(&e, 30, true, 5), "or until it is lost");
}

struct life {
	struct policy policy;
	bool punctual; /* asks at policy_due_us() at the latest; else the host sleeps now and then */
	int64_t now;
	int64_t ttl;
	int64_t valid_until;
	int64_t renew_at;
	int64_t lose_at;
	bool lost;
	bool doomed; /* its end has begun, and a late renewal won't save it */

	/* when it happened, NEVER at first */
	int64_t term_at, kill_at, warn_at;
	int64_t knew_at; /* that it was lost */
	int64_t max_run_term_at;
};

static void
begin(struct life *l)
{
	memset(l, 0, sizeof(*l));
	l->punctual = below(2) == 0;
	l->ttl = 30 + below(1000);
	l->now = 1000 + below(1000);
	l->valid_until = l->now + l->ttl;
	l->renew_at = l->now + l->ttl / 3;
	l->lose_at = below(3) == 0 ? l->now + 1 + below(5 * l->ttl) : NEVER;
	l->policy.margin_us = below(l->ttl / 3 + 1);
	l->policy.kill_after_us = below(below(2) == 0 ? 10 : 2000);
	l->policy.max_run_at_us = below(2) == 0 ? l->now + 1 + below(5 * l->ttl) : NEVER;
	l->policy.only_warn = below(4) == 0;
	l->term_at = l->kill_at = l->warn_at = l->knew_at = l->max_run_term_at = NEVER;
}

static void
note_order(struct life *l, char order)
{
	const bool max_run = l->now >= l->policy.max_run_at_us;

	if (order == 'w') {
		each(l->warn_at == NEVER && l->policy.only_warn, "a second warning");
		each(l->lost || l->now >= l->valid_until, "a warning without a cause");
		l->warn_at = l->now;
		return;
	}
	each(max_run || l->doomed, "%c without a cause", order);
	each(l->kill_at == NEVER, "%c when it was killed", order);
	if (order == 't') {
		each(l->term_at == NEVER, "a second first signal");
		each(l->policy.only_warn || l->now < l->valid_until, "the first signal when the lease has ended");
		l->term_at = l->now;
		l->max_run_term_at = l->doomed ? NEVER : l->now;
	} else
		l->kill_at = l->now;
}

/* Whatever the caller does: what must have happened by now. */
static void
check(const struct life *l)
{
	const struct policy *e = &l->policy;
	const bool protect = !e->only_warn;

	if (protect && l->now >= l->valid_until)
		each(l->kill_at != NEVER, "alive at %" PRId64 " behind its lease", l->now - l->valid_until);
	if (protect && (l->lost || l->now >= l->valid_until - e->margin_us))
		each(l->term_at != NEVER || l->kill_at != NEVER, "no signal, %" PRId64 " before the end",
		    l->valid_until - l->now);
	if (protect && l->knew_at != NEVER && l->now >= l->knew_at + e->margin_us)
		each(l->kill_at != NEVER, "alive long after it was lost");
	if (e->only_warn && (l->lost || l->now >= l->valid_until) && l->kill_at == NEVER)
		each(l->warn_at != NEVER, "no warning");
	if (l->now >= e->max_run_at_us)
		each(l->term_at != NEVER || l->kill_at != NEVER, "runs longer than --max-run");
	if (l->max_run_term_at != NEVER && e->kill_after_us > 0 && l->now >= l->max_run_term_at + e->kill_after_us)
		each(l->kill_at != NEVER, "alive long after --max-run");
	each(e->killed == (l->kill_at != NEVER), "it has forgotten what it did");
	each(policy_due_us(e, l->valid_until) > l->now, "asks to be asked at once");
}

/* For one who always asks in time. */
static void
check_punctual(const struct life *l)
{
	const struct policy *e = &l->policy;

	if (l->kill_at == l->now) {
		each(e->only_warn || l->now <= l->valid_until, "killed %" PRId64 " too late", l->now - l->valid_until);
		each(l->term_at != NEVER || e->margin_us == 0, "killed without a first signal");
	}
	if (l->kill_at == l->now && l->term_at != NEVER && l->max_run_term_at == NEVER && !e->only_warn &&
	    l->knew_at == NEVER)
		each(l->now >= l->term_at + e->margin_us || l->now >= l->valid_until,
		    "killed too soon after the first signal");
	if (l->kill_at == l->now && l->max_run_term_at != NEVER && !l->doomed)
		each(e->kill_after_us > 0 && l->now >= l->max_run_term_at + e->kill_after_us,
		    "killed too soon after --max-run");
}

/* To the next instant at which something happens; renewals come, or fail for a while. */
static void
move_on(struct life *l)
{
	int64_t until = clock_sooner(policy_due_us(&l->policy, l->valid_until), clock_sooner(l->renew_at, l->lose_at));

	if (until == NEVER || below(8) == 0)
		until = l->now + 1;
	else if (l->punctual)
		until = below(3) == 0 ? l->now + 1 + below(until - l->now) : until;
	else
		until += below(2) == 0 ? below(l->ttl) : 0;
	l->now = until;
	if (l->now >= l->lose_at) {
		l->lost = true;
		l->lose_at = NEVER;
	}
	if (l->now >= l->renew_at) {
		if (below(3) > 0 && !l->lost && l->now < l->valid_until)
			l->valid_until = l->now + l->ttl;
		l->renew_at = l->now < l->valid_until ? l->now + 1 + below(l->ttl / 3) : NEVER;
	}
}

static void
live(struct life *l)
{
	const char *orders;

	begin(l);
	for (int asked = 0; asked < 60; asked++) {
		if (l->lost && l->knew_at == NEVER)
			l->knew_at = l->now;
		if (!l->policy.only_warn && (l->lost || l->now >= l->valid_until - l->policy.margin_us))
			l->doomed = true;
		orders = ask(&l->policy, l->valid_until, l->lost, l->now);
		each(strlen(orders) < ORDERS_MAX, "orders without an end: %s", orders);
		for (size_t i = 0; orders[i] != '\0'; i++)
			note_order(l, orders[i]);
		check(l);
		if (l->punctual)
			check_punctual(l);
		move_on(l);
	}
}

TEST(random_lives)
{
	struct life life;

	for (int i = 0; i < 20000; i++)
		live(&life);
	each_ok("random lives");
}
