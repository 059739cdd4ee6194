/* SPDX-License-Identifier: MIT */
#include "redis/command.h"

#include "tap.h"

/* The slots here and below are those that CLUSTER KEYSLOT of Redis gives. */
static const struct {
	const char *key, *facts;
	int slot;
} table[] = {
	{ "job", "{job}:dlock", 2906 },
	{ "a:b", "{a:b}:dlock", 2785 },
	{ "two words", "{two words}:dlock", 1223 },
	{ "\xff\n", "{\xff\n}:dlock", 8885 },
	{ "{tag}:job", "{tag}:job:dlock", 8338 },
	{ "job:{tag}", "job:{tag}:dlock", 8338 },
	{ "{a}{b}", "{a}{b}:dlock", 15495 },
	{ "{{a}}", "{{a}}:dlock", 10276 },
	{ "{a}}", "{a}}:dlock", 15495 },
	{ "}{a}", "}{a}:dlock", 15495 },
	{ "{", "{{}:dlock", 4092 },
	{ "job{", "{job{}:dlock", 9367 },
	{ "{job", "{{job}:dlock", 5936 },
	{ "{{", "{{{}:dlock", 7007 },
};

/* The examples of the Redis Cluster specification, and the check value of its CRC. */
static const struct {
	const char *key;
	int slot;
} tags[] = {
	{ "{user1000}.following", 3443 },
	{ "{user1000}.followers", 3443 },
	{ "foo{}{bar}", 8363 },
	{ "foo{{bar}}zap", 4015 },
	{ "foo{bar}{zap}", 5061 },
	{ "{}", 15257 },
	{ "{}x", 10595 },
	{ "}{", 12793 },
	{ "x}y{z", 10687 },
	{ "}{a}", 15495 },
	{ "{a", 10276 },
	{ "a}", 5921 },
};

static int
slot_of(const char *name)
{
	return keys_slot(name, strlen(name));
}

/* Are these the facts of that lock? */
static bool
are_facts(const char *name, const char *key)
{
	char found[KEY_MAX + 1];

	return keys_key(name, strlen(name), found) && strcmp(found, key) == 0;
}

static bool
is_auxiliary(const char *name)
{
	char key[KEY_MAX + 1];
	const enum sibling is = keys_sibling(name, key);

	return is != METADATA && is != SIBLINGS;
}

/* The keys of a lock are in one slot. */
static bool
has_slot(const char *key, int slot)
{
	struct keys n;

	keys_of(key, &n);
	return slot_of(key) == slot && slot_of(n.sibling[METADATA]) == slot && slot_of(n.sibling[HOLDS]) == slot;
}

TEST(tables)
{
	struct keys n;
	char holds[64];

	for (size_t i = 0; i < COUNT(table); i++) {
		keys_of(table[i].key, &n);
		ok(n.key == table[i].key, "the lock %s is named as the user named it", table[i].key);
		is_str(n.sibling[METADATA], table[i].facts, "its facts");
		(void)snprintf(holds, sizeof(holds), "%s:holds", table[i].facts);
		is_str(n.sibling[HOLDS], holds, "its holds");
		ok(has_slot(table[i].key, table[i].slot), "its slot");
	}
	is_int(keys_slot("123456789", 9), 0x31c3, "the check value of the CRC");
	is_int(keys_slot("", 0), 0, "the slot of nothing");
	for (size_t i = 0; i < COUNT(tags); i++)
		ok(has_slot(tags[i].key, tags[i].slot), "%s has slot %d", tags[i].key, tags[i].slot);
	ok(keys_slot("a\0b", 3) != keys_slot("a\0c", 3), "the length counts, not a NUL");
}

/* What has no place for its own tag gets a number that hashes to the same slot. */
static const struct {
	const char *key;
	const char *facts; /* behind the number */
} numbered[] = {
	{ "{tag}", "}:{tag}:dlock-n" },
	{ "{{a}", "}:{{a}:dlock-n" },
	{ "}", "}:}:dlock-n" },
	{ "{}", "}:{}:dlock-n" },
	{ "}{", "}:}{:dlock-n" },
	{ "{}{a}", "}:{}{a}:dlock-n" },
	{ "a}b", "}:a}b:dlock-n" },
};

TEST(numbered)
{
	struct keys n;
	size_t digits;

	for (size_t i = 0; i < COUNT(numbered); i++) {
		keys_of(numbered[i].key, &n);
		digits = strspn(n.sibling[METADATA] + 1, "0123456789");
		ok(n.sibling[METADATA][0] == '{' && digits > 0 && digits < 7, "%s gets a number: %s", numbered[i].key,
		    n.sibling[METADATA]);
		is_str(n.sibling[METADATA] + 1 + digits, numbered[i].facts, "the KEY follows the number");
	}
}

/* Names that are no facts of any lock. */
static const char *const strange[] = { "", "dlock", ":dlock", "{}:dlock", "job", "job:dlock", "job:dlock:x",
	"{tag}:dlock:holds", "{job}:dlock:wake", "{tag}", "{t}:", "a}b:dlock", "}:dlock", "{}{a}:dlock", ":dlock-n",
	"{1}:dlock-n", "{1}::dlock-n", "job:dlock-n", "{1}:job:dlock-n", "{1}:{tag}:dlock-n", "{x}:{tag}:dlock-n",
	"{00}:}:dlock-n", "{1:dlock", "{1:dlock-n" };

TEST(backwards)
{
	char key[KEY_MAX + 1];
	struct keys n;

	for (size_t i = 0; i < COUNT(table); i++) {
		ok(keys_key(table[i].facts, strlen(table[i].facts), key), "%s are facts", table[i].facts);
		is_str(key, table[i].key, "of that key");
	}
	for (size_t i = 0; i < COUNT(numbered); i++) {
		keys_of(numbered[i].key, &n);
		ok(keys_key(n.sibling[METADATA], strlen(n.sibling[METADATA]), key), "%s are facts",
		    n.sibling[METADATA]);
		is_str(key, numbered[i].key, "of that key");
		ok(!keys_key(n.sibling[HOLDS], strlen(n.sibling[HOLDS]), key), "%s are none", n.sibling[HOLDS]);
	}
	for (size_t i = 0; i < COUNT(strange); i++)
		ok(!keys_key(strange[i], strlen(strange[i]), key), "'%s' is no name of facts", strange[i]);
}

TEST(longest)
{
	static char key[KEY_MAX + 1];
	static const char *const starts[] = { "k", "{t}", "}" };
	struct keys n;
	size_t i, length;

	for (i = 0; i < COUNT(starts); i++) {
		memset(key, 'k', KEY_MAX);
		memcpy(key, starts[i], strlen(starts[i]));
		keys_of(key, &n);
		length = strlen(n.sibling[METADATA]);
		ok(length > KEY_MAX && are_facts(n.sibling[METADATA], key), "the longest key from %s on: facts",
		    starts[i]);
		ok(strlen(n.sibling[HOLDS]) == length + 6 && strcmp(n.sibling[HOLDS] + length, ":holds") == 0,
		    "the longest key: holds");
	}
}

/* -- Slots of a KEY --------------------------------------------------------- */

static const struct {
	const char *key;
	size_t prefix;
	const char *slot;    /* number 2; NULL: it can have none */
	const char *waiting; /* of each slot */
} slots[] = {
	{ "job", 0, "{job}:slot-2", "{job}:slots:dlock:waiting" },
	{ "app:job", 4, "app:{job}:slot-2", "app:{job}:slots:dlock:waiting" },
	{ "{a}job", 0, "{a}job:slot-2", "{a}job:slots:dlock:waiting" },
	{ "job{a}", 0, "job{a}:slot-2", "job{a}:slots:dlock:waiting" },
	{ "{p}:job", 4, "{p}:job:slot-2", "{p}:job:slots:dlock:waiting" },
	{ "{p}{a}x", 3, "{p}{a}x:slot-2", "{p}{a}x:slots:dlock:waiting" },
	{ "job:slot-1", 0, "{job:slot-1}:slot-2", "{job:slot-1}:slots:dlock:waiting" },
	{ "{job}", 0, NULL, NULL },
	{ "app:{job}", 4, NULL, NULL },
	{ "{p}{job}", 3, NULL, NULL },
	{ "{}job", 0, NULL, NULL },
	{ "a{b", 0, NULL, NULL },
	{ "a}b", 0, NULL, NULL },
	{ "{p}a}b", 3, NULL, NULL },
	{ "{pjob", 2, NULL, NULL },
};

TEST(slots)
{
	char name[KEY_MAX + 1], all[KEY_MAX + 1];
	struct keys n, m;
	struct err err;

	for (size_t i = 0; i < COUNT(slots); i++) {
		if (slots[i].slot == NULL) {
			ok(keys_of_slot(slots[i].key, slots[i].prefix, 2, name, &err) == ST_USAGE &&
				strstr(err.text, "braces") != NULL,
			    "%s behind %zu bytes of a prefix has no slots", slots[i].key, slots[i].prefix);
			continue;
		}
		ok(keys_of_slot(slots[i].key, slots[i].prefix, 2, name, &err) == ST_OK &&
			keys_of_slot(slots[i].key, slots[i].prefix, 0, all, &err) == ST_OK,
		    "%s has slots", slots[i].key);
		is_str(name, slots[i].slot, "the name of slot 2");
		keys_of(name, &n);
		keys_of(all, &m);
		is_str(n.sibling[WAITING], slots[i].waiting, "who waits for it");
		is_str(m.sibling[WAITING], n.sibling[WAITING], "waits for any");
		ok(strncmp(n.sibling[WAKE], name, strlen(name)) == 0 && is_auxiliary(n.sibling[WAITING]) &&
			are_facts(n.sibling[METADATA], name),
		    "all else is that of a lock with this name");
		is_int(slot_of(name), slot_of(n.sibling[WAITING]), "in one slot of a Cluster");
	}
}

/* The waiters of what only looks like a slot are its own. */
TEST(no_slots)
{
	static const char *const names[] = { "{a}:slot-", "{a}:slot-x", "{a}:slot-1x", "{a}:slot-1:x", "{a}slot-1",
		"{a}:slots", "job:slot-1", "{a:slot-1}", "a}b:slot-1", "{}:slot-1" };
	char own[KEY_MAX + 96];
	struct keys n;

	for (size_t i = 0; i < COUNT(names); i++) {
		keys_of(names[i], &n);
		(void)snprintf(own, sizeof(own), "%s:waiting", n.sibling[METADATA]);
		is_str(n.sibling[WAITING], own, "%s", names[i]);
	}
}

/* Short keys of few characters: would two of them share a sibling, they did so here. */
TEST(shared)
{
	static const char letters[] = "{}a1";
	char key[8];
	struct keys n;
	int64_t number, rest;
	size_t length;

	for (number = 1; number < 4 * 4 * 4 * 4; number++) {
		for (rest = number, length = 0; rest > 0; rest /= 4)
			key[length++] = letters[rest % 4];
		key[length] = '\0';
		keys_of(key, &n);
		each(are_facts(n.sibling[METADATA], key), "%s: %s", key, n.sibling[METADATA]);
		each(has_slot(key, slot_of(key)), "%s: its facts and its holds have its slot", key);
	}
	each_ok("the KEY can be read from the name of its metadata, so no two KEYs share one; all have one slot");
}

/* What stands beside the facts is neither a lock nor facts; what only looks so may be a lock. */
TEST(aside)
{
	static const char *const ends[] = { ":holds", ":wake", ":waiting", ":leave:AAAAAAAAAAAAAAAAAAAAAA" };
	static const char *const some[] = { "job", "{a}b", "a}b", "{X}", "x:dlock", "a:waiting" };
	static const char *const locks[] = { "job", ":wake", "job:waiting", "{job}:waiting", "dlock:wake",
		"{job}:dlock:wakes", "{job}:dlock:leave:", "{job}:dlock:leave:A", ":leave:AAAAAAAAAAAAAAAAAAAAAA",
		"{job}:leave:AAAAAAAAAAAAAAAAAAAAAA", "" };
	char name[KEY_MAX + 64];
	struct keys n;

	for (size_t i = 0; i < COUNT(some); i++) {
		keys_of(some[i], &n);
		each(!is_auxiliary(some[i]) && !is_auxiliary(n.sibling[METADATA]), "%s, %s", some[i],
		    n.sibling[METADATA]);
		each(is_auxiliary(n.sibling[HOLDS]) && is_auxiliary(n.sibling[WAKE]) &&
			is_auxiliary(n.sibling[WAITING]),
		    "of %s", some[i]);
		for (size_t j = 0; j < COUNT(ends); j++) {
			(void)snprintf(name, sizeof(name), "%s%s", n.sibling[METADATA], ends[j]);
			each(is_auxiliary(name), "%s is auxiliary", name);
		}
	}
	for (size_t i = 0; i < COUNT(locks); i++)
		each(!is_auxiliary(locks[i]), "'%s' may be a lock", locks[i]);
	each_ok("keys of the queue are not taken for locks, nor locks for them");
}

TEST(all_slots)
{
	char key[KEY_MAX + 1];
	struct keys n;

	for (int i = 0; i < 200000; i++) {
		(void)snprintf(key, sizeof(key), "}%d", i);
		keys_of(key, &n);
		each(slot_of(n.sibling[METADATA]) == slot_of(key), "%s", key);
	}
	each_ok("names in all slots");
}

/* --replicas: what grants, prolongs or marks a lock counts only where so many replicas have it. */
TEST(replicas)
{
	static const enum script confirmed[] = { SCRIPT_ACQUIRE, SCRIPT_ASK, SCRIPT_FENCE, SCRIPT_HEAL, SCRIPT_RENEW,
		SCRIPT_SHARE };
	struct keys n = { .key = NULL };
	struct command c;
	size_t i, all;

	keys_of("k", &n);
	for (i = 0; i < COUNT(confirmed); i++) {
		command_eval(&c, confirmed[i], &n, " ");
		each(c.needs_replicas, "script %d", (int)confirmed[i]);
	}
	for (i = all = 0; i <= SCRIPT_UNSHARE; i++) {
		command_eval(&c, (enum script)i, &n, " ");
		all += c.needs_replicas;
	}
	ok(all == COUNT(confirmed), "replicas confirm what grants, prolongs or marks a lock, and nothing else");
}
