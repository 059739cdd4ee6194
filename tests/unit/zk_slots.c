/* SPDX-License-Identifier: MIT */
#include "zk/slots.h"

#include "tap.h"

/* The number that a lease names, 0 if none, or -1 of another client, and the one that it is shown with. */
struct lease_case {
	int named, shown;
};

static struct leases
leases_of(const struct lease_case *cases, struct slot_view *view, size_t count)
{
	static const char *const names[] = { "a-1", "b-2", "c-3", "d-4", "e-5" };

	memset(view, 0, count * sizeof(*view));
	for (size_t i = 0; i < count; i++) {
		view[i].name = names[i];
		view[i].named = cases[i].named > 0;
		view[i].slot = view[i].named ? cases[i].named : 0;
		view[i].holder.state = cases[i].named < 0 ? LOCK_OTHER_CLIENT : LOCK_HELD;
	}
	return (struct leases){ view, count };
}

TEST(choice)
{
	static const struct lease_case held[] = { { 2, 2 }, { 1, 1 }, { 4, 4 }, { 0, 0 }, { -1, 3 } };
	struct slot_view view[COUNT(held)];
	struct leases l = leases_of(held, view, COUNT(held));

	is_int(leases_choose(&l, "d"), 3, "the least number that nobody names");
	is_int(leases_choose(&l, "a"), 2, "its own number is free");
	l.count = 0;
	is_int(leases_choose(&l, "a"), 1, "the first, if there are no leases");
}

TEST(no_choice)
{
	static struct slot_view view[SLOTS_MAX];
	struct leases l = { view, SLOTS_MAX };

	for (int i = 0; i < SLOTS_MAX; i++)
		view[i] = (struct slot_view){ .name = "x", .slot = i + 1, .named = true };
	is_int(leases_choose(&l, "a"), 0, "all numbers are named");
}

TEST(shown)
{
	static const struct lease_case held[] = { { -1, 1 }, { 2, 2 }, { 0, 0 }, { -1, 3 }, { -1, 4 } };
	struct slot_view view[COUNT(held)];
	struct leases l = leases_of(held, view, COUNT(held));

	leases_number(&l);
	for (size_t i = 0; i < COUNT(held); i++)
		is_int(view[i].slot, held[i].shown, "number %d is shown as", held[i].named);
}
