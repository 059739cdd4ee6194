/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/master.h"
#include "redis/names.h"
#include "redis/parcels.h"

#define REDIRECTS_MAX 8
#define AGAIN_US 20000 /* after TRYAGAIN, while a slot moves, or where the server of a patient one is away */

struct node {
	struct url url;
	struct master master;
	struct parcels queue;
	/* of what is LOST, set when it was: */
	bool denied, local;
	struct err err;
	struct err away; /* why something is postponed */
};

/* What isn't under way will not be sent. */
static void
lose(struct node *n, const char *why)
{
	parcels_lose(&n->queue, 0);
	(void)err_set(&n->err, ST_NO_QUORUM, "%s", why);
	n->denied = n->local = false;
}

/* Where it would have to go is not known. */
static void
lose_master(struct node *n)
{
	const bool may_come = !n->master.denied && !n->master.local;

	n->away = n->err = n->master.err;
	n->denied = n->master.denied;
	n->local = n->master.local;
	parcels_lose(&n->queue, may_come ? clock_now_us() + AGAIN_US : 0);
}

/* -- Sending ---------------------------------------------------------------- */

/* Behind what must last, on the same connection: how many replicas have it? */
static void
send_wait(struct node *n, const struct parcel *p)
{
	struct request wait;

	if (!p->lasting || n->url.replicas == 0)
		return;
	request_begin(&wait, "WAIT");
	request_add_number(&wait, n->url.replicas);
	request_add_number(&wait, n->url.replicas_ms);
	conn_send_request(n->master.conn, p->id + 1, &wait);
}

/* False if it can't be sent now, and nothing behind it. */
static bool
send_parcel(struct node *n, struct parcel *p)
{
	const enum master_state state = master_reach(&n->master, p, &n->queue);

	if (state == MASTER_UNKNOWN)
		lose_master(n);
	if (state != MASTER_READY)
		return false;
	if (p->connection != 0 && p->connection != conn_number(n->master.conn)) {
		p->progress = LOST;
		(void)err_set(&n->err, ST_NO_QUORUM, "the connection is another one");
		n->denied = n->local = false;
		return true;
	}
	if (p->asking != NOWHERE)
		conn_send_asking(n->master.conn);
	conn_send(n->master.conn, p->id, p->bytes, p->length);
	send_wait(n, p);
	p->progress = SENT;
	p->postponed = false;
	return true;
}

/* Send what can be sent, in order. */
static void
advance(struct node *n)
{
	struct parcel *p;

	while ((p = parcels_first(&n->queue, HELD)) != NULL) {
		if (p->not_before_us > 0 && p->not_before_us > clock_now_us())
			return;
		p->not_before_us = 0; /* from now on it waits for the server, not for the clock */
		if (!send_parcel(n, p))
			return;
	}
}

void
node_send(struct node *n, unsigned int tag, const struct request *r)
{
	const char *key = n->url.kind == URL_CLUSTER ? request_key(r) : NULL;
	const int slot = key != NULL ? names_slot(key, strlen(key)) : NO_SLOT;

	const struct parcel *p = parcels_add(&n->queue, tag, r, slot);

	if (p != NULL && p->progress == HELD) {
		advance(n);
		return;
	}
	lose(n, "too many requests without an answer");
	if (n->master.conn != NULL)
		conn_break(n->master.conn);
}

/* -- Answers ---------------------------------------------------------------- */

/* It is sent again in a moment, until whoever waits gives up. */
static void
postpone(struct node *n, struct parcel *p, const char *why)
{
	p->postponed = true;
	p->not_before_us = clock_now_us() + AGAIN_US;
	(void)err_set(&n->away, ST_NO_QUORUM, "%s", why);
}

/* Is it told to go elsewhere?  Then it will. */
static bool
redirect(struct node *n, struct parcel *p, const struct reply *reply)
{
	if (n->url.kind != URL_CLUSTER || p->redirects == REDIRECTS_MAX)
		return false;
	/* An undo that was sent behind a request must not be overtaken by it. */
	if (p->lasting && parcels_followed(&n->queue, p))
		return false;
	p->asking = NOWHERE;
	switch (route_redirection(&n->master.route, reply, n->master.at, &p->asking)) {
	case GO_NOWHERE:
		return false;
	case GO_BY_SLOT:
	case GO_ASKING:
		p->redirects++;
		break;
	case GO_LATER:
		p->redirects = 0;
		postpone(n, p, "the key's slot is moving to another server of the Cluster");
		break;
	}
	p->progress = HELD;
	return true;
}

/*
 * Is it to be sent once more?  A server that closed a connection is alive, or another one is in its place.  A patient one
 * is sent until a server takes it.
 */
static bool
send_again(struct node *n, struct parcel *p, const struct delivery *d)
{
	const bool early = p->patient && d->reply != NULL && route_is_early(d->reply);
	struct err err = d->err;

	if (p->progress == WRITTEN || p->once || d->denied || (d->reply != NULL && !early))
		return false;
	if (!p->resent && ((d->closed && d->broken) || d->local))
		p->resent = true;
	else if (p->patient && (d->closed || early)) {
		if (early)
			route_quote(d->reply, &err);
		postpone(n, p, err.text);
	} else
		return false;
	if (d->reply == NULL && !d->unsent) {
		p->left = true;
		if (p->again != 0)
			p->bytes[p->again] = '1';
	}
	p->progress = HELD;
	return true;
}

/* The answer to WAIT: does what was written count?  The first answer is the one to deliver. */
static void
judge_replicas(const struct node *n, struct parcel *p, struct delivery *d)
{
	const int64_t have = reply_integer(d->reply);

	d->unconfirmed = have < n->url.replicas;
	d->unsent = d->broken = d->closed = d->denied = d->local = false; /* of the question, not of what was written */
	if (d->reply != NULL && reply_kind(d->reply) == REPLY_ERROR)
		route_quote(d->reply, &d->err);
	else if (d->reply != NULL)
		(void)err_set(&d->err, ST_NO_QUORUM, "%d of %d replicas confirmed it in time (--replicas)", (int)have,
		    n->url.replicas);
	reply_free(d->reply);
	d->reply = p->reply;
}

/* A refusal has written nothing that replicas could confirm. */
static bool
has_written(const struct reply *reply)
{
	const struct reply *number = reply_items(reply) > 0 ? reply_item(reply, 0) : reply;

	return reply_kind(number) == REPLY_INTEGER && reply_integer(number) > 0;
}

/* An answer from the connection.  True if it is one to deliver; otherwise the reply has been taken care of. */
static bool
take_answer(struct node *n, struct delivery *d)
{
	struct parcel *p;

	if (d->tag == MASTER_CHECK && master_checked(&n->master, d) == MASTER_UNKNOWN)
		lose_master(n);
	p = parcels_with_id(&n->queue, d->tag & ~1u);
	if (d->tag == MASTER_CHECK || p == NULL || p->progress != (d->tag == p->id ? SENT : WRITTEN)) {
		reply_free(d->reply);
		return false;
	}
	if (d->tag != p->id)
		judge_replicas(n, p, d);
	else if (redirect(n, p, d->reply)) {
		reply_free(d->reply);
		return false;
	} else if (p->lasting && n->url.replicas > 0 && d->reply != NULL && has_written(d->reply)) {
		p->progress = WRITTEN;
		p->reply = d->reply;
		return false;
	}
	master_answered(&n->master, d);
	if (send_again(n, p, d)) {
		reply_free(d->reply);
		return false;
	}
	d->tag = p->tag;
	d->unsent = d->unsent && !p->left;
	parcels_drop(&n->queue, p);
	return true;
}

static bool
take_lost(struct node *n, struct delivery *d)
{
	struct parcel *p = parcels_first(&n->queue, LOST);

	if (p == NULL)
		return false;
	*d = (struct delivery){ .tag = p->tag,
		.unsent = !p->left,
		.denied = n->denied,
		.local = n->local,
		.err = n->err };
	parcels_drop(&n->queue, p);
	return true;
}

bool
node_take(struct node *n, struct delivery *d)
{
	if (take_lost(n, d))
		return true;
	while (n->master.conn != NULL && conn_take(n->master.conn, d)) {
		if (take_answer(n, d))
			return true;
	}
	advance(n);
	return take_lost(n, d);
}

/* -- Waiting ---------------------------------------------------------------- */

int
node_fd(const struct node *n)
{
	return master_fd(&n->master);
}

short
node_events(const struct node *n)
{
	return master_events(&n->master);
}

int64_t
node_wake_us(const struct node *n)
{
	const int64_t queue = parcels_wake_us(&n->queue), master = master_wake_us(&n->master);

	return queue < master ? queue : master;
}

void
node_handle(struct node *n, int64_t now_us)
{
	if (master_handle(&n->master, now_us) == MASTER_UNKNOWN)
		lose_master(n);
	advance(n);
	n->master.told = false;
}

/* -- Giving up -------------------------------------------------------------- */

void
node_break(struct node *n)
{
	if (n->queue.count > 0)
		lose(n, node_silence(n));
	master_break(&n->master, n->queue.count > 0);
}

void
node_stop_dialling(struct node *n, bool in_time)
{
	if (parcels_held(&n->queue))
		lose(n, in_time ? "not waited for" : node_silence(n));
	master_stop_dialling(&n->master, in_time);
}

/* -- The rest --------------------------------------------------------------- */

struct node *
node_open(const struct url *url, const char *password)
{
	struct node *n = malloc(sizeof(*n));

	if (n == NULL)
		return NULL;
	memset(&n->queue, 0, offsetof(struct parcels, parcel));
	if (!url_copy(&n->url, url)) {
		free(n);
		return NULL;
	}
	if (n->url.password[0] == '\0')
		(void)snprintf(n->url.password, sizeof(n->url.password), "%s", password);
	if (!master_open(&n->master, &n->url)) {
		node_close(n);
		return NULL;
	}
	return n;
}

struct node *
node_twin(const struct node *n)
{
	return node_open(&n->url, "");
}

bool
node_parted(const struct node *n, const struct node *twin)
{
	return master_parted(&n->master, &twin->master);
}

void
node_close(struct node *n)
{
	if (n == NULL)
		return;
	master_close(&n->master);
	parcels_clear(&n->queue);
	url_free(&n->url);
	free(n);
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
	return n->url.kind != URL_SERVER || n->url.secure ||
	    (n->master.conn != NULL && conn_takes_long(n->master.conn));
}

int64_t
node_dial_us(const struct node *n)
{
	return n->master.conn != NULL ? conn_dial_us(n->master.conn) : 0;
}

bool
node_flushed(const struct node *n)
{
	if (parcels_held(&n->queue))
		return false;
	return n->master.conn == NULL || conn_flushed(n->master.conn);
}

bool
node_resends(const struct node *n)
{
	return parcels_resent(&n->queue);
}

int
node_parts(const struct node *n)
{
	const int parts = n->master.route.parts;

	return n->url.kind == URL_CLUSTER && parts > 0 ? parts : 1;
}

const char *
node_silence(const struct node *n)
{
	if (parcels_postponed(&n->queue))
		return n->away.text;
	return master_silence(&n->master);
}
