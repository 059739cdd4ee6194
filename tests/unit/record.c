/* SPDX-License-Identifier: MIT */
#include "lock/record.h"

#include "tap.h"

static const char *const states[] = { "free", "held", "shared", "handover", "kept", "foreign", "contended", "unknown" };

/*
 * A node: '.' no reply, '-' free, else the holder's token: lower case for held, upper case for a foreign client's, digits for a
 * lock that is being handed over.  Time left and fence stand beside it, in the order of the nodes.
 */
struct row {
	const char *nodes;
	int64_t left_ms[5];
	int64_t fence[5];

	bool known;
	enum lock_state state;
	int agreeing;
	int64_t left;
	int64_t known_fence;
};

static const struct row table[] = {
	{ ".", { 0 }, { 0 }, false, LOCK_UNKNOWN, 0, 0, 0 },
	{ "-", { 0 }, { 0 }, true, LOCK_FREE, 1, 0, 0 },
	{ "a", { 900 }, { 5 }, true, LOCK_HELD, 1, 900, 5 },
	{ "A", { -1 }, { 0 }, true, LOCK_OTHER_CLIENT, 1, -1, 0 },
	{ "1", { 100 }, { 7 }, true, LOCK_HANDOVER, 1, 100, 7 },

	{ "..a", { 0, 0, 900 }, { 0, 0, 5 }, false, LOCK_UNKNOWN, 0, 0, 0 },
	{ "---", { 0 }, { 0 }, true, LOCK_FREE, 3, 0, 0 },
	{ "-.-", { 0 }, { 0 }, true, LOCK_FREE, 2, 0, 0 },
	{ "-a-", { 0, 900 }, { 0, 5 }, true, LOCK_FREE, 2, 0, 0 },
	{ "aa-", { 900, 800 }, { 5, 5 }, true, LOCK_HELD, 2, 800, 5 },
	{ "-aa", { 0, 800, 900 }, { 0, 5, 5 }, true, LOCK_HELD, 2, 800, 5 },
	{ "aaa", { 900, 800, 700 }, { 5, 5, 5 }, true, LOCK_HELD, 3, 800, 5 },
	{ "aaa", { 900, 900, 900 }, { 5, 7, 5 }, true, LOCK_HELD, 3, 900, 5 },
	{ "aaa", { 900, 900, 900 }, { 5, 6, 7 }, true, LOCK_HELD, 3, 900, 0 },
	{ "aa.", { 900, 900, 0 }, { 5, 6, 0 }, true, LOCK_HELD, 2, 900, 0 },
	{ "aab", { 900, 800, 9000 }, { 5, 5, 9 }, true, LOCK_HELD, 2, 800, 5 },
	{ "baa", { 9000, 800, 900 }, { 9, 5, 5 }, true, LOCK_HELD, 2, 800, 5 },
	{ "a-.", { 900 }, { 5 }, true, LOCK_CONTENDED, 1, 0, 0 },
	{ "ab.", { 900, 900 }, { 5, 5 }, true, LOCK_CONTENDED, 1, 0, 0 },
	{ "abc", { 900, 900, 900 }, { 5, 5, 5 }, true, LOCK_CONTENDED, 1, 0, 0 },
	{ "ab-", { 900, 900 }, { 5, 5 }, true, LOCK_CONTENDED, 1, 0, 0 },
	{ "AAb", { 100, 200, 900 }, { 0, 0, 5 }, true, LOCK_OTHER_CLIENT, 2, 100, 0 },
	{ "11a", { 100, 200, 900 }, { 3, 3, 5 }, true, LOCK_HANDOVER, 2, 100, 3 },

	/* a lease without an end on a minority lasts no longer than the others' */
	{ "AAA", { -1, 100, 200 }, { 0 }, true, LOCK_OTHER_CLIENT, 3, 200, 0 },
	{ "AAA", { 100, -1, 200 }, { 0 }, true, LOCK_OTHER_CLIENT, 3, 200, 0 },
	{ "AAA", { 100, 200, -1 }, { 0 }, true, LOCK_OTHER_CLIENT, 3, 200, 0 },
	{ "AAA", { -1, 100, -1 }, { 0 }, true, LOCK_OTHER_CLIENT, 3, -1, 0 },
	{ "AA-", { -1, 100, 0 }, { 0 }, true, LOCK_OTHER_CLIENT, 2, 100, 0 },

	{ "aabb", { 900, 900, 900, 900 }, { 5, 5, 6, 6 }, true, LOCK_CONTENDED, 2, 0, 0 },
	{ "aaab", { 700, 900, 800, 900 }, { 5, 5, 5, 6 }, true, LOCK_HELD, 3, 700, 5 },
	{ "aaaaa", { 500, 400, 300, 200, 100 }, { 5, 5, 5, 6, 6 }, true, LOCK_HELD, 5, 300, 5 },
	{ "aaaa-", { 500, 400, 300, 200, 0 }, { 5, 5, 6, 6, 0 }, true, LOCK_HELD, 4, 300, 0 },
	{ "aaa--", { 500, 400, 300, 0, 0 }, { 5, 5, 5, 0, 0 }, true, LOCK_HELD, 3, 300, 5 },
	{ "aab-.", { 500, 400, 300, 0, 0 }, { 5, 5, 5, 0, 0 }, true, LOCK_CONTENDED, 2, 0, 0 },
};

static enum lock_state
put_node(struct holder *h, char c, int64_t left_ms, int64_t fence)
{
	memset(h, 0, sizeof(*h));
	if (c == '.')
		return LOCK_UNKNOWN;
	h->token[0] = c;
	h->state = c == '-'	   ? LOCK_FREE
	    : c >= 'A' && c <= 'Z' ? LOCK_OTHER_CLIENT
	    : c >= '0' && c <= '9' ? LOCK_HANDOVER
				   : LOCK_HELD;
	h->left_ms = left_ms;
	h->fence = fence;
	(void)snprintf(h->owner, sizeof(h->owner), "owner of %c", c);
	return h->state;
}

static void
set_view(struct record *v, struct holder holders[NODES_MAX], const struct row *row)
{
	memset(v, 0x5a, sizeof(*v));
	v->nodes = (int)strlen(row->nodes);
	for (int i = 0; i < v->nodes; i++) {
		v->node[i].state = put_node(&holders[i], row->nodes[i], row->left_ms[i], row->fence[i]);
		v->node[i].left_ms = row->left_ms[i];
		holders[i].waiting = holders[i].holds = 10 + (i == 1);
	}
	/* What stands behind the nodes is not looked at. */
	holders[v->nodes] = holders[0];
	v->node[v->nodes] = v->node[0];
}

static bool
has_holder(enum lock_state state)
{
	return state == LOCK_HELD || state == LOCK_HANDOVER || state == LOCK_KEPT || state == LOCK_OTHER_CLIENT;
}

static void
test_row(const struct row *row)
{
	static struct holder holders[NODES_MAX];
	struct record v;

	set_view(&v, holders, row);
	ok(record_merge(&v, holders) == row->known, "%s: the replies determine %s", row->nodes,
	    row->known ? "something" : "nothing");
	is_str(states[v.state], states[row->state], "%s: state", row->nodes);
	if (row->known)
		is_int(v.agreeing, row->agreeing, "%s: nodes that say so", row->nodes);
	else
		is_int(v.holders, 0, "%s: no holder", row->nodes);
	for (int i = 0; i < v.holders && row->state == LOCK_CONTENDED; i++) {
		const int first = (int)(strchr(row->nodes, v.holder[i].token[0]) - row->nodes);

		is_int(v.holder[i].left_ms, row->left_ms[first], "%s: time left of contender %d", row->nodes, i);
	}
	if (!has_holder(row->state))
		return;
	is_int(v.holder[0].left_ms, row->left, "%s: time that is surely left", row->nodes);
	is_int(v.holder[0].fence, row->known_fence, "%s: fence", row->nodes);
	is_int(v.holder[0].nodes, v.agreeing, "%s: its nodes", row->nodes);
	is_int(v.holder[0].waiting, row->nodes[1] == v.holder[0].token[0] ? 11 : 10, "%s: the most waiters",
	    row->nodes);
	is_int(v.holder[0].holds, v.holder[0].waiting, "%s: the most holds", row->nodes);
	ok(strncmp(v.holder[0].owner, "owner of ", 9) == 0 && v.holder[0].owner[9] == v.holder[0].token[0], "%s: owner",
	    row->nodes);
}

TEST(table)
{
	for (size_t i = 0; i < COUNT(table); i++)
		test_row(&table[i]);
}

/*
 * The same token, which some nodes see as released already, or lack the metadata of: what most of them say is shown, wherever they
 * stand.
 */
TEST(mixed)
{
	static const enum lock_state mixed[][4] = {
		{ LOCK_HELD, LOCK_HELD, LOCK_HANDOVER, LOCK_HELD },
		{ LOCK_HELD, LOCK_HANDOVER, LOCK_HELD, LOCK_HELD },
		{ LOCK_HANDOVER, LOCK_HELD, LOCK_HELD, LOCK_HELD },
		{ LOCK_HELD, LOCK_HANDOVER, LOCK_HANDOVER, LOCK_HANDOVER },
		{ LOCK_OTHER_CLIENT, LOCK_HELD, LOCK_HELD, LOCK_HELD },
		{ LOCK_HELD, LOCK_HELD, LOCK_OTHER_CLIENT, LOCK_HELD },
	};
	static struct holder holders[NODES_MAX];
	struct record v;

	for (size_t i = 0; i < COUNT(mixed); i++) {
		memset(&v, 0, sizeof(v));
		v.nodes = 3;
		for (int j = 0; j < 3; j++) {
			(void)put_node(&holders[j], 'a', 100, 5);
			holders[j].state = mixed[i][j];
			v.node[j].state = mixed[i][j];
			v.node[j].left_ms = 100;
		}
		ok(record_merge(&v, holders), "%s, %s, %s are merged", states[mixed[i][0]], states[mixed[i][1]],
		    states[mixed[i][2]]);
		is_str(states[v.state], states[mixed[i][3]], "the state of the majority");
		ok(v.holders == 1 && v.holder[0].state == v.state, "the holder of the majority");
	}
}

/* Of another client only the exact value of the key says whether two nodes have the same holder. */
TEST(fingerprints)
{
	static const struct {
		enum lock_state state[2], merged;
		const char *fingerprint[2];
	} cases[] = {
		{ { LOCK_OTHER_CLIENT, LOCK_OTHER_CLIENT }, LOCK_OTHER_CLIENT, { "x", "x" } },
		{ { LOCK_OTHER_CLIENT, LOCK_OTHER_CLIENT }, LOCK_CONTENDED, { "x", "y" } },
		{ { LOCK_OTHER_CLIENT, LOCK_OTHER_CLIENT }, LOCK_CONTENDED, { "x", "" } },
		{ { LOCK_OTHER_CLIENT, LOCK_HELD }, LOCK_CONTENDED, { "x", "x" } },
		{ { LOCK_HELD, LOCK_HELD }, LOCK_HELD, { "x", "y" } },
	};
	static struct holder holders[NODES_MAX];
	struct record v = { .nodes = 2 };

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (int j = 0; j < 2; j++) {
			(void)put_node(&holders[j], 'a', 100, 5);
			holders[j].state = v.node[j].state = cases[i].state[j];
			(void)snprintf(holders[j].fingerprint, 2, "%s", cases[i].fingerprint[j]);
		}
		(void)record_merge(&v, holders);
		is_str(states[v.state], states[cases[i].merged], "%s '%s' and %s '%s'", states[cases[i].state[0]],
		    cases[i].fingerprint[0], states[cases[i].state[1]], cases[i].fingerprint[1]);
	}
}

/* How long a majority of nodes of this holder grants at least `ms` more; -1 counts as for ever. */
static bool
majority_grants(const struct row *row, char c, int64_t ms)
{
	int n = 0;
	const int nodes = (int)strlen(row->nodes);

	for (int i = 0; i < nodes; i++)
		n += row->nodes[i] == c && (row->left_ms[i] < 0 || (ms >= 0 && row->left_ms[i] >= ms));
	return 2 * n > nodes;
}

static int64_t
define_left(const struct row *row, char c)
{
	int64_t most = 0;

	if (majority_grants(row, c, -1))
		return -1;
	for (size_t i = 0; row->nodes[i] != '\0'; i++) {
		if (row->left_ms[i] > most && majority_grants(row, c, row->left_ms[i]))
			most = row->left_ms[i];
	}
	return most;
}

static int64_t
define_fence(const struct row *row, char c)
{
	const int nodes = (int)strlen(row->nodes);
	int i, n;

	for (int64_t fence = 1; fence < 4; fence++) {
		for (i = 0, n = 0; i < nodes; i++)
			n += row->nodes[i] == c && row->fence[i] == fence;
		if (2 * n > nodes)
			return fence;
	}
	return 0;
}

static void
check_random(struct row *row, const char *nodes)
{
	static struct holder holders[NODES_MAX];
	struct record v;
	size_t j, n, replies = 0;
	const size_t count = strlen(nodes);
	char most = '.';
	bool enough;

	row->nodes = nodes;
	for (size_t i = 0; i < count; i++) {
		for (j = 0, n = 0; j < count; j++)
			n += nodes[i] != '.' && nodes[j] == nodes[i];
		replies += nodes[i] != '.';
		most = 2 * n > count ? nodes[i] : most;
	}
	set_view(&v, holders, row);
	enough = record_merge(&v, holders);
	each(enough == (2 * replies > count), "%s: enough replies", nodes);
	if (!enough || most == '.') {
		each(v.state == (enough ? LOCK_CONTENDED : LOCK_UNKNOWN), "%s: %s", nodes, states[v.state]);
		return;
	}
	if (!each(has_holder(v.state) == (most != '-'), "%s: %s", nodes, states[v.state]) || most == '-')
		return;
	each(v.holder[0].token[0] == most, "%s: holder %c", nodes, v.holder[0].token[0]);
	each(v.holder[0].left_ms == define_left(row, most), "%s: %" PRId64 " left, not %" PRId64, nodes,
	    v.holder[0].left_ms, define_left(row, most));
	each(v.holder[0].fence == define_fence(row, most), "%s: fence %" PRId64, nodes, v.holder[0].fence);
}

TEST(random)
{
	static const char letters[] = "aaaab1A-.";
	struct row row;
	char nodes[6];
	int count;

	for (int i = 0; i < 50000; i++) {
		memset(&row, 0, sizeof(row));
		count = 1 + (int)below(5);
		for (int j = 0; j < count; j++) {
			nodes[j] = letters[below((int64_t)sizeof(letters) - 1)];
			row.left_ms[j] = below(6) - 1;
			row.fence[j] = 1 + below(3);
		}
		nodes[count] = '\0';
		check_random(&row, nodes);
	}
	each_ok("random nodes, against a plain definition");
}

TEST(breaks)
{
	static const struct broken said[] = { { 5, "b", "" }, { 7, "a", "" }, { 3, "c", "" }, { 0, "", "" },
		{ 4, "d", "" } };
	struct record r = { .nodes = 5 };

	for (size_t i = 0; i < COUNT(said); i++)
		record_note_break(&r, &said[i]);
	is_str(r.broken.token, "c", "the last break that a node knows of");
}

#define A_HASH .state = LOCK_OTHER_CLIENT, .type = "hash", .other_type = true
#define DAYS INT64_C(86400000) /* of many of them the time is shown with its date */

static const struct {
	struct holder holder;
	const char *end; /* of the sentence */
} sentences[] = {
	{ { .state = LOCK_HELD, .owner = "u@h:7", .left_ms = 7000, .held_ms = -1 },
	    "held by u@h:7, 7.0s of its lease left" },
	{ { .state = LOCK_HELD, .owner = "u@h:7", .label = "l\n", .left_ms = 0, .held_ms = 0 }, ", for 0ms" },
	{ { .state = LOCK_HELD, .owner = "u@h:7/acquire", .held_ms = 400 * DAYS }, ", for 400d00h, from acquire" },
	{ { .state = LOCK_HELD, .owner = "u@h:7/keep", .held_ms = 7000 }, ", for 7.0s, from acquire --keep" },
	{ { .state = LOCK_HELD, .owner = "/keep", .label = "l", .left_ms = 0, .held_ms = -1 },
	    "held by /keep (l), 0ms of its lease left" },
	{ { .state = LOCK_HANDOVER, .owner = "u@h", .left_ms = 5, .held_ms = -1 },
	    "held by u@h, released already, 5ms of its lease left" },
	{ { .state = LOCK_SHARED, .owner = "u@h", .left_ms = 5, .held_ms = -1 },
	    "shared by readers, the first was u@h, 5ms of the lease left" },
	{ { .state = LOCK_SHARED, .owner = "u@h", .left_ms = 5, .held_ms = -1, .holds = 1, .writer_waits = true },
	    "shared by 1 reader, the first was u@h, 5ms of the lease left, and a writer waits" },
	{ { .state = LOCK_SHARED, .owner = "u@h", .left_ms = 5, .held_ms = -1, .holds = 2 },
	    "shared by 2 readers, the first was u@h, 5ms of the lease left" },
	{ { A_HASH, .client = "a hash", .left_ms = -1, .held_ms = -1 },
	    "held by a foreign lock type (a hash), without expiry" },
	{ { A_HASH, .client = "Redisson", .left_ms = 5, .held_ms = -1 },
	    "held by Redisson (a foreign lock type), 5ms of its lease left" },
	{ { .state = LOCK_OTHER_CLIENT, .type = "string", .client = "Bull", .left_ms = 5, .held_ms = -1 },
	    "held by a client that is not dlock (Bull by its appearance), 5ms of its lease left" },
	{ { .state = LOCK_OTHER_CLIENT, .type = "string", .left_ms = 5, .held_ms = -1 },
	    "held by a client that is not dlock, 5ms of its lease left" },
	{ { .state = LOCK_OTHER_CLIENT, .client = "Curator", .left_ms = 5, .held_ms = -1 },
	    "held by Curator, 5ms of its lease left" },
	{ { .state = LOCK_KEPT,
	      .owner = "u@h:7",
	      .label = "l",
	      .kept_by = "min-hold",
	      .left_ms = 400 * DAYS,
	      .ended_ms = 7000 },
	    " (--min-hold); l on h ended 7.0s ago" },
	{ { .state = LOCK_KEPT, .owner = "plain:7", .label = "l" }, "; l on plain ended 0ms ago" },
	{ { .state = LOCK_KEPT, .owner = "u@h:7/acquire" }, "; u@h:7 ended 0ms ago" },
	{ { .state = LOCK_KEPT }, "; its command ended 0ms ago" },
};

TEST(sentences)
{
	struct err err;
	const char *at;

	for (size_t i = 0; i < COUNT(sentences); i++) {
		const struct holder *h = &sentences[i].holder;
		const size_t length = strlen(sentences[i].end);

		is_int(holder_error(h, 0, &err), ST_HELD, "the status of one that is held");
		at = err.text + (strlen(err.text) > length ? strlen(err.text) - length : 0);
		is_str(at, sentences[i].end, "%s", err.text);
		ok(at == err.text || strncmp(err.text, h->state == LOCK_KEPT ? "kept until " : "held by ", 8) == 0,
		    "its beginning");
		if ((at = strstr(err.text, "until ")) != NULL || (at = strstr(err.text, "since ")) != NULL)
			is_int(at[10] == '-', h->left_ms + h->held_ms == 400 * DAYS, "the time, with a date");
	}
	(void)holder_error(&sentences[0].holder, 1, &err);
	is_int(holder_crowded(1, 3, &err), ST_HELD, "the status of too many waiters");
	is_str(err.text, "1 waits already (--max-waiters 3); the only slot is held by u@h:7, 7.0s of its lease left",
	    "one slot");
	(void)holder_error(&sentences[0].holder, 2, &err);
	(void)holder_crowded(2, 2, &err);
	is_str(err.text,
	    "2 wait already (--max-waiters 2); all 2 slots are held; the first to end is held by u@h:7, 7.0s of its "
	    "lease left",
	    "two slots");
	ok(!holder_has_keeper(&sentences[2].holder) && !holder_from_acquire(&sentences[3].holder), "who keeps it");
}

TEST(holders)
{
	static const struct holder is[] = { { .state = LOCK_FREE, .client = "x" },
		{ .state = LOCK_HELD, .client = "x" }, { .state = LOCK_HANDOVER }, { .state = LOCK_KEPT },
		{ .state = LOCK_OTHER_CLIENT, .client = "x" } };
	static const char *const clients[] = { "", "dlock", "dlock", "dlock", "x" };
	struct record r = { .nodes = 1 };

	for (size_t i = 0; i < COUNT(is); i++) {
		is_str(holder_client(&is[i]), clients[i], "the client of %s", record_state(is[i].state));
		is_int(holder_has_ended(&is[i]), is[i].state == LOCK_HANDOVER || is[i].state == LOCK_KEPT,
		    "whether it has ended");
		r.state = is[i].state;
		ok((record_holder(&r) == &r.holder[0]) == (r.state != LOCK_FREE), "its holder");
	}
}

TEST(last)
{
	struct former ends[] = { { .outcome = "held" }, { .outcome = "ran", .command = { true, 0 } },
		{ .outcome = "ran", .command = { true, 3 } }, { .outcome = "released" },
		{ .outcome = "lost", .command = { true, 0 } } };
	struct record r = { .former = ends, .formers = 1 };

	ok(record_last(&r) == NULL, "nobody before the one who holds it");
	r.formers = COUNT(ends);
	ok(record_last(&r) == &ends[1], "the newest that has ended");
	for (size_t i = 0; i < COUNT(ends); i++)
		is_int(former_succeeded(&ends[i]), i == 1 || i == 3, "%s with %d", ends[i].outcome,
		    ends[i].command.status);
}
