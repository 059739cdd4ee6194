/* SPDX-License-Identifier: MIT */
/*
 * Fencing tokens over three nodes.
 *
 *   grant()        acquire.lua: fence = max(stored + 1, candidate), candidate within the bounds of the node's clock
 *   raise()        fence.lua: the second round, recorded only if KEY still has the token of the client
 *   decide()       settle_fence(), attempt_raised() of src/lock/attempt.c
 *   clock          a lease may end at any moment, also early: the wall clock of a server may jump
 *
 * Property (fence_order): if a client has the lock on a majority of the nodes when its fence is given out, this fence is
 * greater than every fence that was given out before.  A resource that refuses smaller fences relies on this.
 *
 * Reductions:
 * - No time: a lease ends at any moment, which includes releases, undos and clocks that jump.  There is no validity
 *   either; it would only prevent that some fences are given out.
 * - A reply arrives when its request is executed, or never.  A client uses replies only when it decides, and may decide
 *   at any later time, so a late reply is the same as a slow client.
 * - A candidate is 0 or CLOCK: clocks that are behind, and clocks that are ahead.
 * - Once the fence is chosen, only the nodes that have it matter, not the fences of the others.
 * - Clients are equal: they begin in the order of their numbers.
 *
 * Rules that can be left out: see the file "rules".
 */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#define N 3
#define MAJORITY 2
#define CLOCK 3

#define ACQUIRE 1
#define RAISE 2

#define AT(c, n) ((c) * N + (n))

byte key[N];		    /* 0, or 1 + the client that has it */
byte fence[N];		    /* as the hash has it */
byte request[CLIENTS * N];  /* on its way to the node */
byte got[CLIENTS * N];	    /* the fence with which the node granted, as far as the client knows */
byte recorded[CLIENTS * N]; /* the node has confirmed the fence to be raised */
byte started;
byte given; /* the greatest fence given out so far */
bool fence_order = true;

inline grant(n, received)
{
	d_step {
		request[AT(c, n)] = 0;
		if
		:: key[n] == 0 ->
			key[n] = c + 1;
			fence[n] = fence[n] + 1;
			if
			:: candidate > fence[n] -> fence[n] = candidate
			:: else
			fi;
			if
			:: received && mine == 0 -> got[AT(c, n)] = fence[n]
#ifdef LATE_GREATER
			:: received && mine > 0 && fence[n] >= mine -> recorded[AT(c, n)] = 1
#else
			:: received && mine > 0 && fence[n] == mine -> recorded[AT(c, n)] = 1
#endif
			:: else
			fi
		:: else
		fi
	}
}

inline raise(n, received)
{
	d_step {
		request[AT(c, n)] = 0;
		if
#ifdef NO_RAISE_CHECK
		:: true ->
#else
		:: key[n] == c + 1 ->
#endif
			if
			:: fence[n] < mine -> fence[n] = mine
			:: else
			fi;
			if
			:: received -> recorded[AT(c, n)] = 1
			:: else
			fi
#ifndef NO_RAISE_CHECK
		:: else
#endif
		fi
	}
}

#define YES(n) (got[AT(c, n)] != 0)
#define HOLDS(n) (key[n] == c + 1 && HAS(n))
#define GRANTS (YES(0) + YES(1) + YES(2))
#define HAS(n) (recorded[AT(c, n)])
#define BIGGER(n) (got[AT(c, n)] > mine)

inline give_out()
{
	d_step {
		fence_order = !(HOLDS(0) + HOLDS(1) + HOLDS(2) >= MAJORITY && mine <= given);
		assert(fence_order);
		if
		:: mine > given -> given = mine
		:: else
		fi
	}
}

/* The largest fence counts; the nodes that granted with a smaller one are to record it. */
inline choose()
{
	d_step {
		mine = got[AT(c, 0)];
#ifndef NO_LARGEST
		if
		:: BIGGER(1) -> mine = got[AT(c, 1)]
		:: else
		fi;
		if
		:: BIGGER(2) -> mine = got[AT(c, 2)]
		:: else
		fi;
#else
		if
		:: mine == 0 -> mine = got[AT(c, 1)]
		:: else
		fi;
#endif
		i = 0;
		do
		:: i < N && got[AT(c, i)] != 0 ->
			if
			:: got[AT(c, i)] != mine -> request[AT(c, i)] = RAISE
			:: else -> recorded[AT(c, i)] = 1
			fi;
			got[AT(c, i)] = 0;
			i++
		:: i < N && got[AT(c, i)] == 0 -> i++
		:: i == N -> break
		od;
		i = 0
	}
}

#define ASKED(n, what) (request[AT(c, n)] == what)

proctype client(byte c)
{
	byte mine = 0, candidate = 0, i = 0;

	atomic {
		started == c;
		started++;
		if
		:: true
		:: candidate = CLOCK
		fi;
		request[AT(c, 0)] = ACQUIRE;
		request[AT(c, 1)] = ACQUIRE;
		request[AT(c, 2)] = ACQUIRE
	}
	do
	:: atomic {
		ASKED(0, ACQUIRE) ->
		if
		:: grant(0, true)
		:: grant(0, false)
		fi
	   }
	:: atomic {
		ASKED(1, ACQUIRE) ->
		if
		:: grant(1, true)
		:: grant(1, false)
		fi
	   }
	:: atomic {
		ASKED(2, ACQUIRE) ->
		if
		:: grant(2, true)
		:: grant(2, false)
		fi
	   }
	:: atomic {
		ASKED(0, RAISE) ->
		if
		:: raise(0, true)
		:: raise(0, false)
		fi
	   }
	:: atomic {
		ASKED(1, RAISE) ->
		if
		:: raise(1, true)
		:: raise(1, false)
		fi
	   }
	:: atomic {
		ASKED(2, RAISE) ->
		if
		:: raise(2, true)
		:: raise(2, false)
		fi
	   }
	:: atomic { mine == 0 && GRANTS >= MAJORITY -> choose() }
#ifdef NO_RAISE
	:: atomic { mine > 0 -> give_out(); break }
#else
	:: atomic { mine > 0 && HAS(0) + HAS(1) + HAS(2) >= MAJORITY -> give_out(); break }
#endif
	:: break /* the client stops here; its requests may still be executed, as those of a client that continues */
	od;
	skip;
	d_step {
		mine = 0;
		candidate = 0;
		i = 0;
		do
		:: i < N ->
			got[AT(c, i)] = 0;
			recorded[AT(c, i)] = 0;
			request[AT(c, i)] = 0;
			i++
		:: i == N -> break
		od;
		i = 0
	}
}

inline expire(n)
{
	key[n] = 0;
#ifdef NO_HASH_LIFE
	fence[n] = 0
#endif
}

/* The end of leases. */
active proctype clock()
{
end:	do
	:: d_step { key[0] != 0 -> expire(0) }
	:: d_step { key[1] != 0 -> expire(1) }
	:: d_step { key[2] != 0 -> expire(2) }
	od
}

init
{
	byte i = 0;

	atomic {
		do
		:: i < CLIENTS -> run client(i); i++
		:: i == CLIENTS -> break
		od;
		i = 0
	}
}
