/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_RUN_GROUP_H
#define DLOCK_RUN_GROUP_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Detects whether any process of a process group still runs.
 *
 * kill(2) counts zombies as well.  A zombie that its parent, a daemon that left the group, never reaps would keep the
 * lock for as long as that parent lives.  So if kill(2) finds the group, /proc is read to see whether any process of it
 * still runs.
 *
 * This is done only after the command itself has ended, normally for one process: the one that was found running
 * before.  If that one has ended, all processes of the host are examined, for at most a twentieth of the time.  A
 * process that forks may escape one such look, so two looks in a row must find only zombies.  If /proc is missing or
 * does not show all processes (hidepid), a zombie counts, as with kill(2).
 */
struct group_watch {
	pid_t running;	    /* was found running in the group; 0: none */
	int only_zombies;   /* looks in a row that found only zombies */
	int64_t look_at_us; /* no look before this instant */
};

/* Have all processes of the group ended?  Zero the state first. */
bool group_ended(struct group_watch *, pid_t group, int64_t now_us);

/* A process of the group that this one may not signal, since it runs as another user; 0: none. */
pid_t group_forbidden(pid_t group);

#endif
