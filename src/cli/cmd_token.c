/* SPDX-License-Identifier: MIT */
/*
 * The commands for the holder of a token: release and renew.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"

static const char *
outcome_of(enum ownership ownership, bool renews)
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
	return "expired";
}

static void
print_json(const struct invocation *inv, const struct lease *lease, const struct renewed *renewed, bool renews)
{
	const int64_t valid_us = renewed->valid_until_us - clock_now_us();
	const bool owned = renewed->ownership == OWNED;
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "key", inv->operand[0]);
	json_string(&j, "outcome", outcome_of(renewed->ownership, renews));
	if (renews) {
		json_number(&j, "ttl_ms", owned ? lease->ttl_ms : 0);
		json_number(&j, "valid_ms", owned && valid_us > 0 ? valid_us / 1000 : 0);
	}
	json_close(&j, '}');
	putchar('\n');
}

static int
release_or_renew(struct invocation *inv, bool renews, struct err *err)
{
	const struct limit limit = { CLOCK_NEVER, -1 };
	struct renewed renewed = { .ownership = OWNED_BY_NOBODY };
	struct backend *backend = NULL;
	struct lease lease;
	char key[KEY_MAX + 1];
	enum status status;

	status = setup_key(inv, inv->operand[0], key, err);
	if (status == ST_OK)
		status = setup_token(inv, key, &lease, err);
	if (status == ST_OK)
		status = setup_service(inv, &backend, err);
	if (status != ST_OK)
		return (int)status;
	if (renews)
		status = backend->ops->renew(backend, &lease, &limit, &renewed, err);
	else
		status = backend->ops->release(backend, &lease, 0, &renewed.ownership, err);
	backend->ops->close(backend);
	setup_blame_key(inv, status, err);
	if (inv->options.json && (status == ST_OK || status == ST_NO)) {
		print_json(inv, &lease, &renewed, renews);
		status = output_end(status, err);
	}
	return (int)status;
}

int
cmd_release(struct invocation *inv, struct err *err)
{
	return release_or_renew(inv, false, err);
}

int
cmd_renew(struct invocation *inv, struct err *err)
{
	return release_or_renew(inv, true, err);
}
