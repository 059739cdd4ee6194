// SPDX-License-Identifier: MIT
//
// What is not done: a set of at most PLACES members on each of three nodes, and who is in a majority of them is inside.
//
//   sets CLIENTS
//
// limit   at most PLACES are inside
#include "explore.h"

enum {
	N = 3,
	PLACES = 2
};
static int clients;
struct state {
	uint8_t member[N], asked[N], inside;
};

template <class Emit>
static void
successors(const state &s, Emit emit)
{
	for (int c = 0; c < clients; c++) {
		int in = 0;
		for (int n = 0; n < N; n++) {
			state t = s;
			in += s.member[n] >> c & 1;
			if (!(s.asked[n] >> c & 1)) {
				t.asked[n] |= 1 << c;
				if (__builtin_popcount(t.member[n]) < PLACES)
					t.member[n] |= 1 << c;
				emit(t, "a node is asked");
			}
		}
		if (in >= 2 && !(s.inside >> c & 1)) {
			state t = s;
			t.inside |= 1 << c;
			emit(t, "inside");
		}
	}
}

int
main(int argc, char **argv)
{
	search how;
	clients = argc > 1 ? atoi(argv[1]) : 3;
	for (int i = 2; i < argc; i++)
		(void)how.take(argv[i]);
	printf("sets %d: ", clients);
	state s;
	memset(&s, 0, sizeof(s));
	return explore(
	    std::vector<state>{ s }, [](const state &x, auto e) { successors(x, e); },
	    [](const state &x) { return __builtin_popcount(x.inside) > PLACES ? "limit" : (const char *)NULL; },
	    [](const state &) {}, how);
}
