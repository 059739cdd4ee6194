/* SPDX-License-Identifier: MIT */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "net/libssl.h"

/* Allow partial writes and a write buffer that moves between retries; a read continues after non-data records. */
#define MODES (SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_AUTO_RETRY)

/*
 * OpenSSL reads on while it gets records without data for us, and somebody on the path could send these without end.
 * So a call gets only so many bytes, and a connection only so many before there is data.
 */
#define INPUT_OF_CALL 16384
#define INPUT_IN_VAIN (256 * 1024)

/* The library; NULL before it has been loaded. */
static const struct libssl *ssl;

static bool
load(void)
{
	if (ssl == NULL)
		ssl = libssl_load();
	return ssl != NULL;
}

const char *
tls_library(void)
{
	return load() ? ssl->OpenSSL_version(0) : NULL;
}

/* -- The context that all connections share --------------------------------- */

struct tls_context {
	SSL_CTX *ctx;
	const char *sni;
	bool insecure;
	bool has_certificate;
};

/* OpenSSL's text for the last error of this thread; "" if there is none. */
static const char *
newest_error(void)
{
	const unsigned long error = ssl->ERR_peek_last_error();
	const char *reason = error != 0 ? ssl->ERR_reason_error_string(error) : NULL;

	return reason != NULL ? reason : error != 0 ? "unknown error" : "";
}

/* Without this callback, OpenSSL would prompt on the terminal for the passphrase of a key. */
static int /* NOLINTNEXTLINE(readability-non-const-parameter): OpenSSL's type */
no_passphrase(char *buffer, int size, int writing, void *context)
{
	(void)buffer;
	(void)size;
	(void)writing;
	(void)context;
	return 0;
}

/* OpenSSL's reason for a file that cannot be read is "system lib". */
static enum status
bad_file(const char *option, const char *file, struct err *err)
{
	const char *const why = access(file, R_OK) == 0 ? newest_error() : strerror(errno);
	char shown[256];

	return err_set(err, ST_CONFIG, "%s: %s cannot be used: %s", option, text_show(file, shown, sizeof(shown)), why);
}

static enum status
load_authorities(struct tls_context *c, const struct tls_options *o, struct err *err)
{
	const char *const directory = o->cacertdir;
	char shown[256];
	struct stat found;

	if (o->insecure)
		return ST_OK;
	/* OpenSSL looks at the directory, or at several that colons separate, only when a certificate is verified. */
	if (directory != NULL && strchr(directory, ':') == NULL &&
	    (stat(directory, &found) != 0 || !S_ISDIR(found.st_mode)))
		return err_set(err, ST_CONFIG, "--cacertdir: %s cannot be used: %s",
		    text_show(directory, shown, sizeof(shown)),
		    access(directory, F_OK) == 0 ? strerror(ENOTDIR) : strerror(errno));
	if (o->cacert != NULL && ssl->SSL_CTX_load_verify_locations(c->ctx, o->cacert, NULL) != 1)
		return bad_file("--cacert", o->cacert, err);
	if (directory != NULL && ssl->SSL_CTX_load_verify_locations(c->ctx, NULL, directory) != 1)
		return bad_file("--cacertdir", directory, err);
	if (o->cacert == NULL && directory == NULL)
		(void)ssl->SSL_CTX_set_default_verify_paths(c->ctx);
	return ST_OK;
}

static enum status
load_certificate(struct tls_context *c, const struct tls_options *o, struct err *err)
{
	const char *const key = o->key != NULL ? o->key : o->cert;

	if (o->cert == NULL)
		return o->key == NULL ? ST_OK : err_set(err, ST_USAGE, "--key requires --cert");
	if (ssl->SSL_CTX_use_certificate_chain_file(c->ctx, o->cert) != 1)
		return bad_file("--cert", o->cert, err);
	if (ssl->SSL_CTX_use_PrivateKey_file(c->ctx, key, SSL_FILETYPE_PEM) != 1 ||
	    ssl->SSL_CTX_check_private_key(c->ctx) != 1)
		return bad_file(o->key != NULL ? "--key" : "--cert", key, err);
	c->has_certificate = true;
	return ST_OK;
}

enum status
tls_open(const struct tls_options *options, struct tls_context **context, struct err *err)
{
	struct tls_context *c;
	enum status status;

	*context = NULL;
	if (!load())
		return err_set(err, ST_NO_QUORUM, "TLS needs OpenSSL, and there is no %s here; install libssl",
		    LIBSSL_NEWEST);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	c->sni = options->sni;
	c->insecure = options->insecure;
	ssl->ERR_clear_error();
	c->ctx = ssl->SSL_CTX_new(ssl->TLS_client_method());
	if (c->ctx == NULL) {
		free(c);
		return err_set(err, ST_SYSTEM, "TLS cannot be used: %s", newest_error());
	}
	(void)ssl->SSL_CTX_ctrl(c->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
	(void)ssl->SSL_CTX_ctrl(c->ctx, SSL_CTRL_MODE, MODES, NULL);
	ssl->SSL_CTX_set_verify(c->ctx, c->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	ssl->SSL_CTX_set_default_passwd_cb(c->ctx, no_passphrase);
	status = load_authorities(c, options, err);
	if (status == ST_OK)
		status = load_certificate(c, options, err);
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
	ssl->SSL_CTX_free(c->ctx);
	free(c);
}

/* -- One connection --------------------------------------------------------- */

struct tls {
	SSL *ssl;
	const struct tls_context *context;
	const char *host; /* the certificate must be valid for this host; NULL: the host is not checked */
	bool secure;	  /* the handshake has succeeded */
	size_t input;	  /* bytes read since there was data */
	size_t input_max; /* no more are read in the current call */
	struct failure failure;
};

static long /* OpenSSL's type */
limit_input(BIO *bio, int operation, const char *bytes, size_t size, int i, long l, int returned, size_t *done)
{
	struct tls *const t = (struct tls *)(void *)ssl->BIO_get_callback_arg(bio);

	(void)bytes;
	(void)size;
	(void)i;
	(void)l;
	if (operation == (BIO_CB_READ | BIO_CB_RETURN) && returned > 0)
		t->input += *done;
	if (operation != BIO_CB_READ || t->input < t->input_max)
		return returned;
	ssl->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
	return -1;
}

/* The host is requested by SNI, unless it is an address, and only a certificate for it is accepted. */
struct tls *
tls_start(struct tls_context *context, int fd, const char *host)
{
	struct tls *t = calloc(1, sizeof(*t));
	unsigned char bytes[sizeof(struct in6_addr)];
	char name[256];
	bool fit;

	if (t == NULL)
		return NULL;
	t->context = context;
	t->host = context->sni != NULL ? context->sni : host;
	t->ssl = ssl->SSL_new(context->ctx);
	fit = t->ssl != NULL && ssl->SSL_set_fd(t->ssl, fd) == 1;
	if (fit && t->host != NULL &&
	    (inet_pton(AF_INET, t->host, bytes) == 1 || inet_pton(AF_INET6, t->host, bytes) == 1))
		fit = ssl->X509_VERIFY_PARAM_set1_ip_asc(ssl->SSL_get0_param(t->ssl), t->host) == 1;
	else if (fit && t->host != NULL) {
		(void)snprintf(name, sizeof(name), "%s", t->host);
		fit = ssl->SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, name) == 1 &&
		    ssl->SSL_set1_host(t->ssl, t->host) == 1;
	}
	if (!fit) {
		tls_stop(t);
		return NULL;
	}
	ssl->BIO_set_callback_ex(ssl->SSL_get_rbio(t->ssl), limit_input);
	ssl->BIO_set_callback_arg(ssl->SSL_get_rbio(t->ssl), (char *)t);
	return t;
}

static enum io_result
fail_by_protocol(struct tls *t)
{
	/* Alerts by which a server rejects our certificate, or requires one. */
	static const char *const alerts[] = { "alert certificate", "alert bad certificate", "alert unknown ca",
		"alert unsupported certificate", "alert access denied", "alert handshake failure" };
	const long verified = ssl->SSL_get_verify_result(t->ssl);
	const char *reason = newest_error();
	struct failure *const why = &t->failure;
	bool wants_certificate = false;
	size_t i;

	for (i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++)
		wants_certificate = wants_certificate || strstr(reason, alerts[i]) != NULL;
	if (strcmp(reason, "unexpected eof while reading") == 0)
		return IO_CLOSED;
	if (!t->secure && !t->context->insecure && verified != X509_V_OK)
		failure_set(why, FAILED, "its certificate is not accepted for %.100s: %s; see --cacert and --sni",
		    t->host != NULL ? t->host : "it", ssl->X509_verify_cert_error_string(verified));
	/* A server that asks for a certificate says which signatures it knows. */
	else if (wants_certificate && ssl->SSL_get_sigalgs(t->ssl, -1, NULL, NULL, NULL, NULL, NULL) > 0)
		failure_set(why, DENIED,
		    t->context->has_certificate ? "it does not accept the client certificate (%s)"
						: "it requires a client certificate; see --cert (%s)",
		    reason);
	else if (!t->secure &&
	    (strstr(reason, "wrong version") != NULL || strstr(reason, "record") != NULL ||
		strstr(reason, "packet length") != NULL))
		failure_set(why, FAILED, "it does not speak TLS (%s); use a URL without TLS", reason);
	else
		failure_set(why, FAILED, "TLS failed: %s", reason);
	return IO_FAILED;
}

static void
begin_call(struct tls *t)
{
	ssl->ERR_clear_error();
	errno = 0;
	t->input_max = t->input + INPUT_OF_CALL;
}

/* The outcome of a call of OpenSSL, which returned the number of bytes, or 1. */
static enum io_result
outcome(struct tls *t, int returned, size_t *done)
{
	const int error = errno;

	if (returned > 0) {
		*done = (size_t)returned;
		return IO_DONE;
	}
	switch (ssl->SSL_get_error(t->ssl, returned)) {
	case SSL_ERROR_WANT_READ:
		if (t->input <= INPUT_IN_VAIN)
			return IO_WANTS_READ;
		failure_set(&t->failure, FAILED, "TLS failed: it sends records without end, and no data");
		return IO_FAILED;
	case SSL_ERROR_WANT_WRITE:
		return IO_WANTS_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		return IO_CLOSED;
	case SSL_ERROR_SYSCALL:
		if (returned == 0 || error == 0 || error == ECONNRESET || error == EPIPE)
			return IO_CLOSED;
		failure_set(&t->failure, FAILED, "%s", strerror(error));
		return IO_FAILED;
	default:
		return fail_by_protocol(t);
	}
}

enum io_result
tls_handshake(struct tls *t)
{
	size_t done = 0;
	enum io_result result;

	begin_call(t);
	result = outcome(t, ssl->SSL_connect(t->ssl), &done);
	t->secure = result == IO_DONE;
	return result;
}

enum io_result
tls_read(struct tls *t, char *bytes, size_t size, size_t *done)
{
	enum io_result result;

	begin_call(t);
	result = outcome(t, ssl->SSL_read(t->ssl, bytes, (int)size), done);
	if (result == IO_DONE)
		t->input = 0;
	return result;
}

enum io_result
tls_write(struct tls *t, const char *bytes, size_t length, size_t *done)
{
	begin_call(t);
	return outcome(t, ssl->SSL_write(t->ssl, bytes, length < 1 << 30 ? (int)length : 1 << 30), done);
}

bool
tls_has_buffered(const struct tls *t)
{
	return ssl->SSL_pending(t->ssl) > 0;
}

const struct failure *
tls_failure(const struct tls *t)
{
	return &t->failure;
}

void
tls_stop(struct tls *t)
{
	if (t == NULL)
		return;
	begin_call(t);
	if (t->secure && t->failure.kind == NO_FAILURE)
		(void)ssl->SSL_shutdown(t->ssl); /* sends close_notify and doesn't wait for that of the peer */
	if (t->ssl != NULL)
		ssl->SSL_free(t->ssl);
	free(t);
}
