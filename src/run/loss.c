/* SPDX-License-Identifier: MIT */
#include "run/loss.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"

/* Append which nodes have restarted since the lock was acquired, if that instant is known.  False: none is known. */
static bool
add_restarts(const struct record *r, const struct lease *lease, struct text *text)
{
	const int64_t held_s = lease->sent_us > 0 ? (clock_now_us() - lease->sent_us + 999999) / 1000000 : -1;
	bool any = false;
	char up[32];
	int i;

	for (i = 0; i < r->nodes; i++) {
		if (r->node[i].up_s <= 0 || r->node[i].up_s - 1 > held_s) /* a server counts the clock's seconds */
			continue;
		duration_show((r->node[i].up_s - 1) * 1000, up, sizeof(up));
		text_addf(text, "%s%s restarted %s ago", any ? ", " : "", r->node[i].name, up);
		any = true;
	}
	if (any)
		text_addf(text, ", perhaps without its data");
	return any;
}

enum status
loss_explain(struct backend *backend, const struct lease *lease, struct loss *loss, struct err *err)
{
	const struct look_args args = { .what = LOOK_STATE,
		.count = 1,
		.wait = { CLOCK_NEVER, loss->interrupt_fd },
		.lost = lease->token };
	struct text text = text_in(err->text, sizeof(err->text));
	struct record *const r = calloc(1, sizeof(*r));
	const struct holder *h;
	char at[TIME_SIZE], ago[32];
	struct err ignored;

	loss->holder = (struct holder){ .token = "" };
	loss->broken = (struct broken){ .token = "" };
	if (r == NULL)
		return loss_error(loss->ownership, err);
	r->key = lease->key;
	(void)backend->service->look(backend, &args, r, &ignored);
	if (r->status != ST_OK) {
		r->broken.token[0] = '\0';
		r->nodes = 0;
	}
	text_addf(&text, "gone: ");
	/* The token of a hold begins with that of its lock. */
	if (r->broken.token[0] != '\0' && strncmp(r->broken.token, lease->token, strlen(r->broken.token)) == 0) {
		loss->broken = r->broken;
		duration_show(r->broken.ago_ms, ago, sizeof(ago));
		text_addf(&text, "broken by ");
		text_add_quoted(&text, r->broken.owner, strlen(r->broken.owner));
		text_addf(&text, " at %s, %s ago", duration_show_time(clock_wall_us() - r->broken.ago_ms * 1000, at),
		    ago);
	} else if (!add_restarts(r, lease, &text))
		text_addf(&text, "it expired, was broken or was released");
	h = record_holder(r);
	if (h->state == LOCK_OTHER_CLIENT ||
	    (h->state != LOCK_FREE && strncmp(h->token, lease->token, strlen(h->token)) != 0)) {
		loss->holder = *h;
		text_addf(&text, "; ");
		holder_say(h, "held by another: ", &text);
	} else if (loss->ownership == OWNED_BY_ANOTHER)
		text_addf(&text, "; held by another");
	record_free(r);
	free(r);
	return ST_NO;
}
