/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_BACKEND_H
#define DLOCK_REDIS_BACKEND_H
#include "lock/service.h"

/* Locks on Redis: one node, or a quorum of independent nodes.  dlock-protocol(7) describes the protocol. */
extern const struct service redis_service;

#endif
