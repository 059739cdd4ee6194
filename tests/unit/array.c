/* SPDX-License-Identifier: MIT */
#include "base/array.h"

#include "tap.h"

TEST(names)
{
	struct names n = { .count = 0 };

	for (size_t i = 1; i <= 2000; i++)
		each(names_add(&n, "name") && n.count == i && n.room >= i, "%zu names in the room for %zu", i, n.room);
	each_ok("a list never has more names than room");
	names_sort(&n);
	ok(n.count == 1 && names_shrink(&n), "doubles are dropped");
	is_str(n.at[0], "name", "the one that stays");
	names_free(&n);
}
