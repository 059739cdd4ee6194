/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_URL_H
#define DLOCK_ZK_URL_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "net/authority.h"

/*
 * KEYs and paths of ZooKeeper.
 *
 * A KEY is the path of its lock below the chroot.  `/` separates its components, and one leading `/` is dropped: "/a"
 * and "a" are the same lock.  Parts that a path can't contain are percent-escaped: `%` itself, control characters, the
 * code points that the server refuses (U+0080 to U+009F, U+D800 to U+F8FF, U+FFF0 to U+FFFF, and all from U+10000 on),
 * bytes that are not UTF-8, a `/` at the end or behind another, and the components `.` and `..`.
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

/*
 * The slots of a KEY have keys, but no nodes, of their own: KEY/leases/slot-2, and KEY/leases for all of them.  Is this
 * path one of these?  Then cut it after "leases", and return the number of the slot; 0: all of them; -1: it is another
 * path.
 */
int path_cut_slot(char *path, size_t chroot_length);

/* Does the path belong to ZooKeeper itself? */
bool path_is_reserved(const char *path);

/*
 * The location of a ZooKeeper ensemble.
 *
 *	zk://[user:password@]host[:port][,host[:port]...][/chroot]
 *	zks://..., the same under TLS
 *
 * Percent-escapes are decoded.  IPv6 addresses are in brackets.
 */
enum {
	ZK_SERVERS_MAX = 15,
	ZK_SERVER_SIZE = 300 /* of the name of one */
};

struct password;

struct zk_url {
	struct endpoint server[ZK_SERVERS_MAX]; /* the caller sets their TLS context before connecting */
	int servers;
	char user[URL_USER_SIZE]; /* "": no authentication */
	char password[URL_PASSWORD_SIZE];
	struct password *shared; /* where that is from, and another one later, set by the caller; NULL: its own */
	char chroot[PATH_CHROOT_MAX + 1]; /* "" or "/..." */
	bool secure;			  /* use TLS */
	char name[400];			  /* for messages: the URL without user and password */
};

/* Does the text begin as a URL of ZooKeeper? */
bool zk_url_is(const char *text);

/* Parse a URL.  ST_USAGE, with a sentence that quotes the text without its password, if it is not valid. */
enum status zk_url_parse(const char *text, struct zk_url *, struct err *);

/* The name of a server for messages, "host:port"; returns the buffer. */
const char *zk_url_server(const struct zk_url *, int server, char name[ZK_SERVER_SIZE]);

#endif
