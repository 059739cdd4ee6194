/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_TLS_H
#define DLOCK_NET_TLS_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * TLS for non-blocking connections, with OpenSSL's libssl.  The library is loaded at its first use, since it would
 * double the startup time of dlock.
 */
struct tls_options {
	const char *cacert;    /* a file with the certificates of the authorities; */
	const char *cacertdir; /* a directory of them; both NULL: those of the system */
	const char *cert;      /* our own certificate, if the server requires one, */
	const char *key;       /* and its key; NULL: it is in the same file */
	const char *sni;       /* the name of the server; NULL: the host that tls_start() gets */
	bool insecure;	       /* don't verify the certificate of the server */
};

struct tls_context; /* opaque: shared by all connections */
struct tls;	    /* opaque: one connection */

/*
 * Load the library and the certificates.  `sni` of the options must outlive the context; the other strings are not
 * kept.  ST_NO_QUORUM: the library can't be loaded.  ST_CONFIG: a file can't be used.  ST_USAGE: a key without a
 * certificate.  ST_SYSTEM: no memory, or OpenSSL fails.  After an error *context is NULL.
 */
enum status tls_open(const struct tls_options *, struct tls_context **, struct err *);

/* Free the context.  Call it after tls_stop() of the last connection.  tls_close(NULL) does nothing. */
void tls_close(struct tls_context *);

/* The version text of the library, "OpenSSL 3.0.19 ..."; loads it if necessary.  NULL: it can't be loaded. */
const char *tls_library(void);

/* The outcome of writing or reading, with TLS or without. */
enum io_result {
	IO_DONE,
	IO_WANTS_READ,	/* poll for reading and call again */
	IO_WANTS_WRITE, /* poll for writing and call again */
	IO_CLOSED,	/* the peer has closed the connection */
	IO_FAILED	/* with TLS tls_failure() has the reason, without it errno */
};

/*
 * Start TLS on a connected socket.  The socket is not closed by TLS; the socket, the context and the host string must
 * outlive the result.  The host is a name or an address; NULL: the socket has none, and the host is not checked unless
 * the options have `sni`.  NULL if there is no memory or OpenSSL refuses the host.
 */
struct tls *tls_start(struct tls_context *, int fd, const char *host);

/* Continue the handshake.  IO_DONE: the connection may be used. */
enum io_result tls_handshake(struct tls *);

/* IO_DONE: *done bytes, at least one, were read or written.  After any other result *done is unchanged. */
enum io_result tls_read(struct tls *, char *bytes, size_t size, size_t *done);
enum io_result tls_write(struct tls *, const char *bytes, size_t length, size_t *done);

/* Does it hold decrypted bytes that tls_read() returns without reading from the socket? */
bool tls_has_buffered(const struct tls *);

/* After IO_FAILED: why.  DENIED: the server rejects our certificate, or requires one.  Valid until tls_stop(). */
const struct failure *tls_failure(const struct tls *);

/* Send close_notify if possible, and free.  It doesn't block or close the socket.  tls_stop(NULL) does nothing. */
void tls_stop(struct tls *);

#endif
