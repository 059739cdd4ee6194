/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "cli/view.h"
#include "lock/lease.h"

/* -- Output ----------------------------------------------------------------- */

/* "held by root@host:17 (backup) for 3m, 24.3s of its lease left" */
static void
describe_holder(struct text *text, const struct holder *h)
{
	char client[CLIENT_SIZE], unknown[CLIENT_SIZE + 32] = "a client that is not dlock", length[32];

	if (h->other_client && view_client(h, client) != NULL)
		(void)snprintf(unknown, sizeof(unknown), "%s (%s)", client,
		    h->other_type ? "not dlock" : "by its appearance");
	text_addf(text, "held by ");
	holder_describe(h, unknown, text, text);
	if (!h->other_client && h->held_ms >= 0) {
		duration_show(h->held_ms, length, sizeof(length));
		text_addf(text, " for %s", length);
	}
	if (h->handover)
		text_addf(text, ", released already");
	duration_show(h->left_ms < 0 ? 0 : h->left_ms, length, sizeof(length));
	text_addf(text, ", %s%s", h->left_ms < 0 ? "without expiry" : length,
	    h->left_ms < 0 ? "" : " of its lease left");
	if (holder_from_acquire(h))
		text_addf(text, ", from acquire");
}

static void
describe(struct text *text, const struct break_side *side, int nodes)
{
	if (side->holder.kept)
		holder_describe_hold(&side->holder, "", text);
	else
		describe_holder(text, &side->holder);
	if (nodes > 1)
		text_addf(text, ", on %d of %d nodes", side->nodes, nodes);
}

/*
 * When its command will have ended, if it has the --kill-after of most: its next renewal, which may take a round, notices
 * that the lock is gone.  -1: its end does not follow, or it has ended.
 */
static int64_t
ends_within_ms(const struct holder *h)
{
	const int64_t ttl_ms = h->ttl_ms > 0 ? h->ttl_ms : h->left_ms;
	const int64_t kill_after_ms = ttl_ms / 6 < KILL_AFTER_MS ? ttl_ms / 6 : KILL_AFTER_MS;

	if (h->other_client || h->handover || holder_from_acquire(h))
		return -1;
	return ttl_ms / 3 + lease_node_timeout_ms(ttl_ms) + (holder_is_kept(h) ? 0 : kill_after_ms);
}

/* Append what follows from breaking it. */
static void
foretell(struct text *text, const struct holder *h)
{
	char length[32];

	if (h->kept)
		return;
	if (h->other_client)
		text_addf(text, "; its client may not notice");
	else if (h->handover)
		text_addf(text, "; its command has ended");
	else if (holder_from_acquire(h))
		text_addf(text, "; its script learns of it by renew or release only");
	else {
		duration_show((ends_within_ms(h) + 999) / 1000 * 1000, length, sizeof(length));
		text_addf(text, "; its %s within %.*s%s", holder_is_kept(h) ? "process gets a signal" : "command ends",
		    (int)strcspn(length, "."), length, strchr(length, '.') != NULL ? "s" : "");
	}
}

static void
print_json(const char *key, const char *outcome, const struct break_plan *p)
{
	const struct holder *h = p->sides > 0 && strcmp(outcome, "free") != 0 ? &p->side[0].holder : NULL;
	const int64_t ends_ms = h != NULL && strcmp(outcome, "broken") == 0 ? ends_within_ms(h) : -1;
	struct json j = json_begin_line(stdout);
	char client[CLIENT_SIZE];

	json_string(&j, "key", key);
	json_string(&j, "outcome", outcome);
	view_json_owner(&j, "owner", h != NULL ? h->owner : "");
	json_string_or_null(&j, "client", h != NULL ? view_client(h, client) : NULL);
	json_string_or_null(&j, "label", h != NULL ? h->label : NULL);
	json_number_or_null(&j, "held_ms", h != NULL ? h->held_ms : 0, h != NULL && !h->other_client);
	json_number_or_null(&j, "ends_within_ms", ends_ms, ends_ms >= 0);
	json_end_line(&j);
}

/* -- The question ----------------------------------------------------------- */

/* Read an answer from the terminal: true for "y" or "yes"; false for anything else, and for end of file. */
static bool
read_yes(int fd)
{
	char answer[8] = "", c = '\0';
	size_t length = 0;

	while (read(fd, &c, 1) == 1 && c != '\n') {
		if (length + 1 < sizeof(answer))
			answer[length++] = c;
		else
			answer[0] = '\0';
	}
	return c == '\n' && (strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 || strcmp(answer, "yes") == 0);
}

/* Show the holder and ask, on the terminal itself, even if standard output is redirected. */
static enum status
ask(const char *key, const struct break_plan *p, struct err *err)
{
	const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	char buffer[1400], shown[300];
	struct text text;
	bool yes;
	int i;

	if (terminal < 0)
		return err_system(err, errno, "cannot open the terminal");
	(void)text_show(key, shown, sizeof(shown));
	for (i = 0; i < p->sides; i++) {
		text = text_in(buffer, sizeof(buffer));
		text_addf(&text, "%s: ", shown);
		describe(&text, &p->side[i], p->view.nodes);
		foretell(&text, &p->side[i].holder);
		dprintf(terminal, "%s\n", buffer);
	}
	dprintf(terminal, "Break it? [y/N] ");
	yes = read_yes(terminal);
	(void)close(terminal);
	return yes ? ST_OK : err_set(err, ST_HELD, "not broken: it is still held");
}

/* Without a terminal to ask at, --force is required.  The message shows the holder, for whom to ask. */
static enum status
refuse(const struct break_plan *p, struct err *err)
{
	char buffer[700];
	struct text text = text_in(buffer, sizeof(buffer));

	describe(&text, &p->side[0], p->view.nodes);
	foretell(&text, &p->side[0].holder);
	return err_set(err, ST_USAGE,
	    "%s. Standard input is not a terminal; use --force to break the lock without "
	    "confirmation",
	    buffer);
}

/* -- Breaking --------------------------------------------------------------- */

static bool
too_large(const struct break_plan *p)
{
	int i;

	for (i = 0; i < p->sides; i++) {
		if (strcmp(p->side[i].fingerprint, "-") == 0)
			return true;
	}
	return false;
}

/* Remove all sides that were shown.  ST_OK: broken.  ST_NO: it has ended meanwhile.  ST_HELD: another holds it now. */
static enum status
break_sides(struct backend *backend, const char *full_key, const struct break_plan *p, struct err *err)
{
	enum ownership ownership = OWNED_BY_NOBODY;
	enum status status = ST_OK;
	int i, broken = 0;

	for (i = 0; i < p->sides && (status == ST_OK || status == ST_NO); i++) {
		status = backend->service->break_commit(backend, full_key, &p->side[i], &ownership, err);
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

/* A lock that is being broken. */
struct breaking {
	struct break_plan plan;
	const char *outcome;	   /* the word for --json; NULL: not known */
	char owner[OWNER_MAX + 1]; /* of this process */
};

static enum status
break_it(struct invocation *inv, struct backend *backend, const char *full_key, struct breaking *b, struct err *err)
{
	struct break_plan *const p = &b->plan;
	const char *key = inv->operand[0];
	int i;
	enum status status = backend->service->break_prepare(backend, full_key, p, err);

	if (status == ST_OK && too_large(p))
		return err_set(err, ST_USAGE,
		    "KEY is a %s that is too large to be a lock; to delete it, use a client of the service",
		    p->side[0].holder.type);
	if (status == ST_OK && (p->view.state == LOCK_FREE || p->sides == 0))
		status = ST_NO;
	if (status == ST_OK && !inv->options.force && !isatty(STDIN_FILENO))
		return refuse(p, err);
	if (status == ST_OK && !inv->options.force) {
		b->outcome = "kept";
		status = ask(key, p, err);
	}
	if (status == ST_OK) {
		b->outcome = "changed";
		for (i = 0; i < p->sides; i++)
			p->side[i].broken_by = b->owner;
		status = break_sides(backend, full_key, p, err);
	}
	if (status == ST_OK || status == ST_NO)
		b->outcome = status == ST_OK ? "broken" : "free";
	return status;
}

static void
print_outcome(const struct invocation *inv, const char *outcome, const struct break_plan *p)
{
	char shown[300], buffer[1400];
	struct text text = text_in(buffer, sizeof(buffer));

	if (inv->options.json) {
		print_json(inv->operand[0], outcome, p);
		return;
	}
	(void)text_show(inv->operand[0], shown, sizeof(shown));
	if (inv->options.quiet || strcmp(outcome, "broken") != 0)
		return;
	describe(&text, &p->side[0], p->view.nodes);
	if (p->sides > 1)
		text_addf(&text, ", and by others");
	foretell(&text, &p->side[0].holder);
	printf("%s: broken; it was %s\n", shown, buffer);
}

int
cmd_break(struct invocation *inv, struct err *err)
{
	struct breaking *breaking = calloc(1, sizeof(*breaking));
	struct backend *backend = NULL;
	char key[KEY_MAX + 1];
	enum status status;

	if (breaking == NULL)
		return (int)err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	setup_owner(inv, breaking->owner);
	status = setup_key(inv, inv->operand[0], key, err);
	if (status == ST_OK)
		status = setup_service(inv, &backend, err);
	if (status == ST_OK) {
		status = break_it(inv, backend, key, breaking, err);
		backend->service->close(backend);
	}
	if (breaking->outcome != NULL && (status == ST_OK || status == ST_NO || status == ST_HELD))
		print_outcome(inv, breaking->outcome, &breaking->plan);
	if (status == ST_NO)
		(void)err_set(err, ST_NO, "not broken: the lock is free");
	if (status == ST_NO || status == ST_HELD || (status == ST_USAGE && breaking->plan.sides > 0))
		setup_blame_key(inv, ST_HELD, err);
	free(breaking);
	return (int)output_end(status, err);
}
