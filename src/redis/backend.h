/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_BACKEND_H
#define DLOCK_REDIS_BACKEND_H
#include "lock/backend.h"

/*
 * Open the service on Redis: one node, or a quorum of independent nodes.  DESIGN.md describes the protocol.
 * Connections are made when requests are sent.  ST_USAGE: a bad URL, or two URLs of the same server.  ST_SYSTEM: out
 * of memory.  Otherwise the status of tls_open(), if a URL needs TLS.  On failure *backend is NULL.
 */
enum status redis_open(const struct service_config *, struct backend **, struct err *);

#endif
