/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_URL_H
#define DLOCK_REDIS_URL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/authority.h"

/*
 * The location of a Redis node, and the user to log in as.
 *
 *	redis://[user[:password]@]host[:port][/db]	host[:port]
 *	rediss://..., the same under TLS
 *	unix://[user[:password]@]/path[?db=N]		/path
 *
 *	redis+sentinel://[user[:password]@]host[:port],.../service[/db]
 *	redis+cluster://[user[:password]@]host[:port],...
 *
 * Also rediss+sentinel:// and rediss+cluster://.  Percent-escapes are decoded.  IPv6 addresses are in brackets.
 */
enum url_kind {
	URL_SERVER,
	URL_SENTINEL, /* the primary of a service, found through sentinels */
	URL_CLUSTER   /* the servers of a Redis Cluster */
};

enum {
	SEEDS_MAX = 16
};

struct address {
	char host[256];
	char port[6];
};

struct password;

struct url {
	enum url_kind kind;
	struct endpoint endpoint; /* of a server; the caller sets its TLS context before connecting */
	int seeds;
	char service[128]; /* its name, for sentinels */
	char user[256];
	char password[512];
	struct password *shared;	    /* in place of its own, set by the caller; NULL: none */
	const char *sentinel_user;	    /* for a login of their own at sentinels, set by the caller; "": default */
	struct password *sentinel_password; /* NULL: they have none, or that of the servers */
	int db;
	bool secure;			/* use TLS */
	bool of_service;		/* a server of a service, which messages must name */
	int replicas;			/* number of replicas that must confirm a write, set by the caller */
	int64_t replicas_ms;		/* time that they have for it, set by the caller */
	int64_t node_timeout_us;	/* time that a request to the service may take, set by the caller */
	char name[400];			/* for messages: host:port[/db], the path, or a URL without user and password */
	struct address seed[SEEDS_MAX]; /* of a service: the servers to query; last: it is not copied for a server */
};

/* Parse a URL.  ST_USAGE, with a sentence that quotes the text without its password, if it is not valid. */
enum status url_parse(const char *text, struct url *, struct err *);

#endif
