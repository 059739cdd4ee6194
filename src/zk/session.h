/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_ZK_SESSION_H
#define DLOCK_ZK_SESSION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/service.h"
#include "net/channel.h"
#include "net/loop.h"
#include "zk/url.h"
#include "zk/wire.h"

/*
 * A session of the ensemble, and the one connection that it has at a time.
 *
 * A session is a lease: the ensemble ends it, and deletes its ephemeral nodes, when no client has renewed it for its
 * length.  The leader decides that, and does not count all that a client sends: not pings, not reads, not requests on
 * an old connection.  So the lease counts from proofs only.
 *
 * A proof is a ConnectRequest for the session that was answered with the session's id, and behind it, on the same
 * connection, a write of the session that was answered without an error.  Connecting makes the leader renew the
 * session; the write shows that the leader received this very ConnectRequest, and was still the leader.  Making the
 * session is a proof as well.  The lease counts from when the ConnectRequest was sent.
 */
struct session {
	struct loop loop;
	const struct zk_url *url;
	const struct log *log;
	struct wire_session granted; /* id 0: there is none; the length is the least that a server granted */
	int server;		     /* to be tried next */
	struct tried {
		int server;	      /* the one of the last connection */
		struct reason reason; /* why the last function failed */
	} tried;
	int32_t xid; /* of the last request */
	struct wire_out out;
	int64_t timeout_us;	/* an exchange with a server takes no longer; 0: as long as the caller waits */
	int64_t until_us;	/* the end of the exchange */
	int64_t created_us;	/* when the session was made; 0: by another process */
	int64_t connected_us;	/* when the ConnectRequest of the connection was sent */
	int64_t valid_until_us; /* by the last proof */
	/* Two nodes that may be watched: our own, and the one that we wait for. */
	struct watched {
		const char *path; /* NULL: none */
		int32_t xid;	  /* of the request that set the watch */
		int32_t event;	  /* the event that has happened to it since then; 0: nothing */
	} ours, before;
	/* Private. */
	struct channel channel;
	unsigned char *in; /* bytes that came in */
	size_t in_length, in_capacity;
	size_t in_taken;	  /* of the packet that was taken last, at the start of them */
	int32_t in_xid, in_error; /* its header */
	struct channel old;	  /* the connection before this one, until the session is proven */
	bool begun;		  /* a ConnectRequest was put, and not sent yet */
	bool accepted;		  /* a server accepted the last connection that was tried, */
	unsigned int version;	  /* of the shared password of the connection */
	bool silent;		  /* and sent nothing */
};

/* The server was out of reach: another one may do. */
static inline bool
session_is_lost(enum zk_code code)
{
	return code == ZK_CONNECTION_LOSS || code == ZK_TIMEOUT;
}

/* No connection, no session.  The URL and the log must outlive it. */
void session_init(struct session *, const struct zk_url *, const struct log *);

/* Close the connection and free.  The session of the ensemble goes on. */
void session_free(struct session *);

/*
 * Make a session of this length.  The servers are tried in turn, again and again until the limit if any accepts
 * connections: they elect a leader.  If the one that accepts hangs, the others share the same time once more.  ZK_OK:
 * the server may have granted another length.
 */
enum zk_code session_create(struct session *, int64_t length_ms, const struct wait *);

/*
 * Begin to attach to the session with a new connection: put the ConnectRequest.  Requests that are put behind it go out
 * in the same send.  The session gets the length that s->granted has.  The old connection is not used any more, but
 * stays open until the session is proven: a server that takes so many connections of a host would give its place away.
 */
void session_begin(struct session *);

/* Put a request; returns its xid.  The second form is for requests without data. */
int32_t session_put(struct session *, const struct wire_request *);
int32_t session_put_path(struct session *, enum wire_op, const char *path);

/*
 * Put a request that watches a node, s->ours or s->before: `exists`, or getChildren2 for what it has.  The path must
 * outlive the watch.  Returns its xid.
 */
int32_t session_put_watch(struct session *, struct watched *, enum wire_op, const char *path);

/*
 * Send what was put.  Here an exchange begins: sending and the replies take at most timeout_us in all.
 *
 * After session_begin() it connects to a server, and takes the ConnectResponse.  A server that accepts no connection is
 * left for the next one.  If one hangs up, perhaps since it takes no more connections, the old one is closed first and
 * it is tried again.  ZK_EXPIRED: the ensemble has ended the session, for certain.
 */
enum zk_code session_send(struct session *, const struct wait *);

/* The limit of an exchange that begins now. */
struct wait session_limit(const struct session *, const struct wait *);

/*
 * Take the reply to a request.  Replies to earlier requests are skipped.  Returns its error; ZK_OK: *body is what
 * follows, until the next call.
 */
enum zk_code session_reply(struct session *, int32_t xid, struct wire_in *body, const struct wait *);

/* Send what was put, and take the reply to one of these requests. */
enum zk_code session_call(struct session *, int32_t xid, struct wire_in *body, const struct wait *);

/* A write was answered without an error on this connection: a proof. */
void session_prove(struct session *);

/*
 * Wait until something has happened to a watched path, or the limit ends: ZK_OK.  Pings keep the session meanwhile.
 * ZK_TIMEOUT: the server is silent.
 */
enum zk_code session_wait(struct session *, const struct wait *);

/* Take what has come in, without waiting.  ZK_OK: the connection works. */
enum zk_code session_poll(struct session *);

/* End the session, by any server, within the time of one exchange.  ZK_OK: the ensemble has ended it now or before. */
enum zk_code session_close(struct session *, const struct wait *);

/* End the session without waiting for the answer, and free as session_free() does. */
void session_abandon(struct session *);

/*
 * Send a command of four letters to the server that the session is due to try, on a connection of its own, and take the
 * answer, which ends with the connection.  The text is cut to its size; "": there is none.
 */
void session_ask(const struct session *, const char *command, char *text, size_t size, const struct wait *);

/* Try something, by one server after the other, until a server answers or the limit ends. */
typedef enum zk_code session_try(void *context, const struct wait *);
enum zk_code session_retry(struct session *, session_try *, void *context, const struct wait *);

/*
 * Wait before another try, longer after each: *tries is their number so far, and counted on.  False: the limit has
 * ended; by its descriptor, if *code is ZK_INTERRUPTED now.
 */
bool session_pause(struct session *, unsigned int *tries, const struct wait *, enum zk_code *code);

/* Is there a connection that has not failed? */
bool session_is_connected(const struct session *);

/* The descriptor of the connection; -1: there is none. */
int session_fd(const struct session *);

/* The kind of its connection if only this host can reach the server, as channel_local(). */
const char *session_local(const struct session *);

/* Say by --verbose what the server that was tried last has answered, or why it failed; and what comes of it. */
void session_log(const struct session *, const char *what, const char *end);

/* Close the connection, if there is one; the session goes on. */
void session_disconnect(struct session *);

/* The same; the next connection is made to the next server. */
void session_leave_server(struct session *);

#endif
