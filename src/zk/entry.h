/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_ENTRY_H
#define DLOCK_ZK_ENTRY_H
#include <stdbool.h>
#include <stdint.h>

#include "zk/metadata.h"
#include "zk/path.h"
#include "zk/queue.h"
#include "zk/token.h"
#include "zk/wire.h"

/*
 * Our entry in the queue of a lock: ephemeral sequential nodes, which one transaction creates below the node of the
 * KEY.  The first is the lock node.  The others have the names that other libraries look for.
 */
enum {
	ENTRY_NODES = 3
};

struct entry {
	char lock[PATH_LOCK_SIZE]; /* the node of the KEY */
	unsigned char uuid[ZK_UUID_SIZE];
	char name[QUEUE_ENTRY_LENGTH + 1]; /* "_c_UUID" */
	int32_t number;			   /* of the lock node */
	char path[PATH_SIZE];		   /* of the lock node */
	int64_t fence;			   /* its czxid; 0: unknown */
	struct metadata metadata;	   /* its data */
	int32_t version;		   /* of its data */
	bool known;			   /* metadata and version are those of the node, as far as we know */
};

/* The entry with this UUID for a KEY; it has no number yet. */
void entry_init(struct entry *, const char *chroot, const char *key, const unsigned char uuid[ZK_UUID_SIZE]);

/* Set the number of the lock node, and with it the path. */
void entry_set_number(struct entry *, int32_t number);

/* The path of one of the nodes.  Their numbers are consecutive. */
void entry_node_path(const struct entry *, int node, char path[PATH_SIZE]);

/* The path of one of the nodes as it is given to create: without its number. */
void entry_new_path(const struct entry *, int node, char path[PATH_SIZE]);

#endif
