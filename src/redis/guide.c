/* SPDX-License-Identifier: MIT */
#include "redis/guide.h"

#include <string.h>

#include "base/clock.h"

#define PATIENCE_US 200000 /* with one guide, as long as there are others */
#define LEAST_US 10000
#define SHARES_MOST 4 /* of what is left each one gets a part; those of a Cluster are too many for equal ones */

static void
hang_up(struct guide *g)
{
	conn_close(g->conn);
	g->conn = NULL;
}

/* The time that the present one gets: its share of what is left; the last one gets all of it. */
static int64_t
patience_us(const struct guide *g, int64_t now_us)
{
	const int64_t left = g->end_us - now_us;
	const int64_t share = left / (g->left + 1 < SHARES_MOST ? g->left + 1 : SHARES_MOST);

	if (share < LEAST_US)
		return LEAST_US;
	return g->left > 0 && share > PATIENCE_US ? PATIENCE_US : share;
}

/* Ask the one whose turn it is. */
static bool
ask(struct guide *g, const struct route *r)
{
	const int64_t now = clock_now_us();
	struct request question;
	struct url url;

	route_url(r, route_guide(r), &url);
	url.db = 0;
	if (!g->with_login)
		url.user[0] = url.password[0] = '\0';
	route_question(r, &question);
	g->conn = conn_open(&url);
	if (g->conn == NULL)
		return false;
	conn_send_request(g->conn, 1, &question);
	g->until_us = now + patience_us(g, now);
	return true;
}

static enum guide_state
ask_next(struct guide *g, struct route *r)
{
	hang_up(g);
	if (g->left-- <= 0)
		return GUIDE_FAILED;
	/* Sentinels have logins of their own, mostly none. */
	g->with_login = r->url->kind != URL_SENTINEL;
	if (ask(g, r))
		return GUIDE_BUSY;
	(void)err_set(&g->err, ST_SYSTEM, OUT_OF_MEMORY);
	g->local = true;
	hang_up(g);
	return GUIDE_FAILED;
}

void
guide_start(struct guide *g, struct route *r, bool spare)
{
	memset(g, 0, sizeof(*g));
	g->left = route_guides(r);
	g->end_us = clock_now_us() + (spare ? r->url->round_us / 2 : r->url->round_us / 4 * 3);
	(void)ask_next(g, r);
}

/* This one couldn't tell.  What a guide says of the service is worth more than that another one can't be reached. */
static enum guide_state
disappoint(struct guide *g, struct route *r, const struct err *err, bool heard)
{
	struct url url;

	if (heard || !g->heard) {
		route_url(r, route_guide(r), &url);
		g->err = *err;
		err_prefix(&g->err, url.name);
		g->heard = heard;
	}
	route_next_guide(r);
	return ask_next(g, r);
}

static enum guide_state
hear(struct guide *g, struct route *r, const struct delivery *d)
{
	struct err err;

	g->local = false;
	if (d->reply == NULL) {
		g->denied = g->denied || d->denied;
		g->local = d->local;
		return disappoint(g, r, &d->err, d->denied);
	}
	if (reply_kind(d->reply) == REPLY_ERROR && strstr(reply_text(d->reply), "NOAUTH") != NULL) {
		g->denied = true;
		if (!g->with_login && r->url->password[0] != '\0') {
			g->with_login = true;
			hang_up(g);
			return ask(g, r) ? GUIDE_BUSY : GUIDE_FAILED;
		}
	}
	if (!route_learn(r, d->reply, &err))
		return disappoint(g, r, &err, !route_is_early(d->reply));
	hang_up(g);
	return GUIDE_TOLD;
}

enum guide_state
guide_handle(struct guide *g, struct route *r, int64_t now_us)
{
	enum guide_state state = GUIDE_BUSY;
	struct delivery d;
	struct err late;

	if (g->conn == NULL)
		return GUIDE_FAILED;
	conn_handle(g->conn, now_us);
	while (state == GUIDE_BUSY && g->conn != NULL && conn_take(g->conn, &d)) {
		state = hear(g, r, &d);
		reply_free(d.reply);
	}
	if (state == GUIDE_BUSY && now_us >= g->until_us) {
		g->local = false;
		(void)err_set(&late, ST_NO_QUORUM, "%s", conn_silence(g->conn));
		state = disappoint(g, r, &late, false);
	}
	return state;
}

void
guide_stop(struct guide *g, struct route *r)
{
	if (g->conn == NULL)
		return;
	hang_up(g);
	route_next_guide(r);
}
