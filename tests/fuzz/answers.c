/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "base/clock.h"
#include "fuzz.h"
#include "lock/merge.h"
#include "redis/nodes.h"

/*
 * How the decision code handles arbitrary replies: those about locks, of sentinels and of a Cluster, and INFO.  The
 * first byte selects the test, a few bytes are its parameters, and the rest is a stream of replies, one for each node
 * in turn.
 */
#define COUNT_MOST (((int64_t)1 << 53) - 1) /* the largest exact integer in Lua */

static struct nodes nodes; /* never connected: only the names of the nodes are needed */

static const struct acquire_args args = { .key = "k",
	.ttl_ms = 10000,
	.owner = "o",
	.label = "l",
	.restart_guard_ms = 60000 };

static void
open_nodes(int count)
{
	struct err err;
	struct url url;
	char text[16];

	for (nodes.count = 0; nodes.count < NODES_MAX && nodes.node[nodes.count] == NULL; nodes.count++) {
		(void)snprintf(text, sizeof(text), "h:%d", nodes.count + 1);
		must(url_parse(text, &url, &err) == ST_OK, "%s", err.text);
		nodes.node[nodes.count] = node_open(&url,
		    &(struct node_options){ &nodes.loop, &nodes.log, nodes.count, &nodes.unresponsive[nodes.count],
			"" });
		must(nodes.node[nodes.count] != NULL, "no memory");
		url_free(&url);
	}
	nodes.count = count;
}

/* -- Deliveries ------------------------------------------------------------- */

/* The next reply as the result of a connection; sometimes a failure instead. */
static struct reply *last_reply; /* of the last result */

static struct result
next_result(struct input *how, struct parser *p)
{
	static const char *const errors[] = { "connection refused", "no answer in time", "WRONGPASS no",
		"NOAUTH \x1b[2J" };
	const unsigned int what = input_byte(how);
	struct result d = { .failure = FAILED, .sent = true };

	d.reason = errors[what % 4];
	d.unconfirmed = what % 16 == 7;
	last_reply = what % 16 != 15 ? parser_next(p) : NULL;
	d.reply = last_reply;
	if (d.reply == NULL && what % 4 > 1)
		d.failure = DENIED;
	d.sent = d.reply != NULL || (what & 0x20) == 0;
	return d;
}

static void
check_error(const struct node_error *f)
{
	must(f->is && TERMINATED(f->reason.text) && (f->reason.text[0] == '\0' || is_sentence(f->reason.text)),
	    "error: %s", f->reason.text);
}

static void
check_holder(const struct holder *h)
{
	must(TERMINATED(h->token) && TERMINATED(h->owner) && TERMINATED(h->label) && TERMINATED(h->type), "a text");
	must(TERMINATED(h->kept_by) && TERMINATED(h->broken.token) && TERMINATED(h->broken.owner), "a text");
	must(is_harmless(h->type), "type %s", h->type);
	must(!h->kept || (is_harmless(h->kept_by) && h->ended_ms >= 0), "kept by %s", h->kept_by);
	must(h->broken.token[0] == '\0' || h->broken.ago_ms >= 0, "broken: %" PRId64, h->broken.ago_ms);
	must(h->left_ms >= -1 && h->left_ms <= (int64_t)1 << 50, "left: %" PRId64, h->left_ms);
	must(h->held_ms >= -1 && h->held_ms <= (int64_t)1 << 50, "held: %" PRId64, h->held_ms);
	must(h->fence >= 0 && h->fence <= COUNT_MOST, "fence: %" PRId64, h->fence);
	must(h->waiting >= 0 && h->waiting <= COUNT_MOST, "waiting: %" PRId64, h->waiting);
	must(h->holds >= 0 && h->holds <= COUNT_MOST, "holds: %" PRId64, h->holds);
}

static void
check_sentences(const struct holder *h, const enum vote vote[NODES_MAX], const struct node_error error[NODES_MAX])
{
	struct ballot ballot = { .nodes = nodes.count, .closed = true };
	enum status status;
	struct err err;

	if (h != NULL)
		must(holder_error(h, &err) == ST_HELD && is_sentence(err.text) && TERMINATED(err.text), "%s", err.text);
	memcpy(ballot.vote, vote, sizeof(ballot.vote));
	status = nodes_no_quorum(&nodes, &ballot, error, &err);
	must((status == ST_NO_QUORUM || status == ST_DENIED) && is_sentence(err.text) && TERMINATED(err.text), "%s",
	    err.text);
}

/* -- An attempt ------------------------------------------------------------- */

struct trial {
	struct attempt attempt;
	struct node_error error[NODES_MAX];
	bool answered[NODES_MAX], raised[NODES_MAX];
	int64_t now;
};

/* A grant is {1, fence} and nothing else. */
static void
check_vote(const struct result *d, const struct attempt_answer *a, const struct node_error *f)
{
	const int64_t fence = reply_integer(reply_item(d->reply, 1));
	const bool grant = reply_items(d->reply) == 2 && reply_integer(reply_item(d->reply, 0)) == 1 && fence > 0 &&
	    fence <= COUNT_MOST && !d->unconfirmed;

	must((a->vote == VOTE_YES) == grant, "vote %d", (int)a->vote);
	must(a->vote != VOTE_YES || a->fence == fence, "fence %" PRId64, a->fence);
	must(a->vote == VOTE_YES || a->vote == VOTE_NO || a->vote == VOTE_FAULT, "vote %d", (int)a->vote);
	if (a->vote == VOTE_NO) {
		check_holder(&a->holder);
		must(a->ticket >= 0 && a->before >= 0 && a->before <= COUNT_MOST, "ticket %" PRId64, a->ticket);
		must(reply_integer(reply_item(d->reply, 0)) == 0, "no from something else");
	} else if (a->vote == VOTE_FAULT) {
		check_error(f);
		must(!a->harmless || !d->sent || reply_integer(reply_item(d->reply, 0)) == -1, "a harmless fault");
	}
}

static void
answer_one(struct trial *t, int node, const struct result *d)
{
	struct attempt_answer answer;
	struct lock_fields fields;
	int number;

	if (t->attempt.raising && t->answered[node]) {
		number = answer_number(d, &fields, &t->error[node]);
		t->raised[node] = number == 1;
		if (attempt_needs_fence(&t->attempt, node))
			attempt_raised(&t->attempt, node, number == 1 ? VOTE_YES : number == -2 ? VOTE_FAULT : VOTE_NO);
		return;
	}
	if (t->answered[node])
		return;
	answer = answer_acquire(d, &args, &t->error[node]);
	check_vote(d, &answer, &t->error[node]);
	attempt_answer(&t->attempt, node, &answer);
	t->answered[node] = !t->attempt.early[node];
	must(attempt_perhaps_granted(&t->attempt, node) ==
		(answer.vote == VOTE_YES || (answer.vote == VOTE_FAULT && !answer.harmless)),
	    "an undo that is missing, or is not needed");
}

static void
check_granted(const struct trial *t)
{
	const struct attempt *a = &t->attempt;
	int i, yes = 0, recorded = 0;
	int64_t most = 0;

	for (i = 0; i < nodes.count; i++) {
		yes += a->grants.vote[i] == VOTE_YES;
		most = a->grants.vote[i] == VOTE_YES && a->fences[i] > most ? a->fences[i] : most;
		recorded += a->grants.vote[i] == VOTE_YES && (a->fences[i] >= a->fence || t->raised[i]);
	}
	must(yes >= nodes.count / 2 + 1, "granted by %d of %d", yes, nodes.count);
	must(recorded >= nodes.count / 2 + 1, "the fence is recorded by %d of %d", recorded, nodes.count);
	must(a->raising || a->fence == most, "fence %" PRId64 " and not %" PRId64, a->fence, most);
	must(t->now < a->valid_until_us && a->valid_until_us <= a->started_us + args.ttl_ms * 1000, "validity");
}

static void
check_held(const struct attempt *a)
{
	const struct holder *h = attempt_holder(a);
	int i, at = 0;

	must(h != NULL, "held by nobody");
	for (i = 0; i < nodes.count; i++)
		at += attempt_held_at(a, i);
	must(at >= nodes.count / 2 + 1, "held at %d of %d", at, nodes.count);
}

static bool
go_on(struct trial *t)
{
	const enum attempt_step step = attempt_next(&t->attempt, t->now);

	must(attempt_wake_us(&t->attempt) <= t->attempt.deadline_us, "it would sleep too long");
	if (step == ATTEMPT_AGAIN)
		attempt_repeated(&t->attempt);
	if (step == ATTEMPT_GRANTED)
		check_granted(t);
	if (step == ATTEMPT_HELD)
		check_held(&t->attempt);
	return step == ATTEMPT_WAIT || step == ATTEMPT_AGAIN || step == ATTEMPT_RAISE;
}

static void
try_acquire(struct input *how, struct parser *p, bool with_handoff)
{
	static struct trial t;
	const struct attempt_terms terms = { .nodes = nodes.count,
		.ttl_us = args.ttl_ms * 1000,
		.node_timeout_us = 1000000,
		.unresponsive = { false, (input_byte(how) & 1) != 0 },
		.handoff = with_handoff ? "AAAAAAAAAAAAAAAAAAAAAA" : "" };
	struct result d;
	bool open = true;
	int i;

	memset(&t, 0, sizeof(t));
	t.now = 5000000;
	attempt_start(&t.attempt, &terms, t.now);
	for (i = 0; i < 4 * nodes.count && open; i++) {
		d = next_result(how, p);
		answer_one(&t, i % nodes.count, &d);
		reply_free(last_reply);
		t.now += input_byte(how) * 100;
		open = go_on(&t);
	}
	t.now = t.attempt.deadline_us;
	if (open)
		must(!go_on(&t) || t.attempt.raising, "undecided when the time is over");
	if (open && t.attempt.raising)
		must(!go_on(&t), "undecided when the time is over");
	check_sentences(attempt_holder(&t.attempt), t.attempt.grants.vote, t.error);
}

/* -- Renewals, status ------------------------------------------------------- */

static void
try_number(struct input *how, struct parser *p)
{
	struct result d = next_result(how, p);
	struct node_error error;
	struct lock_fields fields;
	const int number = answer_number(&d, &fields, &error);

	must(number >= -2 && number <= 2, "%d", number);
	if (number == -2)
		check_error(&error);
	else
		must(d.reply != NULL && (number < 1 || !d.unconfirmed || number == 2), "%d by a failure", number);
	must(fields.server_ms >= 0 && fields.server_ms <= COUNT_MOST && fields.fence >= 0 &&
		fields.fence <= COUNT_MOST && fields.ttl_ms >= 0 && fields.ttl_ms <= (int64_t)1 << 50,
	    "%" PRId64 " %" PRId64 " %" PRId64, fields.server_ms, fields.fence, fields.ttl_ms);
	must(strlen(fields.holds) < SIZE_MAX, "holds");
	reply_free(last_reply);
}

static void
try_inspect(struct input *how, struct parser *p)
{
	static struct holder holder[NODES_MAX];
	static struct lock_status v;
	struct node_error error[NODES_MAX];
	enum vote vote[NODES_MAX];
	struct result d;
	int i, replied = 0;
	bool held;

	memset(holder, 0, sizeof(holder));
	memset(&v, 0, sizeof(v));
	v.nodes = nodes.count;
	for (i = 0; i < nodes.count; i++) {
		d = next_result(how, p);
		v.node[i].state = LOCK_UNKNOWN;
		vote[i] = VOTE_FAULT;
		if (answer_inspect(&d, &held, &holder[i], &error[i])) {
			check_holder(&holder[i]);
			must(reply_items(d.reply) >= 12, "%zu items", reply_items(d.reply));
			v.node[i].state = merge_state(held, &holder[i]);
			v.node[i].left_ms = held ? holder[i].left_ms : 0;
			vote[i] = VOTE_YES;
			replied++;
		} else
			check_error(&error[i]);
		reply_free(last_reply);
	}
	must(merge_status(&v, holder) == (replied >= nodes.count / 2 + 1), "%d of %d replied", replied, nodes.count);
	must(v.agreeing <= replied, "%d of %d agree", v.agreeing, replied);
	if (v.state == LOCK_HELD || v.state == LOCK_HANDOVER || v.state == LOCK_KEPT || v.state == LOCK_OTHER_CLIENT)
		check_holder(&v.holder);
	check_sentences(replied > 0 ? &holder[0] : NULL, vote, error);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input in = input_of(bytes, length), how;
	const unsigned int what = input_byte(&in), size = input_byte(&in) % 32;
	struct parser *p;

	if (in.left < size)
		return 0;
	how = input_of(in.at, size);
	p = parser_new();
	must(p != NULL, "no memory");
	parser_feed(p, (const char *)in.at + size, in.left - size);
	open_nodes(1 + (int)(what / 8 % 5));
	if (what % 8 < 2)
		try_acquire(&how, p, what % 8 == 1);
	else if (what % 8 == 2)
		try_number(&how, p);
	else if (what % 8 == 3)
		try_inspect(&how, p);
	else if (what % 8 == 4)
		answers_topology("redis+sentinel://a,b:1/s%1b%5b2J", &how, p);
	else if (what % 8 == 5)
		answers_topology("redis+cluster://a,[::1]:7000", &how, p);
	else
		answers_info(&how, p);
	parser_free(p);
	return 0;
}
