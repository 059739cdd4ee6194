/* SPDX-License-Identifier: MIT */
/*
 * The commands for the holder of a token: release and renew.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/keeper.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "cli/view.h"
#include "run/loss.h"

static const char *
outcome_of(enum ownership ownership, bool broken, bool renews)
{
	switch (ownership) {
	case OWNED:
		return renews ? "renewed" : "released";
	case OWNED_STILL:
		return "still-held";
	case OWNED_BY_ANOTHER:
		return "held-by-another";
	case OWNED_NO_MORE:
	case OWNED_BY_NOBODY:
		break;
	}
	return broken ? "broken" : "gone";
}

static void
print_json(const struct invocation *inv, const struct lease *lease, const struct renewed *renewed,
    const struct loss *loss)
{
	const bool renews = inv->command->bit == CMD_RENEW;
	const int64_t valid_us = renewed->valid_until_us - clock_now_us();
	const bool owned = renewed->ownership == OWNED, broken = loss->broken.token[0] != '\0';
	struct json j = json_begin_line(stdout);

	json_string(&j, "key", inv->operand[0]);
	json_string(&j, "outcome", outcome_of(renewed->ownership, broken, renews));
	if (renews) {
		json_number(&j, "ttl_ms", owned ? lease->ttl_ms : 0);
		json_number(&j, "valid_ms", owned && valid_us > 0 ? valid_us / 1000 : 0);
	}
	view_json_holder(&j, &loss->holder);
	view_json_owner(&j, "broken_by", broken ? loss->broken.owner : "");
	json_number_or_null(&j, "broken_ms", loss->broken.ago_ms, broken);
	json_end_line(&j);
}

int
cmd_token(struct invocation *inv, struct err *err)
{
	const bool renews = inv->command->bit == CMD_RENEW;
	const struct wait limit = { CLOCK_NEVER, -1 };
	struct renewed renewed = { .ownership = OWNED_BY_NOBODY };
	struct loss loss = { .interrupt_fd = -1 };
	struct backend *backend = NULL;
	struct lease lease;
	char key[KEY_MAX + 1];
	enum status status;
	int keeper;

	status = setup_key(inv, inv->operand[0], key, err);
	if (status == ST_OK)
		status = setup_token(inv, key, &lease, err);
	if (status == ST_OK)
		status = setup_service(inv, &backend, err);
	if (status != ST_OK)
		return (int)status;
	if (renews)
		status = backend->service->renew(backend, &lease, &limit, &renewed, err);
	else {
		keeper = keeper_announce(lease.token);
		status = backend->service->release(backend, &lease, 0, &renewed.ownership, err);
		keeper_tell(keeper, status == ST_OK);
	}
	loss.ownership = renewed.ownership;
	if (status == ST_NO)
		status = loss_explain(backend, &lease, &loss, err);
	backend->service->close(backend);
	setup_blame_key(inv, status, err);
	if (inv->options.json && (status == ST_OK || status == ST_NO)) {
		print_json(inv, &lease, &renewed, &loss);
		status = output_end(status, err);
	}
	return (int)status;
}
