/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "event.h"
#include "judge_state.h"
#include "kernel.h"
#include "lock/lease.h"
#include "server.h"

#define HOUR_US (3600000 * MS)
#define WINDOW_US (1000 * MS)	/* the shortest handoff window */
#define CALM_IDLE_US (300 * MS) /* without faults a waiter is served within this time, */
#define POLL_US (1000 * MS)	/* or this much later if waiters can't be woken */
#define IDLE_US (10000 * MS)	/* with faults, a waiter retries by itself within this time */
#define ENTRY_US (15000 * MS)	/* a waiter that was killed, or a late request of one, is waiting for so long */
#define LATE_US (1 * MS)	/* allowance after a wait and a round, for the detection of duplicate servers */
#define SKEW_MS 130		/* between the clocks of two servers, for expiry */

struct judge_counts judge_counts;
struct judge_state judge;

/* clang-format off */
#define NAMES(key, base) { key, base ":dlock", base ":dlock:wake", base ":dlock:history" }
#define SLOT(i) NAMES("{" SIM_KEY "}:slot-" i, "{" SIM_KEY "}:slot-" i)
const struct judge_names judge_names[LOCKS] = { NAMES(SIM_KEY, "{" SIM_KEY "}"), SLOT("1"), SLOT("2"), SLOT("3") };
/* clang-format on */

void
judge_breach(const char *rule, const char *format, ...)
{
	va_list args;

	if (judge.breach->rule != NULL)
		return;
	judge.breach->rule = rule;
	va_start(args, format);
	(void)vsnprintf(judge.breach->what, sizeof(judge.breach->what), format, args);
	va_end(args);
	world_say("BROKEN: %s: %s", rule, judge.breach->what);
}

static void
raise_to(int64_t *us, int64_t least_us)
{
	*us = least_us > *us ? least_us : *us;
}

void
judge_start(const struct plan *plan, struct breach *breach)
{
	memset(&judge, 0, sizeof(judge));
	judge_start_nodes();
	judge.plan = plan;
	judge.breach = breach;
	breach->rule = NULL;
	judge.calm = plan_is_calm(plan);
	judge.loses_data = plan_loses_data(plan);
	for (int i = 0; i < plan->faults; i++)
		raise_to(&judge.trouble_until_us, event_now() + plan->fault[i].at_us + plan->fault[i].length_us);
	judge_counts.schedules++;
	judge_counts.faults += (unsigned long)plan->faults;
}

/* Until then nobody need get the lock. */
static void
put_off_all(struct judge_lock *lock, int64_t until_us)
{
	raise_to(&lock->idle_since_us, until_us);
	raise_to(&lock->closed_since_us, until_us);
}

/* The maximum time until a waiter gets a free lock. */
static int64_t
patience(void)
{
	if (judge.calm)
		return CALM_IDLE_US + 60 * plan_delay_us(judge.plan) + (judge.plan->refuses ? POLL_US : 0);
	return IDLE_US + WINDOW_US + 2 * judge.plan->ttl_ms * MS +
	    (judge.plan->net.slow_per_mille > 0 ? judge.plan->net.slow_us * 8 : 0);
}

/* -- Clients ------------------------------------------------------------------------------- */

void
judge_asks(int client, const struct turn *turn)
{
	if (kernel_is_killed(client))
		return;
	judge.slots[client] = turn->slots;
	judge.shared[client] = turn->shared;
	judge.phase[client] = turn->wait_us != 0 ? WAITING : ASKING;
	judge.waits_since_us[client] = event_now();
	judge.preempted_us[client] = kernel_preempted_us(client);
}

/*
 * A wait ends within its bound and one node timeout, unless the process itself was held up.  A reader may have begun to
 * enter by then.  If that fails it releases its hold on all nodes, which takes another node timeout at most: a hold that a
 * slow node keeps would be worse than a late answer.
 */
static void
check_bound(int client, const struct turn *turn)
{
	const int rounds = turn->shared ? 2 : 1;
	const int64_t bound_us = turn->wait_us + rounds * judge.plan->round_ms * MS + LATE_US;
	const int64_t took_us = event_now() - judge.waits_since_us[client] - kernel_preempted_us(client) +
	    judge.preempted_us[client];

	if (turn->wait_us > 0 && took_us > bound_us + bound_us / 200 && !kernel_was_paused(client, took_us))
		judge_breach("a wait ends in time",
		    "client %d waited for %.3f ms; the limit is %.3f and rounds of %" PRId64, client,
		    (double)took_us / 1000, (double)turn->wait_us / 1000, rounds * judge.plan->round_ms);
}

/*
 * Was it refused because of --max-waiters?  Without a fault, so many others have waited since it came; one that has just
 * ended its wait may be noted for a moment more.
 */
static bool
is_crowded_out(int client, const struct turn *turn, const char *why)
{
	const int64_t since_us = judge.waits_since_us[client] - CALM_UNDO_US - 20 * plan_delay_us(judge.plan);
	int others = 0;

	if (strstr(why, "(--max-waiters ") == NULL)
		return false;
	for (int i = 0; i < judge.plan->clients; i++)
		others += i != client && (judge.phase[i] == WAITING || judge.away_since_us[i] >= since_us);
	if (turn->max_waiters == 0 || turn->wait_us == 0 || (judge.calm && others < turn->max_waiters))
		judge_breach("--max-waiters", "client %d was refused beside %d that wait: %s", client, others, why);
	return true;
}

void
judge_asked(int client, const struct turn *turn, enum status status, int slot, const char *why)
{
	if (kernel_is_killed(client))
		return;
	judge.phase[client] = status == ST_OK ? HAVING : AWAY;
	judge.has[client] = slot;
	if (status == ST_OK && (slot < (turn->slots > 0) || slot > turn->slots))
		judge_breach("slots", "client %d asked for one of %d slots and got %d", client, turn->slots, slot);
	if (status == ST_HELD && (strstr(why, "too late") != NULL || strstr(why, "no quorum") != NULL))
		judge_breach("refusals", "client %d was refused as if it were for others: %s", client, why);
	judge.away_since_us[client] = event_now();
	if (status != ST_OK)
		check_bound(client, turn);
	/* A lock that is handed over is reserved. */
	if (judge.calm && status == ST_HELD && turn->shared && strstr(why, "released already") == NULL &&
	    judge.lock[0].closed_since_us + patience() < judge.waits_since_us[client])
		judge_breach("readers enter together", "client %d was refused, but there is no writer: %s", client,
		    why);
	if (status == ST_OK && turn->replace) {
		if (judge.calm && judge.waits_since_us[client] + CALM_IDLE_US < judge.newest_us)
			judge_breach("the newest --replace wins", "client %d got the lock after a newer one", client);
		raise_to(&judge.newest_us, judge.waits_since_us[client]);
	}
	if ((status == ST_HELD && is_crowded_out(client, turn, why)) || !judge.calm || status == ST_OK ||
	    (status == ST_HELD && (turn->wait_us >= 0 || turn->replace)))
		return;
	judge_breach("service", "there is no fault, but client %d was refused: %s", client, why);
}

/* Whatever happens to the client from now on, no other one can have the lock as long as this one relies on it. */
static void
check_validity(int client, const char *hold, int64_t until_us)
{
	const int64_t left_us = until_us - kernel_time_of(client, event_now());

	if (left_us > 0 && !judge.loses_data &&
	    judge_nodes_lasting(judge.has[client], hold, left_us) <= judge.plan->servers / 2)
		judge_breach("validity ends before the lease",
		    "client %d relies on its lock for %.3f ms, but no majority has it for as long", client,
		    (double)left_us / 1000);
}

void
judge_enters(int client, const struct lease *lease)
{
	struct judge_lock *const lock = &judge.lock[lease->slot];
	const int64_t before = judge.shared[client] ? lock->writers_fence : lock->fence;

	judge_counts.entries++;
	world_say("client %d: IS INSIDE, fence %" PRId64 ", for %.3f ms", client, lease->fence,
	    (double)(lease->valid_until_us - kernel_time_of(client, event_now())) / 1000);
	check_validity(client, lease->token, lease->valid_until_us);
	if (judge.shared[client] && strchr(lease->token, '.') != NULL)
		judge_nodes_entered(client);
	if (!judge.loses_data && lease->fence <= before)
		judge_breach("fences grow", "client %d entered with fence %" PRId64 " after %" PRId64, client,
		    lease->fence, before);
	if (lease->fence > server_store(0)->now_us + 25 * HOUR_US)
		judge_breach("fences are times of day", "client %d entered with fence %" PRId64, client, lease->fence);
	if (lease->fence > lock->fence)
		lock->fence = lease->fence;
	if (lease->fence > lock->writers_fence && !judge.shared[client])
		lock->writers_fence = lease->fence;
	if (!judge.loses_data && event_now() < lock->kept_until_us)
		judge_breach("--min-hold", "client %d entered %.3f ms before the end of a lock that was kept", client,
		    (double)(lock->kept_until_us - event_now()) / 1000);
}

void
judge_may_stay(int client, const char *token, int64_t before_us, int64_t until_us)
{
	if (before_us <= kernel_time_of(client, event_now()) && until_us > before_us)
		judge_breach("validity ends", "client %d renewed a lease whose validity had ended", client);
	check_validity(client, token, until_us);
}

void
judge_loses(int client)
{
	if (kernel_is_killed(client))
		return;
	judge_counts.losses++;
	if (judge.calm)
		judge_breach("service", "there is no fault, but client %d lost its lock", client);
}

void
judge_released(int client, const struct lease *lease, int64_t kept_until_us, enum status status,
    enum ownership ownership)
{
	struct judge_lock *const lock = &judge.lock[judge.has[client]];
	const int64_t ttl_us = judge.plan->ttl_ms * MS;
	const int64_t seen_us = ttl_us > WINDOW_US
	    ? ttl_us
	    : WINDOW_US; /* what a waiter has seen: a lease, or a handoff window */

	if (kernel_is_killed(client))
		return;
	if (judge.calm && status != ST_OK)
		judge_breach("service", "there is no fault, but client %d could not release its lock", client);
	if (kept_until_us > 0 && status == ST_OK && token_shared(lease->token))
		put_off_all(lock, event_now() + ttl_us + seen_us);
	if (status != ST_OK || ownership == OWNED_STILL)
		return;
	if (kept_until_us > 0 && strchr(lease->token, '.') != NULL) {
		/*
		 * A node that had not received this further hold may have handed the lock over when the first hold
		 * ended.  That handoff token is valid for the lock that is kept on other nodes, too.
		 */
		put_off_all(lock, event_now() + ttl_us + seen_us);
	} else if (kept_until_us > 0) {
		/* By the clocks of the servers, which may run faster. */
		kept_until_us -= lease_drift_us(kept_until_us - event_now() + ttl_us);
		raise_to(&lock->kept_until_us, kept_until_us);
		/* Its end is not announced: a waiter retries when the lease that it saw has ended. */
		put_off_all(lock, (kept_until_us > event_now() ? kept_until_us : event_now()) + seen_us);
	} else if (!judge.loses_data && judge_nodes_held_by(judge.has[client], lease->token) > judge.plan->servers / 2)
		judge_breach("a release frees the lock", "client %d released %.4s, but a majority still has it", client,
		    lease->token);
}

void
judge_is_asked(int client, const struct lease *lease)
{
	if (!kernel_is_killed(client) && !judge.loses_data &&
	    judge_nodes_asking(judge.has[client], lease->token) <= judge.plan->servers / 2)
		judge_breach("a majority asks", "client %d ends, but no majority of the nodes asks %.4s to", client,
		    lease->token);
}

void
judge_has_ended(int client, int other)
{
	if (!kernel_is_killed(client) && !judge.loses_data && client_is_inside(other))
		judge_breach("--ask waits for the end", "client %d learns that client %d has ended, which is inside",
		    client, other);
}

void
judge_done(int client)
{
	if (kernel_is_killed(client))
		return;
	judge.phase[client] = AWAY;
	judge.away_since_us[client] = event_now();
}

void
judge_crashes(int client)
{
	const int64_t lease_us = judge.plan->ttl_ms * MS + lease_drift_us(judge.plan->ttl_ms * MS);

	for (int i = 0; i < LOCKS && judge.phase[client] != AWAY; i++)
		put_off_all(&judge.lock[i], event_now() + lease_us);
	if (judge.phase[client] != AWAY && !judge.shared[client])
		raise_to(&judge.lock[0].closed_since_us, event_now() + ENTRY_US);
	judge.phase[client] = AWAY;
}

/* -- All nodes ------------------------------------------------------------------------------ */

static void
check_exclusion(void)
{
	int inside[LOCKS] = { 0 }; /* a client and one */

	for (int i = 0; i < judge.plan->clients; i++) {
		if (!client_is_inside(i))
			continue;
		if (inside[judge.has[i]] > 0 && !(judge.shared[i] && judge.shared[inside[judge.has[i]] - 1]))
			judge_breach("exclusion", "clients %d and %d are both inside", inside[judge.has[i]] - 1, i);
		inside[judge.has[i]] = i + 1;
	}
}

/* The last time at which the lock, or each of so many slots, was held. */
static int64_t
idle_since(int slots)
{
	int64_t since = judge.lock[slots].idle_since_us;

	for (; slots > 1; slots--)
		since = judge.lock[slots - 1].idle_since_us < since ? judge.lock[slots - 1].idle_since_us : since;
	return since;
}

/* Check that no waiter sleeps while the lock is free, and no reader while there is no writer. */
static void
check_waiters(void)
{
	int64_t since, longest = 0;
	int waiter = -1;

	for (int i = 0; i < judge.plan->clients; i++) {
		if (judge.phase[i] == HAVING)
			raise_to(&judge.lock[judge.has[i]].idle_since_us, event_now());
		if (judge.phase[i] != AWAY && !judge.shared[i])
			raise_to(&judge.lock[0].closed_since_us, event_now());
	}
	for (int i = 0; i < judge.plan->clients; i++) {
		if (judge.phase[i] != WAITING)
			continue;
		since = judge.shared[i] ? judge.lock[0].closed_since_us : idle_since(judge.slots[i]);
		raise_to(&since, judge.waits_since_us[i]);
		raise_to(&since, judge.trouble_until_us);
		since += kernel_preempted_us(i) - judge.preempted_us[i]; /* a preempted process can't act */
		if (event_now() - since > longest) {
			longest = event_now() - since;
			waiter = i;
		}
	}
	if (judge.calm)
		raise_to(&judge_counts.longest_idle_us, longest);
	if (longest > patience())
		judge_breach("no waiter sleeps while the lock is free",
		    "client %d has been waiting for %.3f ms for a lock that is free, or shared as it asks", waiter,
		    (double)longest / 1000);
}

void
judge_step(void)
{
	judge_counts.events++;
	check_exclusion();
	check_waiters();
	if (kernel_spins())
		judge_breach("endless loop", "a client makes system calls without end");
}

static void
rest(int64_t us)
{
	const int64_t until = event_now() + us;

	while (event_next(until))
		;
}

static void
check_left(int server, const char *key)
{
	if (store_find_text(server_store(server), key) != NULL)
		judge_breach("nothing is left", "all clients have ended, but node %d has %s", server, key);
}

/* The history is kept for 30 days, and is no longer than the clients want it. */
static bool
is_history(const struct store *s, const struct entry *e)
{
	const int64_t month_ms = INT64_C(30) * 24 * (HOUR_US / MS);
	int i = 0;

	while (i < LOCKS && strcmp(e->key.bytes, judge_names[i].history) != 0)
		i++;
	return i < LOCKS && e->items <= 3 && e->expires_ms >= 0 && e->expires_ms <= s->now_us / 1000 + month_ms;
}

/* All clients have ended.  Only the memory of the fence may be left, and in the end only the history. */
void
judge_end(void)
{
	const struct store *s;
	const int64_t most = judge.plan->ttl_ms * MS > WINDOW_US ? judge.plan->ttl_ms * MS : WINDOW_US;

	if (judge.calm) {
		rest(CALM_UNDO_US + 21 * plan_delay_us(judge.plan));
		for (int i = 0; i < judge.plan->servers; i++)
			judge_check_node(i, -1, 0);
	}
	if (judge.trouble_until_us > event_now())
		rest(judge.trouble_until_us - event_now());
	rest((judge.calm ? most : 4000 * MS) + SKEW_MS * MS);
	for (int i = 0; i < judge.plan->servers; i++) {
		for (int k = 0; k < LOCKS; k++) {
			check_left(i, judge_names[k].key);
			check_left(i, judge_names[k].wake);
		}
	}
	rest(4 * HOUR_US);
	for (int i = 0; i < judge.plan->servers; i++) {
		s = server_store(i);
		for (int k = 0; k < s->keys && !plan_spoils(judge.plan, i); k++) {
			if (is_history(s, s->entry[k]))
				continue;
			if (s->entry[k]->expires_ms < 0 || s->entry[k]->expires_ms >= s->now_us / 1000)
				judge_breach("nothing is left", "hours later node %d has %s", i,
				    s->entry[k]->key.bytes);
		}
	}
}
