/* SPDX-License-Identifier: MIT */
#include "cli/acquisition.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/output.h"

/*
 * The status line on a terminal while dlock waits: the holder, its label, the time so far, and when the lease ends.
 */
struct line {
	const char *key;
	int64_t since_us;
	bool shown;
};

static void
describe(struct text *text, const struct holder *h)
{
	char length[32];

	if (h == NULL)
		return;
	text_addf(text, ", held by ");
	holder_describe(h, "a client that is not dlock", text);
	if (h->held_ms >= 0) {
		duration_show(h->held_ms, length, sizeof(length));
		text_addf(text, " for %s", length);
	}
	if (h->left_ms >= 0) {
		duration_show(h->left_ms, length, sizeof(length));
		text_addf(text, ", lease ends in %s", length);
	}
}

static void
draw(void *context, const struct holder *holder)
{
	struct line *const line = context;
	const size_t columns = output_extent(STDERR_FILENO).columns; /* a wider line could not be erased */
	char buffer[1024], waited[32];
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct text text = text_in(buffer, columns < sizeof(buffer) ? columns : sizeof(buffer));

	duration_show((clock_now_us() - line->since_us) / 1000, waited, sizeof(waited));
	text_addf(&text, "dlock: ");
	text_add_shown(&text, line->key, strlen(line->key));
	text_addf(&text, ": waiting for %s", waited);
	describe(&text, holder);
	if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0) { /* ^S must not hold up the wait */
		fprintf(stderr, "\r\033[K%s", buffer);
		line->shown = true;
	}
}

enum status
acquisition_open(struct acquisition *a, struct invocation *inv, struct err *err)
{
	enum status status;

	a->backend = NULL;
	status = setup_key(inv, inv->operand[0], a->key, err);
	if (status == ST_OK)
		status = setup_acquire(inv, a->key, a->owner, &a->args, err);
	if (status == ST_OK)
		status = setup_service(inv, &a->backend, err);
	if (status == ST_OK && !signals_open(&a->signals, &inv->given_mask))
		status = err_system(err, errno, "cannot watch for signals");
	return status;
}

enum status
acquisition_acquire(struct acquisition *a, struct invocation *inv, struct err *err)
{
	struct line line = { .key = inv->operand[0], .since_us = clock_now_us() };
	enum status status;
	int64_t took_us;

	if (!inv->options.quiet && !inv->options.verbose && isatty(STDERR_FILENO))
		a->args.waiting = draw;
	a->args.context = &line;
	status = a->backend->ops->acquire(a->backend, &a->args, a->signals.fd, &a->lease, err);
	took_us = clock_now_us() - line.since_us;
	if (line.shown)
		fputs("\r\033[K", stderr);
	if (status == ST_OK)
		log_debug(&inv->log, "acquired the lock in %" PRId64 ".%" PRId64 " ms", took_us / 1000,
		    took_us % 1000 / 100);
	if (status == ST_INTERRUPTED)
		inv->died_of = signals_next(&a->signals, NULL);
	setup_blame_key(inv, status, err);
	return status;
}

void
acquisition_close(struct acquisition *a)
{
	if (a->backend != NULL)
		a->backend->ops->close(a->backend);
}
