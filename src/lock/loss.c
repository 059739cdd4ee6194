/* SPDX-License-Identifier: MIT */
#include "lock/loss.h"

#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"

enum status
loss_error(enum ownership ownership, struct err *err)
{
	return err_set(err, ST_NO, ownership == OWNED_BY_ANOTHER ? "held by another" : "gone");
}

static void
keep_view(void *context, const char *key, const struct lock_status *view, enum status status, const struct err *err)
{
	(void)key;
	(void)err;
	if (status == ST_OK)
		*(struct lock_status *)context = *view;
}

bool
loss_was_break(const struct lock_status *view, const char *token)
{
	return view->state != LOCK_UNKNOWN && view->broken.token[0] != '\0' &&
	    strncmp(view->broken.token, token, strlen(view->broken.token)) == 0;
}

const struct holder *
loss_other_holder(const struct lock_status *view, const char *token)
{
	const struct holder *h = &view->holder;

	if (view->state == LOCK_FREE || view->state == LOCK_CONTENDED || view->state == LOCK_UNKNOWN ||
	    (!h->other_client && strncmp(h->token, token, strlen(h->token)) == 0))
		return NULL;
	return h;
}

/* Append which nodes have restarted since the lock was acquired, if that instant is known.  False: none is known. */
static bool
add_restarts(const struct lock_status *view, const struct lease *lease, struct text *text)
{
	const int64_t held_s = lease->sent_us > 0 ? (clock_now_us() - lease->sent_us + 999999) / 1000000 : -1;
	bool any = false;
	char up[32];
	int i;

	for (i = 0; i < view->nodes; i++) {
		if (view->node[i].up_s <= 0 ||
		    view->node[i].up_s - 1 > held_s) /* a server counts the clock's seconds */
			continue;
		duration_show((view->node[i].up_s - 1) * 1000, up, sizeof(up));
		text_addf(text, "%s%s restarted %s ago", any ? ", " : "", view->node[i].name, up);
		any = true;
	}
	if (any)
		text_addf(text, ", perhaps without its data");
	return any;
}

enum status
loss_explain(struct backend *backend, const struct lease *lease, struct loss *loss, struct err *err)
{
	struct lock_status *const view = &loss->view;
	const struct status_args args = { &lease->key, 1, { CLOCK_NEVER, loss->interrupt_fd }, keep_view, view,
		lease->token };
	struct text text = text_in(err->text, sizeof(err->text));
	const struct holder *holder;
	struct err ignored;
	char at[TIME_SIZE], ago[32];

	memset(view, 0, sizeof(*view));
	view->state = LOCK_UNKNOWN;
	(void)backend->service->status(backend, &args, &ignored);
	holder = loss_other_holder(view, lease->token);
	if (loss_was_break(view, lease->token)) {
		duration_show(view->broken.ago_ms, ago, sizeof(ago));
		text_addf(&text, "gone: broken by ");
		text_add_quoted(&text, view->broken.owner, strlen(view->broken.owner));
		text_addf(&text, " at %s, %s ago", duration_show_time(clock_wall_us() - view->broken.ago_ms * 1000, at),
		    ago);
	} else {
		text_addf(&text, "gone: ");
		if (!add_restarts(view, lease, &text))
			text_addf(&text, "it expired, was broken or was released");
	}
	if (holder != NULL) {
		text_addf(&text, "; ");
		holder_describe_hold(holder, "held by another: ", &text);
	} else if (loss->ownership == OWNED_BY_ANOTHER)
		text_addf(&text, "; held by another");
	return ST_NO;
}
