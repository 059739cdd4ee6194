/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_JUDGE_H
#define DLOCK_SIM_JUDGE_H
#include "lock/backend.h"
#include "plan.h"
#include "store.h"
#include "world.h"

/*
 * The rules, and whether they are kept.  It sees all of the world at once, with the world's clock.
 */
#define SIM_KEY "job"
#define FACTS "{" SIM_KEY "}:dlock"

void judge_start(const struct plan *, struct breach *);

/* A rule is broken.  The first one counts. */
void judge_breach(const char *rule, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* -- What a client does: ask, be asked, perhaps enter and leave and release, done ------------ */

void judge_asks(int client, bool waits);
void judge_asked(int client, const struct turn *, enum status, const char *why);
void judge_enters(int client, const struct lease *);
void judge_leaves(int client);

/* Its validity is moved, by its own clock. */
void judge_may_stay(int client, int64_t before_us, int64_t until_us);

/* Its lock was lost while it ran. */
void judge_loses(int client);
void judge_released(int client, const struct lease *, int64_t kept_until_us, enum status, enum ownership);
void judge_done(int client);
void judge_crashes(int client);

/* -- What else happens ----------------------------------------------------------------------- */

/* A server has carried out a request. */
void judge_request(int server, int client, int argc, const struct arg *, const struct value *);

/* A server has lost its data. */
void judge_data_lost(int server);

/* When this server next hands the lock over, save what it has then. */
void judge_save_baton(int server);

/* After each event; and when all clients have ended. */
void judge_step(void);
void judge_end(void);

/* How much has been seen since the program began. */
struct judge_counts {
	unsigned long schedules, events, entries, losses, requests, faults;
	int64_t longest_idle_us; /* of calm schedules */
};
extern struct judge_counts judge_counts;

#endif
