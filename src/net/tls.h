/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_TLS_H
#define DLOCK_NET_TLS_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * TLS for connections that never block, by OpenSSL's libssl.  The library is loaded when it is needed first: it would
 * double the time that dlock takes to start.
 */
struct tls_options {
	const char *cacert;    /* a file with the certificates of authorities; */
	const char *cacertdir; /* a folder of them; neither: the system's */
	const char *cert;      /* our own certificate, where the server wants one, */
	const char *key;       /* and its key; in the same file where it is NULL */
	const char *sni;       /* the server's name, where it isn't that of the URL */
	bool insecure;	       /* whoever the server is */
};

struct tls_context; /* opaque: what all connections share */
struct tls;	    /* opaque: one connection */

/* Load library and certificates.  ST_NO_QUORUM: the library can't be loaded; ST_CONFIG: a file can't be used. */
enum status tls_open(const struct tls_options *, struct tls_context **, struct err *);

/* After the last connection.  tls_close(NULL) does nothing. */
void tls_close(struct tls_context *);

/* "OpenSSL 3.0.19 ..." of a library that can be loaded; NULL: none can. */
const char *tls_library(void);

enum tls_result {
	TLS_DONE,
	TLS_WANTS_READ,	 /* poll for reading and call again */
	TLS_WANTS_WRITE, /* for writing */
	TLS_CLOSED,	 /* by the other side */
	TLS_FAILED	 /* tls_error() says why */
};

/* Begin on a connected socket, which must outlive it.  The host is a name or an address; NULL: the socket has none. */
struct tls *tls_start(struct tls_context *, int fd, const char *host);
enum tls_result tls_handshake(struct tls *);
enum tls_result tls_read(struct tls *, char *bytes, size_t size, size_t *done);
enum tls_result tls_write(struct tls *, const char *bytes, size_t length, size_t *done);

/* Does it hold bytes that have been read from the socket already? */
bool tls_has_buffered(const struct tls *);

/* Why it failed; `denied`: the server refuses us as long as we have no other certificate. */
const char *tls_error(const struct tls *, bool *denied);

/* Tell the other side and free.  tls_stop(NULL) does nothing. */
void tls_stop(struct tls *);

#endif
