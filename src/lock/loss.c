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

enum status
loss_explain(struct backend *backend, const struct lease *lease, struct loss *loss, struct err *err)
{
	struct lock_status *const view = &loss->view;
	const struct status_args args = { &lease->key, 1, loss->interrupt_fd, keep_view, view };
	struct text text = text_in(err->text, sizeof(err->text));
	const struct holder *holder;
	struct err ignored;
	char at[TIME_SIZE], ago[32];

	memset(view, 0, sizeof(*view));
	view->state = LOCK_UNKNOWN;
	(void)backend->ops->status(backend, &args, &ignored);
	holder = loss_other_holder(view, lease->token);
	if (loss_was_break(view, lease->token)) {
		duration_show(view->broken.ago_ms, ago, sizeof(ago));
		text_addf(&text, "gone: broken by ");
		text_add_shown(&text, view->broken.owner, strlen(view->broken.owner));
		text_addf(&text, " at %s, %s ago", duration_show_time(clock_wall_us() - view->broken.ago_ms * 1000, at),
		    ago);
	} else
		text_addf(&text, "gone: it expired, was broken or was released");
	if (holder != NULL) {
		text_addf(&text, "; ");
		holder_describe_hold(holder, "held by another: ", &text);
	} else if (loss->ownership == OWNED_BY_ANOTHER)
		text_addf(&text, "; held by another");
	return ST_NO;
}
