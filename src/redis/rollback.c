/* SPDX-License-Identifier: MIT */
#include "redis/rollback.h"

#include <string.h>

#include "base/clock.h"

/* The minimum time for nodes whose reply did not matter to receive a rollback. */
#define GRACE_US 20000
#define RESENDS 2

/* A node as near as those that decided the attempt replies within this time, or within took_us. */
#define HEAR_US 1000

/* -- The tokens ------------------------------------------------------------- */

/* Record that the node may hold this token. */
static void
note(struct rollbacks *all, int node, const char *token)
{
	struct rollback *r = &all->rollback[node][all->next[node]];

	node_cancel(all->nodes->node[node], r);
	all->next[node] = (all->next[node] + 1) % ROLLBACKS_MAX;
	memcpy(r->token, token, strlen(token) + 1);
	r->sent = false;
}

static void
rolled_back(void *context, int node, const struct result *result)
{
	struct rollback *const r = context;

	(void)node;
	if (result->reply != NULL && reply_kind(result->reply) == REPLY_INTEGER)
		r->token[0] = '\0';
	r->sent = false;
}

bool
rollback_send(struct rollbacks *all, int node, const struct keys *keys)
{
	struct command command;
	struct rollback *r;
	bool any = false;

	for (r = all->rollback[node]; r < all->rollback[node] + ROLLBACKS_MAX; r++) {
		if (r->token[0] == '\0' || r->sent)
			continue;
		command_eval(&command, SCRIPT_UNDO, keys);
		command_add(&command, r->token);
		r->sent = true;
		node_send(all->nodes->node[node], &command, rolled_back, r);
		any = true;
	}
	return any;
}

/* Is there a rollback that was sent and has no reply yet? */
static bool
is_pending(const struct rollbacks *all, int node)
{
	int i;

	for (i = 0; i < ROLLBACKS_MAX; i++) {
		if (all->rollback[node][i].token[0] != '\0' && all->rollback[node][i].sent)
			return true;
	}
	return false;
}

/* -- One attempt ------------------------------------------------------------ */

/*
 * Must this node's reply to a rollback be awaited?  Yes, if the node has replied to the attempt.  If it has not, only
 * for the grace period, since it may be hung.  It is not enough that the rollback was written: a server that finds the
 * connection closed when it replies to the attempt reads no further, and the rollback is lost.  An unresponsive node is
 * not waited for.
 */
static bool
is_awaited(const struct rollbacks *all, const struct failed_attempt *f, int node, bool in_grace)
{
	const bool replied = f->attempt->grants.vote[node] != VOTE_PENDING;

	return is_pending(all, node) && (replied || (in_grace && !all->nodes->unresponsive[node]));
}

static bool
any_is_awaited(const struct rollbacks *all, const struct failed_attempt *f, bool in_grace)
{
	int i;

	for (i = 0; i < all->nodes->count; i++) {
		if (is_awaited(all, f, i, in_grace))
			return true;
	}
	return false;
}

static bool
send_all(struct rollbacks *all, const struct keys *keys)
{
	bool any = false;
	int i;

	for (i = 0; i < all->nodes->count; i++)
		any = rollback_send(all, i, keys) || any;
	return any;
}

/*
 * May this node reply soon?  Not for a Cluster, whose server may redirect the attempt: there the rollback must have
 * been sent already, so that the attempt is not resent.
 */
static bool
is_about_to_reply(const struct rollbacks *all, const struct attempt *a, int node)
{
	return a->grants.vote[node] == VOTE_PENDING && attempt_perhaps_granted(a, node) &&
	    !all->nodes->unresponsive[node] && node_url(all->nodes->node[node])->kind != URL_CLUSTER;
}

static bool
any_is_about_to_reply(const struct rollbacks *all, const struct attempt *a)
{
	int i;

	for (i = 0; i < all->nodes->count; i++) {
		if (is_about_to_reply(all, a, i))
			return true;
	}
	return false;
}

/*
 * Record the rollbacks that are not recorded yet, except those of nodes whose reply is awaited.  True if there was one.
 */
static bool
note_all(struct rollbacks *all, const struct failed_attempt *f, bool noted[NODES_MAX], bool hear)
{
	bool any = false;
	int i;

	for (i = 0; i < all->nodes->count; i++) {
		if (noted[i] || !attempt_perhaps_granted(f->attempt, i) ||
		    (hear && is_about_to_reply(all, f->attempt, i)))
			continue;
		note(all, i, f->token);
		noted[i] = any = true;
	}
	return any;
}

static int64_t
at_least(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void
rollback_attempt(struct rollbacks *all, const struct failed_attempt *f)
{
	struct nodes *const n = all->nodes;
	const int64_t now = clock_now_us();
	const int64_t until = clock_sooner(clock_add(now, at_least(n->node_timeout_us, GRACE_US)), f->until_us);
	const int64_t grace = clock_sooner(clock_add(now, at_least(8 * f->took_us, GRACE_US)), until);
	const int64_t hear_until = clock_sooner(clock_add(now, at_least(f->took_us, HEAR_US)), grace);
	bool noted[NODES_MAX] = { false }, more, in_grace = true, hear = f->hear;
	int resends = RESENDS;
	enum loop_event event;
	int64_t end;

	nodes_note_unresponsive(n, &f->attempt->grants);
	nodes_stop_connecting(n, !f->attempt->grants.closed);
	for (;;) {
		hear = hear && clock_now_us() < hear_until && any_is_about_to_reply(all, f->attempt);
		more = note_all(all, f, noted, hear);
		if ((more || resends > 0) && send_all(all, f->keys) && !more)
			resends--;
		if (more)
			log_debug(&n->log, "taking back what may have been granted");
		if (!hear && !any_is_awaited(all, f, in_grace))
			break;
		end = in_grace ? grace : until;
		event = loop_turn(&n->loop, hear ? hear_until : end, -1);
		if (event != LOOP_TIME || hear)
			continue;
		if (end == until)
			break;
		in_grace = false;
	}
}
