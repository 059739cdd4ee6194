/* SPDX-License-Identifier: MIT */
#include "redis/primary.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"

#define CONFIRMED_US 500000 /* how long the answer of a sentinel is valid */

static enum primary_state
unknown(struct primary *p, const struct reason *why, enum failure failure)
{
	p->reason = *why;
	p->failure = failure;
	return PRIMARY_UNKNOWN;
}

static enum primary_state
unknown_since(struct primary *p, const char *why, enum failure failure)
{
	reason_set(&p->reason, "%s", why);
	p->failure = failure;
	return PRIMARY_UNKNOWN;
}

static void
hang_up(struct primary *p)
{
	client_close(p->client);
	loop_cancel(p->owner.loop, &p->role.task);
	p->client = NULL;
	p->stale = false;
}

/* -- Connecting ------------------------------------------------------------- */

static void
ask_role(struct primary *p)
{
	struct command role;

	command_begin(&role, "ROLE");
	client_send_command(p->client, &p->role, &role);
}

/* A sentinel may have outdated information, so the server itself is asked whether it is the primary. */
static bool
connect_to(struct primary *p, int endpoint)
{
	struct url url;

	topology_url(&p->topology, endpoint, &url);
	p->client = client_open(p->owner.loop, &url, p->owner.disconnected, p->context);
	if (p->client == NULL)
		return false;
	p->at = endpoint;
	p->checked = p->url->kind != URL_SENTINEL;
	if (!p->checked)
		ask_role(p);
	return true;
}

/*
 * Must a sentinel confirm the primary?  A primary that was demoted while it hung, or was cut off, may not know it yet,
 * and its replies about a lock must not count.  So a sentinel is asked before a write that must not be lost, even if
 * the connection works.
 */
static bool
is_doubtful(const struct primary *p, const struct target *t)
{
	return p->url->kind == URL_SENTINEL && t->needs_replicas && p->client != NULL && p->checked &&
	    clock_now_us() - p->confirmed_us > CONFIRMED_US;
}

/* Is a primary known, which remains valid until a sentinel names another one? */
static bool
is_known(const struct primary *p)
{
	return p->client != NULL && p->checked && !p->stale;
}

static enum primary_state
discover(struct primary *p)
{
	const int64_t timeout = p->url->node_timeout_us;

	if (p->discovered && p->url->kind == URL_CLUSTER)
		return unknown_since(p, "no server of the Cluster owns the slot of the key", FAILED);
	if (!discovery_is_running(&p->discovery))
		discovery_start(&p->discovery, is_known(p) ? timeout / 2 : timeout / 4 * 3);
	return PRIMARY_PENDING;
}

enum primary_state
primary_reach(struct primary *p, const struct target *t, bool busy)
{
	int endpoint;

	if (p->client != NULL)
		client_check_idle(p->client);
	if (p->client != NULL && p->url->kind != URL_SERVER && client_ended(p->client))
		p->stale = true;
	if (p->client != NULL && p->stale) {
		if (busy)
			return PRIMARY_PENDING;
		hang_up(p);
		topology_forget(&p->topology);
	}
	endpoint = t->asking != NOWHERE ? t->asking : topology_find(&p->topology, t->slot, t->part);
	if (endpoint == NOWHERE || is_doubtful(p, t))
		return discover(p);
	if (p->client != NULL && p->at != endpoint) {
		if (busy)
			return PRIMARY_PENDING;
		hang_up(p);
	}
	if (p->client == NULL && !connect_to(p, endpoint))
		return unknown_since(p, OUT_OF_MEMORY, LOCAL);
	return p->checked ? PRIMARY_READY : PRIMARY_PENDING;
}

/* -- Replies ---------------------------------------------------------------- */

/* The server is no primary, or can't be reached.  The next sentinel may have better information. */
static bool
try_next_sentinel(struct primary *p, const struct reason *why, enum failure failure)
{
	p->stale = true;
	topology_next_source(&p->topology);
	if (++p->misled < topology_sources(&p->topology))
		return true;
	p->misled = 0;
	(void)unknown(p, why, failure);
	return false;
}

static void
role_answered(struct task *task)
{
	struct primary *const p = ((struct pending *)task)->owner;
	struct reply *const reply = p->role.reply;
	const char *role = reply_text(reply_item(reply, 0));
	struct reason why = p->role.reason;
	bool found = true;
	char shown[24];

	p->checked = strcmp(role, "master") == 0;
	if (p->checked)
		p->misled = 0;
	else {
		if (reply != NULL && reply_kind(reply) == REPLY_ERROR)
			topology_quote(reply, &why);
		else if (reply != NULL)
			reason_set(&why, "the sentinels call it the master, but it is none (%s)",
			    text_show(role, shown, sizeof(shown)));
		if (reply != NULL)
			topology_add_context(&p->topology, p->at, &why);
		found = try_next_sentinel(p, &why, reply != NULL ? DENIED : p->role.failure);
	}
	reply_free(reply);
	p->owner.changed(p->context, found);
}

void
primary_check_reply(struct primary *p, const struct reply *reply)
{
	if (p->url->kind != URL_SERVER && topology_is_demoted(reply))
		p->stale = true;
}

void
primary_disconnected(struct primary *p)
{
	if (p->url->kind != URL_SERVER)
		p->stale = true;
}

/* If no sentinel can be reached, none has named another server: the known primary remains valid. */
static void
discovered(void *context, bool found)
{
	struct primary *const p = context;

	if (found || (is_known(p) && !p->discovery.answered)) {
		p->confirmed_us = clock_now_us();
		p->discovered = found;
		p->owner.changed(p->context, true);
		p->discovered = false;
		return;
	}
	(void)unknown(p, &p->discovery.reason, p->discovery.answered ? DENIED : p->discovery.failure);
	p->owner.changed(p->context, false);
}

/* -- Giving up -------------------------------------------------------------- */

void
primary_disconnect(struct primary *p, bool outstanding)
{
	const bool service = p->url->kind != URL_SERVER;

	if (service && outstanding) {
		discovery_stop(&p->discovery);
		p->stale = true;
	}
	if (p->client != NULL && service)
		client_stop_connecting(p->client, false);
	if (p->client != NULL)
		client_disconnect(p->client);
}

void
primary_stop_connecting(struct primary *p, bool in_time)
{
	discovery_stop(&p->discovery);
	if (p->client != NULL)
		client_stop_connecting(p->client, in_time);
}

/* -- Opening and closing ---------------------------------------------------- */

bool
primary_open(struct primary *p, const struct url *url, const struct primary_owner *owner, void *context)
{
	memset(p, 0, sizeof(*p));
	p->url = url;
	p->owner = *owner;
	p->context = context;
	p->role.task.run = role_answered;
	p->role.owner = p;
	discovery_init(&p->discovery, &p->topology, owner->loop);
	p->discovery.finished = discovered;
	p->discovery.context = p;
	return topology_open(&p->topology, url);
}

void
primary_close(struct primary *p)
{
	hang_up(p);
	discovery_close(&p->discovery);
	topology_close(&p->topology);
}

bool
primary_differs(const struct primary *p, const struct primary *other)
{
	const struct address *a, *b;

	if (p->url->kind == URL_SERVER || p->client == NULL || other->client == NULL)
		return false;
	a = &p->topology.endpoint[p->at];
	b = &other->topology.endpoint[other->at];
	return strcmp(a->host, b->host) != 0 || strcmp(a->port, b->port) != 0;
}

const char *
primary_waits_for(const struct primary *p)
{
	if (discovery_is_running(&p->discovery))
		return p->url->kind == URL_SENTINEL ? "no sentinel answered in time"
						    : "no server of the Cluster answered in time";
	return p->client != NULL ? client_waits_for(p->client) : "no connection in time";
}
