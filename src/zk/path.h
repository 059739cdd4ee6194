/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_PATH_H
#define DLOCK_ZK_PATH_H
#include <stdbool.h>
#include <stddef.h>

/*
 * KEYs and paths of ZooKeeper.
 *
 * A KEY is the path of its lock below the chroot.  `/` separates its components, and one leading `/` is dropped: "/a"
 * and "a" are the same lock.  What a path can't contain is percent-escaped: `%` itself, control characters, the code
 * points that the server refuses (U+0080 to U+009F, U+D800 to U+F8FF, U+FFF0 to U+FFFF, and all from U+10000 on), bytes
 * that are not UTF-8, a `/` at the end or behind another, and the components `.` and `..`.
 */
enum {
	PATH_CHROOT_MAX = 512, /* bytes of a chroot, escaped */
	PATH_KEY_MAX = 3 * 1024,
	PATH_NAME_MAX = 64,					 /* of a node of ours below the path of a KEY */
	PATH_LOCK_SIZE = PATH_CHROOT_MAX + 1 + PATH_KEY_MAX + 1, /* of the node of a KEY */
	PATH_SIZE = PATH_LOCK_SIZE + 1 + PATH_NAME_MAX
};

/* Write the path of a KEY below a chroot ("" or "/..."). */
void path_of_key(const char *chroot, const char *key, char path[PATH_LOCK_SIZE]);

/*
 * The KEY of a path below a chroot of this length.  False: no KEY has this path, or it would have `size` bytes or more.
 */
bool path_to_key(const char *path, size_t chroot_length, char *key, size_t size);

/* Is it a valid chroot: "", or a path in which nothing needs an escape? */
bool path_is_chroot(const char *chroot);

/* Does the path belong to ZooKeeper itself? */
bool path_is_reserved(const char *path);

#endif
