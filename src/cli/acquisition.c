/* SPDX-License-Identifier: MIT */
#include "cli/acquisition.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/layout.h"
#include "cli/output.h"
#include "lock/history.h"
#include "run/loss.h"

/* The pause between two tries to reach the nodes; it doubles from the one to the other. */
#define NODE_PAUSE_LEAST_US 100000
#define NODE_PAUSE_MOST_US 1000000

#define REDRAW_US 1000000 /* of the status line */
#define MINUTE_US 60000000

#define PLACE_FORMAT ", %" PRId64 " before us"

/*
 * Messages while dlock waits: a status line on a terminal, with the holder, its label, the time so far, and when
 * the lease ends; or elsewhere a line for each minute.  The history is asked for once for each holder.
 */
struct line {
	const struct acquisition *of;
	bool recalls;		  /* there may be a history */
	char past_of[TOKEN_SIZE]; /* the holder of the lock when it was asked for, */
	char past[100];		  /* and what it says of earlier runs */
	const struct log *log;
	const struct err *why;	     /* why the last try failed */
	char key[200];		     /* for messages */
	char lead[HOLDER_LEAD_SIZE]; /* precedes the holder: "held by " */
	int64_t since_us;	     /* the operation has begun */
	bool shown;		     /* there is a status line */
	int64_t began_us;	     /* the wait has begun; 0: there was none */
	int64_t next_say_us;	     /* the next line */
};

/* The parts of the status line: the wait, and those of the sentence about the holder. */
enum {
	KEY,
	WAITED,
	PLACE,
	SENTENCE,
	PAST = SENTENCE + HOLDER_PARTS,
	PARTS
};

static const struct layout_column parts[PARTS] = {
	[KEY] = { "key", LAYOUT_TEXT, 0 },
	[WAITED] = { "waited", LAYOUT_WHOLE, 0 },
	[PLACE] = { "place", LAYOUT_WHOLE, 0 },
	[SENTENCE + HOLDER_LEAD] = { "lead", LAYOUT_LEAD, 0 },
	[SENTENCE + HOLDER_OWNER] = { "owner", LAYOUT_OWNER, 0 },
	[SENTENCE + HOLDER_LABEL] = { "label", LAYOUT_TEXT, 0 },
	[SENTENCE + HOLDER_SINCE] = { "since", LAYOUT_WHOLE, 3 },
	[SENTENCE + HOLDER_LEFT] = { "left", LAYOUT_WHOLE, 1 },
	[PAST] = { "past", LAYOUT_WHOLE, 2 },
};

/* The duration of earlier runs, as a hint for this holder; "" if it is not known. */
static const char *
recall(struct line *line, const struct holder *holder)
{
	const struct acquisition *const a = line->of;
	const struct look_args args = { .what = LOOK_HISTORY, .count = 1, .wait = { CLOCK_NEVER, a->signals.fd } };
	struct record record = { .key = a->key };
	struct text text;
	struct err ignored;

	if (!line->recalls || (holder->state != LOCK_HELD && holder->state != LOCK_SHARED))
		return "";
	if (strcmp(line->past_of, holder->token) == 0)
		return line->past;
	memcpy(line->past_of, holder->token, TOKEN_SIZE);
	text = text_in(line->past, sizeof(line->past));
	if (a->backend->service->look(a->backend, &args, &record, &ignored) == ST_OK && record.status == ST_OK)
		history_say_runs(&record, &text);
	record_free(&record);
	return line->past;
}

/* Add the words before the holder, only a few: 80 columns must have room for the holder. */
static void
add_lead(const struct line *line, const struct holder *holder, struct text *text)
{
	const int slots = line->of->args.slots;

	if (holder->state == LOCK_SHARED && holder->holds > 0)
		text_addf(text, ", shared by %" PRId64 ", first ", holder->holds);
	else if (holder->state == LOCK_SHARED)
		text_addf(text, ", shared, first by ");
	else
		text_addf(text, slots > 1 ? ", %d held, first by " : ", held by ", slots);
}

static int64_t
draw(void *context, const struct holder *holder, int64_t before)
{
	static const char begin[] = "dlock: ";
	struct line *const line = context;
	const size_t columns = output_extent(STDERR_FILENO).columns;
	const size_t taken = sizeof(begin) - 1 + sizeof("^C") - 1; /* a line that wraps could not be erased */
	struct layout l = { .columns = PARTS,
		.width = columns > taken ? columns - taken : 1,
		.sentence = true,
		.line_end = "" };
	char part[PARTS][LAYOUT_CELL_MAX], since[32], long_lead[HOLDER_LEAD_SIZE], length[32], *shown = NULL;
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct text text[PARTS], at = text_in(since, sizeof(since)), lead = text_in(long_lead, sizeof(long_lead));
	struct text *sentence[HOLDER_PARTS];
	struct err ignored = { "" };
	size_t size;
	int i;

	memcpy(l.column, parts, sizeof(parts));
	for (i = 0; i < PARTS; i++)
		text[i] = text_in(part[i], sizeof(part[i]));
	for (i = 0; i < HOLDER_PARTS; i++)
		sentence[i] = i == HOLDER_SINCE ? &at : i == HOLDER_LEAD ? &lead : &text[SENTENCE + i];
	duration_show((clock_now_us() - line->since_us) / 1000, length, sizeof(length));
	text_addf(&text[KEY], "%s", line->key);
	text_addf(&text[WAITED], ": waiting for %s", length);
	if (before > 0)
		text_addf(&text[PLACE], PLACE_FORMAT, before);
	if (holder != NULL) {
		text_addf(&text[PAST], "%s", recall(line, holder));
		if (holder->state == LOCK_KEPT)
			text_addf(sentence[HOLDER_LABEL], ", ");
		else
			add_lead(line, holder, &text[SENTENCE + HOLDER_LEAD]);
		holder_describe(holder, "", sentence);
	} else if (line->why->text[0] != '\0')
		text_addf(sentence[HOLDER_LABEL], ", %s", line->why->text);
	if (at.length > 0) { /* there is hardly room for more than how long */
		duration_show(holder->held_ms, length, sizeof(length));
		text_addf(&text[SENTENCE + HOLDER_SINCE], " for %s", length);
	}
	l.out = open_memstream(&shown, &size);
	for (i = 0; i < PARTS && l.out != NULL; i++)
		(void)layout_add(&l, part[i], "", &ignored);
	if (l.out != NULL) {
		layout_end(&l);
		(void)fclose(l.out);
	}
	if (shown != NULL && poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0) { /* ^S must not hold up the wait */
		fprintf(stderr, "\r\033[K%s%s", begin, shown);
		line->shown = true;
	}
	free(shown);
	line->began_us = line->since_us;
	return clock_add(clock_now_us(), REDRAW_US);
}

/* Without a terminal: "KEY: waiting; held by ...", and each minute "KEY: waiting for 3m; ...". */
static int64_t
say_waiting(void *context, const struct holder *holder, int64_t before)
{
	struct line *const line = context;
	const int64_t now = clock_now_us();
	char buffer[900], waited[32];
	struct text text = text_in(buffer, sizeof(buffer));

	if (line->began_us != 0 && now < line->next_say_us)
		return line->next_say_us;
	text_addf(&text, "%s: waiting", line->key);
	if (line->began_us == 0)
		line->began_us = line->next_say_us = now;
	else {
		duration_show((now - line->began_us) / 1000, waited, sizeof(waited));
		text_addf(&text, " for %s", waited);
	}
	if (before > 0)
		text_addf(&text, PLACE_FORMAT, before);
	text_addf(&text, "; ");
	if (holder != NULL) {
		holder_say(holder, line->lead, &text);
		text_addf(&text, "%s", recall(line, holder));
	} else
		text_addf(&text, "%s", line->why->text[0] != '\0' ? line->why->text : "the holder is not known");
	log_warn(line->log, "%s", buffer);
	while (line->next_say_us <= now)
		line->next_say_us = clock_add(line->next_say_us, MINUTE_US);
	return line->next_say_us;
}

/* Say at the end how long the lock was waited for; of one that is kept for longer than --wait, that it is of no use. */
static void
end_wait(const struct line *line, bool terminal, const struct holder *holder, enum status status, struct err *err)
{
	char length[32], suffix[100];

	duration_show((clock_now_us() - line->began_us) / 1000, length, sizeof(length));
	(void)snprintf(suffix, sizeof(suffix), "waited %s", length);
	if (line->began_us != 0 && status == ST_OK && !terminal)
		log_warn(line->log, "%s: got it after %s", line->key, length);
	else if (line->began_us != 0 && (status == ST_HELD || status == ST_NO_QUORUM))
		err_suffix(err, suffix);
	if (status != ST_HELD || holder->state != LOCK_KEPT)
		return;
	duration_show(holder->left_ms, length, sizeof(length));
	(void)snprintf(suffix, sizeof(suffix), "it is free in %s, dlock break allows another run", length);
	err_suffix(err, suffix);
}

/* -- --node-wait ------------------------------------------------------------ */

/*
 * Try to acquire the lock until enough nodes can be reached, or --node-wait is over.  It does not wait for the lock:
 * --wait counts from the return, and that of --replace, which the lease of the holder bounds.
 */
static enum status
reach_nodes(struct acquisition *a, const struct invocation *inv, struct err *err)
{
	const struct options *o = &inv->options;
	const bool forever = o->node_wait_ms == DURATION_FOREVER;
	const int64_t until_us = forever ? CLOCK_NEVER : clock_add(clock_now_us(), o->node_wait_ms * 1000);
	const bool waits = a->args.wait.until_us != 0;
	struct wait pause = { .interrupt_fd = a->signals.fd };
	int64_t pause_us = NODE_PAUSE_LEAST_US;
	char length[32], shown[200];
	enum status status;

	a->args.wait.until_us = 0;
	for (;;) {
		status = a->backend->service->acquire(a->backend, &a->args, &a->lease, err);
		if (status != ST_NO_QUORUM || clock_now_us() >= until_us)
			break;
		if (pause_us == NODE_PAUSE_LEAST_US && !o->quiet) {
			duration_show(o->node_wait_ms, length, sizeof(length));
			log_warn(&inv->log, "%s: %s; waiting %s (--node-wait)",
			    text_show(inv->operand[0], shown, sizeof(shown)), err->text,
			    forever ? "until it can be reached" : length);
		}
		pause.until_us = clock_sooner(clock_add(clock_now_us(), pause_us), until_us);
		if (clock_wait(&pause))
			return err_set(err, ST_INTERRUPTED, "interrupted");
		pause_us = clock_sooner(2 * pause_us, NODE_PAUSE_MOST_US);
	}
	if (waits)
		setup_wait(inv, &a->args);
	else if (status == ST_HELD && o->replace && options_origin(o, "wait") == ORIGIN_DEFAULT &&
	    (a->holder.state == LOCK_HELD || a->holder.state == LOCK_SHARED || a->holder.state == LOCK_HANDOVER) &&
	    a->holder.left_ms >= 0)
		a->args.wait.until_us = clock_add(clock_now_us(), (a->holder.left_ms + o->kill_after_ms) * 1000);
	return status;
}

/* -- The operation ---------------------------------------------------------- */

enum status
acquisition_open(struct acquisition *a, struct invocation *inv, struct err *err)
{
	enum status status;

	memset(&a->lease, 0, sizeof(a->lease));
	a->backend = NULL;
	a->holder.token[0] = '\0';
	a->holder.state = LOCK_FREE;
	status = setup_key(inv, inv->operand[0], a->key, err);
	if (status == ST_OK)
		status = setup_acquire(inv, a->key, a->owner, &a->args, err);
	if (status == ST_OK && inv->options.ttl_ms > DAY_MS)
		setup_warn(inv, "--ttl is more than a day: if the holder crashes, others wait for so long%s",
		    inv->command->bit == CMD_RUN ? "; a short lease is enough, run renews it" : "");
	if (status == ST_OK)
		status = setup_service(inv, &a->backend, err);
	if (status == ST_OK && !signals_open(&a->signals, &inv->given_mask))
		status = err_system(err, errno, "cannot watch for signals");
	if (status == ST_OK)
		status = setup_nesting(inv, a->backend, &a->args, err);
	a->args.wait.interrupt_fd = a->signals.fd;
	a->args.slot_key = a->slot_key;
	return status;
}

const char *
acquisition_name(const struct acquisition *a, const struct invocation *inv)
{
	return a->lease.slot > 0 ? a->lease.key + a->args.prefix_length : inv->operand[0];
}

void
acquisition_json(const struct acquisition *a, const struct invocation *inv, struct json *j)
{
	json_string(j, "key", acquisition_name(a, inv));
	if (inv->options.slots == 0)
		return;
	json_number_or_null(j, "slot", a->lease.slot, a->lease.slot > 0);
	json_number(j, "slots", inv->options.slots);
}

enum status
acquisition_acquire(struct acquisition *a, struct invocation *inv, struct err *err)
{
	struct line line = { .of = a,
		.recalls = inv->service->keeps_history && inv->options.slots == 0,
		.log = &inv->log,
		.why = err,
		.since_us = clock_now_us() };
	const bool terminal = !inv->options.verbose && isatty(STDERR_FILENO);
	static const struct holder nobody;
	struct loss loss;
	const bool first = inv->options.node_wait_ms > 0 ||
	    (inv->options.replace && options_origin(&inv->options, "wait") == ORIGIN_DEFAULT);
	enum status status = ST_HELD;

	(void)text_show(inv->operand[0], line.key, sizeof(line.key));
	(void)holder_lead(a->args.slots, line.lead);
	if (!inv->options.quiet && (inv->options.wait_ms != 0 || inv->options.replace))
		a->args.waiting = terminal ? draw : say_waiting;
	a->args.context = &line;
	a->args.refused_by = &a->holder;
	if (first)
		status = reach_nodes(a, inv, err);
	if (!first || (status == ST_HELD && a->args.wait.until_us != 0))
		status = a->backend->service->acquire(a->backend, &a->args, &a->lease, err);
	a->waited_us = clock_now_us() - line.since_us;
	if (line.shown)
		fputs("\r\033[K", stderr);
	if (status == ST_OK) {
		err->text[0] = '\0'; /* of earlier tries, and of holds that are gone */
		log_debug(&inv->log, "acquired the lock in %" PRId64 ".%" PRId64 " ms", a->waited_us / 1000,
		    a->waited_us % 1000 / 100);
	}
	if (status == ST_INTERRUPTED)
		inv->died_of = signals_next(&a->signals, NULL);
	if (status == ST_NO) { /* --token */
		a->lease.key = a->key;
		loss.ownership = OWNED_BY_NOBODY;
		loss.interrupt_fd = -1;
		(void)loss_explain(a->backend, &a->lease, &loss, err);
		if (loss.holder.token[0] != '\0')
			a->holder = loss.holder;
	}
	end_wait(&line, terminal, a->args.wait.until_us != 0 ? &a->holder : &nobody, status, err);
	setup_blame_key(inv, status, err);
	return status;
}

void
acquisition_close(struct acquisition *a)
{
	if (a->backend != NULL)
		a->backend->service->close(a->backend);
}

/* -- With a command or a process -------------------------------------------- */

enum status
acquisition_supervise(struct acquisition *a, const struct invocation *inv, struct supervision *plan,
    struct supervised *end, struct err *err)
{
	const struct options *o = &inv->options;
	char **const environment = setup_environment(acquisition_name(a, inv), &a->lease);
	const int64_t kill_after_us = o->kill_after_ms * 1000, sixth_us = a->lease.ttl_ms * 1000 / 6;
	enum ownership ownership;
	enum status status;
	char shown_key[200];

	if (environment == NULL) {
		(void)a->backend->service->release(a->backend, &a->lease, 0, &ownership, err);
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	}
	plan->backend = a->backend;
	plan->lease = &a->lease;
	plan->environment = environment;
	plan->shown_key = text_show(acquisition_name(a, inv), shown_key, sizeof(shown_key));
	plan->first_signal = o->first_signal;
	plan->kill_after_us = o->kill_after_given || kill_after_us < sixth_us ? kill_after_us : sixth_us;
	plan->records = o->history > 0 && inv->service->keeps_history;
	plan->only_warn = o->only_warn;
	plan->exec_on_lost = o->exec_on_lost;
	plan->signals = &a->signals;
	status = supervise(plan, end, err);
	free(environment);
	return status;
}
