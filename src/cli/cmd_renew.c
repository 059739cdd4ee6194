/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "lock/lease.h"

static void
print_json(const char *key, const struct lease *lease, enum ownership ownership, int64_t sent_us)
{
	const int64_t valid_us = lease_valid_until(sent_us, lease->ttl_ms * 1000) - clock_now_us();
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "key", key);
	json_string(&j, "outcome", output_ownership(ownership, "renewed"));
	json_number(&j, "ttl_ms", ownership == OWNED ? lease->ttl_ms : 0);
	json_number(&j, "valid_ms", ownership == OWNED && valid_us > 0 ? valid_us / 1000 : 0);
	json_close(&j, '}');
	putchar('\n');
}

int
cmd_renew(struct invocation *inv, struct err *err)
{
	const struct limit limit = { CLOCK_NEVER, -1 };
	struct renewed renewed = { 0, OWNED_BY_NOBODY };
	struct backend *backend = NULL;
	struct lease lease;
	char key[KEY_MAX + 1];
	enum status status;

	status = setup_holder(inv, key, &lease, &backend, err);
	if (status != ST_OK)
		return (int)status;
	status = backend->ops->renew(backend, &lease, &limit, &renewed, err);
	backend->ops->close(backend);
	setup_blame_key(inv, status, err);
	if (inv->options.json && (status == ST_OK || status == ST_NO)) {
		print_json(inv->operand[0], &lease, renewed.ownership, renewed.sent_us);
		status = output_end(status, err);
	}
	return (int)status;
}
