/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_COMMAND_H
#define DLOCK_SIM_COMMAND_H
#include "lock/service.h"
#include "plan.h"

/*
 * The state of a client outside of dlock, and the command that it runs under the lock, with its death pipe.  The
 * command is only a duration.
 */
struct client {
	const struct plan *plan;
	int number;
	bool signalled; /* it has received a signal to end */
	int64_t asleep_until_us;
	char slot_key[KEY_MAX + 1];
	bool entered_again; /* in this turn: its lock has had further holds */

	/* the command that runs under the lock */
	bool command;
	int64_t ends_at_us;
	const struct turn *turn;
	bool by_token;	  /* no dlock ends the command: the script relies on the validity it received */
	int64_t until_us; /* end of validity, by its own clock */
	char token[TOKEN_SIZE];
};
extern struct client client[PROCESSES];

void command_start(struct client *, const struct lease *, const struct turn *);

/* The command ends after this time, unless it ends earlier. */
void command_end_in(struct client *, int64_t us);

/* It ends now, if it runs. */
void command_dies(struct client *, const char *why);

#endif
