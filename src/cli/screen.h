/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SCREEN_H
#define DLOCK_CLI_SCREEN_H
#include <stdbool.h>
#include <stdint.h>

#include "cli/output.h"
#include "run/signals.h"

/*
 * Output of --watch, frame by frame.
 *
 * On a terminal each frame replaces the previous one, on the alternate screen, so that the original screen is restored
 * at the end.  Elsewhere frames are printed one after the other, with an empty line between.  Signals are read from a
 * descriptor while the screen is open: ^C ends it, ^Z restores the terminal while dlock is stopped.
 */
struct screen {
	struct signals signals;
	bool terminal;
	bool first;
	bool separated; /* elsewhere: an empty line between frames */
	struct extent extent;
	int ended_by; /* the signal that ended it; 0: none yet */
};

/*
 * Open the screen; `given` is the signal mask that dlock was started with.  If `redrawn` is false, frames are printed
 * one after the other.  ST_SYSTEM: a system error.
 */
enum status screen_open(struct screen *, const sigset_t *given, bool redrawn, struct err *);

/* Begin and end a frame.  Lines end with screen_line_end(). */
void screen_begin(struct screen *);
void screen_end(struct screen *);
const char *screen_line_end(const struct screen *);

/* Wait for `ms`, or until the size of the terminal changes; false if a signal has ended the screen. */
bool screen_wait(struct screen *, int64_t ms);

/* Restore the terminal. */
void screen_close(struct screen *);

#endif
