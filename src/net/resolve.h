/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_RESOLVE_H
#define DLOCK_NET_RESOLVE_H
#include <netdb.h>

/*
 * Names to addresses, without ever blocking the caller: getaddrinfo(3) may take many seconds where a DNS server is
 * dead, and it can't be interrupted, so it runs on a thread of its own that is left behind if need be.
 */
struct resolving; /* opaque */

/* The addresses of a numeric host, at once; NULL if it is a name.  Free with freeaddrinfo(). */
struct addrinfo *resolve_numeric(const char *host, const char *port);

/* Begin.  NULL with errno set if the system refuses a thread or a descriptor. */
struct resolving *resolve_start(const char *host, const char *port);

/* A descriptor that becomes readable when the answer is there. */
int resolve_fd(const struct resolving *);

/* The answer, once resolve_fd() is readable: 0 and the addresses, which are the caller's now, or an EAI_ code. */
int resolve_result(struct resolving *, struct addrinfo **);

/* Forget about it, finished or not.  resolve_cancel(NULL) does nothing. */
void resolve_cancel(struct resolving *);

#endif
