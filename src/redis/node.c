/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "redis/route.h"

enum {
	REQUESTS_MAX = 64,		 /* further ones fail at once */
	REQUESTS_ROOM = 2 * REQUESTS_MAX /* including those that fail */
};

#define REDIRECTS_MAX 8
#define POSTPONE_US 20000 /* while a slot moves, or a server is unavailable */

/* A request that has no completion yet. */
struct request {
	struct pending pending; /* first: a struct task * is converted to this */
	struct request *next;	/* in the order in which they were given */
	enum request_state {
		REQUEST_QUEUED, /* its server is not known or not connected yet */
		REQUEST_SENT,
		REQUEST_FINISHED /* its failure has been posted, or its completion is running */
	} state;
	node_completion *completion; /* NULL: cancelled */
	void *context;
	char *bytes; /* with WAIT, if replicas must confirm it; NULL: out of memory */
	size_t length;
	size_t again; /* offset of the digit of %c; 0: none */
	struct target target;
	bool once, keeps_trying; /* see struct command */
	int64_t connection;	 /* likewise */
	bool resent;		 /* it was queued again by resend() */
	bool written;		 /* a byte of it was written on a connection that has failed */
	int redirects;
	int64_t not_before_us; /* it is postponed, and the reason of its failure says why; 0: it is not */
	bool unreachable;      /* postponed without a reply from a server */
};

struct node {
	struct url url;
	struct node_options options;
	struct route route;
	struct watch timer; /* for postponed requests */
	struct request *first;
};

/* -- The requests ----------------------------------------------------------- */

/* The first one in this state; NULL if there is none. */
static struct request *
find_request(struct request *r, enum request_state state)
{
	while (r != NULL && r->state != state)
		r = r->next;
	return r;
}

/* Remove and free. */
static void
drop(struct node *n, struct request *r)
{
	struct request **at = &n->first;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	reply_free(r->pending.result.reply);
	free(r->bytes);
	free(r);
}

/*
 * Add WAIT after a write that must not be lost, to learn how many replicas have it.  Without memory bytes becomes NULL.
 */
static void
add_wait(struct request *r, const struct url *url)
{
	struct command wait;
	size_t length = 0, again;
	char *bytes, *both;

	command_begin(&wait, "WAIT");
	command_add_number(&wait, url->replicas);
	command_add_number(&wait, url->replicas_ms);
	bytes = command_encode(&wait, &length, &again);
	both = bytes != NULL && r->bytes != NULL ? realloc(r->bytes, r->length + length) : NULL;
	if (both != NULL)
		memcpy(both + r->length, bytes, length);
	else
		free(r->bytes);
	r->bytes = both;
	r->length += length;
	free(bytes);
}

/* -- Completions ------------------------------------------------------------ */

/* Post the failure of a request that will not be sent. */
static void
fail(struct request *r, enum failure_kind kind, const char *why)
{
	r->state = REQUEST_FINISHED;
	failure_set(&r->pending.result.failure, kind, "%s", why);
	loop_post(((struct node *)r->pending.owner)->options.loop, &r->pending.task);
}

/* Queue it again; if there is a reason why it would fail now, it is sent only after a while. */
static void
requeue(struct request *r, const char *why)
{
	struct result *const result = &r->pending.result;

	r->state = REQUEST_QUEUED;
	if (why != NULL) {
		r->unreachable = result->reply == NULL;
		r->not_before_us = clock_now_us() + POSTPONE_US;
		reason_set(&result->failure.reason, "%s", why);
	}
	reply_free(result->reply);
	result->reply = NULL;
}

/* Fail all queued requests.  passes: those that keep trying are postponed instead. */
static void
fail_queued(struct node *n, enum failure_kind kind, const char *why, bool passes)
{
	struct reason copy; /* `why` may be the reason of one of them */
	struct request *r;

	reason_set(&copy, "%s", why);
	for (r = n->first; r != NULL; r = r->next) {
		if (r->state == REQUEST_QUEUED && passes && r->keeps_trying)
			requeue(r, copy.text);
		else if (r->state == REQUEST_QUEUED)
			fail(r, kind, copy.text);
	}
}

/* The server of the queued requests can't be found.  If it is not refused, it may come back. */
static void
fail_unknown(struct node *n)
{
	const struct failure *const why = &n->route.failure;

	fail_queued(n, why->kind, why->reason.text, why->kind == FAILED);
}

/* -- Sending ---------------------------------------------------------------- */

/*
 * Send queued requests in order, as far as possible, and set the timer for a postponed one.  WAIT follows a request on
 * the same connection.  A server of a Cluster accepts it after ASKING, although the slot is still moving.
 */
static void
advance(struct node *n)
{
	struct server *const server = &n->route.line.server;
	enum route_state state;
	struct request *r;

	n->timer.at_us = CLOCK_NEVER;
	while ((r = find_request(n->first, REQUEST_QUEUED)) != NULL) {
		if (r->not_before_us > clock_now_us()) {
			n->timer.at_us = r->not_before_us; /* the requests after it must wait */
			return;
		}
		if (route_awaits_password(&n->route)) {
			n->timer.at_us = clock_now_us() + POSTPONE_US;
			return;
		}
		state = route_reach(&n->route, &r->target, find_request(n->first, REQUEST_SENT) != NULL);
		if (state == ROUTE_PENDING)
			return;
		if (state == ROUTE_UNKNOWN)
			fail_unknown(n);
		else if (r->connection != 0 &&
		    (server->channel.state != CHANNEL_OPEN || server->channel.began_us != r->connection))
			fail(r, FAILED, "its connection was closed");
		else {
			r->state = REQUEST_SENT;
			r->not_before_us = 0;
			r->unreachable = false;
			r->pending.waits = r->target.needs_replicas && n->url.replicas > 0;
			r->pending.impatient = r->keeps_trying;
			r->pending.asking = r->target.asking != NOWHERE;
			server_send(server, &r->pending, r->bytes, r->length);
		}
	}
}

/* Has the request, which has a reply, been redirected by a server of a Cluster?  If so, it is queued again. */
static bool
redirect(struct request *r)
{
	struct node *const n = r->pending.owner;
	enum redirection where;

	if (n->url.kind != URL_CLUSTER || r->redirects == REDIRECTS_MAX)
		return false;
	/* Sending it again now would put it after its own rollback. */
	if (r->target.needs_replicas && find_request(r->next, REQUEST_SENT) != NULL)
		return false;
	r->target.asking = NOWHERE;
	where = route_redirect(&n->route, r->pending.result.reply, &r->target.asking);
	if (where == REDIRECT_NONE)
		return false;
	r->redirects = where == REDIRECT_LATER ? 0 : r->redirects + 1;
	requeue(r, where == REDIRECT_LATER ? "the key's slot is moving to another server of the Cluster" : NULL);
	return true;
}

/* Queue it again, though it may have been executed.  Returns true. */
static bool
queue_again(struct request *r, const char *why)
{
	if (r->pending.result.reply == NULL && r->pending.result.failure.sent) {
		r->written = true;
		if (r->again != 0)
			r->bytes[r->again] = '1';
	}
	requeue(r, why);
	return true;
}

/*
 * Should the request be sent again?  If so, it is queued again.  A server that closed a connection is alive, or another
 * one has taken its place.  A request that keeps trying is sent until a server accepts it.  Behind a refused login it
 * may have been executed as the user without one.
 */
static bool
resend(struct request *r)
{
	const struct result *const got = &r->pending.result;
	const bool early = r->keeps_trying && got->reply != NULL && route_is_early(got->reply);
	struct reason why = got->failure.reason;
	bool at_once;

	if (server_wants_login(got) && route_log_in_again(&((struct node *)r->pending.owner)->route) && !r->once)
		return queue_again(r, NULL);
	if (r->once || (got->reply == NULL ? got->failure.kind == DENIED : !early))
		return false;
	at_once = got->reply == NULL && !r->resent &&
	    ((server_was_closed(got) && got->failure.connected) || got->failure.kind == LOCAL);
	if (!at_once && !(r->keeps_trying && (early || server_was_closed(got))))
		return false;
	if (early)
		(void)text_quote(reply_text(got->reply), why.text, sizeof(why.text));
	r->resent = true;
	return queue_again(r, at_once ? NULL : why.text);
}

/* -- Results ---------------------------------------------------------------- */

static void
complete(struct request *r)
{
	struct node *const n = r->pending.owner;
	struct result *const result = &r->pending.result;
	char shown[300];

	r->state = REQUEST_FINISHED;
	result->failure.sent = result->failure.sent || r->written;
	if (result->reply == NULL)
		log_debug(n->options.log, "%s: %s", n->url.name,
		    text_show(result->failure.reason.text, shown, sizeof(shown)));
	else
		*n->options.unresponsive = false;
	if (reply_kind(result->reply) == REPLY_ERROR)
		log_debug(n->options.log, "%s: error: %s", n->url.name,
		    text_quote(reply_text(result->reply), shown, sizeof(shown)));
	if (r->completion != NULL)
		r->completion(r->context, n->options.number, result);
	drop(n, r);
}

/* The request has a reply, or a final failure. */
static void
answered(struct task *task)
{
	struct request *const r = (struct request *)task;
	struct node *const n = r->pending.owner;
	const struct reply *const reply = r->pending.result.reply;
	bool again = false;

	if (r->state == REQUEST_SENT && reply != NULL) {
		again = redirect(r);
		if (!again && route_is_demoted(reply))
			route_mark_stale(&n->route);
		again = again || resend(r);
	} else if (r->state == REQUEST_SENT && r->pending.result.failure.login)
		again = resend(r);
	if (!again)
		complete(r);
	advance(n);
}

/* The connection has failed.  Queue the requests that may be sent again, and fail the others. */
static void
disconnected(void *context, struct pending *first)
{
	struct node *const n = context;
	struct pending *p, *next;

	route_mark_stale(&n->route);
	for (p = first; p != NULL; p = next) {
		next = p->next;
		if (p->task.run != answered)
			p->task.run(&p->task); /* the route's ROLE request */
		else if (!resend((struct request *)p))
			loop_post(n->options.loop, &p->task);
	}
	advance(n);
}

/* The search for the server has ended, with or without success. */
static void
route_changed(void *context, bool found)
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
	static const char full[] = "too many pending requests";
	const char *const key = n->url.kind == URL_CLUSTER ? command->key : NULL;
	struct request **end = &n->first, *r;
	struct result failed = { .reply = NULL };
	int before;

	for (before = 0; *end != NULL; before++)
		end = &(*end)->next;
	r = before < REQUESTS_ROOM ? calloc(1, sizeof(*r)) : NULL;
	if (r == NULL) {
		failure_set(&failed.failure, before < REQUESTS_ROOM ? LOCAL : FAILED, "%s",
		    before < REQUESTS_ROOM ? OUT_OF_MEMORY : full);
		if (completion != NULL)
			completion(context, n->options.number, &failed);
		return;
	}
	*end = r;
	r->pending.task.run = answered;
	r->pending.owner = n;
	r->completion = completion;
	r->context = context;
	r->target = (struct target){ .slot = key != NULL ? keys_slot(key, strlen(key)) : NO_SLOT,
		.part = command->part,
		.asking = NOWHERE,
		.needs_replicas = command->needs_replicas };
	r->once = command->once;
	r->keeps_trying = command->keeps_trying;
	r->connection = command->connection;
	r->bytes = command_encode(command, &r->length, &r->again);
	if (command->needs_replicas && n->url.replicas > 0)
		add_wait(r, &n->url);
	if (before >= REQUESTS_MAX) {
		fail(r, FAILED, full);
		node_disconnect(n);
	} else
		advance(n);
}

void
node_cancel(struct node *n, const void *context)
{
	struct request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->context == context)
			r->completion = NULL;
	}
}

void
node_disconnect(struct node *n)
{
	fail_queued(n, FAILED, node_waits_for(n), false);
	route_disconnect(&n->route, n->first != NULL);
}

void
node_stop_connecting(struct node *n, bool in_time)
{
	fail_queued(n, FAILED, in_time ? "not waited for" : node_waits_for(n), false);
	route_stop_connecting(&n->route, in_time);
}

/* -- Opening and closing ---------------------------------------------------- */

struct node *
node_open(const struct url *url, const struct node_options *options)
{
	struct node *const n = calloc(1, sizeof(*n));
	const struct route_owner owner = { options->loop, disconnected, route_changed, n };

	if (n == NULL)
		return NULL;
	memcpy(&n->url, url, offsetof(struct url, seed) + (size_t)url->seeds * sizeof(url->seed[0]));
	n->options = *options;
	n->timer = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = timer_expired, .context = n };
	loop_add(n->options.loop, &n->timer);
	if (!route_open(&n->route, &n->url, &owner)) {
		node_close(n);
		return NULL;
	}
	return n;
}

struct node *
node_open_second(const struct node *n)
{
	return node_open(&n->url, &n->options);
}

void
node_close(struct node *n)
{
	if (n == NULL)
		return;
	route_close(&n->route);
	loop_remove(n->options.loop, &n->timer);
	while (n->first != NULL) {
		loop_cancel(n->options.loop, &n->first->pending.task);
		drop(n, n->first);
	}
	free(n);
}

/* -- State ------------------------------------------------------------------ */

bool
node_differs(const struct node *n, const struct node *second)
{
	const struct url *const a = &n->route.line.server.url, *const b = &second->route.line.server.url;

	return n->url.kind != URL_SERVER && n->route.line.open && second->route.line.open &&
	    (strcmp(a->endpoint.host, b->endpoint.host) != 0 || strcmp(a->endpoint.port, b->endpoint.port) != 0);
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
	const struct channel *const channel = node_channel(n);

	return n->url.kind != URL_SERVER || n->url.endpoint.tls != NULL ||
	    (channel->state == CHANNEL_CONNECTING && channel->connecting.by_name);
}

const struct channel *
node_channel(const struct node *n)
{
	static const struct channel none = { .fd = -1 };

	return n->route.line.open ? &n->route.line.server.channel : &none;
}

bool
node_resends(const struct node *n)
{
	const struct request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->resent && r->state != REQUEST_FINISHED && !r->unreachable)
			return true;
	}
	return false;
}

bool
node_needs_us(const struct node *n)
{
	const struct request *const r = find_request(n->first, REQUEST_QUEUED);

	if (node_resends(n))
		return true;
	if (r != NULL)
		return !r->unreachable;
	return n->route.line.open && !server_flushed(&n->route.line.server);
}

int
node_parts(const struct node *n)
{
	return n->route.slots != NULL && n->route.slots->parts > 0 ? n->route.slots->parts : 1;
}

const char *
node_waits_for(const struct node *n)
{
	const struct request *r;

	for (r = n->first; r != NULL; r = r->next) {
		if (r->state == REQUEST_QUEUED && r->not_before_us != 0)
			return r->pending.result.failure.reason.text;
	}
	return route_waits_for(&n->route);
}
