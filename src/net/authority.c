/* SPDX-License-Identifier: MIT */
#include "net/authority.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct url_part
url_part_until(const char *at, const char *stop)
{
	return (struct url_part){ at, strcspn(at, stop) };
}

bool
url_decode(struct url_part p, char *out, size_t size)
{
	char hex[3] = "";
	size_t i, n = 0;

	for (i = 0; i < p.length; i++) {
		if (n + 1 >= size)
			return false;
		out[n] = p.at[i];
		if (p.at[i] == '%') {
			if (i + 2 >= p.length)
				return false;
			memcpy(hex, p.at + i + 1, 2);
			out[n] = (char)strtol(hex, NULL, 16);
			if (strspn(hex, "0123456789abcdefABCDEF") < 2 || out[n] == '\0')
				return false;
			i += 2;
		}
		n++;
	}
	out[n] = '\0';
	return true;
}

bool
url_number(struct url_part p, int most, int *number)
{
	if (p.length == 0 || p.length > 7 || strspn(p.at, "0123456789") < p.length)
		return false;
	*number = (int)strtol(p.at, NULL, 10);
	return *number <= most;
}

/* The @ behind the login that may be at the start of the authority; NULL: there is none. */
static const char *
find_login(const char *at)
{
	return memrchr(at, '@', strcspn(at, "/?#"));
}

const char *
url_login(const char *at, char user[URL_USER_SIZE], char password[URL_PASSWORD_SIZE])
{
	const char *const end = find_login(at), *colon;

	if (end == NULL)
		return at;
	colon = memchr(at, ':', (size_t)(end - at));
	if (colon != NULL &&
	    !url_decode((struct url_part){ colon + 1, (size_t)(end - colon) - 1 }, password, URL_PASSWORD_SIZE))
		return NULL;
	if (!url_decode((struct url_part){ at, (size_t)((colon != NULL ? colon : end) - at) }, user, URL_USER_SIZE))
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

const char *
url_address(const char *at, char host[URL_HOST_SIZE], char port[URL_PORT_SIZE], const char *default_port)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";
	struct url_part part;
	int number;

	if (*at == '[') {
		part = url_part_until(at + 1, "]");
		if (part.at[part.length] != ']' || part.length >= URL_HOST_SIZE ||
		    memchr(part.at, ':', part.length) == NULL ||
		    strspn(part.at, "0123456789abcdefABCDEF:.%") < part.length)
			return NULL;
		(void)snprintf(host, URL_HOST_SIZE, "%.*s", (int)part.length, part.at);
		at = part.at + part.length + 1;
	} else {
		part = url_part_until(at, ":/?#,");
		if (!url_decode(part, host, URL_HOST_SIZE) || host[0] == '\0' || host[strspn(host, letters)] != '\0')
			return NULL;
		at += part.length;
	}
	if (*at != ':') {
		(void)snprintf(port, URL_PORT_SIZE, "%s", default_port);
		return at;
	}
	part = url_part_until(at + 1, "/?#,");
	if (!url_number(part, 65535, &number) || number == 0)
		return NULL;
	(void)snprintf(port, URL_PORT_SIZE, "%u", (unsigned int)number & 0xffff);
	return part.at + part.length;
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
	int number;

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
	if (port != NULL && (!url_number(url_part_until(port + 1, "/?,"), 65535, &number) || number < 1))
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
