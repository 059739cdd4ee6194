/* SPDX-License-Identifier: MIT */
/*
 * The commands about a lock whose token its holder keeps: acquire, renew and release.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/acquisition.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/keeper.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "cli/view.h"
#include "run/loss.h"

/* -- acquire ---------------------------------------------------------------- */

static void
print_lease(const char *key, const struct lease *lease)
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

/*
 * Print a string as one word, in a form that sh and fish read alike: whichever of them evaluates it, no part of it is a
 * command.  In '...' they differ about \ and ', which therefore stand outside of quotes, behind a \.
 */
static void
print_word(const char *string)
{
	size_t plain;

	if (*string == '\0')
		fputs("''", stdout);
	for (; *string != '\0'; string += plain) {
		plain = strcspn(string, "'\\");
		if (plain > 0)
			printf("'%.*s'", (int)plain, string);
		else
			printf("\\%c", string[plain++]);
	}
}

static void
print_variable(enum shell shell, const char *variable)
{
	const int name = (int)strcspn(variable, "=");

	printf(shell == SHELL_FISH ? "set -gx %.*s " : "%.*s=", name, variable);
	print_word(variable + name + 1);
	if (shell == SHELL_SH)
		printf("; export %.*s", name, variable);
	fputs(";\n", stdout);
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
		print_variable(shell, environment[i]);
	free(environment);
	return ST_OK;
}

static enum status
print_lock(const struct invocation *inv, const struct acquisition *a, struct err *err)
{
	enum status status = ST_OK;

	if (inv->options.json)
		print_lease(inv->operand[0], &a->lease);
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
cmd_acquire_failed(const struct invocation *inv, int code)
{
	static const char *const names[] = { "DLOCK_KEY", "DLOCK_TOKEN", "DLOCK_FENCE", "DLOCK_TTL_MS" };
	const bool fish = inv->options.export_shell == SHELL_FISH;
	struct err ignored;
	size_t i;

	if (!inv->options.export_lines || (inv->command != NULL && inv->command->bit != CMD_ACQUIRE))
		return;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("%s %s;\n", fish ? "set -e" : "unset", names[i]);
	/* With -E 0 it must fail, too. */
	printf(fish ? "sh -c 'exit %d'\n" : "(exit %d)\n", code == 0 ? (int)ST_HELD : code);
	(void)output_flush(&ignored);
}

/* -- renew and release ------------------------------------------------------ */

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
