/* SPDX-License-Identifier: MIT */
#include "redis/primary.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"

#define CONFIRMED_US 500000   /* how long the answer of a sentinel is valid */
#define SOURCE_MOST_US 200000 /* for one source, if there are others left */
#define SOURCE_LEAST_US 10000 /* for one source, even if many unresponsive ones then take longer than they should */
#define SHARES_MAX 4	      /* divisor of the time left: a Cluster has too many sources for equal shares */

/* A request of its own is over.  A reply that was not read yet is discarded. */
static void
cancel(const struct primary *p, struct pending *own)
{
	loop_cancel(p->owner.loop, &own->task);
	reply_free(own->result.reply);
	own->result.reply = NULL;
}

static void
hang_up(struct primary *p)
{
	server_close(p->server);
	cancel(p, &p->role);
	p->server = NULL;
	p->standing = SERVER_NONE;
}

/* -- Discovery -------------------------------------------------------------- */

static bool
is_discovering(const struct primary *p)
{
	return p->source != NULL;
}

static void
end_discovery(struct primary *p)
{
	p->source_timer.at_us = CLOCK_NEVER;
	server_close(p->source);
	cancel(p, &p->question);
	p->source = NULL;
}

/* The next discovery starts with another source. */
static void
stop_discovery(struct primary *p)
{
	if (!is_discovering(p))
		return;
	end_discovery(p);
	topology_next_source(&p->topology);
}

/* If no sentinel can be reached, none has named another server: the known primary remains valid. */
static void
finish_discovery(struct primary *p, bool found)
{
	end_discovery(p);
	if (found || (p->standing == SERVER_CHECKED && !p->answered)) {
		p->confirmed_us = clock_now_us();
		p->discovered = found;
		p->owner.changed(p->context, true);
		p->discovered = false;
		return;
	}
	if (p->answered)
		p->failure.kind = DENIED;
	p->owner.changed(p->context, false);
}

/* The timeout of the current source: its share of the time left.  The last source gets all of it. */
static int64_t
source_timeout_us(const struct primary *p, int64_t now_us)
{
	const int64_t left = p->end_us - now_us;
	const int64_t share = left / (p->left + 1 < SHARES_MAX ? p->left + 1 : SHARES_MAX);

	if (share < SOURCE_LEAST_US)
		return SOURCE_LEAST_US;
	return p->left > 0 && share > SOURCE_MOST_US ? SOURCE_MOST_US : share;
}

/* Query the current source. */
static void
ask_source(struct primary *p)
{
	const int64_t now = clock_now_us();
	struct command question;
	struct url url;

	topology_url(&p->topology, p->topology.source, &url);
	url.db = 0;
	if (!p->with_login)
		url.user[0] = url.password[0] = '\0';
	p->source = &p->servers[1];
	server_open(p->source, &url, NULL, NULL);
	topology_question(&p->topology, &question);
	server_send_command(p->source, &p->question, &question);
	p->source_timer.at_us = now + source_timeout_us(p, now);
}

static void
ask_next_source(struct primary *p)
{
	end_discovery(p);
	if (p->left-- <= 0) {
		finish_discovery(p, false);
		return;
	}
	/* Sentinels have their own logins, and mostly none. */
	p->with_login = p->url->kind != URL_SENTINEL;
	ask_source(p);
}

/*
 * The source could not answer: go on to the next one.  An error that a source reported takes precedence over a
 * connection failure of another one.
 */
static void
try_next_source(struct primary *p, const struct failure *why, bool answered)
{
	const bool denied = p->failure.kind == DENIED;

	if (answered || !p->answered) {
		p->failure = *why;
		p->answered = answered;
		if (denied)
			p->failure.kind = DENIED;
	}
	topology_next_source(&p->topology);
	ask_next_source(p);
}

static void
take_source_reply(struct primary *p, const struct reply *reply)
{
	struct failure why = { .kind = FAILED };

	if (reply_kind(reply) == REPLY_ERROR && strstr(reply_text(reply), "NOAUTH") != NULL) {
		why.kind = DENIED;
		if (!p->with_login && p->url->password[0] != '\0') {
			p->with_login = true;
			server_close(p->source);
			ask_source(p);
			return;
		}
	}
	if (topology_learn(&p->topology, reply, &why.reason)) {
		finish_discovery(p, true);
		return;
	}
	topology_add_context(&p->topology, p->topology.source, &why.reason);
	try_next_source(p, &why, !topology_is_early(reply));
}

static void
source_answered(struct task *task)
{
	struct primary *const p = ((struct pending *)task)->owner;
	struct result *const result = &p->question.result;
	struct reply *const reply = result->reply;

	result->reply = NULL;
	if (p->source != NULL && reply == NULL)
		try_next_source(p, &result->failure, result->failure.kind == DENIED);
	else if (p->source != NULL)
		take_source_reply(p, reply);
	reply_free(reply);
}

static void
source_timed_out(void *context, int64_t now_us)
{
	struct primary *const p = context;
	struct failure why;

	(void)now_us;
	failure_set(&why, FAILED, channel_waits_for(&p->source->channel));
	topology_add_context(&p->topology, p->topology.source, &why.reason);
	try_next_source(p, &why, false);
}

/*
 * Discover the server, within about half or three quarters of the node timeout.  All sources are queried if necessary.
 */
static enum primary_state
discover(struct primary *p)
{
	const int64_t timeout = p->url->node_timeout_us;

	if (p->discovered && p->url->kind == URL_CLUSTER) {
		failure_set(&p->failure, FAILED, "no server of the Cluster owns the slot of the key");
		return PRIMARY_UNKNOWN;
	}
	if (is_discovering(p))
		return PRIMARY_PENDING;
	p->left = topology_sources(&p->topology);
	p->answered = false;
	p->failure.kind = FAILED;
	p->end_us = clock_add(clock_now_us(), p->standing == SERVER_CHECKED ? timeout / 2 : timeout / 4 * 3);
	ask_next_source(p);
	return PRIMARY_PENDING;
}

/* -- Connecting ------------------------------------------------------------- */

/* The server of a URL is never another one. */
void
primary_mark_stale(struct primary *p)
{
	if (p->url->kind != URL_SERVER && p->server != NULL)
		p->standing = SERVER_STALE;
}

/* A sentinel may have outdated information, so the server itself is asked whether it is the primary. */
static void
connect_to(struct primary *p, int endpoint)
{
	struct command role;
	struct url url;

	topology_url(&p->topology, endpoint, &url);
	p->server = &p->servers[0];
	server_open(p->server, &url, p->owner.disconnected, p->context);
	p->at = endpoint;
	p->standing = p->url->kind == URL_SENTINEL ? SERVER_UNCHECKED : SERVER_CHECKED;
	if (p->standing == SERVER_UNCHECKED) {
		command_begin(&role, "ROLE");
		server_send_command(p->server, &p->role, &role);
	}
}

/*
 * Must a sentinel confirm the primary?  A primary that was demoted while it hung, or was cut off, may not know it yet,
 * and its replies about a lock must not count.  So a sentinel is asked before a write that must not be lost, even if
 * the connection works.
 */
static bool
is_doubtful(const struct primary *p, const struct target *t)
{
	return p->url->kind == URL_SENTINEL && t->needs_replicas && p->standing == SERVER_CHECKED &&
	    clock_now_us() - p->confirmed_us > CONFIRMED_US;
}

enum primary_state
primary_reach(struct primary *p, const struct target *t, bool busy)
{
	int endpoint;

	if (p->server != NULL)
		server_check_idle(p->server);
	if (p->server != NULL && p->server->ended)
		primary_mark_stale(p);
	if (p->standing == SERVER_STALE) {
		if (busy)
			return PRIMARY_PENDING;
		hang_up(p);
		topology_forget(&p->topology);
	}
	endpoint = t->asking != NOWHERE ? t->asking : topology_find(&p->topology, t->slot, t->part);
	if (endpoint == NOWHERE || is_doubtful(p, t))
		return discover(p);
	if (p->server != NULL && p->at != endpoint) {
		if (busy)
			return PRIMARY_PENDING;
		hang_up(p);
	}
	if (p->server == NULL)
		connect_to(p, endpoint);
	return p->standing == SERVER_CHECKED ? PRIMARY_READY : PRIMARY_PENDING;
}

/* -- Replies ---------------------------------------------------------------- */

/* The server is no primary, or can't be reached.  The next sentinel may have better information. */
static bool
try_next_sentinel(struct primary *p, const struct failure *why)
{
	primary_mark_stale(p);
	topology_next_source(&p->topology);
	if (++p->misled < topology_sources(&p->topology))
		return true;
	p->misled = 0;
	p->failure = *why;
	return false;
}

static void
role_answered(struct task *task)
{
	struct primary *const p = ((struct pending *)task)->owner;
	struct reply *const reply = p->role.result.reply;
	const char *role = reply_text(reply_item(reply, 0));
	struct failure why = p->role.result.failure;
	bool found = true;
	char shown[24];

	p->role.result.reply = NULL;
	if (strcmp(role, "master") == 0) {
		p->misled = 0;
		if (p->standing == SERVER_UNCHECKED)
			p->standing = SERVER_CHECKED;
	} else {
		if (reply != NULL && reply_kind(reply) == REPLY_ERROR)
			topology_quote(reply, &why.reason);
		else if (reply != NULL)
			reason_set(&why.reason, "the sentinels call it the primary, but it is not (%s)",
			    text_quote(role, shown, sizeof(shown)));
		if (reply != NULL) {
			why.kind = DENIED;
			topology_add_context(&p->topology, p->at, &why.reason);
		}
		found = try_next_sentinel(p, &why);
	}
	reply_free(reply);
	p->owner.changed(p->context, found);
}

/* -- Giving up -------------------------------------------------------------- */

void
primary_disconnect(struct primary *p, bool outstanding)
{
	const bool service = p->url->kind != URL_SERVER;

	if (service && outstanding) {
		stop_discovery(p);
		primary_mark_stale(p);
	}
	if (p->server != NULL && service)
		server_stop_connecting(p->server, false);
	if (p->server != NULL)
		server_disconnect(p->server);
}

void
primary_stop_connecting(struct primary *p, bool in_time)
{
	stop_discovery(p);
	if (p->server != NULL)
		server_stop_connecting(p->server, in_time);
}

/* -- Opening and closing ---------------------------------------------------- */

bool
primary_open(struct primary *p, const struct url *url, const struct primary_owner *owner, void *context)
{
	memset(p, 0, sizeof(*p));
	p->url = url;
	p->owner = *owner;
	p->servers[0].loop = p->servers[1].loop = owner->loop;
	p->context = context;
	p->role.task.run = role_answered;
	p->role.owner = p;
	p->question.task.run = source_answered;
	p->question.owner = p;
	p->source_timer = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = source_timed_out, .context = p };
	loop_add(owner->loop, &p->source_timer);
	return topology_open(&p->topology, url);
}

void
primary_close(struct primary *p)
{
	hang_up(p);
	end_discovery(p);
	loop_remove(p->owner.loop, &p->source_timer);
	topology_close(&p->topology);
}

bool
primary_differs(const struct primary *p, const struct primary *other)
{
	const struct address *a, *b;

	if (p->url->kind == URL_SERVER || p->server == NULL || other->server == NULL)
		return false;
	a = &p->topology.endpoint[p->at];
	b = &other->topology.endpoint[other->at];
	return strcmp(a->host, b->host) != 0 || strcmp(a->port, b->port) != 0;
}

const char *
primary_waits_for(const struct primary *p)
{
	if (is_discovering(p))
		return p->url->kind == URL_SENTINEL ? "no sentinel answered in time"
						    : "no server of the Cluster answered in time";
	return p->server != NULL ? channel_waits_for(&p->server->channel) : "no connection in time";
}
