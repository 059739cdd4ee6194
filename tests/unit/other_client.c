/* SPDX-License-Identifier: MIT */
#include "redis/answer.h"

#include "tap.h"

static const struct {
	const char *type;
	const char *token;
	const char *client; /* NULL: not known */
} table[] = {
	/* uuid1().hex of Python */
	{ "string", "5dbf0eb86e4f1a4c9a20fd7f0a0f7c5a", "redis-py" },
	{ "string", "5dbf0eb86e4f1a4cba20fd7f0a0f7c5a", "redis-py" },
	/* 16 random bytes, in hexadecimal digits and in base64 */
	{ "string", "5dbf0eb86e4f4a4c9a20fd7f0a0f7c5a", "node-redlock" },
	{ "string", "5dbf0eb86e4f1a4c7a20fd7f0a0f7c5a", "node-redlock" },
	{ "string", "XzwG321GCd7Z1ZJQGkdbNw==", "redsync" },
	{ "string", "XzwG321GCd7Z1ZJ/+kdbNw==", "redsync" },
	{ "hash", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57", "Redisson, thread 57" },
	{ "hash", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:1", "Redisson, thread 1" },

	{ "string", "", NULL },
	{ "string", "foreign", NULL },
	{ "string", "5DBF0EB86E4F1A4C9A20FD7F0A0F7C5A", NULL },
	{ "string", "5dbf0eb86e4f1a4c9a20fd7f0a0f7c5", NULL },
	{ "string", "5dbf0eb86e4f1a4c9a20fd7f0a0f7c5ab", NULL },
	{ "string", "XzwG321GCd7Z1ZJQGkdbNw", NULL },
	{ "string", "XzwG321GCd7Z1ZJQGkdbNw=a", NULL },
	{ "string", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:57", NULL },
	{ "hash", "", "a hash" },
	{ "hash", "name", "a hash" },
	{ "hash", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a", "a hash" },
	{ "hash", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:", "a hash" },
	{ "hash", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:x", "a hash" },
	{ "hash", "5dbf0eb8x6e4f-4a4c-9a20-fd7f0a0f7c5a:1", "a hash" },
	{ "list", "5dbf0eb8-6e4f-4a4c-9a20-fd7f0a0f7c5a:1", "a list" },
};

TEST(clients)
{
	struct holder h;

	for (size_t i = 0; i < COUNT(table); i++) {
		memset(&h, 0, sizeof(h));
		h.state = LOCK_OTHER_CLIENT;
		h.other_type = strcmp(table[i].type, "string") != 0;
		(void)snprintf(h.type, sizeof(h.type), "%s", table[i].type);
		(void)snprintf(h.token, sizeof(h.token), "%s", table[i].token);
		answer_guess_client(&h);
		is_str(holder_client(&h), table[i].client != NULL ? table[i].client : "", "%s %s", table[i].type,
		    table[i].token);
		h.state = LOCK_HELD;
		ok(strcmp(holder_client(&h), "dlock") == 0, "a lock of dlock");
	}
}
