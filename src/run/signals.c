/* SPDX-License-Identifier: MIT */
#include "run/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/process.h"

#define NAMED 32 /* signals below it have names, those from SIGRTMIN on have none */

/* Signals that do not end a process by default, and those of failed writes. */
static const int harmless[] = { SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH, SIGPIPE,
	SIGXFSZ, 0 };
static const int passed_on[] = { SIGCONT, SIGTSTP, SIGWINCH, 0 };
static const int of_terminal[] = { SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH, 0 };

/* Of the names of one number, the last is the one that is shown. */
static const struct {
	const char *name;
	int number;
} names[] = { { "CLD", SIGCHLD }, { "IOT", SIGABRT }, { "POLL", SIGIO }, { "HUP", SIGHUP }, { "INT", SIGINT },
	{ "QUIT", SIGQUIT }, { "ILL", SIGILL }, { "TRAP", SIGTRAP }, { "ABRT", SIGABRT }, { "BUS", SIGBUS },
	{ "FPE", SIGFPE }, { "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "SEGV", SIGSEGV }, { "USR2", SIGUSR2 },
	{ "PIPE", SIGPIPE }, { "ALRM", SIGALRM }, { "TERM", SIGTERM }, { "CHLD", SIGCHLD }, { "CONT", SIGCONT },
	{ "STOP", SIGSTOP }, { "TSTP", SIGTSTP }, { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU }, { "URG", SIGURG },
	{ "XCPU", SIGXCPU }, { "XFSZ", SIGXFSZ }, { "VTALRM", SIGVTALRM }, { "PROF", SIGPROF }, { "WINCH", SIGWINCH },
	{ "IO", SIGIO }, { "PWR", SIGPWR }, { "SYS", SIGSYS },
#ifdef SIGSTKFLT
	{ "STKFLT", SIGSTKFLT }
#endif
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * A blocked signal is queued even if it is ignored, so ignored signals must not be blocked.  A signal that has a
 * handler belongs to other code in this process, such as a sanitizer.
 */
static void
add_unless_ignored(sigset_t *set, int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
		(void)sigaddset(set, signal);
}

static bool
is_among(const int *signals, int signal)
{
	while (*signals != 0 && *signals != signal)
		signals++;
	return *signals != 0;
}

void
signals_block_failed_writes(sigset_t *given)
{
	sigset_t failed;

	(void)sigemptyset(&failed);
	(void)sigaddset(&failed, SIGPIPE);
	(void)sigaddset(&failed, SIGXFSZ);
	(void)sigprocmask(SIG_BLOCK, &failed, given);
}

bool
signals_heed(int signal)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	struct sigaction action;

	return sigaction(signal, &standard, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool
signals_open(struct signals *s, const sigset_t *given)
{
	sigset_t left_alone;
	int signal, i;

	(void)sigemptyset(&left_alone);
	(void)sigaddset(&left_alone, SIGKILL);
	for (i = 0; harmless[i] != 0; i++)
		(void)sigaddset(&left_alone, harmless[i]);
	(void)sigemptyset(&s->watched);
	for (signal = 1; signal <= SIGRTMAX; signal++) {
		if (sigismember(&left_alone, signal) != 1 &&
		    (signal < NAMED || signal >= SIGRTMIN)) /* the signals between are used by the C library */
			add_unless_ignored(&s->watched, signal);
	}
	s->given = *given;
	s->child_ignored = false;
	s->fd = -1;
	if (sigprocmask(SIG_BLOCK, &s->watched, NULL) != 0)
		return false;
	s->fd = signalfd(-1, &s->watched, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->fd >= 0;
}

bool
signals_watch_command(struct signals *s)
{
	sigset_t blocked;
	const int *signal;

	s->child_ignored = signals_heed(SIGCHLD);
	for (signal = passed_on; *signal != 0; signal++)
		add_unless_ignored(&s->watched, *signal);
	(void)sigaddset(&s->watched, SIGCHLD);
	blocked = s->watched;
	(void)sigaddset(&blocked, SIGTTOU); /* tcsetpgrp() from the background */
	(void)sigaddset(&blocked, SIGTTIN); /* another process of this group may read: that must not stop dlock */
	if (sigprocmask(SIG_BLOCK, &blocked, NULL) != 0)
		return false;
	return signalfd(s->fd, &s->watched, 0) >= 0;
}

int
signals_next(const struct signals *s, enum signal_origin *origin)
{
	struct signalfd_siginfo info;
	char name[PROCESS_NAME_SIZE];
	bool is_ours;
	int signal;

	do {
		if (read(s->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
			return 0;
		signal = (int)info.ssi_signo;
	} while (info.ssi_code == SI_TIMER && signal == SIGCONT);
	if (origin == NULL)
		return signal;
	*origin = SIGNAL_OF_OTHERS;
	/*
	 * The kernel sends those of the terminal to the whole process group.  On a hangup only the leader of the
	 * session is signalled.  Signals of timers and limits are sent by the kernel, too, but to this process only.
	 */
	if (info.ssi_code == SI_KERNEL && is_among(of_terminal, signal) &&
	    (getsid(0) != getpid() || (signal != SIGHUP && signal != SIGCONT)))
		*origin = SIGNAL_OF_TERMINAL;
	else if (info.ssi_code == SI_USER && info.ssi_pid > 0 && process_name((pid_t)info.ssi_pid, name, &is_ours) &&
	    is_ours)
		*origin = SIGNAL_OF_DLOCK;
	return signal;
}

bool
signals_asked_to_end(const struct signals *s)
{
	int signal;

	while ((signal = signals_next(s, NULL)) != 0) {
		if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT)
			return true;
	}
	return false;
}

bool
signals_stop(bool with_group, int64_t until_us)
{
	const struct timespec at_once = { 0 };
	bool limited, by_timer = false, by_other = false;
	struct sigaction action;
	sigset_t set, blocked;
	siginfo_t info;
	timer_t timer;

	(void)kill(with_group ? 0 : getpid(), SIGTSTP);
	/* After SIGTSTP, which would cancel a pending SIGCONT. */
	limited = until_us != CLOCK_NEVER && clock_timer_open(CLOCK_BOOTTIME, SIGCONT, &timer);
	if (limited)
		(void)clock_timer_set(timer, TIMER_ABSTIME, until_us);
	if (sigaction(SIGTSTP, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
		(void)raise(SIGSTOP);
	/* Here it stops, unless a SIGCONT has arrived since SIGTSTP was sent; a later SIGCONT ends the stop. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &set, &blocked);
	(void)sigprocmask(SIG_SETMASK, &blocked, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCONT);
	while (sigtimedwait(&set, &info, &at_once) == SIGCONT) { /* all that are pending */
		by_timer = by_timer || info.si_code == SI_TIMER;
		by_other = by_other || info.si_code != SI_TIMER;
	}
	if (limited)
		(void)timer_delete(timer);
	return by_other || !by_timer;
}

void
signals_die_of(int signal)
{
	sigset_t set;

	(void)prctl(PR_SET_DUMPABLE, 0); /* a core dump of dlock is not wanted */
	(void)raise(signal);		 /* pending until it is unblocked; only this one, since others may be pending */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signal);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void
signals_restore(const struct signals *s)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };

	if (s->child_ignored)
		(void)sigaction(SIGCHLD, &ignored, NULL);
	(void)sigprocmask(SIG_SETMASK, &s->given, NULL);
}

void
signals_unwatch(struct signals *s)
{
	sigset_t mask = s->given;

	while (signals_next(s, NULL) != 0)
		;
	(void)sigaddset(&mask, SIGPIPE);
	(void)sigaddset(&mask, SIGXFSZ);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
}

int
signals_number(const char *name)
{
	bool from_last;
	long number;
	size_t i;
	char *end;

	if (name[0] >= '0' && name[0] <= '9') {
		number = strtol(name, &end, 10);
		return *end == '\0' && number > 0 && number < NSIG ? (int)number : 0;
	}
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (i = 0; i < COUNT(names); i++) {
		if (strcasecmp(names[i].name, name) == 0)
			return names[i].number;
	}
	/* "RTMIN+3", "RTMAX-1" and the like. */
	from_last = strncasecmp(name, "RTMAX", 5) == 0;
	if ((!from_last && strncasecmp(name, "RTMIN", 5) != 0) ||
	    (name[5] != '\0' && (name[5] != (from_last ? '-' : '+') || name[6] < '0' || name[6] > '9')))
		return 0;
	number = strtol(name + 5, &end, 10);
	if (*end != '\0' || number > SIGRTMAX - SIGRTMIN || number < SIGRTMIN - SIGRTMAX)
		return 0;
	return (from_last ? SIGRTMAX : SIGRTMIN) + (int)number;
}

const char *
signals_name(int signal, char name[SIGNAL_NAME_SIZE])
{
	size_t i;

	(void)snprintf(name, SIGNAL_NAME_SIZE, signal < SIGRTMIN ? "signal %d" : "SIGRTMIN+%d",
	    signal < SIGRTMIN ? signal : signal - SIGRTMIN);
	for (i = 0; i < COUNT(names); i++) {
		if (names[i].number == signal)
			(void)snprintf(name, SIGNAL_NAME_SIZE, "SIG%s", names[i].name);
	}
	return name;
}
