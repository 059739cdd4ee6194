/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "redis/guide.h"
#include "redis/names.h"
#include "redis/parcels.h"
#include "redis/route.h"

#define REDIRECTS_MAX 8
#define AGAIN_US 20000	    /* after TRYAGAIN, while a slot moves */
#define CONFIRMED_US 500000 /* so long it counts that a sentinel has named the master */
#define ID_CHECK 1u	    /* of the question whether it is a master; parcels have even ones */

struct node {
	struct url url;
	struct route route;
	struct guide guide;
	struct conn *conn;    /* NULL: none */
	int at;		      /* the place that conn leads to */
	bool checked;	      /* it is what it should be */
	bool stale;	      /* when nothing is outstanding, look for the server anew */
	bool told;	      /* the guide has told just now */
	int64_t confirmed_us; /* when a sentinel named the server for the last time */
	int misled;	      /* how many sentinels in a row have named a server that isn't there, or no master */
	bool denied, local;
	struct err err; /* of what is LOST */
	struct parcels queue;
};

/* What isn't under way will not be sent. */
static void
lose(struct node *n, const char *why, bool denied)
{
	parcels_lose(&n->queue);
	(void)err_set(&n->err, ST_NO_QUORUM, "%s", why);
	n->denied = denied;
	n->local = false;
}

/* -- Sending ---------------------------------------------------------------- */

static void
send_request(struct node *n, unsigned int id, const struct request *r)
{
	size_t length = 0;
	char *bytes = request_encode(r, &length);

	conn_send(n->conn, id, bytes, length);
	free(bytes);
}

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
	send_request(n, p->id + 1, &wait);
}

static void
hang_up(struct node *n)
{
	conn_close(n->conn);
	n->conn = NULL;
	n->stale = false;
}

/* A sentinel may be late to know, so a server is asked itself whether it is the master. */
static bool
connect_to(struct node *n, int place)
{
	struct request role;
	struct url url;

	route_url(&n->route, place, &url);
	n->conn = conn_open(&url);
	if (n->conn == NULL)
		return false;
	n->at = place;
	n->checked = n->url.kind != URL_SENTINEL;
	if (!n->checked) {
		request_begin(&role, "ROLE");
		send_request(n, ID_CHECK, &role);
	}
	return true;
}

/*
 * A master that was deposed while it hung, or was cut off, may not know it yet, and what it says of a lock counts for
 * nothing.  So a sentinel is asked before what must last, though the connection is fine.
 */
static bool
is_doubtful(const struct node *n, const struct parcel *p)
{
	return n->url.kind == URL_SENTINEL && p->lasting && n->conn != NULL && n->checked &&
	    clock_now_us() - n->confirmed_us > CONFIRMED_US;
}

/* Where it goes is not known. */
static void
ask_guide(struct node *n)
{
	if (n->told && n->url.kind == URL_CLUSTER)
		lose(n, "no server of the Cluster owns the slot of the key", false);
	else if (n->guide.conn == NULL)
		guide_start(&n->guide, &n->route);
}

/* False if it can't be sent now, and nothing behind it. */
static bool
send_parcel(struct node *n, struct parcel *p)
{
	int place;

	if (n->conn != NULL && n->url.kind != URL_SERVER && conn_ended(n->conn))
		n->stale = true;
	if (n->conn != NULL && n->stale) {
		if (parcels_under_way(&n->queue))
			return false;
		hang_up(n);
		route_forget(&n->route);
	}
	place = p->asking != NOWHERE ? p->asking : route_target(&n->route, p->slot, p->part);
	if (place == NOWHERE || is_doubtful(n, p)) {
		ask_guide(n);
		return false;
	}
	if (n->conn != NULL && n->at != place) {
		if (parcels_under_way(&n->queue))
			return false;
		hang_up(n);
	}
	if (n->conn == NULL && !connect_to(n, place)) {
		lose(n, OUT_OF_MEMORY, false);
		n->local = true;
		return false;
	}
	if (!n->checked)
		return false;
	if (p->asking != NOWHERE)
		conn_send_asking(n->conn);
	conn_send(n->conn, p->id, p->bytes, p->length);
	send_wait(n, p);
	p->progress = SENT;
	return true;
}

/* Send what can be sent, in order. */
static void
advance(struct node *n)
{
	struct parcel *p;

	while ((p = parcels_first(&n->queue, HELD)) != NULL) {
		if ((p->not_before_us > 0 && p->not_before_us > clock_now_us()) || !send_parcel(n, p))
			return;
	}
}

void
node_send(struct node *n, unsigned int tag, const struct request *r)
{
	const char *key = n->url.kind == URL_CLUSTER ? request_key(r) : NULL;
	const int slot = key != NULL ? names_slot(key, strlen(key)) : NO_SLOT;

	if (parcels_add(&n->queue, tag, r, slot) == NULL) {
		lose(n, "too many requests without an answer", false);
		if (n->conn != NULL)
			conn_break(n->conn);
		return;
	}
	advance(n);
}

/* -- Answers ---------------------------------------------------------------- */

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
	switch (route_redirection(&n->route, reply, &p->asking)) {
	case GO_NOWHERE:
		return false;
	case GO_BY_SLOT:
	case GO_ASKING:
		p->redirects++;
		break;
	case GO_LATER: /* until whoever waits gives up */
		p->redirects = 0;
		p->not_before_us = clock_now_us() + AGAIN_US;
		break;
	}
	p->progress = HELD;
	return true;
}

static void
check_role(struct node *n, const struct delivery *d)
{
	const char *role = reply_text(reply_item(d->reply, 0));
	struct err err = d->err;
	char shown[24];

	n->checked = strcmp(role, "master") == 0;
	if (n->checked) {
		n->misled = 0;
		return;
	}
	if (d->reply != NULL && reply_kind(d->reply) == REPLY_ERROR)
		route_quote(d->reply, &err);
	else if (d->reply != NULL)
		(void)err_set(&err, ST_NO_QUORUM, "the sentinels call it the master, but it is none (%s)",
		    text_show(role, shown, sizeof(shown)));
	route_blame(&n->route, n->at, &err);
	n->stale = true;
	route_next_guide(&n->route);
	if (++n->misled < route_guides(&n->route))
		return; /* the next one may know better */
	n->misled = 0;
	lose(n, err.text, d->denied || d->reply != NULL);
}

/* The answer to WAIT: does what was written count?  The first answer is the one to deliver. */
static void
judge_replicas(const struct node *n, struct parcel *p, struct delivery *d)
{
	const int64_t have = reply_integer(d->reply);

	d->unconfirmed = have < n->url.replicas;
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

	if (d->tag == ID_CHECK)
		check_role(n, d);
	p = parcels_with_id(&n->queue, d->tag & ~1u);
	if (d->tag == ID_CHECK || p == NULL || p->progress != (d->tag == p->id ? SENT : WRITTEN)) {
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
	if (n->url.kind != URL_SERVER && (d->reply == NULL ? d->broken || d->unsent : route_is_disowned(d->reply)))
		n->stale = true;
	if (d->reply == NULL)
		route_blame(&n->route, n->at, &d->err);
	d->tag = p->tag;
	parcels_drop(&n->queue, p);
	return true;
}

static bool
take_lost(struct node *n, struct delivery *d)
{
	struct parcel *p = parcels_first(&n->queue, LOST);

	if (p == NULL)
		return false;
	*d = (struct delivery){ .tag = p->tag, .unsent = true, .denied = n->denied, .local = n->local, .err = n->err };
	parcels_drop(&n->queue, p);
	return true;
}

bool
node_take(struct node *n, struct delivery *d)
{
	if (take_lost(n, d))
		return true;
	while (n->conn != NULL && conn_take(n->conn, d)) {
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
	const struct conn *c = n->guide.conn != NULL ? n->guide.conn : n->conn;

	return c != NULL ? conn_fd(c) : -1;
}

short
node_events(const struct node *n)
{
	const struct conn *c = n->guide.conn != NULL ? n->guide.conn : n->conn;

	return c != NULL ? conn_events(c) : POLLIN;
}

static int64_t
earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t
node_wake_us(const struct node *n)
{
	const int64_t wake = parcels_wake_us(&n->queue);

	if (n->guide.conn != NULL)
		return earlier(wake, earlier(n->guide.until_us, conn_wake_us(n->guide.conn)));
	return n->conn != NULL ? earlier(wake, conn_wake_us(n->conn)) : wake;
}

/* Go on asking.  Where no sentinel can be reached none has named another server than the one that is known. */
static void
hear_guide(struct node *n, int64_t now_us)
{
	const enum guide_state state = guide_handle(&n->guide, &n->route, now_us);

	n->told = state == GUIDE_TOLD;
	if (n->told || (state == GUIDE_FAILED && n->conn != NULL && n->checked && !n->stale && !n->guide.heard))
		n->confirmed_us = now_us;
	else if (state == GUIDE_FAILED) {
		lose(n, n->guide.err.text, n->guide.denied || n->guide.heard);
		n->local = n->guide.local;
	}
}

void
node_handle(struct node *n, int64_t now_us)
{
	if (n->guide.conn != NULL) {
		hear_guide(n, now_us);
	} else if (n->conn != NULL)
		conn_handle(n->conn, now_us);
	advance(n);
	n->told = false;
}

/* -- Giving up -------------------------------------------------------------- */

void
node_break(struct node *n)
{
	const bool service = n->url.kind != URL_SERVER;

	if (service && n->queue.count > 0) {
		lose(n, node_silence(n), false);
		guide_stop(&n->guide, &n->route);
		n->stale = true;
	}
	if (n->conn != NULL && service)
		conn_stop_dialling(n->conn, false);
	if (n->conn != NULL)
		conn_break(n->conn);
}

void
node_stop_dialling(struct node *n, bool in_time)
{
	if (parcels_first(&n->queue, HELD) != NULL)
		lose(n, in_time ? "not waited for" : node_silence(n), false);
	guide_stop(&n->guide, &n->route);
	if (n->conn != NULL)
		conn_stop_dialling(n->conn, in_time);
}

/* -- The rest --------------------------------------------------------------- */

struct node *
node_open(const struct url *url, const char *password)
{
	struct node *n = malloc(sizeof(*n));

	if (n == NULL)
		return NULL;
	memset(n, 0, offsetof(struct node, queue.parcel));
	if (!url_copy(&n->url, url)) {
		free(n);
		return NULL;
	}
	if (n->url.password[0] == '\0')
		(void)snprintf(n->url.password, sizeof(n->url.password), "%s", password);
	if (!route_open(&n->route, &n->url)) {
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
	const struct place *a, *b;

	if (n->url.kind == URL_SERVER || n->conn == NULL || twin->conn == NULL)
		return false;
	a = &n->route.place[n->at];
	b = &twin->route.place[twin->at];
	return strcmp(a->host, b->host) != 0 || strcmp(a->port, b->port) != 0;
}

void
node_close(struct node *n)
{
	if (n == NULL)
		return;
	conn_close(n->conn);
	conn_close(n->guide.conn);
	parcels_clear(&n->queue);
	route_close(&n->route);
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
	return n->url.kind != URL_SERVER || n->url.secure || (n->conn != NULL && conn_takes_long(n->conn));
}

int64_t
node_dial_us(const struct node *n)
{
	return n->conn != NULL ? conn_dial_us(n->conn) : 0;
}

bool
node_flushed(const struct node *n)
{
	if (parcels_held(&n->queue))
		return false;
	return n->conn == NULL || conn_flushed(n->conn);
}

int
node_parts(const struct node *n)
{
	return n->url.kind == URL_CLUSTER && n->route.parts > 0 ? n->route.parts : 1;
}

const char *
node_silence(const struct node *n)
{
	if (parcels_postponed(&n->queue))
		return "the key's slot is moving to another server of the Cluster";
	if (n->guide.conn != NULL)
		return n->url.kind == URL_SENTINEL ? "no sentinel answered in time"
						   : "no server of the Cluster answered in time";
	return n->conn != NULL ? conn_silence(n->conn) : "no connection in time";
}
