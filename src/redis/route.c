/* SPDX-License-Identifier: MIT */
#include "redis/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define SLOTS 16384
#define PLACES_MAX 4096

/* -- Places ----------------------------------------------------------------- */

/* What a server or a guide names may be anything.  A name or an address has no other bytes. */
static bool
is_address(const char *host, const char *port)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:%";
	const size_t digits = strspn(port, "0123456789");
	const long number = digits < sizeof(((struct place *)0)->port) ? strtol(port, NULL, 10) : 0;

	return host[0] != '\0' && host[strspn(host, letters)] == '\0' &&
	    strlen(host) < sizeof(((struct place *)0)->host) && port[digits] == '\0' && number > 0 && number < 65536;
}

/* The place with that address, a new one where there is none; NOWHERE if that can't be. */
static int
place_of(struct route *r, const char *host, const char *port)
{
	struct place *grown;
	int i, room;

	for (i = 0; i < r->places; i++) {
		if (strcmp(r->place[i].host, host) == 0 && strcmp(r->place[i].port, port) == 0)
			return i;
	}
	if (r->places == PLACES_MAX || !is_address(host, port))
		return NOWHERE;
	if (r->places == r->room) {
		room = r->room + SEEDS_MAX;
		grown = realloc(r->place, (size_t)room * sizeof(*grown));
		if (grown == NULL)
			return NOWHERE;
		r->place = grown;
		r->room = room;
	}
	(void)snprintf(r->place[r->places].host, sizeof(r->place[0].host), "%s", host);
	(void)snprintf(r->place[r->places].port, sizeof(r->place[0].port), "%s", port);
	return r->places++;
}

bool
route_open(struct route *r, const struct url *url)
{
	int i;

	*r = (struct route){ .url = url, .master = url->kind == URL_SERVER ? 0 : NOWHERE };
	for (i = 0; i < url->seeds; i++) {
		if (place_of(r, url->seed[i].host, url->seed[i].port) == NOWHERE)
			return false;
	}
	r->seeds = r->places;
	if (url->kind != URL_CLUSTER)
		return true;
	r->owner = calloc(SLOTS, sizeof(*r->owner));
	r->part = calloc(PLACES_MAX, sizeof(*r->part));
	return r->owner != NULL && r->part != NULL;
}

void
route_close(struct route *r)
{
	free(r->place);
	free(r->owner);
	free(r->part);
}

int
route_target(const struct route *r, int slot, int part)
{
	if (r->url->kind != URL_CLUSTER)
		return r->master;
	if (slot != NO_SLOT)
		return (int)r->owner[slot] - 1;
	return part < r->parts ? r->part[part] : r->parts > 0 ? r->part[0] : NOWHERE;
}

void
route_url(const struct route *r, int place, struct url *url)
{
	const struct place *p;

	*url = *r->url;
	if (r->url->kind == URL_SERVER)
		return;
	p = &r->place[place];
	url->kind = URL_SERVER;
	url->seed = NULL; /* they are the service's */
	url->seeds = 0;
	memcpy(url->host, p->host, sizeof(url->host));
	memcpy(url->port, p->port, sizeof(url->port));
	(void)snprintf(url->name, sizeof(url->name), strchr(p->host, ':') != NULL ? "[%s]:%s" : "%s:%s", p->host,
	    p->port);
}

void
route_blame(const struct route *r, int place, struct err *err)
{
	struct url url;

	if (r->url->kind == URL_SERVER)
		return;
	route_url(r, place, &url);
	err_prefix(err, url.name);
}

void
route_forget(struct route *r)
{
	if (r->url->kind == URL_SENTINEL)
		r->master = NOWHERE;
	r->parts = 0;
	if (r->owner != NULL)
		memset(r->owner, 0, SLOTS * sizeof(*r->owner));
}

/* -- Guides ----------------------------------------------------------------- */

/* Whatever is in a Cluster can tell of it; who the master of a service is, only sentinels can. */
int
route_guides(const struct route *r)
{
	return r->url->kind == URL_SENTINEL ? r->seeds : r->places;
}

int
route_guide(const struct route *r)
{
	return r->guide;
}

void
route_next_guide(struct route *r)
{
	r->guide = (r->guide + 1) % route_guides(r);
}

void
route_question(const struct route *r, struct request *question)
{
	if (r->url->kind == URL_SENTINEL) {
		request_begin(question, "SENTINEL");
		request_add(question, "get-master-addr-by-name");
		request_add(question, r->url->service);
	} else {
		request_begin(question, "CLUSTER");
		request_add(question, "SLOTS");
	}
}

static bool
learn_master(struct route *r, const struct reply *answer, struct err *err)
{
	char shown[sizeof(r->url->service) * 4];

	if (reply_kind(answer) == REPLY_NIL) {
		(void)err_set(err, ST_NO_QUORUM, "no sentinel knows the service %s",
		    text_show(r->url->service, shown, sizeof(shown)));
		return false;
	}
	r->master = place_of(r, reply_text(reply_item(answer, 0)), reply_text(reply_item(answer, 1)));
	if (r->master == NOWHERE)
		(void)err_set(err, ST_NO_QUORUM, "this is no sentinel (it answered something else than was asked)");
	return r->master != NOWHERE;
}

/* One server of CLUSTER SLOTS: {host, port, ...}.  A host that it doesn't know of itself is the one where it was asked. */
static int
learn_server(struct route *r, const struct reply *server)
{
	const char *host = reply_text(reply_item(server, 0));
	const int64_t port = reply_integer(reply_item(server, 1));
	char guide_host[sizeof(r->place[0].host)], digits[24];

	memcpy(guide_host, r->place[r->guide].host, sizeof(guide_host));
	(void)snprintf(digits, sizeof(digits), "%d", port > 0 && port < 65536 ? (int)port : 0);
	return place_of(r, host[0] == '\0' || strcmp(host, "?") == 0 ? guide_host : host, digits);
}

static void
add_part(struct route *r, int place)
{
	int i;

	for (i = 0; i < r->parts; i++) {
		if (r->part[i] == place)
			return;
	}
	if (r->parts < PLACES_MAX)
		r->part[r->parts++] = place;
}

/* {first slot, last slot, master, replica ...} */
static bool
learn_range(struct route *r, const struct reply *range)
{
	const int64_t first = reply_integer(reply_item(range, 0)), last = reply_integer(reply_item(range, 1));
	const int master = learn_server(r, reply_item(range, 2));
	int64_t slot;
	size_t i;

	if (first < 0 || last >= SLOTS || first > last || master == NOWHERE)
		return false;
	for (slot = first; slot <= last; slot++)
		r->owner[slot] = (uint16_t)(master + 1);
	add_part(r, master);
	for (i = 3; i < reply_items(range); i++)
		(void)learn_server(r, reply_item(range, i));
	return true;
}

static bool
learn_slots(struct route *r, const struct reply *answer, struct err *err)
{
	size_t i;

	route_forget(r);
	for (i = 0; i < reply_items(answer); i++) {
		if (!learn_range(r, reply_item(answer, i))) {
			route_forget(r);
			break;
		}
	}
	if (r->parts == 0)
		(void)err_set(err, ST_NO_QUORUM, "this Cluster has no servers that own slots");
	return r->parts > 0;
}

void
route_quote(const struct reply *error, struct err *err)
{
	char shown[sizeof(err->text)];

	(void)err_set(err, ST_NO_QUORUM, "%s", text_show(reply_text(error), shown, sizeof(shown)));
}

bool
route_learn(struct route *r, const struct reply *answer, struct err *err)
{
	if (reply_kind(answer) == REPLY_ERROR) {
		route_quote(answer, err);
		return false;
	}
	return r->url->kind == URL_SENTINEL ? learn_master(r, answer, err) : learn_slots(r, answer, err);
}

/* -- What servers answer ---------------------------------------------------- */

/*
 * The place in "MOVED SLOT HOST:PORT", which is the slot's from now on, or "ASK SLOT HOST:PORT"; NOWHERE for junk.  A host
 * that the server doesn't know is its own.
 */
static int
learn_redirection(struct route *r, const char *text, int from)
{
	char host[sizeof(r->place[0].host)], port[8], kind[8];
	const char *colon = strrchr(text, ':'), *space = strrchr(text, ' ');
	unsigned int slot;
	int place;

	if (colon == NULL || space == NULL || colon < space || strlen(colon + 1) >= sizeof(port) ||
	    (size_t)(colon - space) > sizeof(host))
		return NOWHERE;
	/* NOLINTNEXTLINE(cert-err34-c): five digits can't overflow */
	if (sscanf(text, "%7s %5u ", kind, &slot) != 2 || slot >= SLOTS)
		return NOWHERE;
	(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - space) - 1, space + 1);
	(void)snprintf(port, sizeof(port), "%s", colon + 1);
	if (host[0] == '\0' || strcmp(host, "?") == 0)
		memcpy(host, r->place[from].host, sizeof(host));
	place = place_of(r, host, port);
	if (place != NOWHERE && strcmp(kind, "MOVED") == 0)
		r->owner[slot] = (uint16_t)(place + 1);
	return place;
}

static bool
starts_with(const struct reply *reply, const char *code)
{
	return reply_kind(reply) == REPLY_ERROR && strncmp(reply_text(reply), code, strlen(code)) == 0;
}

enum redirection
route_redirection(struct route *r, const struct reply *reply, int from, int *place)
{
	const bool asks = starts_with(reply, "ASK ");

	if (starts_with(reply, "TRYAGAIN"))
		return GO_LATER;
	if (!asks && !starts_with(reply, "MOVED "))
		return GO_NOWHERE;
	*place = learn_redirection(r, reply_text(reply), from);
	if (*place == NOWHERE)
		return GO_NOWHERE;
	if (asks)
		return GO_ASKING;
	*place = NOWHERE;
	return GO_BY_SLOT;
}

bool
route_is_early(const struct reply *reply)
{
	return starts_with(reply, "LOADING") || starts_with(reply, "CLUSTERDOWN");
}

bool
route_is_disowned(const struct reply *reply)
{
	static const char *const codes[] = { "READONLY", "MASTERDOWN", "CLUSTERDOWN", "LOADING", "MOVED", "ASK" };
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (starts_with(reply, codes[i]))
			return true;
	}
	return false;
}
