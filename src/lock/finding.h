/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_LOCK_FINDING_H
#define DLOCK_LOCK_FINDING_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/quorum.h"

/*
 * The findings of doctor: they say if the nodes are suitable for locks.  Each service collects facts about its servers,
 * and judges them; this file has the parts that are the same for all services.
 */

/* The facts that any server shows of itself. */
struct probed {
	const char *name;     /* owned by the backend */
	bool up;	      /* it replies and accepts our requests */
	bool denied;	      /* it refuses our requests: login, ACL */
	struct reason reason; /* why it is not up */
	int64_t rtt_us;	      /* round-trip time of a request: of several, the shortest */
	const char *local;    /* the kind of connection if only this host can reach it so; NULL: others can */

	/* The result of the test lock, if one was tried. */
	enum status trial;
	struct err trial_err;
};

enum grade {
	GRADE_OK,
	GRADE_UNKNOWN, /* a server does not report what is needed: no problem by itself */
	GRADE_WARN,
	GRADE_FAIL
};

struct finding {
	const char *node; /* NULL: all nodes together; owned by the backend */
	const char *check;
	enum grade grade;
	char what[1100];
	char advice[240]; /* "" if there is nothing to do */
};

enum {
	FINDINGS_OF_NODE = 16,
	FINDINGS_MAX = NODES_MAX * FINDINGS_OF_NODE + 6
};

/*
 * The findings of one examination, with its terms.  Those of a node are adjacent; those of all nodes together are last.
 */
struct findings {
	/* Set by the caller: the settings of the locks. */
	int64_t ttl_ms;
	int64_t node_timeout_ms;
	int64_t restart_guard_ms;
	int replicas;	 /* number of replicas that must confirm a lock, see --replicas */
	bool configured; /* the nodes were named, and are not the default */
	bool insecure;	 /* certificates are not verified */

	/* Takes, renews and gives back a test lock: on this node alone, or, if it is negative, as locks are kept. */
	enum status (*try_lock)(void *context, int node, struct err *);
	void *context;

	/* Set by the service. */
	int nodes;
	const struct remedy { /* NULL ends them */
		const char *word, *advice;
	} * remedies;	   /* the advice about a node that refuses, by a word of its refusal */
	const char *node;  /* of the next finding; NULL: all together */
	const char *check; /* likewise */
	size_t count;
	struct finding found[FINDINGS_MAX];
};

/* Add a finding.  The format and its arguments are the text of `what`; one that is OK has no advice. */
void finding_add(struct findings *, enum grade, const char *advice, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Format a duration that may be shorter than a millisecond. */
const char *finding_show_us(int64_t us, char *text, size_t size);

/* Format a duration as a user would type it: whole seconds without decimals. */
const char *finding_show_ms(int64_t ms, char *text, size_t size);

/* Does the node answer, and how fast, and can other hosts reach it?  These are the first findings of a node. */
void finding_answer(struct findings *, const struct probed *);

/* Did the test lock work? */
void finding_trial(struct findings *, const struct probed *);

/* Are the certificates of servers verified?  Only if one is reached by TLS. */
void finding_tls(struct findings *, bool tls);

/* ST_OK: no problem is known.  ST_NO: a finding is a warning or a failure. */
enum status finding_outcome(const struct findings *);

#endif
