/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_URL_H
#define DLOCK_REDIS_URL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/endpoint.h"

/*
 * Where a Redis node is, and as whom we speak to it.
 *
 *	redis://[user[:password]@]host[:port][/db]	host:port
 *	rediss://..., the same under TLS
 *	unix://[user[:password]@]/path[?db=N]		/path
 *
 *	redis+sentinel://[user[:password]@]host[:port],.../service[/db]
 *	redis+cluster://[user[:password]@]host[:port],...
 *
 * and rediss+sentinel://, rediss+cluster://.  Percent-escapes are decoded, IPv6 addresses stand in brackets.
 */
enum url_kind {
	URL_SERVER,
	URL_SENTINEL, /* the master of a service, whom sentinels know */
	URL_CLUSTER   /* the servers of a Redis Cluster */
};

enum {
	SEEDS_MAX = 16
};

struct address {
	char host[256];
	char port[6];
};

struct url {
	enum url_kind kind;
	struct endpoint endpoint; /* of a server; whoever connects must have put its TLS context there */
	struct address *seed;	  /* of a service: whom to ask; url_free() frees them */
	int seeds;
	char service[128]; /* its name, for sentinels */
	char user[256];
	char password[512];
	int db;
	bool secure;		 /* under TLS */
	bool of_service;	 /* a server of a service, which messages must name */
	int replicas;		 /* so many must have what must not be lost, */
	int64_t replicas_ms;	 /* within this time; whoever connects puts both here, */
	int64_t node_timeout_us; /* and the time that a request to the service may take */
	char name[400];		 /* for messages: host:port[/db], the path, or a URL without user and password */
};

/*
 * ST_USAGE, with a sentence that names the text (without its password), for anything else.
 * There is nothing to free then.
 */
enum status url_parse(const char *text, struct url *, struct err *);

/* A copy with seeds of its own.  False if there is no memory; there is nothing to free then. */
bool url_copy(struct url *to, const struct url *from);
void url_free(struct url *);

#endif
