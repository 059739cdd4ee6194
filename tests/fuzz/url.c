/* SPDX-License-Identifier: MIT */
#include "redis/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/secret.h"
#include "fuzz.h"

/*
 * URLs.  A URL that was parsed and written back parses to the same.  An error and a name are one printable line, and
 * neither contains text from the place where a login may be.
 */
#define CANARY "hunter2"

/* -- Writing a URL ---------------------------------------------------------- */

static void
add_escaped(struct text *t, const char *string)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	for (; *string != '\0'; string++) {
		if (strchr(plain, *string) != NULL)
			text_add(t, string, 1);
		else
			text_addf(t, "%%%02X", (unsigned int)(unsigned char)*string);
	}
}

static void
add_place(struct text *t, const char *host, const char *port)
{
	text_addf(t, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

static void
add_login(struct text *t, const struct url *u)
{
	if (u->user[0] == '\0' && u->password[0] == '\0')
		return;
	add_escaped(t, u->user);
	text_add(t, ":", 1);
	add_escaped(t, u->password);
	text_add(t, "@", 1);
}

static void
write_server(struct text *t, const struct url *u)
{
	text_addf(t, "%s://", u->endpoint.host[0] == '\0' ? "unix" : u->secure ? "rediss" : "redis");
	add_login(t, u);
	if (u->endpoint.host[0] != '\0') {
		add_place(t, u->endpoint.host, u->endpoint.port);
		text_addf(t, "/%d", u->db);
		return;
	}
	text_add(t, "/", 1);
	add_escaped(t, u->endpoint.path + 1);
	text_addf(t, "?db=%d", u->db);
}

static void
write_service(struct text *t, const struct url *u)
{
	int i;

	text_addf(t, "%s+%s://", u->secure ? "rediss" : "redis", u->kind == URL_SENTINEL ? "sentinel" : "cluster");
	add_login(t, u);
	for (i = 0; i < u->seeds; i++) {
		text_add(t, ",", i > 0 ? 1 : 0);
		add_place(t, u->seed[i].host, u->seed[i].port);
	}
	if (u->kind != URL_SENTINEL)
		return;
	text_add(t, "/", 1);
	add_escaped(t, u->service);
	text_addf(t, "/%d", u->db);
}

/* -- Checks ----------------------------------------------------------------- */

static bool
is_terminated(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool
is_place(const char *host, const char *port)
{
	const long number = strtol(port, NULL, 10);

	return host[0] != '\0' && is_harmless(host) && strpbrk(host, " /?#@,[]") == NULL &&
	    port[strspn(port, "0123456789")] == '\0' && number > 0 && number < 65536;
}

static void
check_parts(const char *text, const struct url *u)
{
	int i;

	must(is_terminated(u->endpoint.host, sizeof(u->endpoint.host)) &&
		is_terminated(u->endpoint.path, sizeof(u->endpoint.path)) &&
		is_terminated(u->service, sizeof(u->service)) && is_terminated(u->user, sizeof(u->user)) &&
		is_terminated(u->password, sizeof(u->password)) && is_terminated(u->name, sizeof(u->name)),
	    "%s", text);
	must(is_sentence(u->name), "%s is named %s", text, u->name);
	must(u->db >= 0 && u->db <= 1000000 && u->seeds >= 0 && u->seeds <= SEEDS_MAX, "%s", text);
	must((u->kind == URL_SERVER) == (u->seeds == 0), "%s", text);
	must((u->kind == URL_SENTINEL) == (u->service[0] != '\0'), "%s", text);
	if (u->kind == URL_SERVER && u->endpoint.host[0] != '\0')
		must(u->endpoint.path[0] == '\0' && is_place(u->endpoint.host, u->endpoint.port), "%s: place %s:%s",
		    text, u->endpoint.host, u->endpoint.port);
	else if (u->kind == URL_SERVER)
		must(u->endpoint.path[0] == '/' && !u->secure, "%s: path %s", text, u->endpoint.path);
	for (i = 0; i < u->seeds; i++)
		must(is_place(u->seed[i].host, u->seed[i].port), "%s: seed %d", text, i);
}

static bool
is_same(const struct url *a, struct url *b)
{
	struct address *const seed = b->seed;
	bool same = a->seeds == b->seeds;

	same = same && (a->seeds == 0 || memcmp(a->seed, seed, (size_t)a->seeds * sizeof(*seed)) == 0);
	b->seed = a->seed;
	same = same && memcmp(a, b, sizeof(*b)) == 0;
	b->seed = seed;
	return same;
}

static void
check_round_trip(const char *text, const struct url *u)
{
	static char written[16384];
	struct text t = text_in(written, sizeof(written));
	struct url again;
	struct err err = { "" };

	if (u->kind == URL_SERVER)
		write_server(&t, u);
	else
		write_service(&t, u);
	must(!t.cut && url_parse(written, &again, &err) == ST_OK, "%s became %s: %s", text, written, err.text);
	must(is_same(u, &again), "%s became %s", text, written);
	url_free(&again);
}

/* Overwriting a login leaves the rest unchanged and no part of the login readable. */
static void
check_blot(const char *text, const struct url *u)
{
	const size_t length = strlen(text);
	char *copy = malloc(length + 1);
	struct url blotted = { .seed = NULL };
	struct err err;

	must(copy != NULL, "no memory");
	memcpy(copy, text, length + 1);
	must(u->password[0] == '\0' || secret_in_url(text), "%s: its password is not seen", text);
	secret_blot(copy);
	must(strlen(copy) == length, "%s: blotted to %s", text, copy);
	must(strchr(copy, '*') != NULL || (u->user[0] == '\0' && u->password[0] == '\0'), "%s: not blotted", text);
	/* The asterisks may be too long for a user name. */
	if (u->kind != URL_SERVER || u->endpoint.host[0] != '\0' || secret_in_url(text)) {
		must(url_parse(copy, &blotted, &err) == ST_OK || strlen(strchr(copy, '*')) > 255, "%s: blotted to %s",
		    text, copy);
		must(strspn(blotted.user, "*") == strlen(blotted.user) && blotted.password[0] == '\0',
		    "%s: blotted to %s", text, copy);
	}
	url_free(&blotted);
	free(copy);
}

/* A NUL can't be written back.  In a bare path and in brackets nothing is decoded. */
static bool
has_nul(const char *text)
{
	return text[0] != '/' && strstr(text, "%00") != NULL && strchr(text, '[') == NULL;
}

/* A secret between "://" and the last @ must not be in any output. */
static void
check_canary(const char *text, size_t place)
{
	const char *const scheme = strstr(text, "://"), *const at = strrchr(text, '@');
	const size_t length = strlen(text);
	struct err err = { "" };
	struct url url;
	size_t split;
	char *with;

	if (scheme == NULL || at == NULL || at < scheme + 3 || strstr(text, CANARY) != NULL)
		return;
	split = (size_t)(scheme - text) + 3 + place % (size_t)(at - scheme - 2);
	with = malloc(length + sizeof(CANARY));
	must(with != NULL, "no memory");
	(void)snprintf(with, length + sizeof(CANARY), "%.*s%s%s", (int)split, text, CANARY, text + split);
	if (url_parse(with, &url, &err) != ST_OK)
		must(strstr(err.text, CANARY) == NULL, "%s: %s", with, err.text);
	else if (strstr(url.user, CANARY) != NULL || strstr(url.password, CANARY) != NULL)
		must(strstr(url.name, CANARY) == NULL, "%s is named %s", with, url.name);
	url_free(&url);
	free(with);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input in = input_of(bytes, length);
	char *text = input_string(&in, SIZE_MAX);
	enum status status;
	struct url url;
	struct err err;

	memset(&url, 0x5a, sizeof(url));
	memset(&err, 0x5a, sizeof(err));
	status = url_parse(text, &url, &err);
	must(status == ST_OK || status == ST_USAGE, "%s: status %d", text, (int)status);
	if (status == ST_OK) {
		must(!has_nul(text), "%s: a NUL in it", text);
		check_parts(text, &url);
		check_round_trip(text, &url);
		check_blot(text, &url);
		url_free(&url);
	} else
		must(is_terminated(err.text, sizeof(err.text)) && is_sentence(err.text), "%s: %.900s", text, err.text);
	check_canary(text, input_byte(&in));
	free(text);
	return 0;
}
