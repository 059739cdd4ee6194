/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/acquisition.h"
#include "cli/command.h"
#include "cli/output.h"

static void
print_json(const char *key, const struct lease *lease)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "key", key);
	json_string(&j, "token", lease->token);
	json_number(&j, "fence", lease->fence);
	json_number(&j, "ttl_ms", lease->ttl_ms);
	json_number(&j, "valid_ms", (lease->valid_until_us - clock_now_us()) / 1000);
	json_number(&j, "nodes", lease->nodes);
	json_number(&j, "granted", lease->granted);
	json_close(&j, '}');
	putchar('\n');
}

/* Print a string, quoted as one word for the shell. */
static void
print_shell_word(const char *string)
{
	putchar('\'');
	for (; *string != '\0'; string++) {
		if (*string == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*string);
	}
	putchar('\'');
}

static void
print_export(const char *key, const struct lease *lease)
{
	fputs("DLOCK_KEY=", stdout);
	print_shell_word(key);
	printf("; export DLOCK_KEY;\n"
	       "DLOCK_TOKEN=%s; export DLOCK_TOKEN;\n"
	       "DLOCK_FENCE=%" PRId64 "; export DLOCK_FENCE;\n",
	    lease->token, lease->fence);
}

/* Print the token.  If that fails, release the lock, since nobody else could. */
static enum status
hand_out(const struct invocation *inv, struct backend *backend, const struct lease *lease, struct err *err)
{
	enum ownership ownership;
	struct err ignored;
	enum status status;

	if (inv->options.json)
		print_json(inv->operand[0], lease);
	else if (inv->options.export_lines)
		print_export(inv->operand[0], lease);
	else
		printf("%s\n", lease->token);
	status = output_flush(err);
	if (status == ST_OK)
		return ST_OK;
	if (backend->ops->release(backend, lease, 0, &ownership, &ignored) == ST_OK)
		err_suffix(err, "the lock was released again");
	else
		err_suffix(err, "the lock ends with its lease");
	return status;
}

int
cmd_acquire(struct invocation *inv, struct err *err)
{
	struct acquisition a;
	enum status status;

	status = acquisition_open(&a, inv, err);
	if (status == ST_OK)
		status = acquisition_acquire(&a, inv, err);
	if (status == ST_OK)
		status = hand_out(inv, a.backend, &a.lease, err);
	acquisition_close(&a);
	return (int)status;
}
