/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_GROUP_H
#define DLOCK_RUN_GROUP_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Does anything in a process group still run?
 *
 * kill(2) counts zombies as well.  One that its parent never reaps, a daemon that left the group, would keep the lock for as
 * long as that parent lives.  So where the group is there, /proc tells whether any of it still runs.
 *
 * That is asked only once the command itself has ended, of one process as a rule: the one that was found to run before.
 * All processes of the host are looked at where that one has ended, at most for a twentieth of the time.  A process that
 * forks may escape one such look, so two of them, one behind the other, must find zombies and nothing else.  Where /proc isn't
 * there or doesn't show everything (hidepid), a zombie counts as in kill(2).
 */
struct group_watch {
	pid_t running;	    /* was found in the group; 0: none */
	int only_zombies;   /* looks in a row that found nothing else */
	int64_t look_at_us; /* not before */
};

/* Has all of the group ended?  The state is zero at first. */
bool group_ended(struct group_watch *, pid_t group, int64_t now_us);

#endif
