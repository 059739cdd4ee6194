/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_URL_H
#define DLOCK_ZK_URL_H
#include <stdbool.h>

#include "base/err.h"
#include "net/authority.h"
#include "zk/path.h"

/*
 * The location of a ZooKeeper ensemble.
 *
 *	zk://[user:password@]host[:port][,host[:port]...][/chroot]
 *	zks://..., the same under TLS
 *
 * Percent-escapes are decoded.  IPv6 addresses are in brackets.
 */
enum {
	ZK_SERVERS_MAX = 15,
	ZK_SERVER_SIZE = 300 /* of the name of one */
};

struct zk_url {
	struct endpoint server[ZK_SERVERS_MAX]; /* the caller sets their TLS context before connecting */
	int servers;
	char user[URL_USER_SIZE]; /* "": no authentication */
	char password[URL_PASSWORD_SIZE];
	char chroot[PATH_CHROOT_MAX + 1]; /* "" or "/..." */
	bool secure;			  /* use TLS */
	char name[400];			  /* for messages: the URL without user and password */
};

/* Does the text begin as a URL of ZooKeeper? */
bool zk_url_is(const char *text);

/* Parse a URL.  ST_USAGE, with a sentence that quotes the text without its password, if it is not valid. */
enum status zk_url_parse(const char *text, struct zk_url *, struct err *);

/* The name of a server for messages, "host:port"; returns the buffer. */
const char *zk_url_server(const struct zk_url *, int server, char name[ZK_SERVER_SIZE]);

#endif
