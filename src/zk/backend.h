/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_BACKEND_H
#define DLOCK_ZK_BACKEND_H
#include "lock/backend.h"

/*
 * Open the service on ZooKeeper: one ensemble, of which the first URL names servers.  Connections are made when
 * requests are sent.  ST_USAGE: a bad URL.  ST_SYSTEM: out of memory.  Otherwise the status of tls_open().  On failure
 * *backend is NULL.
 */
enum status zk_open(const struct service_config *, struct backend **, struct err *);

#endif
