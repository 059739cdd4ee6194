/* SPDX-License-Identifier: MIT */
/*
 * dlock: distributed locks for scripts, cron jobs and deploys.
 *
 * main() parses the command line, runs the command, prints its error message, and exits.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "run/signals.h"

/*
 * Print a line to standard error without blocking: it is dropped if the pipe is full or the terminal is stopped by ^S,
 * since a lease may need renewal meanwhile.  The rest of a line that was written in part is written as well.
 */
static void
say(const char *line)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
	const char *at;
	char text[1100];
	ssize_t n;
	int left;

	left = snprintf(text, sizeof(text), "dlock: %s\n", line);
	if (left >= (int)sizeof(text))
		return;
	for (at = text; left > 0 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0; at += n, left -= (int)n) {
		n = write(STDERR_FILENO, at, (size_t)left);
		if (n <= 0)
			break;
	}
}

/*
 * Occupy standard descriptors that were closed, so that no socket gets their numbers.  A placeholder cannot be used in
 * the usual direction, and it is closed again in the command.
 */
static void
occupy_standard_descriptors(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}

static const struct invocation *step_of; /* its KEY is named in each step */

/* The same for --verbose, with the time. */
static void
say_step(const char *line)
{
	const int64_t now_us = clock_wall_us();
	char at[TIME_SIZE], text[1060];
	struct err step;

	(void)snprintf(step.text, sizeof(step.text), "%s", line);
	setup_name_key(step_of, &step);
	(void)snprintf(text, sizeof(text), "%s.%03d %s", duration_show_time(now_us, at), (int)(now_us / 1000 % 1000),
	    step.text);
	say(text);
}

int
main(int argc, char **argv)
{
	struct err err = { "" };
	struct invocation inv;
	enum status status;
	int code;

	if (argc > 1 && strcmp(argv[1], "--complete") == 0) {
		command_complete(argv + 2);
		return ST_OK;
	}
	occupy_standard_descriptors();
	status = invocation_parse(&inv, argc, argv, &err);
	signals_block_failed_writes(&inv.given_mask);
	inv.log.warn = say;
	step_of = &inv;
	if (inv.options.verbose)
		inv.log.debug = say_step;
	if (status == ST_OK && inv.warning.text[0] != '\0')
		setup_warn(&inv, "%s", inv.warning.text);
	if (status != ST_OK)
		setup_name_key(&inv, &err);
	else if (inv.options.help || inv.options.version)
		status = cmd_help(&inv, &err);
	else
		status = inv.command->run(&inv, &err);
	if (status != ST_OK && err.text[0] != '\0' && !(status == ST_HELD && inv.options.quiet))
		fprintf(stderr, "dlock: %s\n", err.text);
	code = inv.exit_status;
	if (code < 0) {
		code = inv.died_of != 0 ? 128 + inv.died_of
		    : status == ST_HELD ? inv.options.conflict_exit
					: (int)status & 255;
		if (status != ST_OK)
			cmd_acquire_failed(&inv, code);
	}
	if (inv.died_of != 0)
		signals_die_of(inv.died_of); /* returns if it is ignored, or in the first process of a container */
	invocation_free(&inv);
	return code;
}
