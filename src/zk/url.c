/* SPDX-License-Identifier: MIT */
#include "zk/url.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define DEFAULT_PORT "2181"

static const char plain[] = "zk://", secure[] = "zks://";

bool
zk_url_is(const char *text)
{
	/* Every start of dlock asks this, mostly about URLs of Redis. */
	return text[0] == 'z' &&
	    (strncmp(text, plain, sizeof(plain) - 1) == 0 || strncmp(text, secure, sizeof(secure) - 1) == 0);
}

static bool
parse_servers(const char **at, struct zk_url *url)
{
	struct endpoint *server;

	for (;; (*at)++) {
		if (url->servers == ZK_SERVERS_MAX)
			return false;
		server = &url->server[url->servers++];
		*at = url_address(*at, server->host, server->port, DEFAULT_PORT);
		if (*at == NULL || **at != ',')
			return *at != NULL;
	}
}

/* Parse what follows the servers.  One slash at the end is ignored. */
static bool
parse_chroot(const char *at, struct zk_url *url)
{
	struct url_part part = { at, strlen(at) };

	if (strpbrk(at, "?#") != NULL)
		return false;
	if (part.length > 0 && at[part.length - 1] == '/')
		part.length--;
	return url_decode(part, url->chroot, sizeof(url->chroot)) && path_is_chroot(url->chroot);
}

static void
set_name(struct zk_url *url)
{
	struct text name = text_in(url->name, sizeof(url->name));
	int i;

	text_addf(&name, "%s", url->secure ? secure : plain);
	for (i = 0; i < url->servers; i++) {
		if (i > 0)
			text_add(&name, ",", 1);
		url_show_address(url->server[i].host, url->server[i].port, &name);
	}
	text_add_shown(&name, url->chroot, strlen(url->chroot));
}

enum status
zk_url_parse(const char *text, struct zk_url *url, struct err *err)
{
	const char *at = text, *fault = NULL, *login;
	char why[400], path[300];

	memset(url, 0, sizeof(*url));
	url->secure = strncmp(text, secure, sizeof(secure) - 1) == 0;
	if (zk_url_is(text))
		at = url_login(strchr(text, '/') + 2, url->user, url->password);
	if (at == text || at == NULL)
		return url_refuse(text, url_find_fault(text, true), err);
	if (url->user[0] == '\0' && url->password[0] != '\0')
		fault = "its password has no user";
	else if (!parse_servers(&at, url)) {
		if (at == NULL)
			return url_refuse(text, url_find_fault(text, true), err);
		fault = "it has too many servers";
	} else if (!parse_chroot(at, url)) {
		login = strrchr(at, '@'); /* what is before it may belong to a password */
		(void)snprintf(why, sizeof(why), "ZooKeeper does not allow locks at its path %s",
		    text_show(login != NULL ? login + 1 : at, path, sizeof(path)));
		fault = why;
	}
	if (fault != NULL)
		return url_refuse(text, fault, err);
	set_name(url);
	return ST_OK;
}

const char *
zk_url_server(const struct zk_url *url, int server, char name[ZK_SERVER_SIZE])
{
	struct text text = text_in(name, ZK_SERVER_SIZE);

	url_show_address(url->server[server].host, url->server[server].port, &text);
	return name;
}
