/* SPDX-License-Identifier: MIT */
/* The rules for what a node stores. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "judge_state.h"
#include "server.h"

#define SLOTS_WAITING "{" SIM_KEY "}:slots:dlock:waiting"

static struct node_state {
	int64_t fence;
	char token[32]; /* the value of KEY after the last request; "": none */
	int64_t expires_ms;
	bool gone;	   /* the token had been released */
	int taken_by;	   /* the client whose attempt acquired it, or -1 */
	char restored[32]; /* the token in the older data that the node started with */
} node[SERVERS][LOCKS];

static int waiting[SERVERS]; /* entries of those who wait for a slot, after the last request */

static bool saves_handoff[SERVERS]; /* see judge_save_handoff() */

void
judge_start_nodes(void)
{
	memset(node, 0, sizeof(node));
	memset(waiting, 0, sizeof(waiting));
	memset(saves_handoff, 0, sizeof(saves_handoff));
}

/* The number of servers on which the token holds the lock and is not being handed over. */
int
judge_nodes_held_by(int lock, const char *token)
{
	const struct arg held = { token, strlen(token) };
	const struct arg metadata = { judge_names[lock].metadata, strlen(judge_names[lock].metadata) };
	const struct arg hget[3] = { { "HGET", 4 }, metadata, { "gone", 4 } };
	const struct value *gone;
	const struct entry *e;
	int held_on = 0;

	for (int i = 0; i < judge.plan->servers; i++) {
		e = store_find_text(server_store(i), judge_names[lock].key);
		if (e == NULL || e->string.length != held.length || memcmp(e->string.bytes, token, held.length) != 0)
			continue;
		gone = store_run(server_store(i), 3, hget);
		held_on += gone->kind != VALUE_TEXT || strcmp(gone->text, token) != 0;
	}
	return held_on;
}

int
judge_nodes_lasting(int lock, const char *hold, int64_t left_us)
{
	const size_t length = strcspn(hold, ".");
	const struct entry *e;
	int lasting = 0;

	for (int i = 0; i < judge.plan->servers; i++) {
		e = store_find_text(server_store(i), judge_names[lock].key);
		lasting += e != NULL && e->string.length == length && memcmp(e->string.bytes, hold, length) == 0 &&
		    e->expires_ms * MS - server_store(i)->now_us >= left_us;
	}
	return lasting;
}

/* The number of entries of those who wait for a slot. */
static int
waiters(int server)
{
	const struct entry *e = judge.plan->slots > 0 ? store_find_text(server_store(server), SLOTS_WAITING) : NULL;

	return e != NULL ? e->items : 0;
}

void
judge_data_lost(int server)
{
	const struct entry *e;

	memset(&node[server], 0, sizeof(node[server]));
	waiting[server] = waiters(server);
	for (int i = 0; i <= judge.plan->slots; i++) {
		e = store_find_text(server_store(server), judge_names[i].key);
		(void)snprintf(node[server][i].restored, sizeof(node[server][i].restored), "%s",
		    e != NULL ? e->string.bytes : "");
	}
}

void
judge_save_handoff(int server)
{
	saves_handoff[server] = true;
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
	for (int i = 0; e != NULL && i < e->items; i++) {
		if (strcmp(e->item[i].name.bytes, name) == 0)
			return e->item[i].value.bytes;
	}
	return "";
}

static void
check_fence(int server, struct node_state *now, const struct entry *metadata)
{
	const int64_t fence = strtoll(field_of(metadata, "fence"), NULL, 10);

	if (fence < now->fence && metadata != NULL)
		judge_breach("fences grow", "node %d has a smaller fence than before", server);
	now->fence = fence;
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
		judge_breach("no lock is overwritten", "node %d gave the lock of %.4s to %.4s", server, before->token,
		    now->token);
	if (lasted && before->gone && strcmp(before->token, now->token) == 0 &&
	    now->expires_ms > before->expires_ms + 1)
		judge_breach("a released lock is not prolonged",
		    "node %d prolonged the lock of %.4s, which was released", server, now->token);
	if (judge.calm && now->token[0] != '\0' && !now->gone && now->taken_by >= 0 &&
	    judge.phase[now->taken_by] == AWAY &&
	    event_now() - judge.away_since_us[now->taken_by] > CALM_UNDO_US + 20 * plan_delay_us(judge.plan))
		judge_breach("a failed attempt is rolled back", "node %d still has %.4s of client %d", server,
		    now->token, now->taken_by);
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

static void
check_one(int server, int number, int taker)
{
	const struct judge_names *const names = &judge_names[number];
	const struct store *s = server_store(server);
	const struct entry *lock = NULL, *metadata = NULL, *e;
	struct node_state before = node[server][number], *now = &node[server][number];

	for (int i = 0; i < s->keys; i++) {
		e = s->entry[i];
		if (e->expires_ms < 0)
			judge_breach("every key expires", "node %d has %s without an expiry", server, e->key.bytes);
		if (e->expires_ms >= 0 && e->expires_ms < s->now_us / 1000)
			continue;
		if (is_key(e, names->key))
			lock = e;
		else if (is_key(e, names->metadata))
			metadata = e;
		else if (is_key(e, names->wake) && e->items > 1)
			judge_breach("one handoff token", "node %d has %d of them", server, e->items);
	}
	check_fence(server, now, metadata);
	(void)snprintf(now->token, sizeof(now->token), "%s", lock != NULL ? lock->string.bytes : "");
	now->expires_ms = lock != NULL ? lock->expires_ms : 0;
	now->gone = strcmp(field_of(metadata, "gone"), now->token) == 0;
	now->taken_by = taker >= 0 ? taker : strcmp(before.token, now->token) == 0 ? before.taken_by : -1;
	check_lock(server, lock, &before, now);
	if (saves_handoff[server] && now->gone && now->token[0] != '\0') {
		server_save(server);
		saves_handoff[server] = false;
	}
}

void
judge_check_node(int server, int taker, int taken)
{
	for (int i = 0; i <= judge.plan->slots; i++)
		check_one(server, i, i == taken ? taker : -1);
}

/* A look of a waiter adds its entry, but only where all of its slots are held. */
static void
check_entries(int server, int argc, const struct arg *argv)
{
	const int before = waiting[server];
	int slots = judge.plan->slots;

	waiting[server] = waiters(server);
	if (argc > 3 && strcmp(argv[3].bytes, SLOTS_WAITING) == 0)
		slots = (argv[2].bytes[0] - '1') / 2;
	for (int i = 1; i <= slots && waiting[server] > before; i++) {
		if (store_find_text(server_store(server), judge_names[i].key) == NULL)
			judge_breach("waiters are noted where all slots are held",
			    "node %d has noted a waiter, but slot %d is free", server, i);
	}
}

/* The repeated request of a token that has the lock already is no new grant. */
static void
check_guard(int server, int client, int lock, const struct node_state *before)
{
	const struct store *s = server_store(server);
	const char *token = node[server][lock].token;

	if (judge.plan->guarded && s->now_us - s->started_us < judge.plan->ttl_ms * MS &&
	    strcmp(before->token, token) != 0 && strcmp(before->restored, token) != 0)
		judge_breach("a node that has just started grants nothing", "node %d gave the lock to client %d",
		    server, client);
}

/* The lock of a request, by its first key; 0 as well if it is that of no lock. */
static int
lock_of(struct arg key)
{
	int i;

	for (i = judge.plan->slots; i > 0 && strcmp(key.bytes, judge_names[i].key) != 0; i--)
		;
	return i;
}

void
judge_request(int server, int client, int argc, const struct arg *argv, const struct value *v)
{
	const int lock = argc > 3 ? lock_of(argv[3]) : 0;
	const struct node_state was = node[server][lock];
	const bool lasts = was.token[0] != '\0' && was.expires_ms >= server_store(server)->now_us / 1000;
	const int taker = taker_of(client, argc, v);

	judge_counts.requests++;
	if (v->kind == VALUE_ERROR)
		judge_breach("errors", "node %d: %s (%.20s, %d arguments)", server, v->text, argv[0].bytes, argc);
	judge_check_node(server, taker, lock);
	check_entries(server, argc, argv);
	if (taker >= 0)
		check_guard(server, client, lock, &was);
	if (taker >= 0 && argv[argc - 3].length == 0 && was.gone && lasts)
		judge_breach("waiters come first", "client %d, which tries once, took node %d from a waiter", client,
		    server);
}
