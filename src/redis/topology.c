/* SPDX-License-Identifier: MIT */
#include "redis/topology.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

#define SLOTS 16384
#define ENDPOINTS_MAX 4096

/* -- Endpoints -------------------------------------------------------------- */

/* Is this a valid address?  A server or a source may send anything. */
static bool
is_address(const char *host, const char *port)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:%";
	const size_t digits = strspn(port, "0123456789");
	const long number = digits < sizeof(((struct address *)0)->port) ? strtol(port, NULL, 10) : 0;

	return host[0] != '\0' && host[strspn(host, letters)] == '\0' &&
	    strlen(host) < sizeof(((struct address *)0)->host) && port[digits] == '\0' && number > 0 && number < 65536;
}

/*
 * The endpoint with that address, which is added if it is new; NOWHERE if the address is not valid, or there is no
 * capacity.
 */
static int
find_endpoint(struct topology *t, const char *host, const char *port)
{
	struct address *grown;
	int i;

	for (i = 0; i < t->endpoints; i++) {
		if (strcmp(t->endpoint[i].host, host) == 0 && strcmp(t->endpoint[i].port, port) == 0)
			return i;
	}
	if (t->endpoints == ENDPOINTS_MAX || !is_address(host, port))
		return NOWHERE;
	grown = array_room(t->endpoint, (size_t)t->endpoints + 1, &t->capacity, sizeof(*grown));
	if (grown == NULL)
		return NOWHERE;
	t->endpoint = grown;
	(void)snprintf(t->endpoint[t->endpoints].host, sizeof(t->endpoint[0].host), "%s", host);
	(void)snprintf(t->endpoint[t->endpoints].port, sizeof(t->endpoint[0].port), "%s", port);
	return t->endpoints++;
}

bool
topology_open(struct topology *t, const struct url *url)
{
	int i;

	*t = (struct topology){ .url = url, .primary = url->kind == URL_SERVER ? 0 : NOWHERE };
	for (i = 0; i < url->seeds; i++) {
		if (find_endpoint(t, url->seed[i].host, url->seed[i].port) == NOWHERE)
			return false;
	}
	t->seeds = t->endpoints;
	if (url->kind != URL_CLUSTER)
		return true;
	t->owner = calloc(SLOTS, sizeof(*t->owner));
	t->part = calloc(ENDPOINTS_MAX, sizeof(*t->part));
	return t->owner != NULL && t->part != NULL;
}

void
topology_close(struct topology *t)
{
	free(t->endpoint);
	free(t->owner);
	free(t->part);
}

int
topology_find(const struct topology *t, int slot, int part)
{
	if (t->url->kind != URL_CLUSTER)
		return t->primary;
	if (slot != NO_SLOT)
		return (int)t->owner[slot] - 1;
	return part < t->parts ? t->part[part] : t->parts > 0 ? t->part[0] : NOWHERE;
}

void
topology_url(const struct topology *t, int endpoint, struct url *url)
{
	char host[sizeof(url->endpoint.host)];
	const struct address *a;

	memcpy(url, t->url, offsetof(struct url, seed));
	if (t->url->kind == URL_SERVER)
		return;
	a = &t->endpoint[endpoint];
	url->kind = URL_SERVER;
	url->of_service = true;
	url->seeds = 0;
	memcpy(url->endpoint.host, a->host, sizeof(url->endpoint.host));
	memcpy(url->endpoint.port, a->port, sizeof(url->endpoint.port));
	/* The first are of the URL, the others of a server. */
	(void)(endpoint < t->url->seeds ? text_show(a->host, host, sizeof(host))
					: text_quote(a->host, host, sizeof(host)));
	(void)snprintf(url->name, sizeof(url->name), strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, a->port);
}

void
topology_add_context(const struct topology *t, int endpoint, struct reason *why)
{
	struct url url;

	if (t->url->kind == URL_SERVER)
		return;
	topology_url(t, endpoint, &url);
	reason_prefix(why, url.name);
}

void
topology_forget(struct topology *t)
{
	if (t->url->kind == URL_SENTINEL)
		t->primary = NOWHERE;
	t->parts = 0;
	if (t->owner != NULL)
		memset(t->owner, 0, SLOTS * sizeof(*t->owner));
}

/* -- Discovery -------------------------------------------------------------- */

/* Every server of a Cluster knows its topology, but only sentinels know the primary of a service. */
int
topology_sources(const struct topology *t)
{
	return t->url->kind == URL_SENTINEL ? t->seeds : t->endpoints;
}

void
topology_next_source(struct topology *t)
{
	t->source = (t->source + 1) % topology_sources(t);
}

void
topology_question(const struct topology *t, struct command *question)
{
	if (t->url->kind == URL_SENTINEL) {
		command_begin(question, "SENTINEL");
		command_add(question, "get-master-addr-by-name");
		command_add(question, t->url->service);
	} else {
		command_begin(question, "CLUSTER");
		command_add(question, "SLOTS");
	}
}

static bool
learn_primary(struct topology *t, const struct reply *reply, struct reason *why)
{
	char shown[sizeof(t->url->service) * 4];

	if (reply_kind(reply) == REPLY_NIL) {
		reason_set(why, "no sentinel knows the service %s", text_show(t->url->service, shown, sizeof(shown)));
		return false;
	}
	t->primary = find_endpoint(t, reply_text(reply_item(reply, 0)), reply_text(reply_item(reply, 1)));
	if (t->primary == NOWHERE)
		reason_set(why, "this is not a sentinel (unexpected reply)");
	return t->primary != NOWHERE;
}

/*
 * Parse one server in CLUSTER SLOTS: {host, port, ...}.  A host that is empty or "?" stands for the host of the source,
 * which does not know its own.
 */
static int
learn_server(struct topology *t, const struct reply *server)
{
	const char *host = reply_text(reply_item(server, 0));
	const int64_t port = reply_integer(reply_item(server, 1));
	char source_host[sizeof(t->endpoint[0].host)], digits[24];

	memcpy(source_host, t->endpoint[t->source].host, sizeof(source_host));
	(void)snprintf(digits, sizeof(digits), "%d", port > 0 && port < 65536 ? (int)port : 0);
	return find_endpoint(t, host[0] == '\0' || strcmp(host, "?") == 0 ? source_host : host, digits);
}

static void
add_part(struct topology *t, int endpoint)
{
	int i;

	for (i = 0; i < t->parts; i++) {
		if (t->part[i] == endpoint)
			return;
	}
	if (t->parts < ENDPOINTS_MAX)
		t->part[t->parts++] = endpoint;
}

/* Parse {first slot, last slot, primary, replica ...}. */
static bool
learn_range(struct topology *t, const struct reply *range)
{
	const int64_t first = reply_integer(reply_item(range, 0)), last = reply_integer(reply_item(range, 1));
	const int primary = learn_server(t, reply_item(range, 2));
	int64_t slot;
	size_t i;

	if (first < 0 || last >= SLOTS || first > last || primary == NOWHERE)
		return false;
	for (slot = first; slot <= last; slot++)
		t->owner[slot] = (uint16_t)(primary + 1);
	add_part(t, primary);
	for (i = 3; i < reply_items(range); i++)
		(void)learn_server(t, reply_item(range, i));
	return true;
}

static bool
learn_slots(struct topology *t, const struct reply *reply, struct reason *why)
{
	size_t i;

	topology_forget(t);
	for (i = 0; i < reply_items(reply); i++) {
		if (!learn_range(t, reply_item(reply, i))) {
			topology_forget(t);
			break;
		}
	}
	if (t->parts == 0)
		reason_set(why, "this Cluster has no servers that own slots");
	return t->parts > 0;
}

void
topology_quote(const struct reply *error, struct reason *why)
{
	(void)text_quote(reply_text(error), why->text, sizeof(why->text));
}

bool
topology_learn(struct topology *t, const struct reply *reply, struct reason *why)
{
	if (reply_kind(reply) == REPLY_ERROR) {
		topology_quote(reply, why);
		return false;
	}
	return t->url->kind == URL_SENTINEL ? learn_primary(t, reply, why) : learn_slots(t, reply, why);
}

/* -- Replies of servers ----------------------------------------------------- */

/*
 * Parse "MOVED SLOT HOST:PORT", whose endpoint becomes the owner of the slot, or "ASK SLOT HOST:PORT".  If the host is
 * unknown, it is that of the server that replied.  NOWHERE: not valid.
 */
static int
learn_redirection(struct topology *t, const char *text, int from)
{
	char host[sizeof(t->endpoint[0].host)], port[8], kind[8];
	const char *colon = strrchr(text, ':'), *space = strrchr(text, ' ');
	unsigned int slot;
	int endpoint;

	if (colon == NULL || space == NULL || colon < space || strlen(colon + 1) >= sizeof(port) ||
	    (size_t)(colon - space) > sizeof(host))
		return NOWHERE;
	/* NOLINTNEXTLINE(cert-err34-c): five digits can't overflow */
	if (sscanf(text, "%7s %5u ", kind, &slot) != 2 || slot >= SLOTS)
		return NOWHERE;
	(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - space) - 1, space + 1);
	(void)snprintf(port, sizeof(port), "%s", colon + 1);
	if (host[0] == '\0' || strcmp(host, "?") == 0)
		memcpy(host, t->endpoint[from].host, sizeof(host));
	endpoint = find_endpoint(t, host, port);
	if (endpoint != NOWHERE && strcmp(kind, "MOVED") == 0) {
		t->owner[slot] = (uint16_t)(endpoint + 1);
		if (t->parts > 0) /* otherwise nothing is known, and a source will be asked */
			add_part(t, endpoint);
	}
	return endpoint;
}

enum redirection
topology_redirect(struct topology *t, const struct reply *reply, int from, int *endpoint)
{
	static const char *const later[] = { "TRYAGAIN", NULL }, *const ask[] = { "ASK ", NULL },
				 *const moved[] = { "MOVED ", NULL };
	const bool asks = reply_is_error(reply, ask);

	if (reply_is_error(reply, later))
		return REDIRECT_LATER;
	if (!asks && !reply_is_error(reply, moved))
		return REDIRECT_NONE;
	*endpoint = learn_redirection(t, reply_text(reply), from);
	if (*endpoint == NOWHERE)
		return REDIRECT_NONE;
	if (asks)
		return REDIRECT_ASK;
	*endpoint = NOWHERE;
	return REDIRECT_MOVED;
}

bool
topology_is_early(const struct reply *reply)
{
	/* The last three are errors of a proxy (twemproxy) about its server. */
	static const char *const texts[] = { "LOADING", "CLUSTERDOWN", "ERR Connection refused", "ERR Connection reset",
		"ERR Connection timed out", NULL };

	return reply_is_error(reply, texts);
}

bool
topology_is_demoted(const struct reply *reply)
{
	static const char *const codes[] = { "READONLY", "MASTERDOWN", "CLUSTERDOWN", "LOADING", "MOVED", "ASK", NULL };

	return reply_is_error(reply, codes);
}
