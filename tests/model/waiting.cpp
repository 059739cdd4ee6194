// SPDX-License-Identifier: MIT
//
// Waiting, in the three modes: exclusive clients (x), readers (s) and users of slots (n), on one node or three.  All states.
//
//   waiting CLIENTS [SETTING...] [RULE...]
//
// CLIENTS has a letter for each: x, s, n; a capital one is inside when it begins (N: in the next slot).  n uses all LOCKS slots,
// a digit behind it says how many (n1).  Each client has one wait; it may give up at any time.
// Settings: nodes3; locksL; askew (each slot has two other nodes); slow=MASK (nodes that may carry out requests at any later
// time; the others do so at once; all, unless given); order (check the order, one node).
//
// Requests of a client to a node are carried out in order (one connection).  Nothing is lost, no timer fires, no lease ends:
// the queue alone must wake everybody.  (Faults: tests/model/queue.pml, members.cpp.)  A request that a node answers with
// "not yet" stays where it is until the answer is another one.  An attempt begins where at most six are on their way to a node.
//
// exclusion   an exclusive client is alone, and one client at most is in a slot
// awake       where nothing is on its way, nobody sleeps who could have the lock, or a slot
// order       who comes later does not get what somebody who sleeps waits for; but a reader that was invited may find that its
//             group has ended, and then loses its place
#include "explore.h"

#ifndef MOST
#define MOST 5
#endif

enum {
	NODES = 3,
	LOCKS = 2,
	LONG = 12,
	TRIES = 3
};
enum : uint8_t {
	START,
	ASK,
	LOOK,
	ENTER,
	JOIN,
	ASLEEP,
	LEAVING,
	PASS,
	INSIDE,
	DONE
};
enum : uint8_t {
	NOTHING,
	ACQUIRE,
	UNDO,
	RELEASE,
	LEAVE,
	INVITE,
	ENTERS,
	LOOKS
};

struct message {
	uint8_t what : 4, slot : 4, token : 4, with : 4;
};
static_assert(sizeof(message) == 2);
struct lock {
	uint8_t key, gone, wake, set, holds, ended;
};
struct node {
	lock l[LOCKS];
	uint8_t noted, ticket[MOST], own[MOST], queued, queue[MOST];
};
struct client {
	uint8_t phase, gen, slot, with, from, group, place, handoff, handoff_slot,
	    word;					  // with: its handoff token, which came from node from - 1
	uint8_t replied, yes, ahead, named[NODES], gones; // of the round under way
	uint8_t seen[NODES][LOCKS], seen_gone[NODES];	  // of the look
	uint8_t candidates;
	uint8_t before, in_line, waited;
	uint8_t length[NODES];
	message way[NODES][LONG];
};
struct state {
	node n[NODES];
	client c[MOST];
};

static int clients;
static word nodes("nodes", 1, true), locks("locks", 1, true), slow("slow=", 7, true);
static word askew("askew"), check_order("order");
static char mode[MOST + 1];
static bool starts_inside[MOST];
static int uses[MOST];
static struct {
	word own_notes{ "own_notes" }; // slots: a note is seen by the release of the slot that was tried only
	word note_late{ "note_late" }; // slots: the note is added after the look, not in one step with it
	word one_list{ "one_list" };   // slots: blocks on the list of one slot only
	word no_invite{ "no_invite" }; // a reader that got a handoff token invites nobody
	word no_leave_invite{ "no_leave_invite" }; // an exclusive waiter that gives up invites nobody
	word barging{ "barging" };		   // readers pass exclusive waiters
	word invite_one{ "invite_one" };	   // invitations go to the node of the handoff token only
	word enter_any{ "enter_any" };		   // an exclusive request enters a shared lock
	word first_only{ "first_only" };	   // readers: what the first node says about waiters before is final
	word pop_any{ "pop_any" };		   // slots: no node needs to name all holders
} rule;

static const char *failed;
static int
owner(int token)
{
	return (token - 1) / TRIES;
} // a client has three tokens; one that is nowhere is fresh
static bool
is_x(int c)
{
	return mode[c] == 'x';
}
static bool
is_s(int c)
{
	return mode[c] == 's';
}
static bool
is_n(int c)
{
	return mode[c] == 'n';
}
static int
token_of(const client &c, int me)
{
	return 1 + TRIES * me + c.gen;
}
static int
majority()
{
	return nodes / 2 + 1;
}
static int
count(int mask)
{
	return __builtin_popcount(mask);
}

// -- A node ---------------------------------------------------------------------

static bool
blocked(const node &k, int c)
{
	for (int i = 0; i < k.queued; i++)
		if (k.queue[i] == c + 1)
			return true;
	return false;
}
static void
unblock(node &k, int c)
{
	int j = 0;
	for (int i = 0; i < k.queued; i++)
		if (k.queue[i] != c + 1)
			k.queue[j++] = k.queue[i];
	for (int i = j; i < k.queued; i++)
		k.queue[i] = 0;
	k.queued = j;
}
static bool
listens(const state &s, int c, int slot)
{
	return !is_n(c) || (slot < uses[c] && (!rule.one_list || s.c[c].slot == slot));
}
static void
push(state &s, int at, int slot, int token)
{
	node &k = s.n[at];
	for (int i = 0; i < k.queued; i++) {
		const int c = k.queue[i] - 1;
		if (!listens(s, c, slot))
			continue;
		s.c[c].handoff = token;
		s.c[c].handoff_slot = slot;
		unblock(k, c);
		return;
	}
	k.l[slot].wake = token;
}
static void
forget_ticket(node &k, int c)
{
	if (k.ticket[c] == 0)
		return;
	for (int i = 0; i < clients; i++)
		if (k.ticket[i] > k.ticket[c])
			k.ticket[i]--;
	k.ticket[c] = 0;
}
static void
unnote(node &k, int c)
{
	k.noted &= ~(1 << c);
	forget_ticket(k, c);
}
static void
note(node &k, int c)
{
	if (k.noted >> c & 1)
		return;
	k.noted |= 1 << c;
	int last = 0;
	for (int i = 0; i < clients; i++)
		last = k.ticket[i] > last ? k.ticket[i] : last;
	k.ticket[c] = last + 1;
}
static bool
x_ahead(const node &k, int c)
{
	for (int i = 0; i < clients; i++)
		if (is_x(i) && (k.noted >> i & 1) && (!(k.noted >> c & 1) || k.ticket[i] < k.ticket[c]))
			return true;
	return false;
}
static bool
live(const lock &l)
{
	return l.key != 0 && is_s(owner(l.key)) && l.gone != l.key;
}
static void
add_hold(lock &l, int c)
{
	const int first = 1 << owner(l.key);
	if (l.holds == 0 && !(l.ended & first))
		l.holds |= first;
	l.holds |= 1 << c;
	l.set = 1;
}
static bool
is_awaited(const node &k, int slot)
{
	for (int c = 0; c < clients; c++)
		if ((k.noted >> c & 1) && (!is_n(c) || !rule.own_notes || slot == 0))
			return true;
	return false;
}
static void
finish(state &s, int at, int slot)
{
	node &k = s.n[at];
	lock &l = k.l[slot];
	l.gone = l.key;
	if (is_awaited(k, slot)) {
		l.wake = 0;
		push(s, at, slot, l.key);
	} else {
		l.key = 0;
		l.set = l.holds = l.ended = 0;
	}
}
static void
end_hold(state &s, int at, int slot, int c)
{
	lock &l = s.n[at].l[slot];
	const bool own = owner(l.key) == c, was = l.holds >> c & 1;
	if (own && !l.set) {
		finish(s, at, slot);
		return;
	}
	l.set = 1;
	l.holds &= ~(1 << c);
	l.ended |= 1 << c;
	if (l.holds == 0 && (was || own))
		finish(s, at, slot);
}
// A word for each reader that waits before the first exclusive waiter.  Its entry stays until it has entered.
static void
invite(state &s, int at)
{
	node &k = s.n[at];
	lock &l = k.l[0];
	if (!live(l))
		return;
	for (int t = 1, i; t <= clients; t++) {
		for (i = 0; i < clients && !((k.noted >> i & 1) && k.ticket[i] == t); i++)
			;
		if (i == clients)
			continue;
		if (is_x(i))
			break;
		if (blocked(k, i)) {
			s.c[i].word = 1;
			unblock(k, i);
		} else
			k.own[i] = 1;
	}
}

static bool
executable(const state &s, int me, int at)
{
	const client &c = s.c[me];
	if (c.length[at] == 0)
		return false;
	const message &m = c.way[at][0];
	const lock &l = s.n[at].l[m.slot];
	return !(m.what == ACQUIRE && m.with != 0 && l.key == m.with && l.gone != m.with);
}
static void
carry_out(state &s, int me, int at)
{
	client &c = s.c[me];
	node &k = s.n[at];
	const message m = c.way[at][0];
	lock &l = k.l[m.slot];
	const int bit = 1 << at;
	for (int i = 1; i < c.length[at]; i++)
		c.way[at][i - 1] = c.way[at][i];
	c.way[at][--c.length[at]] = message{ 0, 0, 0, 0 };
	switch (m.what) {
	case ACQUIRE: {
		const bool current = c.phase == ASK && m.token == token_of(c, me);
		if (check_order && !c.waited) {
			c.waited = 1;
			for (int i = 0; i < clients; i++)
				if (s.c[i].in_line)
					c.before |= 1 << i;
		}
		if ((l.key == 0 && l.gone != m.token) || (m.with != 0 && l.key == m.with && l.gone == m.with)) {
			if (m.with != 0 && l.wake == m.with)
				l.wake = 0;
			l.key = m.token;
			l.set = l.holds = l.ended = 0;
			unnote(k, me);
			if (current) {
				c.yes |= bit;
				c.replied |= bit;
			}
			break;
		}
		if (!is_n(me))
			note(k, me);
		if (current) {
			c.replied |= bit;
			c.named[at] = l.key;
			c.gones |= l.gone == l.key ? bit : 0;
			c.ahead |= x_ahead(k, me) && !rule.barging ? bit : 0;
		}
		break;
	}
	case UNDO:
		if (l.key == m.token && l.gone != m.token) {
			if (is_s(me) && l.set)
				end_hold(s, at, m.slot, me);
			else {
				l.key = 0;
				l.set = l.holds = l.ended = 0;
			}
		}
		break;
	case RELEASE:
		if (m.with != 0 && l.key == m.with && l.gone == m.with && owner(m.token) == me) {
			if (l.wake == m.with)
				l.wake = 0;
			l.key = m.token;
			l.set = l.holds = l.ended = 0;
		}
		if (l.key == m.token && l.gone != m.token)
			end_hold(s, at, m.slot, me);
		else if (l.key != m.token && owner(m.token) == me && (l.key == 0 || l.key != l.gone))
			l.gone = m.token;
		break;
	case LEAVE:
		unnote(k, me);
		k.own[me] = 0;
		if (c.phase == LEAVING &&
		    c.place == at + 1) { // the reply to BLPOP: a handoff token, an invitation, or "leave"
			unblock(k, me);
			c.phase = PASS;
		}
		break;
	case INVITE:
		invite(s, at);
		break;
	case ENTERS:
		if (l.key == m.token && l.gone != m.token && !(l.ended >> me & 1)) {
			add_hold(l, me);
			if (c.phase == ENTER && c.group == m.token)
				c.yes |= bit;
		}
		if (c.phase == ENTER && c.group == m.token)
			c.replied |= bit;
		break;
	case LOOKS: {
		bool all = true;
		for (int i = 0; i < uses[me]; i++) {
			if (c.phase == LOOK) {
				c.seen[at][i] = k.l[i].key;
				c.seen_gone[at] |= k.l[i].key != 0 && k.l[i].gone == k.l[i].key ? 1 << i : 0;
			}
			all = all && k.l[i].key != 0;
		}
		if (c.phase == LOOK)
			c.replied |= bit;
		if (all && !rule.note_late)
			note(k, me);
		break;
	}
	}
}

// -- Clients ----------------------------------------------------------------------

static void
send(state &s, int me, int at, int what, int token = 0, int with = 0)
{
	client &c = s.c[me];
	if (c.length[at] == LONG) {
		fprintf(stderr, "a connection is full\n");
		exit(70);
	}
	c.way[at][c.length[at]++] = message{ uint8_t(what), c.slot, uint8_t(token), uint8_t(with) };
}
static void
send_all(state &s, int me, int what, int token = 0, int with = 0)
{
	for (int n = 0; n < nodes; n++)
		send(s, me, n, what, token, with);
}
static bool
pending(const client &c, int at, int what, int token)
{
	for (int i = 0; i < c.length[at]; i++)
		if (c.way[at][i].what == what && (token == 0 || c.way[at][i].token == token))
			return true;
	return false;
}
static bool
used(const state &s, int token)
{
	for (int n = 0; n < nodes; n++)
		for (int i = 0; i < locks; i++)
			if (s.n[n].l[i].key == token || s.n[n].l[i].wake == token)
				return true;
	for (int c = 0; c < clients; c++) {
		if (s.c[c].handoff == token || s.c[c].group == token || s.c[c].with == token)
			return true;
		for (int n = 0; n < nodes; n++) {
			if (s.c[c].named[n] == token || s.c[c].seen[n][0] == token || s.c[c].seen[n][1] == token)
				return true;
			for (int i = 0; i < s.c[c].length[n]; i++)
				if (s.c[c].way[n][i].token == token || s.c[c].way[n][i].with == token)
					return true;
		}
	}
	return false;
}
static void
forget(client &c)
{
	c.replied = c.yes = c.ahead = c.gones = 0;
	memset(c.named, 0, sizeof(c.named));
	memset(c.seen, 0, sizeof(c.seen));
	memset(c.seen_gone, 0, sizeof(c.seen_gone));
}
static void
undo(state &s, int me)
{
	client &c = s.c[me];
	const int token = token_of(c, me);
	for (int n = 0; n < nodes; n++)
		if ((c.yes >> n & 1) || pending(c, n, ACQUIRE, token))
			send(s, me, n, UNDO, token);
	c.with = c.from = 0;
}
static bool
conflict(int a, int b)
{
	return is_x(a) || is_x(b) || is_n(a);
}
static void
check(state &s, int me)
{
	int x = 0, sh = 0, slot = 0;
	for (int i = 0; i < clients; i++) {
		if (s.c[i].phase != INSIDE)
			continue;
		if (is_x(i))
			x++;
		else if (is_s(i))
			sh++;
		else if (slot >> s.c[i].slot & 1)
			failed = "exclusion";
		else
			slot |= 1 << s.c[i].slot;
	}
	if (x > 1 || (x == 1 && sh > 0))
		failed = "exclusion";
	if (check_order && failed == NULL)
		for (int y = 0; y < clients; y++)
			if ((s.c[me].before >> y & 1) && s.c[y].in_line && y != me && conflict(me, y) &&
			    s.c[y].word == 0 && !(is_n(y) && (s.c[y].handoff != 0 || s.c[y].with != 0)))
				failed = "order";
}
static void
get_in(state &s, int me)
{
	client &c = s.c[me];
	const bool brought = c.with != 0;
	for (int n = 0; n < nodes; n++)
		if (c.group != 0 || !(c.yes >> n & 1))
			send(s, me, n, LEAVE);
	if (is_s(me) && c.group == 0 && brought && !rule.no_invite)
		rule.invite_one ? send(s, me, c.from - 1, INVITE) : send_all(s, me, INVITE);
	c.from = 0;
	forget(c);
	c.phase = INSIDE;
	c.in_line = 0;
	check(s, me);
	c.candidates = 0;
}
static int
named_most(const client &c, int &votes)
{
	int token = 0;
	votes = 0;
	for (int n = 0; n < nodes; n++) {
		int same = 0;
		if (!(c.replied >> n & 1) || (c.yes >> n & 1))
			continue;
		for (int i = 0; i < nodes; i++)
			same += (c.replied >> i & 1) && !(c.yes >> i & 1) && c.named[i] == c.named[n];
		if (same > votes) {
			votes = same;
			token = c.named[n];
		}
	}
	return token;
}

template <class Emit>
static void
client_steps(const state &s, int me, Emit emit)
{
	const client &o = s.c[me];
	state t = s;
	client &c = t.c[me];
	int votes;
#define STEP(what) emit(t, me, what)
	switch (o.phase) {
	case START:
		for (int n = 0; n < nodes; n++)
			if (o.length[n] > LONG - 6)
				return; // not more than so many requests on their way to a node
		for (int g = 0; g < TRIES; g++) {
			if (used(s, 1 + TRIES * me + g))
				continue;
			for (int slot = 0; slot < (is_n(me) ? uses[me] : 1); slot++) {
				if (is_n(me) && o.handoff == 0 && o.candidates != 0 && !(o.candidates >> slot & 1))
					continue;
				if (is_n(me) && o.handoff != 0 && slot != o.handoff_slot)
					continue;
				t = s;
				c.gen = g;
				for (int n = 0; n < nodes; n++)
					for (int i = 0; i < locks; i++)
						if (t.n[n].l[i].gone == token_of(c, me))
							t.n[n].l[i].gone = 0;
				c.slot = slot;
				c.with = c.handoff;
				c.from = c.handoff != 0 ? c.place : 0;
				c.handoff = c.handoff_slot = c.candidates = c.place = 0;
				forget(c);
				c.phase = ASK;
				send_all(t, me, ACQUIRE, token_of(c, me), c.with);
				STEP("asks");
			}
			break;
		}
		return;
	case ASK: {
		if (count(o.yes) >= majority()) {
			get_in(t, me);
			STEP("is granted it");
			return;
		}
		const int token = named_most(o, votes);
		bool all = true;
		for (int n = 0; n < nodes; n++)
			all = all && !pending(o, n, ACQUIRE, token_of(o, me));
		if (token != 0 && votes >= majority()) {
			int first = nodes;
			for (int n = nodes - 1; n >= 0; n--)
				if ((o.replied >> n & 1) && !(o.yes >> n & 1) && o.named[n] == token)
					first = n;
			for (int n = 0; n < first && !is_n(me); n++)
				if (!(o.replied >> n & 1))
					return; // a node before is waited for
			undo(t, me);
			int clear = 0; // nodes that name the group, and no exclusive waiter before us
			for (int n = 0; n < nodes; n++)
				clear += (o.replied >> n & 1) && !(o.yes >> n & 1) && o.named[n] == token &&
				    !(o.ahead >> n & 1);
			const bool may = (is_s(me) || rule.enter_any) && is_s(owner(token)) &&
			    !(o.gones >> first & 1) &&
			    (!(o.ahead >> first & 1) || (clear >= majority() && !rule.first_only));
			forget(c);
			if (is_n(me)) {
				c.phase = LOOK;
				c.slot = 0;
				send_all(t, me, LOOKS);
			} else if (may) {
				c.phase = ENTER;
				c.group = token;
				send_all(t, me, ENTERS, token);
			} else {
				c.phase = JOIN;
				c.place = first + 1;
			}
			STEP(may ? "is refused, and enters" : "is refused");
			return;
		}
		if (all && count(o.replied) == nodes) {
			undo(t, me);
			forget(c);
			if (is_n(me)) {
				c.phase = LOOK;
				c.slot = 0;
				send_all(t, me, LOOKS);
			} else {
				for (int n = 0; n < nodes && c.handoff == 0; n++)
					if ((o.gones >> n & 1) && t.n[n].l[0].wake != 0 && (t.n[n].noted >> me & 1)) {
						c.handoff = t.n[n].l[0].wake;
						t.n[n].l[0].wake = 0;
						c.place = n + 1;
					}
				c.phase = START;
			}
			STEP("sees a split vote");
		}
		return;
	}
	case LOOK: {
		if (count(o.replied) < nodes)
			return;
		int held[LOCKS] = { 0 }, candidates = 0, first = -1;
		for (int i = 0; i < uses[me]; i++) {
			for (int n = 0; n < nodes; n++) {
				int same = 0;
				for (int j = 0; j < nodes; j++)
					same += o.seen[n][i] != 0 && o.seen[j][i] == o.seen[n][i];
				if (same >= majority())
					held[i] = o.seen[n][i];
			}
			candidates |= held[i] == 0 ? 1 << i : 0;
		}
		for (int n = nodes - 1; n >= 0; n--) {
			bool all = true, any = false;
			for (int i = 0; i < uses[me]; i++) {
				all = all && o.seen[n][i] == held[i];
				any = any || o.seen[n][i] == held[i];
			}
			if (all || (rule.pop_any && any))
				first = n;
		}
		if (candidates != 0) {
			c.candidates = candidates;
			for (int n = 0; n < nodes && c.handoff == 0; n++)
				for (int i = 0; i < uses[me] && c.handoff == 0; i++)
					if ((candidates >> i & 1) && (o.seen_gone[n] >> i & 1) &&
					    t.n[n].l[i].wake != 0 && (t.n[n].noted >> me & 1)) {
						c.handoff = t.n[n].l[i].wake;
						c.handoff_slot = i;
						c.place = n + 1;
						t.n[n].l[i].wake = 0;
					}
			forget(c);
			c.phase = START;
			STEP("sees a free slot");
			return;
		}
		forget(c);
		if (first < 0) {
			send_all(t, me, LOOKS); // as without a place in the queue: it looks again soon
			STEP("looks again");
			return;
		}
		if (rule.note_late)
			for (int n = 0; n < nodes; n++)
				note(t.n[n], me);
		c.phase = JOIN;
		c.place = first + 1;
		STEP("sees no free slot");
		return;
	}
	case ENTER:
		if (count(o.yes) >= majority()) {
			get_in(t, me);
			STEP("has entered");
		} else if (count(o.replied) - count(o.yes) > nodes - majority()) {
			send_all(t, me, RELEASE, c.group);
			c.group = 0;
			forget(c);
			c.phase = START;
			STEP("cannot enter");
		}
		return;
	case JOIN: {
		node &k = t.n[o.place - 1];
		c.phase = ASLEEP;
		c.in_line = check_order && c.waited != 2;
		if (k.own[me] != 0) {
			c.word = k.own[me];
			k.own[me] = 0;
		} else {
			int i;
			for (i = 0; i < locks && !(k.l[i].wake != 0 && listens(t, me, i)); i++)
				;
			if (i < locks) {
				c.handoff = k.l[i].wake;
				c.handoff_slot = i;
				k.l[i].wake = 0;
			} else
				k.queue[k.queued++] = me + 1;
		}
		STEP("goes to sleep");
		return;
	}
	case ASLEEP:
		if (o.handoff != 0) {
			c.phase = START;
			STEP("has a handoff token");
		} else if (o.word != 0) {
			c.word = c.place = 0;
			c.in_line = 0; // whoever passes it from now on is excused
			c.waited = check_order ? 2 : 0;
			c.phase = START;
			STEP("is invited");
		}
		t = s;
		c.in_line = 0;
		c.slot = 0;
		c.phase = LEAVING;
		send_all(t, me, LEAVE);
		if (is_x(me) && !rule.no_leave_invite)
			rule.invite_one ? send(t, me, c.place - 1, INVITE) : send_all(t, me, INVITE);
		STEP("gives up");
		return;
	case PASS:
		if (o.handoff != 0) {
			lock &l = t.n[o.place - 1].l[o.handoff_slot];
			if (l.key == o.handoff && l.gone == o.handoff && l.wake == 0)
				push(t, o.place - 1, o.handoff_slot, o.handoff);
		}
		c.handoff = c.handoff_slot = c.place = c.word = 0;
		c.phase = DONE;
		STEP("has left");
		return;
	case INSIDE:
		send_all(t, me, RELEASE, c.group != 0 ? c.group : token_of(c, me), c.with);
		c.group = c.with = 0;
		c.phase = DONE;
		STEP("releases");
		return;
	}
#undef STEP
}

static void
settle(state &s)
{
	for (bool again = true; again;) {
		again = false;
		for (int n = 0; n < nodes; n++)
			for (int c = 0; c < clients && !(slow >> n & 1); c++)
				while (executable(s, c, n)) {
					carry_out(s, c, n);
					again = true;
				}
	}
	for (int i = 0; i < clients; i++)
		if (s.c[i].phase == DONE) {
			client &c = s.c[i];
			c.slot = c.gen = c.before = c.waited = c.candidates = 0;
			for (int n = 0; n < nodes; n++)
				if (c.length[n] == 0 && !(s.n[n].noted >> i & 1))
					s.n[n].own[i] = 0;
		}
}

template <class Emit>
static void
successors(const state &s, Emit emit)
{
	char name[64];
	for (int n = 0; n < nodes; n++)
		for (int c = 0; c < clients; c++)
			if (executable(s, c, n)) {
				static const char *const what[] = { "", "acquire", "undo", "release", "leave", "invite",
					"enter", "look" };
				state t = s;
				snprintf(name, sizeof(name), "%s of %d at %d", what[s.c[c].way[n][0].what], c, n);
				carry_out(t, c, n);
				settle(t);
				emit(t, name);
			}
	for (int c = 0; c < clients; c++)
		client_steps(s, c, [&](state &t, int me, const char *what) {
			snprintf(name, sizeof(name), "%d %s", me, what);
			settle(t);
			emit(t, name);
		});
}

static const char *
wrong(const state &s)
{
	if (failed != NULL)
		return failed;
	int inside = 0, slots = 0, readers = 0;
	for (int c = 0; c < clients; c++) {
		const client &o = s.c[c];
		for (int n = 0; n < nodes; n++)
			if (executable(s, c, n))
				return NULL;
		if (o.phase == INSIDE) {
			inside++;
			readers += is_s(c);
			slots |= is_n(c) ? 1 << o.slot : 0;
		} else if (o.phase == ASK) {
			bool moves = false;
			client_steps(s, c, [&](state &, int, const char *) { moves = true; });
			if (moves)
				return NULL;
		} else if (!(o.phase == DONE || (o.phase == ASLEEP && o.handoff == 0 && o.word == 0)))
			return NULL;
	}
	for (int c = 0; c < clients; c++) {
		const client &o = s.c[c];
		if (o.phase == DONE || o.phase == INSIDE)
			continue;
		if (is_n(c) ? count(slots & ((1 << uses[c]) - 1)) < uses[c] : inside == 0)
			return "awake";
		if (is_s(c) && readers > 0 && o.phase == ASLEEP) {
			const node &k = s.n[o.place - 1];
			bool behind = false;
			for (int x = 0; x < clients; x++)
				behind = behind ||
				    (is_x(x) && s.c[x].phase == ASLEEP && (k.noted >> x & 1) &&
					k.ticket[x] < k.ticket[c]);
			if (!behind)
				return "awake";
		}
	}
	return NULL;
}

static void
show(const state &s)
{
	for (int n = 0; n < nodes; n++) {
		for (int i = 0; i < locks; i++)
			printf(" %d%s%s", s.n[n].l[i].key,
			    s.n[n].l[i].gone == s.n[n].l[i].key && s.n[n].l[i].key ? "g" : "",
			    s.n[n].l[i].wake ? "w" : "");
		printf("/h%x/n%x ", s.n[n].l[0].holds, s.n[n].noted);
	}
	for (int c = 0; c < clients; c++)
		printf(" %c", "SALEJzlPID"[s.c[c].phase]);
}

int
main(int argc, char **argv)
{
	search how;
	if (!read_line("waiting", argc, argv, how))
		return 64;
	for (const char *p = argv[1]; *p != '\0'; p++) {
		if (*p >= '0' && *p <= '9') {
			uses[clients - 1] = *p - '0';
			continue;
		}
		if (clients == MOST)
			return 64;
		starts_inside[clients] = *p < 'a';
		mode[clients] = *p | 0x20;
		uses[clients++] = locks;
	}
	std::vector<state> initial;
	state s;
	memset(&s, 0, sizeof(s));
	int slot = 0, first_s = -1;
	for (int c = 0; c < clients; c++) {
		if (!starts_inside[c])
			continue;
		s.c[c].phase = INSIDE;
		s.c[c].slot = is_n(c) ? slot++ : 0;
		if (is_s(c) && first_s >= 0)
			s.c[c].group = 1 + TRIES * first_s;
		for (int n = 0; n < nodes; n++) {
			if (askew && n == (s.c[c].slot + 2) % 3)
				continue;
			lock &l = s.n[n].l[s.c[c].slot];
			if (is_s(c) && first_s >= 0)
				add_hold(l, c);
			else
				l.key = 1 + TRIES * c;
		}
		if (is_s(c) && first_s < 0)
			first_s = c;
	}
	settle(s);
	initial.push_back(s);
	return explore(
	    initial, [](const state &x, auto e) { successors(x, e); }, wrong, show, how);
}
