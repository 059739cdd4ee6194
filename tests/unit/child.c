/* SPDX-License-Identifier: MIT */
#include "run/child.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

/* Start `sh -c LINE` at the latest at until_us, and wait until it has ended. */
static enum status
run(const char *line, int64_t until_us, struct child *child, struct err *err)
{
	char sh[] = "sh", c[] = "-c", text[64];
	char *argv[] = { sh, c, text, NULL };
	struct signals signals = { .fd = -1 };
	struct death_pipe death_pipe;
	const struct child_plan plan = { .argv = argv,
		.terminal = -1,
		.death_pipe = &death_pipe,
		.until_us = until_us,
		.signals = &signals };
	enum status status;

	if (death_pipe_open(&death_pipe, CLOCK_NEVER, 0, 0, err) != ST_OK)
		return ST_SYSTEM;
	(void)snprintf(text, sizeof(text), "%s", line);
	(void)sigprocmask(SIG_BLOCK, NULL, &signals.given);
	status = child_start(&plan, child, err);
	while (status == ST_OK && !child->ended)
		(void)child_reap(child);
	death_pipe_close(&death_pipe);
	return status;
}

int
main(void)
{
	struct child child;
	struct err err = { "" };
	char folder[64];

	temporary_folder(folder, sizeof(folder));
	if (chdir(folder) != 0)
		return 1;
	is_int(run("echo >in-time; exit 3", CLOCK_NEVER, &child, &err), ST_OK, "in time");
	is_int(child.status, 3 << 8, "its status");
	is_int(access("in-time", F_OK), 0, "it ran");
	is_int(run("echo >too-late", clock_now_us(), &child, &err), ST_NO_QUORUM, "too late");
	ok(strstr(err.text, "granted too late") != NULL, "the message: %s", err.text);
	is_int(access("too-late", F_OK), -1, "it never ran");
	(void)unlink("in-time");
	(void)rmdir(folder);
	return tap_end();
}
