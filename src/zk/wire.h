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

/* The xids of packets that belong to no request. */
enum {
	WIRE_XID_EVENT = -1,
	WIRE_XID_PING = -2,
	WIRE_XID_AUTH = -4
};

/* What a client may do by an ACL. */
enum {
	WIRE_MAY_CREATE = 4,
	WIRE_MAY_DELETE = 8,
	WIRE_MAY_ADMIN = 16
};

/* The types of watch events. */
enum {
	WIRE_EVENT_DELETED = 2,
	WIRE_EVENT_CHANGED = 3
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

/* What a session is asked for, or attached to by. */
struct wire_connect {
	int32_t timeout_ms;
	int64_t session; /* 0: a new one */
	unsigned char password[WIRE_PASSWORD_SIZE];
};
void wire_put_connect(struct wire_out *, const struct wire_connect *);

/* Digest authentication as "user:password". */
void wire_put_auth(struct wire_out *, const char *user, const char *password);

/* exists, getData, getChildren2: `argument` is 1 to set a watch; delete: the version, -1: any; sync, getACL: unused. */
void wire_put_path(struct wire_out *, int32_t xid, enum wire_op, const char *path, int32_t argument);
void wire_put_set_data(struct wire_out *, int32_t xid, const char *path, const char *data, int32_t version);
void wire_put_close(struct wire_out *, int32_t xid);
void wire_put_ping(struct wire_out *);

/* A node to create.  It gives all rights to `authenticated` users and reading to all, or else all rights to all. */
struct wire_node {
	const char *path;
	const char *data;
	bool authenticated;
};

/* Create a container, or with WIRE_CREATE a persistent node. */
void wire_put_create(struct wire_out *, int32_t xid, enum wire_op, const struct wire_node *);

/* A transaction: begin, its operations in their order, end.  The nodes that it creates are ephemeral and sequential. */
void wire_multi_begin(struct wire_out *, int32_t xid);
void wire_multi_create(struct wire_out *, const struct wire_node *);
void wire_multi_delete(struct wire_out *, const char *path, int32_t version);
void wire_multi_set_data(struct wire_out *, const char *path, const char *data, int32_t version);
void wire_multi_end(struct wire_out *);

/* -- Replies ---------------------------------------------------------------- */

/* What is left of a packet.  Reading past its end gives zeros and sets `bad`. */
struct wire_in {
	const unsigned char *at, *end;
	bool bad;
};

enum wire_frame {
	WIRE_MORE,  /* the packet is not complete */
	WIRE_WHOLE, /* it is, and *in has it */
	WIRE_BAD    /* its length is no length */
};

/* Find the first packet in the bytes.  WIRE_WHOLE: it takes *length bytes. */
enum wire_frame wire_frame(const unsigned char *bytes, size_t available, struct wire_in *in, size_t *length);

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

struct wire_connected {
	int32_t timeout_ms;
	int64_t session; /* 0: the session has expired */
	unsigned char password[WIRE_PASSWORD_SIZE];
};

/* A ConnectResponse; false if the packet is something else. */
bool wire_get_connected(struct wire_in *, struct wire_connected *);

struct wire_header {
	int32_t xid;
	int32_t error;
};
struct wire_header wire_get_header(struct wire_in *);

struct wire_event {
	int32_t type;
	struct wire_text path;
};
struct wire_event wire_get_event(struct wire_in *);

struct wire_stat {
	int64_t czxid;
	int64_t ctime_ms, mtime_ms; /* by the clock of the leader */
	int32_t version;
	int64_t owner; /* the session of an ephemeral node; 0: it is not ephemeral */
};
struct wire_stat wire_get_stat(struct wire_in *);

/*
 * The results of a transaction.  The header of a failed one has no error, but its results have.  ZK_OK: *first is the
 * path that the first operation created, empty if it was no create.  Otherwise the error of the operation that failed.
 */
int32_t wire_get_multi(struct wire_in *, struct wire_text *first);

#endif
