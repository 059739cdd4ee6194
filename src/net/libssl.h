/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_LIBSSL_H
#define DLOCK_NET_LIBSSL_H
#include <openssl/err.h>
#include <openssl/ssl.h>

/*
 * OpenSSL, loaded at its first use.  Linking it would double the startup time of dlock.
 *
 * The prototypes come from the headers of OpenSSL.  All of these functions exist since OpenSSL 1.1.1.
 */
#define LIBSSL_NEWEST "libssl.so.3"

#define LIBSSL_FUNCTIONS(FUNCTION)                   \
	FUNCTION(TLS_client_method)                  \
	FUNCTION(SSL_CTX_new)                        \
	FUNCTION(SSL_CTX_free)                       \
	FUNCTION(SSL_CTX_ctrl)                       \
	FUNCTION(SSL_CTX_load_verify_locations)      \
	FUNCTION(SSL_CTX_set_default_verify_paths)   \
	FUNCTION(SSL_CTX_set_verify)                 \
	FUNCTION(SSL_CTX_set_default_passwd_cb)      \
	FUNCTION(SSL_CTX_use_certificate_chain_file) \
	FUNCTION(SSL_CTX_use_PrivateKey_file)        \
	FUNCTION(SSL_CTX_check_private_key)          \
	FUNCTION(SSL_new)                            \
	FUNCTION(SSL_free)                           \
	FUNCTION(SSL_set_fd)                         \
	FUNCTION(SSL_get_sigalgs)                    \
	FUNCTION(SSL_get_rbio)                       \
	FUNCTION(SSL_ctrl)                           \
	FUNCTION(SSL_set1_host)                      \
	FUNCTION(SSL_get0_param)                     \
	FUNCTION(SSL_connect)                        \
	FUNCTION(SSL_read)                           \
	FUNCTION(SSL_write)                          \
	FUNCTION(SSL_pending)                        \
	FUNCTION(SSL_shutdown)                       \
	FUNCTION(SSL_get_error)                      \
	FUNCTION(SSL_get_verify_result)              \
	FUNCTION(BIO_set_callback_ex)                \
	FUNCTION(BIO_set_callback_arg)               \
	FUNCTION(BIO_get_callback_arg)               \
	FUNCTION(BIO_set_flags)                      \
	FUNCTION(X509_VERIFY_PARAM_set1_ip_asc)      \
	FUNCTION(X509_verify_cert_error_string)      \
	FUNCTION(ERR_clear_error)                    \
	FUNCTION(ERR_peek_last_error)                \
	FUNCTION(ERR_reason_error_string)            \
	FUNCTION(OpenSSL_version)

struct libssl {
#define LIBSSL_MEMBER(name) __typeof__(name) *(name);
	LIBSSL_FUNCTIONS(LIBSSL_MEMBER)
#undef LIBSSL_MEMBER
};

/*
 * Load the library on the first call; later calls return the same table.  The first call must be made before the
 * process has threads.  The library stays loaded.  NULL: it can't be loaded, or lacks one of the functions.
 */
const struct libssl *libssl_load(void);

#endif
