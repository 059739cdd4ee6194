/* SPDX-License-Identifier: MIT */
/* The entries of a history: parsing, and merging those of several nodes. */

#include "lock/history.h"
#include "base/text.h"
#include "tap.h"

#define A "AAAAAAAAAAAAAAAAAAAAAA"
#define B "BBBBBBBBBBBBBBBBBBBBBB"
#define C "CCCCCCCCCCCCCCCCCCCCCC"

static struct record h;

static void
add(const char *holder, size_t index, const char *text)
{
	const struct history_source source = { .now_ms = 100000, .holder = holder, .lease_ended_ms = 60000 };

	ok(history_add(&h, &source, index, text), "there is memory");
}

static void
forget(void)
{
	record_free(&h);
	memset(&h, 0, sizeof(h));
}

TEST(parsing)
{
	static const char *const malformed[] = { "", " ", A, A " 1 ran 0 - - - 5 0 7 1 1 x",
		A " 1 ran 0 - - - 5 0 7 999 1 xy", A " 1 ran 0 - - - 5 0 7 -1 3 xyz", A " x ran 0 - - - 5 0 7 1 1 xy",
		A " 1 ran 256 - - - 5 0 7 1 1 xy", A " 1 an-outcome-that-is-too-long 0 - - - 5 0 7 1 1 xy",
		"short 1 ran 0 - - - 5 0 7 1 1 xy", A " 99999999999999999999999 ran 0 - - - 5 0 7 1 1 xy",
		A " 1 ran 0 - - - - 0 7 1 1 xy" };

	for (size_t i = 0; i < COUNT(malformed); i++)
		add("", i, malformed[i]);
	ok(h.formers == 0, "malformed entries are ignored");
	add("", 0, A " 9000 ran -15 8000 9000 -15 5000 20 7 3 4 u@h l xwho@there:1");
	ok(h.formers == 1 && strcmp(h.former[0].owner, "u@h") == 0 && strcmp(h.former[0].label, " l x") == 0 &&
		strcmp(h.former[0].by, "who@there:1") == 0,
	    "texts with blanks");
	ok(h.former[0].command.is && h.former[0].command.status == -15 && h.former[0].held_ms == 4000 &&
		h.former[0].waited_ms == 20 && h.former[0].fence == 7,
	    "numbers");
	ok(h.success.at_ms == 8000 && h.success.age_ms == 92000 && h.run.at_ms == 9000 && h.run_end.status == -15,
	    "the last success and the last command");
	forget();
}

TEST(longest)
{
	char entry[800];

	for (int more = 0; more < 3; more++) {
		(void)snprintf(entry, sizeof(entry), "%c%s 1 ran 0 - - - 5 0 7 %d %d %0*d%0*d", 'A' + more, &A[1],
		    OWNER_MAX + (more == 1), LABEL_MAX + (more == 2), OWNER_MAX + (more == 1), 1,
		    LABEL_MAX + (more == 2), 2);
		add("", 0, entry);
	}
	ok(h.formers == 1 && strlen(h.former[0].owner) == OWNER_MAX && strlen(h.former[0].label) == LABEL_MAX,
	    "the longest owner and label, and nothing longer");
	forget();
}

TEST(open_entries)
{
	add(A, 0, A " - open - - - - 50000 0 7 0 0 ");
	add("", 0, B " - open - - - - 50000 0 6 0 0 ");
	add("", 1, C " - open - - - - 50000 0 5 0 0 ");
	history_finish(&h, 1, 0);
	ok(h.formers == 3 && strcmp(h.former[0].outcome, "held") == 0 && h.former[0].end_ms == -1 &&
		h.former[0].held_ms == 50000,
	    "held");
	ok(h.success.at_ms == 0 && h.run.at_ms == 0, "no run is known");
	ok(strcmp(h.former[1].outcome, "expired") == 0 && h.former[1].end_ms == 60000 && h.former[1].held_ms == 10000,
	    "expired, with the end of the lease");
	ok(strcmp(h.former[2].outcome, "expired") == 0 && h.former[2].end_ms == -1 && h.former[2].held_ms == -1,
	    "expired, at an unknown time");
	forget();
}

TEST(merging)
{
	add("", 0, A " - open - - - - 50000 0 7 0 0 ");
	add("", 0, A " 9000 ran 3 - - - 5000 0 9 0 0 ");
	add("", 0, A " 9000 lost 3 - - - 5000 0 8 0 0 ");
	add("", 0, A " 9001 lost 3 - - - 5000 0 8 0 0 ");
	add("", 0, B " - open - - - - 50000 0 4 0 0 ");
	add("", 0, B " 70000 expired - - - - 50000 0 4 0 0 ");
	add("", 0, C " - open - - - - 50000 0 3 0 0 ");
	ok(history_is_settled(&h, 3, 0) && !history_is_settled(&h, 3, 1), "an open entry that one more node may have");
	history_finish(&h, 3, 0);
	ok(h.formers == 2, "an open entry of a minority does not count");
	ok(strcmp(h.former[0].token, A) == 0 && h.former[0].fence == 9 && h.former[0].nodes == 4, "the greatest fence");
	ok(strcmp(h.former[0].outcome, "lost") == 0, "the outcome of most nodes");
	ok(strcmp(h.former[1].outcome, "expired") == 0 && h.former[1].end_ms == 70000, "expired on two nodes");
	forget();
}

/* In any order of the nodes. */
TEST(outcomes)
{
	add("", 0, A " 9000 ran 3 - - - 5000 0 7 0 0 ");
	add("", 0, A " 9000 ran 3 - - - 5000 0 7 0 0 ");
	add("", 0, A " 9001 lost 3 - - - 5000 0 7 0 0 ");
	add(B, 0, B " - open - - - - 50000 0 8 0 0 ");
	add("", 0, B " - open - - - - 50000 0 8 0 0 ");
	add("", 0, C " - open - - - - 50000 0 9 0 0 ");
	add(C, 0, C " - open - - - - 50000 0 9 0 0 ");
	history_finish(&h, 3, 1);
	ok(strcmp(h.former[0].token, C) == 0 && strcmp(h.former[1].token, B) == 0, "the greatest fence is first");
	ok(strcmp(h.former[0].outcome, "held") == 0 && strcmp(h.former[1].outcome, "held") == 0, "held on one node");
	ok(strcmp(h.former[2].outcome, "ran") == 0, "the outcome of two of three nodes");
	forget();
}

TEST(missing_nodes)
{
	add("", 0, A " - open - - - - 50000 0 7 0 0 ");
	add("", 0, B " 9000 ran 3 - - - 5000 0 6 0 0 ");
	ok(history_is_settled(&h, 5, 1) && !history_is_settled(&h, 5, 2), "two more nodes would be a majority");
	history_finish(&h, 5, 1);
	ok(h.formers == 1 && strcmp(h.former[0].token, B) == 0, "surely a minority");
	add("", 0, A " - open - - - - 50000 0 7 0 0 ");
	history_finish(&h, 5, 2);
	ok(h.formers == 2, "perhaps a majority");
	forget();
}

/* A node whose clock is an hour ahead has missed the last run; a node whose clock is an hour behind has not. */
TEST(clocks_that_differ)
{
	static const struct history_source ahead = { 4600000, "", -1 }, right = { 1000000, "", -1 },
					   behind = { 400000, "", -1 };

	ok(history_add(&h, &right, 0, A " 900000 ran 0 900000 900000 0 800000 0 8 0 0 ") &&
		history_add(&h, &ahead, 0, B " 4300000 ran 1 4200000 4300000 1 4250000 0 7 0 0 "),
	    "there is memory");
	ok(h.success.at_ms == 900000 && h.success.age_ms == 100000 && h.run.at_ms == 900000 && h.run_end.status == 0,
	    "the last success and run, by how long ago they were");
	ok(history_add(&h, &behind, 0, A " 300001 ran 0 300001 300001 0 200000 0 8 0 0 ") && h.success.at_ms == 900000,
	    "a node with an older success does not replace it");
	history_finish(&h, 3, 0);
	ok(h.formers == 2 && h.former[0].start_ms == 200000 && h.former[0].end_ms == 300001 &&
		h.former[0].held_ms == 100001 && h.former[0].ended_ago_ms == 99999,
	    "start and end by one clock");
	forget();
}

/* What earlier runs took, as a waiter prints it. */
static void
says(const char *expected)
{
	char buffer[100] = "";
	struct text text = text_in(buffer, sizeof(buffer));

	history_finish(&h, 1, 0);
	history_say_runs(&h, &text);
	is_str(buffer, expected, "\"%s\"", expected);
}

TEST(runs)
{
	char entry[100];

	add("", 0, A " 7000 released - - - - 1000 0 9 0 0 ");
	add("", 1, B " 7000 ran -15 - 7000 -15 1000 0 8 0 0 ");
	says("");
	add("", 2, C " 7000 ran 3 - 7000 3 1000 0 7 0 0 ");
	says("; the last one took 6.0s");
	for (int i = 0; i < 5; i++) {
		(void)snprintf(entry, sizeof(entry), "%c%s %d ran 0 8000 8000 0 1000 0 %d 0 0 ", 'D' + i, &A[1],
		    2000 + 1000 * i, 6 - i);
		add("", (size_t)i + 3, entry);
	}
	says("; the last 5 took 1.0s to 6.0s");
	forget();
	add("", 0, A " 2000 ran 0 - 2000 0 1000 0 7 0 0 ");
	add("", 1, B " 2000 ran 0 - 2000 0 1000 0 6 0 0 ");
	says("; the last 2 took 1.0s");
	forget();
}

TEST(waiters)
{
	struct waiter w = { .id = B, .since_ms = 7, .owner = "u@h:1", .label = "a b" };
	char name[WAITER_NAME_SIZE];

	history_write_waiter(&w, name);
	ok(history_add_waiter(&h, 1, 0, C " 1 5 0 u@h:3") && history_add_waiter(&h, 1, 1, A " 3 5 0 u@h:2") &&
		history_add_waiter(&h, 1, 2, name) && history_add_waiter(&h, 0, 0, name) &&
		history_add_waiter(&h, 0, 1, A " 3 5 0 u@h:2") && history_add_waiter(&h, 0, 2, "plain"),
	    "there is memory");
	history_finish(&h, 2, 0);
	ok(h.waiters == 3 && strcmp(h.waiter[2].id, C) == 0, "the queue of the first node");
	ok(strcmp(h.waiter[0].id, B) == 0 && strcmp(h.waiter[0].label, "a b") == 0 &&
		strcmp(h.waiter[0].owner, "u@h:1") == 0 && strcmp(h.waiter[1].owner, "u@h:2") == 0,
	    "waiters, each once, in order");
	forget();
}
