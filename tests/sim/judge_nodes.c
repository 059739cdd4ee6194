/* SPDX-License-Identifier: MIT */
/* The rules for what a node stores. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "entry.h"
#include "event.h"
#include "judge_state.h"
#include "server.h"

#define HOLDS "{" SIM_KEY "}:dlock:holds"
#define WAITING_NAMES "{" SIM_KEY "}:dlock:waiting"
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

static struct reader {
	char token[TOKEN_SIZE]; /* of its last attempt on this node, */
	int64_t began_us;	/* which began then, by its clock, */
	int writers;		/* which so many writers were before, */
	char waiter[160];	/* and its entry */
	double noted_until_ms;
} reader[SERVERS][PROCESSES];

static bool saves_handoff[SERVERS]; /* see judge_save_handoff() */

void
judge_start_nodes(void)
{
	memset(node, 0, sizeof(node));
	memset(waiting, 0, sizeof(waiting));
	memset(reader, 0, sizeof(reader));
	memset(saves_handoff, 0, sizeof(saves_handoff));
}

static const struct item *
item_of(const struct entry *e, const char *name)
{
	return entry_item(e, (struct arg){ name, strlen(name) });
}

/* The score of a member; 0: there is none. */
static double
member_score(int server, const char *set, const char *name)
{
	const struct item *member = item_of(store_find_text(server_store(server), set), name);

	return member != NULL ? member->score : 0;
}

/* The number of holds on the lock of this token that have not ended. */
static int
live_holds(int server, const char *token)
{
	const struct store *s = server_store(server);
	const struct entry *e = store_find_text(server_store(server), HOLDS);
	int live = 0;

	for (int i = 0; e != NULL && i < e->items; i++)
		live += e->item[i].score > (double)s->now_us / 1000 &&
		    strncmp(e->item[i].name.bytes, token, TOKEN_LENGTH) == 0;
	return live;
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
		    e->expires_ms * MS - server_store(i)->now_us >= left_us &&
		    (hold[length] == '\0' || lock > 0 ||
			member_score(i, HOLDS, hold) * MS - (double)server_store(i)->now_us >= (double)left_us);
	}
	return lasting;
}

/* The value of a hash field; "" if there is none. */
static const char *
field_of(const struct entry *e, const char *name)
{
	const struct item *field = item_of(e, name);

	return field != NULL ? field->value.bytes : "";
}

/* The number of servers on which the token holds the lock and is not being handed over. */
int
judge_nodes_held_by(int lock, const char *token)
{
	const struct entry *e;
	int held_on = 0;

	for (int i = 0; i < judge.plan->servers; i++) {
		e = store_find_text(server_store(i), judge_names[lock].key);
		held_on += e != NULL && strcmp(e->string.bytes, token) == 0 &&
		    strcmp(field_of(store_find_text(server_store(i), judge_names[lock].metadata), "gone"), token) != 0;
	}
	return held_on;
}

int
judge_nodes_asking(int lock, const char *hold)
{
	const size_t length = strcspn(hold, ".");
	int asking = 0;

	for (int i = 0; i < judge.plan->servers; i++)
		asking += strncmp(field_of(store_find_text(server_store(i), judge_names[lock].metadata), "asked"), hold,
			      length) == 0;
	return asking;
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

static void
check_fence(int server, struct node_state *now, const struct entry *metadata)
{
	const int64_t fence = strtoll(field_of(metadata, "fence"), NULL, 10);

	if (fence < now->fence && metadata != NULL)
		judge_breach("fences grow", "node %d has a smaller fence than before", server);
	now->fence = fence;
}

/* Has the client that acquired this lock been away for long, and if others may have entered it, have they all? */
static bool
is_left(const struct node_state *now)
{
	for (int i = 0; i < judge.plan->clients; i++) {
		if ((i == now->taken_by || token_shared(now->token)) &&
		    (judge.phase[i] != AWAY ||
			event_now() - judge.away_since_us[i] <= CALM_UNDO_US + 20 * plan_delay_us(judge.plan)))
			return false;
	}
	return true;
}

/* The shared lock of this token has ended on a node.  The only node knows everybody who relies on it. */
static void
check_readers(int server, const char *token)
{
	if (live_holds(server, token) > 0)
		judge_breach("readers keep their lock", "node %d ended the lock of %.4s, which %d readers hold", server,
		    token, live_holds(server, token));
	for (int i = 0; i < judge.plan->clients && judge.plan->servers == 1; i++) {
		if (strncmp(client_relies_on(i), token, TOKEN_LENGTH) == 0)
			judge_breach("readers keep their lock", "the node ended the lock of client %d", i);
	}
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
	if (lasted && !before->gone && token_shared(before->token) &&
	    (now->gone || strcmp(before->token, now->token) != 0))
		check_readers(server, before->token);
	if (judge.calm && now->token[0] != '\0' && !now->gone && now->taken_by >= 0 && is_left(now))
		judge_breach("a failed attempt is rolled back", "node %d still has %.4s of client %d", server,
		    now->token, now->taken_by);
}

/* Arguments of acquire.lua and share.lua in their EVAL, and of renew.lua.  No other script has as many as the first. */
enum {
	ATTEMPT_ARGS = 23, /* or more */
	ATTEMPT_TOKEN = 9,
	ATTEMPT_BEGAN = 11,
	ATTEMPT_WAITER = 17,
	RENEW_ARGS = 10,
	RENEW_HOLD = 7
};

/* The client whose attempt this granted request was; -1: it was no attempt. */
static int
taker_of(int client, int argc, const struct value *v)
{
	if (argc < ATTEMPT_ARGS || v->kind != VALUE_LIST || v->item[0]->kind != VALUE_INTEGER ||
	    v->item[0]->integer != 1)
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
		if (strcmp(e->key.bytes, names->key) == 0)
			lock = e;
		else if (strcmp(e->key.bytes, names->metadata) == 0)
			metadata = e;
		else if (strcmp(e->key.bytes, names->wake) == 0 && e->items > 1)
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

/* What an attempt of a reader has found on the node. */
static void
note_reader(int server, int client, const struct arg *argv)
{
	const struct entry *e = store_find_text(server_store(server), WAITING_NAMES);
	const double own = member_score(server, WAITING_NAMES, argv[ATTEMPT_WAITER].bytes);
	const double ticket = own > 0 ? own - floor(own) : 1;
	struct reader *const r = &reader[server][client];
	const int64_t began_us = strtoll(argv[ATTEMPT_BEGAN].bytes, NULL, 10);
	int writers = 0;
	double score;

	if (began_us < r->began_us) /* late: the client no longer decides by it */
		return;
	for (int i = 0; e != NULL && i < e->items; i++) {
		score = e->item[i].score;
		writers += !token_shared(e->item[i].name.bytes) && score - floor(score) < ticket &&
		    score >= (double)server_store(server)->now_us / 1000;
	}
	/* If it was sent again, the client may have either reply. */
	r->writers = strcmp(r->token, argv[ATTEMPT_TOKEN].bytes) == 0 && r->writers < writers ? r->writers : writers;
	r->began_us = began_us;
	r->noted_until_ms = own;
	(void)snprintf(r->token, sizeof(r->token), "%s", argv[ATTEMPT_TOKEN].bytes);
	(void)snprintf(r->waiter, sizeof(r->waiter), "%s", argv[ATTEMPT_WAITER].bytes);
}

void
judge_nodes_entered(int client)
{
	if (reader[0][client].writers > 0 && !judge.loses_data && judge.plan->servers == 1)
		judge_breach("readers stand behind writers", "client %d has entered, but %d writers were before it",
		    client, reader[0][client].writers);
}

/* A reader has entered the lock on the only node. */
static void
check_entrance(int server, int client)
{
	const struct reader *const r = &reader[server][client];

	if (judge.calm && r->noted_until_ms > (double)server_store(server)->now_us / 1000 &&
	    member_score(server, WAITING_NAMES, r->waiter) <= 0)
		judge_breach("a reader stays noted until it has entered",
		    "client %d has entered, but its entry is gone", client);
}

static void
check_reader(int server, int client, int argc, const struct arg *argv, const struct value *v)
{
	const bool list = v->kind == VALUE_LIST && v->item[0]->kind == VALUE_INTEGER;

	if (argc >= ATTEMPT_ARGS && token_shared(argv[ATTEMPT_TOKEN].bytes))
		note_reader(server, client, argv);
	else if (argc >= RENEW_ARGS && list && v->item[0]->integer == 1 &&
	    strchr(argv[RENEW_HOLD].bytes, '.') != NULL && token_shared(argv[RENEW_HOLD].bytes) &&
	    judge.phase[client] != HAVING && judge.plan->servers == 1)
		check_entrance(server, client);
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
	check_reader(server, client, argc, argv, v);
	if (taker >= 0)
		check_guard(server, client, lock, &was);
	if (taker >= 0 && argv[ATTEMPT_WAITER].length == 0 && was.gone && lasts)
		judge_breach("waiters come first", "client %d, which tries once, took node %d from a waiter", client,
		    server);
}
