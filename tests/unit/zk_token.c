/* SPDX-License-Identifier: MIT */
#include "zk/metadata.h"

#include "tap.h"

TEST(tokens)
{
	struct zk_token token, again;
	char text[TOKEN_SIZE], name[64] = "_c_", begin[TOKEN_SIZE];

	for (int i = 0; i < 1000; i++) {
		memset(&token, 0, sizeof(token));
		memset(&again, 0, sizeof(again));
		each(zk_uuid_new(token.uuid), "random numbers");
		token.session.id = (int64_t)(((uint64_t)dice() << 32 | dice()) | 1);
		token.session.length_ms = 1 + (int32_t)below(1U << 30);
		token.number = (int32_t)dice();
		token.shared = below(2) == 1;
		(void)snprintf(token.hold, sizeof(token.hold), "%s", METADATA_FIRST_HOLD);
		if (i % 2 == 1)
			(void)snprintf(token.hold, sizeof(token.hold), "h-_%05u", (unsigned int)below(100000));
		zk_token_write(&token, text);
		zk_uuid_write(token.uuid, name + 3);
		memcpy(name + 39, "-lock-", sizeof("-lock-"));
		each(zk_token_begin(name, strlen(name), begin), "%s", name);
		each(text[0] != '-' && strlen(begin) == 20 && strncmp(text, begin, 20) == 0, "%s begins with %s", text,
		    begin);
		each(!zk_token_begin(name, (size_t)below(40), begin) && !zk_token_begin(name + 1, 40, begin), "not %s",
		    name + 1);
		each(strlen(text) == (i % 2 == 1 ? ZK_TOKEN_LENGTH + 1 + METADATA_HOLD_LENGTH : ZK_TOKEN_LENGTH), "%s",
		    text);
		each(zk_token_read(text, &again) && memcmp(&token, &again, sizeof(token)) == 0, "%s", text);
		text[below((int64_t)strlen(text))] = (char)(' ' + below(95));
		if (zk_token_read(text, &again)) {
			zk_token_write(&again, begin);
			each(strcmp(begin, text) == 0, "%s is %s", text, begin);
		}
		text[below(ZK_TOKEN_LENGTH)] = '\0';
		each(!zk_token_read(text, &again), "cut: %s", text);
	}
	each_ok("tokens are read again");
	ok(!zk_token_read("", &again) && !zk_token_read("FI6EC0ZGWqXb8RjFU2PvPA", &again), "tokens of other services");
	memset(text, 'A', ZK_TOKEN_LENGTH);
	text[ZK_TOKEN_LENGTH] = '\0';
	ok(!zk_token_read(text, &again), "no session is 0");
	token.session.length_ms = 0;
	zk_token_write(&token, text);
	ok(!zk_token_read(text, &again), "no session has the length 0");
}

TEST(uuids)
{
	static const char name[] = "_c_00112233-4455-6677-8899-aabbccddeeff-lock-0000000001";
	const unsigned char uuid[ZK_UUID_SIZE] = "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
	char text[ZK_UUID_TEXT_SIZE], begin[TOKEN_SIZE];

	zk_uuid_write(uuid, text);
	is_str(text, "00112233-4455-6677-8899-aabbccddeeff", "a UUID");
	ok(zk_token_begin(name, strlen(name), begin), "the name of an entry");
	is_str(begin, "ABEiM0RVZneImaq7zN3u", "the beginning of its token");
	ok(!zk_token_begin("_c_0123456789abcdef0123456789abcdef0123-lock-", 44, begin), "a UUID of another form");
}
