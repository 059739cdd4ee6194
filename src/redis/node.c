/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "redis/primary.h"
#include "redis/request.h"

struct node {
	struct url url;
	struct loop *loop;
	const struct log *log;
	int number;
	bool *unresponsive;
	struct primary primary;
	struct watch timer;	  /* for postponed requests */
	struct requests requests; /* last: its room is not initialised */
};

/* -- Completions ------------------------------------------------------------ */

static void
log_result(const struct node *n, const struct result *result)
{
	char shown[300];

	if (result->reply == NULL)
		log_debug(n->log, "%s: %s", n->url.name, text_show(result->reason, shown, sizeof(shown)));
	else if (reply_kind(result->reply) == REPLY_ERROR)
		log_debug(n->log, "%s: error: %s", n->url.name,
		    text_quote(reply_text(result->reply), shown, sizeof(shown)));
}

/* Do too few replicas have the write?  `reason` says why. */
static bool
is_unconfirmed(struct request *r)
{
	struct pending *const p = &r->pending;
	const int wanted = ((const struct node *)p->owner)->url.replicas;

	if (p->reply == NULL || !p->waits || p->replicas >= wanted)
		return false;
	if (p->replicas >= 0)
		reason_set(&p->reason, "%d of %d replicas confirmed it in time (--replicas)", (int)p->replicas, wanted);
	return true;
}

static void
complete(struct request *r)
{
	struct node *const n = r->pending.owner;
	struct reply *const reply = r->pending.reply;
	const struct result result = { .reply = reply,
		.failure = r->pending.failure,
		.sent = r->pending.sent || r->written,
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
	request_drop(&n->requests, r);
}

/* Post the failure of a request that will not be sent. */
static void
fail(struct request *r, enum failure failure, const char *why)
{
	r->state = REQUEST_FINISHED;
	r->pending.reply = NULL;
	r->pending.failure = failure;
	r->pending.sent = r->pending.closed = r->pending.disconnected = false;
	reason_set(&r->pending.reason, "%s", why);
	loop_post(((struct node *)r->pending.owner)->loop, &r->pending.task);
}

/* Fail all queued requests. */
static void
fail_queued(struct node *n, const char *why)
{
	struct reason copy; /* `why` may be the reason of one of them */
	struct request *r;

	reason_set(&copy, "%s", why);
	for (r = n->requests.first; r != NULL; r = r->next) {
		if (r->state == REQUEST_QUEUED)
			fail(r, FAILED, copy.text);
	}
}

/*
 * The server of the queued requests can't be found.  Requests that keep trying are postponed if it may come back, all
 * others fail.
 */
static void
fail_unknown(struct node *n)
{
	const struct primary *const p = &n->primary;
	struct request *r;

	for (r = n->requests.first; r != NULL; r = r->next) {
		if (r->state != REQUEST_QUEUED)
			continue;
		if (r->keeps_trying && p->failure == FAILED)
			request_postpone(r, p->reason.text);
		else
			fail(r, p->failure, p->reason.text);
	}
}

/* -- Sending ---------------------------------------------------------------- */

/* False if neither this request nor any after it can be sent now. */
static bool
send_request(struct request *r)
{
	struct node *const n = r->pending.owner;
	struct primary *const p = &n->primary;
	const enum primary_state state = primary_reach(p, &r->target, request_any_sent(&n->requests));

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
	request_send(r, p->client);
	return true;
}

/* Send queued requests in order, as far as possible, and set the timer for a postponed one. */
static void
advance(struct node *n)
{
	struct request *r;

	n->timer.at_us = CLOCK_NEVER;
	while ((r = request_first_queued(&n->requests)) != NULL) {
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

/* The request has a reply, or a final failure. */
static void
answered(struct task *task)
{
	struct request *const r = (struct request *)task;
	struct node *const n = r->pending.owner;
	const struct reply *const reply = r->pending.reply;

	if (r->state == REQUEST_SENT && reply != NULL) {
		if (request_redirect(r, &n->primary.topology, n->primary.at)) {
			advance(n);
			return;
		}
		if (topology_is_demoted(reply))
			primary_mark_stale(&n->primary);
		if (request_resend(r)) {
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
	struct request *r;

	primary_mark_stale(&n->primary);
	for (p = first; p != NULL; p = next) {
		next = p->next;
		if (p->task.run != answered) {
			p->task.run(&p->task); /* the primary's ROLE request */
			continue;
		}
		r = (struct request *)p;
		if (!request_resend(r))
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
	static const char full[] = "too many pending requests";
	const struct result failed = { .failure = FAILED, .reason = full };
	struct request *const r = request_add(&n->requests, command, &n->url);

	if (r == NULL) {
		if (completion != NULL)
			completion(context, n->number, &failed);
		return;
	}
	r->pending.task.run = answered;
	r->pending.owner = n;
	r->completion = completion;
	r->context = context;
	if (n->requests.count > REQUESTS_MAX) {
		fail(r, FAILED, full);
		node_disconnect(n);
	} else
		advance(n);
}

void
node_cancel(struct node *n, const void *context)
{
	struct request *r;

	for (r = n->requests.first; r != NULL; r = r->next) {
		if (r->context == context)
			r->completion = NULL;
	}
}

void
node_disconnect(struct node *n)
{
	if (n->requests.first != NULL)
		fail_queued(n, node_waits_for(n));
	primary_disconnect(&n->primary, n->requests.first != NULL);
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
	memset(n, 0, offsetof(struct node, requests.room));
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
	struct request *r;

	if (n == NULL)
		return;
	primary_close(&n->primary);
	loop_remove(n->loop, &n->timer);
	for (r = n->requests.first; r != NULL; r = r->next) {
		loop_cancel(n->loop, &r->pending.task);
		reply_free(r->pending.reply);
	}
	while (n->requests.first != NULL)
		request_drop(&n->requests, n->requests.first);
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

const char *
node_local(const struct node *n)
{
	return n->primary.client != NULL ? client_local(n->primary.client) : NULL;
}

int64_t
node_connect_us(const struct node *n)
{
	return n->primary.client != NULL ? client_connect_us(n->primary.client) : 0;
}

bool
node_is_connected(const struct node *n, int64_t connection)
{
	return n->primary.client != NULL && client_connection(n->primary.client) == connection;
}

bool
node_resends(const struct node *n)
{
	const struct request *r;

	for (r = n->requests.first; r != NULL; r = r->next) {
		if (r->resent && r->state != REQUEST_FINISHED && !r->unreachable)
			return true;
	}
	return false;
}

bool
node_needs_us(const struct node *n)
{
	const struct request *const r = request_first_queued(&n->requests);

	if (node_resends(n))
		return true;
	if (r != NULL)
		return !(r->postponed && r->unreachable);
	return n->primary.client != NULL && !client_flushed(n->primary.client);
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
	const struct request *r;

	for (r = n->requests.first; r != NULL; r = r->next) {
		if (r->state == REQUEST_QUEUED && r->postponed)
			return r->pending.reason.text;
	}
	return primary_waits_for(&n->primary);
}
