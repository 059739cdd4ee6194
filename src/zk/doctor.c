/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

enum {
	ROUNDS = 3 /* the shortest time of so many new connections is that of an answer */
};

/* The probe of one server. */
struct probe {
	struct zk_backend *backend;
	struct zk_url url; /* of this server alone */
	struct node_facts *facts;
	struct wait limit;
	struct reason reason; /* why a session failed, without the name of the server */
};

static void
forget(struct node_facts *f)
{
	memset(f, 0, sizeof(*f));
	f->uptime_s = f->aof = f->snapshots = f->maxmemory = f->used_memory = f->evicted = f->replicas = FACT_UNKNOWN;
	f->clients = f->maxclients = f->idle_timeout_s = f->keepalive_s = f->min_replicas = FACT_UNKNOWN;
	f->ttl_least_ms = f->ttl_most_ms = f->members = FACT_UNKNOWN;
}

/* -- srvr ------------------------------------------------------------------- */

/* Copy the word that follows a title in the text. */
static void
find_word(const char *text, const char *title, char *word, size_t size)
{
	const char *at = strstr(text, title);

	if (at == NULL)
		return;
	at += strlen(title);
	(void)snprintf(word, size, "%.*s", (int)strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789."), at);
}

static void
ask_srvr(struct probe *p)
{
	struct loop loop = { .watches = NULL };
	struct connection c;
	char text[2048];

	connection_init(&c, &loop);
	if (connection_open(&c, &p->url.server[0], &p->limit) == ZK_OK &&
	    connection_ask(&c, "srvr", text, sizeof(text), &p->limit) == ZK_OK) {
		(void)snprintf(p->facts->software, sizeof(p->facts->software), "ZooKeeper");
		find_word(text, "Zookeeper version: ", p->facts->version, sizeof(p->facts->version));
		find_word(text, "Mode: ", p->facts->role, sizeof(p->facts->role));
		if (strstr(text, "not currently serving") != NULL)
			(void)snprintf(p->facts->role, sizeof(p->facts->role), "looking");
	}
	connection_close(&c);
}

/* -- The ensemble ----------------------------------------------------------- */

/* Count the servers that vote: lines server.N=...:participant. */
static void
count_members(struct probe *p, struct session *s)
{
	const int32_t xid = session_put_path(s, WIRE_GET_DATA, "/zookeeper/config", 0);
	struct wire_text data;
	struct wire_in body;
	size_t i;

	if (session_call(s, xid, &body, &p->limit) != ZK_OK)
		return;
	data = wire_get_text(&body);
	p->facts->members = 0;
	for (i = 0; !body.bad && i + 12 <= data.length; i++)
		p->facts->members += memcmp(data.bytes + i, ":participant", 12) == 0;
}

/* With a password: can others break the locks of this user?  The name of the KEY does not matter. */
static void
look_around(struct probe *p, struct session *s)
{
	char path[PATH_LOCK_SIZE];

	count_members(p, s);
	path_of_key(p->url.chroot, "dlock-doctor", path);
	p->facts->unguarded = p->url.user[0] != '\0' && zk_is_unguarded(s, path, &p->limit);
}

/* -- Sessions --------------------------------------------------------------- */

/* Make a session of this length and end it; *granted_ms is what the server grants. */
static enum zk_code
try_length(struct probe *p, int64_t length_ms, int64_t *granted_ms)
{
	struct session s;
	enum zk_code code;

	session_init(&s, &p->url, &p->backend->log);
	code = session_create(&s, length_ms, &p->limit);
	if (code == ZK_OK)
		*granted_ms = s.length_ms;
	zk_end_session(p->backend, &s);
	return code;
}

/* Make a session, attach to it by new connections, as renewals do, and end it. */
static enum zk_code
try_session(struct probe *p, bool all)
{
	int64_t least_us = INT64_MAX, began;
	enum zk_code code;
	struct session s;
	int i;

	session_init(&s, &p->url, &p->backend->log);
	code = session_create(&s, 1, &p->limit);
	p->facts->ttl_least_ms = s.length_ms;
	for (i = 0; i < ROUNDS && code == ZK_OK; i++) {
		began = clock_now_us();
		session_begin(&s, s.length_ms);
		code = session_attach(&s, &p->limit);
		least_us = clock_sooner(clock_now_us() - began, least_us);
	}
	if (code == ZK_OK) {
		p->facts->rtt_us = least_us;
		if (all)
			look_around(p, &s);
	}
	p->facts->local = stream_local(&s.connection.stream);
	p->reason = s.connection.reason;
	zk_end_session(p->backend, &s);
	return code;
}

static void
probe_server(struct probe *p, bool all)
{
	struct node_facts *const f = p->facts;
	struct err err;
	char *hint;
	enum zk_code code = try_session(p, all);

	if (code == ZK_OK && all)
		code = try_length(p, INT32_MAX, &f->ttl_most_ms);
	f->up = code == ZK_OK;
	if (!f->up) {
		f->denied = zk_error(p->backend, code, &err) == ST_DENIED;
		f->reason = p->reason;
		if (f->reason.text[0] == '\0')
			reason_set(&f->reason, "%.*s", (int)sizeof(f->reason.text) - 1, err.text);
		hint = strstr(f->reason.text, ": see dlock doctor");
		if (hint != NULL)
			*hint = '\0';
	}
	if (!all)
		return;
	p->limit = zk_limit(p->backend, CLOCK_NEVER, -1);
	ask_srvr(p);
}

/*
 * The servers of one ensemble know the sessions of each other.  Two ensembles behind one URL would grant a lock twice.
 */
static void
find_strangers(struct probe *p, const struct zk_url *url, struct node_facts *facts)
{
	struct session s;
	int i, first = 0;

	while (first < url->servers && !facts[first].up)
		first++;
	p->limit = zk_limit(p->backend, CLOCK_NEVER, -1);
	for (i = first + 1; i < url->servers; i++) {
		if (!facts[i].up)
			continue;
		p->url.server[0] = url->server[first];
		session_init(&s, &p->url, &p->backend->log);
		if (session_create(&s, 1, &p->limit) == ZK_OK) {
			p->url.server[0] = url->server[i];
			session_begin(&s, s.length_ms);
			facts[i].stranger = session_attach(&s, &p->limit) == ZK_EXPIRED;
		}
		zk_end_session(p->backend, &s);
	}
}

int
zk_probe(struct backend *backend, bool all, struct node_facts *facts)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	const int64_t until = clock_add(clock_now_us(), z->node_timeout_us);
	struct probe *p = malloc(sizeof(*p));
	int64_t now;
	int i;

	for (i = 0; i < z->url.servers; i++) {
		forget(&facts[i]);
		facts[i].name = z->server_name[i];
		(void)zk_url_server(&z->url, i, z->server_name[i], sizeof(z->server_name[i]));
		if (p == NULL)
			continue;
		*p = (struct probe){ .backend = z, .url = z->url, .facts = &facts[i] };
		p->url.server[0] = z->url.server[i];
		p->url.servers = 1;
		now = clock_now_us();
		p->limit = zk_limit(z, all ? CLOCK_NEVER : now + (until - now) / (z->url.servers - i), -1);
		probe_server(p, all);
	}
	if (p != NULL && all)
		find_strangers(p, &z->url, facts);
	free(p);
	return z->url.servers;
}
