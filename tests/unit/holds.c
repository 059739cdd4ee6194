/* SPDX-License-Identifier: MIT */
#include "cli/setup.h"

#include <sys/prctl.h>

#include "tap.h"

#define T1 "AAAAAAAAAAAAAAAAAAAAAA"
#define T2 "BBBBBBBBBBBBBBBBBBBBBB.abcd_-12"

static struct hold held[HOLDS_MAX];

static void
forget(void)
{
	(void)unsetenv("DLOCK_KEY");
	(void)unsetenv("DLOCK_TOKEN");
	(void)unsetenv("DLOCK_FENCE");
	(void)unsetenv("DLOCK_HOLDS");
}

/* What a command under one more lock has. */
static bool
holds_add(const char *key, const struct hold *hold)
{
	struct lease lease = { .key = key, .fence = hold->fence };
	char **environment;
	bool done;

	memcpy(lease.token, hold->token, sizeof(lease.token));
	environment = setup_environment("-", &lease);
	done = environment != NULL && strncmp(environment[4], "DLOCK_HOLDS=", 12) == 0 &&
	    setenv("DLOCK_HOLDS", environment[4] + 12, 1) == 0;
	free(environment);
	return done;
}

TEST(innermost)
{
	forget();
	ok(!setup_holds("k", "k", held), "an empty environment holds nothing");
	(void)setenv("DLOCK_KEY", "k", 1);
	ok(!setup_holds("k", "k", held), "a key without a token is no hold");
	(void)setenv("DLOCK_TOKEN", T2, 1);
	ok(setup_holds("k", "p:k", held) && strcmp(held[0].token, T2) == 0 && held[0].fence == 0,
	    "key and token are one, the fence is unknown");
	(void)setenv("DLOCK_FENCE", "1700000000000000", 1);
	ok(setup_holds("k", "p:k", held) && held[0].fence == 1700000000000000, "the fence is reported");
	(void)setenv("DLOCK_FENCE", "17x", 1);
	ok(setup_holds("k", "p:k", held) && held[0].fence == 0, "a fence that is junk is unknown");
	ok(!setup_holds("other", "p:other", held), "another key is not held");
	(void)setenv("DLOCK_TOKEN", "junk", 1);
	ok(!setup_holds("k", "k", held), "a token that is junk is no hold");
}

TEST(several)
{
	struct hold first = { T1, 11 }, second = { T2, 22 };

	forget();
	ok(holds_add("a b", &first) && holds_add("k%=", &second), "two are added");
	ok(setup_holds("x", "a b", held) && strcmp(held[0].token, T1) == 0 && held[0].fence == 11,
	    "the first is found");
	ok(setup_holds("x", "k%=", held) && strcmp(held[0].token, T2) == 0 && held[0].fence == 22,
	    "the second is found");
	ok(!setup_holds("x", "a", held) && !setup_holds("x", "k%", held) && !setup_holds("x", "", held),
	    "parts of keys are not");
	ok(holds_add("a b", &second) && setup_holds("x", "a b", held) && strcmp(held[0].token, T2) == 0,
	    "entered again, the newest hold counts");
	ok(strchr(getenv("DLOCK_HOLDS"), ' ') == strrchr(getenv("DLOCK_HOLDS"), ' '),
	    "the list has two entries still: %s", getenv("DLOCK_HOLDS"));
	ok(holds_add("a", &first) && setup_holds("x", "a b", held) && strcmp(held[0].token, T2) == 0,
	    "a key that begins as another leaves it in the list");
}

/* The list knows prefixes, and the innermost may be newer: both may be right. */
TEST(both)
{
	struct hold listed = { T1, 11 };

	forget();
	(void)setenv("DLOCK_KEY", "k", 1);
	(void)setenv("DLOCK_TOKEN", T2, 1);
	ok(holds_add("a:k", &listed), "one is added");
	ok(setup_holds("k", "a:k", held) == 2 && strcmp(held[0].token, T1) == 0 && strcmp(held[1].token, T2) == 0,
	    "the listed hold comes first, then the innermost");
	(void)setenv("DLOCK_TOKEN", T1, 1);
	ok(setup_holds("k", "a:k", held) == 1, "the same one is reported once");
}

TEST(any_key)
{
	struct hold given = { T1, 1234567890123456 };
	char key[KEY_MAX + 1];

	for (int c = 1; c < 256; c++) {
		forget();
		(void)snprintf(key, sizeof(key), "x%cy", c);
		each(holds_add("before", &given) && holds_add(key, &given), "byte %d is added", c);
		each(setup_holds("-", key, held) && strcmp(held[0].token, T1) == 0 && held[0].fence == given.fence,
		    "byte %d is found", c);
		each(setup_holds("-", "before", held), "byte %d leaves the others alone", c);
	}
	each_ok("a key may have any byte");
	forget();
	memset(key, 0xff, KEY_MAX);
	key[KEY_MAX] = '\0';
	ok(holds_add(key, &given) && setup_holds("-", key, held), "the longest key");
}

TEST(many)
{
	struct hold given = { T1, 1 };
	char key[32];

	forget();
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(key, sizeof(key), "key-%d", i);
		each(holds_add(key, &given) && setup_holds("-", key, held), "%s", key);
	}
	each_ok("the innermost of 5000 locks is found");
	ok(strlen(getenv("DLOCK_HOLDS")) < 20000, "the list has a maximum length: %zu bytes",
	    strlen(getenv("DLOCK_HOLDS")));
	ok(setup_holds("-", "key-4998", held), "the lock around it is found");
}

TEST(junk)
{
	static const char *const junk[] = { " ", "=", "k", "k=", "k==", "k=" T1, "k=" T1 "=", "k=" T1 "=0",
		"k=" T1 "=-1", "k=" T1 "=1x", "k=" T1 "x=1", "k=short=1", "kk=" T1 "=1", "k=" T1 "= 1",
		"k=" T1 "=99999999999999999999999999999999999999999999999999999999999999999" };

	forget();
	for (size_t i = 0; i < COUNT(junk); i++) {
		(void)setenv("DLOCK_HOLDS", junk[i], 1);
		ok(!setup_holds("-", "k", held), "'%s' holds nothing", junk[i]);
	}
	(void)setenv("DLOCK_HOLDS", "  = junk k=" T1 "=5  ", 1);
	ok(setup_holds("-", "k", held) && held[0].fence == 5, "junk before an entry is passed over");
	(void)setenv("DLOCK_HOLDS", "k=" T1 "=x k=" T2 "=7", 1);
	ok(setup_holds("-", "k", held) == 1 && held[0].fence == 7, "junk of the same key is passed over");
}

/* Is the memory protected with these options? */
static bool
protects(const struct options *o)
{
	(void)prctl(PR_SET_DUMPABLE, 1);
	setup_protect(o);
	return prctl(PR_GET_DUMPABLE) == 0;
}

TEST(protect)
{
	static const char *const variables[] = { "DLOCK_PASSWORD", "REDISCLI_AUTH" };

	for (size_t i = 0; i < COUNT(variables); i++)
		(void)unsetenv(variables[i]);
	ok(!protects(&(struct options){ .node = { "redis://u@h" }, .nodes = 1, .cacert = "f" }), "no secret");
	each(protects(&(struct options){ .node = { "h", "redis://:p@h" }, .nodes = 2 }), "a URL");
	each(protects(&(struct options){ .password_file = "f" }), "--password-file");
	each(protects(&(struct options){ .password_command = "c" }), "--password-command");
	each(protects(&(struct options){ .sentinel_password_file = "f" }), "--sentinel-password-file");
	each(protects(&(struct options){ .cert = "f" }), "--cert");
	for (size_t i = 0; i < COUNT(variables); i++) {
		(void)setenv(variables[i], "p", 1);
		each(protects(&(struct options){ .nodes = 0 }), "%s", variables[i]);
		(void)unsetenv(variables[i]);
	}
	each_ok("whatever may be a secret protects the memory");
	(void)prctl(PR_SET_DUMPABLE, 1);
}

TEST(owner)
{
	const struct command run = { .bit = CMD_RUN };
	const struct invocation inv = { .command = &run };
	char owner[OWNER_MAX + 1];

	(void)setenv("LOGNAME", "one", 1);
	(void)setenv("USER", "two", 1);
	setup_owner(&inv, owner);
	ok(strncmp(owner, "one@", 4) == 0, "LOGNAME: %s", owner);
	(void)setenv("LOGNAME", "", 1);
	setup_owner(&inv, owner);
	ok(strncmp(owner, "two@", 4) == 0, "without it USER: %s", owner);
	(void)setenv("USER", "", 1);
	setup_owner(&inv, owner);
	ok(owner[0] != '@' && strncmp(owner, "two@", 4) != 0, "without both the user of the process: %s", owner);
}
