/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "redis/backend.h"
#include "zk/backend.h"

const struct service *const services[] = { &redis_service, &zk_service, NULL };
