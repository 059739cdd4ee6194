/* SPDX-License-Identifier: MIT */
#include "net/authority.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct url_part
url_part_until(const char *at, const char *stop)
{
	struct url_part p = { at, strcspn(at, stop) };

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

bool
url_decode(struct url_part p, char *out, size_t size)
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

bool
url_number(struct url_part p, int most, int *number)
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

/* The @ behind the login that may be at the start of the authority; NULL: there is none. */
static const char *
find_login(const char *at)
{
	const size_t authority = strcspn(at, "/?#");

	return memrchr(at, '@', authority);
}

const char *
url_login(const char *at, char user_out[URL_USER_SIZE], char password_out[URL_PASSWORD_SIZE])
{
	const char *const end = find_login(at);
	struct url_part user, password;

	if (end == NULL)
		return at;
	user = url_part_until(at, ":");
	if (user.at + user.length > end)
		user.length = (size_t)(end - at);
	password = (struct url_part){ user.at + user.length + 1, (size_t)(end - user.at) - user.length };
	if (!url_decode(user, user_out, URL_USER_SIZE))
		return NULL;
	if (password.length-- > 0 && !url_decode(password, password_out, URL_PASSWORD_SIZE))
		return NULL;
	return end + 1;
}

/* The login in a text that may be no valid URL, and its length; NULL: there is none. */
static const char *
login_of(const char *url, size_t *length)
{
	const char *const scheme = strstr(url, "://"), *const start = scheme != NULL ? scheme + 3 : url;
	const char *const end = find_login(start);

	*length = end != NULL ? (size_t)(end - start) : 0;
	return end != NULL ? start : NULL;
}

bool
url_has_password(const char *url)
{
	size_t length;
	const char *const login = login_of(url, &length);

	return login != NULL && memchr(login, ':', length) != NULL;
}

void
url_add_hidden(const char *url, struct text *text)
{
	size_t length;
	const char *const login = login_of(url, &length), *colon = login != NULL ? memchr(login, ':', length) : NULL;

	if (colon != NULL)
		text_addf(text, "%.*s***%s", (int)(colon + 1 - url), url, login + length);
	else
		text_addf(text, "%s", url);
}

void
url_blot(char *url)
{
	size_t length;
	const char *const login = login_of(url, &length);

	if (login != NULL)
		memset(url + (login - url), '*', length);
}

static bool
host_is_fit(const char *host)
{
	return host[0] != '\0' &&
	    strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._") == strlen(host);
}

const char *
url_address(const char *at, char host_out[URL_HOST_SIZE], char port_out[URL_PORT_SIZE], const char *default_port)
{
	struct url_part host, port;
	int number;

	if (*at == '[') {
		host = url_part_until(at + 1, "]");
		if (host.at[host.length] != ']' || host.length >= URL_HOST_SIZE ||
		    memchr(host.at, ':', host.length) == NULL ||
		    strspn(host.at, "0123456789abcdefABCDEF:.%") < host.length)
			return NULL;
		memcpy(host_out, host.at, host.length);
		host_out[host.length] = '\0';
		at = host.at + host.length + 1;
	} else {
		host = url_part_until(at, ":/?#,");
		if (!url_decode(host, host_out, URL_HOST_SIZE) || !host_is_fit(host_out))
			return NULL;
		at += host.length;
	}
	if (*at != ':') {
		(void)snprintf(port_out, URL_PORT_SIZE, "%s", default_port);
		return at;
	}
	port = url_part_until(at + 1, "/?#,");
	if (!url_number(port, 65535, &number) || number == 0)
		return NULL;
	(void)snprintf(port_out, URL_PORT_SIZE, "%u", (unsigned int)number & 0xffff);
	return port.at + port.length;
}

void
url_show_address(const char *host, const char *port, struct text *text)
{
	text_addf(text, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

/* -- Errors ----------------------------------------------------------------- */

const char *
url_place(const char *text)
{
	const char *const scheme = strstr(text, "://"), *const at = strrchr(text, '@');

	return at != NULL ? at + 1 : scheme != NULL ? scheme + 3 : text;
}

const char *
url_find_fault(const char *text, bool several)
{
	const char *const place = url_place(text), *const scheme = strstr(text, "://"), *port;
	size_t i;

	if (text[0] == '\0')
		return "it is empty";
	if (strpbrk(text, " \t\n") != NULL)
		return "it contains a blank";
	if (place[0] == '\0' || strchr(":/,", place[0]) != NULL)
		return "a host is missing";
	if ((!several && strchr(place, ',') != NULL) || (scheme != NULL && strstr(scheme + 3, "://") != NULL))
		return "it names several nodes: repeat --node, or separate them by blanks in DLOCK_NODES";
	for (i = 0; strchr("/?", place[i]) == NULL; i++) {
		if (place[i] == ',' && strchr(",/?", place[i + 1]) != NULL)
			return "a host is missing behind a comma";
	}
	port = strchr(place[0] == '[' ? place + strcspn(place, "]") : place, ':');
	if (port != NULL &&
	    (strspn(port + 1, "0123456789") != strcspn(port + 1, "/?,") || strtol(port + 1, NULL, 10) < 1 ||
		strtol(port + 1, NULL, 10) > 65535))
		return "its port is not a number from 1 to 65535";
	return NULL;
}

/* Anything behind the scheme may be a part of a password, for example if a blank in it was not escaped. */
enum status
url_refuse(const char *text, const char *fault, struct err *err)
{
	const size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyz+");
	const bool shown = scheme > 0 && strncmp(text + scheme, "://", 3) == 0;

	return err_set(err, ST_USAGE, "invalid node%s%.*s%s: %s", shown ? " '" : "", shown ? (int)scheme : 0, text,
	    shown ? "://...'" : "", fault != NULL ? fault : "its host has characters that no host name has");
}
