/* SPDX-License-Identifier: MIT */
#include "cli/screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define SECOND_SCREEN "\033[?1049h\033[?25l" /* and hide the cursor */
#define FIRST_SCREEN "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define WIPE_LINE "\033[K"
#define WIPE_REST "\033[J"

static const int watched[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };

enum status
screen_open(struct screen *s, bool redrawn, struct err *err)
{
	struct sigaction action;
	sigset_t set;
	size_t i;

	s->extent = output_extent();
	s->terminal = redrawn && s->extent.columns > 0;
	s->first = true;
	s->separated = redrawn;
	s->ended_by = 0;
	(void)sigemptyset(&set);
	for (i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) {
		/* A signal that was ignored stays ignored. */
		if (sigaction(watched[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			(void)sigaddset(&set, watched[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &set, &s->given);
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0)
		return err_system(err, errno, "signalfd");
	if (s->terminal)
		fputs(SECOND_SCREEN, stdout);
	return ST_OK;
}

void
screen_begin(struct screen *s)
{
	s->extent = output_extent();
	if (s->terminal)
		fputs(HOME, stdout);
	else if (!s->first && s->separated)
		putchar('\n');
	s->first = false;
}

void
screen_end(struct screen *s)
{
	if (s->terminal)
		fputs(WIPE_REST, stdout);
}

const char *
screen_line_end(const struct screen *s)
{
	return s->terminal ? WIPE_LINE "\n" : "\n";
}

/* ^Z: restore the terminal, stop, and redraw when continued. */
static void
stop(struct screen *s)
{
	if (s->terminal) {
		fputs(FIRST_SCREEN, stdout);
		(void)fflush(stdout);
	}
	(void)raise(SIGSTOP);
	if (s->terminal)
		fputs(SECOND_SCREEN, stdout);
}

/* Read pending signals; true if a frame is due at once. */
static bool
take_signals(struct screen *s)
{
	struct signalfd_siginfo info;
	bool wanted = false;

	while (read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			stop(s);
		else if (info.ssi_signo != SIGWINCH)
			s->ended_by = (int)info.ssi_signo;
		wanted = true;
	}
	return wanted;
}

bool
screen_wait(struct screen *s, int64_t ms)
{
	const int64_t until = clock_add(clock_now_us(), ms * 1000);
	struct pollfd fd = { .fd = s->fd, .events = POLLIN };
	struct timespec timeout;

	while (!take_signals(s) && clock_now_us() < until)
		(void)ppoll(&fd, 1, clock_until(clock_now_us(), until, &timeout), NULL);
	return s->ended_by == 0;
}

void
screen_close(struct screen *s)
{
	if (s->terminal)
		fputs(FIRST_SCREEN, stdout);
	(void)fflush(stdout);
	(void)close(s->fd);
	(void)sigprocmask(SIG_SETMASK, &s->given, NULL);
}
