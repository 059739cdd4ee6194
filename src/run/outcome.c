/* SPDX-License-Identifier: MIT */
#include "run/outcome.h"

#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lock/loss.h"
#include "run/messages.h"

#define OUTCOME_SIZE 32 /* a word and a number */
#define PAUSE_US 500000 /* before the next try to release */

/* How long the lock is kept after the command; *kept_by: by which option, if not --min-hold. */
static int64_t
keep_us(const struct supervision *plan, int64_t began_us, const struct supervised *result, const char **kept_by)
{
	const int64_t held = clock_now_us() - began_us;
	int64_t total = plan->min_hold_us;

	if (result->outcome == OUTCOME_RAN && WIFEXITED(result->status) && WEXITSTATUS(result->status) == 0 &&
	    plan->once_per_us > total) {
		total = plan->once_per_us;
		*kept_by = "once-per";
	}
	return total > held ? total - held : 0;
}

/* The outcome for the history: see lock/history.h. */
static void
write_outcome(const struct supervision *plan, enum status start, const struct supervised *result,
    char outcome[OUTCOME_SIZE])
{
	static const char *const words[] = { [OUTCOME_RAN] = "ran",
		[OUTCOME_LOST] = "lost",
		[OUTCOME_MAX_RUN] = "max-run",
		[OUTCOME_NOT_STARTED] = "exec-failed" };
	const int status = result->status;

	if (plan->keeping != NULL) /* how that process ends is not known */
		(void)snprintf(outcome, OUTCOME_SIZE, "%s -", result->outcome == OUTCOME_LOST ? "lost" : "released");
	else
		(void)snprintf(outcome, OUTCOME_SIZE, "%s %d", words[result->outcome],
		    start != ST_OK	      ? (int)start
			: WIFSIGNALED(status) ? -WTERMSIG(status)
					      : WEXITSTATUS(status));
}

/* Pause before the next try.  False: a signal came that ends dlock. */
static bool
pause_for_retry(const struct supervision *plan)
{
	struct pollfd fd = { .fd = plan->signals->fd, .events = POLLIN };
	const int64_t until = clock_add(clock_now_us(), PAUSE_US);
	struct timespec left;

	while (!signals_asked_to_end(plan->signals)) {
		if (clock_now_us() >= until)
			return true;
		(void)ppoll(&fd, 1, clock_until(clock_now_us(), until, &left), NULL);
	}
	return false;
}

bool
outcome_release(const struct supervision *plan, const struct ending *e, struct supervised *result, struct err *err)
{
	const bool was_lost = result->outcome == OUTCOME_LOST;
	struct lease lease = *plan->lease;
	struct loss loss; /* large, and rarely needed */
	char outcome[OUTCOME_SIZE];
	enum ownership ownership;
	enum status status;
	int64_t left;

	write_outcome(plan, e->start, result, outcome);
	lease.outcome = outcome;
	for (;; lease.again = true) {
		left = e->start == ST_OK ? keep_us(plan, e->began_us, result, &lease.kept_by) : 0;
		status = plan->backend->service->release(plan->backend, &lease, left > 0 ? (left + 999) / 1000 : 0,
		    &ownership, err);
		if (status != ST_NO_QUORUM || was_lost || (left <= 0 && (e->hasty || !plan->records)) ||
		    clock_add(clock_now_us(), PAUSE_US) >= e->valid_until_us)
			break;
		if (!lease.again && !plan->quiet && isatty(STDERR_FILENO))
			messages_unreleased(plan, err->text, e->valid_until_us);
		if (!pause_for_retry(plan))
			break;
	}
	if (status == ST_NO) {
		loss.ownership = ownership;
		loss.interrupt_fd = -1;
		(void)loss_explain(plan->backend, &lease, &loss, err);
		if (loss_other_holder(&loss.view, lease.token) != NULL)
			result->holder = loss.view.holder;
	}
	if (status == ST_OK || was_lost || (status == ST_NO && e->start != ST_OK))
		return false;
	if (status == ST_NO)
		result->outcome = OUTCOME_LOST;
	log_warn(&plan->log,
	    status == ST_NO ? "%s: the lock was lost: %s"
		: left > 0  ? "%s: not released: %s; it ends with its lease, and is not kept"
			    : "%s: not released: %s; it ends with its lease",
	    plan->shown_key, err->text);
	return status == ST_NO;
}
