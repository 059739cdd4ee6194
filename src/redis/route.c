/* SPDX-License-Identifier: MIT */
#include "redis/route.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "net/password.h"
#include "redis/command.h"

#define CONFIRMED_US 500000   /* the answer of a sentinel is valid so long */
#define SOURCE_MOST_US 200000 /* for one source, if there are others left */
#define SOURCE_LEAST_US 10000 /* for one source, even if many unresponsive ones then take longer than they should */
#define SHARES_MAX 4	      /* divisor of the time left: a Cluster has too many sources for equal shares */

/* -- Endpoints -------------------------------------------------------------- */

/*
 * The endpoint with that address, which is added if it is new; NOWHERE if the address is not valid, since a server may
 * send anything, or there is no capacity.  A host that is empty or "?" stands for that of the endpoint `sender`, which
 * does not know its own.
 */
static int
find_endpoint(struct route *r, const char *host, const char *port, int sender)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:%";
	const struct url_part digits = { port, strlen(port) };
	struct address new, *grown;
	int i, number;

	if (sender != NOWHERE && (host[0] == '\0' || strcmp(host, "?") == 0))
		host = r->endpoint[sender].host;
	if (host[0] == '\0' || strspn(host, letters) < strlen(host) || strlen(host) >= sizeof(new.host) ||
	    !url_number(digits, 65535, &number) || number == 0)
		return NOWHERE;
	(void)snprintf(new.host, sizeof(new.host), "%s", host);
	(void)snprintf(new.port, sizeof(new.port), "%u", (unsigned int)number & 0xffff);
	for (i = 0; i < r->endpoints; i++) {
		if (strcmp(r->endpoint[i].host, new.host) == 0 && strcmp(r->endpoint[i].port, new.port) == 0)
			return i;
	}
	if (r->endpoints == ENDPOINTS_MAX)
		return NOWHERE;
	grown = array_room(r->endpoint, (size_t)r->endpoints + 1, &r->capacity, sizeof(*grown));
	if (grown == NULL)
		return NOWHERE;
	r->endpoint = grown;
	r->endpoint[r->endpoints] = new;
	return r->endpoints++;
}

int
route_find(const struct route *r, int slot, int part)
{
	const struct hash_slots *const s = r->slots;

	if (s == NULL)
		return r->primary;
	if (slot != NO_SLOT)
		return (int)s->owner[slot] - 1;
	return part < s->parts ? s->part[part] : s->parts > 0 ? s->part[0] : NOWHERE;
}

void
route_url(const struct route *r, int endpoint, struct url *url)
{
	char host[sizeof(url->endpoint.host)];
	const struct address *a;

	memcpy(url, r->url, offsetof(struct url, seed));
	if (url->kind == URL_SERVER)
		return;
	a = &r->endpoint[endpoint];
	url->kind = URL_SERVER;
	url->of_service = true;
	url->seeds = 0;
	memcpy(url->endpoint.host, a->host, sizeof(url->endpoint.host));
	memcpy(url->endpoint.port, a->port, sizeof(url->endpoint.port));
	/* The first are of the URL, the others of a server. */
	(void)(endpoint < r->seeds ? text_show(a->host, host, sizeof(host)) : text_quote(a->host, host, sizeof(host)));
	(void)snprintf(url->name, sizeof(url->name), strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, a->port);
}

/* Discard what was learned about primaries and slots.  Endpoints are kept. */
static void
forget(struct route *r)
{
	if (r->url->kind == URL_SENTINEL)
		r->primary = NOWHERE;
	if (r->slots != NULL)
		memset(r->slots, 0, sizeof(*r->slots));
}

static void
add_part(struct hash_slots *s, int endpoint)
{
	int i;

	for (i = 0; i < s->parts; i++) {
		if (s->part[i] == endpoint)
			return;
	}
	if (s->parts < ENDPOINTS_MAX)
		s->part[s->parts++] = endpoint;
}

/* -- Answers of sources ----------------------------------------------------- */

/* Parse one server: {host, port, ...}. */
static int
learn_server(struct route *r, const struct reply *server)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, reply_integer(reply_item(server, 1)));
	return find_endpoint(r, reply_text(reply_item(server, 0)), digits, r->asked);
}

/* Parse {first slot, last slot, primary, replica ...}. */
static bool
learn_range(struct route *r, const struct reply *range)
{
	const int64_t first = reply_integer(reply_item(range, 0)), last = reply_integer(reply_item(range, 1));
	const int primary = learn_server(r, reply_item(range, 2));
	int64_t slot;
	size_t i;

	if (first < 0 || last >= SLOTS || first > last || primary == NOWHERE)
		return false;
	for (slot = first; slot <= last; slot++)
		r->slots->owner[slot] = (uint16_t)(primary + 1);
	add_part(r->slots, primary);
	for (i = 3; i < reply_items(range); i++)
		(void)learn_server(r, reply_item(range, i));
	return true;
}

/* Parse a source's reply to the question.  False, with a sentence, if it is no answer. */
static bool
learn(struct route *r, const struct reply *reply, struct reason *why)
{
	char shown[sizeof(r->url->service) * 4];
	size_t i;

	if (reply_kind(reply) == REPLY_ERROR) {
		(void)text_quote(reply_text(reply), why->text, sizeof(why->text));
		return false;
	}
	if (r->url->kind == URL_SENTINEL && reply_kind(reply) == REPLY_NIL) {
		reason_set(why, "no sentinel knows the service %s", text_show(r->url->service, shown, sizeof(shown)));
		return false;
	}
	if (r->url->kind == URL_SENTINEL) {
		r->primary = find_endpoint(r, reply_text(reply_item(reply, 0)), reply_text(reply_item(reply, 1)),
		    NOWHERE);
		if (r->primary == NOWHERE)
			reason_set(why, "this is not a sentinel (unexpected reply)");
		return r->primary != NOWHERE;
	}
	forget(r);
	for (i = 0; i < reply_items(reply); i++) {
		if (!learn_range(r, reply_item(reply, i))) {
			forget(r);
			break;
		}
	}
	if (r->slots->parts == 0)
		reason_set(why, "this Cluster has no servers that own slots");
	return r->slots->parts > 0;
}

/* -- Discovery -------------------------------------------------------------- */

/* Our own request is over, too.  A reply that was not read yet is discarded. */
static void
hang_up(struct line *l)
{
	if (l->open)
		server_close(&l->server);
	l->open = false;
	loop_cancel(l->server.loop, &l->request.task);
	reply_free(l->request.result.reply);
	l->request.result.reply = NULL;
}

static void
end_discovery(struct route *r)
{
	r->timer.at_us = CLOCK_NEVER;
	hang_up(&r->source);
}

/* The number of sources.  Every server of a Cluster knows its topology, but only sentinels know the primary. */
static int
sources(const struct route *r)
{
	return r->url->kind == URL_SENTINEL ? r->seeds : r->endpoints;
}

static void
skip_source(struct route *r)
{
	r->asked = (r->asked + 1) % sources(r);
}

/* The next discovery starts with another source. */
static void
stop_discovery(struct route *r)
{
	if (!r->source.open)
		return;
	end_discovery(r);
	skip_source(r);
}

/* If no sentinel can be reached, none has named another server: the known primary remains valid. */
static void
finish_discovery(struct route *r, bool found)
{
	const bool known = found || (r->line.open && r->standing == SERVER_CHECKED && !r->answered);

	end_discovery(r);
	if (known) {
		r->confirmed_us = clock_now_us();
		r->discovered = found;
	} else if (r->answered)
		r->failure.kind = DENIED;
	r->owner.changed(r->owner.context, known);
	r->discovered = false;
}

/*
 * Query a source.  It gets its share of the time left, the last one all of it.  Sentinels have
 * their own logins, and mostly none.
 */
static void
ask_source(struct route *r, bool with_login)
{
	const int64_t now = clock_now_us(), left = r->end_us - now;
	int64_t share = left / (r->left + 1 < SHARES_MAX ? r->left + 1 : SHARES_MAX);
	const bool own = r->url->kind == URL_SENTINEL && r->url->sentinel_password != NULL;
	struct server *const s = &r->source.server;
	struct command question;

	if (share > SOURCE_MOST_US && r->left > 0)
		share = SOURCE_MOST_US;
	r->timer.at_us = now + (share > SOURCE_LEAST_US ? share : SOURCE_LEAST_US);
	r->with_login = with_login || own;
	route_url(r, r->asked, &s->url);
	s->url.db = 0;
	if (!r->with_login || own) {
		(void)snprintf(s->url.user, sizeof(s->url.user), "%s", own ? r->url->sentinel_user : "");
		s->url.password[0] = '\0';
		s->url.shared = own ? r->url->sentinel_password : NULL;
	}
	if (r->url->kind == URL_SENTINEL) {
		command_begin(&question, "SENTINEL");
		command_add(&question, "get-master-addr-by-name");
		command_add(&question, r->url->service);
	} else {
		command_begin(&question, "CLUSTER");
		command_add(&question, "SLOTS");
	}
	r->source.open = true;
	server_open(s);
	server_send_command(s, &r->source.request, &question);
}

/*
 * The source could not answer: go on to the next one.  An error that a source reported takes precedence over a
 * connection failure of another one.
 */
static void
try_next_source(struct route *r, const struct failure *why, bool answered)
{
	if (answered || !r->answered) {
		r->failure = *why;
		r->answered = answered;
	}
	skip_source(r);
	end_discovery(r);
	if (r->left-- > 0)
		ask_source(r, r->url->kind != URL_SENTINEL);
	else
		finish_discovery(r, false);
}

/* Has the server refused a login with the shared password, and is there another one, or will there be? */
static bool
has_other_password(struct route *r, const struct server *s)
{
	if (s->url.shared == NULL || !password_refused(s->url.shared, s->version))
		return false;
	r->refused = s->url.shared;
	return true;
}

static void
source_answered(struct task *task)
{
	struct route *const r = ((struct pending *)task)->owner;
	struct result *const result = &r->source.request.result;
	struct reply *const reply = result->reply;
	const bool wants_login = server_wants_login(result);
	struct failure why = { .kind = FAILED };

	result->reply = NULL;
	if (wants_login && has_other_password(r, &r->source.server)) {
		end_discovery(r);
		r->owner.changed(r->owner.context, true);
	} else if (reply == NULL)
		try_next_source(r, &result->failure, result->failure.kind == DENIED);
	else if (wants_login && !r->with_login && (r->url->password[0] != '\0' || r->url->shared != NULL)) {
		server_close(&r->source.server);
		ask_source(r, true);
	} else if (learn(r, reply, &why.reason))
		finish_discovery(r, true);
	else {
		reason_prefix(&why.reason, r->source.server.url.name);
		try_next_source(r, &why, !route_is_early(reply));
	}
	reply_free(reply);
}

static void
source_timed_out(void *context, int64_t now_us)
{
	struct route *const r = context;
	const struct server *const s = &r->source.server;
	struct failure why;

	(void)now_us;
	failure_set(&why, FAILED, "%s: %s", s->url.name, channel_waits_for(&s->channel));
	try_next_source(r, &why, false);
}

/*
 * Discover the server, within about half or three quarters of the node timeout.  All sources are queried if necessary.
 */
static enum route_state
discover(struct route *r)
{
	const int64_t timeout = r->url->node_timeout_us;
	const bool connected = r->line.open && r->standing == SERVER_CHECKED;

	if (r->discovered && r->url->kind == URL_CLUSTER) {
		failure_set(&r->failure, FAILED, "no server of the Cluster owns the slot of the key");
		return ROUTE_UNKNOWN;
	}
	if (r->source.open)
		return ROUTE_PENDING;
	r->left = sources(r) - 1;
	r->answered = false;
	r->failure.kind = FAILED;
	r->end_us = clock_add(clock_now_us(), connected ? timeout / 2 : timeout / 4 * 3);
	ask_source(r, r->url->kind != URL_SENTINEL);
	return ROUTE_PENDING;
}

/* -- The server ------------------------------------------------------------- */

/* The server of a URL is never another one. */
void
route_mark_stale(struct route *r)
{
	if (r->url->kind != URL_SERVER)
		r->standing = SERVER_STALE;
}

bool
route_log_in_again(struct route *r)
{
	if (!has_other_password(r, &r->line.server))
		return false;
	r->standing = SERVER_STALE;
	return true;
}

bool
route_awaits_password(struct route *r)
{
	if (r->refused != NULL && !password_is_pending(r->refused))
		r->refused = NULL;
	return r->refused != NULL;
}

enum route_state
route_reach(struct route *r, const struct target *t, bool busy)
{
	bool stale = false, doubtful;
	struct command role;
	int endpoint;

	if (r->line.open) {
		server_check_idle(&r->line.server);
		if (r->line.server.ended)
			route_mark_stale(r);
		stale = r->standing == SERVER_STALE;
	}
	if (stale && !busy) {
		hang_up(&r->line);
		forget(r);
	} else if (stale)
		return ROUTE_PENDING;
	endpoint = t->asking != NOWHERE ? t->asking : route_find(r, t->slot, t->part);
	/*
	 * A primary that was demoted while it hung, or was cut off, may not know it yet, and its replies about a lock
	 * must not count.  So a sentinel is asked before a write that must not be lost, even if the connection works.
	 */
	doubtful = r->url->kind == URL_SENTINEL && t->needs_replicas && r->line.open && r->standing == SERVER_CHECKED &&
	    clock_now_us() - r->confirmed_us > CONFIRMED_US;
	if (endpoint == NOWHERE || doubtful)
		return discover(r);
	if (r->line.open && r->at != endpoint) {
		if (busy)
			return ROUTE_PENDING;
		hang_up(&r->line);
	}
	if (!r->line.open) {
		route_url(r, endpoint, &r->line.server.url);
		r->line.open = true;
		server_open(&r->line.server);
		r->at = endpoint;
		r->standing = SERVER_CHECKED;
		if (r->url->kind == URL_SENTINEL) { /* it may have outdated information */
			r->standing = SERVER_UNCHECKED;
			command_begin(&role, "ROLE");
			server_send_command(&r->line.server, &r->line.request, &role);
		}
	}
	return r->standing == SERVER_CHECKED ? ROUTE_READY : ROUTE_PENDING;
}

/* If the server is no primary, or can't be reached, the next sentinel may have better information. */
static void
role_answered(struct task *task)
{
	struct route *const r = ((struct pending *)task)->owner;
	struct result *const result = &r->line.request.result;
	const struct reply *const reply = result->reply;
	const char *const role = reply_text(reply_item(reply, 0));
	struct failure why = result->failure;
	bool found = true;
	char shown[24];

	if (strcmp(role, "master") == 0) {
		r->misled = 0;
		if (r->standing == SERVER_UNCHECKED)
			r->standing = SERVER_CHECKED;
	} else if (!server_wants_login(result) || !route_log_in_again(r)) {
		if (reply != NULL) {
			why.kind = DENIED;
			if (reply_kind(reply) == REPLY_ERROR)
				(void)text_quote(reply_text(reply), why.reason.text, sizeof(why.reason.text));
			else
				reason_set(&why.reason, "the sentinels call it the primary, but it is not (%s)",
				    text_quote(role, shown, sizeof(shown)));
			reason_prefix(&why.reason, r->line.server.url.name);
		}
		route_mark_stale(r);
		skip_source(r);
		found = ++r->misled < sources(r);
		if (!found) {
			r->misled = 0;
			r->failure = why;
		}
	}
	reply_free(result->reply);
	result->reply = NULL;
	r->owner.changed(r->owner.context, found);
}

/* -- Replies of servers ----------------------------------------------------- */

enum redirection
route_redirect(struct route *r, const struct reply *reply, int *asking)
{
	const bool asks = reply_is_error(reply, (const char *const[]){ "ASK ", NULL });
	char address[sizeof(struct address)], *colon;
	unsigned int slot;
	int endpoint;

	if (reply_is_error(reply, (const char *const[]){ "TRYAGAIN", NULL }))
		return REDIRECT_LATER;
	if (!asks && !reply_is_error(reply, (const char *const[]){ "MOVED ", NULL }))
		return REDIRECT_NONE;
	/* The kind, the slot, and HOST:PORT.  NOLINTNEXTLINE(cert-err34-c): five digits can't overflow */
	if (sscanf(reply_text(reply), "%*s %5u %261s", &slot, address) != 2 || slot >= SLOTS)
		return REDIRECT_NONE;
	colon = strrchr(address, ':');
	if (colon == NULL)
		return REDIRECT_NONE;
	*colon = '\0';
	endpoint = find_endpoint(r, address, colon + 1, r->at);
	if (endpoint == NOWHERE)
		return REDIRECT_NONE;
	if (asks)
		*asking = endpoint;
	else {
		r->slots->owner[slot] = (uint16_t)(endpoint + 1);
		if (r->slots->parts > 0) /* otherwise nothing is known, and a source will be asked */
			add_part(r->slots, endpoint);
	}
	return REDIRECT_NOW;
}

bool
route_is_early(const struct reply *reply)
{
	/* The last three are errors of a proxy (twemproxy) about its server. */
	static const char *const texts[] = { "LOADING", "CLUSTERDOWN", "ERR Connection refused", "ERR Connection reset",
		"ERR Connection timed out", NULL };

	return reply_is_error(reply, texts);
}

bool
route_is_demoted(const struct reply *reply)
{
	static const char *const codes[] = { "READONLY", "MASTERDOWN", "CLUSTERDOWN", "LOADING", "MOVED", "ASK", NULL };

	return reply_is_error(reply, codes);
}

/* -- Giving up -------------------------------------------------------------- */

void
route_disconnect(struct route *r, bool outstanding)
{
	const bool service = r->url->kind != URL_SERVER;

	if (service && outstanding) {
		stop_discovery(r);
		route_mark_stale(r);
	}
	if (r->line.open && service)
		server_give_up(&r->line.server, CHANNEL_CONNECTING, false);
	if (r->line.open)
		server_give_up(&r->line.server, CHANNEL_OPEN, false);
}

void
route_stop_connecting(struct route *r, bool in_time)
{
	stop_discovery(r);
	if (!in_time && r->line.open && r->line.server.channel.state == CHANNEL_CONNECTING)
		route_mark_stale(r); /* its host may be gone, and another server may have its place */
	if (r->line.open)
		server_give_up(&r->line.server, CHANNEL_CONNECTING, in_time);
}

const char *
route_waits_for(const struct route *r)
{
	if (r->refused != NULL)
		return "it wants another password, and the password command has not ended yet";
	if (r->source.open)
		return r->url->kind == URL_SENTINEL ? "no sentinel answered in time"
						    : "no server of the Cluster answered in time";
	return r->line.open ? channel_waits_for(&r->line.server.channel) : "no connection in time";
}

/* -- Opening and closing ---------------------------------------------------- */

bool
route_open(struct route *r, const struct url *url, const struct route_owner *owner)
{
	bool fit = true;
	int i;

	memset(r, 0, sizeof(*r));
	r->url = url;
	r->owner = *owner;
	r->primary = url->kind == URL_SERVER ? 0 : NOWHERE;
	r->line.server.loop = r->source.server.loop = owner->loop;
	r->line.server.disconnected = owner->disconnected;
	r->line.server.context = owner->context;
	r->line.request = (struct pending){ .task.run = role_answered, .owner = r };
	r->source.request = (struct pending){ .task.run = source_answered, .owner = r };
	r->timer = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = source_timed_out, .context = r };
	loop_add(owner->loop, &r->timer);
	for (i = 0; i < url->seeds; i++)
		fit = find_endpoint(r, url->seed[i].host, url->seed[i].port, NOWHERE) != NOWHERE && fit;
	r->seeds = r->endpoints;
	if (url->kind == URL_CLUSTER) {
		r->slots = calloc(1, sizeof(*r->slots));
		fit = fit && r->slots != NULL;
	}
	return fit;
}

void
route_close(struct route *r)
{
	hang_up(&r->line);
	end_discovery(r);
	loop_remove(r->owner.loop, &r->timer);
	free(r->endpoint);
	free(r->slots);
}
