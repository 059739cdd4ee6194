// SPDX-License-Identifier: MIT
//
// A shared lock on three nodes (or one, with -DNODES=1): reader 0 takes KEY with the token T, the others enter it as further holds T.x, and a writer
// contends.  All states.
//
//   members READERS [SETTING...] [RULE...]
//
// share()     share.lua (acquire.lua): reader 0's attempt, which may fail, and is then undone
// enter()     renew.lua for T.x: the request that enters also renews, so it may come at any time from the first one on
// renew()     renew.lua for T
// heal()      heal.lua, with the holds that a majority reported in a round behind the loss
// undo()      unshare.lua
// release()   release.lua
// take()      acquire.lua of the writer: KEY absent, or the handoff token T, which is gone here
//
// exclusion   the writer never has the lock while a reader has
// freed       where all readers have ended and everything was carried out, no majority has KEY for them (without a fault)
//
// Settings: held (reader 0 is inside when it begins, on the nodes 0 and 1, or on all), crash (readers may die; then their leases end),
// late (requests of a reader may also come behind its own release).
//
// Reductions, as in tests/model/holds.pml: no time; the lease of who is inside does not end.  A reply arrives when its request
// is carried out, or is of no use.  Who enters may do so at any time, whoever told it T.  The writer makes one attempt, and keeps
// the lock.  Only the node that may lack the lock is healed: 2.
#include "explore.h"

#ifndef NODES
#define NODES 3
#endif
enum {
	N = NODES,
	MAJORITY = N / 2 + 1,
	MOST = 4,
	NONE = 0,
	T = 1,
	W = 2
};
enum : uint8_t {
	UNKNOWN,
	HELD,
	ENDED
};
enum : uint8_t {
	OUT,
	ASKING,
	ENTERING,
	CONFIRMING,
	INSIDE,
	OVER,
	OVER_OUTSIDE
};

static int readers = 2;
static word held("held"), crash("crash"), late("late");
static struct {
	word undo_deletes{ "undo_deletes" }; // S2
	word exists_only{ "exists_only" };   // S4
	word no_token{ "no_token" };	     // S4
	word no_gone{ "no_gone" };
	word no_gone_handoff{ "no_gone_handoff" };
	word key_suffices{ "key_suffices" };
} rule;

struct state {
	uint8_t key[N], gone[N];
	uint8_t hold[MOST][N];
	uint8_t phase[MOST], got[MOST], rel[MOST];
	uint8_t heal[MOST][N]; // 0x80 and the holds that it knows
	uint8_t lacks[MOST], due[MOST], renewed[MOST], known[MOST];
	uint8_t asked, undo;
	uint8_t wphase, wasked, wundo, wgot;
	uint8_t crashed, handed;
};

static bool
ours(const state &s, int n)
{
	return s.key[n] == T && (!s.gone[n] || rule.no_gone);
}
static int
live(const state &s, int n, int but)
{
	int mask = 0;
	for (int r = 0; r < readers; r++)
		if (r != but && s.hold[r][n] == HELD)
			mask |= 1 << r;
	return mask;
}
static bool
is_set(const state &s, int n)
{
	for (int r = 0; r < readers; r++)
		if (s.hold[r][n] != UNKNOWN)
			return true;
	return false;
}
static void
clear(state &s, int n)
{
	for (int r = 0; r < readers; r++)
		s.hold[r][n] = UNKNOWN;
}
static void
finish(state &s, int n)
{
	s.gone[n] = 1;
	s.handed = 1;
}

static bool
enter(state &s, int r, int n)
{
	if (!ours(s, n) || s.hold[r][n] == ENDED)
		return false;
	if (rule.key_suffices)
		return true;
	if (!rule.no_token && (rule.exists_only ? !is_set(s, n) : live(s, n, -1) == 0 && s.hold[0][n] == UNKNOWN))
		s.hold[0][n] = HELD;
	s.hold[r][n] = HELD;
	return true;
}
static bool
renew(state &s, int n)
{
	if (!ours(s, n) || s.hold[0][n] == ENDED)
		return false;
	if (is_set(s, n))
		s.hold[0][n] = HELD;
	return true;
}
static void
release(state &s, int r, int n)
{
	if (s.key[n] == T && !s.gone[n]) {
		const bool alone = r == 0 && !is_set(s, n), was = s.hold[r][n] == HELD;
		const bool others = live(s, n, r) != 0;
		if (!alone)
			s.hold[r][n] = ENDED;
		if (alone || (!others && (was || r == 0)))
			finish(s, n);
	} else if (s.key[n] != T && r == 0)
		s.gone[n] = 1;
}
static void
undo(state &s, int n)
{
	if (s.key[n] != T || s.gone[n])
		return;
	if (rule.undo_deletes || !is_set(s, n)) {
		s.key[n] = NONE;
		clear(s, n);
	} else
		release(s, 0, n);
}
static void
heal(state &s, int h, int n)
{
	const int known = s.heal[h][n] & 0x7f;
	s.heal[h][n] = 0;
	if (s.key[n] != NONE || s.gone[n] || s.hold[h][n] == ENDED)
		return;
	s.key[n] = T;
	for (int r = 0; r < readers; r++)
		if ((known >> r & 1) && s.hold[r][n] == UNKNOWN)
			s.hold[r][n] = HELD;
	if (h != 0 || (known & ~1) != 0)
		s.hold[h][n] = HELD;
}
static int
count(int mask)
{
	return __builtin_popcount(mask & ((1 << N) - 1));
}
enum {
	ALL = (1 << N) - 1
};

template <class Emit>
static void
successors(const state &s, Emit emit)
{
	state t;
	char name[40];
#define STEP(...) (snprintf(name, sizeof(name), __VA_ARGS__), emit(t, name))
	for (int n = 0; n < N; n++) {
		const int bit = 1 << n;
		if (s.asked & bit) {
			t = s;
			t.asked &= ~bit;
			if (t.key[n] == NONE && !t.gone[n]) {
				t.key[n] = T;
				clear(t, n);
				if (t.phase[0] == ASKING)
					t.got[0] |= bit;
			}
			STEP("share at %d", n);
		}
		if ((s.undo & bit) && !(s.asked & bit)) {
			t = s;
			t.undo &= ~bit;
			undo(t, n);
			STEP("undo at %d", n);
		}
		for (int r = 0; r < readers; r++) {
			if ((s.rel[r] & bit) && (late || r != 0 || !(s.asked & bit))) {
				t = s;
				t.rel[r] &= ~bit;
				release(t, r, n);
				STEP("release of %d at %d", r, n);
				if (late) {
					t.rel[r] |= bit;
					STEP("a copy of the release of %d at %d", r, n);
				}
			}
			if (s.heal[r][n] != 0) {
				t = s;
				heal(t, r, n);
				STEP("heal by %d at %d", r, n);
			}
			const bool may = s.phase[r] != OUT && s.phase[r] != ASKING &&
			    (s.phase[r] < OVER || late || (s.rel[r] & bit));
			if (r != 0 && may) {
				t = s;
				if (enter(t, r, n)) {
					if (t.phase[r] == ENTERING || t.phase[r] == CONFIRMING)
						t.got[r] |= bit;
					STEP("%d enters at %d", r, n);
				}
			}
			if (r == 0 && may && s.phase[0] != OVER_OUTSIDE && !s.gone[n]) {
				t = s;
				if (renew(t, n))
					STEP("0 renews at %d", n);
			}
			// healing
			if (s.phase[r] == INSIDE && n == 2) {
				if (s.key[n] == NONE && !(s.lacks[r] & bit)) {
					t = s;
					t.lacks[r] |= bit;
					STEP("%d lacks %d", r, n);
				}
				if ((s.due[r] & bit) && count(s.renewed[r]) >= MAJORITY && s.heal[r][n] == 0) {
					t = s;
					t.heal[r][n] = 0x80 | t.known[r];
					t.due[r] &= ~bit;
					t.lacks[r] &= ~bit;
					STEP("%d heals %d", r, n);
				}
			}
			if (s.phase[r] == INSIDE && !(s.renewed[r] & bit)) {
				t = s;
				if (r == 0 ? renew(t, n) : enter(t, r, n)) {
					t.renewed[r] |= bit;
					t.known[r] |= live(t, n, r);
					STEP("%d's round at %d", r, n);
				}
			}
			// leases of the dead
			if ((s.crashed >> r & 1) && s.hold[r][n] == HELD) {
				t = s;
				t.hold[r][n] = UNKNOWN;
				STEP("the lease of %d ends at %d", r, n);
			}
		}
		if (s.wasked & bit) {
			t = s;
			const bool free = t.key[n] == NONE,
				   takes = t.handed && t.key[n] == T && (t.gone[n] || rule.no_gone_handoff);
			if (free || takes) {
				t.wasked &= ~bit;
				t.key[n] = W;
				clear(t, n);
				if (t.wphase == ASKING)
					t.wgot |= bit;
				STEP("the writer gets %d", n);
			}
		}
		if ((s.wundo & bit)) {
			t = s;
			t.wundo &= ~bit;
			t.wasked &= ~bit;
			if (t.key[n] == W)
				t.key[n] = NONE;
			STEP("the writer's undo at %d", n);
		}
		if (s.key[n] == T && s.gone[n]) {
			t = s;
			t.key[n] = NONE;
			STEP("the window ends at %d", n);
		}
		if (s.key[n] == T && !s.gone[n] && live(s, n, -1) == 0 && crash && s.phase[0] != INSIDE &&
		    s.phase[0] != ASKING) {
			t = s;
			t.key[n] = NONE;
			STEP("KEY expires at %d", n);
		}
	}
	for (int r = 0; r < readers; r++) {
		if (s.phase[r] == INSIDE && s.lacks[r] != 0) {
			t = s;
			t.due[r] |= t.lacks[r];
			t.lacks[r] = t.renewed[r] = t.known[r] = 0;
			STEP("%d begins a round", r);
		}
		t = s;
		if (r == 0 && s.phase[0] == ASKING) {
			if (count(s.got[0]) >= MAJORITY) {
				t.phase[0] = INSIDE;
				t.got[0] = 0;
				STEP("0 is inside");
			}
			t = s;
			t.phase[0] = OVER_OUTSIDE;
			t.got[0] = 0;
			t.undo = ALL;
			STEP("0 gives up");
		}
		t = s;
		if (r != 0 && s.phase[r] == OUT && (r == 1 || s.phase[r - 1] != OUT)) {
			t.phase[r] = ENTERING;
			STEP("%d begins", r);
		}
		if ((s.phase[r] == ENTERING || s.phase[r] == CONFIRMING) && count(s.got[r]) >= MAJORITY) {
			t = s;
			t.phase[r] = s.phase[r] == ENTERING && N > 1 ? CONFIRMING : INSIDE;
			t.got[r] = 0;
			STEP("%d is %s", r, t.phase[r] == INSIDE ? "inside" : "confirmed once");
		}
		if (s.phase[r] == ENTERING || s.phase[r] == CONFIRMING || s.phase[r] == INSIDE) {
			t = s;
			t.phase[r] = s.phase[r] == INSIDE ? OVER : OVER_OUTSIDE;
			t.got[r] = t.lacks[r] = t.due[r] = t.renewed[r] = t.known[r] = 0;
			t.rel[r] = ALL;
			STEP("%d ends", r);
			if (crash && s.phase[r] == INSIDE) {
				t.rel[r] = 0;
				t.crashed |= 1 << r;
				STEP("%d dies", r);
			}
		}
	}
	t = s;
	if (s.wphase == OUT) {
		t.wphase = ASKING;
		t.wasked = ALL;
		STEP("the writer asks");
	}
	if (s.wphase == ASKING) {
		if (count(s.wgot) >= MAJORITY) {
			t.wphase = INSIDE;
			t.wgot = 0;
			STEP("the writer is inside");
		}
		t = s;
		t.wphase = OVER;
		t.wgot = 0;
		t.wundo = ALL;
		STEP("the writer gives up");
	}
}

static const char *
wrong(const state &s)
{
	bool any = false, over = true, quiet = s.asked == 0 && s.undo == 0;
	for (int r = 0; r < readers; r++) {
		any = any || s.phase[r] == INSIDE;
		over = over && (s.phase[r] == OVER || s.phase[r] == OVER_OUTSIDE || s.phase[r] == OUT);
		quiet = quiet && s.rel[r] == 0;
		for (int n = 0; n < N; n++)
			quiet = quiet && s.heal[r][n] == 0;
	}
	if (any && s.wphase == INSIDE)
		return "exclusion";
	if (over && quiet && !crash && !late) {
		int left = 0;
		for (int n = 0; n < N; n++)
			left += s.key[n] == T && !s.gone[n];
		if (left >= MAJORITY)
			return "freed";
	}
	return NULL;
}

static void
show(const state &s)
{
	for (int n = 0; n < N; n++) {
		printf(" %c%s", "-TW"[s.key[n]], s.gone[n] ? "g" : " ");
		for (int r = 0; r < readers; r++)
			printf("%c", ".HE"[s.hold[r][n]]);
	}
}

int
main(int argc, char **argv)
{
	search how;
	if (!read_line("members", argc, argv, how))
		return 64;
	readers = atoi(argv[1]);
	std::vector<state> initial;
	state s;
	memset(&s, 0, sizeof(s));
	if (held) {
		s.phase[0] = INSIDE;
		for (int n = 0; n < MAJORITY; n++)
			s.key[n] = T;
		initial.push_back(s);
		s.key[N - 1] = T;
		initial.push_back(s);
	} else {
		s.phase[0] = ASKING;
		s.asked = ALL;
		initial.push_back(s);
	}
	return explore(
	    initial, [](const state &x, auto e) { successors(x, e); }, wrong, show, how);
}
