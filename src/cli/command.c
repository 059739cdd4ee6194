/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <string.h>

#include "base/text.h"

static const char run_details[] = "If another holds the lock, COMMAND is not run and the exit status is 75; see\n"
				  "--wait.  The lease is renewed while COMMAND runs.  If that fails, COMMAND is\n"
				  "ended before the lease ends, and the exit status is 76.\n";

static const char acquire_details[] =
    "The lock is held until its lease ends or until it is released:\n"
    "    token=$(dlock acquire deploy) || exit\n"
    "    ./deploy.sh; dlock release deploy \"$token\"\n"
    "or, renewed in the background, until the script ends:\n"
    "    token=$(dlock acquire --keep $$ deploy) || exit\n"
    "-k, --on-lost, --exec-on-lost and --signal need --keep: COMMAND is then PID.\n"
    "SHELL is sh (also for bash, dash, ksh, zsh), the default, or fish.  eval of what\n"
    "--export prints fails if the lock was not acquired.\n";

#define TOKEN_DETAILS                                                                      \
	"TOKEN is the output of acquire; the default is DLOCK_TOKEN.  With - it is read\n" \
	"from standard input, which keeps it out of the list of processes.\n"              \
	"Exit status 1: TOKEN does not hold the lock, or no longer holds it.\n"

static const char renew_details[] =
    "The length is that of acquire, or --ttl.  A renewal makes no lease shorter.\n" TOKEN_DETAILS;

static const char status_details[] = "PATTERN has * for any characters, ? for one, [..] for one of these.  Without\n"
				     "operands all locks are shown.\n"
				     "COLUMNS: KEY STATE TTL OWNER LABEL HELD FENCE WAITING NODES, which are shown by\n"
				     "default, and USER HOST PID CLIENT TOKEN.\n"
				     "Exit status for a single KEY: 0 if it is held, 1 if it is free.\n"
				     "With --waiters or --max-age: 0, or 1 if nobody waits, or a success is older.\n";

static const char history_details[] = "Shows the last holders, the newest first: when, how long they held and waited,\n"
				      "and the OUTCOME: the exit status of COMMAND or the signal that ended it, lost,\n"
				      "max-run, released, expired (not released), broken and by whom, held (still).\n"
				      "Exit status: 0 if a holder is known for each KEY, else 1.\n";

static const char break_details[] = "Shows the holder, asks for confirmation at a terminal, and removes the lock\n"
				    "from all nodes if it still has that holder.  A dlock run whose lock is broken\n"
				    "ends its COMMAND and exits with 76.\n"
				    "Exit status: 0 if it was broken, 1 if it was free, 75 if it is still held.\n";

static const char doctor_details[] = "Checks each node, and acquires, renews and releases a test lock on it.\n"
				     "Exit status: 0 if all is well, 1 with warnings, 69 or 77 if too few nodes can\n"
				     "keep locks.\n";

static const char config_details[] = "Prints name, value and origin of each setting: option, environment VARIABLE,\n"
				     "FILE:LINE or default.  Passwords are hidden.\n";

const struct command commands[] = {
	{ "run", CMD_RUN, "KEY [--] COMMAND [ARG...]", "hold KEY while COMMAND runs", 2, -1, cmd_run, run_details },
	{ "acquire", CMD_ACQUIRE, "KEY", "acquire KEY and print its token", 1, 1, cmd_acquire, acquire_details },
	{ "renew", CMD_RENEW, "KEY [TOKEN]", "renew the lease for its full length", 1, 2, cmd_token, renew_details },
	{ "release", CMD_RELEASE, "KEY [TOKEN]", "release KEY", 1, 2, cmd_token, TOKEN_DETAILS },
	{ "status", CMD_STATUS, "[KEY|PATTERN...]", "show who holds which locks", 0, -1, cmd_status, status_details },
	{ "history", CMD_HISTORY, "KEY...", "show who held KEY before", 1, -1, cmd_history, history_details },
	{ "break", CMD_BREAK, "KEY", "take KEY away from its holder", 1, 1, cmd_break, break_details },
	{ "doctor", CMD_DOCTOR, "", "check whether the nodes can keep locks", 0, 0, cmd_doctor, doctor_details },
	{ "config", CMD_CONFIG, "", "show each setting, and where it comes from", 0, 0, cmd_config, config_details },
	{ "help", CMD_HELP, "[COMMAND]", "show help for dlock or a command", 0, 1, cmd_help, "" },
};

const size_t command_count = sizeof(commands) / sizeof(commands[0]);

/* The command that is meant by its name in other tools; NULL: none. */
static const char *
suggest(const char *name)
{
	static const char *const others[][2] = { { "unlock", "release" }, { "free", "release" }, { "lock", "acquire" },
		{ "take", "acquire" }, { "list", "status" }, { "ls", "status" }, { "show", "status" },
		{ "ps", "status" }, { "exec", "run" }, { "kill", "break" }, { "check", "doctor" } };
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strcmp(others[i][0], name) == 0)
			return others[i][1];
	}
	return NULL;
}

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

enum status
command_unknown(const char *name, struct err *err)
{
	const char *const meant = suggest(name);
	char shown[100];

	(void)text_show(name, shown, sizeof(shown));
	if (meant != NULL)
		return err_set(err, ST_USAGE, "unknown command '%s'; did you mean %s? see dlock --help", shown, meant);
	return err_set(err, ST_USAGE, "unknown command '%s'; see dlock --help", shown);
}
