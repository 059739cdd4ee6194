/* SPDX-License-Identifier: MIT */
#include "redis/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"

/* -- Errors of the server --------------------------------------------------- */

#define NO_AUTH "a password was given, but this server knows no AUTH"
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
	{ "NOAUTH", true, "it wants a password; give it in DLOCK_PASSWORD, --password-file or the URL" },
	{ "unauthenticated", true, "it wants a password; give it in DLOCK_PASSWORD, --password-file or the URL" },
	{ "DENIED", true, "its protected mode refuses remote clients; see redis.conf" },
	{ "wants a certificate from us", true, NULL },
	{ "not accept our certificate", true, NULL },
	{ "of the keys", true, NO_RIGHT "on the keys of this lock" SEE_RIGHTS },
	{ "access a key", true, NO_RIGHT "on the keys of this lock" SEE_RIGHTS },
	{ "can't run this command", true, NO_RIGHT "for a command that dlock's scripts call" SEE_RIGHTS },
	{ "NOPERM", true, NULL },
	{ "ACL failure", true, NULL },
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

static void
set_fault(struct fault *fault, bool denied, const char *text)
{
	fault->is = true;
	fault->denied = denied;
	fault->local = fault->guarded = fault->moved = false;
	(void)err_set(&fault->err, ST_NO_QUORUM, "%s", text);
}

void
answer_no_faults(struct fault *fault, int nodes)
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
	set_fault(fault, true, sentence);
	return true;
}

static void
fault_of_error(const char *text, struct fault *fault)
{
	char shown[300];
	size_t i;

	if (fault_of_command(text, fault))
		return;
	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (strstr(text, refusals[i].code) != NULL)
			break;
	}
	if (i < sizeof(refusals) / sizeof(refusals[0]) && refusals[i].sentence != NULL)
		set_fault(fault, refusals[i].denied, refusals[i].sentence);
	else
		set_fault(fault, i < sizeof(refusals) / sizeof(refusals[0]),
		    token_show_text(text, shown, sizeof(shown)));
	fault->moved = i < sizeof(refusals) / sizeof(refusals[0]) && strcmp(refusals[i].code, "MOVED") == 0;
}

bool
answer_is_reply(const struct delivery *d, struct fault *fault)
{
	fault->is = false;
	if (d->reply == NULL && !d->denied) {
		set_fault(fault, false, d->err.text);
		fault->local = d->local;
		return false;
	}
	if (d->reply == NULL || reply_kind(d->reply) == REPLY_ERROR) {
		fault_of_error(d->reply == NULL ? d->err.text : reply_text(d->reply), fault);
		return false;
	}
	return true;
}

void
answer_unexpected(struct fault *fault)
{
	set_fault(fault, false, "this is no Redis server (it answered something else than was asked)");
}

void
answer_endless(struct fault *fault)
{
	set_fault(fault, false, "its SCAN comes to no end");
}

/* -- Answers of the scripts ------------------------------------------------- */

/* 35,000 years of milliseconds; what Redis can be told to keep is longer than what can be counted in microseconds. */
#define MOST_MS ((int64_t)1 << 50)

/* In the year 2255.  From there on doubles, in which the scripts count, don't tell a number from the next one. */
#define COUNT_MOST ((int64_t)1 << 53)

/* A length of time with which we can reckon, whatever a server sends; -1 for one that is not known, or has no end. */
static int64_t
read_ms(const struct reply *list, size_t index)
{
	const int64_t ms = reply_integer(reply_item(list, index));

	return ms < 0 ? -1 : ms < MOST_MS ? ms : MOST_MS;
}

/* The same, 0 for those. */
static int64_t
known_ms(const struct reply *list, size_t index)
{
	const int64_t ms = read_ms(list, index);

	return ms > 0 ? ms : 0;
}

/* A fence, a number of things, or of milliseconds since 1970; 0 where there is none, or for what can't be believed. */
static int64_t
read_count(const struct reply *list, size_t index)
{
	const int64_t n = reply_integer(reply_item(list, index));

	return n > 0 && n < COUNT_MOST ? n : 0;
}

static void
copy_text(const struct reply *list, size_t index, char *to, size_t size)
{
	(void)snprintf(to, size, "%s", reply_text(reply_item(list, index)));
}

/* What acquire.lua and inspect.lua return of a lock that is held. */
static bool
read_holder(const struct reply *list, struct holder *h)
{
	if (reply_items(list) != 13)
		return false;
	copy_text(list, 1, h->token, sizeof(h->token));
	copy_text(list, 4, h->owner, sizeof(h->owner));
	copy_text(list, 5, h->label, sizeof(h->label));
	(void)text_show(reply_text(reply_item(list, 9)), h->type, sizeof(h->type)); /* a server may make one up */
	h->left_ms = read_ms(list, 2);
	h->handover = reply_integer(reply_item(list, 3)) == 1;
	h->held_ms = read_ms(list, 6);
	h->fence = read_count(list, 7);
	h->waiting = read_count(list, 8);
	h->foreign = h->held_ms < 0;
	h->foreign_type = strcmp(h->type, "string") != 0;
	return true;
}

/* A node that is up for so many seconds is trusted only once it has been up for longer than any lease lasts. */
static void
set_guarded(struct fault *fault, int64_t up_s, int64_t guard_ms)
{
	char up[32], left[32], sentence[200];

	duration_show(up_s * 1000, up, sizeof(up));
	duration_show(guard_ms + 1000 - up_s * 1000, left, sizeof(left));
	(void)snprintf(sentence, sizeof(sentence), "it started %s ago and grants nothing for %s more (--restart-guard)",
	    up, left);
	set_fault(fault, false, sentence);
	fault->guarded = true;
}

/* What was granted is undone where its fence is none. */
static void
read_grant(const struct reply *reply, struct attempt_answer *a, struct fault *fault)
{
	a->fence = read_count(reply, 1);
	if (a->fence > 0)
		a->vote = VOTE_YES;
	else
		set_fault(fault, false,
		    "its fence for this lock is no time of day; delete the key that dlock keeps beside KEY");
}

struct attempt_answer
answer_acquire(const struct delivery *d, const struct claim *claim, struct fault *fault)
{
	struct attempt_answer a = { .vote = VOTE_FAULT, .harmless = d->unsent };
	int64_t first;

	if (!answer_is_reply(d, fault))
		return a;
	first = reply_integer(reply_item(d->reply, 0));
	if (reply_items(d->reply) == 3 && first == 1 && d->unconfirmed)
		fault_of_error(d->err.text, fault);
	else if (reply_items(d->reply) == 3 && first == 1)
		read_grant(d->reply, &a, fault);
	else if (reply_items(d->reply) == 3 && first == -1) {
		a.harmless = true;
		set_guarded(fault, known_ms(d->reply, 1), claim->restart_guard_ms);
	} else if (first == 0 && read_holder(d->reply, &a.holder)) {
		a.vote = VOTE_NO;
		a.ticket = read_count(d->reply, 10);
		a.before = read_count(d->reply, 11);
	} else
		answer_unexpected(fault);
	return a;
}

const char *
answer_run_id(const struct delivery *d)
{
	return reply_text(reply_item(d->reply, reply_items(d->reply) - 1));
}

int
answer_number(const struct delivery *d, struct told *told, struct fault *fault)
{
	const struct reply *number = d->reply;
	int64_t n;

	*told = (struct told){ 0, 0, 0, "" };
	if (!answer_is_reply(d, fault))
		return -2;
	if (reply_items(d->reply) == 5) {
		number = reply_item(d->reply, 0);
		told->server_ms = read_count(d->reply, 1);
		told->ttl_ms = known_ms(d->reply, 2);
		told->fence = read_count(d->reply, 3);
		told->holds = reply_text(reply_item(d->reply, 4));
	}
	n = reply_integer(number);
	if (reply_kind(number) != REPLY_INTEGER || n < -1 || n > 2) {
		answer_unexpected(fault);
		return -2;
	}
	if (n == 1 && d->unconfirmed) {
		fault_of_error(d->err.text, fault);
		return -2;
	}
	return (int)n;
}

bool
answer_inspect(const struct delivery *d, bool *held, struct holder *holder, struct fault *fault)
{
	if (!answer_is_reply(d, fault))
		return false;
	if (!read_holder(d->reply, holder)) {
		answer_unexpected(fault);
		return false;
	}
	holder->holds = read_count(d->reply, 10);
	*held = strcmp(reply_text(reply_item(d->reply, 9)), "none") != 0;
	return true;
}

/* -- Sentences -------------------------------------------------------------- */

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
answer_no_quorum(const struct fleet *f, const enum vote vote[NODES_MAX], const struct fault fault[NODES_MAX],
    bool closed, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	int i, voted = 0, denied = 0, local = 0;

	for (i = 0; i < f->nodes; i++) {
		voted += vote[i] == VOTE_YES || vote[i] == VOTE_NO;
		denied += fault[i].is && fault[i].denied;
		local += fault[i].is && fault[i].local;
	}
	if (f->nodes == 1)
		text_addf(&text, "%s: %s", node_name(f->node[0]), fault_text(f, 0, &fault[0], closed));
	else {
		text_addf(&text, "no quorum: %d of %d nodes answered, %d are needed", voted, f->nodes,
		    quorum_majority(f->nodes));
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

enum status
answer_held(const struct holder *h, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	char left[32];

	text_addf(&text, "held by ");
	holder_describe(h,
	    h->foreign_type ? "a foreign lock type (the key is not a string)" : "a client that is not dlock", &text);
	if (h->left_ms < 0)
		text_addf(&text, ", without an end");
	else {
		duration_show(h->left_ms, left, sizeof(left));
		text_addf(&text, ", %s of its lease left", left);
	}
	return ST_HELD;
}
