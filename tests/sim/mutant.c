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
#include "wrap.h"

enum in_c {
	NOT_IN_C,
	ASKED_BY_ONE,
	GRANTED_FROM_ANSWER,
	HALF_A_MAJORITY,
	LATE_RENEWAL,
	NO_ROLLBACK,
	NO_PASSING_ON,
	NO_SENDING_AGAIN,
	NO_UNDO_AT_SILENT,
	SAME_TOKEN,
	SHARED_ALL_MARKED,
	SHARED_LEAVES_AT_ONCE,
	SHARED_NOBODY_INVITED,
	SHARED_ONE_NODE_INVITES,
	SHARED_WRITER_INVITES_NOBODY,
	SLOTS_ADDED_UP,
	SLOTS_ANOTHERS_HANDOFF,
	SLOTS_BLOCK_ANYWHERE,
	SLOTS_LOOK_IN_TWO_STEPS,
	SLOTS_ONE_LIST,
	SLOTS_OWN_WAITERS,
	VALID_FROM_ANSWER
};

static const struct mutant {
	const char *name;
	const char *from, *to; /* in a script */
	enum in_c in_c;
} mutants[] = {
	{ "asked-anyone", "asked == token and by or ''", "by or ''", NOT_IN_C },
	{ "asked-by-one-node", NULL, NULL, ASKED_BY_ONE },
	{ "fence-not-bounded", "if fence / 1000 > now + DAY then", "if false then", NOT_IN_C },
	{ "fence-not-raised", "fence = math.max(fence + 1, ", "fence = math.max(0, ", NOT_IN_C },
	{ "fence-not-written-back", "if (tonumber(redis.call('HGET', meta, 'fence') or 0) or 0) < fence then",
	    "if false then", NOT_IN_C },
	{ "gone-is-renewed", "if holder ~= token or field[1] == token then", "if holder ~= token then", NOT_IN_C },
	{ "granted-from-the-answer", NULL, NULL, GRANTED_FROM_ANSWER },
	{ "half-a-majority", NULL, NULL, HALF_A_MAJORITY },
	{ "handoff-twice", "field[2] == handoff and redis.pcall('GET', key) == handoff", "redis.pcall('GET', key)",
	    NOT_IN_C },
	{ "handoff-unreleased", "field[2] == handoff and ", "", NOT_IN_C },
	{ "heal-without-check", "if not redis.call('SET', key, token, 'NX', 'PX', string.format('%.0f', longest)) then",
	    "if not redis.call('SET', key, token, 'PX', string.format('%.0f', longest)) then", NOT_IN_C },
	{ "late-renewal", NULL, NULL, LATE_RENEWAL },
	{ "max-waiters-none", "and count_waiters() >= most and", "and", NOT_IN_C },
	{ "min-hold-deletes", "redis.call('PEXPIRE', key, keep)\nelseif", "redis.call('DEL', key)\nelseif", NOT_IN_C },
	{ "no-guard", "if up < math.abs(guard) and", "if false and", NOT_IN_C },
	{ "newcomers-take-handoffs", "local node, handoff, waiter = ARGV[7] or '1', ARGV[8] or ''",
	    "local node, handoff, waiter = ARGV[7] or '1', redis.pcall('LINDEX', KEYS[4], 0) or ARGV[8]", NOT_IN_C },
	{ "no-expiry", "redis.call('SET', key, token, 'NX', 'PX', ARGV[2])\nif",
	    "redis.call('SET', key, token, 'NX')\nif", NOT_IN_C },
	{ "no-hand-over", "if siblings == 0 or redis.call('ZCOUNT', waiting, now, '+inf') == 0 then", "if true then",
	    NOT_IN_C },
	{ "no-passing-on", NULL, NULL, NO_PASSING_ON },
	{ "no-sending-again", NULL, NULL, NO_SENDING_AGAIN },
	{ "no-undo", NULL, NULL, NO_ROLLBACK },
	{ "no-undo-at-silent-nodes", NULL, NULL, NO_UNDO_AT_SILENT },
	{ "release-without-check", "elseif holder == token then\nlocal done", "elseif holder then\nlocal done",
	    NOT_IN_C },
	{ "same-token-again", NULL, NULL, SAME_TOKEN },
	{ "set-without-nx", "redis.call('SET', key, token, 'NX', 'PX', ARGV[2])\nif",
	    "redis.call('SET', key, token, 'PX', ARGV[2])\nif", NOT_IN_C },
	{ "shared-all-marked", NULL, NULL, SHARED_ALL_MARKED },
	{ "shared-behind-nobody", "count = count + (distance > own and 1 or 0)", "count = 0", NOT_IN_C },
	{ "shared-ends-under-others", "if redis.call('EXISTS', holds) == 1 then\nreturn release()",
	    "if false then\nreturn release()", NOT_IN_C },
	{ "shared-first-node-decides", "return count\n", "return ARGV[7] == '1' and count or 1\n", NOT_IN_C },
	{ "shared-first-not-added", "redis.call('ZADD', holds, 'NX', ms(now + left), token)", "", NOT_IN_C },
	{ "shared-leaves-at-once", NULL, NULL, SHARED_LEAVES_AT_ONCE },
	{ "shared-nobody-invited", NULL, NULL, SHARED_NOBODY_INVITED },
	{ "shared-one-node-invites", NULL, NULL, SHARED_ONE_NODE_INVITES },
	{ "shared-set-says-ended", "if hold ~= token and redis.call('ZCOUNT', holds, ms(now), '+inf') == 0 then",
	    "if hold ~= token and redis.call('EXISTS', holds) == 0 then", NOT_IN_C },
	{ "shared-writer-invites-nobody", NULL, NULL, SHARED_WRITER_INVITES_NOBODY },
	{ "slots-added-up", NULL, NULL, SLOTS_ADDED_UP },
	{ "slots-anothers-handoff", NULL, NULL, SLOTS_ANOTHERS_HANDOFF },
	{ "slots-block-anywhere", NULL, NULL, SLOTS_BLOCK_ANYWHERE },
	{ "slots-look-in-two-steps", NULL, NULL, SLOTS_LOOK_IN_TWO_STEPS },
	{ "slots-noted-beside-a-free-one", "if not free and waiter ~= '' and not crowded then", "if waiter ~= '' then",
	    NOT_IN_C },
	{ "slots-one-list", NULL, NULL, SLOTS_ONE_LIST },
	{ "slots-own-waiters", NULL, NULL, SLOTS_OWN_WAITERS },
	{ "stale-holds", "redis.call('DEL', holds)\nredis.call('HSET'", "redis.call('HSET'", NOT_IN_C },
	{ "undo-without-check", "if redis.call('GET', key) == token then", "if true then", NOT_IN_C },
	{ "young-handoff", "(exchange or redis.call('EXISTS', key) == 0)", "redis.call('EXISTS', key) == 0", NOT_IN_C },
	{ "valid-from-the-answer", NULL, NULL, VALID_FROM_ANSWER },
};

static enum in_c chosen;
static const char *in_script;

bool
mutant_choose(const char *name)
{
	for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++) {
		if (strcmp(mutants[i].name, name) != 0)
			continue;
		chosen = mutants[i].in_c;
		in_script = mutants[i].from;
		script_mutate(mutants[i].from, mutants[i].to);
		return true;
	}
	return false;
}

bool
mutant_can_be_made(void)
{
	for (int i = SCRIPT_ACQUIRE; i <= SCRIPT_UNSHARE && in_script != NULL; i++) {
		if (strstr(command_script((enum script)i), in_script) != NULL)
			return true;
	}
	return in_script == NULL;
}

int
mutant_list(void)
{
	for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++)
		(void)puts(mutants[i].name);
	return 0;
}

/* -- Mistakes in C: with --wrap these replace functions of the library ------------------------- */

/* An attempt calls this before its requests are sent, so that it changes renewals and entries only. */
WRAPPED(int64_t, lease_valid_until, (int64_t sent_us, int64_t ttl_us))
{
	return __real_lease_valid_until(chosen == VALID_FROM_ANSWER ? clock_now_us() : sent_us, ttl_us);
}

WRAPPED(enum attempt_step, attempt_next, (struct attempt * a, int64_t now_us))
{
	if (chosen == GRANTED_FROM_ANSWER)
		a->valid_until_us = __real_lease_valid_until(now_us, a->terms.ttl_us);
	return __real_attempt_next(a, now_us);
}

WRAPPED(bool, attempt_perhaps_granted, (const struct attempt *a, int node))
{
	return chosen != NO_ROLLBACK && __real_attempt_perhaps_granted(a, node) &&
	    (chosen != NO_UNDO_AT_SILENT || a->grants.vote[node] == VOTE_YES);
}

/* The next two: a request that is lost with a closed connection fails at once and isn't sent again. */
WRAPPED(void, server_check_idle, (struct server * c))
{
	if (chosen != NO_SENDING_AGAIN)
		__real_server_check_idle(c);
}

WRAPPED(bool, server_was_closed, (const struct result *r))
{
	return chosen != NO_SENDING_AGAIN && __real_server_was_closed(r);
}

WRAPPED(bool, lease_over, (const struct lease_schedule *k, int64_t now_us))
{
	return chosen != LATE_RENEWAL && __real_lease_over(k, now_us);
}

WRAPPED(void, waitqueue_pass_on, (struct waitqueue * q, int64_t until_us))
{
	if (chosen != NO_PASSING_ON)
		__real_waitqueue_pass_on(q, until_us);
}

/* An attempt asks each node for another slot. */
WRAPPED(void, node_send, (struct node * n, const struct command *c, node_completion *completion, void *context))
{
	struct command other = *c; /* its numbers are those of the original */
	const struct acquire *const t = context;
	const struct keys *names;
	int i = 0;

	if (chosen == SLOTS_ADDED_UP && c->argv[1] == command_script(SCRIPT_ACQUIRE) && t->slots != NULL) {
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
	if (chosen != SHARED_ALL_MARKED)
		__real_token_share(token);
}

/* A reader is no longer noted when it enters. */
WRAPPED(bool, waitqueue_await_node, (struct acquire * t))
{
	if (chosen == SHARED_LEAVES_AT_ONCE)
		waitqueue_unlist(&t->queue);
	return __real_waitqueue_await_node(t);
}

/* Only a reader that got the lock from the queue sends it in this way. */
WRAPPED(void, nodes_send_all, (struct nodes * n, const struct command *c, node_completion *completion, void *context))
{
	const bool invites = c->argv[1] == command_script(SCRIPT_INVITE);

	if (invites && chosen == SHARED_ONE_NODE_INVITES)
		node_send(n->node[n->count - 1], c, completion, context);
	else if (!invites || chosen != SHARED_NOBODY_INVITED)
		__real_nodes_send_all(n, c, completion, context);
}

WRAPPED(void, waitqueue_leave, (struct waitqueue * q, const bool noted[NODES_MAX], int64_t until_us))
{
	q->invites = q->invites && chosen != SHARED_WRITER_INVITES_NOBODY;
	__real_waitqueue_leave(q, noted, until_us);
}

WRAPPED(void, keys_of, (const char *key, struct keys *names))
{
	__real_keys_of(key, names);
	if (chosen == SLOTS_OWN_WAITERS)
		(void)snprintf(names->sibling[WAITING], sizeof(names->sibling[WAITING]), "%.1000s:waiting",
		    names->sibling[METADATA]);
}

WRAPPED(void, slots_enter, (struct acquire * t))
{
	if (chosen == SLOTS_ANOTHERS_HANDOFF)
		t->queue.list = (t->queue.list + 1) % t->queue.lists;
	__real_slots_enter(t);
}

/* Only slots ask for it from another file: the look leaves no entry, another request does before BLPOP. */
WRAPPED(int64_t, waitqueue_entry_ms, (const struct acquire *t))
{
	return chosen == SLOTS_LOOK_IN_TWO_STEPS && t->slots != NULL ? 0 : __real_waitqueue_entry_ms(t);
}

WRAPPED(bool, waitqueue_join, (struct waitqueue * q, int node))
{
	const int lists = q->lists;
	struct command request;
	bool joined;

	if (chosen == SLOTS_LOOK_IN_TWO_STEPS) {
		command_slots(&request, q->names, q->lists);
		command_add(&request, q->waiter);
		command_add_number(&request, 15000);
		nodes_send_all(q->nodes, &request, NULL, NULL);
	}
	q->lists = chosen == SLOTS_ONE_LIST ? 1 : lists;
	joined = __real_waitqueue_join(q, chosen == SLOTS_BLOCK_ANYWHERE ? q->nodes->count - 1 : node);
	q->lists = lists;
	return joined;
}

WRAPPED(enum verdict, quorum_judge, (const struct ballot *b))
{
	int yes = 0;

	for (int i = 0; i < b->nodes; i++)
		yes += b->vote[i] == VOTE_YES;
	if (chosen == HALF_A_MAJORITY && yes > 0 && yes >= b->nodes / 2)
		return VERDICT_CARRIED;
	return __real_quorum_judge(b);
}

WRAPPED(enum status, redis_renew,
    (struct backend * backend, struct lease *lease, const struct wait *limit, struct renewed *renewed, struct err *err))
{
	const struct wait late = { CLOCK_NEVER, limit->interrupt_fd };

	const enum status status = __real_redis_renew(backend, lease, chosen == LATE_RENEWAL ? &late : limit, renewed,
	    err);
	const struct redis_backend *const s = (const struct redis_backend *)backend;

	for (int i = 0; i < s->nodes.count && chosen == ASKED_BY_ONE && status == ST_OK; i++) {
		if (s->renewal->round.asked[i])
			memcpy(renewed->asked_by, s->renewal->round.asked_by, sizeof(renewed->asked_by));
	}
	return status;
}

WRAPPED(bool, token_new, (char token[TOKEN_SIZE]))
{
	static const char same[] = "AAAAAAAAAAAAAAAAAAAAAA";
	const bool fine = __real_token_new(token);

	if (chosen == SAME_TOKEN)
		memcpy(token, same, sizeof(same));
	else if (chosen == SHARED_ALL_MARKED)
		__real_token_share(token);
	return fine;
}
