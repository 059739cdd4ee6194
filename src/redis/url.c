/* SPDX-License-Identifier: MIT */
#include "redis/url.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net/authority.h"

#define DEFAULT_PORT "6379"
#define SENTINEL_PORT "26379"
#define DB_MAX 1000000

static const struct scheme {
	const char *start;
	enum url_kind kind;
	bool secure, local;
} schemes[] = {
	{ "redis://", URL_SERVER, false, false },
	{ "rediss://", URL_SERVER, true, false },
	{ "unix://", URL_SERVER, false, true },
	{ "redis+sentinel://", URL_SENTINEL, false, false },
	{ "rediss+sentinel://", URL_SENTINEL, true, false },
	{ "redis+cluster://", URL_CLUSTER, false, false },
	{ "rediss+cluster://", URL_CLUSTER, true, false },
};

/* Parse the servers of a service.  Returns what follows; NULL: not valid, or too many. */
static const char *
parse_seeds(const char *at, struct url *url)
{
	struct address *seed;

	for (;; at++) {
		if (url->seeds == SEEDS_MAX)
			return NULL;
		seed = &url->seed[url->seeds++];
		at = url_address(at, seed->host, seed->port, url->kind == URL_SENTINEL ? SENTINEL_PORT : DEFAULT_PORT);
		if (at == NULL || *at != ',')
			return at;
	}
}

/* Parse what follows the scheme; local: a unix socket. */
static bool
parse(const char *at, struct url *url, bool local)
{
	struct url_part part;

	at = url_login(at, url->user, url->password);
	if (at == NULL)
		return false;
	if (local) {
		part = url_part_until(at, "?");
		if (*at != '/' || !url_decode(part, url->endpoint.path, sizeof(url->endpoint.path)))
			return false;
		at += part.length;
		return *at == '\0' ||
		    (strncmp(at, "?db=", 4) == 0 && url_number(url_part_until(at + 4, ""), DB_MAX, &url->db));
	}
	if (url->kind == URL_SERVER)
		at = url_address(at, url->endpoint.host, url->endpoint.port, DEFAULT_PORT);
	else
		at = parse_seeds(at, url);
	if (at != NULL && url->kind == URL_SENTINEL) {
		if (*at++ != '/')
			return false;
		part = url_part_until(at, "/?#");
		if (part.length == 0 || !url_decode(part, url->service, sizeof(url->service)))
			return false;
		at += part.length;
	}
	if (at == NULL || *at == '\0' || strcmp(at, "/") == 0)
		return at != NULL;
	return url->kind != URL_CLUSTER && *at == '/' && url_number(url_part_until(at + 1, ""), DB_MAX, &url->db);
}

static void
set_name(struct url *url)
{
	struct text name = text_in(url->name, sizeof(url->name));
	int i;

	if (url->kind != URL_SERVER)
		text_addf(&name, "redis%s+%s://", url->secure ? "s" : "",
		    url->kind == URL_SENTINEL ? "sentinel" : "cluster");
	for (i = 0; i < url->seeds; i++) {
		if (i > 0)
			text_add(&name, ",", 1);
		url_show_address(url->seed[i].host, url->seed[i].port, &name);
	}
	if (url->kind == URL_SENTINEL) {
		text_add(&name, "/", 1);
		text_add_shown(&name, url->service, strlen(url->service));
	} else if (url->endpoint.host[0] != '\0')
		url_show_address(url->endpoint.host, url->endpoint.port, &name);
	else
		text_add_shown(&name, url->endpoint.path, strlen(url->endpoint.path));
	if (url->db != 0 && url->endpoint.path[0] == '\0')
		text_addf(&name, "/%d", url->db);
}

/* The fault of a text that is no valid URL; scheme NULL: it has none of the table.  NULL: not known. */
static const char *
find_fault(const char *text, const struct scheme *scheme)
{
	const char *const place = url_place(text), *fault;

	if (scheme == NULL && strstr(text, "://") != NULL)
		return "its scheme is unknown";
	if (scheme != NULL && scheme->local)
		return place[0] != '/'		 ? "the path of the socket must begin with /"
		    : strchr(place, '?') != NULL ? "what follows the path is not ?db= and the number of a database"
						 : "the path of the socket is too long, or has a malformed escape";
	if (scheme == NULL && strchr(text, '@') != NULL)
		return "a login needs a scheme such as redis://";
	fault = url_find_fault(text, scheme != NULL && scheme->kind != URL_SERVER);
	if (fault != NULL)
		return fault;
	if (scheme != NULL && scheme->kind == URL_SENTINEL && strchr(place, '/') == NULL)
		return "the name of the service is missing";
	if (scheme != NULL && strchr(place, '/') != NULL)
		return "what follows the host is not the number of a database";
	return NULL;
}

enum status
url_parse(const char *text, struct url *url, struct err *err)
{
	const struct scheme *scheme = NULL;
	size_t i;
	bool fit;

	memset(url, 0, offsetof(struct url, seed));
	for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]) && scheme == NULL; i++) {
		if (strncmp(text, schemes[i].start, strlen(schemes[i].start)) == 0)
			scheme = &schemes[i];
	}
	if (scheme != NULL) {
		url->kind = scheme->kind;
		url->secure = scheme->secure;
		fit = parse(text + strlen(scheme->start), url, scheme->local);
	} else if (text[0] == '/') {
		fit = strlen(text) < sizeof(url->endpoint.path);
		(void)snprintf(url->endpoint.path, sizeof(url->endpoint.path), "%s", text);
	} else
		fit = strpbrk(text, "/@") == NULL && parse(text, url, false);
	if (!fit)
		return url_refuse(text, find_fault(text, scheme), err);
	set_name(url);
	return ST_OK;
}
