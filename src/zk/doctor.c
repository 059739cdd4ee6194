/* SPDX-License-Identifier: MIT */
#include "zk/doctor.h"

#include <inttypes.h>
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
	struct probed *probed;
	struct zk_facts *facts; /* NULL: only whether it answers is asked */
	struct wait limit;
	struct reason reason; /* why a session failed, without the name of the server */
};

static const struct wait forever = { CLOCK_NEVER, -1 };

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
try_session(struct probe *p)
{
	int64_t least_us = INT64_MAX, began;
	enum zk_code code;
	struct session s;
	int i;

	session_init(&s, &p->url, &p->backend->log);
	code = session_create(&s, 1, &p->limit);
	if (p->facts != NULL)
		p->facts->ttl_least_ms = s.length_ms;
	for (i = 0; i < ROUNDS && code == ZK_OK; i++) {
		began = clock_now_us();
		session_begin(&s, s.length_ms);
		code = session_send(&s, &p->limit);
		least_us = clock_sooner(clock_now_us() - began, least_us);
	}
	if (code == ZK_OK) {
		p->probed->rtt_us = least_us;
		if (p->facts != NULL)
			look_around(p, &s);
	}
	p->probed->local = session_local(&s);
	p->reason = *session_reason(&s);
	zk_end_session(p->backend, &s);
	return code;
}

static void
probe_server(struct probe *p)
{
	struct probed *const f = p->probed;
	struct err err;
	char *hint;
	enum zk_code code = try_session(p);

	if (code == ZK_OK && p->facts != NULL)
		code = try_length(p, INT32_MAX, &p->facts->ttl_most_ms);
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
	if (p->facts == NULL)
		return;
	p->limit = session_limit(&p->backend->session, &forever);
	ask_srvr(p);
}

/*
 * The servers of one ensemble know the sessions of each other.  Two ensembles behind one URL would grant a lock twice.
 */
static void
find_strangers(struct probe *p, const struct zk_url *url, struct zk_facts *facts)
{
	struct session s;
	int i, first = 0;

	while (first < url->servers && !facts[first].probed.up)
		first++;
	p->limit = session_limit(&p->backend->session, &forever);
	for (i = first + 1; i < url->servers; i++) {
		if (!facts[i].probed.up)
			continue;
		p->url.server[0] = url->server[first];
		session_init(&s, &p->url, &p->backend->log);
		if (session_create(&s, 1, &p->limit) == ZK_OK) {
			p->url.server[0] = url->server[i];
			session_begin(&s, s.length_ms);
			facts[i].stranger = session_send(&s, &p->limit) == ZK_EXPIRED;
		}
		zk_end_session(p->backend, &s);
	}
}

/* Ask all servers.  Either array may be NULL, but not both. */
static void
ask_all(struct zk_backend *z, struct probed *probed, struct zk_facts *facts)
{
	const int64_t until = clock_add(clock_now_us(), z->node_timeout_us);
	struct probe *p = calloc(1, sizeof(*p));
	struct probed *one;
	int64_t now;
	int i;

	for (i = 0; i < z->url.servers; i++) {
		if (facts != NULL)
			facts[i] = (struct zk_facts){ .members = -1 };
		one = facts != NULL ? &facts[i].probed : &probed[i];
		memset(one, 0, sizeof(*one));
		one->name = z->server_name[i];
		(void)zk_url_server(&z->url, i, z->server_name[i], sizeof(z->server_name[i]));
		if (p == NULL)
			continue;
		*p = (struct probe){ .backend = z, .url = z->url, .probed = one };
		p->facts = facts != NULL ? &facts[i] : NULL;
		p->url.server[0] = z->url.server[i];
		p->url.servers = 1;
		now = clock_now_us();
		p->limit = session_limit(&z->session, &forever);
		if (facts == NULL)
			p->limit.until_us = now + (until - now) / (z->url.servers - i);
		probe_server(p);
	}
	if (p != NULL && facts != NULL)
		find_strangers(p, &z->url, facts);
	free(p);
}

int
zk_probe(struct backend *backend, struct probed *probed)
{
	struct zk_backend *const z = (struct zk_backend *)backend;

	ask_all(z, probed, NULL);
	return z->url.servers;
}

/* -- The checks ------------------------------------------------------------- */

static void
judge_server(struct findings *r, const struct zk_facts *f)
{
	static const char whitelist[] = "allow the command srvr (4lw.commands.whitelist)";
	const bool fits = r->ttl_ms >= f->ttl_least_ms && r->ttl_ms <= f->ttl_most_ms;
	const bool alone = strcmp(f->role, "standalone") == 0;
	char least[32], most[32];

	r->check = "version";
	if (f->version[0] == '\0')
		finding_add(r, GRADE_WARN, whitelist, "unknown");
	else
		finding_add(r, GRADE_OK, "", "ZooKeeper %s", f->version);
	r->check = "role";
	if (f->role[0] == '\0')
		finding_add(r, GRADE_WARN, whitelist, "unknown");
	else
		finding_add(r, alone ? GRADE_WARN : GRADE_OK, "use three or five servers: locks need this one server",
		    "%s%s", f->role, alone ? ", no ensemble" : "");
	r->check = "leases"; /* which lengths it grants */
	finding_add(r, fits ? GRADE_OK : GRADE_WARN,
	    "use another --ttl, or change minSessionTimeout and maxSessionTimeout", "from %s to %s",
	    finding_show_ms(f->ttl_least_ms, least, sizeof(least)),
	    finding_show_ms(f->ttl_most_ms, most, sizeof(most)));
}

static void
judge_members(struct findings *r, int64_t members)
{
	r->check = "ensemble";
	if (members < 0)
		finding_add(r, GRADE_WARN, "allow reading /zookeeper/config to this user", "unknown");
	else if (members <= 1)
		finding_add(r, GRADE_WARN, "use three or five servers", "one server");
	else if (members % 2 != 0 && r->nodes < (int)(members / 2 + 1))
		finding_add(r, GRADE_WARN, "name at least half of the servers in the URL: dlock knows no others",
		    "%" PRId64 " servers vote, and the URL has %d", members, r->nodes);
	else
		finding_add(r, members % 2 == 0 ? GRADE_WARN : GRADE_OK,
		    "use one more or one less: an even number tolerates no more failures",
		    "%" PRId64 " servers vote, of which %" PRId64 " must answer", members, members / 2 + 1);
}

static void
judge_ensemble(struct findings *r, const struct zk_facts *f)
{
	int i, first = -1, stranger = -1, unguarded = -1, leader = -1, looking = -1;
	int64_t members = -1;

	for (i = r->nodes - 1; i >= 0; i--) { /* the first of each kind */
		if (f[i].probed.up) {
			first = i;
			stranger = f[i].stranger ? i : stranger;
			members = f[i].members > members ? f[i].members : members;
		}
		unguarded = f[i].unguarded ? i : unguarded;
		looking = strcmp(f[i].role, "looking") == 0 ? i : looking;
		leader = strcmp(f[i].role, "leader") == 0 ? i : leader;
	}
	r->check = "ensemble";
	if (stranger >= 0)
		finding_add(r, GRADE_WARN, "name the servers of one ensemble only: two ensembles grant a lock twice",
		    "%s does not know a session that %s made", f[stranger].probed.name, f[first].probed.name);
	else if (first >= 0)
		judge_members(r, members);
	r->check = "acl";
	if (unguarded >= 0)
		finding_add(r, GRADE_WARN, "make the chroot by hand, with an ACL that lets only this user write",
		    "everybody may make the node of a KEY before this user does, and then break its locks");
	r->check = "leader";
	if (leader >= 0)
		finding_add(r, GRADE_OK, "", "%s", f[leader].probed.name);
	else if (first < 0 && looking >= 0)
		finding_add(r, GRADE_FAIL, "a majority of the servers must run and reach each other", "there is none");
	if (first >= 0)
		finding_trial(r, &f[first].probed);
}

void
zk_doctor_judge(const struct zk_facts *f, struct findings *r)
{
	static const struct remedy remedies[] = { { "its ACL",
						      "use the user and the password that the nodes were made with, or "
						      "another chroot" },
		{ NULL, NULL } };
	int i;

	r->remedies = remedies;
	for (i = 0; i < r->nodes; i++) {
		finding_answer(r, &f[i].probed);
		if (f[i].probed.up)
			judge_server(r, &f[i]);
	}
	r->node = NULL;
	judge_ensemble(r, f);
}

/* One server is enough: it is of no use without a majority of the others. */
enum status
zk_doctor(struct backend *backend, struct findings *r, struct err *err)
{
	struct zk_backend *const z = (struct zk_backend *)backend;
	struct zk_facts facts[ZK_SERVERS_MAX] = { { .members = -1 } };
	struct probed *p;
	int i;

	ask_all(z, NULL, facts);
	r->nodes = z->url.servers;
	for (i = 0; i < r->nodes - 1 && !facts[i].probed.up; i++)
		;
	p = &facts[i].probed;
	if (p->up) /* the ensemble keeps a lock as a whole */
		p->trial = r->try_lock(r->context, -1, &p->trial_err);
	zk_doctor_judge(facts, r);
	finding_tls(r, backend->tls);
	if (!p->up)
		return err_set(err, p->denied ? ST_DENIED : ST_NO_QUORUM, "cannot keep locks: no server answers");
	if (p->trial != ST_OK)
		return err_set(err, p->trial == ST_DENIED ? ST_DENIED : ST_NO_QUORUM,
		    "cannot keep locks: the test lock failed");
	return finding_outcome(r);
}
