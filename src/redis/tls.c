/* SPDX-License-Identifier: MIT */
#include "redis/tls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* -- The library ------------------------------------------------------------ */

/*
 * What is used of libssl and of libcrypto below it, whose interfaces have been the same since OpenSSL 1.1.0.  Its headers
 * aren't needed, so TLS is there in every build and is looked for when it is wanted.
 */
enum {
	FILETYPE_PEM = 1,
	VERIFY_NONE = 0,
	VERIFY_PEER = 1,
	ERROR_WANT_READ = 2,
	ERROR_WANT_WRITE = 3,
	ERROR_SYSCALL = 5,
	ERROR_ZERO_RETURN = 6,
	CTRL_MODE = 33,
	CTRL_SET_TLSEXT_HOSTNAME = 55,
	CTRL_SET_MIN_PROTO_VERSION = 123,
	MODES = 1 | 2 | 4, /* partial writes, from a buffer that moves, no stop between records */
	TLS_1_2 = 0x0303,
	VERIFIED = 0
};

static const char *const library_names[] = { "libssl.so.3", "libssl.so.1.1" };

typedef int ask_passphrase(char *buffer, int size, int writing, void *context);

static struct api {
	const void *(*TLS_client_method)(void);
	struct ssl_ctx_st *(*SSL_CTX_new)(const void *method);
	void (*SSL_CTX_free)(struct ssl_ctx_st *);
	long (*SSL_CTX_ctrl)(struct ssl_ctx_st *, int, long, void *);
	int (*SSL_CTX_load_verify_locations)(struct ssl_ctx_st *, const char *file, const char *folder);
	int (*SSL_CTX_set_default_verify_paths)(struct ssl_ctx_st *);
	void (*SSL_CTX_set_verify)(struct ssl_ctx_st *, int mode, void *callback);
	void (*SSL_CTX_set_default_passwd_cb)(struct ssl_ctx_st *, ask_passphrase *);
	int (*SSL_CTX_use_certificate_chain_file)(struct ssl_ctx_st *, const char *file);
	int (*SSL_CTX_use_PrivateKey_file)(struct ssl_ctx_st *, const char *file, int type);
	int (*SSL_CTX_check_private_key)(const struct ssl_ctx_st *);
	struct ssl_st *(*SSL_new)(struct ssl_ctx_st *);
	void (*SSL_free)(struct ssl_st *);
	int (*SSL_set_fd)(struct ssl_st *, int);
	long (*SSL_ctrl)(struct ssl_st *, int, long, void *);
	int (*SSL_set1_host)(struct ssl_st *, const char *);
	void *(*SSL_get0_param)(struct ssl_st *);
	int (*SSL_connect)(struct ssl_st *);
	int (*SSL_read)(struct ssl_st *, void *, int);
	int (*SSL_write)(struct ssl_st *, const void *, int);
	int (*SSL_pending)(const struct ssl_st *);
	int (*SSL_shutdown)(struct ssl_st *);
	int (*SSL_get_error)(const struct ssl_st *, int);
	long (*SSL_get_verify_result)(const struct ssl_st *);
	int (*X509_VERIFY_PARAM_set1_ip_asc)(void *, const char *);
	const char *(*X509_verify_cert_error_string)(long);
	void (*ERR_clear_error)(void);
	unsigned long (*ERR_peek_last_error)(void);
	const char *(*ERR_reason_error_string)(unsigned long);
	const char *(*OpenSSL_version)(int);
} ssl;

#define SYMBOL(name)                              \
	{                                         \
#name, offsetof(struct api, name) \
	}

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
	SYMBOL(TLS_client_method),
	SYMBOL(SSL_CTX_new),
	SYMBOL(SSL_CTX_free),
	SYMBOL(SSL_CTX_ctrl),
	SYMBOL(SSL_CTX_load_verify_locations),
	SYMBOL(SSL_CTX_set_default_verify_paths),
	SYMBOL(SSL_CTX_set_verify),
	SYMBOL(SSL_CTX_set_default_passwd_cb),
	SYMBOL(SSL_CTX_use_certificate_chain_file),
	SYMBOL(SSL_CTX_use_PrivateKey_file),
	SYMBOL(SSL_CTX_check_private_key),
	SYMBOL(SSL_new),
	SYMBOL(SSL_free),
	SYMBOL(SSL_set_fd),
	SYMBOL(SSL_ctrl),
	SYMBOL(SSL_set1_host),
	SYMBOL(SSL_get0_param),
	SYMBOL(SSL_connect),
	SYMBOL(SSL_read),
	SYMBOL(SSL_write),
	SYMBOL(SSL_pending),
	SYMBOL(SSL_shutdown),
	SYMBOL(SSL_get_error),
	SYMBOL(SSL_get_verify_result),
	SYMBOL(X509_VERIFY_PARAM_set1_ip_asc),
	SYMBOL(X509_verify_cert_error_string),
	SYMBOL(ERR_clear_error),
	SYMBOL(ERR_peek_last_error),
	SYMBOL(ERR_reason_error_string),
	SYMBOL(OpenSSL_version),
};

static bool
find_symbols(void *library)
{
	void *address;
	size_t i;

	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		address = dlsym(library, symbols[i].name);
		if (address == NULL)
			return false;
		memcpy((char *)&ssl + symbols[i].offset, &address, sizeof(address));
	}
	return true;
}

/* Once for the process, before it has threads; it stays. */
static bool
load(void)
{
	static bool loaded;
	void *library;
	size_t i;

	for (i = 0; i < sizeof(library_names) / sizeof(library_names[0]) && !loaded; i++) {
		library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
		loaded = library != NULL && find_symbols(library);
	}
	return loaded;
}

const char *
tls_library(void)
{
	return load() ? ssl.OpenSSL_version(0) : NULL;
}

/* -- What all connections share --------------------------------------------- */

struct tls_context {
	struct ssl_ctx_st *ctx;
	const char *sni;
	bool insecure;
	bool has_certificate;
};

/* The newest error of this thread, in OpenSSL's words; "" if there is none. */
static const char *
newest_error(void)
{
	const unsigned long error = ssl.ERR_peek_last_error();
	const char *reason = error != 0 ? ssl.ERR_reason_error_string(error) : NULL;

	return reason != NULL ? reason : error != 0 ? "unknown error" : "";
}

/* OpenSSL would ask at the terminal for the passphrase of a key. */
static int /* NOLINTNEXTLINE(readability-non-const-parameter): OpenSSL's type */
no_passphrase(char *buffer, int size, int writing, void *context)
{
	(void)buffer;
	(void)size;
	(void)writing;
	(void)context;
	return 0;
}

static enum status
bad_file(const char *option, const char *file, struct err *err)
{
	char shown[256];

	return err_set(err, ST_CONFIG, "%s: %s cannot be used: %s", option, text_show(file, shown, sizeof(shown)),
	    newest_error());
}

static enum status
load_authorities(struct tls_context *c, const struct tls_terms *t, struct err *err)
{
	if (t->insecure)
		return ST_OK;
	if (t->cacert != NULL && ssl.SSL_CTX_load_verify_locations(c->ctx, t->cacert, NULL) != 1)
		return bad_file("--cacert", t->cacert, err);
	if (t->cacertdir != NULL && ssl.SSL_CTX_load_verify_locations(c->ctx, NULL, t->cacertdir) != 1)
		return bad_file("--cacertdir", t->cacertdir, err);
	if (t->cacert == NULL && t->cacertdir == NULL)
		(void)ssl.SSL_CTX_set_default_verify_paths(c->ctx);
	return ST_OK;
}

static enum status
load_certificate(struct tls_context *c, const struct tls_terms *t, struct err *err)
{
	const char *const key = t->key != NULL ? t->key : t->cert;

	if (t->cert == NULL)
		return t->key == NULL ? ST_OK : err_set(err, ST_USAGE, "--key is of no use without --cert");
	if (ssl.SSL_CTX_use_certificate_chain_file(c->ctx, t->cert) != 1)
		return bad_file("--cert", t->cert, err);
	if (ssl.SSL_CTX_use_PrivateKey_file(c->ctx, key, FILETYPE_PEM) != 1 ||
	    ssl.SSL_CTX_check_private_key(c->ctx) != 1)
		return bad_file(t->key != NULL ? "--key" : "--cert", key, err);
	c->has_certificate = true;
	return ST_OK;
}

enum status
tls_open(const struct tls_terms *terms, struct tls_context **context, struct err *err)
{
	struct tls_context *c;
	enum status status;

	*context = NULL;
	if (!load())
		return err_set(err, ST_NO_QUORUM, "TLS needs OpenSSL, and there is no %s here; install libssl",
		    library_names[0]);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return err_set(err, ST_SYSTEM, "out of memory");
	c->sni = terms->sni;
	c->insecure = terms->insecure;
	ssl.ERR_clear_error();
	c->ctx = ssl.SSL_CTX_new(ssl.TLS_client_method());
	if (c->ctx == NULL) {
		free(c);
		return err_set(err, ST_SYSTEM, "TLS cannot be used: %s", newest_error());
	}
	(void)ssl.SSL_CTX_ctrl(c->ctx, CTRL_SET_MIN_PROTO_VERSION, TLS_1_2, NULL);
	(void)ssl.SSL_CTX_ctrl(c->ctx, CTRL_MODE, MODES, NULL);
	ssl.SSL_CTX_set_verify(c->ctx, c->insecure ? VERIFY_NONE : VERIFY_PEER, NULL);
	ssl.SSL_CTX_set_default_passwd_cb(c->ctx, no_passphrase);
	status = load_authorities(c, terms, err);
	if (status == ST_OK)
		status = load_certificate(c, terms, err);
	if (status != ST_OK) {
		tls_close(c);
		return status;
	}
	*context = c;
	return ST_OK;
}

void
tls_close(struct tls_context *c)
{
	if (c == NULL)
		return;
	ssl.SSL_CTX_free(c->ctx);
	free(c);
}

/* -- One connection --------------------------------------------------------- */

struct tls {
	struct ssl_st *ssl;
	const struct tls_context *context;
	const char *host; /* whose certificate it must be; NULL: nobody's */
	bool secure;	  /* the handshake is over */
	bool denied;
	char fault[300];
};

static bool
is_address(const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Ask for that host, and take the certificate of no other. */
static bool
set_host(struct tls *t)
{
	char name[256];

	if (t->host == NULL)
		return true;
	if (is_address(t->host))
		return ssl.X509_VERIFY_PARAM_set1_ip_asc(ssl.SSL_get0_param(t->ssl), t->host) == 1;
	(void)snprintf(name, sizeof(name), "%s", t->host);
	return ssl.SSL_ctrl(t->ssl, CTRL_SET_TLSEXT_HOSTNAME, 0, name) == 1 && ssl.SSL_set1_host(t->ssl, t->host) == 1;
}

struct tls *
tls_start(struct tls_context *context, int fd, const char *host)
{
	struct tls *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->context = context;
	t->host = context->sni != NULL ? context->sni : host;
	t->ssl = ssl.SSL_new(context->ctx);
	if (t->ssl != NULL && ssl.SSL_set_fd(t->ssl, fd) == 1 && set_host(t))
		return t;
	tls_stop(t);
	return NULL;
}

static enum tls_result fail(struct tls *, const char *format, ...) __attribute__((format(printf, 2, 3)));

static enum tls_result
fail(struct tls *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(t->fault, sizeof(t->fault), format, args);
	va_end(args);
	return TLS_FAILED;
}

/* The alerts by which a server says that it doesn't accept our certificate, or the lack of one. */
static bool
wants_certificate(const char *reason)
{
	static const char *const alerts[] = { "alert certificate", "alert bad certificate", "alert unknown ca",
		"alert unsupported certificate", "alert access denied", "alert handshake failure" };
	size_t i;

	for (i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++) {
		if (strstr(reason, alerts[i]) != NULL)
			return true;
	}
	return false;
}

static enum tls_result
fail_by_protocol(struct tls *t)
{
	const long verified = ssl.SSL_get_verify_result(t->ssl);
	const char *reason = newest_error();

	if (strcmp(reason, "unexpected eof while reading") == 0)
		return TLS_CLOSED;
	if (!t->secure && !t->context->insecure && verified != VERIFIED)
		return fail(t, "its certificate is not accepted for %.100s: %s; see --cacert and --sni",
		    t->host != NULL ? t->host : "it", ssl.X509_verify_cert_error_string(verified));
	if (wants_certificate(reason)) {
		t->denied = true;
		if (t->context->has_certificate)
			return fail(t, "it does not accept our certificate (%s)", reason);
		return fail(t, "it wants a certificate from us; see --cert (%s)", reason);
	}
	if (!t->secure &&
	    (strstr(reason, "wrong version") != NULL || strstr(reason, "record") != NULL ||
		strstr(reason, "packet length") != NULL))
		return fail(t, "it does not speak TLS (%s); use redis://", reason);
	return fail(t, "TLS failed: %s", reason);
}

/* What came of a call that returned no bytes. */
static enum tls_result
outcome(struct tls *t, int returned)
{
	const int error = errno;

	switch (ssl.SSL_get_error(t->ssl, returned)) {
	case ERROR_WANT_READ:
		return TLS_WANTS_READ;
	case ERROR_WANT_WRITE:
		return TLS_WANTS_WRITE;
	case ERROR_ZERO_RETURN:
		return TLS_CLOSED;
	case ERROR_SYSCALL:
		if (returned == 0 || error == 0 || error == ECONNRESET || error == EPIPE)
			return TLS_CLOSED;
		return fail(t, "%s", strerror(error));
	default:
		return fail_by_protocol(t);
	}
}

enum tls_result
tls_handshake(struct tls *t)
{
	int n;

	ssl.ERR_clear_error();
	errno = 0;
	n = ssl.SSL_connect(t->ssl);
	if (n != 1)
		return outcome(t, n);
	t->secure = true;
	return TLS_DONE;
}

enum tls_result
tls_read(struct tls *t, char *bytes, size_t size, size_t *done)
{
	int n;

	ssl.ERR_clear_error();
	errno = 0;
	n = ssl.SSL_read(t->ssl, bytes, (int)size);
	if (n <= 0)
		return outcome(t, n);
	*done = (size_t)n;
	return TLS_DONE;
}

enum tls_result
tls_write(struct tls *t, const char *bytes, size_t length, size_t *done)
{
	int n;

	ssl.ERR_clear_error();
	errno = 0;
	n = ssl.SSL_write(t->ssl, bytes, length < 1 << 30 ? (int)length : 1 << 30);
	if (n <= 0)
		return outcome(t, n);
	*done = (size_t)n;
	return TLS_DONE;
}

bool
tls_holds_bytes(const struct tls *t)
{
	return ssl.SSL_pending(t->ssl) > 0;
}

const char *
tls_fault(const struct tls *t, bool *denied)
{
	*denied = t->denied;
	return t->fault;
}

void
tls_stop(struct tls *t)
{
	if (t == NULL)
		return;
	ssl.ERR_clear_error();
	if (t->secure && t->fault[0] == '\0')
		(void)ssl.SSL_shutdown(t->ssl); /* as much of it as goes without waiting */
	if (t->ssl != NULL)
		ssl.SSL_free(t->ssl);
	free(t);
}
