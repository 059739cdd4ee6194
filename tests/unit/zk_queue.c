/* SPDX-License-Identifier: MIT */
#include "zk/queue.h"

#include "tap.h"

#define U1 "_c_11111111-1111-1111-1111-111111111111"
#define U2 "_c_22222222-2222-2222-2222-222222222222"
#define U3 "_c_33333333-3333-3333-3333-333333333333"
#define U4 "_c_44444444-4444-4444-4444-444444444444"
#define HEX "0123456789abcdef0123456789abcdef"

static struct names
queue_of(const char *const *names, size_t count)
{
	struct names q = { .at = NULL };

	for (size_t i = 0; i < count; i++)
		(void)queue_add(&q, names[i], strlen(names[i]));
	queue_sort(&q);
	return q;
}

static const char *
name_of(const struct names *q, size_t contender)
{
	return contender == QUEUE_NOBODY ? "nobody" : q->at[contender];
}

TEST(numbers)
{
	static const struct {
		const char *name;
		bool is;
		int32_t number;
	} cases[] = {
		{ "x-0000000000", true, 0 },
		{ "x-2147483647", true, INT32_MAX },
		{ "0000000007", true, 7 },
		{ HEX "__lock__0000000012", true, 12 },
		{ U1 "-lock-0000000012", true, 12 },
		{ U1 "-lock--000000005", true, -5 },
		{ "x--0000000005", true, 5 },
		{ U1 "-lock--1000000005", true, -1000000005 },
		{ U1 "-lock--2147483648", true, INT32_MIN },
		{ HEX "__lock__-000000005", true, -5 },
		{ HEX "__lock__-2147483647", true, -INT32_MAX },
		{ "x-2147483648", false, 0 },
		{ "x-999999999", false, 0 },
		{ "leases", false, 0 },
		{ "", false, 0 },
	};
	int32_t number = 0;

	for (size_t i = 0; i < COUNT(cases); i++) {
		number = 0;
		is_int(queue_number(cases[i].name, strlen(cases[i].name), &number), cases[i].is, "'%s'", cases[i].name);
		is_int(number, cases[i].number, "its number");
	}
}

TEST(order)
{
	static const char *const names[] = { U2 "-__lock__0000000005", U2 "-lock-0000000004", "locks",
		U1 "-lock-0000000001", HEX "__lock__0000000003", U1 "-__lock__0000000002", "x-0000000009" };
	struct names q = queue_of(names, COUNT(names));
	const size_t second = queue_find(&q, U2), first = queue_find(&q, U1);

	is_int((int64_t)q.count, 6, "contenders");
	is_int((int64_t)queue_entries(&q, q.count), 4, "entries");
	is_str(name_of(&q, first), U1 "-lock-0000000001", "the first node of an entry");
	is_str(name_of(&q, second), U2 "-lock-0000000004", "the first node of another entry");
	is_str(name_of(&q, queue_before(&q, first, false)), "nobody", "nobody is before the first");
	is_str(name_of(&q, queue_before(&q, second, false)), HEX "__lock__0000000003", "the nearest before the third");
	is_str(name_of(&q, queue_before(&q, 2, false)), U1 "-lock-0000000001", "the first node of the nearest entry");
	is_str(name_of(&q, queue_before(&q, 5, false)), U2 "-lock-0000000004",
	    "the first node of the nearest entry of another client");
	ok(queue_entries(&q, 2) == 1 && queue_entries(&q, second) != 1 && queue_entries(&q, first) == 0,
	    "one entry before");
	is_int((int64_t)(queue_find(&q, "_c_3") == QUEUE_NOBODY), 1, "an entry that is not there");
	names_free(&q);
	ok(queue_find(&q, U1) == QUEUE_NOBODY && queue_entries(&q, q.count) == 0, "an empty queue");
}

/* Who a reader waits for, and who holds the lock together. */
TEST(readers)
{
	static const char *const names[] = { HEX "__rlock__0000000001", U1 "-__READ__0000000002",
		U1 "-__rlock__0000000003", U2 "-lock-0000000004", U2 "-__lock__0000000005", U2 "-__WRIT__0000000006",
		U3 "-__READ__0000000007", U1 "-__READ__0000000008", U2 "-lock-0000000009", U4 "-__READ__0000000010" };
	struct names q = queue_of(names, COUNT(names));
	const size_t writer = queue_find(&q, U2), last = queue_find(&q, U4);

	is_int((int64_t)queue_holders(&q), 3, "the readers before the first writer hold the lock");
	is_int((int64_t)queue_before(&q, queue_find(&q, U1), true) == (int64_t)QUEUE_NOBODY, 1, "a reader among them");
	is_str(name_of(&q, queue_before(&q, writer, false)), U1 "-__READ__0000000002", "before the writer is a reader");
	is_str(name_of(&q, queue_before(&q, queue_find(&q, U3), true)), U2 "-lock-0000000004",
	    "before a reader, the writer");
	is_str(name_of(&q, queue_before(&q, last, true)), U2 "-lock-0000000004",
	    "before one behind another reader, too");
	is_int((int64_t)queue_writers(&q, last), 1, "its two sets of nodes are one entry");
	is_int((int64_t)queue_writers(&q, writer), 0, "no writer is before the first");
	names_free(&q);
	q = queue_of(names + 3, 5);
	is_int((int64_t)queue_holders(&q), 3, "a writer holds it alone, with all its nodes");
	names_free(&q);
	is_int((int64_t)queue_holders(&q), 0, "nobody holds a lock without a queue");
	ok(queue_is_reader(HEX "__rlock__0000000001") && !queue_is_reader(HEX "__lock__0000000001") &&
		!queue_is_reader(U1 "-__WRIT__0000000001"),
	    "readers by their names");
}

/* A writer with a second set of nodes behind another writer does not hide that one. */
TEST(two_sets)
{
	static const char *const names[] = { U1 "-lock-0000000001", U2 "-lock-0000000002", U1 "-lock-0000000003",
		U3 "-__READ__0000000004" };
	struct names q = queue_of(names, COUNT(names));

	ok(queue_writers(&q, 3) != 1 && queue_entries(&q, 3) != 1, "more than one is before a reader, or a writer");
	names_free(&q);
}

TEST(wrap)
{
	static const char *const names[] = { "x--2147483648", "x-2147483647", "x-2147483646", "x--2147483647" };
	struct names q = queue_of(names, COUNT(names));

	is_str(name_of(&q, 0), "x-2147483646", "numbers that become negative: the first");
	is_str(name_of(&q, 1), "x-2147483647", "the second");
	is_str(name_of(&q, 2), "x--2147483648", "the third");
	is_str(name_of(&q, 3), "x--2147483647", "the fourth");
	names_free(&q);
}

/* Whatever the nodes are called, each but the first has one before it. */
TEST(noise)
{
	static const char *const begins[] = { U1 "-lock-", U2 "-__lock__", HEX "__lock__", "x-", "" };
	struct names q = { .at = NULL };
	char name[80];
	size_t k, before;

	for (int i = 0; i < 2000; i++, names_free(&q)) {
		for (k = (size_t)below(12); k > 0; k--) {
			(void)snprintf(name, sizeof(name), "%s%0*d", begins[below(COUNT(begins))], (int)below(12),
			    (int)(below(3) == 0 ? below(20) : (int32_t)dice()));
			each(queue_add(&q, name, strlen(name)), "%s", name);
		}
		queue_sort(&q);
		each((queue_entries(&q, q.count) > 0) == (q.count > 0), "entries of %zu", q.count);
		for (k = 0; k < q.count; k++) {
			before = queue_before(&q, k, false);
			each((before == QUEUE_NOBODY) == (k == 0) && (k == 0 || before < k), "%zu before %zu", before,
			    k);
			each(queue_entries(&q, k) != 1 || queue_is_same(&q, k - 1, 0), "%zu is second", k);
		}
	}
	each_ok("a queue has an order");
}

TEST(clients)
{
	static const struct {
		const char *name, *client;
	} cases[] = {
		{ U1 "-lock-0000000001", "Curator" },
		{ U1 "-__WRIT__0000000001", "Curator" },
		{ U1 "-lease-0000000001", "Curator" },
		{ "_c_" HEX "-lock-0000000001", "go-zookeeper" },
		{ HEX "__lock__0000000001", "kazoo" },
		{ HEX "__rlock__0000000001", "kazoo" },
		{ "x-72057594-0000000001", "ZooKeeper's recipe" },
		{ "x-0000000001", "unknown" },
		{ "whatever-0000000001", "unknown" },
	};
	const char *client;

	for (size_t i = 0; i < COUNT(cases); i++) {
		client = queue_client(cases[i].name, strlen(cases[i].name));
		is_str(client != NULL ? client : "unknown", cases[i].client, "%s", cases[i].name);
	}
}
