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
static bool
parse_db(const char *at, struct url *url)
{
	struct url_part p = { at, strlen(at) };

	return p.length == 0 || url_number(p, DB_MAX, &url->db);
}

static bool
parse_server(const char *at, struct url *url)
{
	at = url_login(at, url->user, url->password);
	if (at == NULL)
		return false;
	at = url_address(at, url->endpoint.host, url->endpoint.port, DEFAULT_PORT);
	return at != NULL && (*at == '\0' || (*at == '/' && parse_db(at + 1, url)));
}

static bool
parse_seeds(const char **at, struct url *url, const char *default_port)
{
	struct address *seed;

	for (;; (*at)++) {
		if (url->seeds == SEEDS_MAX)
			return false;
		seed = &url->seed[url->seeds++];
		*at = url_address(*at, seed->host, seed->port, default_port);
		if (*at == NULL || **at != ',')
			return *at != NULL;
	}
}

static bool
parse_sentinel(const char *at, struct url *url)
{
	struct url_part service;

	url->kind = URL_SENTINEL;
	at = url_login(at, url->user, url->password);
	if (at == NULL || !parse_seeds(&at, url, SENTINEL_PORT) || *at++ != '/')
		return false;
	service = url_part_until(at, "/?#");
	if (service.length == 0 || !url_decode(service, url->service, sizeof(url->service)))
		return false;
	at += service.length;
	return *at == '\0' || (*at == '/' && parse_db(at + 1, url));
}

static bool
parse_cluster(const char *at, struct url *url)
{
	url->kind = URL_CLUSTER;
	at = url_login(at, url->user, url->password);
	return at != NULL && parse_seeds(&at, url, DEFAULT_PORT) && (*at == '\0' || strcmp(at, "/") == 0);
}

static bool
parse_unix(const char *at, struct url *url)
{
	struct url_part path;

	at = url_login(at, url->user, url->password);
	if (at == NULL)
		return false;
	path = url_part_until(at, "?");
	if (*at != '/' || !url_decode(path, url->endpoint.path, sizeof(url->endpoint.path)))
		return false;
	at += path.length;
	if (*at == '\0')
		return true;
	return strncmp(at, "?db=", 4) == 0 && at[4] != '\0' && parse_db(at + 4, url);
}

static bool
starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
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

static const struct scheme {
	const char *start;
	bool secure;
	bool (*parse)(const char *, struct url *);
} schemes[] = {
	{ "redis://", false, parse_server },
	{ "rediss://", true, parse_server },
	{ "unix://", false, parse_unix },
	{ "redis+sentinel://", false, parse_sentinel },
	{ "rediss+sentinel://", true, parse_sentinel },
	{ "redis+cluster://", false, parse_cluster },
	{ "rediss+cluster://", true, parse_cluster },
};

static bool
parse_bare(const char *text, struct url *url)
{
	const size_t length = strlen(text);

	if (text[0] != '/')
		return strpbrk(text, "/@") == NULL && parse_server(text, url);
	if (length >= sizeof(url->endpoint.path))
		return false;
	memcpy(url->endpoint.path, text, length + 1);
	return true;
}

/* What is wrong with a text that is no valid URL; scheme NULL: it has none of the table.  NULL: not known. */
static const char *
find_fault(const char *text, const struct scheme *scheme)
{
	const char *const place = url_place(text), *fault;

	if (scheme == NULL && strstr(text, "://") != NULL)
		return "its scheme is unknown";
	if (scheme != NULL && scheme->parse == parse_unix)
		return place[0] != '/'		 ? "the path of the socket must begin with /"
		    : strchr(place, '?') != NULL ? "what follows the path is not ?db= and the number of a database"
						 : "the path of the socket is too long, or has a malformed escape";
	if (scheme == NULL && strchr(text, '@') != NULL)
		return "a login needs a scheme such as redis://";
	fault = url_find_fault(text, scheme != NULL && scheme->parse != parse_server);
	if (fault != NULL)
		return fault;
	if (scheme != NULL && scheme->parse == parse_sentinel && strchr(place, '/') == NULL)
		return "the name of the service is missing";
	if (scheme != NULL && strchr(place, '/') != NULL)
		return "what follows the host is not the number of a database";
	return NULL;
}

enum status
url_parse(const char *text, struct url *url, struct err *err)
{
	const struct scheme *scheme, *const end = schemes + sizeof(schemes) / sizeof(schemes[0]);
	bool fit;

	memset(url, 0, offsetof(struct url, seed));
	for (scheme = schemes; scheme < end && !starts_with(text, scheme->start); scheme++)
		;
	url->secure = scheme < end && scheme->secure;
	fit = scheme < end ? scheme->parse(text + strlen(scheme->start), url) : parse_bare(text, url);
	if (!fit)
		return url_refuse(text, find_fault(text, scheme < end ? scheme : NULL), err);
	set_name(url);
	return ST_OK;
}
