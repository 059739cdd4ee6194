/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <nss.h>
#endif

#include "net/libssl.h"

/*
 * The substitutes in the static binary for loading libraries at run time: it is copied to systems whose libraries
 * are not those that it was built with.  In its build this file takes the place of libssl.c.
 */

#ifdef __GLIBC__
/*
 * Names come from files and DNS, which libc has built in, and from no other service, whatever /etc/nsswitch.conf says:
 * libc would load a library for it.
 */
__attribute__((constructor)) static void
use_builtin_services(void)
{
	(void)__nss_configure_lookup("hosts", "files dns");
	(void)__nss_configure_lookup("passwd", "files");
}
#endif

/* Where systems keep the certificates of their authorities: Debian, Alpine and the image of dlock; Fedora; SUSE. */
static const char *const authorities[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

/* OpenSSL knows the folders of the system that it was built for, and SSL_CERT_FILE, which replaces all files. */
static int
set_default_verify_paths(SSL_CTX *context)
{
	size_t i;

	for (i = 0; i < sizeof(authorities) / sizeof(authorities[0]) && getenv("SSL_CERT_FILE") == NULL; i++)
		if (access(authorities[i], R_OK) == 0) {
			(void)SSL_CTX_load_verify_locations(context, authorities[i], NULL);
			break;
		}
	return SSL_CTX_set_default_verify_paths(context);
}

const struct libssl *
libssl_load(void)
{
	static struct libssl ssl = {
#define LIBSSL_ADDRESS(name) .name = name,
		LIBSSL_FUNCTIONS(LIBSSL_ADDRESS)
#undef LIBSSL_ADDRESS
	};

	/* openssl.cnf may name providers, which are libraries. */
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
		return NULL;
	ssl.SSL_CTX_set_default_verify_paths = set_default_verify_paths;
	return &ssl;
}
