/* SPDX-License-Identifier: MIT */
#include "redis/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "lock/token.h"

/* -- Errors of the server --------------------------------------------------- */

#define NO_AUTH "a password was given, but this server does not support AUTH"
#define WANTS_PASSWORD "it requires a password; set it in DLOCK_PASSWORD, --password-file or the URL"
#define NO_EVAL "it has no EVAL, which dlock needs; see rename-command in redis.conf"
#define NO_RIGHT "its ACL does not permit "
#define SEE_RIGHTS "; see RIGHTS IN REDIS in dlock-nodes(7)"
#define NO_KEYS NO_RIGHT "access to the keys of this lock" SEE_RIGHTS

/* Redis before 7.0 wraps the errors of commands inside scripts, so the code may be anywhere in the text. */
static const struct refusal {
	const char *code;
	bool denied;
	const char *sentence; /* NULL: use the server's own text */
} refusals[] = {
	{ "WRONGPASS", true, "wrong user or password" }, { "invalid password", true, "wrong password" },
	{ "unknown command 'AUTH'", true, NO_AUTH }, { "unknown command `AUTH`", true, NO_AUTH },
	{ "without any password configured", true, "a password was given, but this server has none" },
	{ "unknown command 'EVAL'", false, NO_EVAL }, { "unknown command `EVAL`", false, NO_EVAL },
	{ "NOAUTH", true, WANTS_PASSWORD }, { "unauthenticated", true, WANTS_PASSWORD },
	{ "DENIED", true, "its protected mode refuses remote clients; see redis.conf" },
	{ "requires a client certificate", true, NULL }, { "not accept the client certificate", true, NULL },
	{ "of the keys", true, NO_KEYS }, { "access a key", true, NO_KEYS },
	{ "can't run this command", true, NO_RIGHT "a command that the scripts of dlock call" SEE_RIGHTS },
	{ "NOPERM", true, NULL }, { "ACL failure", true, NULL },
	{ "NOINFO", false, "it has no INFO, which --restart-guard needs; use --restart-guard 0" },
	{ "LOADING", false, "it is still loading its data" },
	{ "READONLY", false, "it is a read-only replica; name the primary" },
	{ "MASTERDOWN", false, "it is a replica that lost its primary; name the primary" },
	{ "NOREPLICAS", false, "it refuses writes: too few replicas (min-replicas-to-write)" },
	{ "MISCONF", false, "it refuses writes: it can't save to its disk" },
	{ "WRONGTYPE", false, "the key of the metadata of the lock has another type" },
	{ "OOM", false, "its memory is full (maxmemory)" },
	{ "CLUSTERDOWN", false, "its Cluster is down: slots have no primary" },
	{ "ASK ", false, "the key's slot is moving to another server of the Cluster" },
	{ "cluster support disabled", false, "this is not a Redis Cluster; use redis://" },
	{ "CROSSSLOT", false, "it is a server of a Redis Cluster with other keys; use redis+cluster://" },
	{ "MOVED", false,
	    "it is a server of a Redis Cluster, and the lock belongs to another one; use redis+cluster://" },
	{ "BUSY", false, "it is busy with a script that takes too long" },
	{ "max number of clients", false, "it has too many clients (maxclients)" },
	{ "", false, NULL }, /* any other error */
};

void
answer_fail(struct node_error *error, bool denied, const char *sentence)
{
	*error = (struct node_error){ .duplicate = 0 };
	failure_set(&error->why, denied ? DENIED : FAILED, "%s", sentence);
}

/* The server has been up for up_s seconds, and its vote counts only from guard_s on. */
static void
fail_guarded(struct node_error *error, int64_t up_s, int64_t guard_s)
{
	char up[32], left[32];

	answer_fail(error, false, "");
	error->guarded = true;
	error->left_ms = (guard_s - up_s) * 1000;
	duration_show(up_s * 1000, up, sizeof(up));
	duration_show(error->left_ms, left, sizeof(left));
	reason_set(&error->why.reason, "it started %s ago and grants nothing for another %s (--restart-guard)", up,
	    left);
}

/* Translate an error reply of a server, which may be any text. */
static void
fail_by_error(struct node_error *error, const char *text)
{
	const char *command = strstr(text, "run the '");
	const struct refusal *refusal = refusals;
	char sentence[300];
	size_t length = 0;

	/* "... has no permissions to run the 'scan' command": it names the command that its ACL refuses. */
	if (command != NULL) {
		command += strlen("run the '");
		length = strspn(command, "abcdefghijklmnopqrstuvwxyz|-");
	}
	if (length > 0 && length <= 40 && strncmp(command + length, "' command", 9) == 0) {
		answer_fail(error, true, "");
		reason_set(&error->why.reason, NO_RIGHT "the command %.*s" SEE_RIGHTS, (int)length, command);
		return;
	}
	while (strstr(text, refusal->code) == NULL)
		refusal++;
	answer_fail(error, refusal->denied,
	    refusal->sentence != NULL ? refusal->sentence : text_quote(text, sentence, sizeof(sentence)));
	error->moved = strcmp(refusal->code, "MOVED") == 0;
	error->of_keys = strcmp(error->why.reason.text, NO_KEYS) == 0;
}

void
answer_fail_unexpected(struct node_error *error)
{
	answer_fail(error, false, "this is not a Redis server (unexpected reply)");
}

/* -- Replies ---------------------------------------------------------------- */

bool
answer_is_reply(const struct result *d, struct node_error *error)
{
	*error = (struct node_error){ .duplicate = 0 };
	if (d->reply != NULL && reply_kind(d->reply) != REPLY_ERROR)
		return true;
	if (d->reply != NULL || d->failure.kind == DENIED)
		fail_by_error(error, d->reply != NULL ? reply_text(d->reply) : d->failure.reason.text);
	else
		failure_set(&error->why, d->failure.kind, "%s", d->failure.reason.text);
	return false;
}

/* -- Replies of the scripts ------------------------------------------------- */

/* 35,000 years in milliseconds.  Redis accepts longer expiry times than int64_t can hold in microseconds. */
#define MOST_MS ((int64_t)1 << 50)

/* The year 2255 in microseconds.  The scripts calculate in doubles, which are not exact for larger integers. */
#define COUNT_MOST ((int64_t)1 << 53)

/*
 * A duration in a range that is safe for arithmetic, whatever the server sent; if it is not known, or has no end, that.
 */
static int64_t
read_ms(const struct reply *list, size_t index, int64_t unknown)
{
	const int64_t ms = reply_integer(reply_item(list, index));

	return ms < 0 ? unknown : ms < MOST_MS ? ms : MOST_MS;
}

/* A fence, a count, or a time in milliseconds since 1970; 0 if it is missing or not plausible. */
static int64_t
read_count(const struct reply *list, size_t index)
{
	const int64_t n = reply_integer(reply_item(list, index));

	return n > 0 && n < COUNT_MOST ? n : 0;
}

/* -- Other clients ---------------------------------------------------------- */

#define HEX "0123456789abcdef"
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

void
answer_guess_client(struct holder *h)
{
	static const char redisson[] = "########-####-####-####-############:";
	const char *const t = h->token, *const thread = t + sizeof(redisson) - 1, *known = "";
	const size_t length = strlen(t);

	if (strcmp(h->type, "hash") == 0 && text_begins_as(t, length, redisson) && thread[0] != '\0' &&
	    strspn(thread, "0123456789") == strlen(thread)) {
		(void)snprintf(h->client, CLIENT_SIZE, "Redisson, thread %.20s", thread);
		return;
	}
	/* A UUID as from uuid1() of Python: the version is 1, and the first bits of the variant are 10. */
	if (!h->other_type && length == 32 && strspn(t, HEX) == 32)
		known = t[12] == '1' && strchr("89ab", t[16]) != NULL ? "redis-py" : "node-redlock";
	else if (!h->other_type && length == 24 && strspn(t, BASE64) == 22 && strcmp(t + 22, "==") == 0)
		known = "redsync";
	(void)snprintf(h->client, CLIENT_SIZE, h->other_type ? "a %s" : "%s", h->other_type ? h->type : known);
}

/* -- Holders ---------------------------------------------------------------- */

bool
answer_holder(const struct reply *list, struct holder *h)
{
	const char *const kept = reply_text(reply_item(list, 12));
	const bool handed_over = reply_integer(reply_item(list, 3)) == 1;

	if (reply_items(list) < 12)
		return false;
	(void)snprintf(h->token, sizeof(h->token), "%s", reply_text(reply_item(list, 1)));
	(void)snprintf(h->owner, sizeof(h->owner), "%s", reply_text(reply_item(list, 4)));
	(void)snprintf(h->label, sizeof(h->label), "%s", reply_text(reply_item(list, 5)));
	(void)text_show(reply_text(reply_item(list, 9)), h->type, sizeof(h->type)); /* a server may send any text */
	h->left_ms = read_ms(list, 2, -1);
	h->held_ms = read_ms(list, 6, -1);
	h->fence = read_count(list, 7);
	h->waiting = read_count(list, 8);
	h->other_type = strcmp(h->type, "string") != 0;
	answer_guess_client(h);
	h->state = strcmp(h->type, "none") == 0 ? LOCK_FREE
	    : h->held_ms < 0			? LOCK_OTHER_CLIENT
	    : sscanf(kept, "%15" SCNd64 " %15[a-z-]", &h->ended_ms, h->kept_by) == 2 && h->ended_ms >= 0 ? LOCK_KEPT
	    : handed_over										 ? LOCK_HANDOVER
	    : token_valid(h->token) && token_shared(h->token)						 ? LOCK_SHARED
													 : LOCK_HELD;
	return true;
}

int64_t
answer_before(const struct reply *list)
{
	return read_count(list, 11);
}

int64_t
answer_crowd(const struct reply *list)
{
	const int64_t ticket = reply_integer(reply_item(list, 10));

	return ticket < 0 && ticket > -COUNT_MOST ? -ticket : 0;
}

int64_t
answer_guard_s(const struct acquire_args *args)
{
	const int64_t s = args->restart_guard_ms > 0 ? (args->restart_guard_ms + 999) / 1000 + 1 : 0;

	return args->guard_if_known ? -s : s;
}

static void
give_way(struct node_error *error, const struct reply *to)
{
	char owner[100];

	error->gives_way = true;
	reason_set(&error->why.reason, "gives way to a newer dlock run --replace, by %s",
	    text_quote(reply_text(to), owner, sizeof(owner)));
}

struct attempt_answer
answer_acquire(const struct result *d, const struct acquire_args *args, struct node_error *error)
{
	struct attempt_answer a = { .vote = VOTE_FAULT, .harmless = d->reply == NULL && !d->failure.sent };
	const size_t items = reply_items(d->reply);
	int64_t first, second;
	bool granted;

	if (!answer_is_reply(d, error))
		return a;
	first = reply_integer(reply_item(d->reply, 0));
	second = read_count(d->reply, 1);
	granted = first == 1 && (items == 2 || items == 3);
	if (granted && d->failure.kind != NO_FAILURE)
		fail_by_error(error, d->failure.reason.text);
	else if (granted && second == 0) /* an error, so that it is rolled back */
		answer_fail(error, false,
		    "its fence for this lock is not a time of day; delete the metadata of the lock");
	else if (granted) {
		a.vote = VOTE_YES;
		a.fence = second;
		if (items == 3)
			give_way(error, reply_item(d->reply, 2));
	} else if (reply_items(d->reply) == 2 && first == -1) {
		a.harmless = true;
		fail_guarded(error, read_ms(d->reply, 1, 0), llabs(answer_guard_s(args)));
	} else if (reply_items(d->reply) == 2 && first == -2) {
		answer_fail(error, false, "it is the same server as another node; a server has one vote");
		error->duplicate = (int)second;
	} else if (reply_items(d->reply) == 2 && first == -3) {
		a.harmless = true;
		give_way(error, reply_item(d->reply, 1));
	} else if (first == 0 && answer_holder(d->reply, &a.holder)) {
		a.vote = VOTE_NO;
		a.ticket = read_count(d->reply, 10);
		a.before = answer_before(d->reply);
		a.crowd = answer_crowd(d->reply);
		a.writers = !args->shared || reply_items(d->reply) < 15 ? -1 : read_count(d->reply, 13);
		a.holder.writer_waits = a.writers > 0;
		a.holder.holds = read_count(d->reply, 14);
		a.number = args->replace ? read_count(d->reply, 13) : 0;
	} else
		answer_fail_unexpected(error);
	return a;
}

int
answer_number(const struct result *d, struct lock_fields *fields, struct node_error *error)
{
	const struct reply *number = d->reply;
	int64_t n;

	*fields = (struct lock_fields){ .holds = "", .asked_by = "" };
	if (!answer_is_reply(d, error))
		return -2;
	if (reply_items(d->reply) >= 5) {
		number = reply_item(d->reply, 0);
		fields->server_ms = read_count(d->reply, 1);
		fields->ttl_ms = read_ms(d->reply, 2, 0);
		fields->fence = read_count(d->reply, 3);
		fields->left_ms = read_ms(d->reply, 5, 0);
		fields->holds = reply_text(reply_item(d->reply, 4));
		fields->asked_by = reply_text(reply_item(d->reply, 5));
	}
	n = reply_integer(number);
	if (number != d->reply && n == -2)
		fail_guarded(error, read_ms(d->reply, 1, 0), fields->ttl_ms / 1000);
	else if (reply_kind(number) != REPLY_INTEGER || n < -1 || n > 2)
		answer_fail_unexpected(error);
	else if (n == 1 && d->failure.kind != NO_FAILURE)
		fail_by_error(error, d->failure.reason.text);
	else
		return (int)n;
	return -2;
}

bool
answer_inspect(const struct reply *reply, struct holder *holder, struct broken *broken)
{
	const char *const text = reply_text(reply_item(reply, 13)); /* "MS_AGO TOKEN OWNER", or "" */
	int at = 0;

	if (!answer_holder(reply, holder))
		return false;
	holder->holds = read_count(reply, 10);
	holder->ttl_ms = read_ms(reply, 11, 0);
	if (sscanf(text, "%15" SCNd64 " %22[A-Za-z0-9_-] %n", &broken->ago_ms, broken->token, &at) == 2 && at > 0 &&
	    broken->ago_ms >= 0 && token_valid(broken->token))
		(void)snprintf(broken->owner, sizeof(broken->owner), "%s", text + at);
	else
		broken->token[0] = '\0';
	return true;
}
