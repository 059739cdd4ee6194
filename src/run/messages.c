/* SPDX-License-Identifier: MIT */
#include "run/messages.h"

#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"

enum {
	LENGTH_SIZE = 32 /* of a duration */
};

/* What is done about a lost lock. */
static void
show_order(const struct supervision *plan, enum kill_policy_order order, pid_t forbidden, char *shown, size_t size)
{
	const struct keeping *k = plan->keeping;
	char name[SIGNAL_NAME_SIZE];

	if (forbidden != 0)
		(void)snprintf(shown, size, "may not signal process %ld; it CONTINUES without the lock",
		    (long)forbidden);
	else if (order == KILL_POLICY_WARN)
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
    pid_t forbidden, char reason[MESSAGES_REASON_SIZE])
{
	char shown[100];

	show_order(plan, order, forbidden, shown, sizeof(shown));
	(void)snprintf(reason, MESSAGES_REASON_SIZE, "the %s%s%s",
	    state->lost ? "lock is lost" : "lease could not be renewed", state->err.text[0] != '\0' ? ": " : "",
	    state->err.text);
	log_warn(&plan->log, "%s: %s; %s", plan->shown_key, reason, shown);
}

void
messages_max_run(const struct supervision *plan, pid_t forbidden)
{
	char length[LENGTH_SIZE], shown[100] = "ending it";

	if (forbidden != 0)
		(void)snprintf(shown, sizeof(shown), "may not signal process %ld; it CONTINUES", (long)forbidden);
	duration_show(plan->max_run_us / 1000, length, sizeof(length));
	log_warn(&plan->log, "%s: the command has run for %s (--max-run); %s", plan->shown_key, length, shown);
}

void
messages_forbidden(const struct supervision *plan, struct forbidden *f, int signal, pid_t pid)
{
	char name[SIGNAL_NAME_SIZE];

	/* SIGCONT may be sent to any process of the session. */
	if (pid == 0 || signal == SIGCONT || (pid == f->pid && sigismember(&f->not_sent, signal)))
		return;
	if (pid != f->pid)
		(void)sigemptyset(&f->not_sent);
	f->pid = pid;
	(void)sigaddset(&f->not_sent, signal);
	log_warn(&plan->log, "%s: may not send %s to process %ld; it CONTINUES", plan->shown_key,
	    signals_name(signal, name), (long)pid);
}

void
messages_left_behind(const struct supervision *plan, const struct child *child, pid_t except)
{
	char name[PROCESS_NAME_SIZE], shown[4 * PROCESS_NAME_SIZE];
	const pid_t pid = child_left_behind(child, except, name);

	if (pid != 0)
		log_warn(&plan->log, "%s: process %ld (%s) of COMMAND runs on without the lock", plan->shown_key,
		    (long)pid, text_show(name, shown, sizeof(shown)));
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
messages_unreleased(const struct supervision *plan, const char *why, int64_t valid_until_us)
{
	char left[LENGTH_SIZE];

	duration_show((valid_until_us - clock_now_us()) / 1000, left, sizeof(left));
	log_warn(&plan->log, "%s: not released yet: %s; trying again until the lease ends, in %s", plan->shown_key, why,
	    left);
}

void
messages_stopped(const struct supervision *plan, int64_t valid_until_us)
{
	char left[LENGTH_SIZE];

	duration_show((valid_until_us - clock_now_us()) / 1000, left, sizeof(left));
	log_warn(&plan->log, "%s: stopped; if it is not continued, the %s when the lease ends, in %s", plan->shown_key,
	    plan->only_warn ? "lock is lost" : "command is ended", left);
}
