/* SPDX-License-Identifier: MIT */
#include "cli/screen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define SECOND_SCREEN "\033[?1049h\033[?25l" /* and hide the cursor */
#define FIRST_SCREEN "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define WIPE_LINE "\033[K"
#define WIPE_REST "\033[J"

enum status
screen_open(struct screen *s, const sigset_t *given, bool redrawn, struct err *err)
{
	s->extent = output_extent(STDOUT_FILENO);
	s->terminal = redrawn && s->extent.columns > 0;
	s->first = true;
	s->separated = redrawn;
	s->ended_by = 0;
	if (!signals_open(&s->signals, given) || !signals_watch_command(&s->signals))
		return err_system(err, errno, "cannot watch for signals");
	if (s->terminal)
		fputs(SECOND_SCREEN, stdout);
	return ST_OK;
}

void
screen_begin(struct screen *s)
{
	s->extent = output_extent(STDOUT_FILENO);
	if (s->terminal)
		fputs(HOME WIPE_LINE, stdout);
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
	return s->terminal ? "\n" WIPE_LINE : "\n"; /* behind a line as wide as the terminal, its end would be wiped */
}

/* ^Z: restore the terminal, stop, and redraw when continued. */
static void
stop(struct screen *s)
{
	if (s->terminal) {
		fputs(FIRST_SCREEN, stdout);
		(void)fflush(stdout);
	}
	(void)signals_stop(false, CLOCK_NEVER);
	if (s->terminal)
		fputs(SECOND_SCREEN, stdout);
}

/* Read pending signals; true if a frame is due at once. */
static bool
take_signals(struct screen *s)
{
	bool wanted = false;
	int signal;

	for (; (signal = signals_next(&s->signals, NULL)) != 0; wanted = true) {
		if (signal == SIGTSTP)
			stop(s);
		else if (signal != SIGWINCH && signal != SIGCONT && signal != SIGCHLD)
			s->ended_by = signal;
	}
	return wanted;
}

bool
screen_wait(struct screen *s, int64_t ms)
{
	const struct wait wait = { clock_add(clock_now_us(), ms * 1000), s->signals.fd };

	while (!take_signals(s) && clock_wait(&wait))
		;
	return s->ended_by == 0;
}

void
screen_close(struct screen *s)
{
	if (s->terminal)
		fputs(FIRST_SCREEN, stdout);
	(void)fflush(stdout);
}
