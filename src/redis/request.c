/* SPDX-License-Identifier: MIT */
#include "redis/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/keys.h"

#define REDIRECTS_MAX 8
#define POSTPONE_US 20000 /* while a slot moves, or a server is unavailable */

/* -- The list --------------------------------------------------------------- */

struct request *
request_first_queued(const struct requests *all)
{
	struct request *r = all->first;

	while (r != NULL && r->state != REQUEST_QUEUED)
		r = r->next;
	return r;
}

bool
request_any_sent(const struct requests *all)
{
	const struct request *r;

	for (r = all->first; r != NULL; r = r->next) {
		if (r->state == REQUEST_SENT)
			return true;
	}
	return false;
}

void
request_drop(struct requests *all, struct request *r)
{
	struct request **at = &all->first;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r->bytes);
	r->bytes = NULL;
	r->next = all->unused;
	all->unused = r;
	all->count--;
}

static struct request *
new_request(struct requests *all)
{
	struct request *r = all->unused, **end = &all->first;

	if (r != NULL)
		all->unused = r->next;
	else if (all->touched < REQUESTS_ROOM)
		r = &all->room[all->touched++];
	else
		return NULL;
	while (*end != NULL)
		end = &(*end)->next;
	memset(r, 0, sizeof(*r));
	*end = r;
	all->count++;
	return r;
}

/* -- The bytes -------------------------------------------------------------- */

/* Append to a request.  If there is no memory, or nothing to append, the request is freed and becomes NULL. */
static void
append(char **bytes, size_t *length, const char *more, size_t more_length)
{
	char *const both = more != NULL && *bytes != NULL ? realloc(*bytes, *length + more_length) : NULL;

	if (both != NULL)
		memcpy(both + *length, more, more_length);
	else
		free(*bytes);
	*bytes = both;
	*length += more_length;
}

/* Add WAIT after a write that must not be lost, to learn how many replicas have it. */
static void
add_wait(struct request *r, const struct url *url)
{
	struct command wait;
	size_t length = 0, again;
	char *bytes;

	command_begin(&wait, "WAIT");
	command_add_number(&wait, url->replicas);
	command_add_number(&wait, url->replicas_ms);
	bytes = command_encode(&wait, &length, &again);
	append(&r->bytes, &r->length, bytes, length);
	free(bytes);
}

struct request *
request_add(struct requests *all, const struct command *command, const struct url *url)
{
	const char *const key = url->kind == URL_CLUSTER ? command_key(command) : NULL;
	struct request *const r = new_request(all);

	if (r == NULL)
		return NULL;
	r->target = (struct target){ .slot = key != NULL ? keys_slot(key, strlen(key)) : NO_SLOT,
		.part = command->part,
		.asking = NOWHERE,
		.needs_replicas = command->needs_replicas };
	r->once = command->once;
	r->keeps_trying = command->keeps_trying;
	r->connection = command->connection;
	r->bytes = command_encode(command, &r->length, &r->again);
	r->waits = command->needs_replicas && url->replicas > 0;
	if (r->waits)
		add_wait(r, url);
	return r;
}

/* The server of a Cluster accepts the request after ASKING, although the slot is still moving. */
static void
send_asking(struct request *r, struct client *client)
{
	struct command asking;
	size_t length = 0, again;
	char *bytes;

	command_begin(&asking, "ASKING");
	bytes = command_encode(&asking, &length, &again);
	append(&bytes, &length, r->bytes, r->length);
	r->pending.skip = 1;
	client_send(client, &r->pending, bytes, length);
	free(bytes);
}

void
request_send(struct request *r, struct client *client)
{
	r->state = REQUEST_SENT;
	r->postponed = r->unreachable = false;
	r->pending.waits = r->waits;
	r->pending.impatient = r->keeps_trying;
	if (r->target.asking != NOWHERE)
		send_asking(r, client);
	else
		client_send(client, &r->pending, r->bytes, r->length);
}

/* -- Sending again ---------------------------------------------------------- */

void
request_postpone(struct request *r, const char *why)
{
	r->postponed = true;
	r->unreachable = r->pending.reply == NULL;
	r->not_before_us = clock_now_us() + POSTPONE_US;
	reason_set(&r->pending.reason, "%s", why);
}

static void
requeue(struct request *r)
{
	r->state = REQUEST_QUEUED;
	reply_free(r->pending.reply);
	r->pending.reply = NULL;
}

/* Has another request been sent after this one? */
static bool
is_followed(const struct request *r)
{
	while ((r = r->next) != NULL) {
		if (r->state == REQUEST_SENT)
			return true;
	}
	return false;
}

bool
request_redirect(struct request *r, struct topology *topology, int from)
{
	if (topology->url->kind != URL_CLUSTER || r->redirects == REDIRECTS_MAX || r->pending.reply == NULL)
		return false;
	/* Sending it again now would put it after its own rollback. */
	if (r->target.needs_replicas && is_followed(r))
		return false;
	r->target.asking = NOWHERE;
	switch (topology_redirect(topology, r->pending.reply, from, &r->target.asking)) {
	case REDIRECT_NONE:
		return false;
	case REDIRECT_MOVED:
	case REDIRECT_ASK:
		r->redirects++;
		break;
	case REDIRECT_LATER:
		r->redirects = 0;
		request_postpone(r, "the key's slot is moving to another server of the Cluster");
		break;
	}
	requeue(r);
	return true;
}

bool
request_resend(struct request *r)
{
	struct pending *const p = &r->pending;
	const bool early = r->keeps_trying && p->reply != NULL && topology_is_early(p->reply);
	struct reason why = p->reason;

	if (r->once || (p->reply == NULL && p->failure == DENIED) || (p->reply != NULL && !early))
		return false;
	if (p->reply == NULL && !r->resent && ((client_was_closed(p) && p->disconnected) || p->failure == LOCAL))
		; /* at once, a single time */
	else if (r->keeps_trying && (early || client_was_closed(p))) {
		if (early)
			topology_quote(p->reply, &why);
		request_postpone(r, why.text);
	} else
		return false;
	r->resent = true;
	if (p->reply == NULL && p->sent) {
		r->written = true;
		if (r->again != 0)
			r->bytes[r->again] = '1';
	}
	requeue(r);
	return true;
}
