/* SPDX-License-Identifier: MIT */
#include "redis/pipeline.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"

bool
pipeline_open(struct pipeline *l, int64_t connection)
{
	l->first = l->last = NULL;
	l->logins = l->ignored = 0;
	l->replied = l->reached = l->failed = l->local = l->closed = l->denied = false;
	l->connection = connection;
	l->parser = parser_new();
	return l->parser != NULL;
}

void
pipeline_add(struct pipeline *l, struct pending *p)
{
	p->next = NULL;
	p->reply = NULL;
	if (l->first == NULL)
		l->first = p;
	else
		l->last->next = p;
	l->last = p;
}

bool
pipeline_is_busy(const struct pipeline *l)
{
	return l->first != NULL || l->logins > 0 || l->ignored > 0;
}

/* -- Failures --------------------------------------------------------------- */

void
pipeline_fail(struct pipeline *l, const char *why)
{
	reason_set(&l->reason, "%s", why);
	l->failed = true;
}

void
pipeline_fail_locally(struct pipeline *l, const char *why)
{
	pipeline_fail(l, why);
	l->local = true;
}

static void
set_failure(const struct pipeline *l, struct pending *p, uint64_t written)
{
	p->replicas = -1;
	p->failure = l->denied ? DENIED : l->local ? LOCAL : FAILED;
	p->sent = p->begins < written;
	p->closed = l->closed && !l->denied;
	p->disconnected = l->reached;
	p->reason = l->reason;
	if (l->name != NULL)
		reason_prefix(&p->reason, l->name);
}

struct pending *
pipeline_close(struct pipeline *l, uint64_t written)
{
	struct pending *const first = l->first, *p;

	for (p = first; p != NULL; p = p->next)
		set_failure(l, p, written);
	l->first = l->last = NULL;
	l->logins = l->ignored = 0;
	l->failed = false;
	parser_free(l->parser);
	l->parser = NULL;
	return first;
}

/* -- Replies ---------------------------------------------------------------- */

/*
 * Store the server's error for AUTH or SELECT.  A server without AUTH repeats its arguments, or a part of them, so that
 * part is left out.
 */
static void
quote_login(struct pipeline *l, const char *text)
{
	/* Redis's own: a match with a password such as "pass" would be a coincidence, and reveal it. */
	static const char known[] = "WRONGPASS invalid username-password pair or user is disabled.|"
				    "NOAUTH Authentication required.|ERR invalid password";
	const char *const repeated = strstr(text, "with args beginning");
	struct text quoted = text_in(l->reason.text, sizeof(l->reason.text));

	if (strstr(known, text) != NULL)
		reason_set(&l->reason, "%s", text);
	else
		text_add_quoted(&quoted, text, repeated != NULL ? (size_t)(repeated - text) : strlen(text));
}

/* After an error for AUTH or SELECT, all later requests ran as another user, or in another database. */
static void
take_login_reply(struct pipeline *l, struct reply *reply)
{
	l->logins--;
	if (reply_kind(reply) == REPLY_ERROR && !l->denied) {
		l->denied = true;
		quote_login(l, reply_text(reply));
	}
	reply_free(reply);
}

/* Does the reply report a write?  A refusal has written nothing that replicas could confirm. */
static bool
has_written(const struct reply *reply)
{
	const struct reply *number = reply_items(reply) > 0 ? reply_item(reply, 0) : reply;

	return reply_kind(number) == REPLY_INTEGER && reply_integer(number) > 0;
}

/* The reply to the request itself.  True: that to WAIT is needed, too.  If it is not, the next reply is ignored. */
static bool
take_own_reply(struct pipeline *l, struct pending *p, struct reply *reply)
{
	const bool needed = p->waits && !l->denied && has_written(reply);

	if (l->denied) {
		set_failure(l, p, UINT64_MAX);
		reply_free(reply);
	} else {
		p->reply = reply;
		p->connection = l->connection;
	}
	l->ignored += p->waits && !needed;
	p->waits = needed;
	return needed;
}

static void
take_replicas(struct pending *p, struct reply *reply)
{
	const bool error = reply_kind(reply) == REPLY_ERROR;

	p->replicas = error ? -1 : reply_integer(reply) > 0 ? reply_integer(reply) : 0;
	if (error)
		(void)text_quote(reply_text(reply), p->reason.text, sizeof(p->reason.text));
	reply_free(reply);
}

static void
take_reply(struct pipeline *l, struct reply *reply)
{
	struct pending *const p = l->first;

	if (p->skip > 0) {
		p->skip--;
		reply_free(reply);
		return;
	}
	if (p->reply != NULL)
		take_replicas(p, reply);
	else if (take_own_reply(l, p, reply))
		return;
	l->first = p->next;
	loop_post(l->loop, &p->task);
}

void
pipeline_feed(struct pipeline *l, const char *bytes, size_t length)
{
	struct reply *reply;

	parser_feed(l->parser, bytes, length);
	while (pipeline_is_busy(l) && (reply = parser_next(l->parser)) != NULL) {
		l->replied = true;
		if (l->logins > 0)
			take_login_reply(l, reply);
		else if (l->ignored > 0) {
			l->ignored--;
			reply_free(reply);
		} else
			take_reply(l, reply);
	}
	if (parser_lacks_memory(l->parser))
		pipeline_fail_locally(l, OUT_OF_MEMORY);
	else if (parser_fault(l->parser) != NULL)
		pipeline_fail(l, parser_fault(l->parser));
}
