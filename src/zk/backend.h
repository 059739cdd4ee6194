/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_BACKEND_H
#define DLOCK_ZK_BACKEND_H
#include "lock/service.h"

/* Locks on ZooKeeper: one ensemble, of which the first URL names servers. */
extern const struct service zk_service;

#endif
