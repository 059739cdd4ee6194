/* SPDX-License-Identifier: MIT */
/*
 * A lock on three nodes that its holder has entered again: an outer hold, an inner one, and another client, which gets the
 * lock by a handoff or when it is free.
 *
 *   enter()        renew.lua for TOKEN.x: a further hold enters and is renewed by the same request
 *   renew()        renew.lua for TOKEN
 *   heal()         heal.lua for either hold, with the other holds that a majority reported
 *   ROUND, ANSWER, HEAL
 *                  redis_heal(): a node that lacks the lock is healed after a separate round, which returns the holds
 *   release()      release.lua: which hold is the last one
 *   acquire()      acquire.lua: if KEY is absent, or is the handoff token and released on this node, too
 *   outer, inner   src/redis/renew.c (redis_reenter(), redis_renew()), src/redis/release.c
 *
 * Properties:
 *   exclusion      the other client never has the lock while one of the holds is inside
 *   freed          after both holds have ended and all requests were executed, no majority still has KEY for them; and after
 *                  the other client has released it, none has KEY for that client.  (On one node KEY may be left until
 *                  its lease ends: if the release of the inner hold comes before a heal, and its entering after that.)
 *
 * Reductions:
 * - No time: leases that are in use do not end.  A released lock that is kept for a handoff window or for --min-hold may
 *   end at any time.
 * - A reply arrives when its request is executed, or is useless; requests are executed in any order, at any later time or
 *   never, and with DOUBLED releases any number of times (sent again because a connection broke).
 * - The request that enters also renews the inner hold, so it may be on its way at any time from the first one on, even
 *   when the hold has ended.  The same applies to a renewal of the outer hold, until the node has executed its release:
 *   after that it changes nothing.
 * - The outer hold has the lock on the nodes 0 and 1; node 2 has it, too, or never received the request and is healed.
 * - "gone" is remembered for good, not until the next release: a heal that comes later than that is refused by its
 *   deadline (quorum.pml).
 * - A hold that heals may begin a round at any time; a round that follows no loss changes nothing.
 * - RESTART is a node: it is killed once and restarts empty, with the guard, from which heals are exempt.  Its earlier
 *   replies to a holder end with the connection, and so do heals on their way, which are sent once only.  "freed" is not
 *   checked then, because a node that restarts forgets which tokens are gone.
 * - One inner hold, or with SECOND two, each of which enters once.  The second one heals no node itself, and with
 *   NO_HEALING nobody does.  A waiter always gets the lock by a handoff.
 */
#define N 3
#define T 1 /* the token */
#define W 2 /* the token of the other client */

/* which hold heals a node: the outer one (h 0) or the inner one (1) */
#define HEALERS 6
#define AT(h, n) ((h) * N + (n))

/* a hold, on a node */
#define UNKNOWN 0
#define HELD 1
#define ENDED 2

/* holds in a heal */
#define OUTER 1
#define INNER 2
#define LATER 4

/* the state of a hold */
#define OUT 0
#define ENTERING 1
#define CONFIRMING 2
#define INSIDE 3
#define OVER 4

byte key[N];
bool gone[N]; /* T was released here */
byte outer_hold[N];
byte inner_hold[N];
#ifdef SECOND
byte second_hold[N];
bool second_release[N];
bool second_entered[N];
byte second;
#define SECOND_HELD(n) (second_hold[n] == HELD)
#define SECOND_KNOWN(n) (second_hold[n] != UNKNOWN)
#define SECOND_INSIDE (second == INSIDE)
#define SECOND_OVER (second == OUT || second == OVER)
#define SECOND_QUIET(n) (!second_release[n])
#define FORGET_SECOND(n) second_hold[n] = UNKNOWN
#else
#define SECOND_HELD(n) false
#define SECOND_KNOWN(n) false
#define SECOND_INSIDE false
#define SECOND_OVER true
#define SECOND_QUIET(n) true
#define FORGET_SECOND(n) skip
#endif

/* requests on their way */
bool outer_release[N];
bool inner_release[N];
byte healing[HEALERS]; /* the holds that it knows, its own included: bits of those below */
bool asking[N];
bool last_release[N];

/* the round of a hold that heals */
bool renewed[HEALERS]; /* the nodes that confirmed it */
byte known[2];	       /* the other holds that one of these nodes reported */
bool lacks[HEALERS];   /* the nodes that replied that nobody holds KEY, */
bool due[HEALERS];     /* and those that did in an earlier round */

bool entered[N]; /* replies */
bool granted[N];
byte outer = INSIDE;
byte inner;
byte other;
bool handed; /* the handoff token was received */
bool restarted;

bool exclusion = true;
bool freed = true;

inline check_exclusion()
{
	exclusion = !(other == INSIDE && (outer == INSIDE || inner == INSIDE || SECOND_INSIDE));
	assert(exclusion)
}

#ifdef NO_GONE
#define OURS(n) (key[n] == T)
#else
#define OURS(n) (key[n] == T && !gone[n])
#endif
#if defined(RESTART) && !defined(GUARD_ADMITS)
#define ADMITS(n) (!(n == RESTART && restarted))
#else
#define ADMITS(n) true
#endif
#define SET(n) (outer_hold[n] != UNKNOWN || inner_hold[n] != UNKNOWN || SECOND_KNOWN(n))
#ifdef EXISTS_ONLY
#define ADDS_TOKEN(n) (!SET(n))
#else
#define ADDS_TOKEN(n) (outer_hold[n] == UNKNOWN && inner_hold[n] != HELD && !SECOND_HELD(n))
#endif

/* -- Nodes ------------------------------------------------------------------- */

inline enter(who, hold, reply, n)
{
	if
	:: OURS(n) && hold != ENDED ->
#ifdef COUNTS
		/* a number instead of a set: outer_hold is how many */
		outer_hold[n] = (outer_hold[n] == 0 -> 2 : (outer_hold[n] < 3 -> outer_hold[n] + 1 : 3));
#elif defined(KEY_SUFFICES)
		skip;
#else
#ifndef NO_TOKEN_ADDED
		outer_hold[n] = (ADDS_TOKEN(n) -> HELD : outer_hold[n]);
#endif
		hold = HELD;
#endif
		reply = ((who == ENTERING || who == CONFIRMING) && ADMITS(n))
	:: else
	fi
}

inline renew(n)
{
	if
	:: OURS(n) && SET(n) && outer_hold[n] == UNKNOWN ->
#ifndef COUNTS
		outer_hold[n] = HELD
#endif
	:: else
	fi
}

inline heal(h, n)
{
	if
	:: key[n] == 0 && !gone[n] && (h == 0 -> outer_hold[n] : inner_hold[n]) != ENDED ->
		key[n] = T;
		if
		:: healing[AT(h, n)] != OUTER ->
			outer_hold[n] = (healing[AT(h, n)] & OUTER && outer_hold[n] != ENDED -> HELD : outer_hold[n]);
#ifdef SECOND
			second_hold[n] = (healing[AT(h, n)] & LATER && second_hold[n] != ENDED -> HELD : second_hold[n]);
#endif
			inner_hold[n] = (healing[AT(h, n)] & INNER && inner_hold[n] != ENDED -> HELD : inner_hold[n])
		:: else
		fi
	:: else
	fi;
	healing[AT(h, n)] = 0
}

/* KEY is kept for the window or the minimum, or deleted. */
inline finish(n)
{
	gone[n] = true;
	handed = true
}

inline release_outer(n)
{
	if
#ifdef COUNTS
	:: key[n] == T && !gone[n] && outer_hold[n] > 1 -> outer_hold[n]--
	:: key[n] == T && !gone[n] && outer_hold[n] <= 1 -> outer_hold[n] = 0; finish(n)
#else
	:: key[n] == T && !gone[n] && !SET(n) -> finish(n)
	:: key[n] == T && !gone[n] && SET(n) ->
#ifdef NO_ENDED
		outer_hold[n] = UNKNOWN;
#else
		outer_hold[n] = ENDED;
#endif
		if
		:: inner_hold[n] != HELD && !SECOND_HELD(n) -> finish(n)
		:: else
		fi
#endif
	:: key[n] != T -> gone[n] = true
	:: else
	fi
}

inline release_inner(hold, other_held, n)
{
	if
#ifdef COUNTS
	:: key[n] == T && !gone[n] && outer_hold[n] > 1 -> outer_hold[n]--
	:: key[n] == T && !gone[n] && outer_hold[n] <= 1 -> outer_hold[n] = 0; finish(n)
#else
	:: key[n] == T && !gone[n] ->
		if
		:: hold == HELD && outer_hold[n] != HELD && !(other_held) -> finish(n)
		:: else
		fi;
#ifdef NO_ENDED
		hold = UNKNOWN
#else
		hold = ENDED
#endif
#endif
	:: else
	fi
}

inline acquire(n)
{
#ifndef STALE_HOLDS
	outer_hold[n] = UNKNOWN;
	inner_hold[n] = UNKNOWN;
	FORGET_SECOND(n);
#endif
	key[n] = W;
	granted[n] = true
}

/* The other client: its token is the only hold, if the set belongs to it. */
inline release_other(n)
{
	if
	:: key[n] == W && !SET(n) -> key[n] = 0
	:: else
	fi;
	freed = (key[n] != W);
	assert(freed)
}

/* The restart guard. */
#ifdef RESTART
#define FREE(n) (key[n] == 0 && !(n == RESTART && restarted))
#else
#define FREE(n) (key[n] == 0)
#endif

/* If KEY is the handoff token and was not released here, the request is repeated until it was. */
#ifdef NO_GONE_HANDOFF
#define MAY_TAKE(n) (FREE(n) || (handed && key[n] == T))
#else
#define MAY_TAKE(n) (FREE(n) || (handed && key[n] == T && gone[n]))
#endif

#ifdef DOUBLED
#define TWICE(n) \
	:: d_step { outer_release[n] -> release_outer(n) } \
	:: d_step { inner_release[n] -> release_inner(inner_hold[n], SECOND_HELD(n), n) }
#else
#define TWICE(n)
#endif

#ifdef SECOND
#define SECOND_CARRY(n) \
	:: d_step { second != OUT -> enter(second, second_hold[n], second_entered[n], n) } \
	:: d_step { second_release[n] -> second_release[n] = false; release_inner(second_hold[n], inner_hold[n] == HELD, n) }
#else
#define SECOND_CARRY(n)
#endif

#define CARRY(n) \
	:: d_step { OURS(n) && SET(n) && outer_hold[n] == UNKNOWN && (outer == INSIDE || outer_release[n]) -> renew(n) } \
	:: d_step { inner != OUT -> enter(inner, inner_hold[n], entered[n], n) } \
	SECOND_CARRY(n) \
	:: d_step { outer_release[n] -> outer_release[n] = false; release_outer(n) } \
	:: d_step { inner_release[n] -> inner_release[n] = false; release_inner(inner_hold[n], SECOND_HELD(n), n) } \
	:: d_step { asking[n] && MAY_TAKE(n) -> asking[n] = false; acquire(n) } \
	:: d_step { last_release[n] -> last_release[n] = false; release_other(n) } \
	:: d_step { key[n] == T && gone[n] -> key[n] = 0 } /* the window, or the minimum, is over */ \
	TWICE(n)

#define QUIET(n) (healing[n] == 0 && healing[AT(1, n)] == 0 && !outer_release[n] && !inner_release[n] && SECOND_QUIET(n))
#define LEFT(n) (key[n] == T && !gone[n] && QUIET(n))

#define FORGET_LOSS(h) lacks[AT(h, RESTART)] = false; due[AT(h, RESTART)] = false; healing[AT(h, RESTART)] = 0

active proctype network()
{
	if
	:: d_step { key[0] = T; key[1] = T; key[2] = T }
	:: d_step { key[0] = T; key[1] = T }
	fi;
end:	do
	CARRY(0)
	CARRY(1)
	CARRY(2)
	:: d_step { healing[AT(0, 2)] != 0 -> heal(0, 2) }
	:: d_step { healing[AT(1, 2)] != 0 -> heal(1, 2) }
#ifdef RESTART
#if RESTART != 2
	:: d_step { healing[RESTART] != 0 -> heal(0, RESTART) }
	:: d_step { healing[AT(1, RESTART)] != 0 -> heal(1, RESTART) }
#endif
	:: d_step {
		!restarted ->
		restarted = true;
#ifndef STALE_HEAL
		FORGET_LOSS(0);
		FORGET_LOSS(1);
#endif
		key[RESTART] = 0;
		gone[RESTART] = false;
		outer_hold[RESTART] = UNKNOWN;
		inner_hold[RESTART] = UNKNOWN;
		FORGET_SECOND(RESTART)
	   }
#endif
	:: d_step {
		!restarted && outer == OVER && inner == OVER && SECOND_OVER && LEFT(0) + LEFT(1) + LEFT(2) >= 2 ->
		freed = false;
		assert(freed)
	   }
	od
}

/* -- Clients ------------------------------------------------------------------ */

#define SEND(what) what[0] = true; what[1] = true; what[2] = true

#ifdef HEAL_SENDS_NOTHING
#define HOLDS_SENT(h) 0
#else
#define HOLDS_SENT(h) known[h]
#endif

#define REPORTS(n, hold, bit) (hold[n] == HELD -> bit : 0)
#ifdef SECOND
#define REPORTS_SECOND(n) REPORTS(n, second_hold, LATER)
#else
#define REPORTS_SECOND(n) 0
#endif

#define FORGET(what) what[0] = false; what[1] = false; what[2] = false
#define FORGET_ALL(h, what) what[AT(h, 0)] = false; what[AT(h, 1)] = false; what[AT(h, 2)] = false
#define CONFIRMED(h) (renewed[AT(h, 0)] + renewed[AT(h, 1)] + renewed[AT(h, 2)] >= 2)

/* A reply of node n to the round, or to the renewal before it. */
#define ANSWER(n) \
	:: d_step { \
		outer == INSIDE && OURS(n) && !renewed[n] -> \
		renewed[n] = true; \
		known[0] = known[0] | REPORTS(n, inner_hold, INNER) | REPORTS_SECOND(n) \
	   } \
	:: d_step { \
		inner == INSIDE && OURS(n) && inner_hold[n] != ENDED && !renewed[AT(1, n)] -> \
		enter(inner, inner_hold[n], entered[n], n); \
		renewed[AT(1, n)] = true; \
		known[1] = known[1] | REPORTS(n, outer_hold, OUTER) | REPORTS_SECOND(n) \
	   }

#ifdef HEAL_AT_ONCE
#define DUE(h, n) lacks[AT(h, n)]
#else
#define DUE(h, n) due[AT(h, n)]
#endif

#define HEAL(h, who, n) \
	:: d_step { who == INSIDE && key[n] == 0 && !lacks[AT(h, n)] -> lacks[AT(h, n)] = true } \
	:: d_step { \
		who == INSIDE && DUE(h, n) && CONFIRMED(h) && healing[AT(h, n)] == 0 -> \
		healing[AT(h, n)] = OUTER + h | HOLDS_SENT(h); \
		due[AT(h, n)] = false; \
		lacks[AT(h, n)] = false \
	   }

#define ROUND(h, who) \
	:: d_step { \
		who == INSIDE && (lacks[AT(h, 0)] || lacks[AT(h, 1)] || lacks[AT(h, 2)]) -> \
		due[AT(h, 0)] = due[AT(h, 0)] || lacks[AT(h, 0)]; \
		due[AT(h, 1)] = due[AT(h, 1)] || lacks[AT(h, 1)]; \
		due[AT(h, 2)] = due[AT(h, 2)] || lacks[AT(h, 2)]; \
		FORGET_ALL(h, lacks); \
		FORGET_ALL(h, renewed); \
		known[h] = 0 \
	   }

#define END_ROUNDS(h) FORGET_ALL(h, due); FORGET_ALL(h, lacks); FORGET_ALL(h, renewed); known[h] = 0

#ifdef ENTERS_ONCE
#define ENTERED INSIDE
#else
#define ENTERED CONFIRMING
#endif

/* The life of a further hold.  In the end it is done, lost, or never entered: then it is rolled back like an attempt. */
#define FURTHER(who, may_enter, replies, ending, end_rounds) \
	:: d_step { who == OUT && (may_enter) -> who = ENTERING } \
	:: d_step { \
		who == ENTERING && replies[0] + replies[1] + replies[2] >= 2 -> \
		who = ENTERED; \
		FORGET(replies); \
		check_exclusion() \
	   } \
	:: d_step { \
		who == CONFIRMING && replies[0] + replies[1] + replies[2] >= 2 -> \
		who = INSIDE; \
		FORGET(replies); \
		check_exclusion() \
	   } \
	:: d_step { \
		who == ENTERING || who == CONFIRMING || who == INSIDE -> \
		who = OVER; \
		end_rounds; \
		FORGET(replies); \
		SEND(ending) \
	   }

active proctype holds()
{
endless: key[0] == T;
end:	do
#ifndef NO_HEALING
	ROUND(0, outer)
	ROUND(1, inner)
	ANSWER(0)
	ANSWER(1)
	ANSWER(2)
	HEAL(0, outer, 2)
	HEAL(1, inner, 2)
#if defined(RESTART) && RESTART != 2
	HEAL(0, outer, RESTART)
	HEAL(1, inner, RESTART)
#endif
#endif
	:: d_step { outer == INSIDE -> outer = OVER; END_ROUNDS(0); SEND(outer_release) }
	FURTHER(inner, outer == INSIDE, entered, inner_release, END_ROUNDS(1))
#ifdef SECOND
	FURTHER(second, outer == INSIDE || inner == INSIDE, second_entered, second_release, skip)
#endif
	od
}

active proctype another()
{
endless: key[0] == T;
end:	do
	:: d_step { other == OUT -> other = ENTERING; SEND(asking) }
	:: d_step {
		other == ENTERING && granted[0] + granted[1] + granted[2] >= 2 ->
		other = INSIDE;
		check_exclusion()
	   }
	:: d_step { other == INSIDE -> other = OVER; SEND(last_release) }
	od
}
