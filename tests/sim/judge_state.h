/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_JUDGE_STATE_H
#define DLOCK_SIM_JUDGE_STATE_H
/* Shared by the files of the judge. */
#include "judge.h"

#define CALM_UNDO_US (50 * MS) /* without faults a failed attempt is rolled back within this time and some delays */

enum phase {
	AWAY,
	ASKING,	 /* tries once */
	WAITING, /* until it is served */
	HAVING	 /* from the grant until the release is done */
};

struct judge_state {
	const struct plan *plan;
	struct breach *breach;
	bool calm, loses_data;
	enum phase phase[PROCESSES];
	int64_t waits_since_us[PROCESSES];
	int64_t preempted_us[PROCESSES]; /* when the client began to wait, see kernel_preempted_us() */
	int slots[PROCESSES];		 /* what the client asks for */
	bool shared[PROCESSES];		 /* likewise */
	int has[PROCESSES];		 /* the lock that it got, an index */
	struct judge_lock {
		int64_t fence;		 /* the largest that was granted, */
		int64_t writers_fence;	 /* and to a writer */
		int64_t idle_since_us;	 /* the last time at which the lock was held, */
		int64_t closed_since_us; /* and at which a writer held it or waited for it */
		int64_t kept_until_us;	 /* by --min-hold */
	} lock[LOCKS];
	int64_t newest_us; /* when the newest client with --replace that has had the lock began to ask for it */
	int64_t trouble_until_us;
	int64_t away_since_us[PROCESSES];
};
extern struct judge_state judge;

/* Forget what the nodes had stored. */
void judge_start_nodes(void);

/* The number of nodes on which the token holds this lock and has not been released. */
int judge_nodes_held_by(int lock, const char *token);

/* The number of nodes on which this lock is of this hold, and lasts for as long, or longer. */
int judge_nodes_lasting(int lock, const char *hold, int64_t left_us);

/* The number of nodes on which the holder of this lock is asked to end, by this hold. */
int judge_nodes_asking(int lock, const char *hold);

/*
 * This client has entered a shared lock, and knows it.  A renewal on the node does not tell: it may be a late one, of a
 * hold that the client has given up.
 */
void judge_nodes_entered(int client);

/* Check what a node stores.  `taker`: the client that has just acquired this lock there; -1: none. */
void judge_check_node(int server, int taker, int taken);

#endif
