/* SPDX-License-Identifier: MIT */
#include "run/supervisor.h"

#include <errno.h>
#include <fcntl.h>
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

#define THREAD_RETRY_US 1000000 /* pause before the next try to start the thread */
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
	int terminal;
	struct death_pipe death_pipe;
	struct hook hook;
	sigset_t from_terminal; /* the signals that the group got from it, or from an outer dlock */
	sigset_t from_others;
	bool shares_signals; /* the command was started in the group of dlock */
	bool ended_by_terminal;
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
	const char *end = order == KILL_POLICY_WARN ? "; the command continues without the lock"
						    : "; ending the command";
	char length[32], reason[sizeof(s->state.err.text) + 64];

	if (s->policy.why == KILL_POLICY_MAX_RUN && order != KILL_POLICY_WARN) {
		duration_show(s->plan->max_run_us / 1000, length, sizeof(length));
		log_warn(&s->plan->log, "the command has run for %s (--max-run); ending it", length);
		return;
	}
	(void)snprintf(reason, sizeof(reason), "the %s%s%s",
	    s->state.lost ? "lock is lost" : "lease could not be renewed", s->state.err.text[0] != '\0' ? ": " : "",
	    s->state.err.text);
	log_warn(&s->plan->log, "%s: %s%s", s->plan->shown_key, reason, end);
	hook_start(&s->hook, reason);
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
		log_warn(&s->plan->log, "cannot start a thread to renew the lease: %s", strerror(error));
	s->start_thread_at_us = error == 0 ? CLOCK_NEVER : clock_add(now, THREAD_RETRY_US);
}

/* -- The terminal and job control ------------------------------------------- */

/*
 * The process group of the command gets the controlling terminal while it runs in the foreground, so that ^C, ^Z and
 * full-screen programs work as without dlock.
 */

/* Is this group in the foreground? */
static bool
has_terminal(const struct supervisor *s, pid_t group)
{
	return s->terminal >= 0 && group > 0 && tcgetpgrp(s->terminal) == group;
}

/* Take the terminal back if the command has it.  True if it had. */
static bool
take_terminal(const struct supervisor *s)
{
	return has_terminal(s, s->child.group) && tcsetpgrp(s->terminal, getpgrp()) == 0;
}

/*
 * Are standard input and output terminals?  If not, another process of the group, such as a pager in the same pipeline,
 * may need the terminal, and the command gets it only on demand.
 */
static bool
uses_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Is there a shell that could continue dlock after a stop? */
static bool
has_job_control(void)
{
	const pid_t parent = getppid();

	/* If the parent is outside the session, the group is orphaned, and the kernel would not let it be stopped. */
	return parent > 0 && getsid(parent) == getsid(0);
}

/* Was it the terminal that stopped the command? */
static bool
is_job_stop(const struct supervisor *s, int signal)
{
	if (s->terminal < 0)
		return false;
	return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU || has_terminal(s, s->child.group);
}

/*
 * Stop as a shell expects of a job, with the whole group of dlock, as the terminal would have stopped it.  The SIGCONT
 * that ends the stop is not passed on as well: that could cancel the next ^Z.  A timer continues dlock when the command
 * must be ended.
 */
static void
stop(struct supervisor *s)
{
	bool with_group = take_terminal(s);
	bool continued;

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

	if (!is_job_stop(s, signal))
		return;
	if (!(wants_terminal && has_terminal(s, getpgrp())) && has_job_control())
		stop(s);
	if (s->policy.killed)
		return;
	if ((wants_terminal || uses_terminal()) && s->child.group != 0 && has_terminal(s, getpgrp()))
		(void)tcsetpgrp(s->terminal, s->child.group);
	send_signal(s, SIGCONT);
}

/*
 * Did ^C or ^\ end the command?  The terminal sends these signals to its foreground group: to that of dlock, or only to
 * that of the command.  In the second case, send the signal to the group of dlock now, so that a calling script gets
 * it, too.
 */
static void
take_back_terminal(struct supervisor *s)
{
	const bool had_terminal = take_terminal(s);
	const int signal = WIFSIGNALED(s->child.status) ? WTERMSIG(s->child.status) : 0;

	if (s->policy.why != KILL_POLICY_NOT || (signal != SIGINT && signal != SIGQUIT))
		return;
	s->ended_by_terminal = sigismember(&s->from_terminal, signal) == 1;
	if (s->ended_by_terminal || !had_terminal || sigismember(&s->from_others, signal) == 1)
		return;
	s->ended_by_terminal = true;
	(void)kill(0, signal); /* dlock itself has it blocked */
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
		if (signal == SIGCHLD)
			continue;
		(void)sigaddset(origin == SIGNAL_OF_OTHERS ? &s->from_others : &s->from_terminal, signal);
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

static void
watch(struct supervisor *s)
{
	struct pollfd fds[4] = {
		{ .fd = s->plan->signals->fd, .events = POLLIN },
		{ .fd = s->alarm, .events = POLLIN },
		{ .fd = keepalive_fd(s->keepalive), .events = POLLIN },
		{ .events = POLLIN },
	};

	for (;;) {
		keepalive_read(s->keepalive, &s->state);
		obey_clock(s);
		if (child_gone(&s->child))
			return;
		start_thread_when_due(s);
		keepalive_set_alarm(s->keepalive, s->alarm, next_instant(s), s->policy.lead_us);
		fds[3].fd = s->alerted ? -1 : keepalive_alert_fd(s->keepalive);
		fds[3].revents = 0;
		if (poll(fds, 4, -1) < 0 && errno != EINTR)
			continue;
		if (fds[3].revents != 0) {
			s->alerted = true;
			s->start_thread_at_us = 0; /* it will look */
		}
		keepalive_read(s->keepalive, &s->state);
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

static void
release(struct supervisor *s, bool ran, struct supervised *result)
{
	struct lease lease = *s->lease;
	struct loss loss = { .interrupt_fd = -1 };
	const int64_t left = ran ? keep_us(s, &lease.kept_by) : 0;
	enum ownership ownership;
	struct err err;
	enum status status;

	status = s->backend->ops->release(s->backend, &lease, left > 0 ? (left + 999) / 1000 : 0, &ownership, &err);
	if (status == ST_NO) {
		loss.ownership = ownership;
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
	const int64_t valid_until = s->lease->valid_until_us;

	s->keepalive = keepalive_new(s->backend, s->lease, &s->death_pipe);
	s->alarm = clock_alarm_open();
	if (s->keepalive == NULL || s->alarm < 0 || !signals_watch_command(s->plan->signals))
		return err_system(err, errno, "cannot supervise the command");
	s->start_thread_at_us = keepalive_due_us(s->keepalive);
	s->state.valid_until_us = valid_until;
	s->policy.kill_after_us = s->plan->kill_after_us;
	s->policy.margin_us = lease_kill_margin_us(s->lease->ttl_ms * 1000, s->plan->kill_after_us);
	s->policy.only_warn = s->plan->only_warn;
	s->policy.max_run_at_us = s->plan->max_run_us > 0 ? clock_add(clock_now_us(), s->plan->max_run_us)
							  : CLOCK_NEVER;
	s->terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	(void)sigemptyset(&s->from_terminal);
	(void)sigemptyset(&s->from_others);
	/* Before the timers are set, which would kill dlock without a message. */
	if (clock_now_us() >= valid_until - s->policy.margin_us)
		return child_too_late(err);
	return death_pipe_open(&s->death_pipe, s->plan->only_warn ? CLOCK_NEVER : valid_until,
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
start(struct supervisor *s, struct err *err)
{
	const bool give = !s->plan->foreground && uses_terminal() && has_terminal(s, getpgrp());
	const struct child_plan plan = {
		.argv = s->plan->argv,
		.environment = s->plan->environment,
		.own_group = !s->plan->foreground,
		.terminal = give ? s->terminal : -1,
		.death_pipe = &s->death_pipe,
		.until_us = s->lease->valid_until_us,
		.signals = s->plan->signals,
	};

	enum status status;

	status = child_start(&plan, &s->child, err);
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
		.terminal = -1,
		.death_pipe = { .ends = { -1, -1 } },
		.hook = { plan->exec_on_lost, plan->environment, plan->shown_key, plan->signals, &plan->log, 0, 0 } };
	enum status status;

	memset(result, 0, sizeof(*result));
	result->outcome = OUTCOME_NOT_STARTED;
	status = prepare(&s, err);
	if (status == ST_OK)
		status = start(&s, err);
	if (status == ST_OK)
		watch(&s);
	death_pipe_close(&s.death_pipe);
	take_back_terminal(&s);
	if (s.keepalive != NULL)
		keepalive_stop(s.keepalive);
	release(&s, status == ST_OK, result);
	hook_finish(&s.hook);
	if (status == ST_OK)
		result->outcome = outcome_of(&s);
	result->status = s.child.status;
	result->ended_by_terminal = s.ended_by_terminal;
	result->held_us = clock_now_us() - lease->sent_us;
	if (s.terminal >= 0)
		(void)close(s.terminal);
	keepalive_free(s.keepalive);
	if (s.alarm >= 0)
		(void)close(s.alarm);
	return status;
}
