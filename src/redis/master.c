/* SPDX-License-Identifier: MIT */
#include "redis/master.h"

#include <poll.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define CONFIRMED_US 500000 /* so long it counts that a sentinel has named the master */

bool
master_open(struct master *m, const struct url *url)
{
	memset(m, 0, offsetof(struct master, err));
	m->guide.conn = NULL;
	m->url = url;
	return route_open(&m->route, url);
}

void
master_close(struct master *m)
{
	conn_close(m->conn);
	conn_close(m->guide.conn);
	route_close(&m->route);
}

static enum master_state
unknown(struct master *m, const char *why, bool denied, bool local)
{
	(void)err_set(&m->err, ST_NO_QUORUM, "%s", why);
	m->denied = denied;
	m->local = local;
	return MASTER_UNKNOWN;
}

/* -- Getting at it ---------------------------------------------------------- */

static void
hang_up(struct master *m)
{
	conn_close(m->conn);
	m->conn = NULL;
	m->stale = false;
}

/* A sentinel may be late to know, so a server is asked itself whether it is the master. */
static bool
connect_to(struct master *m, int place)
{
	struct request role;
	struct url url;

	route_url(&m->route, place, &url);
	m->conn = conn_open(&url);
	if (m->conn == NULL)
		return false;
	m->at = place;
	m->checked = m->url->kind != URL_SENTINEL;
	if (!m->checked) {
		request_begin(&role, "ROLE");
		conn_send_request(m->conn, MASTER_CHECK, &role);
	}
	return true;
}

/*
 * A master that was deposed while it hung, or was cut off, may not know it yet, and what it says of a lock counts for
 * nothing.  So a sentinel is asked before what must last, though the connection is fine.
 */
static bool
is_doubtful(const struct master *m, const struct parcel *p)
{
	return m->url->kind == URL_SENTINEL && p->lasting && m->conn != NULL && m->checked &&
	    clock_now_us() - m->confirmed_us > CONFIRMED_US;
}

/* Is there one that counts until a sentinel names another? */
static bool
is_known(const struct master *m)
{
	return m->conn != NULL && m->checked && !m->stale;
}

static enum master_state
ask_guide(struct master *m)
{
	if (m->told && m->url->kind == URL_CLUSTER)
		return unknown(m, "no server of the Cluster owns the slot of the key", false, false);
	if (m->guide.conn == NULL)
		guide_start(&m->guide, &m->route, is_known(m));
	return MASTER_SOUGHT;
}

enum master_state
master_reach(struct master *m, const struct parcel *p, const struct parcels *others)
{
	int place;

	if (m->conn != NULL)
		conn_look(m->conn);
	if (m->conn != NULL && conn_is_broken(m->conn))
		return MASTER_SOUGHT; /* its failures are to be taken first */
	if (m->conn != NULL && m->url->kind != URL_SERVER && conn_ended(m->conn))
		m->stale = true;
	if (m->conn != NULL && m->stale) {
		if (parcels_under_way(others))
			return MASTER_SOUGHT;
		hang_up(m);
		route_forget(&m->route);
	}
	place = p->asking != NOWHERE ? p->asking : route_target(&m->route, p->slot, p->part);
	if (place == NOWHERE || is_doubtful(m, p))
		return ask_guide(m);
	if (m->conn != NULL && m->at != place) {
		if (parcels_under_way(others))
			return MASTER_SOUGHT;
		hang_up(m);
	}
	if (m->conn == NULL && !connect_to(m, place))
		return unknown(m, OUT_OF_MEMORY, false, true);
	return m->checked ? MASTER_READY : MASTER_SOUGHT;
}

/* -- What it answers -------------------------------------------------------- */

enum master_state
master_checked(struct master *m, const struct delivery *d)
{
	const char *role = reply_text(reply_item(d->reply, 0));
	struct err err = d->err;
	char shown[24];

	m->checked = strcmp(role, "master") == 0;
	if (m->checked) {
		m->misled = 0;
		return MASTER_READY;
	}
	if (d->reply != NULL && reply_kind(d->reply) == REPLY_ERROR)
		route_quote(d->reply, &err);
	else if (d->reply != NULL)
		(void)err_set(&err, ST_NO_QUORUM, "the sentinels call it the master, but it is none (%s)",
		    text_show(role, shown, sizeof(shown)));
	route_blame(&m->route, m->at, &err);
	m->stale = true;
	route_next_guide(&m->route);
	if (++m->misled < route_guides(&m->route))
		return MASTER_SOUGHT; /* the next one may know better */
	m->misled = 0;
	return unknown(m, err.text, d->denied || d->reply != NULL, false);
}

void
master_answered(struct master *m, struct delivery *d)
{
	if (m->url->kind != URL_SERVER && (d->reply == NULL ? d->broken || d->unsent : route_is_disowned(d->reply)))
		m->stale = true;
	if (d->reply == NULL)
		route_blame(&m->route, m->at, &d->err);
}

/* -- Waiting ---------------------------------------------------------------- */

/* What is waited for now. */
static const struct conn *
present(const struct master *m)
{
	return m->guide.conn != NULL ? m->guide.conn : m->conn;
}

int
master_fd(const struct master *m)
{
	const struct conn *c = present(m);

	return c != NULL ? conn_fd(c) : -1;
}

short
master_events(const struct master *m)
{
	const struct conn *c = present(m);

	return c != NULL ? conn_events(c) : POLLIN;
}

int64_t
master_wake_us(const struct master *m)
{
	const struct conn *c = present(m);
	const int64_t wake = c != NULL ? conn_wake_us(c) : CLOCK_NEVER;

	return m->guide.conn != NULL && m->guide.until_us < wake ? m->guide.until_us : wake;
}

/* Go on asking.  Where no sentinel can be reached none has named another server than the one that is known. */
static enum master_state
hear_guide(struct master *m, int64_t now_us)
{
	const enum guide_state state = guide_handle(&m->guide, &m->route, now_us);

	m->told = state == GUIDE_TOLD;
	if (m->told || (state == GUIDE_FAILED && is_known(m) && !m->guide.heard))
		m->confirmed_us = now_us;
	else if (state == GUIDE_FAILED)
		return unknown(m, m->guide.err.text, m->guide.denied || m->guide.heard, m->guide.local);
	return MASTER_SOUGHT;
}

enum master_state
master_handle(struct master *m, int64_t now_us)
{
	if (m->guide.conn != NULL)
		return hear_guide(m, now_us);
	if (m->conn != NULL)
		conn_handle(m->conn, now_us);
	return MASTER_SOUGHT;
}

/* -- Giving up -------------------------------------------------------------- */

void
master_break(struct master *m, bool outstanding)
{
	const bool service = m->url->kind != URL_SERVER;

	if (service && outstanding) {
		guide_stop(&m->guide, &m->route);
		m->stale = true;
	}
	if (m->conn != NULL && service)
		conn_stop_dialling(m->conn, false);
	if (m->conn != NULL)
		conn_break(m->conn);
}

void
master_stop_dialling(struct master *m, bool in_time)
{
	guide_stop(&m->guide, &m->route);
	if (m->conn != NULL)
		conn_stop_dialling(m->conn, in_time);
}

/* -- What is known of it ---------------------------------------------------- */

bool
master_parted(const struct master *m, const struct master *twin)
{
	const struct place *a, *b;

	if (m->url->kind == URL_SERVER || m->conn == NULL || twin->conn == NULL)
		return false;
	a = &m->route.place[m->at];
	b = &twin->route.place[twin->at];
	return strcmp(a->host, b->host) != 0 || strcmp(a->port, b->port) != 0;
}

const char *
master_silence(const struct master *m)
{
	if (m->guide.conn != NULL)
		return m->url->kind == URL_SENTINEL ? "no sentinel answered in time"
						    : "no server of the Cluster answered in time";
	return m->conn != NULL ? conn_silence(m->conn) : "no connection in time";
}
