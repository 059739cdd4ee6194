/* SPDX-License-Identifier: MIT */
/*
 * One lock on three nodes: acquire, renew, heal, undo, release, restart guard, with time.
 *
 *   do_acquire()   acquire.lua without handoff and fences (queue.pml and fence.pml have these)
 *   do_undo()      undo.lua
 *   do_renew()     renew.lua without further holds (holds.pml has these)
 *   do_heal()      heal.lua
 *   do_release()   release.lua without waiters
 *   client         attempt.c and lease.c of src/lock; acquire.c, renew.c and release.c of src/redis
 *   network        a process for each token: executes requests in any order, late or never
 *   environment    the clock, leases that end a little early, one node that is killed and restarts empty
 *
 * Properties:
 *   exclusion      two clients never rely on the lock at the same time
 *   no_leftover       a node never gives KEY to a token whose release it executed, and a failed attempt is rolled back
 *   no_revival     a heal never succeeds after the end of the validity that it was sent for
 *
 * Time is discrete and relative: the state contains only remaining ticks, so that runs have no bound.  A lease is TTL
 * ticks, validity is VALID; the difference is the drift: a node may end a lease a tick early.
 *
 * Reductions:
 * - A script is one step, as in Redis.
 * - A reply arrives when its request is executed.  A client uses replies only when it decides, and may decide at any
 *   later time, so a late reply is the same as a slow client.  It may treat any round as failed, whatever the replies,
 *   so a lost reply is the same as a useless one.
 * - Node 0 or node 2 restarts: the nodes 0 and 1 are alike.
 * - "Another token holds it" is not recorded: it only prevents steps of the client.
 * - The requests on their way to a node are a set: any order, which is more than connections do; but an undo stays
 *   behind its own acquire request, since it is sent on the same connection.
 * - Node 2 is slow: it may execute requests arbitrarily late, or never.  The nodes 0 and 1 execute an acquire request, a
 *   renewal or a heal before the next step of the client, or never; undos and releases, after which no client waits,
 *   may be late everywhere.
 * - Timeouts happen at any time, so that a client may give up, retry or crash at any time.  A client that crashed takes
 *   no further step: its command dies at the end of its validity.
 * - Renewals begin at any time.  This includes the first one soon after a grant by fewer than all nodes.
 * - Two clients, TRIES attempts each, the first client begins; UNEVEN: TRIES and one, in any order.  A second attempt
 *   can meet requests of the first.  ONE_RENEWS: client 0 renews and heals, client 1 contends.
 */
#define N 3
#define CLIENTS 2
#ifndef TRIES
#define TRIES 2
#endif
#define MAJORITY 2
#ifndef TTL
#define TTL 3
#endif

#ifdef NO_DRIFT
#define VALID TTL
#else
#define VALID (TTL - 1)
#endif

/* requests on their way */
#define ACQUIRE 1
#define UNDO 2
#define RENEW 4
#define RELEASE 8

/* the reply of a node */
#define NOTHING 0
#define YES 1
#define NOBODY 2

/* the state of a client */
#define IDLE 0
#define ASKING 1
#define HOLDING 2
#define RENEWING 3

byte key[N];   /* 0, or 1 + token */
byte left[N];  /* ticks */
byte gone[N];  /* 0, or 1 + token */
byte guard[N]; /* ticks until it grants again */
byte way[CLIENTS * TRIES * N];	/* the requests on their way, for each token and node */
byte heal[CLIENTS * TRIES * N]; /* 0, or a heal is on its way; ticks to its deadline */
byte reply[CLIENTS * N];
byte phase[CLIENTS];
byte try[CLIENTS];   /* the current attempt */
byte valid[CLIENTS]; /* ticks */
byte round[CLIENTS];  /* the validity that the current renewal will give */
bool failed[CLIENTS * TRIES]; /* the attempt has failed and must leave nothing */
bool restarted;

bool exclusion = true;
bool no_leftover = true;
bool no_revival = true;

#ifdef SAME_TOKEN
#define TOKEN(t) ((t) - (t) % TRIES + 1)
#else
#define TOKEN(t) ((t) + 1)
#endif
#define AT(t, n) ((t) * N + (n))
#define MINE(c) ((c) * TRIES + try[c])
#define CURRENT(t) (try[(t) / TRIES] == (t) % TRIES)
#define INSIDE(c) ((phase[c] == HOLDING || phase[c] == RENEWING) && valid[c] > 0)
#define COUNT(c, what) ((reply[AT(c, 0)] == what) + (reply[AT(c, 1)] == what) + (reply[AT(c, 2)] == what))
#define ON_WAY(t, n, what) ((way[AT(t, n)] & (what)) != 0)

inline check_exclusion()
{
	exclusion = !(INSIDE(0) && INSIDE(1));
	assert(exclusion)
}

#ifdef NO_GUARD
#define GUARD 0
#else
#define GUARD TTL
#endif

/* The last token whose release the node executed.  The node itself records it in gone[]. */
#ifdef NO_GONE_ABSENT
byte seen[N];
#define SEEN(n) seen[n]
#define saw_release(t, n) seen[n] = TOKEN(t)
#define lost_memory(n) seen[n] = 0
#else
#define SEEN(n) gone[n]
#define saw_release(t, n) skip
#define lost_memory(n) skip
#endif

/* A heal after its deadline has no effect. */
#ifdef NO_HEAL_DEADLINE
#define LATE 1
#else
#define LATE 0
#endif

/* -- Nodes ------------------------------------------------------------------- */

inline receive(t, n, what, when)
{
	if
#ifdef STALE_REPLY
	:: phase[(t) / TRIES] == when && reply[AT((t) / TRIES, n)] == NOTHING -> reply[AT((t) / TRIES, n)] = what
#else
	:: phase[(t) / TRIES] == when && CURRENT(t) -> reply[AT((t) / TRIES, n)] = what
#endif
	:: else
	fi
}

inline do_acquire(t, n)
{
	if
#ifdef NO_GONE_ACQUIRE
	:: key[n] == 0 && guard[n] == 0 ->
#else
	:: key[n] == 0 && guard[n] == 0 && gone[n] != TOKEN(t) ->
#endif
		key[n] = TOKEN(t);
		left[n] = TTL;
		receive(t, n, YES, ASKING)
	:: else
	fi
}

inline do_undo(t, n)
{
	if
#ifdef UNDO_ANY
	:: true -> key[n] = 0; left[n] = 0
#else
	:: key[n] == TOKEN(t) -> key[n] = 0; left[n] = 0
	:: else
#endif
	fi
}

inline do_renew(t, n)
{
	if
	:: key[n] == TOKEN(t) && gone[n] != TOKEN(t) ->
		left[n] = TTL;
		receive(t, n, YES, RENEWING)
	:: key[n] == 0 -> receive(t, n, NOBODY, RENEWING)
	:: else
	fi
}

inline do_heal(t, n)
{
	if
#ifdef NO_HEAL_DEADLINE
	:: key[n] == 0 && gone[n] != TOKEN(t) ->
#elif defined(NO_GONE_HEAL)
	:: heal[AT(t, n)] > 0 && key[n] == 0 ->
#else
	:: heal[AT(t, n)] > 0 && key[n] == 0 && gone[n] != TOKEN(t) ->
#endif
		no_revival = (CURRENT(t) -> valid[(t) / TRIES] > 0 : true);
		key[n] = TOKEN(t);
		left[n] = TTL;
	:: else
	fi;
	heal[AT(t, n)] = 0;
	assert(no_revival)
}

inline do_release(t, n)
{
	if
#ifdef RELEASE_ANY
	:: true ->
#else
	:: key[n] == TOKEN(t) ->
#endif
		key[n] = 0;
		left[n] = 0;
		gone[n] = TOKEN(t)
#ifndef RELEASE_ANY
	:: key[n] != TOKEN(t) && key[n] != 0 -> gone[n] = TOKEN(t)
#ifdef NO_GONE_ABSENT
	:: key[n] == 0
#else
	:: key[n] == 0 -> gone[n] = TOKEN(t)
#endif
#endif
	fi;
	saw_release(t, n)
}

/* -- The network -------------------------------------------------------------- */

#define CARRY(n) \
	:: d_step { ON_WAY(t, n, ACQUIRE) -> way[AT(t, n)] = way[AT(t, n)] - ACQUIRE; do_acquire(t, n) } \
	:: d_step { way[AT(t, n)] == UNDO -> way[AT(t, n)] = 0; do_undo(t, n) } \
	:: d_step { ON_WAY(t, n, RENEW) -> way[AT(t, n)] = way[AT(t, n)] - RENEW; do_renew(t, n) } \
	:: d_step { ON_WAY(t, n, RELEASE) -> way[AT(t, n)] = way[AT(t, n)] - RELEASE; do_release(t, n) } \
	:: d_step { heal[AT(t, n)] != 0 -> do_heal(t, n) }

active [CLIENTS * TRIES] proctype network()
{
	byte t = _pid;

end:	do
	CARRY(0)
	CARRY(1)
	CARRY(2)
	od
}

/* -- Clients ------------------------------------------------------------------ */

#ifdef ONE_RENEWS
#define RENEWS(c) ((c) == 0)
#else
#define RENEWS(c) true
#endif

#if defined(ONE_RENEWS)
#define MAY_TRY(c) (try[c] < TRIES)
#elif defined(UNEVEN)
#define MAY_TRY(c) (try[c] < (c == 0 -> TRIES : 1))
#else
#define MAY_TRY(c) (try[c] < TRIES && (c == 0 || try[0] > 0 || phase[0] != IDLE))
#endif

inline send(what)
{
	way[AT(MINE(c), 0)] = way[AT(MINE(c), 0)] | what;
	way[AT(MINE(c), 1)] = way[AT(MINE(c), 1)] | what;
	way[AT(MINE(c), 2)] = way[AT(MINE(c), 2)] | what
}

/*
 * The round is over.  Requests that the nodes 0 and 1 have not executed are lost; node 2 may execute them at any time.
 */
inline forget()
{
	way[AT(MINE(c), 0)] = way[AT(MINE(c), 0)] & (UNDO | RELEASE);
	way[AT(MINE(c), 1)] = way[AT(MINE(c), 1)] & (UNDO | RELEASE);
	reply[AT(c, 0)] = NOTHING;
	reply[AT(c, 1)] = NOTHING;
	reply[AT(c, 2)] = NOTHING
}

/* Each node that may have granted the attempt, or may grant it yet, gets an undo. */
inline undo_at(n)
{
	if
#ifdef NO_UNDO_SILENT
	:: reply[AT(c, n)] == YES -> way[AT(MINE(c), n)] = way[AT(MINE(c), n)] | UNDO
#else
	:: reply[AT(c, n)] == YES || ON_WAY(MINE(c), n, ACQUIRE) ->
		way[AT(MINE(c), n)] = way[AT(MINE(c), n)] | UNDO
#endif
	:: else
	fi
}

inline heal_at(n)
{
	if
	:: reply[AT(c, n)] == NOBODY -> heal[AT(MINE(c), n)] = valid[c] + LATE
	:: else
	fi
}

inline next_try()
{
	forget();
	heal[AT(MINE(c), 0)] = 0;
	heal[AT(MINE(c), 1)] = 0;
	phase[c] = IDLE;
	valid[c] = 0;
	round[c] = 0;
	try[c]++
}

#ifdef NO_MAJORITY
#define ENOUGH 1
#else
#define ENOUGH MAJORITY
#endif

active [CLIENTS] proctype client()
{
	byte c = _pid - CLIENTS * TRIES;

end:	do
	:: d_step {
		phase[c] == IDLE && MAY_TRY(c) ->
		send(ACQUIRE);
		valid[c] = VALID;
		phase[c] = ASKING
	   }
	:: d_step {
		phase[c] == ASKING && COUNT(c, YES) >= ENOUGH && valid[c] > 0 ->
		forget();
#ifdef FROM_DECISION
		valid[c] = VALID;
#endif
		phase[c] = HOLDING;
		check_exclusion()
	   }
	:: d_step {
		phase[c] == ASKING ->
		undo_at(0);
		undo_at(1);
		undo_at(2);
		failed[MINE(c)] = true;
		next_try()
	   }
#ifndef NO_RENEWALS
	:: d_step {
		phase[c] == HOLDING && valid[c] > 0 && RENEWS(c) ->
		send(RENEW);
		heal[AT(MINE(c), 0)] = 0;
		heal[AT(MINE(c), 1)] = 0;
		round[c] = VALID;
		phase[c] = RENEWING
	   }
	:: d_step {
		phase[c] == RENEWING && COUNT(c, YES) >= ENOUGH && valid[c] > 0 && round[c] > 0 ->
#ifdef FROM_REPLY
		valid[c] = VALID;
#else
		valid[c] = (round[c] > valid[c] -> round[c] : valid[c]);
#endif
		heal_at(0);
		heal_at(1);
		heal_at(2);
		forget();
		round[c] = 0;
		phase[c] = HOLDING;
		check_exclusion()
	   }
	:: d_step {
		phase[c] == RENEWING && valid[c] > 0 -> /* no majority in time: the round has failed */
		forget();
		round[c] = 0;
		phase[c] = HOLDING
	   }
#endif
	:: d_step {
		phase[c] == HOLDING || phase[c] == RENEWING -> /* done, or lost */
		send(RELEASE);
#ifdef RELEASE_EARLY
		forget();
		round[c] = 0;
		phase[c] = HOLDING
#else
		next_try()
#endif
	   }
	od
}

/* -- Time, and a node that restarts empty ----------------------------------- */

#define LEFTOVER(t, n) (key[n] == TOKEN(t) && failed[t] && (way[AT(t, n)] & (ACQUIRE | UNDO)) == 0)
#ifdef SAME_TOKEN
#define LEFTOVERS(n) false
#elif TRIES == 1
#define LEFTOVERS(n) (LEFTOVER(0, n) || LEFTOVER(1, n))
#else
#define LEFTOVERS(n) (LEFTOVER(0, n) || LEFTOVER(1, n) || LEFTOVER(2, n) || LEFTOVER(3, n))
#endif
#define HAS_LEFTOVER(n) (LEFTOVERS(n) || (key[n] != 0 && key[n] == SEEN(n)))

inline age(x)
{
	if
	:: x > 0 -> x--
	:: else
	fi
}

inline age_node(n)
{
	age(guard[n]);
	if
	:: left[n] > 1 -> left[n]--
	:: else -> left[n] = 0; key[n] = 0
	fi
}

inline age_heals()
{
	i = 0;
	do
	:: i < CLIENTS * TRIES * N ->
		if
		:: heal[i] > LATE -> heal[i]--
		:: else
		fi;
		i++
	:: i == CLIENTS * TRIES * N -> break
	od;
	i = 0
}

/*
 * A heal is sent once, on the connection on which the node replied that nobody holds KEY.  A grant counts while its
 * connection stands.
 */
inline lost_connection(c, n)
{
	heal[AT(c * TRIES, n)] = 0;
	heal[AT(c * TRIES + TRIES - 1, n)] = 0;
	if
	:: reply[AT(c, n)] == NOBODY -> reply[AT(c, n)] = NOTHING
#ifndef STALE_GRANT
	:: phase[c] == ASKING && reply[AT(c, n)] == YES -> reply[AT(c, n)] = NOTHING
#endif
	:: else
	fi
}
#define lost_connections(n) lost_connection(0, n); lost_connection(1, n)

#define EARLY(n) d_step { left[n] == 1 && key[n] != 0 -> key[n] = 0; left[n] = 0 }
#define RESTART(n) \
	d_step { \
		!restarted -> \
		restarted = true; \
		key[n] = 0; \
		left[n] = 0; \
		gone[n] = 0; \
		guard[n] = GUARD; \
		lost_connections(n); \
		lost_memory(n) \
	}

active proctype environment()
{
	byte i = 0;

end:	do
	:: d_step {
		no_leftover = !(HAS_LEFTOVER(0) || HAS_LEFTOVER(1) || HAS_LEFTOVER(2));
		assert(no_leftover);
		age_node(0);
		age_node(1);
		age_node(2);
		age(valid[0]);
		age(valid[1]);
		age(round[0]);
		age(round[1]);
		age_heals()
	   }
	:: EARLY(0)
	:: EARLY(1)
	:: EARLY(2)
#ifndef NO_RESTART
	:: RESTART(0)
	:: RESTART(2)
#endif
	od
}
