/* SPDX-License-Identifier: MIT */
#include "redis/answer.h"

#include "tap.h"

static struct node_error error;
static struct result d;

/* Let the result have this reply; NULL: none. */
static void
replies(const char *text)
{
	struct parser *parser = parser_new();

	reply_free(d.reply);
	d = (struct result){ .reply = NULL };
	if (text != NULL)
		parser_feed(parser, text, strlen(text));
	d.reply = parser_next(parser);
	each((d.reply != NULL) == (text != NULL), "a reply: %s", text != NULL ? text : "none");
	parser_free(parser);
}

/* An error of a server, and what is said of it. */
static const struct {
	const char *text, *said;
	enum failure_kind kind;
} errors[] = {
	{ "WRONGPASS invalid username-password pair", "wrong user or password", DENIED },
	{ "ERR invalid password", "wrong password", DENIED },
	{ "ERR unknown command 'AUTH'", "does not support AUTH", DENIED },
	{ "ERR AUTH <password> called without any password configured", "this server has none", DENIED },
	{ "ERR unknown command 'EVAL', with args beginning with: 'x'", "it has no EVAL", FAILED },
	{ "NOAUTH Authentication required.", "it requires a password", DENIED },
	{ "ERR unauthenticated bulk length", "it requires a password", DENIED },
	{ "DENIED Redis is running in protected mode", "its protected mode refuses", DENIED },
	{ "NOPERM this user has no permissions to access one of the keys", "access to the keys of this lock", DENIED },
	{ "NOPERM No permissions to access a key", "access to the keys of this lock", DENIED },
	{ "NOPERM User u has no permissions to run the 'config|get' command", "the command config|get;", DENIED },
	{ "ERR ACL failure in script: can't run this command", "that the scripts of dlock call", DENIED },
	{ "NOPERM no", "NOPERM no", DENIED },
	{ "ERR ACL failure in script: no", "ERR ACL failure in script: no", DENIED },
	{ "NOINFO", "it has no INFO", FAILED },
	{ "LOADING Redis is loading", "still loading its data", FAILED },
	{ "READONLY You can't write", "a read-only replica", FAILED },
	{ "MASTERDOWN Link with MASTER is down", "lost its primary", FAILED },
	{ "NOREPLICAS Not enough good replicas", "too few replicas", FAILED },
	{ "MISCONF Redis is configured to save", "can't save to its disk", FAILED },
	{ "WRONGTYPE Operation against a key", "the metadata of the lock has another type", FAILED },
	{ "OOM command not allowed", "its memory is full", FAILED },
	{ "CLUSTERDOWN Hash slot not served", "its Cluster is down", FAILED },
	{ "ASK 1 a:1", "slot is moving", FAILED },
	{ "MOVED 1 a:1", "the lock belongs to another one", FAILED },
	{ "ERR This instance has cluster support disabled", "not a Redis Cluster", FAILED },
	{ "CROSSSLOT Keys in request", "with other keys", FAILED },
	{ "BUSY Redis is busy running a script", "a script that takes too long", FAILED },
	{ "ERR max number of clients reached", "too many clients", FAILED },
	{ "ERR anything else", "ERR anything else", FAILED },
};

TEST(errors)
{
	char text[100];

	for (size_t i = 0; i < COUNT(errors); i++) {
		(void)snprintf(text, sizeof(text), "-%s\r\n", errors[i].text);
		replies(text);
		each(!answer_is_reply(&d, &error) && error.why.kind == errors[i].kind, "%s", errors[i].text);
		each(strstr(error.why.reason.text, errors[i].said) != NULL, "%s: %s", errors[i].text,
		    error.why.reason.text);
		each(error.moved == (strncmp(errors[i].text, "MOVED", 5) == 0), "moved: %s", errors[i].text);
		each(error.of_keys == (strstr(errors[i].said, "of this lock") != NULL), "keys: %s", errors[i].text);
	}
	each_ok("what an error of a server means");
}

/* What an attempt learns; the guard is 10 s. */
static const struct {
	const char *reply;
	enum vote vote;
	bool harmless, gives_way;
	int64_t left_ms; /* of the guard */
	int64_t fence;
	int duplicate;
	enum failure_kind failure; /* of the result */
	bool sent;
} attempts[] = {
	{ "*2\r\n:1\r\n:7\r\n", .vote = VOTE_YES, .fence = 7 },
	{ "*3\r\n:1\r\n:7\r\n$1\r\na\r\n", .vote = VOTE_YES, .gives_way = true, .fence = 7 },
	{ "*2\r\n:1\r\n:7\r\n", .vote = VOTE_FAULT, .failure = FAILED }, /* too few replicas */
	{ "*2\r\n:1\r\n:0\r\n", .vote = VOTE_FAULT },
	{ "*2\r\n:-1\r\n:5\r\n", .vote = VOTE_FAULT, .harmless = true, .left_ms = 6000 },
	{ "*2\r\n:-2\r\n:3\r\n", .vote = VOTE_FAULT, .duplicate = 3 },
	{ "*2\r\n:-3\r\n$1\r\na\r\n", .vote = VOTE_FAULT, .harmless = true, .gives_way = true },
	{ "*2\r\n:0\r\n:0\r\n", .vote = VOTE_FAULT },
	{ "-ERR no\r\n", .vote = VOTE_FAULT },
	{ NULL, .vote = VOTE_FAULT, .harmless = true, .failure = FAILED },
	{ NULL, .vote = VOTE_FAULT, .failure = FAILED, .sent = true },
};

TEST(attempts)
{
	const struct acquire_args args = { .restart_guard_ms = 10000, .guard_if_known = true };
	struct attempt_answer a;

	for (size_t i = 0; i < COUNT(attempts); i++) {
		replies(attempts[i].reply);
		failure_set(&d.failure, attempts[i].failure, "%s", "");
		d.failure.sent = attempts[i].sent;
		a = answer_acquire(&d, &args, &error);
		each(a.vote == attempts[i].vote && a.harmless == attempts[i].harmless, "%zu: vote %d", i, (int)a.vote);
		each(error.gives_way == attempts[i].gives_way && error.duplicate == attempts[i].duplicate, "%zu: why",
		    i);
		each(error.left_ms == attempts[i].left_ms && error.guarded == (error.left_ms > 0), "%zu: guard", i);
		each(a.vote != VOTE_YES || a.fence == attempts[i].fence, "%zu: fence", i);
		each((error.why.kind == NO_FAILURE) == (a.vote == VOTE_YES || attempts[i].gives_way), "%zu: error", i);
	}
	each_ok("what the answer to an attempt means");
}

TEST(numbers)
{
	static const struct {
		const char *reply;
		int number;
	} table[] = { { ":-1\r\n", -1 }, { ":0\r\n", 0 }, { ":1\r\n", 1 }, { ":2\r\n", 2 }, { ":3\r\n", -2 },
		{ ":-2\r\n", -2 }, { "+1\r\n", -2 }, { "*5\r\n:1\r\n:9\r\n:8\r\n:7\r\n$1\r\nh\r\n", 1 },
		{ "*5\r\n:-2\r\n:5\r\n:11000\r\n:0\r\n$0\r\n\r\n", -2 } };
	struct lock_fields fields;

	for (size_t i = 0; i < COUNT(table); i++) {
		replies(table[i].reply);
		each(answer_number(&d, &fields, &error) == table[i].number, "%s", table[i].reply);
		each(fields.fence == (i == 7 ? 7 : 0) && strcmp(fields.holds, i == 7 ? "h" : "") == 0, "fields");
		each(error.left_ms == (i == 8 ? 6000 : 0), "left: %d", (int)error.left_ms);
		failure_set(&d.failure, FAILED, "too few replicas");
		each(table[i].number != 1 || answer_number(&d, &fields, &error) == -2, "too few replicas have it");
	}
	each_ok("what a number means");
	replies(NULL);
}

TEST(guard)
{
	static const int64_t table[][2] = { { 0, 0 }, { 1, 2 }, { 1000, 2 }, { 1001, 3 } };
	struct acquire_args args = { .guard_if_known = false };

	for (size_t i = 0; i < COUNT(table); i++) {
		args.restart_guard_ms = table[i][0];
		args.guard_if_known = false;
		is_int(answer_guard_s(&args), table[i][1], "a guard of %d ms", (int)table[i][0]);
		args.guard_if_known = true;
		is_int(answer_guard_s(&args), -table[i][1], "if the uptime is known");
	}
}

/* A type, what it has, and the client that is guessed by it. */
static const struct {
	const char *client; /* "": not known */
	const char *type;
	const char *token[9];
} clients[] = {
	/* uuid1().hex of Python */
	{ "redis-py", "string", { "5dbf0eb86e4f1a4c9a20fd7f0a0f7c5a", "5dbf0eb86e4f1a4cba20fd7f0a0f7c5a" } },
	/* 16 random bytes, in hexadecimal digits and in base64 */
	{ "node-redlock", "string", { "5dbf0eb86e4f4a4c9a20fd7f0a0f7c5a", "5dbf0eb86e4f1a4c7a20fd7f0a0f7c5a" } },
	{ "redsync", "string", { "XzwG321GCd7Z1ZJQGkdbNw==", "XzwG321GCd7Z1ZJ/+kdbNw==" } },
	{ "Redisson, thread 57", "hash", { "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57" } },
	{ "Redisson, thread 1", "hash", { "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:1" } },

	{ "", "string",
	    { "", "foreign", "5DBF0EB86E4F1A4C9A20FD7F0A0F7C5A", "5dbf0eb86e4f1a4c9a20fd7f0a0f7c5",
		"5dbf0eb86e4f1a4c9a20fd7f0a0f7c5ab", "XzwG321GCd7Z1ZJQGkdbNw", "XzwG321GCd7Z1ZJQGkdbNw=a",
		"5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57" } },
	{ "a hash", "hash",
	    { "", "name", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:",
		"5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:x", "5dbf0eb8x6e4f-4a4c-9a20-fd7f0a0f7c5a:1" } },
	{ "a list", "list", { "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:1" } },
};

static void
check_client(const char *type, const char *token, const char *client)
{
	struct holder h = { .state = LOCK_OTHER_CLIENT, .other_type = strcmp(type, "string") != 0 };

	(void)snprintf(h.type, sizeof(h.type), "%s", type);
	(void)snprintf(h.token, sizeof(h.token), "%s", token);
	answer_guess_client(&h);
	is_str(holder_client(&h), client, "%s %s", type, token);
	h.state = LOCK_HELD;
	ok(strcmp(holder_client(&h), "dlock") == 0, "a lock of dlock");
}

TEST(clients)
{
	for (size_t i = 0; i < COUNT(clients); i++) {
		for (size_t j = 0; clients[i].token[j] != NULL; j++)
			check_client(clients[i].type, clients[i].token[j], clients[i].client);
	}
}
