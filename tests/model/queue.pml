/* SPDX-License-Identifier: MIT */
/*
 * Waiting: a holder, WAITERS clients that wait for it and for each other, and the handoff token of a release.
 *
 *   do_acquire()   acquire.lua: grant, replace the handoff token, add the entry of the waiter
 *   do_undo()      undo.lua
 *   do_release()   release.lua: record gone, hand over, or delete
 *   push()         RPUSH on the wake list, with the queue of clients that are blocked in BLPOP
 *   LEAVE, PASS    leave.lua and pass.lua, sent by src/redis/waitqueue.c
 *   client         redis_acquire() of src/redis/acquire.c, src/lock/attempt.c with ATTEMPT_AGAIN
 *
 * Properties:
 *   exclusion      never two holders
 *   awake          no waiter sleeps while the lock is free: if no request is on its way, no client is inside and none is
 *                  about to make an attempt, no waiter is asleep.  After a fault (a client that died, a lease that ended,
 *                  a server without memory) the timers of the waiters ensure that, which may fire at any time; without
 *                  a fault the queue alone must ensure it.
 *
 * Reductions:
 * - No time: a lease or a window may end at any time, except that of a client that is inside: src/run ends its command
 *   before.  An attempt whose lease ended meanwhile counts as too slow.  quorum.pml has time.
 * - A reply arrives when its request is executed; requests are executed at any later time and in any order, but an undo
 *   stays behind its own acquire request.
 * - Each client has two tokens and uses one that is stored nowhere any more as a fresh one; the "gone" of a token of
 *   which nothing else is left makes no difference and is forgotten.  So there is no bound on attempts.
 * - A request is repeated (ATTEMPT_AGAIN) only if the reply would be a different one.
 * - In the initial state the first holder is inside, with its token on all nodes.  Later initial states, which could be
 *   reached from there: with QUEUED all clients were refused by all nodes and are about to block at the first one; with
 *   FREE the first holder has released the lock.  With LASTING no lease ends, no timer fires, and no connection breaks:
 *   a release, too, stays behind the acquire request.
 */
#ifndef N
#define N 1
#endif
#ifndef WAITERS
#define WAITERS 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define MAJORITY (N / 2 + 1)
#define FIRST (2 * WAITERS + 1) /* the token of the first holder */
#define TOKENS (FIRST + 1)

/* requests on their way */
#define ACQUIRE 1
#define UNDO 2
#define RELEASE 4
#define AGAIN 8 /* the release, sent again */

/* replies: 0, the token of a holder, or */
#define YES 100
#define EARLY 101

/* the state of a client */
#define START 0
#define ASK 1
#define JOIN 2
#define ASLEEP 3
#define PASS 4
#define LEAVE 5
#define INSIDE 6
#define DONE 7
#define STUCK 8 /* the repeated request gets the same reply */

#ifdef FREE
byte key[N];
byte gone[N] = FIRST;
bool first_inside;
#else
byte key[N] = FIRST;
byte gone[N];
bool first_inside = true;
#endif
#ifdef QUEUED
byte noted[N] = (1 << WAITERS) - 1;
byte place[WAITERS] = 1; /* 0, or 1 + the node where it is or was blocked */
byte phase[WAITERS] = JOIN;
#else
byte noted[N];
byte place[WAITERS];
byte phase[WAITERS];
#endif
byte wake[N];
chan blocked[N] = [WAITERS] of { byte };

byte way[TOKENS * N];
byte reply[WAITERS * N];
byte token[WAITERS];
byte handoff[WAITERS]; /* received by the client */
/* the handoff token in the acquire requests with this token, and in their releases */
byte with[TOKENS];
bool slow[WAITERS];
byte faults = FAULTS; /* remaining faults */
bool excuse;
bool resent;

bool exclusion = true;
bool awake = true;
bool freed = true; /* after a release KEY is reserved for the next waiter only */

#define AT(a, n) ((a) * N + (n))
#define OWNER(t) (((t) - 1) / 2)
#define WAY(t, n, what) ((way[AT(t, n)] & (what)) != 0)

#if N == 1
#define SUM(x) (x(0))
#define ANY(x) (x(0))
#define EACH(x) x(0)
#else
#define SUM(x) (x(0) + x(1) + x(2))
#define ANY(x) (x(0) || x(1) || x(2))
#define EACH(x) x(0); x(1); x(2)
#endif

/* -- Nodes ------------------------------------------------------------------- */

inline push(n, t)
{
	if
	:: blocked[n]?[w] -> blocked[n]?w; handoff[w] = t; w = 0
	:: else -> wake[n] = t
	fi
}

inline answer(n, what)
{
	if
	:: token[c] == t && phase[c] == ASK -> reply[AT(c, n)] = what
	:: else
	fi
}

#define BRINGS(n) WAY(x, n, ACQUIRE | RELEASE | AGAIN)
/* Forget a handoff token that is in no request with token x, now or later. */
inline tidy(x)
{
	if
	:: x == 0 || ANY(BRINGS) || token[c] == x
	:: else -> with[x] = 0
	fi
}

/* t is a token of client c. */
inline do_acquire(n)
{
	d_step {
	way[AT(t, n)] = way[AT(t, n)] - ACQUIRE;
	b = with[t];
#ifdef TAKES_HANDOFF
	if
	:: wake[n] != 0 -> b = wake[n]
	:: else
	fi;
#endif
	if
	:: key[n] == 0 && gone[n] != t ->
		key[n] = t;
		noted[n] = noted[n] & ~(1 << c);
		answer(n, YES)
	:: key[n] != 0 && b == key[n] && gone[n] == b ->
		key[n] = t;
		noted[n] = noted[n] & ~(1 << c);
		if
		:: wake[n] == b -> wake[n] = 0
		:: else
		fi;
		answer(n, YES)
	:: else ->
		noted[n] = noted[n] | (1 << c);
		if
#ifndef NO_AGAIN
		:: key[n] != 0 && key[n] == b && gone[n] != b -> answer(n, EARLY)
#endif
		:: else -> answer(n, key[n])
		fi
	fi;
	tidy(t);
	b = 0
	}
}

inline do_undo(n)
{
	d_step {
	way[AT(t, n)] = way[AT(t, n)] - UNDO;
	if
	:: key[n] == t -> key[n] = 0
	:: else
	fi
	}
}

/* no_memory: the server has no free memory. */
inline do_release(n, which, no_memory)
{
	way[AT(t, n)] = way[AT(t, n)] - which;
	if /* the released token is left here, since its release came late */
	:: key[n] != 0 && key[n] == with[t] && gone[n] == key[n] && !no_memory -> key[n] = t
	:: else
	fi;
	if
	:: key[n] == t && gone[n] == t /* released before, and being handed over */
#ifdef NO_FALLBACK
	:: key[n] == t && gone[n] != t && no_memory -> freed = false; assert(freed)
#else
	:: key[n] == t && gone[n] != t && no_memory -> key[n] = 0
#endif
	:: key[n] == t && gone[n] != t && !no_memory ->
		gone[n] = t;
		if
		:: noted[n] != 0 -> wake[n] = 0; push(n, t)
		:: else -> key[n] = 0
		fi
#ifdef GONE_ALWAYS
	:: key[n] != t -> gone[n] = t
#else
	:: key[n] != t && (key[n] == 0 || key[n] != gone[n]) -> gone[n] = t
	:: key[n] != t && key[n] != 0 && key[n] == gone[n]
#endif
	fi;
	if
	:: with[t] != 0 -> tidy(t)
	:: else
	fi
}

inline fault()
{
	faults--;
	excuse = true
}

#ifdef LASTING
#define IN_ORDER(n) (!WAY(t, n, ACQUIRE))
#else
#define IN_ORDER(n) true
#endif
#define CARRY(n) \
	:: atomic { WAY(t, n, ACQUIRE) -> do_acquire(n) } \
	:: atomic { WAY(t, n, UNDO) && !WAY(t, n, ACQUIRE) -> do_undo(n) } \
	:: d_step { WAY(t, n, RELEASE) && IN_ORDER(n) -> do_release(n, RELEASE, false) } \
	:: d_step { WAY(t, n, AGAIN) && !WAY(t, n, RELEASE) -> do_release(n, AGAIN, false) } \
	:: d_step { WAY(t, n, RELEASE) && !resent -> resent = true; way[AT(t, n)] = way[AT(t, n)] | AGAIN } \
	:: d_step { WAY(t, n, RELEASE) && faults > 0 -> fault(); do_release(n, RELEASE, true) }

active [TOKENS - 1] proctype network()
{
	byte t = _pid + 1;
	byte c = OWNER(_pid + 1);
	byte b = 0, w = 0;

end:	do
	CARRY(0)
#if N == 3
	CARRY(1)
	CARRY(2)
#endif
	od
}

/* -- Clients ------------------------------------------------------------------ */

#define T1 (2 * c + 1)
#define T2 (2 * c + 2)
#define SEEN_1(n) (key[n] == T1 || wake[n] == T1 || way[AT(T1, n)] != 0)
#define SEEN_2(n) (key[n] == T2 || wake[n] == T2 || way[AT(T2, n)] != 0)
#define HAS(a, t) (token[a] == (t) || handoff[a] == (t))
/* A repeated request to an early node would get a different reply now. */
#define RIPE_FOR(a, n) (reply[AT(a, n)] == EARLY && (key[n] != with[token[a]] || gone[n] == with[token[a]]))
#if N == 1
#define RIPENS(a) RIPE_FOR(a, 0)
#else
#define RIPENS(a) (RIPE_FOR(a, 0) || RIPE_FOR(a, 1) || RIPE_FOR(a, 2))
#endif
#define IDLE(a) (phase[a] == DONE || (phase[a] == ASLEEP && handoff[a] == 0) || (phase[a] == STUCK && !RIPENS(a)))
#if WAITERS == 1
#define HAD(t) (HAS(0, t))
#define INSIDERS (first_inside + (phase[0] == INSIDE))
#define ALL_IDLE (IDLE(0))
#define ONE_ASLEEP (phase[0] == ASLEEP)
#elif WAITERS == 2
#define HAD(t) (HAS(0, t) || HAS(1, t))
#define INSIDERS (first_inside + (phase[0] == INSIDE) + (phase[1] == INSIDE))
#define ALL_IDLE (IDLE(0) && IDLE(1))
#define ONE_ASLEEP (phase[0] != DONE || phase[1] != DONE)
#else
#define HAD(t) (HAS(0, t) || HAS(1, t) || HAS(2, t))
#define INSIDERS (first_inside + (phase[0] == INSIDE) + (phase[1] == INSIDE) + (phase[2] == INSIDE))
#define ALL_IDLE (IDLE(0) && IDLE(1) && IDLE(2))
#define ONE_ASLEEP (phase[0] != DONE || phase[1] != DONE || phase[2] != DONE)
#endif
#define BROUGHT_12(t) (with[1] == (t) || with[2] == (t))
#if WAITERS == 1
#define BROUGHT(t) BROUGHT_12(t)
#elif WAITERS == 2
#define BROUGHT(t) (BROUGHT_12(t) || with[3] == (t) || with[4] == (t))
#else
#define BROUGHT(t) (BROUGHT_12(t) || with[3] == (t) || with[4] == (t) || with[5] == (t) || with[6] == (t))
#endif
#define FREE_1 (!(ANY(SEEN_1) || HAD(T1) || BROUGHT(T1)))
#define FREE_2 (!(ANY(SEEN_2) || HAD(T2) || BROUGHT(T2)))

#define FORGET_GONE(n) \
	if \
	:: gone[n] == t -> gone[n] = 0 \
	:: else \
	fi

#define YESES(n) (reply[AT(c, n)] == YES)
#define EQUALS_0(n) (reply[AT(c, n)] == reply[AT(c, 0)])
#define EQUALS_1(n) (reply[AT(c, n)] == reply[AT(c, 1)])
#define NAMES(n) (reply[AT(c, n)] != 0 && reply[AT(c, n)] < YES)
#define ASKED(n) WAY(token[c], n, ACQUIRE)
#define IS_EARLY(n) (reply[AT(c, n)] == EARLY)
#define RIPE(n) RIPE_FOR(c, n)

#define GRANTED (SUM(YESES) >= MAJORITY && !slow[c])
#if N == 1
#define REFUSED (NAMES(0))
#define FIRST_HELD 0
#define HELD_AT(n) (NAMES(n))
#else
#define REFUSED ((NAMES(0) && SUM(EQUALS_0) >= MAJORITY) || (NAMES(1) && SUM(EQUALS_1) >= MAJORITY))
#define FIRST_HELD ((NAMES(0) && SUM(EQUALS_0) >= MAJORITY) -> 0 : 1)
#endif
#define WAITS_ONLY (!ANY(ASKED) && ANY(IS_EARLY) && !ANY(RIPE) && !GRANTED && !REFUSED)
#define COUNTED (!ANY(ASKED) && !ANY(IS_EARLY) && !GRANTED && !REFUSED)

/* Send an undo to each node that may have granted it, and forget the replies. */
#define UNDO_AT(n) \
	if \
	:: reply[AT(c, n)] == YES || ASKED(n) -> way[AT(token[c], n)] = way[AT(token[c], n)] | UNDO \
	:: else \
	fi
#define FORGET_AT(n) reply[AT(c, n)] = 0
#define SEND_ACQUIRE(n) way[AT(t, n)] = ACQUIRE
#define SEND_RELEASE(n) way[AT(t, n)] = way[AT(t, n)] | RELEASE
#define SEND_FIRST(n) way[AT(FIRST, n)] = RELEASE
#define UNNOTE(n) noted[n] = noted[n] & ~(1 << c)

inline try_with(number)
{
	t = 2 * c + number;
	EACH(FORGET_GONE);
	token[c] = t;
	with[t] = handoff[c];
	handoff[c] = 0;
	slow[c] = false;
	EACH(SEND_ACQUIRE);
	phase[c] = ASK;
	t = 0
}

inline end_attempt()
{
	EACH(UNDO_AT);
	EACH(FORGET_AT);
	t = token[c];
	token[c] = 0;
	tidy(t);
	t = 0;
	slow[c] = false
}

inline give_up_place()
{
	if
	:: place[c] != 0 && blocked[place[c] - 1]??[eval(c)] -> blocked[place[c] - 1]??eval(c)
	:: else
	fi
}

#if defined(NO_TIMER) || defined(LASTING)
#define TIMER false
#else
#define TIMER true
#endif

#define IN_QUEUE (place[c] != 0 && blocked[place[c] - 1]??[eval(c)])

inline block(n)
{
	if
	:: wake[n] != 0 -> handoff[c] = wake[n]; wake[n] = 0
	:: else -> blocked[n]!c
	fi
}

/* pass.lua */
inline pass_on(n)
{
	if
#ifdef NO_PASS
	:: false
#else
	:: key[n] == handoff[c] && gone[n] == handoff[c] && wake[n] == 0 -> push(n, handoff[c])
#endif
	:: else
	fi
}

#define ASK_AGAIN(n) \
	:: d_step { \
		(phase[c] == ASK || phase[c] == STUCK) && RIPE(n) -> \
		reply[AT(c, n)] = 0; \
		way[AT(token[c], n)] = way[AT(token[c], n)] | ACQUIRE; \
		phase[c] = ASK \
	   }

active [WAITERS] proctype client()
{
	byte c = _pid - FIRST;
	byte t = 0, w = 0, n = 0;

end:	do
	:: d_step { phase[c] == START && FREE_1 -> try_with(1) }
	:: d_step { phase[c] == START && !FREE_1 && FREE_2 -> try_with(2) }
	:: d_step {
		phase[c] == ASK && GRANTED ->
		EACH(FORGET_AT);
		phase[c] = LEAVE;
		tidy(token[c])
	   }
	:: d_step {
		phase[c] == ASK && !GRANTED && REFUSED ->
		n = FIRST_HELD;
#ifdef QUEUE_ANY
		n = N - 1;
#endif
		end_attempt();
		phase[c] = JOIN;
		place[c] = (IN_QUEUE -> place[c] : n + 1);
		n = 0
	   }
	:: d_step {
		phase[c] == ASK && COUNTED -> /* split, or too slow */
		end_attempt();
#ifdef SPLIT_SLEEPS
		place[c] = (IN_QUEUE -> place[c] : 1);
		phase[c] = JOIN
#else
		phase[c] = START
#endif
	   }
	ASK_AGAIN(0)
#if N == 3
	ASK_AGAIN(1)
	ASK_AGAIN(2)
#endif
	:: d_step { phase[c] == ASK && WAITS_ONLY -> phase[c] = STUCK }
	:: d_step {
		phase[c] == STUCK && excuse -> /* the round is over: refused */
		n = 1;
		end_attempt();
		phase[c] = JOIN;
		place[c] = (place[c] != 0 -> place[c] : n);
		n = 0
	   }
	:: d_step {
		phase[c] == JOIN ->
		if
		:: IN_QUEUE || handoff[c] != 0
		:: else -> block(place[c] - 1)
		fi;
		phase[c] = ASLEEP
	   }
	:: d_step { phase[c] == ASLEEP && (handoff[c] != 0 || TIMER) -> phase[c] = START }
	:: d_step { /* the wait is over, or a signal came */
		phase[c] == ASLEEP ->
		noted[place[c] - 1] = noted[place[c] - 1] & ~(1 << c);
		give_up_place();
#ifdef CLOSES
		handoff[c] = 0;
#endif
		phase[c] = (handoff[c] != 0 -> PASS : DONE)
	   }
	:: d_step { phase[c] == PASS -> pass_on(place[c] - 1); handoff[c] = 0; phase[c] = DONE }
	:: d_step {
		phase[c] == LEAVE ->
		EACH(UNNOTE);
		give_up_place();
		handoff[c] = 0;
		phase[c] = INSIDE;
		exclusion = INSIDERS < 2;
		assert(exclusion);
		excuse = (N == 1 -> false : excuse)
	   }
	:: d_step {
		phase[c] == INSIDE ->
		t = token[c];
		EACH(SEND_RELEASE);
		token[c] = 0;
		tidy(t);
		t = 0;
		phase[c] = DONE
	   }
	:: d_step { /* the client dies, and its connections close */
		phase[c] != DONE && faults > 0 ->
		fault();
		give_up_place();
		EACH(FORGET_AT);
		t = token[c];
		token[c] = 0;
		handoff[c] = 0;
		tidy(t);
		t = 0;
		slow[c] = false;
		phase[c] = DONE
	   }
	od
}

/* -- The first holder, the end of leases --------------------------------------- */

#define IN_USE(a, n) (token[a] == key[n] && (phase[a] == INSIDE || phase[a] == LEAVE))
#define HELD_UP(a, n) \
	if \
	:: token[a] == key[n] -> slow[a] = true \
	:: else \
	fi
#if WAITERS == 1
#define LIVE(n) (IN_USE(0, n))
#define SLOW(n) HELD_UP(0, n)
#elif WAITERS == 2
#define LIVE(n) (IN_USE(0, n) || IN_USE(1, n))
#define SLOW(n) HELD_UP(0, n); HELD_UP(1, n)
#else
#define LIVE(n) (IN_USE(0, n) || IN_USE(1, n) || IN_USE(2, n))
#define SLOW(n) HELD_UP(0, n); HELD_UP(1, n); HELD_UP(2, n)
#endif

#define EXPIRE(n) \
	:: d_step { \
		key[n] != 0 && !LIVE(n) && !(key[n] == FIRST && first_inside) -> \
		SLOW(n); \
		wake[n] = 0; \
		key[n] = 0; \
		excuse = true \
	   }

#ifdef NO_TIMER
#define EXCUSED false
#else
#define EXCUSED excuse
#endif

active proctype environment()
{
	byte i = 0;

end:	do
	:: d_step { first_inside -> first_inside = false; EACH(SEND_FIRST) }
	:: d_step { first_inside && faults > 0 -> fault(); first_inside = false }
#ifndef LASTING
	EXPIRE(0)
#if N == 3
	EXPIRE(1)
	EXPIRE(2)
#endif
#endif
	:: d_step {
		!EXCUSED && !first_inside && ALL_IDLE && ONE_ASLEEP ->
		do
		:: i < TOKENS * N && way[i] == 0 -> i++
		:: i < TOKENS * N && way[i] != 0 -> break
		:: i == TOKENS * N -> awake = false; break
		od;
		i = 0;
		assert(awake)
	   }
	od
}
