/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lock/attempt.h"
#include "lock/lease.h"
#include "lock/quorum.h"
#include "lock/token.h"
#include "redis/command.h"
#include "redis/operations.h"
#include "redis/server.h"
#include "redis/slots.h"
#include "store.h"

static const struct mutant {
	const char *name;
	const char *from, *to; /* in a script; NULL: it is in C, below */
} mutants[] = {
	{ "asked-anyone", "asked == token and by or ''", "by or ''" },
	{ "asked-by-one-node", NULL, NULL },
	{ "fence-not-bounded", "if fence / 1000 > now + DAY then", "if false then" },
	{ "fence-not-raised", "fence = math.max(fence + 1, ", "fence = math.max(0, " },
	{ "fence-not-written-back", "if (tonumber(redis.call('HGET', meta, 'fence') or 0) or 0) < fence then",
	    "if false then" },
	{ "gone-is-renewed", "if holder ~= token or field[1] == token then", "if holder ~= token then" },
	{ "granted-from-the-answer", NULL, NULL },
	{ "half-a-majority", NULL, NULL },
	{ "handoff-twice", "field[2] == handoff and redis.pcall('GET', key) == handoff", "redis.pcall('GET', key)" },
	{ "handoff-unreleased", "field[2] == handoff and ", "" },
	{ "heal-without-check", "if not redis.call('SET', key, token, 'NX', 'PX', string.format('%.0f', longest)) then",
	    "if not redis.call('SET', key, token, 'PX', string.format('%.0f', longest)) then" },
	{ "late-renewal", NULL, NULL },
	{ "max-waiters-none", "and count_waiters() >= most and", "and" },
	{ "min-hold-deletes", "redis.call('PEXPIRE', key, keep)\nelseif", "redis.call('DEL', key)\nelseif" },
	{ "no-guard", "if up < math.abs(guard) and", "if false and" },
	{ "newcomers-take-handoffs", "local node, handoff, waiter = ARGV[7] or '1', ARGV[8] or ''",
	    "local node, handoff, waiter = ARGV[7] or '1', redis.pcall('LINDEX', KEYS[4], 0) or ARGV[8]" },
	{ "no-expiry", "redis.call('SET', key, token, 'NX', 'PX', ARGV[2])\nif",
	    "redis.call('SET', key, token, 'NX')\nif" },
	{ "no-hand-over", "if siblings == 0 or redis.call('ZCOUNT', waiting, now, '+inf') == 0 then", "if true then" },
	{ "no-passing-on", NULL, NULL },
	{ "no-sending-again", NULL, NULL },
	{ "no-undo", NULL, NULL },
	{ "no-undo-at-silent-nodes", NULL, NULL },
	{ "release-without-check", "elseif holder == token then\nlocal done", "elseif holder then\nlocal done" },
	{ "same-token-again", NULL, NULL },
	{ "set-without-nx", "redis.call('SET', key, token, 'NX', 'PX', ARGV[2])\nif",
	    "redis.call('SET', key, token, 'PX', ARGV[2])\nif" },
	{ "shared-all-marked", NULL, NULL },
	{ "shared-behind-nobody", "count = count + (distance > own and 1 or 0)", "count = 0" },
	{ "shared-ends-under-others", "if redis.call('EXISTS', holds) == 1 then\nreturn release()",
	    "if false then\nreturn release()" },
	{ "shared-first-node-decides", "return count\n", "return ARGV[7] == '1' and count or 1\n" },
	{ "shared-first-not-added", "redis.call('ZADD', holds, 'NX', ms(now + left), token)", "" },
	{ "shared-leaves-at-once", NULL, NULL },
	{ "shared-nobody-invited", NULL, NULL },
	{ "shared-one-node-invites", NULL, NULL },
	{ "shared-set-says-ended", "if hold ~= token and redis.call('ZCOUNT', holds, ms(now), '+inf') == 0 then",
	    "if hold ~= token and redis.call('EXISTS', holds) == 0 then" },
	{ "shared-writer-invites-nobody", NULL, NULL },
	{ "slots-added-up", NULL, NULL },
	{ "slots-anothers-handoff", NULL, NULL },
	{ "slots-block-anywhere", NULL, NULL },
	{ "slots-look-in-two-steps", NULL, NULL },
	{ "slots-noted-beside-a-free-one", "if not free and waiter ~= '' and not crowded then",
	    "if waiter ~= '' then" },
	{ "slots-one-list", NULL, NULL },
	{ "slots-own-waiters", NULL, NULL },
	{ "stale-holds", "redis.call('DEL', holds)\nredis.call('HSET'", "redis.call('HSET'" },
	{ "undo-without-check", "if redis.call('GET', key) == token then", "if true then" },
	{ "young-handoff", "(exchange or redis.call('EXISTS', key) == 0)", "redis.call('EXISTS', key) == 0" },
	{ "valid-from-the-answer", NULL, NULL },
};

static const struct mutant none = { "", NULL, NULL }, *chosen = &none;

bool
mutant_choose(const char *name)
{
	for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++) {
		if (strcmp(mutants[i].name, name) != 0)
			continue;
		chosen = &mutants[i];
		script_mutate(mutants[i].from, mutants[i].to);
		return true;
	}
	return false;
}

bool
mutant_can_be_made(void)
{
	for (int i = SCRIPT_ACQUIRE; i <= SCRIPT_UNSHARE && chosen->from != NULL; i++) {
		if (strstr(command_script((enum script)i), chosen->from) != NULL)
			return true;
	}
	return chosen->from == NULL;
}

int
mutant_list(void)
{
	for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++)
		(void)puts(mutants[i].name);
	return 0;
}

/* -- Mistakes in C: with --wrap these replace functions of the library ------------------------- */

static bool
is(const char *name)
{
	return strcmp(chosen->name, name) == 0;
}

/* An attempt calls this before its requests are sent, so that it changes renewals and entries only. */
WRAPPED(int64_t, lease_valid_until, (int64_t sent_us, int64_t ttl_us))
{
	return __real_lease_valid_until(is("valid-from-the-answer") ? clock_now_us() : sent_us, ttl_us);
}

WRAPPED(enum attempt_step, attempt_next, (struct attempt * a, int64_t now_us))
{
	if (is("granted-from-the-answer"))
		a->valid_until_us = __real_lease_valid_until(now_us, a->terms.ttl_us);
	return __real_attempt_next(a, now_us);
}

WRAPPED(bool, attempt_perhaps_granted, (const struct attempt *a, int node))
{
	return !is("no-undo") && __real_attempt_perhaps_granted(a, node) &&
	    (!is("no-undo-at-silent-nodes") || a->grants.vote[node] == VOTE_YES);
}

/* The next two: a request that is lost with a closed connection fails at once and isn't sent again. */
WRAPPED(void, server_check_idle, (struct server * c))
{
	if (!is("no-sending-again"))
		__real_server_check_idle(c);
}

WRAPPED(bool, server_was_closed, (const struct result *r))
{
	return !is("no-sending-again") && __real_server_was_closed(r);
}

WRAPPED(bool, lease_over, (const struct lease_schedule *k, int64_t now_us))
{
	return !is("late-renewal") && __real_lease_over(k, now_us);
}

WRAPPED(void, waitqueue_pass_on, (struct waitqueue * q, int64_t until_us))
{
	if (!is("no-passing-on"))
		__real_waitqueue_pass_on(q, until_us);
}

/* An attempt asks each node for another slot. */
WRAPPED(void, node_send, (struct node * n, const struct command *c, node_completion *completion, void *context))
{
	struct command other = *c; /* its numbers are those of the original */
	const struct acquire *const t = context;
	const struct keys *names;
	int i = 0;

	if (is("slots-added-up") && c->argv[1] == command_script(SCRIPT_ACQUIRE) && t->slots != NULL) {
		while (t->nodes->node[i] != n)
			i++;
		names = &t->slots->names[t->token[i] % t->slots->count];
		other.argv[3] = names->key;
		other.length[3] = strlen(names->key);
		for (i = METADATA; i <= WAITING; i++) {
			other.argv[4 + i] = names->sibling[i];
			other.length[4 + i] = strlen(names->sibling[i]);
		}
	}
	__real_node_send(n, &other, completion, context);
}

WRAPPED(void, token_share, (char *token))
{
	if (!is("shared-all-marked"))
		__real_token_share(token);
}

/* A reader is no longer noted when it enters. */
WRAPPED(bool, waitqueue_await_node, (struct acquire * t))
{
	if (is("shared-leaves-at-once"))
		waitqueue_unlist(&t->queue);
	return __real_waitqueue_await_node(t);
}

/* Only a reader that got the lock from the queue sends it in this way. */
WRAPPED(void, nodes_send_all, (struct nodes * n, const struct command *c, node_completion *completion, void *context))
{
	const bool invites = c->argv[1] == command_script(SCRIPT_INVITE);

	if (invites && is("shared-one-node-invites"))
		node_send(n->node[n->count - 1], c, completion, context);
	else if (!invites || !is("shared-nobody-invited"))
		__real_nodes_send_all(n, c, completion, context);
}

WRAPPED(void, waitqueue_leave, (struct waitqueue * q, const bool noted[NODES_MAX], int64_t until_us))
{
	q->invites = q->invites && !is("shared-writer-invites-nobody");
	__real_waitqueue_leave(q, noted, until_us);
}

WRAPPED(void, keys_of, (const char *key, struct keys *names))
{
	__real_keys_of(key, names);
	if (is("slots-own-waiters"))
		(void)snprintf(names->sibling[WAITING], sizeof(names->sibling[WAITING]), "%.1000s:waiting",
		    names->sibling[METADATA]);
}

WRAPPED(void, slots_enter, (struct acquire * t))
{
	if (is("slots-anothers-handoff"))
		t->queue.list = (t->queue.list + 1) % t->queue.lists;
	__real_slots_enter(t);
}

/* Only slots ask for it from another file: the look leaves no entry, another request does before BLPOP. */
WRAPPED(int64_t, waitqueue_entry_ms, (const struct acquire *t))
{
	return is("slots-look-in-two-steps") && t->slots != NULL ? 0 : __real_waitqueue_entry_ms(t);
}

WRAPPED(bool, waitqueue_join, (struct waitqueue * q, int node))
{
	const int lists = q->lists;
	struct command request;
	bool joined;

	if (is("slots-look-in-two-steps")) {
		command_slots(&request, q->names, q->lists);
		command_add(&request, q->waiter);
		command_add_number(&request, 15000);
		nodes_send_all(q->nodes, &request, NULL, NULL);
	}
	q->lists = is("slots-one-list") ? 1 : lists;
	joined = __real_waitqueue_join(q, is("slots-block-anywhere") ? q->nodes->count - 1 : node);
	q->lists = lists;
	return joined;
}

WRAPPED(enum verdict, quorum_judge, (const struct ballot *b))
{
	int yes = 0;

	for (int i = 0; i < b->nodes; i++)
		yes += b->vote[i] == VOTE_YES;
	if (is("half-a-majority") && yes > 0 && yes >= b->nodes / 2)
		return VERDICT_CARRIED;
	return __real_quorum_judge(b);
}

WRAPPED(enum status, redis_renew,
    (struct backend * backend, struct lease *lease, const struct wait *limit, struct renewed *renewed, struct err *err))
{
	const struct wait late = { CLOCK_NEVER, limit->interrupt_fd };

	const enum status status = __real_redis_renew(backend, lease, is("late-renewal") ? &late : limit, renewed, err);
	const struct redis_backend *const s = (const struct redis_backend *)backend;

	for (int i = 0; i < s->nodes.count && is("asked-by-one-node") && status == ST_OK; i++) {
		if (s->renewal->round.asked[i])
			memcpy(renewed->asked_by, s->renewal->round.asked_by, sizeof(renewed->asked_by));
	}
	return status;
}

WRAPPED(bool, token_new, (char token[TOKEN_SIZE]))
{
	static const char same[] = "AAAAAAAAAAAAAAAAAAAAAA";
	const bool fine = __real_token_new(token);

	if (is("same-token-again"))
		memcpy(token, same, sizeof(same));
	else if (is("shared-all-marked"))
		__real_token_share(token);
	return fine;
}
