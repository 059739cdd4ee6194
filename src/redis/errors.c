/* SPDX-License-Identifier: MIT */
#include "redis/errors.h"

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

/* Redis before 7.0 wraps the errors of commands inside scripts, so the code may be anywhere in the text. */
static const struct refusal {
	const char *code;
	bool denied;
	const char *sentence; /* NULL: use the server's own text */
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
error_set(struct node_error *error, bool denied, const char *sentence)
{
	error->is = true;
	error->denied = denied;
	error->local = error->guarded = error->moved = false;
	error->duplicate = 0;
	reason_set(&error->reason, "%s", sentence);
}

void
error_set_guarded(struct node_error *error, int64_t up_s, int64_t guard_s)
{
	char up[32], left[32], sentence[200];

	duration_show(up_s * 1000, up, sizeof(up));
	duration_show((guard_s - up_s) * 1000, left, sizeof(left));
	(void)snprintf(sentence, sizeof(sentence),
	    "it started %s ago and grants nothing for another %s (--restart-guard)", up, left);
	error_set(error, false, sentence);
	error->guarded = true;
	error->left_ms = (guard_s - up_s) * 1000;
}

void
error_clear(struct node_error *error, int nodes)
{
	int i;

	for (i = 0; i < nodes; i++)
		error[i].is = error[i].denied = error[i].local = error[i].guarded = error[i].moved = false;
}

/*
 * Parse "... has no permissions to run the 'scan' command", in which the server names the command that its ACL refuses.
 */
static bool
error_of_command(const char *text, struct node_error *error)
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
	error_set(error, true, sentence);
	return true;
}

/* NULL: not a known error. */
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
error_set_error(struct node_error *error, const char *text)
{
	const struct refusal *refusal = find_refusal(text);
	char shown[300];

	if (error_of_command(text, error))
		return;
	if (refusal != NULL && refusal->sentence != NULL)
		error_set(error, refusal->denied, refusal->sentence);
	else
		error_set(error, refusal != NULL && refusal->denied, token_show_text(text, shown, sizeof(shown)));
	error->moved = refusal != NULL && strcmp(refusal->code, "MOVED") == 0;
}

void
error_set_unexpected(struct node_error *error)
{
	error_set(error, false, "this is no Redis server (it answered something else than was asked)");
}

void
error_set_endless(struct node_error *error)
{
	error_set(error, false, "its SCAN comes to no end");
}

void
error_add_guarded(const struct nodes *f, const struct node_error error[NODES_MAX], struct err *err)
{
	char suffix[sizeof(err->text)];
	int i;

	for (i = 0; i < f->count; i++) {
		if (!error[i].is || !error[i].guarded)
			continue;
		(void)snprintf(suffix, sizeof(suffix), "%s: %s", node_name(f->node[i]), error[i].reason.text);
		err_suffix(err, suffix);
	}
}

/* -- No quorum -------------------------------------------------------------- */

static const char *
error_text(const struct nodes *f, int node, const struct node_error *error, bool closed)
{
	/* Redirections of a Cluster that is configured as one have been followed up to the limit. */
	if (error->is && error->moved && strstr(node_name(f->node[node]), "+cluster://") != NULL)
		return "its servers send us from one to the other, and none takes the lock";
	if (error->is)
		return error->reason.text;
	return closed ? node_waits_for(f->node[node]) : "not waited for";
}

enum status
error_no_quorum(const struct nodes *f, const enum vote vote[NODES_MAX], const struct node_error error[NODES_MAX],
    bool closed, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	int i, voted = 0, denied = 0, local = 0, guarded = 0;

	for (i = 0; i < f->count; i++) {
		voted += vote[i] == VOTE_YES || vote[i] == VOTE_NO;
		denied += error[i].is && error[i].denied;
		local += error[i].is && error[i].local;
		guarded += error[i].is && error[i].guarded;
	}
	if (f->count == 1)
		text_addf(&text, "%s: %s", node_name(f->node[0]), error_text(f, 0, &error[0], closed));
	else {
		text_addf(&text, "no quorum: %d of %d nodes %s, %d are needed", voted, f->count,
		    guarded > 0 ? "voted" : "answered", quorum_majority(f->count));
		for (i = 0; i < f->count; i++) {
			if (vote[i] != VOTE_YES && vote[i] != VOTE_NO)
				text_addf(&text, "; %s: %s", node_name(f->node[i]),
				    error_text(f, i, &error[i], closed));
		}
	}
	if (denied > f->count - quorum_majority(f->count))
		return ST_DENIED;
	return local > 0 && voted + local >= quorum_majority(f->count) ? ST_SYSTEM : ST_NO_QUORUM;
}
