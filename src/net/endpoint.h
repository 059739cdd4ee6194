/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_ENDPOINT_H
#define DLOCK_NET_ENDPOINT_H

struct tls_context;

/* Where to connect to. */
struct endpoint {
	char host[256]; /* a name or an address; "" for a unix socket */
	char port[6];
	char path[108];		 /* of a unix socket; its limit is the system's */
	struct tls_context *tls; /* NULL: plain */
};

#endif
