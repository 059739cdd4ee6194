/* SPDX-License-Identifier: MIT */
#include "lock/renew_schedule.h"

#include "base/clock.h"
#include "lock/lease.h"
#include "tap.h"

#define MS INT64_C(1000)
#define S (1000 * MS)

/* What the Redlock description grants a request of that instant. */
static int64_t
granted_until(int64_t sent_us, int64_t ttl_us)
{
	return sent_us + ttl_us - ttl_us / 100 - 2 * MS;
}

static void
test_start(void)
{
	struct renew_schedule k;

	memset(&k, 0xa5, sizeof(k));
	renew_schedule_start(&k, 100 * S, 30 * S, 129 * S, true);
	is_int(k.valid_until_us, 129 * S, "validity is as granted");
	is_int(k.renew_at_us, 109 * S, "the first renewal is due after three tenths of the lease");
	ok(!k.lost, "nothing has gone wrong yet");
	renew_schedule_start(&k, 100 * S, 30 * S, 129 * S, false);
	is_int(k.renew_at_us, 100 * S + 100 * MS, "where a node lacks the lock it is due after 100 ms");
	renew_schedule_start(&k, 100 * S, 150 * MS, 101 * S, false);
	is_int(k.renew_at_us, 100 * S + 45 * MS, "or after three tenths of a lease that is short");
	renew_schedule_start(&k, 100 * S, 30 * S, 129 * S, true);
	ok(!renew_schedule_over(&k, 129 * S - 1), "valid until the last microsecond");
	ok(renew_schedule_over(&k, 129 * S), "not valid after that");
}

static void
test_renewed(void)
{
	struct renew_schedule k;

	renew_schedule_start(&k, 100 * S, 30 * S, granted_until(100 * S, 30 * S), true);
	renew_schedule_failed(&k, 110 * S, 5);
	renew_schedule_failed(&k, 111 * S, 5);
	renew_schedule_renewed(&k, 112 * S, granted_until(112 * S, k.ttl_us));
	is_int(k.valid_until_us, granted_until(112 * S, 30 * S), "a renewal counts from when it was sent");
	is_int(k.renew_at_us, 121 * S, "the next one is due three tenths of the lease after that");
	renew_schedule_renewed(&k, 105 * S, granted_until(105 * S, k.ttl_us));
	is_int(k.valid_until_us, granted_until(112 * S, 30 * S), "a late answer to an older round takes nothing back");

	renew_schedule_start(&k, 100 * S, 30 * S, 200 * S, true);
	renew_schedule_renewed(&k, 110 * S, granted_until(110 * S, k.ttl_us));
	is_int(k.valid_until_us, 200 * S, "a renewal does not make a longer validity shorter");
}

static void
test_failed(void)
{
	struct renew_schedule k;

	renew_schedule_start(&k, 100 * S, 30 * S, 129 * S, true);
	renew_schedule_failed(&k, 112 * S, UINT32_MAX);
	ok(k.renew_at_us > 112 * S && k.renew_at_us <= 112 * S + 50 * MS,
	    "the next round is sent 50 ms behind it at most");
	is_int(k.valid_until_us, 129 * S, "a failure changes nothing about validity");
	renew_schedule_failed(&k, 114 * S, 0);
	is_int(k.renew_at_us, 114 * S + 5 * MS, "the next round is sent after 5 ms at least");
	ok(!k.lost, "a failure is no loss");
	renew_schedule_failed(&k, 129 * S - 4 * MS, 0);
	ok(k.renew_at_us == CLOCK_NEVER, "no further round if validity ends first");
	renew_schedule_start(&k, 100 * S, 30 * S, 129 * S, true);
	renew_schedule_failed(&k, 129 * S, 0);
	ok(k.renew_at_us == CLOCK_NEVER, "no further round when validity has ended");
}

static void
test_lost(void)
{
	struct renew_schedule k;

	renew_schedule_start(&k, 100 * S, 30 * S, 129 * S, true);
	renew_schedule_lost(&k);
	ok(k.lost && k.renew_at_us == CLOCK_NEVER, "a lost lock is not renewed");
	is_int(k.valid_until_us, 129 * S, "validity does not grow by it");
	renew_schedule_renewed(&k, 111 * S, granted_until(111 * S, k.ttl_us));
	ok(k.lost, "lost stays lost after a renewal");
	renew_schedule_failed(&k, 112 * S, 0);
	ok(k.lost, "lost stays lost after a failure");
}

/* One round of a random outcome; `now` is when it ended. */
static void
play_round(struct renew_schedule *k, int64_t sent, int64_t now)
{
	const struct renew_schedule before = *k;
	const int64_t hundredth = k->ttl_us / 100;

	if (below(3) == 0) {
		renew_schedule_renewed(k, sent, granted_until(sent, k->ttl_us));
		each(k->valid_until_us >= granted_until(sent, k->ttl_us), "too short");
		each(k->valid_until_us == before.valid_until_us || k->valid_until_us == granted_until(sent, k->ttl_us),
		    "more than was granted");
		each(k->renew_at_us == sent + k->ttl_us / 10 * 3, "not due after three tenths");
	} else {
		renew_schedule_failed(k, sent, (uint32_t)dice());
		each(k->valid_until_us == before.valid_until_us, "a failure changed validity");
		if (k->renew_at_us == CLOCK_NEVER)
			each(k->valid_until_us - sent <= hundredth, "given up %" PRId64 " us too early",
			    k->valid_until_us - sent);
		else
			each(k->renew_at_us > sent && k->renew_at_us <= sent + hundredth,
			    "%" PRId64 " us from one round to the next in %" PRId64, k->renew_at_us - sent, k->ttl_us);
	}
	each(k->valid_until_us >= before.valid_until_us, "validity went back");
	each(k->renew_at_us == CLOCK_NEVER || k->renew_at_us < k->valid_until_us || renew_schedule_over(k, now),
	    "to be renewed when validity is over");
	each(!k->lost, "lost by itself");
}

/* A holder whose rounds fail, are slow or succeed: it renews as long as it may, and no longer. */
static void
test_life(void)
{
	struct renew_schedule k;
	int64_t ttl, now, until, sent;
	int i, rounds;

	for (i = 0; i < 3000; i++) {
		ttl = TTL_MIN_MS * MS + below(INT64_C(1) << (10 + below(35)));
		now = below(S * 1000);
		renew_schedule_start(&k, now, ttl, granted_until(now, ttl), true);
		for (rounds = 0; rounds < 60 && k.renew_at_us != CLOCK_NEVER; rounds++) {
			now = k.renew_at_us > now ? k.renew_at_us : now;
			if (renew_schedule_over(&k, now))
				break;
			until = now + ttl / 10 < k.valid_until_us ? now + ttl / 10 : k.valid_until_us;
			sent = now;
			now += below(4) == 0 ? until - now : below(until - now + 1);
			play_round(&k, sent, now);
		}
	}
	each_ok("a holder's life");
}

/*
 * A server goes away just when a renewal is due, and for half of the lease: it is back, and has answered, before the command
 * gets its first signal by the default --kill-after.  What is left for the answer is 2% of the lease.
 */
static void
test_outage(void)
{
	static const int64_t ttls[] = { S, 2 * S, 3 * S, 10 * S, 30 * S, 60 * S, 3600 * S };
	struct renew_schedule k;
	int64_t back, margin, signal_at;
	size_t i;

	for (i = 0; i < COUNT(ttls); i++) {
		margin = ttls[i] / 6 < 5 * S ? ttls[i] / 6 : 5 * S;
		renew_schedule_start(&k, 0, ttls[i], granted_until(0, ttls[i]), true);
		signal_at = k.valid_until_us - lease_kill_margin_us(ttls[i], margin);
		back = k.renew_at_us + ttls[i] / 2;
		ok(back + ttls[i] / 50 <= signal_at,
		    "a lease of %" PRId64 " s outlives a server that is away for half of it", ttls[i] / S);
	}
}

int
main(void)
{
	test_start();
	test_renewed();
	test_failed();
	test_lost();
	test_outage();
	test_life();
	return tap_end();
}
