/* SPDX-License-Identifier: MIT */
#include "zk/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "lock/service.h"

#define DEFAULT_PORT "2181"

/* -- Paths ------------------------------------------------------------------ */

/* The number of bytes of the character at the start that may stand in a path; 0: its first byte must be escaped. */
static size_t
plain_length(const char *at, size_t left)
{
	unsigned long code = 0;
	const size_t length = text_character(at, left, &code);

	if (length == 0 || code < 0x20 || code == '%' || (code >= 0x7f && code <= 0x9f) ||
	    (code >= 0xd800 && code <= 0xf8ff) || code >= 0xfff0)
		return 0;
	return length;
}

/* Append the escaped byte. */
static char *
escape(char *out, char byte)
{
	return out + snprintf(out, 4, "%%%02X", (unsigned int)(unsigned char)byte);
}

void
path_of_key(const char *chroot, const char *key, char path[PATH_LOCK_SIZE])
{
	char *out = path + snprintf(path, PATH_CHROOT_MAX + 1, "%s", chroot);
	const char *const end = key + strlen(key), *at = key[0] == '/' && key[1] != '\0' ? key + 1 : key,
			  *component = at;
	size_t length;

	*out++ = '/';
	while (at < end) {
		length = strcspn(at, "/");
		if (at == component && (length == 1 || length == 2) && strncmp(at, "..", length) == 0) {
			for (; length > 0; length--)
				out = escape(out, *at++);
			continue;
		}
		if (*at == '/' && at > component && at + 1 < end) {
			*out++ = *at++;
			component = at;
			continue;
		}
		length = *at == '/' ? 0 : plain_length(at, (size_t)(end - at));
		if (length == 0)
			out = escape(out, *at++);
		for (; length > 0; length--)
			*out++ = *at++;
	}
	*out = '\0';
}

bool
path_to_key(const char *path, size_t chroot_length, char *key, size_t size)
{
	const char *below;
	char again[PATH_LOCK_SIZE];
	size_t n;

	if (strlen(path) >= PATH_LOCK_SIZE || strlen(path) <= chroot_length + 1)
		return false;
	below = path + chroot_length + 1;
	if (!url_decode((struct url_part){ below, strlen(below) }, key, size))
		return false;
	n = strlen(key);
	if (n > 1 && key[0] == '/' && n + 1 < size) /* of two slashes, the first was dropped */
		memmove(key + 1, key, ++n);
	if (n > PATH_KEY_MAX / 3)
		return false;
	path_of_key("", key, again);
	return strcmp(again, below - 1) == 0;
}

bool
path_is_chroot(const char *chroot)
{
	char path[PATH_LOCK_SIZE];

	if (chroot[0] == '\0')
		return true;
	if (chroot[0] != '/' || chroot[1] == '\0' || strlen(chroot) > PATH_CHROOT_MAX || strchr(chroot, '%') != NULL)
		return false;
	path_of_key("", chroot + 1, path);
	return strcmp(path, chroot) == 0 && !path_is_reserved(chroot);
}

int
path_cut_slot(char *path, size_t chroot_length)
{
	static const char leases[] = "/leases";
	char *const below = path + chroot_length, *const last = strrchr(below, '/');
	size_t length = strlen(below);
	char name[20];
	int slot = 0;

	if (last != NULL && strncmp(last, "/slot-", 6) == 0) {
		slot = (int)strtol(last + 6, NULL, 10);
		(void)snprintf(name, sizeof(name), "/slot-%d", slot);
		if (slot < 1 || slot > SLOTS_MAX || strcmp(name, last) != 0)
			return -1;
		length -= strlen(last);
	}
	if (length < sizeof(leases) || memcmp(below + length - strlen(leases), leases, strlen(leases)) != 0)
		return -1;
	below[length] = '\0';
	return slot;
}

bool
path_is_reserved(const char *path)
{
	static const char own[] = "/zookeeper";
	const size_t length = sizeof(own) - 1;

	return strncmp(path, own, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* -- URLs ------------------------------------------------------------------- */

static const char plain[] = "zk://", secure[] = "zks://";

bool
zk_url_is(const char *text)
{
	/* Every start of dlock asks this, mostly about URLs of Redis. */
	return text[0] == 'z' &&
	    (strncmp(text, plain, sizeof(plain) - 1) == 0 || strncmp(text, secure, sizeof(secure) - 1) == 0);
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

enum status
zk_url_parse(const char *text, struct zk_url *url, struct err *err)
{
	struct text name;
	const char *at = NULL, *login;
	char why[400], path[300];
	struct endpoint *server;
	bool more = true;

	memset(url, 0, sizeof(*url));
	name = text_in(url->name, sizeof(url->name));
	url->secure = strncmp(text, secure, sizeof(secure) - 1) == 0;
	text_addf(&name, "%s", url->secure ? secure : plain);
	if (zk_url_is(text))
		at = url_login(strchr(text, '/') + 2, url->user, url->password);
	if (at != NULL && url->user[0] == '\0' && url->password[0] != '\0')
		return url_refuse(text, "its password has no user", err);
	while (at != NULL && more && url->servers < ZK_SERVERS_MAX) {
		server = &url->server[url->servers++];
		at = url_address(at, server->host, server->port, DEFAULT_PORT);
		url_show_address(server->host, server->port, &name);
		more = at != NULL && *at == ',';
		if (more)
			text_add(&name, at++, 1);
	}
	if (at == NULL)
		return url_refuse(text, url_find_fault(text, true), err);
	if (more)
		return url_refuse(text, "it has too many servers", err);
	if (!parse_chroot(at, url)) {
		login = strrchr(at, '@'); /* the text before it may belong to a password */
		(void)snprintf(why, sizeof(why), "ZooKeeper does not allow locks at its path %s",
		    text_show(login != NULL ? login + 1 : at, path, sizeof(path)));
		return url_refuse(text, why, err);
	}
	text_add_shown(&name, url->chroot, strlen(url->chroot));
	return ST_OK;
}

const char *
zk_url_server(const struct zk_url *url, int server, char name[ZK_SERVER_SIZE])
{
	struct text text = text_in(name, ZK_SERVER_SIZE);

	url_show_address(url->server[server].host, url->server[server].port, &text);
	return name;
}
