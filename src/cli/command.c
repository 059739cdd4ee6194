/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <string.h>

static const char *const run_details[] = {
	"Without --wait a held lock means: don't run, exit 75.  The lease is renewed",
	"while COMMAND runs; if that fails, COMMAND is ended before it ends, exit 76.",
	"COMMAND's own exit status is passed on, 128+n if signal n ended it.",
	NULL,
};

static const char *const acquire_details[] = {
	"The lock is yours until its lease ends, or until you give it back:",
	"    token=$(dlock acquire deploy) || exit",
	"    ./deploy.sh; dlock release deploy \"$token\"",
	NULL,
};

static const char *const token_details[] = {
	"TOKEN is what acquire printed.  Without it DLOCK_TOKEN is used; - reads it from",
	"standard input, where nobody sees it in the list of processes.",
	"Exit status 1: it doesn't hold the lock (any more).",
	NULL,
};

static const char *const status_details[] = {
	"PATTERN is one of Redis's KEYS: * ? [..]; without any, every lock is shown.",
	"COLUMNS: KEY STATE TTL OWNER LABEL HELD FENCE WAITING NODES, which are shown,",
	"and USER HOST PID CLIENT TOKEN.",
	"Exit status for one KEY: 0 if it is held, 1 if it is free.",
	NULL,
};

static const char *const break_details[] = {
	"Shows who holds KEY, asks at a terminal, and removes it on all nodes if that",
	"one still holds it.  A dlock run whose lock is broken ends its COMMAND, exit 76.",
	"Exit status: 0 if it was broken, 1 if it was free, 75 if it is still held.",
	NULL,
};

static const char *const doctor_details[] = {
	"Asks each node how it is, and takes, renews and gives back a lock of its own.",
	"Exit status: 0 all is well, 1 with warnings, 69 or 77 if locks can't work.",
	NULL,
};

static const char *const help_details[] = {
	NULL,
};

const struct command commands[] = {
	{ "run", CMD_RUN, "KEY [--] COMMAND [ARG...]", "hold KEY while COMMAND runs", 2, -1, cmd_run, run_details },
	{ "acquire", CMD_ACQUIRE, "KEY", "take KEY, print its token", 1, 1, cmd_acquire, acquire_details },
	{ "renew", CMD_RENEW, "KEY [TOKEN]", "give the lease its full length again", 1, 2, cmd_renew, token_details },
	{ "release", CMD_RELEASE, "KEY [TOKEN]", "give KEY back", 1, 2, cmd_release, token_details },
	{ "status", CMD_STATUS, "[KEY|PATTERN...]", "who holds what, for how long", 0, -1, cmd_status, status_details },
	{ "break", CMD_BREAK, "KEY", "take KEY from whoever holds it", 1, 1, cmd_break, break_details },
	{ "doctor", CMD_DOCTOR, "", "is this Redis fit to keep locks?", 0, 0, cmd_doctor, doctor_details },
	{ "help", CMD_HELP, "[COMMAND]", "show how to use dlock, or one command", 0, 1, cmd_help, help_details },
};

const size_t command_count = sizeof(commands) / sizeof(commands[0]);

const struct command *
command_find(const char *name)
{
	size_t i;

	for (i = 0; i < command_count; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}
