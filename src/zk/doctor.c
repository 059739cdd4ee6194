/* SPDX-License-Identifier: MIT */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "zk/backend.h"

#define NOT_REPORTED "the server does not report it"

enum {
	ROUNDS = 3 /* the shortest time of so many new connections is that of an answer */
};

/* The probe of one server. */
struct probe {
	struct zk_backend *backend;
	struct zk_url url; /* of this server alone */
	struct session session;
	struct probed *probed;
	struct zk_facts *facts; /* NULL: only whether it answers is asked */
	struct wait limit;
};

static const struct wait forever = { CLOCK_NEVER, -1 };

/* -- Asking ----------------------------------------------------------------- */

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
	struct zk_facts *const f = p->facts;
	char text[2048];

	p->limit = session_limit(&p->backend->session, &forever);
	session_ask(&p->session, "srvr", text, sizeof(text), &p->limit);
	find_word(text, "Zookeeper version: ", f->version, sizeof(f->version));
	find_word(text, "Mode: ", f->role, sizeof(f->role));
	if (strstr(text, "not currently serving") != NULL)
		(void)snprintf(f->role, sizeof(f->role), "looking");
}

/*
 * The facts that the ensemble shows: the number of servers that vote, as lines server.N=...:participant tell; and with
 * a password, if others can break the locks of this user.  The name of the KEY does not matter.
 */
static void
ask_ensemble(struct probe *p)
{
	struct session *const s = &p->session;
	const int32_t xid = session_put_path(s, WIRE_GET_DATA, "/zookeeper/config");
	char path[PATH_LOCK_SIZE];
	struct wire_text data;
	struct wire_in body;
	size_t i;

	if (session_call(s, xid, &body, &p->limit) == ZK_OK) {
		data = wire_get_text(&body);
		p->facts->members = 0;
		for (i = 0; !body.bad && i + 12 <= data.length; i++)
			p->facts->members += memcmp(data.bytes + i, ":participant", 12) == 0;
	}
	path_of_key(p->url.chroot, "dlock-doctor", path);
	p->facts->unguarded = p->url.user[0] != '\0' && zk_is_unguarded(s, path, &p->limit);
}

/* -- Sessions --------------------------------------------------------------- */

static enum zk_code
create(struct probe *p, int64_t length_ms)
{
	session_init(&p->session, &p->url, &p->backend->log);
	return session_create(&p->session, length_ms, &p->limit);
}

/*
 * Make a session of the least length, attach to it by new connections, as renewals do, and end it.  Then make one of
 * the greatest length.
 */
static enum zk_code
try_sessions(struct probe *p)
{
	struct session *const s = &p->session;
	int64_t least_us = INT64_MAX, began;
	enum zk_code code = create(p, 1);
	int i;

	if (p->facts != NULL)
		p->facts->ttl_least_ms = s->granted.length_ms;
	for (i = 0; i < ROUNDS && code == ZK_OK; i++) {
		began = clock_now_us();
		session_begin(s);
		code = session_send(s, &p->limit);
		least_us = clock_sooner(clock_now_us() - began, least_us);
	}
	p->probed->rtt_us = code == ZK_OK ? least_us : 0;
	if (code == ZK_OK && p->facts != NULL)
		ask_ensemble(p);
	p->probed->local = session_local(s);
	session_abandon(s);
	if (code != ZK_OK || p->facts == NULL)
		return code;
	code = create(p, INT32_MAX);
	p->facts->ttl_most_ms = s->granted.length_ms;
	session_abandon(s);
	return code;
}

static void
probe_server(struct probe *p)
{
	struct probed *const f = p->probed;
	const enum zk_code code = try_sessions(p);
	struct err err;
	char *hint;

	f->up = code == ZK_OK;
	if (f->up)
		return;
	f->reason = p->backend->session.tried.reason = p->session.tried.reason;
	f->denied = zk_error(p->backend, code, &err) == ST_DENIED;
	if (f->reason.text[0] == '\0')
		reason_set(&f->reason, "%.*s", (int)sizeof(f->reason.text) - 1, err.text);
	hint = strstr(f->reason.text, ": see dlock doctor");
	if (hint != NULL)
		*hint = '\0';
}

/*
 * The servers of one ensemble know the sessions of each other.  Two ensembles behind one URL would grant a lock twice.
 */
static void
find_strangers(struct probe *p, const struct zk_url *url, struct zk_facts *facts)
{
	int i, first = 0;

	while (first < url->servers && !facts[first].probed.up)
		first++;
	p->limit = session_limit(&p->backend->session, &forever);
	for (i = first + 1; i < url->servers; i++) {
		if (!facts[i].probed.up)
			continue;
		p->url.server[0] = url->server[first];
		if (create(p, 1) == ZK_OK) {
			p->url.server[0] = url->server[i];
			session_begin(&p->session);
			facts[i].stranger = session_send(&p->session, &p->limit) == ZK_EXPIRED;
		}
		session_abandon(&p->session);
	}
}

/* Ask all servers.  Either array may be NULL, but not both. */
static void
ask_all(struct zk_backend *z, struct probed *probed, struct zk_facts *facts)
{
	const int64_t until = clock_add(clock_now_us(), z->node_timeout_us);
	struct probe p = { .backend = z, .url = z->url };
	int64_t now;
	int i;

	p.url.servers = 1;
	for (i = 0; i < z->url.servers; i++) {
		p.url.server[0] = z->url.server[i];
		p.facts = facts != NULL ? &facts[i] : NULL;
		if (facts != NULL)
			facts[i] = (struct zk_facts){ .members = -1 };
		p.probed = facts != NULL ? &facts[i].probed : &probed[i];
		*p.probed = (struct probed){ .name = zk_url_server(&z->url, i, z->server_name[i]) };
		z->session.tried.server = i;
		now = clock_now_us();
		p.limit = session_limit(&z->session, &forever);
		if (facts == NULL)
			p.limit.until_us = now + (until - now) / (z->url.servers - i);
		probe_server(&p);
		if (facts != NULL)
			ask_srvr(&p);
	}
	if (facts != NULL)
		find_strangers(&p, &z->url, facts);
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
judge_members(struct findings *r, int64_t members)
{
	r->check = "ensemble";
	if (members < 0)
		finding_add(r, GRADE_UNKNOWN, "allow reading /zookeeper/config to this user", NOT_REPORTED);
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
	static const char whitelist[] = "allow the command srvr (4lw.commands.whitelist)";
	const struct zk_facts *server;
	bool version, role, alone, fits;
	char least[32], most[32];

	r->remedies = remedies;
	for (server = f; server < f + r->nodes; server++) {
		finding_answer(r, &server->probed);
		if (!server->probed.up)
			continue;
		version = server->version[0] != '\0';
		role = server->role[0] != '\0';
		alone = strcmp(server->role, "standalone") == 0;
		fits = r->ttl_ms >= server->ttl_least_ms && r->ttl_ms <= server->ttl_most_ms;
		r->check = "version";
		finding_add(r, version ? GRADE_OK : GRADE_UNKNOWN, whitelist, "%s%s", version ? "ZooKeeper " : "",
		    version ? server->version : NOT_REPORTED);
		r->check = "role";
		finding_add(r,
		    !role	? GRADE_UNKNOWN
			: alone ? GRADE_WARN
				: GRADE_OK,
		    alone ? "use three or five servers: locks need this one server" : whitelist, "%s%s",
		    role ? server->role : NOT_REPORTED, alone ? ", no ensemble" : "");
		r->check = "leases"; /* which lengths it grants */
		finding_add(r, fits ? GRADE_OK : GRADE_WARN,
		    "use another --ttl, or change minSessionTimeout and maxSessionTimeout", "from %s to %s",
		    finding_show_ms(server->ttl_least_ms, least, sizeof(least)),
		    finding_show_ms(server->ttl_most_ms, most, sizeof(most)));
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
