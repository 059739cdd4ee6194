/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/acquisition.h"
#include "cli/command.h"
#include "cli/label.h"
#include "cli/output.h"
#include "cli/report.h"
#include "run/supervisor.h"

/* The state of one run. */
struct run {
	struct invocation *inv;
	char label[LABEL_MAX + 1];
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
	if (o->report != NULL && report_check(o->report, err) != ST_OK)
		return ST_SYSTEM;
	return acquisition_open(&r->acquisition, r->inv, err);
}

static void
warn(const struct run *r, const char *what, const struct err *err)
{
	char shown[200];

	log_warn(&r->inv->log, "%s: %s%s", text_show(r->inv->operand[0], shown, sizeof(shown)), what, err->text);
}

static enum status
run_command(struct run *r, struct err *err)
{
	static char sh[] = "sh", dash_c[] = "-c";
	const struct options *o = &r->inv->options;
	char *shell[] = { sh, dash_c, r->inv->operand[1], NULL };
	struct supervision plan = {
		.argv = o->shell ? shell : r->inv->operand + 1,
		.foreground = o->foreground,
		.max_run_us = o->max_run_ms == DURATION_FOREVER ? 0 : o->max_run_ms * 1000,
		.min_hold_us = o->min_hold_ms * 1000,
		.once_per_us = o->once_per_ms * 1000,
		.log = r->inv->log,
		.quiet = o->quiet,
	};

	return acquisition_supervise(&r->acquisition, r->inv, &plan, &r->end, err);
}

/* What the report calls it. */
static const char *
outcome_of(const struct run *r, enum status status)
{
	if (r->acquired && status != ST_NO_QUORUM)
		return supervised_outcome(status);
	return status == ST_HELD ? "held" : status == ST_INTERRUPTED ? "interrupted" : "no-quorum";
}

/* The exit status of the command, or minus the signal that ended it. */
static int
end_of(int status)
{
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void
print_report(struct run *r, enum status status)
{
	const struct options *o = &r->inv->options;
	const struct report report = { .outcome = outcome_of(r, status),
		.child = { r->end.status >= 0, end_of(r->end.status) },
		.key = r->inv->operand[0],
		.fence = r->acquired ? r->acquisition.lease.fence : 0,
		.holder = r->acquired ? &r->end.holder : &r->acquisition.holder,
		.waited_ms = r->acquisition.waited_us / 1000,
		.held_ms = r->end.held_us / 1000 };
	struct err err;

	if (o->json || o->report != NULL)
		signals_unwatch(&r->acquisition.signals); /* a pipe may have no reader */
	if (o->json) {
		report_print(stdout, &report);
		if (output_flush(&err) != ST_OK)
			warn(r, "", &err);
	}
	if (o->report != NULL && report_write(o->report, &report, &err) != ST_OK)
		warn(r, "the report could not be written: ", &err);
}

/* dlock exits as the command did, unless it ended it. */
static void
exit_as_command(struct invocation *inv, const struct supervised *end, enum status status)
{
	const int code = end_of(end->status);

	if (status == ST_OK && end->ended_by_terminal) /* the calling script must end, too, as it would without dlock */
		inv->died_of = -code;
	/* After --max-run it is 137 if the command was killed, as of timeout(1). */
	if (status == ST_OK || (status == ST_MAX_RUN && code == -SIGKILL))
		inv->exit_status = code < 0 ? 128 - code : code;
}

int
cmd_run(struct invocation *inv, struct err *err)
{
	struct run run = { .inv = inv, .end.status = -1 }, *const r = &run;
	enum status status = prepare(r, err);

	if (status != ST_OK)
		goto out;
	status = acquisition_acquire(&r->acquisition, inv, err);
	if (status == ST_NO) /* for --token; 1 would look like the status of COMMAND */
		status = ST_HELD;
	r->acquired = status == ST_OK;
	if (r->acquired)
		status = run_command(r, err);
	print_report(r, status);
	exit_as_command(inv, &r->end, status);
out:
	/* Each message says which lock it is about; those of a refusal do so already. */
	if (status != ST_HELD && status != ST_NO && status != ST_DENIED)
		setup_name_key(inv, err);
	acquisition_close(&r->acquisition);
	return (int)status;
}
