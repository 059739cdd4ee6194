/* SPDX-License-Identifier: MIT */
#include "redis/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define DEFAULT_PORT "6379"
#define SENTINEL_PORT "26379"
#define DB_MAX 1000000

/* A part of the text, not terminated. */
struct part {
	const char *at;
	size_t length;
};

static struct part
part_until(const char *at, const char *stop)
{
	struct part p = { at, strcspn(at, stop) };

	return p;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode %XX into a buffer of the given size.  False: invalid escape, NUL, or too long. */
static bool
decode(struct part p, char *out, size_t size)
{
	size_t i, n = 0;
	int high, low;

	for (i = 0; i < p.length; i++) {
		if (n + 1 >= size)
			return false;
		if (p.at[i] != '%') {
			out[n++] = p.at[i];
			continue;
		}
		if (i + 2 >= p.length)
			return false;
		high = hex_digit(p.at[i + 1]);
		low = hex_digit(p.at[i + 2]);
		if (high < 0 || low < 0 || high + low == 0)
			return false;
		out[n++] = (char)(high * 16 + low);
		i += 2;
	}
	out[n] = '\0';
	return true;
}

static bool
parse_number(struct part p, int most, int *number)
{
	size_t i;
	int n = 0;

	if (p.length == 0 || p.length > 7)
		return false;
	for (i = 0; i < p.length; i++) {
		if (p.at[i] < '0' || p.at[i] > '9')
			return false;
		n = n * 10 + (p.at[i] - '0');
	}
	*number = n;
	return n <= most;
}

/* Parse "user:password@" at the start of the authority.  Returns what follows; NULL: not valid. */
static const char *
parse_login(const char *at, struct url *url)
{
	const size_t authority = strcspn(at, "/?#");
	const char *end = NULL, *p;
	struct part user;

	for (p = at; p < at + authority; p++) {
		if (*p == '@')
			end = p;
	}
	if (end == NULL)
		return at;
	user = part_until(at, ":");
	if (user.at + user.length > end)
		user.length = (size_t)(end - at);
	if (!decode(user, url->user, sizeof(url->user)))
		return NULL;
	if (user.at + user.length < end) {
		const char *secret = user.at + user.length + 1;
		const struct part password = { secret, (size_t)(end - secret) };

		if (!decode(password, url->password, sizeof(url->password)))
			return NULL;
	}
	return end + 1;
}

static bool
host_is_fit(const char *host)
{
	return host[0] != '\0' &&
	    strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._") == strlen(host);
}

/* Parse host and port.  Returns what follows; NULL: not valid.  Without a default the port is required. */
static const char *
parse_place(const char *at, char host_out[256], char port_out[6], const char *default_port)
{
	struct part host, port;
	int number;

	if (*at == '[') {
		host = part_until(at + 1, "]");
		if (host.at[host.length] != ']' || host.length >= 256 || memchr(host.at, ':', host.length) == NULL ||
		    strspn(host.at, "0123456789abcdefABCDEF:.%") < host.length)
			return NULL;
		memcpy(host_out, host.at, host.length);
		host_out[host.length] = '\0';
		at = host.at + host.length + 1;
	} else {
		host = part_until(at, ":/?#,");
		if (!decode(host, host_out, 256) || !host_is_fit(host_out))
			return NULL;
		at += host.length;
	}
	if (*at != ':') {
		if (default_port != NULL)
			(void)snprintf(port_out, 6, "%s", default_port);
		return default_port != NULL ? at : NULL;
	}
	port = part_until(at + 1, "/?#,");
	if (!parse_number(port, 65535, &number) || number == 0)
		return NULL;
	(void)snprintf(port_out, 6, "%u", (unsigned int)number & 0xffff);
	return port.at + port.length;
}

static bool
parse_db(const char *at, struct url *url)
{
	struct part p = { at, strlen(at) };

	return p.length == 0 || parse_number(p, DB_MAX, &url->db);
}

static bool
parse_tcp(const char *at, struct url *url, bool bare)
{
	at = parse_login(at, url);
	if (at == NULL)
		return false;
	at = parse_place(at, url->endpoint.host, url->endpoint.port, bare ? NULL : DEFAULT_PORT);
	if (at == NULL || (bare && *at != '\0'))
		return false;
	return *at == '\0' || (*at == '/' && parse_db(at + 1, url));
}

static bool
parse_server(const char *at, struct url *url)
{
	return parse_tcp(at, url, false);
}

static bool
parse_seeds(const char **at, struct url *url, const char *default_port)
{
	struct address *seed;

	url->seed = calloc(SEEDS_MAX, sizeof(*url->seed));
	for (;; (*at)++) {
		if (url->seed == NULL || url->seeds == SEEDS_MAX)
			return false;
		seed = &url->seed[url->seeds++];
		*at = parse_place(*at, seed->host, seed->port, default_port);
		if (*at == NULL || **at != ',')
			return *at != NULL;
	}
}

static bool
parse_sentinel(const char *at, struct url *url)
{
	struct part service;

	url->kind = URL_SENTINEL;
	at = parse_login(at, url);
	if (at == NULL || !parse_seeds(&at, url, SENTINEL_PORT) || *at++ != '/')
		return false;
	service = part_until(at, "/?#");
	if (service.length == 0 || !decode(service, url->service, sizeof(url->service)))
		return false;
	at += service.length;
	return *at == '\0' || (*at == '/' && parse_db(at + 1, url));
}

static bool
parse_cluster(const char *at, struct url *url)
{
	url->kind = URL_CLUSTER;
	at = parse_login(at, url);
	return at != NULL && parse_seeds(&at, url, DEFAULT_PORT) && (*at == '\0' || strcmp(at, "/") == 0);
}

static bool
parse_unix(const char *at, struct url *url)
{
	struct part path;

	at = parse_login(at, url);
	if (at == NULL)
		return false;
	path = part_until(at, "?");
	if (*at != '/' || !decode(path, url->endpoint.path, sizeof(url->endpoint.path)))
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
add_place(struct text *text, const char *host, const char *port)
{
	text_addf(text, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
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
		add_place(&name, url->seed[i].host, url->seed[i].port);
	}
	if (url->kind == URL_SENTINEL) {
		text_add(&name, "/", 1);
		text_add_shown(&name, url->service, strlen(url->service));
	} else if (url->endpoint.host[0] != '\0')
		add_place(&name, url->endpoint.host, url->endpoint.port);
	else
		text_add_shown(&name, url->endpoint.path, strlen(url->endpoint.path));
	if (url->db != 0 && url->endpoint.path[0] == '\0')
		text_addf(&name, "/%d", url->db);
}

/* Does the text after a colon look like a port, or is it empty? */
static bool
looks_like_port(const char *text)
{
	const size_t digits = strspn(text, "0123456789");

	return digits <= 5 && (text[digits] == '\0' || text[digits] == '/');
}

/* How many bytes of an address without @ may be shown: the text after a colon may be the password of a login. */
static size_t
harmless_length(const char *place, bool of_scheme)
{
	const char *host = place[0] == '[' ? place + strcspn(place, "]") : place;
	const char *colon = strchr(host, ':');

	if (colon == NULL || (place[0] == '/' && !of_scheme) || (colon > place && looks_like_port(colon + 1)))
		return strlen(place);
	return of_scheme ? 0 : (size_t)(colon + 1 - place);
}

/*
 * Refuse a text that is not a URL.  The message shows nothing before an @, or what may be a login whose @ is missing.
 */
static enum status
refuse(const char *text, struct err *err)
{
	const char *at = strrchr(text, '@'), *scheme = strstr(text, "://");
	const char *shown = at != NULL ? at + 1 : text;
	const bool of_scheme = at == NULL && scheme != NULL && !starts_with(text, "unix:///");
	const char *place = of_scheme ? scheme + 3 : shown;
	const size_t length = (size_t)(place - shown) + harmless_length(place, of_scheme);
	char buffer[200];
	struct text part = text_in(buffer, sizeof(buffer));

	text_add_shown(&part, shown, length);
	return err_set(err, ST_USAGE,
	    "invalid node '%s%s%s'; use redis://[user:password@]host[:port][/db], rediss:// (TLS), unix:///path[?db=N], /path or host:port; see URLs in dlock(1)",
	    at != NULL ? "...@" : "", buffer, shown[length] != '\0' ? "..." : "");
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
		return strstr(text, "://") == NULL && strchr(text, '@') == NULL && parse_tcp(text, url, true);
	if (length >= sizeof(url->endpoint.path))
		return false;
	memcpy(url->endpoint.path, text, length + 1);
	return true;
}

enum status
url_parse(const char *text, struct url *url, struct err *err)
{
	const struct scheme *scheme, *const end = schemes + sizeof(schemes) / sizeof(schemes[0]);
	bool fit;

	memset(url, 0, sizeof(*url));
	for (scheme = schemes; scheme < end && !starts_with(text, scheme->start); scheme++)
		;
	url->secure = scheme < end && scheme->secure;
	fit = scheme < end ? scheme->parse(text + strlen(scheme->start), url) : parse_bare(text, url);
	if (!fit) {
		url_free(url);
		return refuse(text, err);
	}
	set_name(url);
	return ST_OK;
}

bool
url_copy(struct url *to, const struct url *from)
{
	*to = *from;
	if (from->seed == NULL)
		return true;
	to->seed = calloc(SEEDS_MAX, sizeof(*to->seed));
	if (to->seed != NULL)
		memcpy(to->seed, from->seed, (size_t)from->seeds * sizeof(*to->seed));
	return to->seed != NULL;
}

void
url_free(struct url *url)
{
	free(url->seed);
	url->seed = NULL;
	url->seeds = 0;
}
