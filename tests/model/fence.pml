/* SPDX-License-Identifier: MIT */
/*
 * Fencing tokens over three nodes.
 *
 *   grant()        acquire.lua: fence = max(stored + 1, candidate), candidate within the bounds of the node's clock
 *   raise()        fence.lua: the second round, recorded only where KEY still is ours
 *   decide()       settle_fence(), start_raising(), attempt_raised() of src/lock/attempt.c
 *   clock          a lease may end at any moment, early ones too: a server's wall clock may jump
 *
 * What must hold (fence_order): whoever has the lock on a majority of the nodes when its fence is given out has a greater
 * one than every fence that was given out before, to whomever.  That is what a resource needs that refuses smaller ones.
 *
 * Reductions:
 * - No time: a lease ends at any moment, which includes releases, undos and clocks that jump.  So there is no validity
 *   either; it only keeps some fences from being given out.
 * - A reply arrives when its request is carried out, or never.  Until it decides a client does nothing with what it
 *   knows, and it may decide as late as it likes; so a reply that is under way is the same as a client that is slow.
 * - A candidate is below everything, or CLOCK: clocks that are behind, and such that are ahead.
 * - Once the fence is chosen, only which nodes have it counts, not what the others have.
 * - Clients are alike: they set out in the order of their numbers.
 *
 * Rules that can be left out: see the table in README.md.
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
byte request[CLIENTS * N];  /* on its way */
byte got[CLIENTS * N];	    /* the fence with which the node granted, as far as the client knows */
byte recorded[CLIENTS * N]; /* the node has confirmed the fence to be raised */
byte started;
byte given; /* the greatest fence given out so far */
bool fence_order = true;

inline grant(n, heard)
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
			:: heard && mine == 0 -> got[AT(c, n)] = fence[n]
#ifdef LATE_GREATER
			:: heard && mine > 0 && fence[n] >= mine -> recorded[AT(c, n)] = 1
#else
			:: heard && mine > 0 && fence[n] == mine -> recorded[AT(c, n)] = 1
#endif
			:: else
			fi
		:: else
		fi
	}
}

inline raise(n, heard)
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
			:: heard -> recorded[AT(c, n)] = 1
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
	:: break /* enough is enough; what is on its way may still come, as it may from one that goes on */
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
