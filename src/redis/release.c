/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include "base/clock.h"

/* Once the outcome is certain, the other nodes get this much time to take the request off our hands. */
#define GRACE_US 10000

static bool
all_heard(const struct round *r)
{
	int i;

	for (i = 0; i < r->ballot.nodes; i++) {
		if (r->ballot.vote[i] == VOTE_PENDING && !r->ballot.suspect[i])
			return false;
	}
	return true;
}

/* Let the release reach also the nodes whose answer no longer matters. */
static void
linger(struct round *r, int64_t began_us, int64_t until_us)
{
	const int64_t now = clock_now_us();
	const int64_t grace = clock_add(now, 2 * (now - began_us) + GRACE_US);
	const int64_t until = grace < until_us ? grace : until_us;

	while (!all_heard(r) || !fleet_flushed(&r->service->fleet)) {
		if (round_turn(r, until, -1) == FLEET_TIME)
			break;
	}
}

static enum status
outcome(struct round *r, enum ownership *ownership, struct err *err)
{
	switch (quorum_judge(&r->ballot)) {
	case VERDICT_CARRIED:
		*ownership = OWNED;
		return ST_OK;
	case VERDICT_REFUSED:
	case VERDICT_SPLIT:
		*ownership = round_ownership(r);
		return err_set(err, ST_NO, *ownership == OWNED_BY_ANOTHER ? "held by another" : "already expired");
	case VERDICT_OPEN:
	case VERDICT_NO_QUORUM:
		break;
	}
	return answer_no_quorum(&r->service->fleet, r->ballot.vote, r->fault, err);
}

enum status
redis_release(struct service *service, const struct lease *lease, int64_t keep_ms, enum ownership *ownership,
    struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	const int64_t began = clock_now_us();
	const int64_t until = clock_add(began, s->fleet.round_us);
	enum fleet_event event = FLEET_ANSWERED;
	struct request request;
	struct names names;
	struct round round;

	names_of(lease->key, &names);
	request_eval(&request, SCRIPT_RELEASE, &names);
	request_add(&request, lease->token);
	request_add_number(&request, keep_ms);
	round_start(&round, s, &request);
	while (quorum_judge(&round.ballot) == VERDICT_OPEN && event == FLEET_ANSWERED)
		event = round_turn(&round, until, -1);
	linger(&round, began, until);
	round_close(&round);
	return outcome(&round, ownership, err);
}
