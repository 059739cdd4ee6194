/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_BACKEND_H
#define DLOCK_REDIS_BACKEND_H
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "lock/backend.h"
#include "net/tls.h"

/* The lock service on Redis: one node, or a quorum of independent nodes.  DESIGN.md describes the protocol. */
struct redis_config {
	int nodes;
	const char *url[NODES_MAX];
	const char *password;	/* for URLs without a password; "" for none */
	struct tls_options tls; /* for rediss:// URLs */
	int64_t node_timeout_ms;
	int replicas; /* this many replicas must also have a lock, within replicas_timeout_ms; 0: none */
	int64_t replicas_timeout_ms;
	struct log log;
};

/*
 * Open the service.  Connections are made when requests are sent.  ST_USAGE: a bad URL, or two URLs of the same server.
 * ST_SYSTEM: out of memory.  Otherwise the status of tls_open(), if a URL needs TLS.  On failure *backend is NULL.
 */
enum status redis_open(const struct redis_config *, struct backend **, struct err *);

#endif
