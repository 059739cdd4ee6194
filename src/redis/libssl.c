/* SPDX-License-Identifier: MIT */
#include "redis/libssl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const library_names[] = { LIBSSL_NEWEST, "libssl.so.1.1" };

#define SYMBOL(name)                                 \
	{                                            \
#name, offsetof(struct libssl, name) \
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
find_symbols(void *library, struct libssl *found)
{
	void *address;
	size_t i;

	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		address = dlsym(library, symbols[i].name);
		if (address == NULL)
			return false;
		memcpy((char *)found + symbols[i].offset, &address, sizeof(address));
	}
	return true;
}

const struct libssl *
libssl_load(void)
{
	static struct libssl ssl;
	static bool loaded;
	void *library;
	size_t i;

	for (i = 0; i < sizeof(library_names) / sizeof(library_names[0]) && !loaded; i++) {
		library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
		loaded = library != NULL && find_symbols(library, &ssl);
	}
	return loaded ? &ssl : NULL;
}
