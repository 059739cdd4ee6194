/* SPDX-License-Identifier: MIT */
#include "run/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "lock/lease.h"
#include "lock/loss.h"
#include "run/child.h"
#include "run/death_pipe.h"
#include "run/hook.h"
#include "run/keepalive.h"
#include "run/kill_policy.h"
#include "run/terminal.h"

#define THREAD_RETRY_US 1000000 /* pause before the next try to start the thread */
#define OUTCOME_SIZE 32		/* a word and a number */
#define GROUP_CHECK_US 100000	/* not every end of a process left behind is signalled */

struct supervisor {
	const struct supervision *plan;
	struct backend *backend;
	const struct lease *lease;
	int64_t began_us; /* the lock was held by then */
	struct child child;
	struct kill_policy policy;
	struct keepalive *keepalive;
	struct keepalive_state state;
	int64_t start_thread_at_us; /* CLOCK_NEVER: it runs already */
	bool alerted;		    /* something happened to the lock before the thread ran */
	int alarm;
	struct terminal terminal;
	struct death_pipe death_pipe;
	struct hook hook;
	bool shares_signals; /* the command was started in the group of dlock */
	bool ended_by_terminal;
	bool released;	  /* by somebody else */
	bool says_outage; /* the user was told that a renewal has failed */
};

/* -- Ending the command ----------------------------------------------------- */

static void
send_signal(const struct supervisor *s, int signal)
{
	char name[SIGNAL_NAME_SIZE];

	child_signal(&s->child, signal);
	log_debug(&s->plan->log, "sent %s to the command", signals_name(signal, name));
}

/* Say why the command is ended; if the lock is lost, run --exec-on-lost. */
static void
say_why(struct supervisor *s, enum kill_policy_order order)
{
	char end[100] = "; ending the command", length[32], reason[sizeof(s->state.err.text) + 64];
	char name[SIGNAL_NAME_SIZE];

	if (order == KILL_POLICY_WARN)
		(void)snprintf(end, sizeof(end), "; %s without the lock",
		    s->child.kept != NULL ? "the process continues" : "the command continues");
	else if (s->child.kept != NULL)
		(void)snprintf(end, sizeof(end), "; sent %s to process %ld",
		    signals_name(order == KILL_POLICY_KILL ? SIGKILL : s->plan->first_signal, name),
		    (long)s->child.pid);
	if (s->policy.why == KILL_POLICY_MAX_RUN && order != KILL_POLICY_WARN) {
		duration_show(s->plan->max_run_us / 1000, length, sizeof(length));
		log_warn(&s->plan->log, "%s: the command has run for %s (--max-run); ending it", s->plan->shown_key,
		    length);
		return;
	}
	(void)snprintf(reason, sizeof(reason), "the %s%s%s",
	    s->state.lost ? "lock is lost" : "lease could not be renewed", s->state.err.text[0] != '\0' ? ": " : "",
	    s->state.err.text);
	log_warn(&s->plan->log, "%s: %s%s", s->plan->shown_key, reason, end);
	hook_start(&s->hook, reason);
}

/* An outage that ends before the lease does would leave no trace otherwise. */
static void
say_outage(struct supervisor *s)
{
	const bool fails = s->state.failed_since_us != 0;
	char length[32];

	if (s->plan->quiet || s->state.lost || s->policy.why != KILL_POLICY_NOT || fails == s->says_outage)
		return;
	s->says_outage = fails;
	duration_show((fails ? s->state.valid_until_us - clock_now_us() : s->state.outage_us) / 1000, length,
	    sizeof(length));
	if (fails)
		log_warn(&s->plan->log, "%s: a renewal failed: %s; trying again, the lease ends in %s",
		    s->plan->shown_key, s->state.err.text, length);
	else
		log_warn(&s->plan->log, "%s: the lease is renewed again, after an outage of %s", s->plan->shown_key,
		    length);
}

/* Carry out what the clock and the state of the lease require. */
static void
obey_clock(struct supervisor *s)
{
	enum kill_policy_order order;
	enum kill_policy_why before;

	for (;;) {
		before = s->policy.why;
		order = kill_policy_next(&s->policy, s->state.valid_until_us, s->state.lost, clock_now_us());
		if (order == KILL_POLICY_KILL) {
			send_signal(s, SIGKILL);
			death_pipe_extend(&s->death_pipe,
			    CLOCK_NEVER); /* the command is killed, but may need time to end */
		} else if (order == KILL_POLICY_TERM)
			send_signal(s, s->plan->first_signal);
		if (s->policy.why != before || order == KILL_POLICY_WARN)
			say_why(s, order);
		if (order == KILL_POLICY_TERM && s->plan->first_signal != SIGKILL)
			send_signal(s, SIGCONT); /* wake a stopped command, which would not get the signal */
		if (order == KILL_POLICY_WAIT)
			return;
	}
}

/* -- The thread that renews ------------------------------------------------- */

static void
start_thread_when_due(struct supervisor *s)
{
	const int64_t now = clock_now_us();
	int error;

	if (now < s->start_thread_at_us)
		return;
	error = keepalive_start(s->keepalive);
	if (error != 0)
		log_warn(&s->plan->log, "%s: cannot start a thread to renew the lease: %s", s->plan->shown_key,
		    strerror(error));
	s->start_thread_at_us = error == 0 ? CLOCK_NEVER : clock_add(now, THREAD_RETRY_US);
}

/* -- The terminal and job control ------------------------------------------- */

/*
 * Stop as a shell expects of a job, with the whole group of dlock, as the terminal would have stopped it.  The SIGCONT
 * that ends the stop is not passed on as well: that could cancel the next ^Z.  A timer continues dlock when the command
 * must be ended.
 */
static void
stop(struct supervisor *s)
{
	bool with_group = terminal_take(&s->terminal, s->child.group);
	bool continued;
	char left[32];

	if (!s->plan->quiet) {
		duration_show((s->state.valid_until_us - clock_now_us()) / 1000, left, sizeof(left));
		log_warn(&s->plan->log,
		    "%s: stopped; if it is not continued, the command is ended when the lease ends, in %s",
		    s->plan->shown_key, left);
	}
	do {
		continued = signals_stop(with_group, kill_policy_due_us(&s->policy, s->state.valid_until_us));
		with_group = false; /* the others are still stopped */
		keepalive_read(s->keepalive, &s->state);
		obey_clock(s); /* the lease may have ended meanwhile: then the command must not continue */
	} while (!continued && s->policy.why == KILL_POLICY_NOT);
}

/* The command was stopped: stop with it and continue with it, or give it the terminal if it stopped to get that. */
static void
stop_with_command(struct supervisor *s, int signal)
{
	const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;

	if (!terminal_is_job_stop(&s->terminal, s->child.group, signal))
		return;
	if (!(wants_terminal && terminal_is_of(&s->terminal, getpgrp())) && terminal_has_job_control())
		stop(s);
	if (s->policy.killed)
		return;
	if ((wants_terminal || terminal_is_used()) && s->child.group != 0 && terminal_is_of(&s->terminal, getpgrp()))
		(void)tcsetpgrp(s->terminal.fd, s->child.group);
	send_signal(s, SIGCONT);
}

/* Take the terminal back after the command. */
static void
take_back_terminal(struct supervisor *s)
{
	const int signal = WIFSIGNALED(s->child.status) ? WTERMSIG(s->child.status) : 0;

	s->ended_by_terminal = terminal_end(&s->terminal, s->child.group,
	    s->policy.why == KILL_POLICY_NOT ? signal : 0);
}

/* -- Events ----------------------------------------------------------------- */

static void
reap(struct supervisor *s)
{
	enum child_event event;

	while ((event = child_reap(&s->child)) != CHILD_NOTHING) {
		if (event == CHILD_STOPPED)
			stop_with_command(s, WSTOPSIG(s->child.status));
		else if (event == CHILD_STRANGER)
			hook_reaped(&s->hook, s->child.stranger, s->child.stranger_status);
	}
}

static void
take_signals(struct supervisor *s)
{
	enum signal_origin origin;
	int signal;

	while ((signal = signals_next(s->plan->signals, &origin)) != 0) {
		if (signal == SIGCHLD || s->child.kept != NULL)
			continue;
		terminal_note(&s->terminal, signal, origin);
		if (origin == SIGNAL_OF_TERMINAL && s->shares_signals && getpgid(s->child.pid) == getpgrp())
			continue; /* the command got it already */
		send_signal(s, signal);
	}
	reap(s);
}

/* The next instant at which to act, apart from the end of the lease. */
static int64_t
next_instant(const struct supervisor *s)
{
	const int64_t at = clock_sooner(s->policy.until_us, s->start_thread_at_us);

	return s->child.ended ? clock_sooner(at, clock_add(clock_now_us(), GROUP_CHECK_US)) : at;
}

/* Has the lock of a process been released by somebody else, or is it lost and nothing more to do? */
static bool
is_over(struct supervisor *s)
{
	const struct keeping *k = s->plan->keeping;

	if (k == NULL)
		return false;
	s->released = s->released || s->state.released || k->asked_to_end(k->context);
	return s->released || s->policy.killed || s->policy.warned ||
	    (!k->kill && s->policy.why == KILL_POLICY_LOST &&
		(s->state.lost || clock_now_us() >= s->state.valid_until_us));
}

static void
watch(struct supervisor *s)
{
	const struct keeping *k = s->plan->keeping;
	struct pollfd fds[6] = {
		{ .fd = s->plan->signals->fd, .events = POLLIN },
		{ .fd = s->alarm, .events = POLLIN },
		{ .fd = keepalive_fd(s->keepalive), .events = POLLIN },
		{ .events = POLLIN },
		{ .fd = k != NULL ? k->process->fd : -1, .events = POLLIN },
		{ .fd = k != NULL ? k->release_fd : -1, .events = POLLIN },
	};

	for (;;) {
		keepalive_read(s->keepalive, &s->state);
		if (!is_over(s)) {
			obey_clock(s);
			say_outage(s);
		}
		if (child_gone(&s->child) || is_over(s))
			return;
		start_thread_when_due(s);
		keepalive_set_alarm(s->keepalive, s->alarm, next_instant(s),
		    k != NULL && s->policy.lead_us == CLOCK_NEVER ? 0 : s->policy.lead_us);
		fds[3].fd = s->alerted ? -1 : keepalive_alert_fd(s->keepalive);
		fds[3].revents = 0;
		if (poll(fds, k != NULL ? 6 : 4, -1) < 0 && errno != EINTR)
			continue;
		if (fds[3].revents != 0) {
			s->alerted = true;
			s->start_thread_at_us = 0; /* it will look */
		}
		keepalive_read(s->keepalive, &s->state);
		if (!is_over(s))
			obey_clock(s);
		take_signals(s);
	}
}

/* -- Start and end ---------------------------------------------------------- */

static bool
is_lost(const struct supervisor *s)
{
	return s->policy.why == KILL_POLICY_LOST || s->policy.warned;
}

static bool
has_succeeded(const struct supervisor *s)
{
	return s->policy.why == KILL_POLICY_NOT && !is_lost(s) && WIFEXITED(s->child.status) &&
	    WEXITSTATUS(s->child.status) == 0;
}

/* How long the lock is kept after the command; *kept_by: by which option, if not --min-hold. */
static int64_t
keep_us(const struct supervisor *s, const char **kept_by)
{
	const int64_t held = clock_now_us() - s->began_us;
	int64_t total = s->plan->min_hold_us;

	if (has_succeeded(s) && s->plan->once_per_us > total) {
		total = s->plan->once_per_us;
		*kept_by = "once-per";
	}
	return total > held ? total - held : 0;
}

/* The outcome for the history: see lock/history.h. */
static void
write_outcome(const struct supervisor *s, enum status start, char outcome[OUTCOME_SIZE])
{
	const int status = s->child.status;
	const char *word = is_lost(s) ? "lost" : s->policy.why == KILL_POLICY_MAX_RUN ? "max-run" : "ran";

	if (s->plan->keeping != NULL) /* how that process ends is not known */
		(void)snprintf(outcome, OUTCOME_SIZE, "%s -", is_lost(s) ? "lost" : "released");
	else if (start == ST_OK)
		(void)snprintf(outcome, OUTCOME_SIZE, "%s %d", word,
		    WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
	else
		(void)snprintf(outcome, OUTCOME_SIZE, "exec-failed %d", (int)start);
}

/* `start` is the status with which the command was started. */
static void
release(struct supervisor *s, enum status start, struct supervised *result)
{
	const bool ran = start == ST_OK;
	struct lease lease = *s->lease;
	struct loss loss; /* large, and rarely needed */
	const int64_t left = ran ? keep_us(s, &lease.kept_by) : 0;
	char outcome[OUTCOME_SIZE];
	enum ownership ownership;
	struct err err;
	enum status status;

	if (s->released)
		return;
	write_outcome(s, start, outcome);
	lease.outcome = outcome;
	status = s->backend->ops->release(s->backend, &lease, left > 0 ? (left + 999) / 1000 : 0, &ownership, &err);
	if (status == ST_NO) {
		loss.ownership = ownership;
		loss.interrupt_fd = -1;
		(void)loss_explain(s->backend, &lease, &loss, &err);
		if (loss_other_holder(&loss.view, lease.token) != NULL)
			result->holder = loss.view.holder;
	}
	if (status == ST_OK || is_lost(s) || (status == ST_NO && !ran))
		return;
	if (status == ST_NO) {
		s->policy.why = KILL_POLICY_LOST;
		hook_start(&s->hook, err.text);
	}
	log_warn(&s->plan->log,
	    status == ST_NO ? "%s: the lock was lost: %s" : "%s: not released: %s; it ends with its lease",
	    s->plan->shown_key, err.text);
}

/* How long after the end of validity dlock may act before it is killed: most of the rest of the lease. */
static int64_t
grace_us(int64_t ttl_us)
{
	return lease_drift_us(ttl_us) / 4 * 3;
}

static enum status
prepare(struct supervisor *s, struct err *err)
{
	const int64_t margin = lease_kill_margin_us(s->lease->ttl_ms * 1000, s->plan->kill_after_us);
	const int64_t valid_until = s->lease->valid_until_us;

	s->keepalive = keepalive_new(s->backend, s->lease, s->plan->only_warn ? 0 : margin, &s->death_pipe);
	s->alarm = clock_alarm_open();
	if (s->keepalive == NULL || s->alarm < 0 || !signals_watch_command(s->plan->signals))
		return err_system(err, errno, "cannot supervise the command");
	s->start_thread_at_us = keepalive_due_us(s->keepalive);
	s->state.valid_until_us = valid_until;
	s->policy.kill_after_us = s->plan->kill_after_us;
	s->policy.margin_us = margin;
	s->policy.only_warn = s->plan->only_warn;
	s->policy.max_run_at_us = s->plan->max_run_us > 0 ? clock_add(clock_now_us(), s->plan->max_run_us)
							  : CLOCK_NEVER;
	s->policy.no_kill = s->plan->keeping != NULL && !s->plan->keeping->kill;
	if (s->plan->keeping == NULL)
		terminal_open(&s->terminal);
	/* Before the timers are set, which would kill dlock without a message. */
	if (clock_now_us() >= valid_until - margin)
		return child_too_late(err);
	return death_pipe_open(&s->death_pipe, s->plan->only_warn ? CLOCK_NEVER : valid_until, margin,
	    grace_us(s->lease->ttl_ms * 1000), err);
}

/* Use real-time scheduling, if permitted.  Call it after the start of the command, which would inherit it. */
static void
be_urgent(void)
{
	const struct sched_param least = { .sched_priority = 1 };

	(void)sched_setscheduler(0, SCHED_FIFO, &least);
}

static enum status
start_keeping(struct supervisor *s, struct err *err)
{
	const struct keeping *k = s->plan->keeping;

	child_adopt(&s->child, k->process);
	if (!s->plan->only_warn && !death_pipe_bind_process(&s->death_pipe, k->process->pid, s->plan->first_signal) &&
	    errno != ESRCH)
		return err_system(err, errno, "cannot arrange for a signal at the end of dlock");
	if (kept_ended(k->process)) /* before this, its number may have become that of another process */
		return err_set(err, ST_USAGE, "--keep: process %ld has ended", (long)k->process->pid);
	be_urgent();
	return k->started(k->context, err);
}

static enum status
start(struct supervisor *s, struct err *err)
{
	const bool give = !s->plan->foreground && terminal_is_used() && terminal_is_of(&s->terminal, getpgrp());
	const struct child_plan plan = {
		.argv = s->plan->argv,
		.environment = s->plan->environment,
		.own_group = !s->plan->foreground,
		.terminal = give ? s->terminal.fd : -1,
		.death_pipe = &s->death_pipe,
		.until_us = s->lease->valid_until_us,
		.signals = s->plan->signals,
	};
	const enum status status = child_start(&plan, &s->child, err);
	if (status != ST_OK)
		return status;
	be_urgent();
	log_debug(&s->plan->log, "the command runs as process %ld", (long)s->child.pid);
	take_signals(s); /* the command did not get signals that arrived before it was started */
	s->shares_signals = s->plan->foreground;
	return ST_OK;
}

static enum outcome
outcome_of(const struct supervisor *s)
{
	if (is_lost(s))
		return OUTCOME_LOST;
	return s->policy.why == KILL_POLICY_MAX_RUN ? OUTCOME_MAX_RUN : OUTCOME_RAN;
}

enum status
supervise(const struct supervision *plan, struct backend *backend, const struct lease *lease, struct supervised *result,
    struct err *err)
{
	struct supervisor s = { .plan = plan,
		.backend = backend,
		.lease = lease,
		.began_us = clock_now_us(),
		.alarm = -1,
		.terminal = { .fd = -1 },
		.death_pipe = { .ends = { -1, -1 } },
		.hook = { plan->exec_on_lost, plan->environment, plan->shown_key, plan->signals, &plan->log, 0, 0 } };
	enum status status;

	memset(result, 0, sizeof(*result));
	result->outcome = OUTCOME_NOT_STARTED;
	status = prepare(&s, err);
	if (status == ST_OK)
		status = plan->keeping != NULL ? start_keeping(&s, err) : start(&s, err);
	if (status == ST_OK)
		watch(&s);
	death_pipe_close(&s.death_pipe);
	take_back_terminal(&s);
	if (s.keepalive != NULL)
		keepalive_stop(s.keepalive);
	release(&s, status, result);
	hook_finish(&s.hook);
	if (status == ST_OK)
		result->outcome = outcome_of(&s);
	result->status = s.child.status;
	result->ended_by_terminal = s.ended_by_terminal;
	result->held_us = clock_now_us() - lease->sent_us;
	terminal_close(&s.terminal);
	keepalive_free(s.keepalive);
	if (s.alarm >= 0)
		(void)close(s.alarm);
	return status;
}
