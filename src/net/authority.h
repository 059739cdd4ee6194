/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_AUTHORITY_H
#define DLOCK_NET_AUTHORITY_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * The parts that the URLs of all services have in common: [user[:password]@]host[:port].  Percent-escapes are decoded;
 * IPv6 addresses are in brackets.
 */
enum {
	URL_USER_SIZE = 256,
	URL_PASSWORD_SIZE = 512,
	URL_HOST_SIZE = 256,
	URL_PORT_SIZE = 6
};

struct tls_context;

/* The address of a server. */
struct endpoint {
	char host[URL_HOST_SIZE]; /* a name or a numeric address; "" for a unix socket */
	char port[URL_PORT_SIZE];
	char path[108];		 /* of a unix socket; the size is that of sun_path */
	struct tls_context *tls; /* NULL: plain */
};

/* A part of a text, not terminated. */
struct url_part {
	const char *at;
	size_t length;
};

/* The part up to the first of these characters, or to the end. */
struct url_part url_part_until(const char *at, const char *stop);

/* Decode %XX into a buffer of the given size.  False: invalid escape, NUL, or too long. */
bool url_decode(struct url_part, char *out, size_t size);

/* A number without a sign.  False: it is not a number, or greater than `most`. */
bool url_number(struct url_part, int most, int *number);

/*
 * Parse "user:password@" at the start of the authority, if it is there.  Returns what follows; NULL: not valid.  A
 * part that is not given is left as it was.
 */
const char *url_login(const char *at, char user[URL_USER_SIZE], char password[URL_PASSWORD_SIZE]);

/* Parse host and port.  Returns what follows; NULL: not valid. */
const char *url_address(const char *at, char host[URL_HOST_SIZE], char port[URL_PORT_SIZE], const char *default_port);

struct text;

/* Is there a password in the URL? */
bool url_has_password(const char *url);

/* Append the URL with *** in place of its password. */
void url_add_hidden(const char *url, struct text *);

/* Overwrite the login in the URL by "*". */
void url_blot(char *url);

/* Append host:port. */
void url_show_address(const char *host, const char *port, struct text *);

/* The part behind the scheme and a login, in a text that may be no valid URL. */
const char *url_place(const char *text);

/* The fault in the hosts and ports of a text; `several`: commas may separate them.  NULL: not known. */
const char *url_find_fault(const char *text, bool several);

/*
 * The error for a text that is no valid URL: ST_USAGE.  NULL as the fault: the name of a host.  The message shows the
 * scheme, and nothing else of the text.
 */
enum status url_refuse(const char *text, const char *fault, struct err *);

#endif
