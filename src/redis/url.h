/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_URL_H
#define DLOCK_REDIS_URL_H
#include <stdbool.h>

#include "base/err.h"
#include "redis/tls.h"

/*
 * Where a Redis node is, and as whom we speak to it.
 *
 *	redis://[user[:password]@]host[:port][/db]	host:port
 *	rediss://..., the same under TLS
 *	unix://[user[:password]@]/path[?db=N]		/path
 *
 * Percent-escapes are decoded, IPv6 addresses stand in brackets.
 */
struct url {
	char host[256]; /* "" for a unix socket */
	char port[6];
	char path[108]; /* of a unix socket; its limit is the system's */
	char user[256];
	char password[512];
	int db;
	bool secure;		 /* under TLS, */
	struct tls_context *tls; /* which whoever connects must have put here */
	char name[288];		 /* for messages: host:port[/db] or the path, never the password */
};

/* ST_USAGE, with a sentence that names the text (without its password), for anything else. */
enum status url_parse(const char *text, struct url *, struct err *);

#endif
