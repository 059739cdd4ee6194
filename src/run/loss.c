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

/* Is this the token of a lock, or of a hold on it? */
static bool
is_of(const char *token, const char *lock)
{
	return strncmp(lock, token, strlen(lock)) == 0;
}

static void
explain(const struct record *r, const struct lease *lease, struct loss *loss, struct text *text)
{
	const struct holder *const h = record_holder(r);
	char at[TIME_SIZE], ago[32];

	if (r->broken.token[0] != '\0' && is_of(lease->token, r->broken.token)) {
		loss->broken = r->broken;
		duration_show(r->broken.ago_ms, ago, sizeof(ago));
		text_addf(text, "gone: broken by ");
		text_add_quoted(text, r->broken.owner, strlen(r->broken.owner));
		text_addf(text, " at %s, %s ago", duration_show_time(clock_wall_us() - r->broken.ago_ms * 1000, at),
		    ago);
	} else {
		text_addf(text, "gone: ");
		if (!add_restarts(r, lease, text))
			text_addf(text, "it expired, was broken or was released");
	}
	if (record_is_held(r) && (h->state == LOCK_OTHER_CLIENT || !is_of(lease->token, h->token))) {
		loss->holder = *h;
		text_addf(text, "; ");
		holder_say(h, "held by another: ", text);
	} else if (loss->ownership == OWNED_BY_ANOTHER)
		text_addf(text, "; held by another");
}

enum status
loss_explain(struct backend *backend, const struct lease *lease, struct loss *loss, struct err *err)
{
	const struct look_args args = { LOOK_STATE, 1, { CLOCK_NEVER, loss->interrupt_fd }, lease->token };
	struct text text = text_in(err->text, sizeof(err->text));
	struct record *const record = calloc(1, sizeof(*record));
	struct err ignored;

	memset(&loss->holder, 0, sizeof(loss->holder));
	memset(&loss->broken, 0, sizeof(loss->broken));
	if (record == NULL)
		return loss_error(loss->ownership, err);
	record->key = lease->key;
	(void)backend->service->look(backend, &args, record, &ignored);
	if (record->status != ST_OK) {
		record->broken.token[0] = '\0';
		record->nodes = 0;
	}
	explain(record, lease, loss, &text);
	record_free(record);
	free(record);
	return ST_NO;
}
