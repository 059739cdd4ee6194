/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_OPERATIONS_H
#define DLOCK_REDIS_OPERATIONS_H
#include <stdbool.h>
#include <stdint.h>

#include "lock/attempt.h"
#include "lock/history.h"
#include "lock/service.h"
#include "redis/nodes.h"

/* Shared by the files of the Redis service, each of which implements one operation of lock/service.h. */

/* A node that replied to a renewal that nobody holds the lock. */
struct node_loss {
	enum loss_state {
		LOSS_NONE,
		LOSS_FOUND, /* in the current round */
		LOSS_DUE,   /* in an earlier round: healed once the current round has a majority */
		LOSS_HEALING,
		LOSS_OVER /* healed, or left to the next renewal */
	} state;
	int64_t until_ms;   /* by the node's clock; a heal is void from then on */
	int64_t connection; /* on which it replied so, see struct result */
};

/* The last renewal, which redis_heal() continues. */
struct renewal {
	struct keys names;
	struct command request;
	struct round round;
	char holds[ROUND_HOLDS]; /* of the round */
	struct node_loss loss[NODES_MAX];
};

struct redis_backend {
	struct backend base; /* first: a struct backend * is converted to this */
	struct nodes nodes;
	struct tls_context *tls; /* NULL: no node uses it */
	struct {
		char token[TOKEN_SIZE];	  /* of the lock that was acquired last */
		char handoff[TOKEN_SIZE]; /* the handoff token that it was acquired with; "" if it was free */
		int64_t stays_until_us;	  /* it has invited readers, who need so long to enter; 0: it has not */
	} taken;
	struct renewal *renewal; /* NULL before the first one: a short run needs none */
	int64_t guard_s; /* of a renewal that enters the lock: the least uptime of a server with a vote; 0: any */
};

/* -- The operations --------------------------------------------------------- */

/* A hold by which a lock is entered. */
struct entrance {
	struct hold hold; /* one of the caller, with the fence that the caller claims; or the token of a shared lock */
	bool reader;	  /* it is that of other readers */
	struct wait limit;
};

/*
 * Enter a lock by a further hold.  ST_NO: the given one does not hold it.  Otherwise see service.acquire.  On failure
 * no hold remains, as far as that can be achieved.
 */
enum status redis_enter(struct redis_backend *, const struct acquire_args *, const struct entrance *, struct lease *,
    struct err *);

/* Enter a lock again by one of the caller's holds; see service.acquire.  ST_NO: none of them holds it. */
enum status redis_reenter(struct redis_backend *, const struct acquire_args *, struct lease *, struct err *);

enum status redis_acquire(struct backend *, const struct acquire_args *, struct lease *, struct err *);

enum status redis_renew(struct backend *, struct lease *, const struct wait *, struct renewed *, struct err *);
int64_t redis_heal(struct backend *, const struct lease *, int64_t valid_until_us, const struct wait *);
/* The time for which a lock that is handed over is reserved for the waiter that receives the handoff token. */
int64_t redis_window_ms(const struct nodes *);

enum status redis_release(struct backend *, const struct lease *, int64_t keep_ms, enum ownership *, struct err *);
enum status redis_look(struct backend *, const struct look_args *, struct record *, struct err *);
enum status redis_list(struct backend *, const char *pattern, const struct look_args *, struct names *, struct err *);
enum status redis_break(struct backend *, const struct break_args *, enum ownership *, struct err *);
enum status redis_ask(struct backend *, const struct break_args *, enum ownership *, struct err *);
int redis_probe(struct backend *, struct probed *);
enum status redis_doctor(struct backend *, struct findings *, struct err *);

/* -- Acquiring -------------------------------------------------------------- */

/*
 * The state of an acquire operation: acquire.c makes attempts and takes failed ones back, waitqueue.c waits between
 * them.  The functions here are those of waitqueue.c.
 */

/*
 * A waiter's place in the queue for a lock.  The queue is Redis's own queue of clients that are blocked on the wake
 * list of one node.  The waiter blocks on a separate connection (DESIGN.md, "Waiting").
 *
 * A release pushes the handoff token, which is the released token, onto the list.  The client that has been blocked for
 * the longest time receives it.  The waiter is also blocked on a private list, so that it can stop waiting without
 * losing a handoff token that is on its way: whichever arrives first is the reply to the same request.
 */
struct waitqueue {
	struct nodes *nodes;
	struct keys *names;	       /* of the lock, or of each slot; the first has the name of LEAVE */
	int lists;		       /* number of locks */
	int list;		       /* that of the handoff token */
	char waiter[WAITER_NAME_SIZE]; /* our name among the waiters; "": we neither wait nor replace the holder */
	char handoff[TOKEN_SIZE];      /* "" until one is received */
	int from;		       /* the node that sent it */
	int node;		       /* the node where we are blocked; valid while `blocked` */
	bool blocked;		       /* in the queue */
	bool invited;		       /* a reader that may enter: it is to try at once, and has kept its place */
	bool invites;		       /* as it leaves: readers may have stood behind it only */
	bool pending;		       /* a short request to a node has no reply yet */
	int64_t joined_us;	       /* when BLPOP was sent */
	bool broken;  /* the place was lost: the connection failed, or the node replied with an error */
	bool cut;     /* it was lost within node_timeout_us, without a reply */
	bool refused; /* no queue is available: BLPOP failed, or ended the connection twice in a row */
};

struct acquire {
	struct nodes *nodes;
	const struct acquire_args *args;
	struct slots *slots;	/* NULL: an exclusive lock */
	struct keys names;	/* of the lock, or of the slot that is tried */
	struct waitqueue queue; /* a handoff token received here is for the next attempt */
	char token[TOKEN_SIZE];
	char handoff[TOKEN_SIZE];  /* the token that this attempt may replace; "" for none */
	int64_t candidate_us;	   /* wall-clock time, proposed as the fence */
	int64_t took_us;	   /* duration of the last attempt that replies decided; 0: none */
	int64_t ticket[NODES_MAX]; /* see struct attempt_answer */
	int64_t before[NODES_MAX], crowd[NODES_MAX];
	int64_t writers[NODES_MAX];
	bool admitted;			/* to the waiters, see waitqueue_admits() */
	int64_t number;			/* among those who replace the holder; 0: none yet */
	const struct reason *gives_way; /* NULL; or there is a newer one of them, as this says */
	unsigned int splits;		/* consecutive attempts with split votes */
	int64_t began_us;		/* the start of the operation */
	int64_t split_until_us;		/* a split vote is retried until then, even if the wait is shorter */
	int64_t over_us;		/* the end of the operation: the end of the wait, and cleanup */
	int64_t reserve_us;		/* reserved before over_us for a rollback, and again for leaving the queue */
	/* The fields below belong to one attempt. */
	struct attempt attempt;
	struct acquire *raise; /* itself: the address is the context of the completions of the fence round */
	struct node_error error[NODES_MAX];
	int64_t connection[NODES_MAX]; /* on which the node replied */
};

/* Extra time for a first node that is slower than the others, so that all waiters join the same queue. */
#define FIRST_NODE_US 100000
#define FAR_FIRST_NODE_US 300000 /* TLS, a name */

/* Initialise the queue.  The names must be set.  False: no random numbers for an id. */
bool waitqueue_start(struct acquire *);

/*
 * The time for which the node should keep the entry of this waiter: until the next attempt at the latest, and not
 * beyond the wait.  0 if the waiter can't be woken, so that nothing is handed over to it.
 */
int64_t waitqueue_entry_ms(const struct acquire *);

/* May an attempt start until then, if the previous one failed with this step? */
int64_t waitqueue_last_try_us(const struct acquire *, enum attempt_step);

/*
 * Wait until it is time for another attempt, after so many tries, in the queue of a node if that is possible.  The last
 * attempt failed with this step and error.  ST_OK: make it.  ST_HELD: this waiter may not wait.  ST_INTERRUPTED.
 */
enum status waitqueue_wait(struct acquire *, enum attempt_step, unsigned int tries, struct err *);

/*
 * May this waiter wait, as far as --max-waiters is concerned?  The node at which it would block decides, once.  False:
 * the error of the refusal says so.
 */
bool waitqueue_admits(struct acquire *, int node, struct err *);

/* Does the release of this holder wake waiters?  NULL: nobody is known to hold the lock. */
bool waitqueue_hands_over(const struct holder *);

/* Join the queue of this node, or keep the place there.  False: no queue is available. */
bool waitqueue_join(struct waitqueue *, int node);

/*
 * Sleep until then, or until a handoff token is received; if the place in the queue is lost, for the pause after so
 * many tries.  False: interrupted.
 */
bool waitqueue_sleep(struct acquire *, int64_t until_us, unsigned int tries);

/* Remove the entries of this waiter from all nodes, without waiting for the replies: it is in no queue. */
void waitqueue_unlist(struct waitqueue *);

/*
 * Take the handoff token from the wake list of a lock on a node.  True: there was one, and it is in the queue's
 * `handoff`.  Nothing is sent while the reply to an earlier one is missing: it does not tell which list it is from.
 */
bool waitqueue_pop(struct acquire *, int node, int list);

/* The first node that named the holder; the number of nodes: none did. */
int waitqueue_first_node(const struct acquire *);

/*
 * After a split vote this waiter is in no queue, and a node that hands over may have no other waiter: look for the
 * handoff token there.  True if there was one: make an attempt with it.
 */
bool waitqueue_find_handoff(struct acquire *);

/*
 * Wait for the reply of the first node, even if it is slower than others, because all waiters should queue at the same
 * node.  A node that does not reply in time is marked as unresponsive, and not waited for again.  False: interrupted.
 */
bool waitqueue_await_node(struct acquire *);

/*
 * Leave the queue, and remove the waiter's entry from the nodes with `noted` set, which may have one.  A handoff token
 * that arrived is in q->handoff.  Returns at until_us at the latest.
 */
void waitqueue_leave(struct waitqueue *, const bool noted[NODES_MAX], int64_t until_us);

/*
 * Pass a received handoff token on to the next waiter in the queue, as a waiter that gives up must do.  Waits for the
 * reply until until_us at the latest.
 */
void waitqueue_pass_on(struct waitqueue *, int64_t until_us);

#endif
