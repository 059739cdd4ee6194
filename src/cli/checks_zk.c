/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "cli/checks.h"
#include "cli/findings.h"

/* -- One server ------------------------------------------------------------- */

static void
judge_version(struct findings *r, const struct node_facts *f)
{
	if (f->version[0] == '\0')
		finding_add(r, GRADE_WARN, "allow the command srvr (4lw.commands.whitelist)", "unknown");
	else
		finding_add(r, GRADE_OK, "", "%s %s", f->software, f->version);
}

static void
judge_role(struct findings *r, const struct node_facts *f)
{
	if (f->role[0] == '\0')
		finding_add(r, GRADE_WARN, "allow the command srvr (4lw.commands.whitelist)", "unknown");
	else if (strcmp(f->role, "standalone") == 0)
		finding_add(r, GRADE_WARN, "use three or five servers: locks need this one server",
		    "standalone, no ensemble");
	else
		finding_add(r, GRADE_OK, "", "%s", f->role);
}

/* Which lengths of a lease does it grant? */
static void
judge_leases(struct findings *r, const struct node_facts *f)
{
	const int64_t ttl_ms = r->terms->ttl_ms;
	char least[32], most[32];
	const bool fits = ttl_ms >= f->ttl_least_ms && ttl_ms <= f->ttl_most_ms;

	(void)finding_show_ms(f->ttl_least_ms, least, sizeof(least));
	(void)finding_show_ms(f->ttl_most_ms, most, sizeof(most));
	finding_add(r, fits ? GRADE_OK : GRADE_WARN,
	    fits ? "" : "use another --ttl, or change minSessionTimeout and maxSessionTimeout", "from %s to %s", least,
	    most);
}

static const struct check checks[] = { { "answer", finding_answer }, { "reach", finding_reach },
	{ "version", judge_version }, { "role", judge_role }, { "leases", judge_leases } };

/* -- The ensemble ----------------------------------------------------------- */

static void
judge_members(struct findings *r, const struct node_facts *f, int servers)
{
	int64_t members = FACT_UNKNOWN;
	int i, first = -1, stranger = -1;

	r->check = "ensemble";
	for (i = 0; i < servers; i++) {
		if (!f[i].up)
			continue;
		first = first < 0 ? i : first;
		stranger = stranger < 0 && f[i].stranger ? i : stranger;
		members = f[i].members > members ? f[i].members : members;
	}
	if (first < 0)
		return;
	if (stranger >= 0)
		finding_add(r, GRADE_WARN, "name the servers of one ensemble only: two ensembles grant a lock twice",
		    "%s does not know a session that %s made", f[stranger].name, f[first].name);
	else if (members < 0)
		finding_add(r, GRADE_WARN, "allow reading /zookeeper/config to this user", "unknown");
	else if (members <= 1)
		finding_add(r, GRADE_WARN, "use three or five servers", "one server");
	else if (members % 2 == 0)
		finding_add(r, GRADE_WARN, "use one more or one less: an even number tolerates no more failures",
		    "%" PRId64 " servers vote, of which %" PRId64 " must answer", members, members / 2 + 1);
	else if (servers < (int)(members / 2 + 1))
		finding_add(r, GRADE_WARN, "name at least half of the servers in the URL: dlock knows no others",
		    "%" PRId64 " servers vote, and the URL has %d", members, servers);
	else
		finding_add(r, GRADE_OK, "", "%" PRId64 " servers vote, of which %" PRId64 " must answer", members,
		    members / 2 + 1);
}

static void
judge_acl(struct findings *r, const struct node_facts *f, int servers)
{
	int i = 0;

	while (i < servers && !f[i].unguarded)
		i++;
	r->check = "acl";
	if (i < servers)
		finding_add(r, GRADE_WARN, "make the chroot by hand, with an ACL that lets only this user write",
		    "everybody may make the node of a KEY before this user does, and then break its locks");
}

static void
judge_leader(struct findings *r, const struct node_facts *f, int servers)
{
	int i, up = 0, looking = 0;

	r->check = "leader";
	for (i = 0; i < servers; i++) {
		up += f[i].up;
		looking += strcmp(f[i].role, "looking") == 0;
		if (strcmp(f[i].role, "leader") == 0) {
			finding_add(r, GRADE_OK, "", "%s", f[i].name);
			return;
		}
	}
	if (up == 0 && looking > 0)
		finding_add(r, GRADE_FAIL, "a majority of the servers must run and reach each other", "there is none");
}

size_t
checks_judge_zk(const struct checks_terms *terms, const struct node_facts *f, int nodes,
    struct finding found[FINDINGS_MAX])
{
	struct findings r = { .terms = terms, .next = found };
	int i;

	for (i = 0; i < nodes; i++)
		finding_judge(&r, &f[i], checks, sizeof(checks) / sizeof(checks[0]));
	r.node = NULL;
	judge_members(&r, f, nodes);
	judge_acl(&r, f, nodes);
	judge_leader(&r, f, nodes);
	for (i = 0; i < nodes && !f[i].up; i++)
		;
	r.check = "lock";
	if (i < nodes)
		finding_trial(&r, &f[i]);
	finding_tls(&r);
	return (size_t)(r.next - found);
}
