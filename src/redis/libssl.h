/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_LIBSSL_H
#define DLOCK_REDIS_LIBSSL_H

/*
 * OpenSSL: what is used of libssl and of libcrypto below it, whose interfaces have been the same since OpenSSL 1.1.0.  The
 * library is loaded when it is wanted first, since it would double the time that dlock takes to start; its headers aren't
 * needed, so TLS is there in every build.
 */
#define LIBSSL_NEWEST "libssl.so.3"

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

typedef int ask_passphrase(char *buffer, int size, int writing, void *context);

struct libssl {
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
};

/* Once for the process, before it has threads; it stays.  NULL: it can't be loaded. */
const struct libssl *libssl_load(void);

#endif
