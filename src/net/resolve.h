/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_RESOLVE_H
#define DLOCK_NET_RESOLVE_H
#include <netdb.h>

/*
 * Resolve host names without blocking the caller.  getaddrinfo(3) may take many seconds if a DNS server is down, and it
 * can't be interrupted.  So it runs in a separate thread, which resolve_cancel() leaves running if it isn't finished.
 */
struct resolving; /* opaque */

/* The addresses of a numeric host, without a thread; NULL if it is a name.  Free them with freeaddrinfo(). */
struct addrinfo *resolve_numeric(const char *host, const char *port);

/*
 * Start to resolve; host and port are copied, and the port has at most 5 characters.  Free the result with
 * resolve_cancel().  NULL with errno set if there is no memory, no thread or no descriptor.
 */
struct resolving *resolve_start(const char *host, const char *port);

/* A descriptor that becomes readable when the result is available.  Owned by the resolving. */
int resolve_fd(const struct resolving *);

/*
 * Take the result once resolve_fd() is readable: 0 and the addresses, which the caller must free with freeaddrinfo(),
 * or an EAI_ code.  Before that it returns EAI_AGAIN.  Call it once.
 */
int resolve_result(struct resolving *, struct addrinfo **);

/* Free it, finished or not.  Must be called after resolve_result(), too.  resolve_cancel(NULL) does nothing. */
void resolve_cancel(struct resolving *);

#endif
