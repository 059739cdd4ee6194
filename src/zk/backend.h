/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_BACKEND_H
#define DLOCK_ZK_BACKEND_H
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "lock/backend.h"
#include "net/tls.h"

/* The lock service on ZooKeeper: one ensemble. */
struct zk_config {
	const char *url;
	const char *password;	/* for a URL with a user but without a password; "" for none */
	struct tls_options tls; /* for zks:// */
	int64_t node_timeout_ms;
	struct log log;
};

/*
 * Open the service.  Connections are made when requests are sent.  ST_USAGE: a bad URL.  ST_SYSTEM: out of memory.
 * Otherwise the status of tls_open().  On failure *backend is NULL.
 */
enum status zk_open(const struct zk_config *, struct backend **, struct err *);

#endif
