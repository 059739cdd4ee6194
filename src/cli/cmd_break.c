/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "cli/view.h"
#include "lock/lease.h"

/* -- Output ----------------------------------------------------------------- */

static bool
is_held(const struct holder *h)
{
	return h->state == LOCK_HELD || h->state == LOCK_SHARED;
}

/*
 * When its command will have ended: its next renewal, which may take a round, notices that the lock is gone, and
 * --kill-after is at most a third of the lease.  -1: its end does not follow, or it has ended.
 */
static int64_t
ends_within_ms(const struct holder *h)
{
	const int64_t ttl_ms = h->ttl_ms > 0 ? h->ttl_ms : h->left_ms;

	if (!is_held(h) || holder_from_acquire(h))
		return -1;
	return ttl_ms / 3 + lease_node_timeout_ms(ttl_ms) + (holder_has_keeper(h) ? 0 : ttl_ms / 3);
}

/* Append how a lock is held, and what follows from breaking it. */
static void
describe(struct text *text, const struct record *r, const struct holder *h, bool others)
{
	char length[32];

	holder_say(h, "held by ", text);
	if (r->nodes > 1)
		text_addf(text, ", on %d of %d nodes", h->nodes, r->nodes);
	if (others)
		text_addf(text, ", and by others");
	if (h->state == LOCK_OTHER_CLIENT)
		text_addf(text, "; its client may not notice");
	else if (h->state == LOCK_HANDOVER)
		text_addf(text, "; its command has ended");
	else if (is_held(h) && holder_from_acquire(h))
		text_addf(text, "; its script learns of it by renew or release only");
	else if (is_held(h)) {
		duration_show((ends_within_ms(h) + 999) / 1000 * 1000, length, sizeof(length));
		text_addf(text, "; its %s within %.*s%s",
		    holder_has_keeper(h)	  ? "process gets a signal"
			: h->state == LOCK_SHARED ? "commands end"
						  : "command ends",
		    (int)strcspn(length, "."), length, strchr(length, '.') != NULL ? "s" : "");
	}
}

/* -- The question ----------------------------------------------------------- */

/*
 * Show the holders and ask, on the terminal itself, even if standard output is redirected.  "y" and "yes" are ST_OK;
 * anything else is not, nor is the end of file.
 */
static enum status
ask(const char *key, const struct record *r, struct err *err)
{
	const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	char buffer[1400], shown[300], answer[8] = "", c = '\0';
	struct text text;
	size_t length = 0;
	int i;

	if (terminal < 0)
		return err_system(err, errno, "cannot open the terminal");
	for (i = 0; i < r->holders; i++) {
		text = text_in(buffer, sizeof(buffer));
		describe(&text, r, &r->holder[i], false);
		dprintf(terminal, "%s: %s\n", text_show(key, shown, sizeof(shown)), buffer);
	}
	dprintf(terminal, "Break it? [y/N] ");
	while (read(terminal, &c, 1) == 1 && c != '\n') {
		if (length + 1 < sizeof(answer)) /* a text that is cut off here is still no "yes" */
			answer[length++] = c;
	}
	(void)close(terminal);
	if (c == '\n' && (strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 || strcmp(answer, "yes") == 0))
		return ST_OK;
	return err_set(err, ST_HELD, "not broken: it is still held");
}

/* -- Breaking --------------------------------------------------------------- */

/* Break what was shown.  ST_OK: broken.  ST_NO: it has ended meanwhile.  ST_HELD: another holds it now. */
static enum status
break_holders(const struct invocation *inv, struct backend *backend, const struct record *r, struct err *err)
{
	char owner[OWNER_MAX + 1]; /* of this process */
	struct break_args args = { .key = r->key, .by = owner };
	enum ownership ownership = OWNED_BY_NOBODY;
	enum status status = ST_OK;
	int i, broken = 0;

	setup_owner(inv, owner);
	for (i = 0; i < r->holders && (status == ST_OK || status == ST_NO); i++) {
		args.holder = &r->holder[i];
		status = backend->service->break_holder(backend, &args, &ownership, err);
		broken += status == ST_OK;
	}
	if (status != ST_OK && status != ST_NO)
		return status;
	if (broken > 0) {
		err->text[0] = '\0';
		return ST_OK;
	}
	if (ownership == OWNED_BY_ANOTHER)
		return err_set(err, ST_HELD, "not broken: the holder has changed since it was shown");
	return ST_NO;
}

/* -- Asking ----------------------------------------------------------------- */

#define ASK_LEAST_US 50000
#define ASK_MOST_US 1000000

/* Is it a holder that can be asked? */
static enum status
check_asked(const struct record *r, const char **outcome, struct err *err)
{
	const struct holder *const h = &r->holder[0];
	char held[700];
	struct text text = text_in(held, sizeof(held));

	holder_say(h, "held by ", &text);
	if (r->holders > 1) {
		*outcome = "contended";
		return err_set(err, ST_HELD, "not asked: several contend for the lock, and none has it");
	}
	if (h->state == LOCK_OTHER_CLIENT)
		return err_set(err, ST_USAGE, "%s; only dlock can be asked to end, use --force to break the lock",
		    held);
	if (h->state != LOCK_KEPT)
		return ST_OK;
	*outcome = "kept";
	return err_set(err, ST_HELD, "nothing runs: %s; dlock break allows another run", held);
}

/*
 * Ask the holder to end, and wait until it has: then its command has ended, or its lease.  The request is repeated,
 * since a node may have lost it, and its reply says whether the holder is still there.
 */
static enum status
ask_to_end(const struct invocation *inv, struct backend *backend, const struct record *r, struct err *err)
{
	const int64_t began_us = clock_now_us(), wait_ms = inv->options.wait_ms;
	const bool forever = wait_ms == DURATION_FOREVER || options_origin(&inv->options, "wait") == ORIGIN_DEFAULT;
	struct wait pause = { .interrupt_fd = -1 };
	char owner[OWNER_MAX + 1], shown[300], held[700], waited[32];
	const struct break_args args = { .key = r->key, .holder = &r->holder[0], .by = owner };
	struct text text = text_in(held, sizeof(held));
	enum ownership ownership;
	enum status status;
	int64_t length_us;

	setup_owner(inv, owner);
	holder_say(&r->holder[0], "held by ", &text);
	for (length_us = ASK_LEAST_US;; length_us = clock_sooner(2 * length_us, ASK_MOST_US)) {
		status = backend->service->ask(backend, &args, &ownership, err);
		if (status == ST_NO)
			return ST_OK;
		if (status != ST_OK && (status != ST_NO_QUORUM || length_us == ASK_LEAST_US))
			return status;
		if (length_us == ASK_LEAST_US && !inv->options.quiet)
			log_warn(&inv->log, "%s: asked to end; %s%s", text_show(inv->operand[0], shown, sizeof(shown)),
			    held, holder_from_acquire(&r->holder[0]) ? "; its script learns of it by renew" : "");
		pause.until_us = clock_add(clock_now_us(), length_us);
		if (!forever)
			pause.until_us = clock_sooner(pause.until_us, clock_add(began_us, wait_ms * 1000));
		if (pause.until_us <= clock_now_us())
			break;
		(void)clock_wait(&pause);
	}
	duration_show(wait_ms, waited, sizeof(waited));
	return status != ST_OK ? status
			       : err_set(err, ST_HELD, "asked to end, and it still holds the lock; waited %s", waited);
}

/* *outcome: the word for --json; NULL: not known. */
static enum status
ask_it(struct invocation *inv, struct backend *backend, const struct record *r, const char **outcome, struct err *err)
{
	static const struct look_args look = { .what = LOOK_STATE, .count = 1, .wait = { CLOCK_NEVER, -1 } };
	struct record *const now = calloc(1, sizeof(*now));
	enum status status = check_asked(r, outcome, err);

	if (now == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	if (status == ST_OK) {
		status = ask_to_end(inv, backend, r, err);
		*outcome = status == ST_OK ? "ended" : "asked";
		err->text[status == ST_OK ? 0 : strlen(err->text)] = '\0';
	}
	now->key = r->key;
	if (status == ST_OK && backend->service->look(backend, &look, now, err) == ST_OK && now->status == ST_OK &&
	    now->holders == 1 &&
	    (strcmp(record_holder(now)->token, r->holder[0].token) == 0 ||
		(r->holder[0].state == LOCK_SHARED && record_holder(now)->state == LOCK_KEPT)))
		status = check_asked(now, outcome, err);
	record_free(now);
	free(now);
	return status;
}

/* *outcome: the word for --json; NULL: not known. */
static enum status
break_it(struct invocation *inv, struct backend *backend, struct record *r, const char **outcome, struct err *err)
{
	static const struct look_args look = { .what = LOOK_STATE | LOOK_EXACT,
		.count = 1,
		.wait = { CLOCK_NEVER, -1 } };
	enum status status = backend->service->look(backend, &look, r, err);
	char held[700];
	struct text text = text_in(held, sizeof(held));
	int i;

	if (status == ST_OK && r->status != ST_OK) {
		*err = r->err;
		status = r->status;
	}
	for (i = 0; i < r->holders && status == ST_OK; i++) {
		if (strcmp(r->holder[i].fingerprint, "-") == 0)
			return err_set(err, ST_USAGE,
			    "KEY is a %s that is too large to be a lock; to delete it, use a client of the service",
			    r->holder[0].type);
	}
	if (status == ST_OK && r->holders == 0 && setup_is_pattern(inv->operand[0]))
		return err_set(err, ST_USAGE,
		    "'%s' is a PATTERN, and no lock has just this name; name one KEY, see dlock status for those that match",
		    text_show(inv->operand[0], held, sizeof(held)));
	if (status == ST_OK && r->holders == 0)
		status = ST_NO;
	if (status == ST_OK && inv->options.ask)
		return ask_it(inv, backend, r, outcome, err);
	if (status == ST_OK && !inv->options.force &&
	    !isatty(STDIN_FILENO)) { /* the holder is shown, for whom to ask */
		describe(&text, r, &r->holder[0], false);
		return err_set(err, ST_USAGE,
		    "%s. Standard input is not a terminal; use --force to break the lock without confirmation", held);
	}
	if (status == ST_OK && !inv->options.force) {
		*outcome = "kept";
		status = ask(inv->operand[0], r, err);
	}
	if (status == ST_OK) {
		*outcome = "changed";
		status = break_holders(inv, backend, r, err);
	}
	if (status == ST_OK || status == ST_NO)
		*outcome = status == ST_OK ? "broken" : "free";
	return status;
}

enum status
cmd_break(struct invocation *inv, struct err *err)
{
	static const struct holder nobody;
	struct record *const r = calloc(1, sizeof(*r));
	const int64_t began_us = clock_now_us();
	const char *outcome = NULL;
	struct backend *backend = NULL;
	const struct holder *h;
	char key[KEY_MAX + 1], shown[300], buffer[1400];
	struct text text = text_in(buffer, sizeof(buffer));
	enum status status;
	int64_t ends_ms;
	struct json j;

	if (r == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	r->key = key;
	status = setup_key(inv, inv->operand[0], key, err);
	if (status == ST_OK && inv->options.ask && inv->options.force)
		status = err_set(err, ST_USAGE, "--ask and --force cannot be used together");
	if (status == ST_OK && !inv->options.ask && options_origin(&inv->options, "wait") == ORIGIN_LINE)
		status = err_set(err, ST_USAGE, "--wait is an option of break only with --ask");
	if (status == ST_OK)
		status = setup_service(inv, &backend, err);
	if (status == ST_OK) {
		status = break_it(inv, backend, r, &outcome, err);
		backend->service->close(backend);
	}
	h = status == ST_NO ? &nobody : &r->holder[0];
	if (inv->options.json && outcome != NULL && (status == ST_OK || status == ST_NO || status == ST_HELD)) {
		j = json_begin_line(stdout);
		json_string(&j, "key", inv->operand[0]);
		json_string(&j, "outcome", outcome);
		view_json_who(&j, h);
		ends_ms = status == ST_OK && !inv->options.ask ? ends_within_ms(h) : -1;
		json_number_or_null(&j, "ends_within_ms", ends_ms, ends_ms >= 0);
		json_end_line(&j);
	} else if (!inv->options.quiet && status == ST_OK) {
		if (h->held_ms >= 0) /* when it was seen; it has ended later */
			r->holder[0].held_ms += (clock_now_us() - began_us) / 1000;
		if (inv->options.ask)
			holder_say(h, "held by ", &text);
		else
			describe(&text, r, h, r->holders > 1);
		printf("%s: %s; it was %s\n", text_show(inv->operand[0], shown, sizeof(shown)),
		    inv->options.ask ? "ended" : "broken", buffer);
	}
	if (status == ST_NO)
		(void)err_set(err, ST_NO,
		    inv->options.ask ? "nobody to ask: the lock is free" : "not broken: the lock is free");
	if (status == ST_NO || status == ST_HELD || (status == ST_USAGE && r->holders > 0))
		setup_blame_key(inv, ST_HELD, err);
	free(r);
	return output_end(status, err);
}
