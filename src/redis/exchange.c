/* SPDX-License-Identifier: MIT */
#include "redis/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define NEVER_SENT UINT64_MAX /* where a request would begin */
#define TAG_OURS 0u	      /* AUTH, SELECT, ASKING; callers' tags start at 1 */

/* -- What breaks it --------------------------------------------------------- */

void
exchange_fail(struct exchange *x, const char *why)
{
	(void)err_set(&x->err, ST_NO_QUORUM, "%s", why);
	x->failed = true;
}

/* This host lacks something. */
static void
fail_locally(struct exchange *x, const char *why)
{
	exchange_fail(x, why);
	x->local = true;
}

static void
fail_by_link(struct exchange *x, const struct link *link)
{
	const int error = errno;
	bool denied = false;

	if (link->tls == NULL && err_lack(error) != NULL)
		fail_locally(x, err_lack(error));
	else {
		exchange_fail(x, link->tls != NULL ? tls_fault(link->tls, &denied) : strerror(error));
		x->closed = true;
	}
	x->denied = x->denied || denied;
}

/* -- Asking ----------------------------------------------------------------- */

static void
await(struct exchange *x, unsigned int tag, uint64_t begins)
{
	if (x->count < UNANSWERED_ROOM)
		x->unanswered[(x->first + x->count++) % UNANSWERED_ROOM] = (struct unanswered){ tag, begins };
}

void
exchange_ask(struct exchange *x, unsigned int tag, const char *bytes, size_t length)
{
	const uint64_t begins = x->outbox.given;

	if (!x->failed && x->count == UNANSWERED_MAX)
		exchange_fail(x, "too many requests without an answer");
	if (x->failed)
		await(x, tag, NEVER_SENT); /* its failure is due like those of the requests before it */
	else if (bytes == NULL || !outbox_add(&x->outbox, bytes, length)) {
		await(x, tag, NEVER_SENT);
		fail_locally(x, OUT_OF_MEMORY);
	} else
		await(x, tag, begins);
}

void
exchange_ask_request(struct exchange *x, unsigned int tag, const struct request *r)
{
	size_t length = 0, again;
	char *bytes = request_encode(r, &length, &again);

	exchange_ask(x, tag, bytes, length);
	free(bytes);
}

void
exchange_ask_asking(struct exchange *x)
{
	struct request r;

	request_begin(&r, "ASKING");
	exchange_ask_request(x, TAG_OURS, &r);
}

static void
log_in(struct exchange *x)
{
	const struct url *url = x->url;
	struct request r;

	if (url->password[0] != '\0') {
		request_begin(&r, "AUTH");
		if (url->user[0] != '\0')
			request_add(&r, url->user);
		request_add(&r, url->password);
		exchange_ask_request(x, TAG_OURS, &r);
	}
	if (url->db != 0) {
		request_begin(&r, "SELECT");
		request_add_number(&r, url->db);
		exchange_ask_request(x, TAG_OURS, &r);
	}
}

void
exchange_begin(struct exchange *x, const struct url *url)
{
	x->url = url;
	outbox_clear(&x->outbox);
	x->answered = x->deaf = x->failed = x->local = x->closed = x->denied = false;
	x->parser = parser_new();
	if (x->parser == NULL)
		fail_locally(x, OUT_OF_MEMORY);
	else
		log_in(x);
}

void
exchange_end(struct exchange *x)
{
	parser_free(x->parser);
	x->parser = NULL;
}

/* -- Moving bytes ----------------------------------------------------------- */

/* What can't be written any more may have been answered all the same (a server that refuses us says why): read on. */
void
exchange_write(struct exchange *x, const struct link *link)
{
	const enum link_result result = outbox_write(&x->outbox, link);

	x->deaf = result == LINK_CLOSED || result == LINK_FAILED;
}

bool
exchange_has_bytes(const struct exchange *x)
{
	return !x->deaf && x->outbox.length > 0;
}

/*
 * What lies in TLS's own buffer is not told by poll(2).  A server that speaks without being asked could do so for ever, and
 * what it says would be taken for the next answer.
 */
void
exchange_read(struct exchange *x, const struct link *link)
{
	char bytes[4096];
	size_t done = 0;

	do {
		switch (link_read(link, bytes, sizeof(bytes), &done)) {
		case LINK_DONE:
			if (x->count == 0) {
				exchange_fail(x, "this is no Redis server (it speaks without being asked)");
				return;
			}
			parser_feed(x->parser, bytes, done);
			break;
		case LINK_LATER:
			return;
		case LINK_CLOSED:
			exchange_fail(x,
			    x->answered ? "the server closed the connection"
					: "the server closed the connection without an answer");
			x->closed = true;
			return;
		case LINK_FAILED:
			fail_by_link(x, link);
			return;
		}
	} while (link_holds_bytes(link));
}

/* -- Answers ---------------------------------------------------------------- */

static struct unanswered
pop(struct exchange *x)
{
	const struct unanswered u = x->unanswered[x->first];

	x->first = (x->first + 1) % UNANSWERED_ROOM;
	x->count--;
	return u;
}

/* What the server says of AUTH.  One that knows no AUTH repeats what it got, or a part of it. */
static void
quote_login(struct exchange *x, const char *text)
{
	char *repeated;

	(void)err_set(&x->err, ST_DENIED, "%s", text);
	if (strncmp(text, "WRONGPASS", 9) == 0 || strncmp(text, "NOAUTH", 6) == 0)
		return; /* Redis's own words, in which a password such as "pass" is none */
	repeated = strstr(x->err.text, "with args beginning");
	if (repeated != NULL)
		*repeated = '\0';
	text_hide(x->err.text, x->url->password);
}

/* AUTH or SELECT were answered.  After an error whatever follows ran as somebody else, or in another database. */
static void
note_login(struct exchange *x, const struct reply *reply)
{
	if (reply_kind(reply) == REPLY_ERROR && !x->denied) {
		x->denied = true;
		quote_login(x, reply_text(reply));
	}
}

static void
deliver_failure(const struct exchange *x, struct unanswered u, struct delivery *d)
{
	*d = (struct delivery){ .tag = u.tag,
		.unsent = u.begins >= x->outbox.written,
		.denied = x->denied,
		.local = x->local,
		.closed = x->closed && !x->denied,
		.err = x->err };
}

static void
deliver(const struct exchange *x, struct unanswered u, struct reply *reply, struct delivery *d)
{
	if (x->denied) {
		deliver_failure(x, u, d);
		reply_free(reply);
	} else
		*d = (struct delivery){ .tag = u.tag, .reply = reply };
}

bool
exchange_take(struct exchange *x, struct delivery *d)
{
	struct reply *reply;
	struct unanswered u;

	while (x->count > 0 && (reply = parser_next(x->parser)) != NULL) {
		u = pop(x);
		x->answered = true;
		if (u.tag != TAG_OURS) {
			deliver(x, u, reply, d);
			return true;
		}
		note_login(x, reply);
		reply_free(reply);
	}
	if (parser_lacks_memory(x->parser))
		fail_locally(x, OUT_OF_MEMORY);
	else if (parser_fault(x->parser) != NULL)
		exchange_fail(x, parser_fault(x->parser));
	return false;
}

bool
exchange_take_failure(struct exchange *x, struct delivery *d)
{
	struct unanswered u;

	while (x->count > 0) {
		u = pop(x);
		if (u.tag != TAG_OURS) {
			deliver_failure(x, u, d);
			return true;
		}
	}
	return false;
}
