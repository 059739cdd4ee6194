/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_BACKEND_H
#define DLOCK_REDIS_BACKEND_H
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "lock/backend.h"
#include "net/tls.h"

/*
 * The lock service on Redis: one node, or a quorum of independent ones.  What happens on the wire is in DESIGN.md.
 */
struct redis_config {
	int nodes;
	const char *url[NODES_MAX];
	const char *password;	/* for URLs that have none; "" for none */
	struct tls_options tls; /* of rediss:// */
	int64_t node_timeout_ms;
	int replicas; /* that must have a lock as well, within their timeout; 0: none */
	int64_t replicas_timeout_ms;
	struct log log;
};

/* No connection is made yet.  ST_USAGE for a bad URL, ST_SYSTEM, and what tls_open() returns where a URL wants TLS. */
enum status redis_open(const struct redis_config *, struct backend **, struct err *);

#endif
