/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "lock/lease.h"

/*
 * VOTE_NO: the lock is not ours; does a majority know that the token was released?  VOTE_YES: it is; does a majority
 * know that its holder is asked to end?  A single node may be wrong, or know of a request that the others never got.
 * If one says so, the others are waited for as far as they may decide it.
 */
static bool
learn(const struct round *r, enum vote vote, const struct wait *limit)
{
	const int majority = quorum_majority(r->ballot.nodes);
	struct waiting w = { .nodes = r->nodes, .limit = *limit };
	int i, say, open;

	do {
		say = open = 0;
		for (i = 0; i < r->ballot.nodes; i++) {
			say += r->ballot.vote[i] == vote && (vote == VOTE_NO ? r->lock[i].fence == 1 : r->asked[i]);
			open += r->ballot.vote[i] == VOTE_PENDING && !r->ballot.unresponsive[i];
		}
	} while (say > 0 && say < majority && say + open >= majority && nodes_await(&w, ROUND_OPEN));
	return say >= majority;
}

enum status
redis_renew(struct backend *backend, struct lease *lease, const struct wait *limit, struct renewed *renewed,
    struct err *err)
{
	struct redis_backend *const s = (struct redis_backend *)backend;
	struct waiting w = { .nodes = &s->nodes, .limit = nodes_limit(&s->nodes, limit) };
	const bool learns = lease->ttl_ms == 0; /* the shortest length that a node that renewed it reports */
	struct renewal *renewal;
	struct round *round;
	enum status status;
	bool open;
	int i;

	if (s->renewal == NULL)
		s->renewal = malloc(sizeof(*s->renewal));
	renewal = s->renewal;
	if (renewal == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	round = &renewal->round;
	keys_of(lease->key, &renewal->names);
	command_eval(&renewal->request, SCRIPT_RENEW, &renewal->names, "%s %jd %jd", lease->token, lease->ttl_ms,
	    lease->fence);
	if (s->guard_s != 0)
		command_add_number(&renewal->request, s->guard_s);
	round->holds = renewal->holds;
	nodes_cancel(&s->nodes, renewal); /* pending heals of the previous renewal */
	memset(renewal->loss, 0, sizeof(renewal->loss));
	log_debug(&s->nodes.log, "renewing the lease");
	renewed->sent_us = clock_now_us();
	nodes_round_run(round, &renewal->request, &w);
	open = quorum_judge(&round->ballot) == VERDICT_OPEN;
	if (w.event == LOOP_INTERRUPTED && open)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	if (w.event == LOOP_TIME && open)
		nodes_round_close(round);
	for (i = 0; learns && i < round->ballot.nodes; i++) {
		if (round->ballot.vote[i] == VOTE_YES && (lease->ttl_ms == 0 || round->lock[i].ttl_ms < lease->ttl_ms))
			lease->ttl_ms = round->lock[i].ttl_ms;
	}
	renewed->valid_until_us = lease_valid_until(renewed->sent_us, lease->ttl_ms * 1000);
	status = nodes_round_outcome(round, &renewed->ownership, err);
	renewed->released = status == ST_NO && learn(round, VOTE_NO, &w.limit);
	renewed->asked_by[0] = '\0';
	if (status == ST_OK && learn(round, VOTE_YES, &w.limit))
		memcpy(renewed->asked_by, round->asked_by, sizeof(round->asked_by));
	return status;
}

/* -- Healing ---------------------------------------------------------------- */

#define LEFT_MOST_MS (INT64_C(1) << 50)

static void
healed(void *context, int node, const struct result *d)
{
	struct renewal *const r = context;

	const int64_t number = reply_kind(d->reply) == REPLY_INTEGER ? reply_integer(d->reply) : 0;

	r->loss[node].state = LOSS_OVER;
	if (number < 0 && number > -LEFT_MOST_MS) { /* another holder came first */
		r->round.lock[node].left_ms = -number;
		r->round.replied_us[node] = clock_now_us();
	}
	log_debug(&r->round.nodes->log, "%s: the lock %s", node_name(r->round.nodes->node[node]),
	    number == 1 ? "was restored there" : "could not be restored there");
}

/*
 * Send the heal of a node, on the connection on which the loss was reported: a server that has restarted since then may
 * have lost more than the lock.
 */
static void
send_heal(struct redis_backend *s, const struct lease *lease, int node)
{
	struct renewal *r = s->renewal;
	struct command request;

	r->loss[node].state = LOSS_HEALING;
	command_eval(&request, SCRIPT_HEAL, &r->names, "%s %jd %jd %jd %s %s %jd %s", lease->token, lease->ttl_ms,
	    lease->fence, r->loss[node].until_ms, lease->owner != NULL ? lease->owner : "",
	    lease->label != NULL ? lease->label : "", (clock_now_us() - lease->sent_us) / 1000, r->round.holds);
	request.once = true;
	request.connection = r->loss[node].connection;
	node_send(s->nodes.node[node], &request, healed, r);
}

/* Send what is due.  True while there is something to wait for. */
static bool
heal_on(struct redis_backend *s, const struct lease *lease, int64_t valid_until_us)
{
	struct renewal *const r = s->renewal;
	struct round *const round = &r->round;
	struct node_loss *loss;
	bool busy = false, asks = false;
	int i;

	for (i = 0; i < s->nodes.count; i++) {
		loss = &r->loss[i];
		if (loss->state != LOSS_NONE || round->ballot.vote[i] != VOTE_NO || round->owner[i] != OWNED_BY_NOBODY)
			continue;
		/*
		 * Nobody holds the lock there.  The reply was received at replied_us, when the node's clock was at
		 * server_ms or later.  The heal expires when that clock has advanced by the validity that remained
		 * then.
		 */
		loss->state = LOSS_FOUND;
		loss->until_ms = round->lock[i].server_ms + (valid_until_us - round->replied_us[i]) / 1000;
		loss->connection = round->connection[i];
	}
	for (i = 0; i < s->nodes.count && quorum_judge(&round->ballot) == VERDICT_CARRIED; i++) {
		loss = &r->loss[i];
		if (loss->state == LOSS_DUE)
			send_heal(s, lease, i);
		else if (loss->state == LOSS_FOUND) {
			loss->state = LOSS_DUE;
			asks = true;
		}
	}
	/*
	 * Query the holds for a healed node only after its loss is known: by then, a hold that it lost is on a majority
	 * of the other nodes.  An earlier reply may be older than that hold.
	 */
	if (asks)
		nodes_round_start(round, &s->nodes, &r->request);
	for (i = 0; i < s->nodes.count; i++)
		busy = busy || r->loss[i].state == LOSS_HEALING;
	return busy || nodes_round_standing(round) != ROUND_OVER;
}

int64_t
redis_heal(struct backend *backend, const struct lease *lease, int64_t valid_until_us, const struct wait *limit)
{
	struct redis_backend *s = (struct redis_backend *)backend;
	struct waiting w = { .nodes = &s->nodes, .limit = nodes_limit(&s->nodes, limit) };
	const struct round *const r = &s->renewal->round;
	int64_t end = CLOCK_NEVER;
	int i;

	if (s->nodes.count == 1)
		return CLOCK_NEVER;
	while (nodes_await(&w, heal_on(s, lease, valid_until_us) ? ROUND_OPEN : ROUND_OVER))
		;
	/*
	 * After an interrupt the other nodes must not be marked as unresponsive: the release that follows must reach
	 * them.
	 */
	if (w.event != LOOP_INTERRUPTED)
		nodes_round_close(&s->renewal->round);
	/* When the lease of another holder ends on a node that could not be healed. */
	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->lock[i].left_ms > 0)
			end = clock_sooner(end, r->replied_us[i] + (r->lock[i].left_ms + 1) * 1000);
	}
	return end;
}

/* -- Entering again --------------------------------------------------------- */

/*
 * The fence of the lock: the one that was claimed, if so many nodes confirm it, or the one that a majority has
 * recorded;
 * 0 if there is none.  A node may have a greater fence from an attempt that failed.
 */
static int64_t
find_fence(const struct round *r, int64_t claimed, int confirming)
{
	const int majority = quorum_majority(r->ballot.nodes);
	int64_t fence;
	int i, j, same;

	for (i = -1; i < r->ballot.nodes; i++) {
		fence = i < 0 ? claimed : r->lock[i].fence;
		for (j = same = 0; j < r->ballot.nodes; j++)
			same += r->ballot.vote[j] == VOTE_YES && r->lock[j].fence == fence;
		if (fence > 0 && same >= (i < 0 ? confirming : majority))
			return fence;
	}
	return 0;
}

/*
 * The fence of a reader, after the first round of two: the second one records it.  Each writer before has recorded its
 * own on a majority, so it is less than the greatest that a majority found, or that a majority agrees on.  A node with
 * a fence that no node would record (renew.lua) does not count: 0 if the others are too few so far.
 */
static int64_t
fence_of_reader(const struct round *r)
{
	int64_t fence = find_fence(r, 0, 0), most = 0;
	int i, sane = 0;

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] != VOTE_YES || r->lock[i].fence / 1000 > r->lock[i].server_ms + DAY_MS)
			continue;
		sane++;
		most = r->lock[i].fence > most ? r->lock[i].fence : most;
	}
	return fence != 0 ? fence : sane >= quorum_majority(r->ballot.nodes) ? most : 0;
}

/* Find the fence of a reader.  The nodes that are waited for may know it, if those that have replied do not. */
static int64_t
await_fence(struct redis_backend *s, const struct wait *limit)
{
	const struct round *const round = &s->renewal->round;
	struct waiting w = { .nodes = &s->nodes, .limit = nodes_limit(&s->nodes, limit), .patience = EVERYBODY };
	int64_t fence;

	while ((fence = fence_of_reader(round)) == 0 && nodes_await(&w, nodes_round_standing(round)))
		;
	return fence;
}

/*
 * The nodes have admitted the hold: complete the lease.  If the replies of the majority don't determine the fence, wait
 * for the other nodes.
 */
static enum status
admitted(struct redis_backend *s, const struct entrance *e, const struct renewed *renewed, struct lease *lease,
    struct err *err)
{
	const struct round *const round = &s->renewal->round;
	const int confirming = e->reader ? quorum_majority(s->nodes.count) : 1;
	const int64_t claimed = e->reader ? lease->fence : e->hold.fence;
	struct waiting w = { .nodes = &s->nodes,
		.limit = { clock_sooner(clock_add(renewed->sent_us, s->nodes.node_timeout_us), e->limit.until_us),
		    e->limit.interrupt_fd },
		.patience = EVERYBODY };

	while ((lease->fence = find_fence(round, claimed, confirming)) == 0 &&
	    nodes_await(&w, nodes_round_standing(round)))
		;
	lease->sent_us = renewed->sent_us;
	lease->valid_until_us = renewed->valid_until_us;
	lease->nodes = s->nodes.count;
	lease->granted = quorum_count(&round->ballot, VOTE_YES);
	if (lease->fence != 0 && clock_now_us() < lease->valid_until_us)
		return ST_OK;
	if (lease->fence != 0)
		return err_set(err, ST_NO_QUORUM, "granted too late: the lease had nearly expired; use a longer --ttl");
	if (w.event == LOOP_INTERRUPTED)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	return err_set(err, ST_NO_QUORUM, "the nodes that answered do not agree on the fence of the lock");
}

/*
 * This is a renewal with a new hold: it creates no lock, and a majority must know the lock as that of the given hold.
 * A failed entry is released, like a failed attempt is rolled back, so that no hold remains that nobody ends.
 *
 * There are two rounds, in each of which a majority must know the hold.  After one round, a node that replied early may
 * have lost the hold by the time of the last reply, and may have been healed by a client that did not know of it.  A
 * node that has just started has no vote: it may have been healed with the lock after it had granted it to another
 * client.  A single node needs one round and no guard, because it is never healed.
 */
enum status
redis_enter(struct redis_backend *s, const struct acquire_args *args, const struct entrance *e, struct lease *lease,
    struct err *err)
{
	int rounds = s->nodes.count > 1 ? 2 : 1;
	bool perhaps = false; /* some node may know the hold */
	enum ownership ownership;
	struct renewed renewed = { .sent_us = 0 };
	struct err ignored;
	enum status status;

	*lease = (struct lease){ .key = args->key, .owner = args->owner, .label = args->label, .ttl_ms = args->ttl_ms };
	if (!hold_new(e->hold.token, lease->token))
		return err_set(err, ST_SYSTEM, "the kernel provides no random numbers for a token");
	text_keep_secret(SECRET_TOKEN, lease->token, HOLD_LENGTH);
	log_debug(&s->nodes.log, e->reader ? "entering the shared lock" : "entering the lock again");
	s->guard_s = s->nodes.count > 1 ? answer_guard_s(args) : 0;
	do {
		status = redis_renew(&s->base, lease, &e->limit, &renewed, err);
		perhaps = perhaps ||
		    (s->renewal != NULL && quorum_count(&s->renewal->round.ballot, VOTE_NO) < s->nodes.count);
		if (status == ST_OK && e->reader && rounds > 1)
			lease->fence = await_fence(s, &e->limit);
	} while (status == ST_OK && --rounds > 0);
	s->guard_s = 0;
	if (status == ST_OK)
		status = admitted(s, e, &renewed, lease, err);
	if (status != ST_OK && perhaps)
		(void)redis_release(&s->base, lease, 0, &ownership, &ignored);
	return status;
}

/*
 * Does the hold of a reader still hold the lock?  The lock may be that of other readers by now, and then a writer may
 * be before us.  Another lock ends with the hold that others were made from.
 */
static enum status
still_reads(struct redis_backend *s, const struct acquire_args *args, const struct entrance *e, struct err *err)
{
	struct lease lease = { .key = args->key };
	struct renewed renewed;

	if (!token_shared(e->hold.token))
		return ST_OK;
	memcpy(lease.token, e->hold.token, sizeof(lease.token));
	return redis_renew(&s->base, &lease, &e->limit, &renewed, err);
}

enum status
redis_reenter(struct redis_backend *s, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct entrance e = { .limit = { CLOCK_NEVER, args->wait.interrupt_fd } };
	enum status status = ST_NO;
	int i;

	for (i = 0; i < args->holds && status == ST_NO; i++) {
		e.hold = args->hold[i];
		status = still_reads(s, args, &e, err);
		if (status == ST_OK)
			status = redis_enter(s, args, &e, lease, err);
	}
	return status;
}
