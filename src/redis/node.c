/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "lock/token.h"
#include "redis/keys.h"
#include "redis/primary.h"

#define REDIRECTS_MAX 8
#define POSTPONE_US 20000 /* while a slot moves, or a server is unavailable */

enum {
	REQUESTS_MAX = 64,		 /* further ones fail at once */
	REQUESTS_ROOM = 2 * REQUESTS_MAX /* including those that fail */
};

enum request_state {
	REQUEST_QUEUED, /* its server is not known or not connected yet */
	REQUEST_SENT,
	REQUEST_FINISHED /* its failure has been posted, or its completion is running */
};

struct node_request {
	struct pending pending; /* first: a struct task * is converted to this */
	struct node *node;
	struct node_request *next; /* in the node's list */
	enum request_state state;
	node_completion *completion; /* NULL: cancelled */
	void *context;
	char *bytes; /* with WAIT, if replicas must confirm it; NULL: out of memory */
	size_t length;
	size_t again; /* offset of the digit of command_add_again(); 0: none */
	struct target target;
	bool once, patient; /* see struct command */
	int64_t connection; /* likewise */
	bool resent;	    /* it was queued again, once, after its connection had failed */
	bool left;	    /* a byte of it was written on a connection that has failed */
	int redirects;
	bool postponed;
	int64_t not_before_us; /* 0: as soon as possible */
};

struct node {
	struct url url;
	struct loop *loop;
	const struct log *log;
	int number;
	bool *unresponsive;
	struct primary primary;
	struct watch timer;	     /* for postponed requests */
	struct reason away;	     /* why requests are postponed */
	struct node_request *first;  /* all requests without a completion, in the order sent */
	struct node_request *unused; /* free list in `room` */
	int count, touched;	     /* requests in use; entries of `room` ever used, the others are not initialised */
	struct node_request room[REQUESTS_ROOM];
};

/* -- The list --------------------------------------------------------------- */

static struct node_request *
first_queued(const struct node *n)
{
	struct node_request *r = n->first;

	while (r != NULL && r->state != REQUEST_QUEUED)
		r = r->next;
	return r;
}

/* Is a reply pending? */
static bool
is_busy(const struct node *n)
{
	const struct node_request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->state == REQUEST_SENT)
			return true;
	}
	return false;
}

static struct node_request *
add(struct node *n)
{
	struct node_request *r = n->unused, **end = &n->first;

	if (r != NULL)
		n->unused = r->next;
	else if (n->touched < REQUESTS_ROOM)
		r = &n->room[n->touched++];
	else
		return NULL;
	while (*end != NULL)
		end = &(*end)->next;
	memset(r, 0, sizeof(*r));
	*end = r;
	n->count++;
	return r;
}

static void
drop(struct node_request *r)
{
	struct node *const n = r->node;
	struct node_request **at = &n->first;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r->bytes);
	r->bytes = NULL;
	r->next = n->unused;
	n->unused = r;
	n->count--;
}

/* -- Completions ------------------------------------------------------------ */

static void
log_result(const struct node *n, const struct result *result)
{
	char shown[300];

	if (result->reply == NULL)
		log_debug(n->log, "%s: %s", n->url.name, text_show(result->reason, shown, sizeof(shown)));
	else if (reply_kind(result->reply) == REPLY_ERROR)
		log_debug(n->log, "%s: error: %s", n->url.name,
		    token_show_text(reply_text(result->reply), shown, sizeof(shown)));
}

/* Do too few replicas have the write?  `reason` says why. */
static bool
is_unconfirmed(struct node_request *r)
{
	struct pending *const p = &r->pending;
	const int wanted = r->node->url.replicas;

	if (p->reply == NULL || !p->waits || p->replicas >= wanted)
		return false;
	if (p->replicas >= 0)
		reason_set(&p->reason, "%d of %d replicas confirmed it in time (--replicas)", (int)p->replicas, wanted);
	return true;
}

static void
complete(struct node_request *r)
{
	struct node *const n = r->node;
	struct reply *const reply = r->pending.reply;
	const struct result result = { .reply = reply,
		.failure = r->pending.failure,
		.sent = r->pending.sent || r->left,
		.disconnected = r->pending.disconnected,
		.connection = r->pending.connection,
		.unconfirmed = is_unconfirmed(r),
		.reason = r->pending.reason.text };
	node_completion *const completion = r->completion;

	r->state = REQUEST_FINISHED;
	r->pending.reply = NULL;
	log_result(n, &result);
	if (reply != NULL)
		*n->unresponsive = false;
	if (completion != NULL)
		completion(r->context, n->number, &result);
	reply_free(reply);
	drop(r);
}

/* Post the failure of a request that will not be sent. */
static void
fail(struct node_request *r, enum failure failure, const char *why)
{
	r->state = REQUEST_FINISHED;
	r->pending.reply = NULL;
	r->pending.failure = failure;
	r->pending.sent = r->pending.closed = r->pending.disconnected = false;
	reason_set(&r->pending.reason, "%s", why);
	loop_post(r->node->loop, &r->pending.task);
}

/* Send the request again after POSTPONE_US. */
static void
postpone(struct node_request *r, const char *why)
{
	r->postponed = true;
	r->not_before_us = clock_now_us() + POSTPONE_US;
	reason_set(&r->node->away, "%s", why);
}

/* Fail all queued requests. */
static void
fail_queued(struct node *n, const char *why)
{
	struct node_request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->state == REQUEST_QUEUED)
			fail(r, FAILED, why);
	}
}

/*
 * The server of the queued requests can't be found.  Patient requests are postponed if it may come back, all others
 * fail.
 */
static void
fail_unknown(struct node *n)
{
	const struct primary *const p = &n->primary;
	struct node_request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->state != REQUEST_QUEUED)
			continue;
		if (r->patient && p->failure == FAILED)
			postpone(r, p->reason.text);
		else
			fail(r, p->failure, p->reason.text);
	}
}

/* -- Sending ---------------------------------------------------------------- */

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
add_wait(struct node_request *r)
{
	const struct url *const url = &r->node->url;
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

/*
 * Send ASKING and the request in one write: the server of a Cluster accepts the request although the slot is still
 * moving.
 */
static void
send_asking(struct node_request *r)
{
	struct command asking;
	size_t length = 0, again;
	char *bytes;

	command_begin(&asking, "ASKING");
	bytes = command_encode(&asking, &length, &again);
	append(&bytes, &length, r->bytes, r->length);
	r->pending.skip = 1;
	client_send(r->node->primary.client, &r->pending, bytes, length);
	free(bytes);
}

/* False if neither this request nor any after it can be sent now. */
static bool
send_request(struct node_request *r)
{
	struct node *const n = r->node;
	struct primary *const p = &n->primary;
	const enum primary_state state = primary_reach(p, &r->target, is_busy(n));

	if (state == PRIMARY_UNKNOWN) {
		fail_unknown(n);
		return true;
	}
	if (state != PRIMARY_READY)
		return false;
	if (r->connection != 0 && r->connection != client_connection(p->client)) {
		fail(r, FAILED, "its connection was closed");
		return true;
	}
	r->state = REQUEST_SENT;
	r->postponed = false;
	r->pending.waits = r->target.needs_replicas && n->url.replicas > 0;
	if (r->target.asking != NOWHERE)
		send_asking(r);
	else
		client_send(p->client, &r->pending, r->bytes, r->length);
	return true;
}

/* Send queued requests in order, as far as possible, and set the timer for a postponed one. */
static void
advance(struct node *n)
{
	struct node_request *r;

	n->timer.at_us = CLOCK_NEVER;
	while ((r = first_queued(n)) != NULL) {
		if (r->not_before_us > clock_now_us()) {
			n->timer.at_us = r->not_before_us; /* the requests after it must wait */
			return;
		}
		r->not_before_us = 0; /* from now on it waits for the server, not for the timer */
		if (!send_request(r))
			return;
	}
}

/* -- Replies ---------------------------------------------------------------- */

/* Has another request been sent after this one? */
static bool
is_followed(const struct node_request *r)
{
	while ((r = r->next) != NULL) {
		if (r->state == REQUEST_SENT)
			return true;
	}
	return false;
}

/* Has the request been redirected?  If so, prepare it to be sent again. */
static bool
redirect(struct node_request *r)
{
	struct node *const n = r->node;

	if (n->url.kind != URL_CLUSTER || r->redirects == REDIRECTS_MAX || r->pending.reply == NULL)
		return false;
	/* Sending it again now would put it after its own rollback. */
	if (r->target.needs_replicas && is_followed(r))
		return false;
	r->target.asking = NOWHERE;
	switch (topology_redirect(&n->primary.topology, r->pending.reply, n->primary.at, &r->target.asking)) {
	case REDIRECT_NONE:
		return false;
	case REDIRECT_MOVED:
	case REDIRECT_ASK:
		r->redirects++;
		break;
	case REDIRECT_LATER:
		r->redirects = 0;
		postpone(r, "the key's slot is moving to another server of the Cluster");
		break;
	}
	return true;
}

/*
 * Should the request be sent again?  If so, prepare it.  A server that closed a connection is alive, or another one has
 * taken its place.  A patient request is sent until a server accepts it.
 */
static bool
send_again(struct node_request *r)
{
	struct pending *const p = &r->pending;
	const bool early = r->patient && p->reply != NULL && topology_is_early(p->reply);
	struct reason why = p->reason;

	if (r->once || (p->reply == NULL && p->failure == DENIED) || (p->reply != NULL && !early))
		return false;
	if (p->reply == NULL && !r->resent && ((client_was_closed(p) && p->disconnected) || p->failure == LOCAL))
		r->resent = true;
	else if (r->patient && (early || client_was_closed(p))) {
		if (early)
			topology_quote(p->reply, &why);
		postpone(r, why.text);
	} else
		return false;
	if (p->reply == NULL && p->sent) {
		r->left = true;
		if (r->again != 0)
			r->bytes[r->again] = '1';
	}
	return true;
}

/* The request has a reply, or a final failure. */
static void
answered(struct task *task)
{
	struct node_request *const r = (struct node_request *)task;
	struct node *const n = r->node;
	const struct reply *const reply = r->pending.reply;

	if (r->state == REQUEST_SENT && reply != NULL) {
		primary_check_reply(&n->primary, reply);
		if (redirect(r) || send_again(r)) {
			r->state = REQUEST_QUEUED;
			reply_free(r->pending.reply);
			r->pending.reply = NULL;
			advance(n);
			return;
		}
	}
	complete(r);
	advance(n);
}

/* The connection has failed.  Queue the requests that may be sent again, and fail the others. */
static void
disconnected(void *context, struct pending *first)
{
	struct node *const n = context;
	struct pending *p, *next;
	struct node_request *r;

	primary_disconnected(&n->primary);
	for (p = first; p != NULL; p = next) {
		next = p->next;
		if (p->task.run != answered) {
			p->task.run(&p->task); /* the primary's ROLE request */
			continue;
		}
		r = (struct node_request *)p;
		if (send_again(r))
			r->state = REQUEST_QUEUED;
		else
			loop_post(n->loop, &p->task);
	}
	advance(n);
}

/* The search for the server has ended, with or without success. */
static void
primary_changed(void *context, bool found)
{
	struct node *const n = context;

	if (!found)
		fail_unknown(n);
	advance(n);
}

static void
timer_expired(void *context, int64_t now_us)
{
	(void)now_us;
	advance(context);
}

/* -- Requests --------------------------------------------------------------- */

void
node_send(struct node *n, const struct command *command, node_completion *completion, void *context)
{
	const char *key = n->url.kind == URL_CLUSTER ? command_key(command) : NULL;
	struct node_request *const r = add(n);

	if (r == NULL)
		return;
	r->pending.task.run = answered;
	r->node = n;
	r->completion = completion;
	r->context = context;
	r->target.slot = key != NULL ? keys_slot(key, strlen(key)) : NO_SLOT;
	r->target.part = command->part;
	r->target.asking = NOWHERE;
	r->target.needs_replicas = command->needs_replicas;
	r->once = command->once;
	r->patient = command->patient;
	r->connection = command->connection;
	r->bytes = command_encode(command, &r->length, &r->again);
	if (command->needs_replicas && n->url.replicas > 0)
		add_wait(r);
	if (n->count > REQUESTS_MAX) {
		fail(r, FAILED, "too many requests without an answer");
		node_disconnect(n);
	} else
		advance(n);
}

void
node_cancel(struct node *n, const void *context)
{
	struct node_request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->context == context)
			r->completion = NULL;
	}
}

void
node_disconnect(struct node *n)
{
	if (n->first != NULL)
		fail_queued(n, node_waits_for(n));
	primary_disconnect(&n->primary, n->first != NULL);
}

void
node_stop_connecting(struct node *n, bool in_time)
{
	fail_queued(n, in_time ? "not waited for" : node_waits_for(n));
	primary_stop_connecting(&n->primary, in_time);
}

/* -- Opening and closing ---------------------------------------------------- */

struct node *
node_open(const struct url *url, const struct node_options *options)
{
	const struct primary_owner owner = { options->loop, disconnected, primary_changed };
	struct node *n = malloc(sizeof(*n));

	if (n == NULL)
		return NULL;
	memset(n, 0, offsetof(struct node, room));
	n->loop = options->loop;
	n->log = options->log;
	n->number = options->number;
	n->unresponsive = options->unresponsive;
	if (!url_copy(&n->url, url)) {
		free(n);
		return NULL;
	}
	if (n->url.password[0] == '\0')
		(void)snprintf(n->url.password, sizeof(n->url.password), "%s", options->password);
	n->timer = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = timer_expired, .context = n };
	loop_add(n->loop, &n->timer);
	if (!primary_open(&n->primary, &n->url, &owner, n)) {
		node_close(n);
		return NULL;
	}
	return n;
}

struct node *
node_open_second(const struct node *n)
{
	const struct node_options options = { n->loop, n->log, n->number, n->unresponsive, "" };

	return node_open(&n->url, &options);
}

void
node_close(struct node *n)
{
	struct node_request *r;

	if (n == NULL)
		return;
	primary_close(&n->primary);
	loop_remove(n->loop, &n->timer);
	for (r = n->first; r != NULL; r = r->next) {
		loop_cancel(n->loop, &r->pending.task);
		reply_free(r->pending.reply);
	}
	while (n->first != NULL)
		drop(n->first);
	url_free(&n->url);
	free(n);
}

/* -- State ------------------------------------------------------------------ */

bool
node_differs(const struct node *n, const struct node *second)
{
	return primary_differs(&n->primary, &second->primary);
}

const char *
node_name(const struct node *n)
{
	return n->url.name;
}

const struct url *
node_url(const struct node *n)
{
	return &n->url;
}

bool
node_takes_long(const struct node *n)
{
	return n->url.kind != URL_SERVER || n->url.endpoint.tls != NULL ||
	    (n->primary.client != NULL && client_takes_long(n->primary.client));
}

int64_t
node_connect_us(const struct node *n)
{
	return n->primary.client != NULL ? client_connect_us(n->primary.client) : 0;
}

bool
node_flushed(const struct node *n)
{
	return first_queued(n) == NULL && (n->primary.client == NULL || client_flushed(n->primary.client));
}

bool
node_resends(const struct node *n)
{
	const struct node_request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->resent && r->state != REQUEST_FINISHED && !r->postponed)
			return true;
	}
	return false;
}

int
node_parts(const struct node *n)
{
	const int parts = n->primary.topology.parts;

	return n->url.kind == URL_CLUSTER && parts > 0 ? parts : 1;
}

const char *
node_waits_for(const struct node *n)
{
	const struct node_request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->state == REQUEST_QUEUED && r->postponed)
			return n->away.text;
	}
	return primary_waits_for(&n->primary);
}
