/* SPDX-License-Identifier: MIT */
#include "zk/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Curator's InterProcessMutex and go-zookeeper, kazoo's Lock, the writer of Curator's InterProcessReadWriteLock. */
static const char *const kinds[ENTRY_NODES] = { "-lock-", "-__lock__", "-__WRIT__" };

void
entry_init(struct entry *e, const char *chroot, const char *key, const unsigned char uuid[ZK_UUID_SIZE])
{
	memset(e, 0, sizeof(*e));
	path_of_key(chroot, key, e->lock);
	memcpy(e->uuid, uuid, sizeof(e->uuid));
	memcpy(e->name, "_c_", 3);
	zk_uuid_write(uuid, e->name + 3);
}

void
entry_new_path(const struct entry *e, int node, char path[PATH_SIZE])
{
	(void)snprintf(path, PATH_SIZE, "%s/%s%s", e->lock, e->name, kinds[node]);
}

void
entry_node_path(const struct entry *e, int node, char path[PATH_SIZE])
{
	const int32_t number = (int32_t)((uint32_t)e->number + (uint32_t)node);

	(void)snprintf(path, PATH_SIZE, "%s/%s%s%010" PRId32, e->lock, e->name, kinds[node], number);
}

void
entry_set_number(struct entry *e, int32_t number)
{
	e->number = number;
	entry_node_path(e, 0, e->path);
}
