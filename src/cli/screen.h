/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SCREEN_H
#define DLOCK_CLI_SCREEN_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/output.h"

/*
 * Standard output that is shown again and again.
 *
 * On a terminal every frame takes the place of the one before, on the terminal's second screen, so that nothing of what was
 * there is lost; elsewhere frames follow one another, with an empty line between.  Signals are read from a descriptor while
 * the screen is open: ^C ends it, ^Z gives the terminal back meanwhile.
 */
struct screen {
	int fd; /* readable when a signal has come */
	bool terminal;
	bool first;
	bool separated; /* elsewhere: with an empty line */
	struct extent extent;
	sigset_t given;
	int ended_by; /* the signal that ends it; 0: none yet */
};

/* Where frames are not redrawn, they only follow one another.  ST_SYSTEM if the system refuses. */
enum status screen_open(struct screen *, bool redrawn, struct err *);

/* Begin and end a frame.  Lines end with screen_line_end(). */
void screen_begin(struct screen *);
void screen_end(struct screen *);
const char *screen_line_end(const struct screen *);

/* Wait for so long, or until a frame is wanted at once (the size has changed); false when the screen is to end. */
bool screen_wait(struct screen *, int64_t ms);

/* The terminal is as it was. */
void screen_close(struct screen *);

#endif
