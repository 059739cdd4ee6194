/* SPDX-License-Identifier: MIT */
#include "cli/waiting.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"

/* A line that is wider than the terminal could not be erased. */
static size_t
terminal_columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 4 ? size.ws_col : 80;
}

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
	struct waiting_line *line = context;
	const size_t columns = terminal_columns();
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

void
waiting_line_start(struct waiting_line *line, const struct invocation *inv, struct acquire_args *args)
{
	line->key = inv->operand[0];
	line->since_us = clock_now_us();
	line->shown = false;
	line->log = inv->log;
	args->waiting = !inv->options.quiet && !inv->options.verbose && isatty(STDERR_FILENO) ? draw : NULL;
	args->context = line;
}

void
waiting_line_end(struct waiting_line *line, enum status status)
{
	const int64_t took_us = clock_now_us() - line->since_us;

	if (line->shown)
		fputs("\r\033[K", stderr);
	line->shown = false;
	if (status == ST_OK)
		log_debug(&line->log, "acquired the lock in %" PRId64 ".%" PRId64 " ms", took_us / 1000,
		    took_us % 1000 / 100);
}
