/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "redis/backend.h"
#include "zk/backend.h"

const struct service *const services[] = { &zk_service, &redis_service, NULL };
