/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_WIRE_H
#define DLOCK_ZK_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The bytes of the ZooKeeper protocol: encoding requests, decoding replies.  No sockets.
 *
 * A packet is its length in four bytes, and that many bytes.  Numbers are big-endian.  A string or buffer is its length
 * and its bytes; a length of -1 stands for none.  A request is xid, operation and a body, a reply is xid, zxid, error
 * and a body.  The first packets of a connection are a ConnectRequest and a ConnectResponse, which have no header.
 */
enum {
	WIRE_FRAME_MAX = 4 << 20, /* a longer packet is an error: a list of 2,000 waiters has 0.4 MiB */
	WIRE_PASSWORD_SIZE = 16
};

/* Error codes: those of the server are negative, ours are positive. */
enum zk_code {
	ZK_OK = 0,
	ZK_SYSTEM_ERROR = -1,
	ZK_CONNECTION_LOSS = -4,
	ZK_UNIMPLEMENTED = -6,
	ZK_TIMEOUT = -7,
	ZK_NO_NODE = -101,
	ZK_NO_AUTH = -102,
	ZK_BAD_VERSION = -103,
	ZK_NODE_EXISTS = -110,
	ZK_EXPIRED = -112,
	ZK_INVALID_ACL = -114,
	ZK_AUTH_FAILED = -115,
	ZK_MOVED = -118,
	ZK_NOT_READ_ONLY = -119,
	ZK_LOCAL_SESSION = -120,
	ZK_SASL_REQUIRED = -124,
	ZK_THROTTLED = -127,
	ZK_INTERRUPTED = 1, /* by the interrupt descriptor of the caller */
	ZK_LOCAL = 2,	    /* this host lacks a resource */
	ZK_REFUSED = 3,	    /* the server wants another certificate */
	ZK_FORBIDDEN = 4    /* we may not create the node of the KEY, or one above it */
};

enum wire_op {
	WIRE_CREATE = 1,
	WIRE_DELETE = 2,
	WIRE_EXISTS = 3,
	WIRE_GET_DATA = 4,
	WIRE_SET_DATA = 5,
	WIRE_GET_ACL = 6,
	WIRE_SYNC = 9,
	WIRE_PING = 11,
	WIRE_GET_CHILDREN2 = 12,
	WIRE_MULTI = 14,
	WIRE_CREATE_CONTAINER = 19,
	WIRE_AUTH = 100,
	WIRE_CLOSE = -11
};

enum {
	/* The xids of packets that belong to no request. */
	WIRE_XID_EVENT = -1,
	WIRE_XID_PING = -2,
	WIRE_XID_AUTH = -4,

	/* The rights of an ACL. */
	WIRE_MAY_CREATE = 4,
	WIRE_MAY_DELETE = 8,
	WIRE_MAY_ADMIN = 16,

	/* The types of watch events. */
	WIRE_EVENT_DELETED = 2,
	WIRE_EVENT_CHANGED = 3,

	/* The modes in which a node is created. */
	WIRE_PERSISTENT = 0,
	WIRE_EPHEMERAL_SEQUENTIAL = 3,
	WIRE_CONTAINER = 4
};

/* A session as the packets of both directions have it.  id 0: none, or in a reply: it has expired. */
struct wire_session {
	int64_t id;
	unsigned char password[WIRE_PASSWORD_SIZE];
	int32_t length_ms;
};

/* -- Requests --------------------------------------------------------------- */

/* Packets that are to be sent.  A zeroed struct is empty. */
struct wire_out {
	unsigned char *bytes;
	size_t length, capacity;
	size_t frame; /* where the packet begins that is being written */
	bool failed;  /* out of memory: the packets are incomplete and must not be sent */
};

/* Free the memory and make it empty. */
void wire_out_free(struct wire_out *);

/* Ask for a session, or attach to one. */
void wire_put_connect(struct wire_out *, const struct wire_session *);

/* Digest authentication as "user:password". */
void wire_put_auth(struct wire_out *, const char *user, const char *password);

struct wire_request {
	enum wire_op op;
	const char *path; /* not of ping, close */
	const char *data; /* of create, setData */
	/*
	 * exists, getData, getChildren2: 1 to set a watch; delete, setData: the version, -1: any; create: the mode.
	 */
	int32_t argument;
	bool
	    guarded; /* create: all rights for authenticated users and reading for all, instead of all rights for all */
};
void wire_put(struct wire_out *, int32_t xid, const struct wire_request *);

/* A transaction: begin with WIRE_MULTI, its create, delete and setData in their order, end. */
void wire_begin_request(struct wire_out *, int32_t xid, enum wire_op);
void wire_multi_put(struct wire_out *, const struct wire_request *);
void wire_multi_end(struct wire_out *);

/* -- Replies ---------------------------------------------------------------- */

/* The rest of a packet.  Reading past its end gives zeros and sets `bad`. */
struct wire_in {
	const unsigned char *at, *end;
	bool bad;
};

/* Find the first packet in the bytes.  Returns its length there; 0: it is not complete; -1: its length is no length. */
int64_t wire_frame(const unsigned char *bytes, size_t available, struct wire_in *packet);

/* A string of the packet, not terminated. */
struct wire_text {
	const char *bytes;
	size_t length;
};

int32_t wire_get_int(struct wire_in *);
int64_t wire_get_long(struct wire_in *);
struct wire_text wire_get_text(struct wire_in *);

/* The number of items that follow, each of which has at least `least` bytes.  More than fit set `bad`. */
int32_t wire_get_count(struct wire_in *, size_t least);

/* A ConnectResponse; false if the packet is something else. */
bool wire_get_connected(struct wire_in *, struct wire_session *);

struct wire_stat {
	int64_t czxid;
	int64_t ctime_ms, mtime_ms; /* by the clock of the leader */
	int32_t version;
	int64_t owner; /* the session of an ephemeral node; 0: it is not ephemeral */
};
struct wire_stat wire_get_stat(struct wire_in *);

/*
 * The results of a transaction.  The header of a failed one has no error, but its results have.  ZK_OK: *first is the
 * path that the first operation created, empty if it was no create.  Otherwise the error of the operation that failed;
 * ZK_SYSTEM_ERROR: there are no such results.
 */
enum zk_code wire_get_multi(struct wire_in *, struct wire_text *first);

#endif
