/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/acquisition.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/keeper.h"
#include "cli/output.h"
#include "cli/shell.h"
#include "cli/view.h"

static void
print_json(const char *key, const struct lease *lease)
{
	struct json j = json_begin_line(stdout);

	json_string(&j, "outcome", "acquired");
	json_string(&j, "key", key);
	json_string(&j, "token", lease->token);
	json_number(&j, "fence", lease->fence);
	json_number(&j, "ttl_ms", lease->ttl_ms);
	json_number(&j, "valid_ms", (lease->valid_until_us - clock_now_us()) / 1000);
	json_number(&j, "nodes", lease->nodes);
	json_number(&j, "granted", lease->granted);
	json_end_line(&j);
}

/* With --json. */
static void
print_refusal(const struct invocation *inv, const struct acquisition *a, enum status status)
{
	struct json j;
	struct err ignored;

	if (!inv->options.json || status == ST_INTERRUPTED || status == ST_USAGE)
		return;
	j = json_begin_line(stdout);
	json_string(&j, "outcome",
	    status == ST_HELD	      ? "held"
		: status == ST_NO     ? "gone"
		: status == ST_DENIED ? "denied"
				      : "no-quorum");
	json_string(&j, "key", inv->operand[0]);
	view_json_holder(&j, &a->holder);
	json_number(&j, "waited_ms", a->waited_us / 1000);
	json_end_line(&j);
	(void)output_flush(&ignored);
}

static enum status
print_export(const struct acquisition *a, const struct invocation *inv, struct err *err)
{
	const enum shell shell = (enum shell)inv->options.export_shell;
	char **const environment = environment_of_lock(inv->operand[0], a->key, &a->lease);
	int i;

	if (environment == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	for (i = 0; i < LOCK_VARIABLES; i++)
		shell_print_variable(shell, environment[i]);
	free(environment);
	return ST_OK;
}

static enum status
print_lock(const struct invocation *inv, const struct acquisition *a, struct err *err)
{
	enum status status = ST_OK;

	if (inv->options.json)
		print_json(inv->operand[0], &a->lease);
	else if (inv->options.export_lines)
		status = print_export(a, inv, err);
	else
		printf("%s\n", a->lease.token);
	return status == ST_OK ? output_flush(err) : status;
}

/* Print the token.  If that fails, release the lock, since nobody else could. */
static enum status
hand_out(const struct invocation *inv, const struct acquisition *a, struct err *err)
{
	const enum status status = print_lock(inv, a, err);
	enum ownership ownership;
	struct err ignored;

	if (status == ST_OK)
		return ST_OK;
	if (a->backend->service->release(a->backend, &a->lease, 0, &ownership, &ignored) == ST_OK)
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

	if (inv->options.json && inv->options.export_lines)
		return (int)err_set(err, ST_USAGE, "--export and --json cannot be used together");
	if (inv->options.keep_pid != 0)
		return keeper_acquire(inv, print_lock, print_refusal, err);
	status = acquisition_open(&a, inv, err);
	if (status == ST_OK) {
		status = acquisition_acquire(&a, inv, err);
		if (status == ST_OK)
			status = hand_out(inv, &a, err);
		else
			print_refusal(inv, &a, status);
	}
	acquisition_close(&a);
	return (int)status;
}

void
acquire_print_failure(const struct invocation *inv, int code)
{
	struct err ignored;

	if (!inv->options.export_lines || (inv->command != NULL && inv->command->bit != CMD_ACQUIRE))
		return;
	/* With -E 0 it must fail, too. */
	shell_print_failure((enum shell)inv->options.export_shell, code == 0 ? (int)ST_HELD : code);
	(void)output_flush(&ignored);
}
