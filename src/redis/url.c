/* SPDX-License-Identifier: MIT */
#include "redis/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define DEFAULT_PORT "6379"
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

/* Decode %XX into a buffer of the given size.  False: junk behind %, a NUL, too long. */
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

/* "user:password@" at the start of the authority; returns what follows. */
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
	user = part_until(at, ":@");
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

/* Host and port; returns what follows, NULL for junk. */
static const char *
parse_host(const char *at, struct url *url, bool needs_port)
{
	struct part host, port;
	int number;

	if (*at == '[') {
		host = part_until(at + 1, "]");
		if (host.at[host.length] != ']' || host.length == 0 || host.length >= sizeof(url->host) ||
		    strspn(host.at, "0123456789abcdefABCDEF:.%") < host.length)
			return NULL;
		memcpy(url->host, host.at, host.length);
		at = host.at + host.length + 1;
	} else {
		host = part_until(at, ":/?#");
		if (!decode(host, url->host, sizeof(url->host)) || !host_is_fit(url->host))
			return NULL;
		at += host.length;
	}
	if (*at != ':') {
		memcpy(url->port, DEFAULT_PORT, sizeof(DEFAULT_PORT));
		return needs_port ? NULL : at;
	}
	port = part_until(at + 1, "/?#");
	if (!parse_number(port, 65535, &number) || number == 0)
		return NULL;
	(void)snprintf(url->port, sizeof(url->port), "%u", (unsigned int)number & 0xffff);
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
	at = parse_host(at, url, bare);
	if (at == NULL || (bare && *at != '\0'))
		return false;
	return *at == '\0' || (*at == '/' && parse_db(at + 1, url));
}

static bool
parse_unix(const char *at, struct url *url)
{
	const struct part path = part_until(at, "?");

	if (*at != '/' || !decode(path, url->path, sizeof(url->path)))
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

	if (url->host[0] == '\0') {
		text_add_shown(&name, url->path, strlen(url->path));
		return;
	}
	text_addf(&name, strchr(url->host, ':') != NULL ? "[%s]:%s" : "%s:%s", url->host, url->port);
	if (url->db != 0)
		text_addf(&name, "/%d", url->db);
}

/* What may be said of a text that is no URL: all of it but what stands before an @. */
static enum status
refuse(const char *text, struct err *err)
{
	const char *shown = strrchr(text, '@') != NULL ? strrchr(text, '@') + 1 : text;
	const char *hidden = shown == text ? "" : "...@";
	char buffer[200];

	return err_set(err, ST_USAGE,
	    "invalid node '%s%s'; use redis://[user:password@]host[:port][/db], rediss:// (TLS), unix:///path[?db=N], /path or host:port",
	    hidden, text_show(shown, buffer, sizeof(buffer)));
}

enum status
url_parse(const char *text, struct url *url, struct err *err)
{
	const char *after_login;
	bool fit;

	memset(url, 0, sizeof(*url));
	if (starts_with(text, "redis://"))
		fit = parse_tcp(text + 8, url, false);
	else if (starts_with(text, "rediss://")) {
		url->secure = true;
		fit = parse_tcp(text + 9, url, false);
	} else if (starts_with(text, "unix://")) {
		after_login = parse_login(text + 7, url);
		fit = after_login != NULL && parse_unix(after_login, url);
	} else if (text[0] == '/') {
		fit = strlen(text) < sizeof(url->path);
		if (fit)
			memcpy(url->path, text, strlen(text) + 1);
	} else
		fit = strstr(text, "://") == NULL && strchr(text, '@') == NULL && parse_tcp(text, url, true);
	if (!fit)
		return refuse(text, err);
	set_name(url);
	return ST_OK;
}
