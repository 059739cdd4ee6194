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
#include "base/text.h"
#include "lock/lease.h"
#include "run/child.h"
#include "run/death_pipe.h"
#include "run/keepalive.h"
#include "run/loss.h"
#include "run/policy.h"

#define THREAD_RETRY_US 1000000 /* pause before the next try to start the thread */
#define GROUP_CHECK_US 100000	/* not every end of a process left behind is signalled */
#define RELEASE_RETRY_US 500000 /* pause before the next try to release */
#define LENGTH_SIZE 32		/* of the text of a duration */
#define HOOK_WAIT_US 10000000	/* for the end of the command of --exec-on-lost */

/* `policy` and `state` say how far it is; the rest is what belongs to the process, and what has been done. */
struct supervisor {
	const struct supervision *plan;
	struct child child;
	struct policy policy;
	struct keepalive keepalive;
	struct keepalive_state state;
	int64_t start_thread_at_us; /* CLOCK_NEVER: it runs already */
	bool alerted;		    /* something happened to the lock before the thread ran */
	int alarm;
	int terminal;		/* -1: none */
	sigset_t from_terminal; /* the signals that the group got from it, or from an outer dlock, */
	sigset_t from_others;	/* and the others */
	struct death_pipe death_pipe;
	pid_t hook;	       /* 0: it does not run */
	int64_t hook_until_us; /* dlock waits for it until then; 0: it was not started */
	bool shares_signals;   /* the command was started in the group of dlock */
	bool asked_to_end;
	enum release_stage release; /* by somebody else */
	int release_fd;
	bool outage_reported; /* a message about a failed renewal was printed */
	pid_t forbidden;      /* the last process that may not be signalled; 0: none */
	sigset_t not_sent;    /* the signals that it did not get, of which a message was printed */
	int64_t began_us;
};

/* Print a message about the lock. */
#define WARN(s, format, ...) log_warn(&(s)->plan->log, "%s: " format, (s)->plan->shown_key, __VA_ARGS__)

static const char *
show_length(int64_t us, char length[LENGTH_SIZE])
{
	duration_show(us / 1000, length, LENGTH_SIZE);
	return length;
}

/* -- The command of --exec-on-lost ------------------------------------------ */

/*
 * Runs between vfork and exec, see become_command() in child.c.  The shell changes the directory: if that is on a file
 * system that hangs, dlock does not.
 */
static _Noreturn void
become_hook(const struct supervision *plan, const char *reason)
{
	static const char line[] = "DLOCK_LOST_REASON=$3; export DLOCK_LOST_REASON\n"
				   "[ -z \"$1\" ] || cd -- \"$1\" 2>/dev/null\n"
				   "exec /bin/sh -c \"$2\"";
	const struct sched_param none = { .sched_priority = 0 };
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)setsid();
	if (sched_getscheduler(0) == SCHED_FIFO) /* dlock has the priority for itself */
		(void)sched_setscheduler(0, SCHED_OTHER, &none);
	if (null >= 0)
		(void)dup2(null, STDIN_FILENO);
	signals_restore(plan->signals);
	(void)execle("/bin/sh", "sh", "-c", line, "sh", plan->hook_directory != NULL ? plan->hook_directory : "",
	    plan->exec_on_lost, reason, (char *)NULL, plan->environment != NULL ? plan->environment : environ);
	_exit(ST_NOT_FOUND);
}

/*
 * Start it, with DLOCK_LOST_REASON in its environment, if it was not started yet.  It runs in a session of its own: no
 * signal for the command or for dlock reaches it, and it goes on if dlock ends.  It has the standard output and error
 * of dlock, and no standard input.
 */
static void
start_hook(struct supervisor *s, const char *reason)
{
	if (s->plan->exec_on_lost == NULL || s->hook_until_us != 0)
		return;
	s->hook_until_us = clock_add(clock_now_us(), HOOK_WAIT_US);
	s->hook = vfork();
	if (s->hook == 0)
		become_hook(s->plan, reason);
	if (s->hook < 0) {
		WARN(s, "the command of --exec-on-lost could not be started: %s", strerror(errno));
		s->hook = 0;
	}
}

/* A child of dlock has ended: if it is the hook, and it has failed, that is a warning. */
static void
reap_hook(struct supervisor *s, pid_t pid, int status)
{
	char name[SIGNAL_NAME_SIZE];

	if (pid != s->hook || WIFSTOPPED(status) || WIFCONTINUED(status))
		return;
	s->hook = 0;
	if (WIFSIGNALED(status))
		WARN(s, "the command of --exec-on-lost was ended by %s", signals_name(WTERMSIG(status), name));
	else if (WEXITSTATUS(status) != 0)
		WARN(s, "the command of --exec-on-lost failed with exit status %d", WEXITSTATUS(status));
}

/*
 * Wait until it has ended, for a while from its start at most, or until a signal that would end dlock.  A hook that
 * still runs then goes on by itself.
 */
static void
finish_hook(struct supervisor *s)
{
	const struct wait wait = { s->hook_until_us, s->plan->signals->fd };
	int status;

	while (s->hook != 0) {
		if (waitpid(s->hook, &status, WNOHANG) == s->hook) {
			reap_hook(s, s->hook, status);
			continue;
		}
		if (clock_now_us() >= s->hook_until_us || signals_asked_to_end(s->plan->signals)) {
			WARN(s, "%s", "the command of --exec-on-lost still runs; dlock ends without it");
			return;
		}
		(void)clock_wait(&wait);
	}
}

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

/*
 * This process, if it is not 0, did not get a signal.  Said once.  SIGCONT may be sent to any process of the session.
 */
static void
report_forbidden(struct supervisor *s, int signal, pid_t pid)
{
	char name[SIGNAL_NAME_SIZE];

	if (pid == 0 || signal == SIGCONT || (pid == s->forbidden && sigismember(&s->not_sent, signal)))
		return;
	if (pid != s->forbidden)
		(void)sigemptyset(&s->not_sent);
	s->forbidden = pid;
	(void)sigaddset(&s->not_sent, signal);
	WARN(s, "may not send %s to process %ld; it CONTINUES", signals_name(signal, name), (long)pid);
}

/* Say why the command is ended, and run --exec-on-lost if the lock is lost, or about to be. */
static void
report_end(struct supervisor *s, enum policy_order order, pid_t forbidden)
{
	const struct keeping *k = s->plan->keeping;
	const char *const why = s->state.lost ? "lock is lost" : "lease could not be renewed",
			  *const error = s->state.err.text;
	char reason[sizeof(struct err) + 64], name[SIGNAL_NAME_SIZE], length[LENGTH_SIZE], shown[OWNER_MAX + 1];

	s->forbidden = forbidden;
	(void)sigfillset(&s->not_sent);
	if (s->policy.why == ST_MAX_RUN && order != POLICY_WARN) {
		(void)show_length(s->plan->max_run_us, length);
		if (forbidden != 0)
			WARN(s, "the command has run for %s (--max-run); may not signal process %ld; it CONTINUES",
			    length, (long)forbidden);
		else
			WARN(s, "the command has run for %s (--max-run); ending it", length);
		return;
	}
	if (s->policy.why == ST_ASKED && order != POLICY_WARN) {
		WARN(s, "asked to end by %s; ending %s", text_quote(s->state.asked_by, shown, sizeof(shown)),
		    k != NULL ? "the process" : "the command");
		return;
	}
	(void)snprintf(reason, sizeof(reason), "the %s%s%s", why, error[0] != '\0' ? ": " : "", error);
	if (forbidden != 0)
		WARN(s, "%s; may not signal process %ld; it CONTINUES without the lock", reason, (long)forbidden);
	else if (order == POLICY_WARN)
		WARN(s, "%s; the %s continues without the lock", reason, k != NULL ? "process" : "command");
	else if (k == NULL)
		WARN(s, "%s; ending the command", reason);
	else
		WARN(s, "%s; sent %s to process %ld", reason,
		    signals_name(order == POLICY_KILL ? SIGKILL : s->plan->first_signal, name), (long)k->process->pid);
	start_hook(s, reason);
}

/* Somebody asks the holder to end: the policy decides.  With --on-lost warn it declines, which is said once. */
static void
heed_request(struct supervisor *s)
{
	const bool new = s->state.asked_by[0] != '\0' && !s->policy.asked;
	char shown[OWNER_MAX + 1];

	s->policy.asked = s->policy.asked || new;
	if (new && s->plan->only_warn)
		WARN(s, "asked to end by %s; the %s continues (--on-lost warn)",
		    text_quote(s->state.asked_by, shown, sizeof(shown)),
		    s->plan->keeping != NULL ? "process" : "command");
}

/* An outage that ends before the lease does would leave no trace otherwise. */
static void
report_outage(struct supervisor *s)
{
	const bool fails = s->state.failed_since_us != 0;
	char length[LENGTH_SIZE];

	if (s->plan->quiet || s->state.lost || s->policy.why != ST_OK || fails == s->outage_reported)
		return;
	s->outage_reported = fails;
	if (fails)
		WARN(s, "a renewal failed: %s; trying again, the lease ends in %s", s->state.err.text,
		    show_length(s->state.valid_until_us - clock_now_us(), length));
	else
		WARN(s, "the lease is renewed again, after an outage of %s", show_length(s->state.outage_us, length));
}

/* Carry out what the clock and the state of the lease require. */
static void
obey_clock(struct supervisor *s)
{
	enum policy_order order;
	enum status before;
	pid_t forbidden;

	for (;;) {
		forbidden = 0;
		before = s->policy.why;
		order = policy_next(&s->policy, s->state.valid_until_us, s->state.lost, clock_now_us());
		if (order == POLICY_KILL) {
			forbidden = send_signal(s, SIGKILL);
			death_pipe_extend(&s->death_pipe,
			    CLOCK_NEVER); /* the command is killed, but may need time to end */
		} else if (order == POLICY_TERM)
			forbidden = send_signal(s, s->plan->first_signal);
		if (s->policy.why != before || order == POLICY_WARN)
			report_end(s, order, forbidden);
		else
			report_forbidden(s, SIGKILL, forbidden);
		if (order == POLICY_TERM && s->plan->first_signal != SIGKILL)
			(void)send_signal(s, SIGCONT); /* wake a stopped command, which would not get the signal */
		if (order == POLICY_WAIT)
			return;
	}
}

/* -- The terminal and job control ------------------------------------------- */

/*
 * The process group of the command gets the controlling terminal while it runs in the foreground, so that ^C, ^Z and
 * full-screen programs work as without dlock.  Is this group in the foreground?
 */
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

/*
 * Take the terminal back from the command, which a signal has ended (0: none has).  Was it ^C or ^\?  The terminal
 * sends these signals to its foreground group: to that of dlock, or only to that of the command.  In the second case,
 * the signal is sent to the group of dlock now, so that a calling script gets it, too.
 */
static bool
was_ended_by_terminal(const struct supervisor *s, int signal)
{
	const bool had_terminal = take_terminal(s);

	if (signal != SIGINT && signal != SIGQUIT)
		return false;
	if (sigismember(&s->from_terminal, signal) == 1)
		return true;
	if (!had_terminal || sigismember(&s->from_others, signal) == 1)
		return false;
	(void)kill(0, signal); /* dlock itself has it blocked */
	return true;
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
	char left[LENGTH_SIZE];
	bool continued;

	if (!s->plan->quiet)
		WARN(s, "stopped; if it is not continued, the %s when the lease ends, in %s",
		    s->plan->only_warn ? "lock is lost" : "command is ended",
		    show_length(s->state.valid_until_us - clock_now_us(), left));
	do {
		continued = signals_stop(with_group, policy_due_us(&s->policy, s->state.valid_until_us));
		with_group = false; /* the others are still stopped */
		keepalive_read(&s->keepalive, &s->state);
		obey_clock(s); /* the lease may have ended meanwhile: then the command must not continue */
	} while (!continued && s->policy.why == ST_OK);
}

/* The command was stopped: stop with it and continue with it, or give it the terminal if it stopped to get that. */
static void
stop_with_command(struct supervisor *s, int signal)
{
	const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
	pid_t parent;

	if (s->terminal < 0 || (signal != SIGTSTP && !wants_terminal && !has_terminal(s, s->child.group)))
		return; /* it was not the terminal that stopped it */
	/* If the parent is outside the session, the group is orphaned, and the kernel would not let it be stopped. */
	parent = getppid();
	if (!(wants_terminal && has_terminal(s, getpgrp())) && parent > 0 && getsid(parent) == getsid(0))
		stop(s);
	if (s->policy.killed)
		return;
	if ((wants_terminal || uses_terminal()) && s->child.group != 0 && has_terminal(s, getpgrp()))
		(void)tcsetpgrp(s->terminal, s->child.group);
	(void)send_signal(s, SIGCONT);
}

/* -- Events ----------------------------------------------------------------- */

static void
take_signals(struct supervisor *s)
{
	enum signal_origin origin;
	int signal, status;
	pid_t pid;

	while ((signal = signals_next(s->plan->signals, &origin)) != 0) {
		if (signal == SIGCHLD || s->plan->keeping != NULL)
			continue;
		(void)sigaddset(origin == SIGNAL_OF_OTHERS ? &s->from_others : &s->from_terminal, signal);
		s->asked_to_end = s->asked_to_end || signal == SIGINT || signal == SIGTERM || signal == SIGQUIT;
		if (origin == SIGNAL_OF_TERMINAL && s->shares_signals && getpgid(s->child.pid) == getpgrp())
			continue; /* the command got it already */
		report_forbidden(s, signal, send_signal(s, signal));
	}
	while ((pid = child_reap(&s->child, &status)) != 0) {
		reap_hook(s, pid, status);
		if (pid == s->child.pid && !s->child.ended && WIFSTOPPED(status))
			stop_with_command(s, WSTOPSIG(status));
	}
}

/*
 * Is nothing left to do about a process, which may go on: was its lock released by somebody else, or is it lost?
 *
 * Renewals would disturb a release by somebody else.  They begin again when that has failed, or when half of the time
 * that is left has passed.
 */
static bool
is_over(struct supervisor *s)
{
	const struct keeping *k = s->plan->keeping;
	const enum release_stage before = s->release;
	const int64_t now = clock_now_us();

	if (k == NULL)
		return false;
	if (before != RELEASE_DONE)
		s->release = s->state.released
		    ? RELEASE_DONE
		    : k->release_stage(k->context, before == RELEASE_ANNOUNCED, &s->release_fd);
	if (s->release == RELEASE_ANNOUNCED && before == RELEASE_NONE) {
		keepalive_stop(&s->keepalive);
		s->start_thread_at_us = now + (s->state.valid_until_us - s->policy.margin_us - now) / 2;
	} else if (s->release == RELEASE_NONE && before == RELEASE_ANNOUNCED && s->start_thread_at_us != CLOCK_NEVER)
		s->start_thread_at_us = now;
	return s->release == RELEASE_DONE ||
	    policy_done(&s->policy, s->state.valid_until_us, s->state.lost, clock_now_us());
}

/* Do what is due.  False: it is over. */
static bool
proceed(struct supervisor *s)
{
	keepalive_read(&s->keepalive, &s->state);
	if (is_over(s))
		return false;
	heed_request(s);
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
	int64_t now, at;
	bool looks; /* the thread, or it will */
	int error;

	while (proceed(s) && !child_gone(&s->child)) {
		now = clock_now_us();
		if (now >= s->start_thread_at_us) {
			error = keepalive_start(&s->keepalive);
			if (error != 0)
				WARN(s, "cannot start a thread to renew the lease: %s", strerror(error));
			s->start_thread_at_us = error == 0 ? CLOCK_NEVER : clock_add(now, THREAD_RETRY_US);
		}
		at = s->child.ended ? clock_add(now, GROUP_CHECK_US) : CLOCK_NEVER;
		keepalive_set_alarm(&s->keepalive, s->alarm, clock_sooner(at, s->start_thread_at_us), &s->policy);
		news->fd = s->keepalive.news_fd;
		looks = s->alerted || s->release != RELEASE_NONE || s->start_thread_at_us == CLOCK_NEVER;
		alert->fd = looks ? -1 : keepalive_alert_fd(&s->keepalive);
		release->fd = s->release_fd;
		alert->revents = 0;
		(void)poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
		if (alert->revents != 0) {
			s->alerted = true;
			s->start_thread_at_us = 0; /* it will look */
		}
		(void)proceed(s); /* before a signal continues the command, which may have to be ended */
		take_signals(s);
	}
}

/* -- Start and end ---------------------------------------------------------- */

static enum status
prepare(struct supervisor *s, struct err *err)
{
	const int64_t ttl = s->plan->lease->ttl_ms * 1000;
	const int64_t margin = lease_kill_margin_us(ttl, s->plan->kill_after_us);
	const int64_t valid_until = s->plan->lease->valid_until_us;

	keepalive_open(&s->keepalive, s->plan->backend, s->plan->lease, s->plan->only_warn ? 0 : margin,
	    &s->death_pipe);
	s->alarm = clock_alarm_open();
	if (s->alarm < 0 || !signals_watch_command(s->plan->signals))
		return err_system(err, errno, "cannot supervise the command");
	s->start_thread_at_us = s->keepalive.schedule.renew_at_us;
	s->state.valid_until_us = valid_until;
	s->policy = (struct policy){ .kill_after_us = s->plan->kill_after_us,
		.margin_us = margin,
		.only_warn = s->plan->only_warn,
		.no_kill = s->plan->no_kill,
		.max_run_at_us = s->plan->max_run_us > 0 ? clock_add(clock_now_us(), s->plan->max_run_us)
							 : CLOCK_NEVER };
	if (s->plan->keeping == NULL)
		s->terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	/* Before the timers are set, which would kill dlock without a message. */
	if (clock_now_us() >= valid_until - margin)
		return child_too_late(err);
	/* After the end of validity, dlock may act for most of the rest of the lease before it is killed. */
	return death_pipe_open(&s->death_pipe, s->plan->only_warn ? CLOCK_NEVER : valid_until, margin,
	    lease_drift_us(ttl) / 4 * 3, err);
}

static enum status
adopt_process(struct supervisor *s, struct err *err)
{
	const struct keeping *k = s->plan->keeping;

	s->child.process = k->process;
	s->child.pid = k->process->pid;
	if (!s->plan->only_warn && !death_pipe_bind(&s->death_pipe, k->process->pid, s->plan->first_signal) &&
	    errno != ESRCH)
		return err_system(err, errno, "cannot arrange for a signal at the end of dlock");
	if (process_ended(k->process)) /* before this, its number may have become that of another process */
		return err_set(err, ST_USAGE, "--keep: process %ld has ended", (long)k->process->pid);
	return k->started(k->context, err);
}

static enum status
start_command(struct supervisor *s, struct err *err)
{
	const bool give = !s->plan->foreground && uses_terminal() && has_terminal(s, getpgrp());
	const struct child_plan plan = {
		.argv = s->plan->argv,
		.environment = s->plan->environment,
		.own_group = !s->plan->foreground,
		.terminal = give ? s->terminal : -1,
		.death_pipe = &s->death_pipe,
		.until_us = s->plan->lease->valid_until_us,
		.signals = s->plan->signals,
	};
	const enum status status = child_start(&plan, &s->child, err);
	if (status != ST_OK)
		return status;
	log_debug(&s->plan->log, "the command runs as process %ld", (long)s->child.pid);
	take_signals(s); /* the command did not get signals that arrived before it was started */
	s->shares_signals = s->plan->foreground;
	return ST_OK;
}

/* -- Release ---------------------------------------------------------------- */

const char *
supervised_outcome(enum status status)
{
	return status == ST_OK	   ? "ran"
	    : status == ST_LOST	   ? "lost"
	    : status == ST_MAX_RUN ? "max-run"
	    : status == ST_ASKED   ? "asked"
				   : "exec-failed";
}

/* For how long the lock is kept after the command; *kept_by: by which option, if not --min-hold. */
static int64_t
keep_us(const struct supervisor *s, enum status status, const char **kept_by)
{
	const int64_t held = clock_now_us() - s->began_us;
	int64_t total = s->plan->min_hold_us;

	if (status == ST_OK && s->child.status == 0 && s->plan->once_per_us > total) {
		total = s->plan->once_per_us;
		*kept_by = "once-per";
	}
	return total > held ? total - held : 0;
}

/* Pause before the next try.  False: a signal came that ends dlock. */
static bool
pause_for_retry(const struct signals *signals)
{
	const struct wait wait = { clock_add(clock_now_us(), RELEASE_RETRY_US), signals->fd };

	while (!signals_asked_to_end(signals)) {
		if (!clock_wait(&wait))
			return true;
	}
	return false;
}

/* The outcome for the history: see lock/record.h.  `ended` is the status of the command, as in struct supervised. */
static void
write_outcome(const struct supervisor *s, enum status status, int ended, char outcome[LENGTH_SIZE])
{
	if (s->plan->keeping != NULL) /* the end of that process is not known */
		(void)snprintf(outcome, LENGTH_SIZE, "%s -", status == ST_OK ? "released" : supervised_outcome(status));
	else
		(void)snprintf(outcome, LENGTH_SIZE, "%s %d", supervised_outcome(status),
		    ended < 0		     ? (int)status
			: WIFSIGNALED(ended) ? -WTERMSIG(ended)
					     : WEXITSTATUS(ended));
}

/*
 * Release the lock at the end, or keep it as --min-hold and --once-per require; the history gets the outcome.  Where
 * something is to be recorded so, and no majority can be reached, this is tried until the end of validity, or until a
 * signal comes that ends dlock.  Returns how it ended: if the loss is noticed only now, ST_LOST.
 */
static enum status
release_lock(struct supervisor *s, enum status status, struct supervised *result)
{
	const struct supervision *const plan = s->plan;
	const bool hasty = s->asked_to_end || result->ended_by_terminal, started = result->status >= 0;
	struct lease lease = *plan->lease;
	char outcome[LENGTH_SIZE], length[LENGTH_SIZE];
	struct loss loss = { .interrupt_fd = -1 };
	enum status released;
	struct err err;
	int64_t left;

	write_outcome(s, status, result->status, outcome);
	lease.outcome = outcome;
	if (status == ST_ASKED)
		lease.by = memcpy(result->asked_by, s->state.asked_by, sizeof(result->asked_by));
	for (;; lease.again = true) {
		left = started ? keep_us(s, status, &lease.kept_by) : 0;
		released = plan->backend->service->release(plan->backend, &lease, left > 0 ? (left + 999) / 1000 : 0,
		    &loss.ownership, &err);
		if (released != ST_NO_QUORUM || status == ST_LOST || (left <= 0 && (hasty || !plan->records)) ||
		    clock_add(clock_now_us(), RELEASE_RETRY_US) >= s->state.valid_until_us)
			break;
		if (!lease.again && !plan->quiet && isatty(STDERR_FILENO))
			WARN(s, "not released yet: %s; trying again until the lease ends, in %s", err.text,
			    show_length(s->state.valid_until_us - clock_now_us(), length));
		if (!pause_for_retry(plan->signals))
			break;
	}
	if (released == ST_NO) {
		(void)loss_explain(plan->backend, &lease, &loss, &err);
		result->holder = loss.holder;
	}
	if (released == ST_OK || status == ST_LOST || (released == ST_NO && !started))
		return status;
	if (released != ST_NO) {
		WARN(s, "not released: %s; it ends with its lease%s", err.text, left > 0 ? ", and is not kept" : "");
		return status;
	}
	WARN(s, "the lock was lost: %s", err.text);
	start_hook(s, err.text);
	return ST_LOST;
}

/* The command may have left a process behind, which the lock does not protect. */
static void
report_left_behind(const struct supervisor *s)
{
	char name[PROCESS_NAME_SIZE], shown[4 * PROCESS_NAME_SIZE];
	const pid_t pid = child_left_behind(&s->child, s->hook, name);

	if (pid != 0)
		WARN(s, "process %ld (%s) of COMMAND runs on without the lock", (long)pid,
		    text_show(name, shown, sizeof(shown)));
}

enum status
supervise(const struct supervision *plan, struct supervised *result, struct err *err)
{
	const struct sched_param least_real_time = { .sched_priority = 1 };
	struct supervisor s = { .plan = plan,
		.alarm = -1,
		.terminal = -1,
		.death_pipe = { .ends = { -1, -1 } },
		.release_fd = -1,
		.began_us = clock_now_us() };
	enum status status;
	int signal;

	*result = (struct supervised){ .status = -1 };
	status = prepare(&s, err);
	if (status == ST_OK)
		status = plan->keeping != NULL ? adopt_process(&s, err) : start_command(&s, err);
	if (status == ST_OK) {
		/* If permitted.  Not before the start of the command, which would inherit it. */
		(void)sched_setscheduler(0, SCHED_FIFO, &least_real_time);
		watch(&s);
		status = s.policy.warned ? ST_LOST : s.policy.why;
		result->status = s.child.status;
		err->text[0] = '\0';
	}
	if (s.start_thread_at_us == CLOCK_NEVER) /* the thread runs, and may be setting the timers: it ends first */
		death_pipe_extend(&s.death_pipe, CLOCK_NEVER);
	signal = s.policy.why == ST_OK && WIFSIGNALED(s.child.status) ? WTERMSIG(s.child.status) : 0;
	result->ended_by_terminal = was_ended_by_terminal(&s, signal);
	keepalive_stop(&s.keepalive);
	death_pipe_close(&s.death_pipe);
	if (s.release != RELEASE_DONE)
		status = release_lock(&s, status, result);
	finish_hook(&s);
	if (s.child.others && !plan->quiet)
		report_left_behind(&s);
	result->held_us = clock_now_us() - plan->lease->sent_us;
	if (s.terminal >= 0)
		(void)close(s.terminal);
	keepalive_close(&s.keepalive);
	if (s.alarm >= 0)
		(void)close(s.alarm);
	return status;
}
