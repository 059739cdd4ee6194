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
	{ "WRONGPASS", true, "wrong user or password" },
	{ "invalid password", true, "wrong password" },
	{ "unknown command 'AUTH'", true, NO_AUTH },
	{ "unknown command `AUTH`", true, NO_AUTH },
	{ "without any password configured", true, "a password was given, but this server has none" },
	{ "unknown command 'EVAL'", false, NO_EVAL },
	{ "unknown command `EVAL`", false, NO_EVAL },
	{ "NOAUTH", true, WANTS_PASSWORD },
	{ "unauthenticated", true, WANTS_PASSWORD },
	{ "DENIED", true, "its protected mode refuses remote clients; see redis.conf" },
	{ "requires a client certificate", true, NULL },
	{ "not accept the client certificate", true, NULL },
	{ "of the keys", true, NO_KEYS },
	{ "access a key", true, NO_KEYS },
	{ "can't run this command", true, NO_RIGHT "a command that the scripts of dlock call" SEE_RIGHTS },
	{ "NOPERM", true, NULL },
	{ "ACL failure", true, NULL },
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
	char up[32], left[32], sentence[200];

	duration_show(up_s * 1000, up, sizeof(up));
	duration_show((guard_s - up_s) * 1000, left, sizeof(left));
	(void)snprintf(sentence, sizeof(sentence),
	    "it started %s ago and grants nothing for another %s (--restart-guard)", up, left);
	answer_fail(error, false, sentence);
	error->guarded = true;
	error->left_ms = (guard_s - up_s) * 1000;
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
	(void)snprintf(sentence, sizeof(sentence), NO_RIGHT "the command %.*s" SEE_RIGHTS, (int)(end - from), from);
	answer_fail(error, true, sentence);
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

/* Translate an error reply of a server, which may be any text. */
static void
fail_by_error(struct node_error *error, const char *text)
{
	const struct refusal *refusal = find_refusal(text);
	char shown[300];

	if (error_of_command(text, error))
		return;
	if (refusal != NULL && refusal->sentence != NULL)
		answer_fail(error, refusal->denied, refusal->sentence);
	else
		answer_fail(error, refusal != NULL && refusal->denied, text_quote(text, shown, sizeof(shown)));
	error->moved = refusal != NULL && strcmp(refusal->code, "MOVED") == 0;
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
	if (d->reply == NULL && d->failure.kind != DENIED) {
		answer_fail(error, false, d->failure.reason.text);
		error->why.kind = d->failure.kind;
		return false;
	}
	if (d->reply == NULL || reply_kind(d->reply) == REPLY_ERROR) {
		fail_by_error(error, d->reply == NULL ? d->failure.reason.text : reply_text(d->reply));
		return false;
	}
	return true;
}

/* -- Replies of the scripts ------------------------------------------------- */

/* 35,000 years in milliseconds.  Redis accepts longer expiry times than int64_t can hold in microseconds. */
#define MOST_MS ((int64_t)1 << 50)

/* The year 2255 in microseconds.  The scripts calculate in doubles, which are not exact for larger integers. */
#define COUNT_MOST ((int64_t)1 << 53)

/* A duration in a range that is safe for arithmetic, whatever the server sent; -1 if it is not known, or has no end. */
static int64_t
read_ms(const struct reply *list, size_t index)
{
	const int64_t ms = reply_integer(reply_item(list, index));

	return ms < 0 ? -1 : ms < MOST_MS ? ms : MOST_MS;
}

/* Likewise, but 0 instead of -1. */
static int64_t
known_ms(const struct reply *list, size_t index)
{
	const int64_t ms = read_ms(list, index);

	return ms > 0 ? ms : 0;
}

/* A fence, a count, or a time in milliseconds since 1970; 0 if it is missing or not plausible. */
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

/* -- Other clients ---------------------------------------------------------- */

#define HEX "0123456789abcdef"
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/* A UUID as from uuid1() of Python: the version is 1, and the first bits of the variant are 10. */
static bool
is_time_uuid(const char *hex)
{
	return hex[12] == '1' && strchr("89ab", hex[16]) != NULL;
}

static const char *
client_of_string(const char *token)
{
	const size_t length = strlen(token);

	if (length == 32 && strspn(token, HEX) == 32)
		return is_time_uuid(token) ? "redis-py" : "node-redlock";
	if (length == 24 && strspn(token, BASE64) == 22 && strcmp(token + 22, "==") == 0)
		return "redsync";
	return NULL;
}

/* The name of the client that makes such tokens; NULL: unknown. */
static const char *
guess_client(const struct holder *h)
{
	static const char redisson[] = "########-####-####-####-############:";
	const char *thread = h->token + sizeof(redisson) - 1;

	if (strcmp(h->type, "hash") == 0 && text_begins_as(h->token, strlen(h->token), redisson) && thread[0] != '\0' &&
	    strspn(thread, "0123456789") == strlen(thread))
		return "Redisson";
	return strcmp(h->type, "string") == 0 ? client_of_string(h->token) : NULL;
}

void
answer_guess_client(struct holder *h)
{
	const char *const known = guess_client(h), *const thread = strrchr(h->token, ':');

	h->client[0] = '\0';
	if (known != NULL && h->other_type && thread != NULL)
		(void)snprintf(h->client, CLIENT_SIZE, "%s, thread %.20s", known, thread + 1);
	else if (known != NULL || h->other_type)
		(void)snprintf(h->client, CLIENT_SIZE, "%s%s", known != NULL ? "" : "a ",
		    known != NULL ? known : h->type);
}

/* -- Holders ---------------------------------------------------------------- */

/* Parse what acquire.lua and inspect.lua return for a lock that is held. */
static bool
read_holder(const struct reply *list, struct holder *h)
{
	const char *const kept = reply_text(reply_item(list, 12));
	const bool handed_over = reply_integer(reply_item(list, 3)) == 1;

	if (reply_items(list) < 12)
		return false;
	copy_text(list, 1, h->token, sizeof(h->token));
	copy_text(list, 4, h->owner, sizeof(h->owner));
	copy_text(list, 5, h->label, sizeof(h->label));
	(void)text_show(reply_text(reply_item(list, 9)), h->type, sizeof(h->type)); /* a server may send any text */
	h->left_ms = read_ms(list, 2);
	h->held_ms = read_ms(list, 6);
	h->fence = read_count(list, 7);
	h->waiting = read_count(list, 8);
	h->other_type = strcmp(h->type, "string") != 0;
	answer_guess_client(h);
	h->state = strcmp(h->type, "none") == 0 ? LOCK_FREE
	    : h->held_ms < 0			? LOCK_OTHER_CLIENT
	    : sscanf(kept, "%15" SCNd64 " %15[a-z-]", &h->ended_ms, h->kept_by) == 2 && h->ended_ms >= 0 ? LOCK_KEPT
	    : handed_over										 ? LOCK_HANDOVER
													 : LOCK_HELD;
	return true;
}

/* A grant with an invalid fence counts as an error, so that it is rolled back. */
static void
read_grant(const struct reply *reply, struct attempt_answer *a, struct node_error *error)
{
	a->fence = read_count(reply, 1);
	if (a->fence > 0)
		a->vote = VOTE_YES;
	else
		answer_fail(error, false,
		    "its fence for this lock is not a time of day; delete the metadata of the lock");
}

int64_t
answer_guard_s(const struct acquire_args *args)
{
	const int64_t s = args->restart_guard_ms > 0 ? (args->restart_guard_ms + 999) / 1000 + 1 : 0;

	return args->guard_if_known ? -s : s;
}

struct attempt_answer
answer_acquire(const struct result *d, const struct acquire_args *args, struct node_error *error)
{
	struct attempt_answer a = { .vote = VOTE_FAULT, .harmless = d->reply == NULL && !d->failure.sent };
	int64_t first;

	if (!answer_is_reply(d, error))
		return a;
	first = reply_integer(reply_item(d->reply, 0));
	if (reply_items(d->reply) == 2 && first == 1 && d->failure.kind != NO_FAILURE)
		fail_by_error(error, d->failure.reason.text);
	else if (reply_items(d->reply) == 2 && first == 1)
		read_grant(d->reply, &a, error);
	else if (reply_items(d->reply) == 2 && first == -1) {
		a.harmless = true;
		fail_guarded(error, known_ms(d->reply, 1), llabs(answer_guard_s(args)));
	} else if (reply_items(d->reply) == 2 && first == -2) {
		answer_fail(error, false, "it is the same server as another node; a server has one vote");
		error->duplicate = (int)read_count(d->reply, 1);
	} else if (first == 0 && read_holder(d->reply, &a.holder)) {
		a.vote = VOTE_NO;
		a.ticket = read_count(d->reply, 10);
		a.before = read_count(d->reply, 11);
	} else
		answer_fail_unexpected(error);
	return a;
}

int
answer_number(const struct result *d, struct lock_fields *fields, struct node_error *error)
{
	const struct reply *number = d->reply;
	int64_t n;

	*fields = (struct lock_fields){ .holds = "" };
	if (!answer_is_reply(d, error))
		return -2;
	if (reply_items(d->reply) >= 5) {
		number = reply_item(d->reply, 0);
		fields->server_ms = read_count(d->reply, 1);
		fields->ttl_ms = known_ms(d->reply, 2);
		fields->fence = read_count(d->reply, 3);
		fields->left_ms = known_ms(d->reply, 5);
		fields->holds = reply_text(reply_item(d->reply, 4));
	}
	n = reply_integer(number);
	if (reply_items(d->reply) >= 5 && n == -2) {
		fail_guarded(error, known_ms(d->reply, 1), known_ms(d->reply, 2) / 1000);
		return -2;
	}
	if (reply_kind(number) != REPLY_INTEGER || n < -1 || n > 2) {
		answer_fail_unexpected(error);
		return -2;
	}
	if (n == 1 && d->failure.kind != NO_FAILURE) {
		fail_by_error(error, d->failure.reason.text);
		return -2;
	}
	return (int)n;
}

/* Parse "MS_AGO TOKEN OWNER". */
static void
read_break(const char *text, struct broken *b)
{
	int at = 0;

	b->token[0] = '\0';
	if (text[0] == '\0')
		return;
	if (sscanf(text, "%15" SCNd64 " %22[A-Za-z0-9_-] %n", &b->ago_ms, b->token, &at) != 2 || at == 0 ||
	    b->ago_ms < 0 || !token_valid(b->token)) {
		b->token[0] = '\0';
		return;
	}
	(void)snprintf(b->owner, sizeof(b->owner), "%s", text + at);
}

bool
answer_inspect(const struct result *d, struct holder *holder, struct broken *broken, struct node_error *error)
{
	if (!answer_is_reply(d, error))
		return false;
	if (!read_holder(d->reply, holder)) {
		answer_fail_unexpected(error);
		return false;
	}
	holder->holds = read_count(d->reply, 10);
	holder->ttl_ms = known_ms(d->reply, 11);
	read_break(reply_text(reply_item(d->reply, 13)), broken);
	return true;
}

void
answer_log(const struct log *log, const char *name, const struct attempt_answer *answer, const struct node_error *error)
{
	struct err err;

	if (answer->vote == VOTE_YES)
		log_debug(log, "%s: granted, fence %" PRId64, name, answer->fence);
	else if (answer->vote == VOTE_NO) {
		(void)holder_error(&answer->holder, &err);
		log_debug(log, "%s: %s", name, err.text);
	} else if (error->duplicate != 0)
		log_debug(log, "%s: %s", name, error->why.reason.text);
}
