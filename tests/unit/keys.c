/* SPDX-License-Identifier: MIT */
#include "redis/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_SYS_PRCTL_H
#include <sys/prctl.h>
#endif

#include "tap.h"

/* -- Tables ----------------------------------------------------------------- */

static const struct {
	const char *key;
	const char *facts;
} table[] = {
	{ "job", "{job}:dlock" },
	{ "a:b", "{a:b}:dlock" },
	{ "two words", "{two words}:dlock" },
	{ "\xff\n", "{\xff\n}:dlock" },
	{ "{tag}:job", "{tag}:job:dlock" },
	{ "job:{tag}", "job:{tag}:dlock" },
	{ "{a}{b}", "{a}{b}:dlock" },
	{ "{{a}}", "{{a}}:dlock" },
	{ "{a}}", "{a}}:dlock" },
	{ "}{a}", "}{a}:dlock" },
	{ "{", "{{}:dlock" },
	{ "job{", "{job{}:dlock" },
	{ "{job", "{{job}:dlock" },
	{ "{{", "{{{}:dlock" },
};

/* The examples of the Redis Cluster specification, and the check value of its CRC. */
static const struct {
	const char *key;
	const char *tag;
} tags[] = {
	{ "{user1000}.following", "user1000" },
	{ "{user1000}.followers", "user1000" },
	{ "foo{}{bar}", NULL },
	{ "foo{{bar}}zap", "{bar" },
	{ "foo{bar}{zap}", "bar" },
	{ "{}", NULL },
	{ "{}x", NULL },
	{ "}{", NULL },
	{ "x}y{z", NULL },
	{ "}{a}", "a" },
	{ "{a", NULL },
	{ "a}", NULL },
};

static bool
is_auxiliary(const char *name)
{
	char key[KEY_MAX + 1];
	const enum sibling is = keys_sibling(name, key);

	return is != METADATA && is != SIBLINGS;
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
	}
	is_int(keys_slot("123456789", 9), 0x31c3, "the check value of the CRC");
	is_int(keys_slot("", 0), 0, "the slot of nothing");
	for (size_t i = 0; i < COUNT(tags); i++) {
		const char *hashed = tags[i].tag != NULL ? tags[i].tag : tags[i].key;
		char plain[64] = "{";

		/* A tag that is asked for by a name without braces; what can't stand so is compared by the server below. */
		if (strpbrk(hashed, "{}") == NULL) {
			(void)snprintf(plain, sizeof(plain), "%s", hashed);
			is_int(keys_slot(tags[i].key, strlen(tags[i].key)), keys_slot(plain, strlen(plain)),
			    "%s hashes %s", tags[i].key, plain);
		}
	}
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
	size_t i, digits;

	for (i = 0; i < COUNT(numbered); i++) {
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
	static char key[KEY_MAX + 1], back[KEY_MAX + 1];
	static const char *const starts[] = { "k", "{t}", "}" };
	struct keys n;
	size_t i, length;

	for (i = 0; i < COUNT(starts); i++) {
		memset(key, 'k', KEY_MAX);
		memcpy(key, starts[i], strlen(starts[i]));
		keys_of(key, &n);
		length = strlen(n.sibling[METADATA]);
		ok(length > KEY_MAX && keys_key(n.sibling[METADATA], strlen(n.sibling[METADATA]), back) &&
			strcmp(back, key) == 0,
		    "the longest key from %s on: facts", starts[i]);
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
	char name[KEY_MAX + 1], all[KEY_MAX + 1], of_all[KEY_MAX + 1];
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
			keys_key(n.sibling[METADATA], strlen(n.sibling[METADATA]), of_all) && strcmp(of_all, name) == 0,
		    "all else is that of a lock with this name");
		is_int(keys_slot(name, strlen(name)), keys_slot(n.sibling[WAITING], strlen(n.sibling[WAITING])),
		    "in one slot of a Cluster");
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

/* -- A Redis Cluster of one, which computes the slots ---------------------------- */

static char folder[100], socket_path[120], commands_path[120], client[512];

static void
nap(void)
{
	const struct timespec t = { 0, 20000000 };

	(void)nanosleep(&t, NULL);
}

static const char *
program(const char *variable, const char *otherwise)
{
	const char *path = getenv(variable);

	return path != NULL && path[0] != '\0' ? path : otherwise;
}

/*
 * The cluster's bus needs a port even where clients use a socket: on an address of this test's own, which every address in 127/8
 * is that nobody else has chosen.
 */
static pid_t
start_server(int try)
{
	const char *server = program("REDIS_SERVER", "redis-server");
	char address[32];
	const pid_t pid = fork();
	int null;

	if (pid != 0)
		return pid;
	(void)snprintf(address, sizeof(address), "127.%d.%d.%d", 1 + (int)(getppid() >> 8 & 0x7f),
	    1 + (int)(getppid() & 0x7f), 1 + try);
#ifdef HAVE_SYS_PRCTL_H
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	null = open("/dev/null", O_RDWR);
	(void)dup2(null, 0);
	(void)dup2(null, 1);
	(void)dup2(null, 2);
	(void)execlp(server, server, "--cluster-enabled", "yes", "--port", "0", "--bind", address, "--unixsocket",
	    socket_path, "--dir", folder, "--save", "", "--appendonly", "no", "--daemonize", "no", (char *)NULL);
	_exit(127);
}

static bool
answers(void)
{
	char command[600], line[16] = "";
	FILE *f;
	bool pong;

	(void)snprintf(command, sizeof(command), "%s ping 2>/dev/null", client);
	f = popen(command, "r");
	pong = f != NULL && fgets(line, sizeof(line), f) != NULL && strcmp(line, "PONG\n") == 0;
	if (f != NULL)
		(void)pclose(f);
	return pong;
}

/* Wait until it answers, or has ended because somebody else had the address. */
static pid_t
start_cluster(void)
{
	int try, naps;
	pid_t pid;

	for (try = 0; try < 5; try++) {
		pid = start_server(try);
		for (naps = 0; naps < 500 && waitpid(pid, NULL, WNOHANG) == 0; naps++) {
			if (answers())
				return pid;
			nap();
		}
		if (naps == 500) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
		}
	}
	return -1;
}

static void
stop_cluster(pid_t pid)
{
	static const char *const left[] = { "nodes.conf", "commands", "s" };
	char path[140];

	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	for (size_t i = 0; i < COUNT(left); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, left[i]);
		(void)unlink(path);
	}
	ok(rmdir(folder) == 0, "nothing is left behind");
}

static void
put_question(FILE *f, const char *key)
{
	fputs("CLUSTER KEYSLOT \"", f);
	for (; *key != '\0'; key++)
		fprintf(f, "\\x%02x", (unsigned int)(unsigned char)*key);
	fputs("\"\n", f);
}

/* -- What it says ----------------------------------------------------------- */

enum {
	RANDOM_KEYS = 200,
	KEY_SIZE = 24
};

static char keys[COUNT(table) + COUNT(tags) + RANDOM_KEYS][KEY_SIZE];

static void
choose_keys(void)
{
	static const char likely[] = "{}{}{}ab:";
	size_t i, j, length;

	for (i = 0; i < COUNT(keys); i++) {
		if (i < COUNT(table)) {
			(void)snprintf(keys[i], KEY_SIZE, "%s", table[i].key);
			continue;
		}
		if (i < COUNT(table) + COUNT(tags)) {
			(void)snprintf(keys[i], KEY_SIZE, "%s", tags[i - COUNT(table)].key);
			continue;
		}
		length = 1 + (size_t)below(i % 4 == 0 ? KEY_SIZE - 1 : 7);
		for (j = 0; j < length; j++)
			keys[i][j] = (char)(below(4) == 0 ? 1 + below(255)
							  : likely[below((int64_t)sizeof(likely) - 1)]);
	}
}

/* Short keys of few characters: would two of them share a sibling, they did so here. */
TEST(shared)
{
	static const char letters[] = "{}a1";
	char key[8], back[KEY_MAX + 1];
	struct keys n;
	int64_t number, rest;
	size_t length;

	for (number = 1; number < 4 * 4 * 4 * 4; number++) {
		for (rest = number, length = 0; rest > 0; rest /= 4)
			key[length++] = letters[rest % 4];
		key[length] = '\0';
		keys_of(key, &n);
		each(keys_key(n.sibling[METADATA], strlen(n.sibling[METADATA]), back) && strcmp(back, key) == 0,
		    "%s: %s", key, n.sibling[METADATA]);
	}
	each_ok("the KEY can be read from the name of its metadata, so no two KEYs share one");
}

static bool
ask_all(void)
{
	FILE *f = fopen(commands_path, "w");
	struct keys n;

	for (size_t i = 0; f != NULL && i < COUNT(keys); i++) {
		keys_of(keys[i], &n);
		put_question(f, keys[i]);
		put_question(f, n.sibling[METADATA]);
		put_question(f, n.sibling[HOLDS]);
	}
	return f != NULL && fclose(f) == 0;
}

static long
read_slot(FILE *f)
{
	char line[32] = "", *end;
	long slot;

	if (fgets(line, sizeof(line), f) == NULL)
		return -1;
	slot = strtol(line, &end, 10);
	return end != line && *end == '\n' ? slot : -1;
}

static void
compare_all(void)
{
	char command[700];
	long key, facts, holds;
	FILE *f;

	(void)snprintf(command, sizeof(command), "%s <'%s'", client, commands_path);
	f = popen(command, "r");
	for (size_t i = 0; f != NULL && i < COUNT(keys); i++) {
		key = read_slot(f);
		facts = read_slot(f);
		holds = read_slot(f);
		each(key == keys_slot(keys[i], strlen(keys[i])), "%s: slot %ld, not %d", keys[i], key,
		    keys_slot(keys[i], strlen(keys[i])));
		each(key >= 0 && facts == key && holds == key, "%s: slot %ld, its facts %ld, its holds %ld", keys[i],
		    key, facts, holds);
	}
	if (f != NULL)
		(void)pclose(f);
	each_ok("a key and its siblings have one slot, and keys_slot() knows it");
}

TEST(cluster)
{
	pid_t pid;

	if (!ok(temporary_folder(folder, sizeof(folder)), "a folder"))
		return;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/s", folder);
	(void)snprintf(commands_path, sizeof(commands_path), "%s/commands", folder);
	(void)snprintf(client, sizeof(client), "'%s' -s '%s'", program("REDIS_CLI", "redis-cli"), socket_path);
	pid = start_cluster();
	if (ok(pid > 0, "a Redis Cluster of one node")) {
		choose_keys();
		ok(ask_all(), "questions for it");
		compare_all();
	}
	stop_cluster(pid);
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
		each(keys_slot(n.sibling[METADATA], strlen(n.sibling[METADATA])) == keys_slot(key, strlen(key)), "%s",
		    key);
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
