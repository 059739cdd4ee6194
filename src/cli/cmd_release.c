/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"

static void
print_json(const char *key, enum ownership ownership)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "key", key);
	json_string(&j, "outcome", output_ownership(ownership, "released"));
	json_close(&j, '}');
	putchar('\n');
}

int
cmd_release(struct invocation *inv, struct err *err)
{
	enum ownership ownership = OWNED_BY_NOBODY;
	struct backend *backend = NULL;
	struct lease lease;
	char key[KEY_MAX + 1];
	enum status status;

	status = setup_holder(inv, key, &lease, &backend, err);
	if (status != ST_OK)
		return (int)status;
	status = backend->ops->release(backend, &lease, 0, &ownership, err);
	backend->ops->close(backend);
	setup_blame_key(inv, status, err);
	if (inv->options.json && (status == ST_OK || status == ST_NO)) {
		print_json(inv->operand[0], ownership);
		status = output_end(status, err);
	}
	return (int)status;
}
