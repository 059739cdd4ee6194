/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_ENDPOINT_H
#define DLOCK_NET_ENDPOINT_H

struct tls_context;

/* The address of a server. */
struct endpoint {
	char host[256]; /* a name or a numeric address; "" for a unix socket */
	char port[6];
	char path[108];		 /* of a unix socket; the size is that of sun_path */
	struct tls_context *tls; /* NULL: plain */
};

#endif
