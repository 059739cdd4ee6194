/* SPDX-License-Identifier: MIT */
#include "redis/fault.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "lock/token.h"

/* -- Errors of the server --------------------------------------------------- */

#define NO_AUTH "a password was given, but this server knows no AUTH"
#define WANTS_PASSWORD "it wants a password; give it in DLOCK_PASSWORD, --password-file or the URL"
#define NO_RIGHT "its ACL gives us no permission "
#define SEE_RIGHTS "; see Rights in Redis in dlock(1)"

/* Redis before 7.0 wraps the errors of commands inside scripts, so the code is looked for in all of the text. */
static const struct refusal {
	const char *code;
	bool denied;
	const char *sentence; /* NULL: the server's own words say it best */
} refusals[] = {
	{ "WRONGPASS", true, "wrong user or password" },
	{ "invalid password", true, "wrong password" },
	{ "unknown command 'AUTH'", true, NO_AUTH },
	{ "unknown command `AUTH`", true, NO_AUTH },
	{ "without any password configured", true, "a password was given, but this server has none" },
	{ "NOAUTH", true, WANTS_PASSWORD },
	{ "unauthenticated", true, WANTS_PASSWORD },
	{ "DENIED", true, "its protected mode refuses remote clients; see redis.conf" },
	{ "wants a certificate from us", true, NULL },
	{ "not accept our certificate", true, NULL },
	{ "of the keys", true, NO_RIGHT "on the keys of this lock" SEE_RIGHTS },
	{ "access a key", true, NO_RIGHT "on the keys of this lock" SEE_RIGHTS },
	{ "can't run this command", true, NO_RIGHT "for a command that dlock's scripts call" SEE_RIGHTS },
	{ "NOPERM", true, NULL },
	{ "ACL failure", true, NULL },
	{ "NOINFO", false, "it has no INFO, which --restart-guard needs; --restart-guard 0 does without" },
	{ "LOADING", false, "it is still loading its data" },
	{ "READONLY", false, "it is a read-only replica; name the master" },
	{ "MASTERDOWN", false, "it is a replica that lost its master; name the master" },
	{ "NOREPLICAS", false, "it refuses writes: too few replicas (min-replicas-to-write)" },
	{ "MISCONF", false, "it refuses writes: it can't save to its disk" },
	{ "WRONGTYPE", false, "the key beside KEY in which dlock keeps its facts is of another type" },
	{ "OOM", false, "its memory is full (maxmemory)" },
	{ "CLUSTERDOWN", false, "its Cluster is down: slots have no master" },
	{ "ASK ", false, "the key's slot is moving to another server of the Cluster" },
	{ "cluster support disabled", false, "this is no Redis Cluster; use redis://" },
	{ "CROSSSLOT", false, "it is a server of a Redis Cluster with other keys; use redis+cluster://" },
	{ "MOVED", false,
	    "it is a server of a Redis Cluster, and the lock belongs to another one; use redis+cluster://" },
	{ "BUSY", false, "it is busy with a script that takes too long" },
	{ "max number of clients", false, "it has too many clients (maxclients)" },
};

void
fault_set(struct fault *fault, bool denied, const char *sentence)
{
	fault->is = true;
	fault->denied = denied;
	fault->local = fault->guarded = fault->moved = false;
	fault->twin = 0;
	(void)err_set(&fault->err, ST_NO_QUORUM, "%s", sentence);
}

void
fault_set_guarded(struct fault *fault, int64_t up_s, int64_t guard_s)
{
	char up[32], left[32], sentence[200];

	duration_show(up_s * 1000, up, sizeof(up));
	duration_show((guard_s - up_s) * 1000, left, sizeof(left));
	(void)snprintf(sentence, sizeof(sentence),
	    "it started %s ago and grants nothing for another %s (--restart-guard)", up, left);
	fault_set(fault, false, sentence);
	fault->guarded = true;
	fault->left_ms = (guard_s - up_s) * 1000;
}

void
fault_clear(struct fault *fault, int nodes)
{
	int i;

	for (i = 0; i < nodes; i++)
		fault[i].is = fault[i].denied = fault[i].local = fault[i].guarded = fault[i].moved = false;
}

/* "... has no permissions to run the 'scan' command": the server says which command its ACL refuses. */
static bool
fault_of_command(const char *text, struct fault *fault)
{
	const char *from = strstr(text, "run the '"), *end;
	char sentence[200];

	if (from == NULL)
		return false;
	from += strlen("run the '");
	end = from + strspn(from, "abcdefghijklmnopqrstuvwxyz|-");
	if (end == from || end - from > 40 || strncmp(end, "' command", 9) != 0)
		return false;
	(void)snprintf(sentence, sizeof(sentence), NO_RIGHT "for the command %.*s" SEE_RIGHTS, (int)(end - from), from);
	fault_set(fault, true, sentence);
	return true;
}

/* NULL: none that is known. */
static const struct refusal *
find_refusal(const char *text)
{
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (strstr(text, refusals[i].code) != NULL)
			return &refusals[i];
	}
	return NULL;
}

void
fault_set_error(struct fault *fault, const char *text)
{
	const struct refusal *refusal = find_refusal(text);
	char shown[300];

	if (fault_of_command(text, fault))
		return;
	if (refusal != NULL && refusal->sentence != NULL)
		fault_set(fault, refusal->denied, refusal->sentence);
	else
		fault_set(fault, refusal != NULL && refusal->denied, token_show_text(text, shown, sizeof(shown)));
	fault->moved = refusal != NULL && strcmp(refusal->code, "MOVED") == 0;
}

void
fault_set_unexpected(struct fault *fault)
{
	fault_set(fault, false, "this is no Redis server (it answered something else than was asked)");
}

void
fault_set_endless(struct fault *fault)
{
	fault_set(fault, false, "its SCAN comes to no end");
}

void
fault_add_guarded(const struct fleet *f, const struct fault fault[NODES_MAX], struct err *err)
{
	char suffix[sizeof(err->text)];
	int i;

	for (i = 0; i < f->nodes; i++) {
		if (!fault[i].is || !fault[i].guarded)
			continue;
		(void)snprintf(suffix, sizeof(suffix), "%s: %s", node_name(f->node[i]), fault[i].err.text);
		err_suffix(err, suffix);
	}
}

/* -- No quorum -------------------------------------------------------------- */

static const char *
fault_text(const struct fleet *f, int node, const struct fault *fault, bool closed)
{
	/* A Cluster that is named as one has been followed as far as it makes sense. */
	if (fault->is && fault->moved && strstr(node_name(f->node[node]), "+cluster://") != NULL)
		return "its servers send us from one to the other, and none takes the lock";
	if (fault->is)
		return fault->err.text;
	return closed ? node_silence(f->node[node]) : "not waited for";
}

enum status
fault_no_quorum(const struct fleet *f, const enum vote vote[NODES_MAX], const struct fault fault[NODES_MAX],
    bool closed, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	int i, voted = 0, denied = 0, local = 0, guarded = 0;

	for (i = 0; i < f->nodes; i++) {
		voted += vote[i] == VOTE_YES || vote[i] == VOTE_NO;
		denied += fault[i].is && fault[i].denied;
		local += fault[i].is && fault[i].local;
		guarded += fault[i].is && fault[i].guarded;
	}
	if (f->nodes == 1)
		text_addf(&text, "%s: %s", node_name(f->node[0]), fault_text(f, 0, &fault[0], closed));
	else {
		text_addf(&text, "no quorum: %d of %d nodes %s, %d are needed", voted, f->nodes,
		    guarded > 0 ? "voted" : "answered", quorum_majority(f->nodes));
		for (i = 0; i < f->nodes; i++) {
			if (vote[i] != VOTE_YES && vote[i] != VOTE_NO)
				text_addf(&text, "; %s: %s", node_name(f->node[i]),
				    fault_text(f, i, &fault[i], closed));
		}
	}
	if (denied > f->nodes - quorum_majority(f->nodes))
		return ST_DENIED;
	return local > 0 && voted + local >= quorum_majority(f->nodes) ? ST_SYSTEM : ST_NO_QUORUM;
}
