/* SPDX-License-Identifier: MIT */
#include "run/messages.h"

#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/duration.h"

enum {
	LENGTH_SIZE = 32 /* of a duration */
};

/* What is done about a lost lock. */
static void
show_order(const struct supervision *plan, enum kill_policy_order order, char *shown, size_t size)
{
	const struct keeping *k = plan->keeping;
	char name[SIGNAL_NAME_SIZE];

	if (order == KILL_POLICY_WARN)
		(void)snprintf(shown, size, "the %s continues without the lock", k != NULL ? "process" : "command");
	else if (k == NULL)
		(void)snprintf(shown, size, "ending the command");
	else
		(void)snprintf(shown, size, "sent %s to process %ld",
		    signals_name(order == KILL_POLICY_KILL ? SIGKILL : plan->first_signal, name),
		    (long)k->process->pid);
}

void
messages_lost(const struct supervision *plan, const struct keepalive_state *state, enum kill_policy_order order,
    char reason[MESSAGES_REASON_SIZE])
{
	char shown[100];

	show_order(plan, order, shown, sizeof(shown));
	(void)snprintf(reason, MESSAGES_REASON_SIZE, "the %s%s%s",
	    state->lost ? "lock is lost" : "lease could not be renewed", state->err.text[0] != '\0' ? ": " : "",
	    state->err.text);
	log_warn(&plan->log, "%s: %s; %s", plan->shown_key, reason, shown);
}

void
messages_max_run(const struct supervision *plan)
{
	char length[LENGTH_SIZE];

	duration_show(plan->max_run_us / 1000, length, sizeof(length));
	log_warn(&plan->log, "%s: the command has run for %s (--max-run); ending it", plan->shown_key, length);
}

void
messages_outage(const struct supervision *plan, const struct keepalive_state *state)
{
	const bool fails = state->failed_since_us != 0;
	char length[LENGTH_SIZE];

	duration_show((fails ? state->valid_until_us - clock_now_us() : state->outage_us) / 1000, length,
	    sizeof(length));
	if (fails)
		log_warn(&plan->log, "%s: a renewal failed: %s; trying again, the lease ends in %s", plan->shown_key,
		    state->err.text, length);
	else
		log_warn(&plan->log, "%s: the lease is renewed again, after an outage of %s", plan->shown_key, length);
}

void
messages_stopped(const struct supervision *plan, int64_t valid_until_us)
{
	char left[LENGTH_SIZE];

	duration_show((valid_until_us - clock_now_us()) / 1000, left, sizeof(left));
	log_warn(&plan->log, "%s: stopped; if it is not continued, the %s when the lease ends, in %s", plan->shown_key,
	    plan->only_warn ? "lock is lost" : "command is ended", left);
}
