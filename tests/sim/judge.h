/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_JUDGE_H
#define DLOCK_SIM_JUDGE_H
#include "lock/service.h"
#include "plan.h"
#include "store.h"
#include "world.h"

/*
 * The rules, and the checks that they are kept.  The judge sees the whole simulation, with the simulated time.
 */
#define SIM_KEY "job"
extern const struct judge_names {
	const char *key, *metadata, *wake, *history;
} judge_names[LOCKS];

void judge_start(const struct plan *, struct breach *);

/* Report a broken rule.  Only the first report counts. */
void judge_breach(const char *rule, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* -- What a client does ---------------------------------------------------------------------- */

void judge_asks(int client, const struct turn *);
void judge_asked(int client, const struct turn *, enum status, int slot, const char *why);
void judge_enters(int client, const struct lease *);

/* The validity of its hold has changed, by its own clock. */
void judge_may_stay(int client, const char *token, int64_t before_us, int64_t until_us);

/* It has lost the lock while its command ran. */
void judge_loses(int client);
void judge_released(int client, const struct lease *, int64_t kept_until_us, enum status, enum ownership);
void judge_done(int client);

/* It is asked to end, as a majority of the nodes must say. */
void judge_is_asked(int client, const struct lease *);

/* It learns that another client has ended, whose lock is still the same. */
void judge_has_ended(int client, int other);
void judge_crashes(int client);

/* -- Other events ---------------------------------------------------------------------------- */

/* A server has executed a request. */
void judge_request(int server, int client, int argc, const struct arg *, const struct value *);

/* A server has lost its data. */
void judge_data_lost(int server);

/* Save the data of this server at its next handoff. */
void judge_save_handoff(int server);

/* Call judge_step() after each event, judge_end() when all clients have ended. */
void judge_step(void);
void judge_end(void);

/* Totals since the start of the program. */
struct judge_counts {
	unsigned long schedules, events, entries, losses, requests, faults;
	int64_t longest_idle_us; /* in schedules without faults */
};
extern struct judge_counts judge_counts;

#endif
