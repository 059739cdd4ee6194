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
#include "lock/lease.h"
#include "run/child.h"
#include "run/death_pipe.h"
#include "run/hook.h"
#include "run/keepalive.h"
#include "run/kill_policy.h"
#include "run/messages.h"
#include "run/outcome.h"
#include "run/terminal.h"

#define THREAD_RETRY_US 1000000 /* pause before the next try to start the thread */
#define GROUP_CHECK_US 100000	/* not every end of a process left behind is signalled */

struct supervisor;

/* What is supervised: a command, or a process that runs already. */
struct subject {
	enum status (*start)(struct supervisor *, struct err *);
	bool is_child; /* it shares the terminal and the signals of dlock, which learns how it ends */
};

struct supervisor {
	const struct supervision *plan;
	const struct subject *subject;
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
	bool ended_by_terminal, asked_to_end;
	enum release_stage release; /* by somebody else */
	int release_fd;
	bool outage_reported; /* a message about a failed renewal was printed */
	struct forbidden forbidden;
};

/* -- Ending the command ----------------------------------------------------- */

/* Returns a process that may not be signalled; 0: none. */
static pid_t
send_signal(const struct supervisor *s, int signal)
{
	const pid_t forbidden = child_signal(&s->child, signal);
	char name[SIGNAL_NAME_SIZE];

	log_debug(&s->plan->log, "sent %s to the command", signals_name(signal, name));
	return forbidden;
}

/* Say why the command is ended; if the lock is lost, run --exec-on-lost. */
static void
report_end(struct supervisor *s, enum kill_policy_order order, pid_t forbidden)
{
	char reason[MESSAGES_REASON_SIZE];

	s->forbidden.pid = forbidden;
	(void)sigfillset(&s->forbidden.not_sent);
	if (s->policy.why == KILL_POLICY_MAX_RUN && order != KILL_POLICY_WARN) {
		messages_max_run(s->plan, forbidden);
		return;
	}
	messages_lost(s->plan, &s->state, order, forbidden, reason);
	hook_start(&s->hook, reason);
}

/* An outage that ends before the lease does would leave no trace otherwise. */
static void
report_outage(struct supervisor *s)
{
	const bool fails = s->state.failed_since_us != 0;

	if (s->plan->quiet || s->state.lost || s->policy.why != KILL_POLICY_NOT || fails == s->outage_reported)
		return;
	s->outage_reported = fails;
	messages_outage(s->plan, &s->state);
}

/* Carry out what the clock and the state of the lease require. */
static void
obey_clock(struct supervisor *s)
{
	enum kill_policy_order order;
	enum kill_policy_why before;
	pid_t forbidden;

	for (;;) {
		forbidden = 0;
		before = s->policy.why;
		order = kill_policy_next(&s->policy, s->state.valid_until_us, s->state.lost, clock_now_us());
		if (order == KILL_POLICY_KILL) {
			forbidden = send_signal(s, SIGKILL);
			death_pipe_extend(&s->death_pipe,
			    CLOCK_NEVER); /* the command is killed, but may need time to end */
		} else if (order == KILL_POLICY_TERM)
			forbidden = send_signal(s, s->plan->first_signal);
		if (s->policy.why != before || order == KILL_POLICY_WARN)
			report_end(s, order, forbidden);
		else
			messages_forbidden(s->plan, &s->forbidden, SIGKILL, forbidden);
		if (order == KILL_POLICY_TERM && s->plan->first_signal != SIGKILL)
			(void)send_signal(s, SIGCONT); /* wake a stopped command, which would not get the signal */
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

	if (!s->plan->quiet)
		messages_stopped(s->plan, s->state.valid_until_us);
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
	(void)send_signal(s, SIGCONT);
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
		if (signal == SIGCHLD || !s->subject->is_child)
			continue;
		terminal_note(&s->terminal, signal, origin);
		s->asked_to_end = s->asked_to_end || signal == SIGINT || signal == SIGTERM || signal == SIGQUIT;
		if (origin == SIGNAL_OF_TERMINAL && s->shares_signals && getpgid(s->child.pid) == getpgrp())
			continue; /* the command got it already */
		messages_forbidden(s->plan, &s->forbidden, signal, send_signal(s, signal));
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

/*
 * Renewals would disturb a release by somebody else.  They begin again when that has failed, or when half of the time
 * that is left has passed.
 */
static void
follow_release(struct supervisor *s)
{
	const struct keeping *k = s->plan->keeping;
	const enum release_stage before = s->release;
	const int64_t now = clock_now_us();

	s->release = s->state.released ? RELEASE_DONE
				       : k->release_stage(k->context, before == RELEASE_ANNOUNCED, &s->release_fd);
	if (s->release == RELEASE_ANNOUNCED && before == RELEASE_NONE) {
		keepalive_stop(s->keepalive);
		s->start_thread_at_us = now + (s->state.valid_until_us - s->policy.margin_us - now) / 2;
	} else if (s->release == RELEASE_NONE && before == RELEASE_ANNOUNCED && s->start_thread_at_us != CLOCK_NEVER)
		s->start_thread_at_us = now;
}

/* Is nothing left to do about a process, which may go on: was its lock released by somebody else, or is it lost? */
static bool
is_over(struct supervisor *s)
{
	if (s->plan->keeping == NULL)
		return false;
	if (s->release != RELEASE_DONE)
		follow_release(s);
	return s->release == RELEASE_DONE ||
	    kill_policy_done(&s->policy, s->state.valid_until_us, s->state.lost, clock_now_us());
}

/* Do what is due.  False: it is over. */
static bool
proceed(struct supervisor *s)
{
	keepalive_read(s->keepalive, &s->state);
	if (is_over(s))
		return false;
	obey_clock(s);
	report_outage(s);
	return !is_over(s);
}

static void
watch(struct supervisor *s)
{
	const struct keeping *k = s->plan->keeping;
	struct pollfd fds[] = {
		{ .fd = s->plan->signals->fd, .events = POLLIN },
		{ .fd = s->alarm, .events = POLLIN },
		{ .events = POLLIN },
		{ .events = POLLIN },
		{ .fd = k != NULL ? k->process->fd : -1, .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
	};
	struct pollfd *const news = &fds[2], *const alert = &fds[3], *const release = &fds[5];

	while (proceed(s) && !child_gone(&s->child)) {
		start_thread_when_due(s);
		keepalive_set_alarm(s->keepalive, s->alarm, next_instant(s), s->policy.lead_us);
		news->fd = keepalive_fd(s->keepalive);
		alert->fd = s->alerted || s->release != RELEASE_NONE ? -1 : keepalive_alert_fd(s->keepalive);
		release->fd = s->release_fd;
		alert->revents = 0;
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0 && errno != EINTR)
			continue;
		if (alert->revents != 0) {
			s->alerted = true;
			s->start_thread_at_us = 0; /* it will look */
		}
		(void)proceed(s); /* before a signal continues the command, which may have to be ended */
		take_signals(s);
	}
}

/* -- Start and end ---------------------------------------------------------- */

/* How long after the end of validity dlock may act before it is killed: most of the rest of the lease. */
static int64_t
grace_us(int64_t ttl_us)
{
	return lease_drift_us(ttl_us) / 4 * 3;
}

static enum status
prepare(struct supervisor *s, struct err *err)
{
	const int64_t margin = lease_kill_margin_us(s->plan->lease->ttl_ms * 1000, s->plan->kill_after_us);
	const int64_t valid_until = s->plan->lease->valid_until_us;

	s->keepalive = keepalive_new(s->plan->backend, s->plan->lease, s->plan->only_warn ? 0 : margin, &s->death_pipe);
	s->alarm = clock_alarm_open();
	if (s->keepalive == NULL || s->alarm < 0 || !signals_watch_command(s->plan->signals))
		return err_system(err, errno, "cannot supervise the command");
	s->start_thread_at_us = keepalive_due_us(s->keepalive);
	s->state.valid_until_us = valid_until;
	s->policy = (struct kill_policy){ .kill_after_us = s->plan->kill_after_us,
		.margin_us = margin,
		.only_warn = s->plan->only_warn,
		.no_kill = s->plan->no_kill,
		.max_run_at_us = s->plan->max_run_us > 0 ? clock_add(clock_now_us(), s->plan->max_run_us)
							 : CLOCK_NEVER };
	if (s->subject->is_child)
		terminal_open(&s->terminal);
	/* Before the timers are set, which would kill dlock without a message. */
	if (clock_now_us() >= valid_until - margin)
		return child_too_late(err);
	return death_pipe_open(&s->death_pipe, s->plan->only_warn ? CLOCK_NEVER : valid_until, margin,
	    grace_us(s->plan->lease->ttl_ms * 1000), err);
}

/* Use real-time scheduling, if permitted.  Call it after the start of the command, which would inherit it. */
static void
be_urgent(void)
{
	const struct sched_param least = { .sched_priority = 1 };

	(void)sched_setscheduler(0, SCHED_FIFO, &least);
}

static enum status
adopt_process(struct supervisor *s, struct err *err)
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
start_command(struct supervisor *s, struct err *err)
{
	const bool give = !s->plan->foreground && terminal_is_used() && terminal_is_of(&s->terminal, getpgrp());
	const struct child_plan plan = {
		.argv = s->plan->argv,
		.environment = s->plan->environment,
		.own_group = !s->plan->foreground,
		.terminal = give ? s->terminal.fd : -1,
		.death_pipe = &s->death_pipe,
		.until_us = s->plan->lease->valid_until_us,
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

static const struct subject command = { start_command, true };
static const struct subject process = { adopt_process, false };

static enum outcome
outcome_of(const struct supervisor *s)
{
	if (s->policy.why == KILL_POLICY_LOST || s->policy.warned)
		return OUTCOME_LOST;
	return s->policy.why == KILL_POLICY_MAX_RUN ? OUTCOME_MAX_RUN : OUTCOME_RAN;
}

enum status
supervise(const struct supervision *plan, struct supervised *result, struct err *err)
{
	struct supervisor s = { .plan = plan,
		.subject = plan->keeping != NULL ? &process : &command,
		.alarm = -1,
		.terminal = { .fd = -1 },
		.death_pipe = { .ends = { -1, -1 } },
		.release_fd = -1,
		.hook = { plan->exec_on_lost, plan->environment, plan->hook_directory, plan->shown_key, plan->signals,
		    &plan->log, 0, 0 } };
	struct ending ending = { .began_us = clock_now_us() };
	enum status status;
	struct err loss;

	*result = (struct supervised){ .outcome = OUTCOME_NOT_STARTED };
	status = prepare(&s, err);
	if (status == ST_OK)
		status = s.subject->start(&s, err);
	if (status == ST_OK)
		watch(&s);
	if (s.start_thread_at_us == CLOCK_NEVER) /* the thread runs, and may be setting the timers: it ends first */
		death_pipe_extend(&s.death_pipe, CLOCK_NEVER);
	take_back_terminal(&s);
	if (s.keepalive != NULL)
		keepalive_stop(s.keepalive);
	death_pipe_close(&s.death_pipe);
	if (status == ST_OK)
		result->outcome = outcome_of(&s);
	result->status = s.child.status;
	ending.valid_until_us = s.state.valid_until_us;
	ending.start = status;
	ending.hasty = s.asked_to_end || s.ended_by_terminal;
	if (s.release != RELEASE_DONE && outcome_release(plan, &ending, result, &loss))
		hook_start(&s.hook, loss.text);
	hook_finish(&s.hook);
	if (s.child.others && !plan->quiet)
		messages_left_behind(plan, &s.child, s.hook.pid);
	result->ended_by_terminal = s.ended_by_terminal;
	result->held_us = clock_now_us() - plan->lease->sent_us;
	terminal_close(&s.terminal);
	keepalive_free(s.keepalive);
	if (s.alarm >= 0)
		(void)close(s.alarm);
	return status;
}
