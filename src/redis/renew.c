/* SPDX-License-Identifier: MIT */
#include "redis/operations.h"

#include "base/clock.h"

static enum status
outcome(struct round *r, enum verdict verdict, enum ownership *ownership, struct err *err)
{
	switch (verdict) {
	case VERDICT_CARRIED:
		*ownership = OWNED;
		return ST_OK;
	case VERDICT_REFUSED:
		*ownership = round_ownership(r);
		return err_set(err, ST_NO, *ownership == OWNED_BY_ANOTHER ? "held by another" : "already expired");
	case VERDICT_OPEN:
	case VERDICT_SPLIT:
	case VERDICT_NO_QUORUM:
		break;
	}
	return answer_no_quorum(&r->service->fleet, r->ballot.vote, r->fault, err);
}

enum status
redis_renew(struct service *service, const struct lease *lease, int64_t until_us, int interrupt_fd, int64_t *sent_us,
    enum ownership *ownership, struct err *err)
{
	struct redis_service *s = (struct redis_service *)service;
	const int64_t deadline = clock_add(clock_now_us(), s->fleet.round_us);
	const int64_t until = deadline < until_us ? deadline : until_us;
	enum fleet_event event = FLEET_ANSWERED;
	enum verdict verdict;
	struct request request;
	struct names names;
	struct round round;

	names_of(lease->key, &names);
	request_eval(&request, SCRIPT_RENEW, &names);
	request_add(&request, lease->token);
	request_add_number(&request, lease->ttl_ms);
	request_add_number(&request, lease->fence);
	*sent_us = clock_now_us();
	round_start(&round, s, &request);
	while ((verdict = quorum_judge(&round.ballot)) == VERDICT_OPEN && event == FLEET_ANSWERED)
		event = round_turn(&round, until, interrupt_fd);
	if (event == FLEET_INTERRUPTED && verdict == VERDICT_OPEN)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	if (event == FLEET_TIME)
		round_close(&round);
	return outcome(&round, quorum_judge(&round.ballot), ownership, err);
}
