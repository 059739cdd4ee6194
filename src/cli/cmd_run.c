/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/acquisition.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/label.h"
#include "cli/output.h"
#include "cli/report.h"
#include "run/supervisor.h"

/* The state of one run. */
struct run {
	struct invocation *inv;
	char shown_key[200];
	char label[LABEL_MAX + 1];
	char *shell[4];
	struct acquisition acquisition;
	bool acquired;
	struct supervised end;
};

static enum status
prepare(struct run *r, struct err *err)
{
	struct options *o = &r->inv->options;

	if (o->shell && r->inv->operands > 2)
		return err_set(err, ST_USAGE, "--shell takes COMMAND as one string; quote it");
	if (o->label == NULL) {
		label_default(r->inv->operand + 1, o->shell, r->label);
		o->label = r->label;
	}
	(void)text_show(r->inv->operand[0], r->shown_key, sizeof(r->shown_key));
	if (o->report != NULL && report_check(o->report, err) != ST_OK)
		return ST_SYSTEM;
	return acquisition_open(&r->acquisition, r->inv, err);
}

/* -- The command ------------------------------------------------------------ */

static char *const *
command_of(struct run *r)
{
	static char sh[] = "sh", dash_c[] = "-c";

	if (!r->inv->options.shell)
		return r->inv->operand + 1;
	r->shell[0] = sh;
	r->shell[1] = dash_c;
	r->shell[2] = r->inv->operand[1];
	r->shell[3] = NULL;
	return r->shell;
}

static enum status
run_command(struct run *r, struct err *err)
{
	const struct options *o = &r->inv->options;
	char **const environment = environment_of_lock(r->inv->operand[0], r->acquisition.key, &r->acquisition.lease);
	const struct supervision plan = {
		.backend = r->acquisition.backend,
		.lease = &r->acquisition.lease,
		.argv = command_of(r),
		.environment = environment,
		.shown_key = r->shown_key,
		.foreground = o->foreground,
		.first_signal = o->first_signal,
		.kill_after_us = setup_kill_after_us(o, &r->acquisition.lease),
		.max_run_us = o->max_run_ms == DURATION_FOREVER ? 0 : o->max_run_ms * 1000,
		.min_hold_us = o->min_hold_ms * 1000,
		.once_per_us = o->once_per_ms * 1000,
		.records = setup_records(o),
		.only_warn = o->only_warn,
		.exec_on_lost = o->exec_on_lost,
		.signals = &r->acquisition.signals,
		.log = r->inv->log,
		.quiet = o->quiet,
	};
	enum ownership ownership;
	enum status status;
	struct err ignored;

	if (environment == NULL) {
		(void)r->acquisition.backend->service->release(r->acquisition.backend, &r->acquisition.lease, 0,
		    &ownership, &ignored);
		return err_set(err, ST_SYSTEM, "out of memory");
	}
	status = supervise(&plan, &r->end, err);
	free(environment);
	return status;
}

/* -- The outcome ------------------------------------------------------------ */

/* dlock exits as the command did; ^C at the terminal must also end the calling script, as it would without dlock. */
static void
exit_as_command(struct run *r)
{
	const int status = r->end.status;

	if (r->end.ended_by_terminal)
		r->inv->died_of = WTERMSIG(status);
	r->inv->exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *
outcome_of(const struct run *r, enum status status)
{
	static const char *const ends[] = { [OUTCOME_RAN] = "ran",
		[OUTCOME_LOST] = "lost",
		[OUTCOME_MAX_RUN] = "max-run",
		[OUTCOME_NOT_STARTED] = "ran" };

	if (status == ST_OK)
		return ends[r->end.outcome];
	if (status == ST_HELD)
		return "held";
	if (status == ST_INTERRUPTED)
		return "interrupted";
	if (status == ST_NOT_FOUND || status == ST_NOT_EXECUTABLE || (status == ST_SYSTEM && r->acquired))
		return "exec-failed";
	return "no-quorum";
}

static void
print_report(struct run *r, enum status status, int64_t waited_us)
{
	const struct options *o = &r->inv->options;
	const struct report report = { .outcome = outcome_of(r, status),
		.child = { status == ST_OK,
		    WIFSIGNALED(r->end.status) ? -WTERMSIG(r->end.status) : WEXITSTATUS(r->end.status) },
		.key = r->inv->operand[0],
		.fence = r->acquired ? r->acquisition.lease.fence : 0,
		.holder = r->acquired ? &r->end.holder : &r->acquisition.holder,
		.waited_ms = waited_us / 1000,
		.held_ms = r->end.held_us / 1000 };
	struct err err;

	if (o->json || o->report != NULL)
		signals_unwatch(&r->acquisition.signals); /* a pipe may have no reader */
	if (o->json) {
		report_print(stdout, &report);
		if (output_flush(&err) != ST_OK)
			log_warn(&r->inv->log, "%s: %s", r->shown_key, err.text);
	}
	if (o->report != NULL && report_write(o->report, &report, &err) != ST_OK)
		log_warn(&r->inv->log, "%s: the report could not be written: %s", r->shown_key, err.text);
}

int
cmd_run(struct invocation *inv, struct err *err)
{
	const int64_t began_us = clock_now_us();
	struct run *r = calloc(1, sizeof(*r));
	enum status status;
	int64_t waited_us;

	if (r == NULL)
		return (int)err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	r->inv = inv;
	status = prepare(r, err);
	if (status != ST_OK)
		goto out;
	status = acquisition_acquire(&r->acquisition, inv, err);
	if (status == ST_NO) /* for --token; 1 would look like the status of COMMAND */
		status = ST_HELD;
	waited_us = clock_now_us() - began_us;
	r->acquired = status == ST_OK;
	if (r->acquired)
		status = run_command(r, err);
	print_report(r, status, waited_us);
	if (status == ST_OK && r->end.outcome == OUTCOME_LOST)
		status = ST_LOST;
	else if (status == ST_OK && r->end.outcome == OUTCOME_MAX_RUN && r->end.status != SIGKILL)
		status = ST_MAX_RUN; /* one that was killed: 137, as of timeout(1) */
	else if (status == ST_OK)
		exit_as_command(r);
out:
	/* Each message says which lock it is about; those of a refusal do so already. */
	if (status != ST_HELD && status != ST_NO && status != ST_DENIED)
		setup_name_key(inv, err);
	acquisition_close(&r->acquisition);
	free(r);
	return (int)status;
}
