/* SPDX-License-Identifier: MIT */
#include "zk/metadata.h"

#include "tap.h"

static bool
reads(const char *text, struct metadata *m)
{
	return metadata_read(text, strlen(text), m);
}

static bool
is_same(const struct metadata *a, const struct metadata *b)
{
	return strcmp(a->owner, b->owner) == 0 && strcmp(a->label, b->label) == 0 && a->ttl_ms == b->ttl_ms &&
	    a->since_ms == b->since_ms && a->slot == b->slot && strcmp(a->kept_by, b->kept_by) == 0 &&
	    strcmp(a->broken, b->broken) == 0 && strcmp(a->asked_by, b->asked_by) == 0 && a->replaces == b->replaces &&
	    a->holds == b->holds && memcmp(a->hold, b->hold, (size_t)a->holds * sizeof(a->hold[0])) == 0;
}

TEST(round_trip)
{
	struct metadata m, again;
	char text[METADATA_SIZE];

	for (int i = 0; i < 2000; i++) {
		memset(&m, 0, sizeof(m));
		for (int k = (int)below(OWNER_MAX + 1); k > 0; k--)
			m.owner[k - 1] = (char)(1 + below(i % 2 == 0 ? 127 : 255));
		for (int k = (int)below(LABEL_MAX + 1); k > 0; k--)
			m.label[k - 1] = (char)(1 + below(255));
		m.ttl_ms = (int64_t)below(1U << 31);
		m.since_ms = (int64_t)below(1U << 31);
		m.slot = (int64_t)below(3);
		(void)snprintf(m.kept_by, sizeof(m.kept_by), "%s", below(2) == 1 ? "once-per" : "");
		(void)snprintf(m.asked_by, sizeof(m.asked_by), "%s", below(2) == 1 ? "me@host:1" : "");
		m.replaces = below(2) == 1;
		(void)snprintf(m.broken, sizeof(m.broken), "%s", below(2) == 1 ? "AbC-_0123456789abcde" : "");
		for (m.holds = 0; m.holds < (int)below(METADATA_HOLDS + 1); m.holds++)
			(void)snprintf(m.hold[m.holds], sizeof(m.hold[0]), "h%u", (unsigned int)m.holds & 0xff);
		metadata_write(&m, text);
		each(reads(text, &again) && is_same(&m, &again), "%s", text);
		text[below((int64_t)strlen(text))] = (char)below(256);
		if (!reads(text, &m))
			continue;
		metadata_write(&m, text);
		each(reads(text, &again) && is_same(&m, &again), "changed: %s", text);
	}
	each_ok("metadata that was written is read");
}

TEST(others)
{
	static const char *const junk[] = { "", "dlock", "dlock 2\n", "dlock 1", "owner a\n", "\ndlock 1\n",
		"dlock 1\nowner", "dlock 1\nowner a", "dlock 1\nowner\n", "dlock 1\nowner \n", "dlock 1\n\n",
		"dlock 1\nttl_ms -1\n", "dlock 1\nttl_ms 1e9\n", "dlock 1\nttl_ms 1234567890123456789\n",
		"dlock 1\nlabel %\n", "dlock 1\nlabel %4\n", "dlock 1\nlabel %00\n", "dlock 1\nhold 123456789\n",
		"dlock 1\nkept Min hold\n", "dlock 1\nkept %1B[2J\n",
		"{\"dlock\":1,\"owner\":\"me@host:1\",\"label\":\"\",\"ttl_ms\":30000,\"holds\":[\"first\"]}" };
	char many[METADATA_SIZE + 16] = "dlock 1\n";
	struct metadata m;

	for (size_t i = 0; i < COUNT(junk); i++)
		ok(!reads(junk[i], &m), "no metadata of dlock: %s", junk[i]);
	ok(reads("dlock 1\n", &m) && metadata_holds(&m) == 1, "the shortest");
	ok(reads("dlock 1\nnew a b\nowner me\n", &m) && strcmp(m.owner, "me") == 0, "lines of later versions");
	ok(!metadata_read("dlock 1\nowner a\0b\n", 18, &m), "a NUL");
	for (size_t i = 0; i <= METADATA_HOLDS; i++)
		memcpy(many + 8 + 7 * i, "hold x\n", 8);
	ok(!reads(many, &m), "too many holds");
	memset(many + 8, 'n', METADATA_SIZE - 8);
	many[12] = ' ';
	many[METADATA_SIZE - 1] = '\n';
	many[METADATA_SIZE] = '\0';
	ok(!reads(many, &m), "too long");
}

TEST(text)
{
	static const struct metadata m = { .owner = "me@host:1",
		.label = "100%\nkept x",
		.ttl_ms = 5,
		.since_ms = 6,
		.hold = { "first" },
		.holds = 1 };
	char data[METADATA_SIZE];

	metadata_write(&m, data);
	is_str(data, "dlock 1\nowner me@host:1\nlabel 100%25%0Akept x\nttl_ms 5\nsince_ms 6\nhold first\n",
	    "a line for each value, and no other by a label");
}

TEST(holds)
{
	struct metadata m = { .ttl_ms = 1 };
	char hold[METADATA_HOLD_LENGTH + 1];

	ok(metadata_has_hold(&m, METADATA_FIRST_HOLD) && !metadata_has_hold(&m, "x"),
	    "the first hold is that of acquire");
	ok(metadata_add_hold(&m, "x") && metadata_holds(&m) == 2, "a second hold");
	ok(metadata_add_hold(&m, "x") && metadata_holds(&m) == 2, "which is added once");
	ok(metadata_has_hold(&m, METADATA_FIRST_HOLD) && metadata_has_hold(&m, "x"), "both hold it");
	ok(metadata_remove_hold(&m, METADATA_FIRST_HOLD) && !metadata_has_hold(&m, METADATA_FIRST_HOLD),
	    "the first ends before the second");
	ok(!metadata_remove_hold(&m, METADATA_FIRST_HOLD) && metadata_holds(&m) == 1, "a hold ends once");
	ok(metadata_add_hold(&m, "x") && metadata_holds(&m) == 1, "the only one is added once, too");
	for (int i = metadata_holds(&m); i < METADATA_HOLDS; i++) {
		(void)snprintf(hold, sizeof(hold), "%u", (unsigned int)i & 0xff);
		each(metadata_add_hold(&m, hold), "hold %d", i);
	}
	each_ok("the maximum number of holds");
	ok(!metadata_add_hold(&m, "more"), "no more than that");
}

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
