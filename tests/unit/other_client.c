/* SPDX-License-Identifier: MIT */
#include "redis/answer.h"

#include "tap.h"

/* A type, what it has, and the client that is guessed by it. */
static const struct {
	const char *client; /* "": not known */
	const char *type;
	const char *token[9];
} table[] = {
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
check(const char *type, const char *token, const char *client)
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
	for (size_t i = 0; i < COUNT(table); i++) {
		for (size_t j = 0; table[i].token[j] != NULL; j++)
			check(table[i].type, table[i].token[j], table[i].client);
	}
}
