/* SPDX-License-Identifier: MIT */
#include "judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "event.h"
#include "kernel.h"
#include "lock/lease.h"
#include "server.h"

#define MS INT64_C(1000)
#define HOUR_US (3600000 * MS)
#define WINDOW_US (1000 * MS)	/* the shortest handoff window */
#define CALM_IDLE_US (300 * MS) /* without faults a waiter is served within this time, */
#define POLL_US (1000 * MS)	/* or this much later if waiters can't be woken, */
#define CALM_UNDO_US (50 * MS)	/* and a failed attempt has been rolled back within this time */
#define IDLE_US (10000 * MS)	/* with faults, a waiter retries by itself within this time */
#define LATE_US (1 * MS)	/* allowance after a wait and a round, for the detection of duplicate servers */
#define SKEW_MS 130		/* between the clocks of two servers, for expiry */

struct judge_counts judge_counts;

enum phase {
	AWAY,
	ASKING,	 /* tries once */
	WAITING, /* until it is served */
	HAVING	 /* from the grant until the release is done */
};

static struct {
	const struct plan *plan;
	struct breach *breach;
	bool calm, loses_data, saves_baton[SERVERS];
	int64_t fence; /* the largest that was granted */
	enum phase phase[PROCESSES];
	int64_t waits_since_us[PROCESSES];
	int64_t preempted_us[PROCESSES]; /* when the client began to wait, see kernel_preempted_us() */
	int64_t idle_since_us;		 /* the last time at which the lock was held */
	int64_t kept_until_us;		 /* by --min-hold */
	int64_t trouble_until_us;
	int64_t away_since_us[PROCESSES];
	struct node_state {
		int64_t fence;
		char token[32]; /* the value of KEY after the last request; "": none */
		int64_t expires_ms;
		bool gone;    /* the token had been released */
		int taken_by; /* the client whose attempt acquired it, or -1 */
	} node[SERVERS];
} j;

void
judge_breach(const char *rule, const char *format, ...)
{
	va_list args;

	if (j.breach->rule != NULL)
		return;
	j.breach->rule = rule;
	va_start(args, format);
	(void)vsnprintf(j.breach->what, sizeof(j.breach->what), format, args);
	va_end(args);
	world_say("BROKEN: %s: %s", rule, j.breach->what);
}

void
judge_start(const struct plan *plan, struct breach *breach)
{
	int i;

	memset(&j, 0, sizeof(j));
	j.plan = plan;
	j.breach = breach;
	breach->rule = NULL;
	j.calm = plan_is_calm(plan);
	j.loses_data = plan_loses_data(plan);
	for (i = 0; i < plan->faults; i++) {
		const int64_t end = event_now() + plan->fault[i].at_us + plan->fault[i].length_us;

		j.trouble_until_us = end > j.trouble_until_us ? end : j.trouble_until_us;
	}
	judge_counts.schedules++;
	judge_counts.faults += (unsigned long)plan->faults;
}

/* -- Clients ------------------------------------------------------------------------------- */

void
judge_asks(int client, bool waits)
{
	if (kernel_is_killed(client))
		return;
	j.phase[client] = waits ? WAITING : ASKING;
	j.waits_since_us[client] = event_now();
	j.preempted_us[client] = kernel_preempted_us(client);
}

/* A wait ends within its bound and one node timeout, unless the process itself was held up. */
static void
check_bound(int client, const struct turn *turn)
{
	const int64_t bound_us = turn->wait_us + j.plan->round_ms * MS + LATE_US;
	const int64_t took_us = event_now() - j.waits_since_us[client] - kernel_preempted_us(client) +
	    j.preempted_us[client];

	if (turn->wait_us > 0 && took_us > bound_us + bound_us / 200 && !kernel_was_paused(client, took_us))
		judge_breach("a wait ends in time", "client %d waited for %.3f ms instead of %.3f and one of %" PRId64,
		    client, (double)took_us / 1000, (double)turn->wait_us / 1000, j.plan->round_ms);
}

void
judge_asked(int client, const struct turn *turn, enum status status, const char *why)
{
	if (kernel_is_killed(client))
		return;
	j.phase[client] = status == ST_OK ? HAVING : AWAY;
	j.away_since_us[client] = event_now();
	if (status != ST_OK)
		check_bound(client, turn);
	if (!j.calm || status == ST_OK || (status == ST_HELD && turn->wait_us >= 0))
		return;
	judge_breach("service", "nothing is wrong, but client %d was refused: %s", client, why);
}

void
judge_enters(int client, const struct lease *lease)
{
	if (kernel_is_killed(client))
		return;
	judge_counts.entries++;
	world_say("client %d: IS INSIDE, fence %" PRId64 ", for %.3f ms", client, lease->fence,
	    (double)(lease->valid_until_us - kernel_time_of(client, event_now())) / 1000);
	if (!j.loses_data && lease->fence <= j.fence)
		judge_breach("fences grow", "client %d entered by fence %" PRId64 " after %" PRId64, client,
		    lease->fence, j.fence);
	if (lease->fence > server_store(0)->now_us + 25 * HOUR_US)
		judge_breach("fences are times of day", "client %d entered by fence %" PRId64, client, lease->fence);
	if (lease->fence > j.fence)
		j.fence = lease->fence;
	if (!j.loses_data && event_now() < j.kept_until_us)
		judge_breach("--min-hold", "client %d entered %.3f ms before the end of a lock that was kept", client,
		    (double)(j.kept_until_us - event_now()) / 1000);
}

void
judge_leaves(int client)
{
	if (!kernel_is_killed(client))
		world_say("client %d: is outside", client);
}

void
judge_may_stay(int client, int64_t before_us, int64_t until_us)
{
	if (kernel_is_killed(client))
		return;
	if (before_us <= kernel_time_of(client, event_now()) && until_us > before_us)
		judge_breach("validity ends", "client %d renewed a lease whose validity had ended", client);
}

void
judge_loses(int client)
{
	if (kernel_is_killed(client))
		return;
	judge_counts.losses++;
	if (j.calm)
		judge_breach("service", "nothing is wrong, but client %d lost its lock", client);
}

/* The number of servers on which the token holds the lock and is not being handed over. */
static int
nodes_held_by(const char *token)
{
	const struct arg held = { token, strlen(token) };
	const struct arg facts = { FACTS, sizeof(FACTS) - 1 };
	const struct arg hget[3] = { { "HGET", 4 }, facts, { "gone", 4 } };
	const struct value *gone;
	const struct entry *e;
	int i, held_on = 0;

	for (i = 0; i < j.plan->servers; i++) {
		e = store_find_text(server_store(i), SIM_KEY);
		if (e == NULL || e->string.length != held.length || memcmp(e->string.bytes, token, held.length) != 0)
			continue;
		gone = store_run(server_store(i), 3, hget);
		held_on += gone->kind != VALUE_TEXT || strcmp(gone->text, token) != 0;
	}
	return held_on;
}

void
judge_released(int client, const struct lease *lease, int64_t kept_until_us, enum status status,
    enum ownership ownership)
{
	const int64_t ttl_us = j.plan->ttl_ms * MS;
	const int64_t seen_us = ttl_us > WINDOW_US
	    ? ttl_us
	    : WINDOW_US; /* what a waiter has seen: a lease, or a handoff window */

	if (kernel_is_killed(client))
		return;
	if (j.calm && status != ST_OK)
		judge_breach("service", "nothing is wrong, but client %d could not give its lock back", client);
	if (status != ST_OK || ownership == OWNED_STILL)
		return;
	if (kept_until_us > 0 && strchr(lease->token, '.') != NULL) {
		/*
		 * A node that had not received this further hold may have handed the lock over when the first hold
		 * ended.  That handoff token is valid for the lock that is kept on other nodes, too.
		 */
		j.idle_since_us = event_now() + ttl_us + seen_us;
	} else if (kept_until_us > 0) {
		/* By the clocks of the servers, which may run faster. */
		kept_until_us -= lease_drift_us(kept_until_us - event_now() + ttl_us);
		j.kept_until_us = kept_until_us > j.kept_until_us ? kept_until_us : j.kept_until_us;
		/* Its end is not announced: a waiter retries when the lease that it saw has ended. */
		j.idle_since_us = (kept_until_us > event_now() ? kept_until_us : event_now()) + seen_us;
	} else if (!j.loses_data && nodes_held_by(lease->token) > j.plan->servers / 2)
		judge_breach("release frees", "client %d gave %.4s back, but a majority still has it", client,
		    lease->token);
}

void
judge_done(int client)
{
	if (kernel_is_killed(client))
		return;
	j.phase[client] = AWAY;
	j.away_since_us[client] = event_now();
}

void
judge_crashes(int client)
{
	const int64_t lease_us = j.plan->ttl_ms * MS + lease_drift_us(j.plan->ttl_ms * MS);

	if (j.phase[client] != AWAY && j.idle_since_us < event_now() + lease_us)
		j.idle_since_us = event_now() + lease_us;
	j.phase[client] = AWAY;
}

/* -- Servers -------------------------------------------------------------------------------- */

void
judge_data_lost(int server)
{
	memset(&j.node[server], 0, sizeof(j.node[server]));
}

void
judge_save_baton(int server)
{
	j.saves_baton[server] = true;
}

static bool
is_key(const struct entry *e, const char *name)
{
	return e->key.length == strlen(name) && memcmp(e->key.bytes, name, e->key.length) == 0;
}

/* The value of a hash field; "" if there is none. */
static const char *
field_of(const struct entry *e, const char *name)
{
	int i;

	for (i = 0; e != NULL && i < e->items; i++) {
		if (strcmp(e->item[i].name.bytes, name) == 0)
			return e->item[i].value.bytes;
	}
	return "";
}

static void
check_fence(int server, const struct entry *facts)
{
	const int64_t fence = strtoll(field_of(facts, "fence"), NULL, 10);

	if (fence < j.node[server].fence && facts != NULL)
		judge_breach("fences grow", "node %d has put its fence back", server);
	j.node[server].fence = fence;
}

/* Check that this change of the holder is permitted. */
static void
check_lock(int server, const struct entry *lock, const struct node_state *before, const struct node_state *now)
{
	const int64_t left_ms = lock != NULL ? now->expires_ms - server_store(server)->now_us / 1000 : 0;
	const bool lasted = before->token[0] != '\0' && before->expires_ms >= server_store(server)->now_us / 1000;

	if (left_ms > 4000)
		judge_breach("leases", "node %d keeps the lock for %" PRId64 " ms", server, left_ms);
	if (lasted && !before->gone && now->token[0] != '\0' && strcmp(before->token, now->token) != 0)
		judge_breach("nobody is robbed", "node %d gave %.4s's lock to %.4s", server, before->token, now->token);
	if (lasted && before->gone && strcmp(before->token, now->token) == 0 &&
	    now->expires_ms > before->expires_ms + 1)
		judge_breach("gone is gone", "node %d lets %.4s last longer, which was given back", server, now->token);
	if (j.calm && now->token[0] != '\0' && !now->gone && now->taken_by >= 0 && j.phase[now->taken_by] == AWAY &&
	    event_now() - j.away_since_us[now->taken_by] > CALM_UNDO_US + 20 * plan_delay_us(j.plan))
		judge_breach("what failed is undone", "node %d still has %.4s of client %d", server, now->token,
		    now->taken_by);
}

/*
 * The client whose attempt this granted request was; -1: it was no attempt.  No other script has this many arguments.
 * The third argument from the end is the name of a waiter.
 */
static int
taker_of(int client, int argc, const struct value *v)
{
	if (argc < 18 || v->kind != VALUE_LIST || v->item[0]->kind != VALUE_INTEGER || v->item[0]->integer != 1)
		return -1;
	return client;
}

/* The invariants of a node. */
static void
check_store(int server, int taker)
{
	const struct store *s = server_store(server);
	const struct entry *lock = NULL, *facts = NULL, *e;
	struct node_state before = j.node[server], *now = &j.node[server];
	int i;

	for (i = 0; i < s->keys; i++) {
		e = s->entry[i];
		if (e->expires_ms < 0)
			judge_breach("nothing stays for ever", "node %d has %s without an end", server, e->key.bytes);
		if (e->expires_ms >= 0 && e->expires_ms < s->now_us / 1000)
			continue;
		if (is_key(e, SIM_KEY))
			lock = e;
		else if (is_key(e, FACTS))
			facts = e;
		else if (is_key(e, FACTS ":wake") && e->items > 1)
			judge_breach("one baton", "node %d has %d of them", server, e->items);
	}
	check_fence(server, facts);
	(void)snprintf(now->token, sizeof(now->token), "%s", lock != NULL ? lock->string.bytes : "");
	now->expires_ms = lock != NULL ? lock->expires_ms : 0;
	now->gone = strcmp(field_of(facts, "gone"), now->token) == 0;
	now->taken_by = taker >= 0 ? taker : strcmp(before.token, now->token) == 0 ? before.taken_by : -1;
	check_lock(server, lock, &before, now);
	if (j.saves_baton[server] && now->gone && now->token[0] != '\0') {
		server_save(server);
		j.saves_baton[server] = false;
	}
}

void
judge_request(int server, int client, int argc, const struct arg *argv, const struct value *v)
{
	const struct node_state was = j.node[server];
	const bool lasts = was.token[0] != '\0' && was.expires_ms >= server_store(server)->now_us / 1000;
	const int taker = taker_of(client, argc, v);

	judge_counts.requests++;
	if (v->kind == VALUE_ERROR)
		judge_breach("errors", "node %d: %s (%.20s, %d arguments)", server, v->text, argv[0].bytes, argc);
	check_store(server, taker);
	if (taker >= 0 && argv[argc - 3].length == 0 && was.gone && lasts)
		judge_breach("newcomers come behind", "client %d, which tries once, took node %d from a waiter", client,
		    server);
}

/* -- All nodes ------------------------------------------------------------------------------ */

static void
check_exclusion(void)
{
	int i, inside = -1;

	for (i = 0; i < j.plan->clients; i++) {
		if (!client_is_inside(i))
			continue;
		if (inside >= 0)
			judge_breach("exclusion", "clients %d and %d are both inside", inside, i);
		inside = i;
	}
}

/* The maximum time until a waiter gets a free lock. */
static int64_t
patience(void)
{
	if (j.calm)
		return CALM_IDLE_US + 60 * plan_delay_us(j.plan) + (j.plan->refuses ? POLL_US : 0);
	return IDLE_US + WINDOW_US + 2 * j.plan->ttl_ms * MS +
	    (j.plan->net.slow_per_mille > 0 ? j.plan->net.slow_us * 8 : 0);
}

/* Check that no waiter sleeps while the lock is free. */
static void
check_waiters(void)
{
	int64_t since, longest = 0;
	int i, waiter = -1;

	for (i = 0; i < j.plan->clients; i++) {
		if (j.phase[i] == HAVING && j.idle_since_us < event_now())
			j.idle_since_us = event_now();
	}
	for (i = 0; i < j.plan->clients; i++) {
		if (j.phase[i] != WAITING)
			continue;
		since = j.waits_since_us[i] > j.idle_since_us ? j.waits_since_us[i] : j.idle_since_us;
		since = since > j.trouble_until_us ? since : j.trouble_until_us;
		since += kernel_preempted_us(i) - j.preempted_us[i]; /* a preempted process can't act */
		if (event_now() - since > longest) {
			longest = event_now() - since;
			waiter = i;
		}
	}
	if (j.calm && longest > judge_counts.longest_idle_us)
		judge_counts.longest_idle_us = longest;
	if (longest > patience())
		judge_breach("nobody sleeps while nobody holds",
		    "client %d has been waiting for %.3f ms for a free lock", waiter, (double)longest / 1000);
}

void
judge_step(void)
{
	judge_counts.events++;
	check_exclusion();
	check_waiters();
	if (kernel_spins())
		judge_breach("endless loop", "a client does the same again and again");
}

static void
rest(int64_t us)
{
	const int64_t until = event_now() + us;

	while (event_next(until))
		;
}

/* All clients have ended.  Only the memory of the fence may be left, and in the end not even that. */
void
judge_end(void)
{
	const struct store *s;
	const int64_t most = j.plan->ttl_ms * MS > WINDOW_US ? j.plan->ttl_ms * MS : WINDOW_US;
	int i, k;

	if (j.calm) {
		rest(CALM_UNDO_US + 21 * plan_delay_us(j.plan));
		for (i = 0; i < j.plan->servers; i++)
			check_store(i, -1);
	}
	if (j.trouble_until_us > event_now())
		rest(j.trouble_until_us - event_now());
	rest((j.calm ? most : 4000 * MS) + SKEW_MS * MS);
	for (i = 0; i < j.plan->servers; i++) {
		if (store_find_text(server_store(i), SIM_KEY) != NULL)
			judge_breach("no ghosts", "everybody has gone, but node %d has the lock", i);
		if (store_find_text(server_store(i), FACTS ":wake") != NULL)
			judge_breach("no ghosts", "everybody has gone, but node %d has a baton", i);
	}
	rest(4 * HOUR_US);
	for (i = 0; i < j.plan->servers; i++) {
		s = server_store(i);
		for (k = 0; k < s->keys && !plan_spoils(j.plan, i); k++) {
			if (s->entry[k]->expires_ms < 0 || s->entry[k]->expires_ms >= s->now_us / 1000)
				judge_breach("no ghosts", "hours later node %d has %s", i, s->entry[k]->key.bytes);
		}
	}
}
