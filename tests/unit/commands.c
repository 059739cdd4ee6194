/* SPDX-License-Identifier: MIT */
/*
 * The commands on a service in memory, which takes the place of Redis and ZooKeeper in the table of services: exit
 * statuses, and what is printed.  Each call of dlock is a process of its own; the lock is in memory that they share.
 */
#include <inttypes.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* The program itself, whose main is called. */
#define main dlock_main
int dlock_main(int argc, char **argv);
#include "../../src/dlock.c"
#undef main

#include "base/duration.h"
#include "cli/view.h"
#include "memory_service.h"

/* Wait for a process, and take what it wrote.  Returns its exit status, or minus the signal that ended it. */
static int
finish(pid_t pid, int out)
{
	size_t length = 0;
	ssize_t n;
	int status;

	while ((n = read(out, store->said + length, sizeof(store->said) - 1 - length)) > 0)
		length += (size_t)n;
	store->said[length] = '\0';
	(void)close(out);
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

enum {
	WORDS_MAX = 16
};

/* Split a line at its blanks; what follows "sh -c" is one word. */
static int
split(const char *line, char *argv[WORDS_MAX])
{
	int argc = 0;

	argv[argc++] = strdup("dlock");
	while (*line != '\0' && argc < WORDS_MAX - 1) {
		const size_t length = argc > 2 && strcmp(argv[argc - 1], "-c") == 0 ? strlen(line) : strcspn(line, " ");

		argv[argc++] = strndup(line, length);
		line += length + (line[length] == ' ');
	}
	argv[argc] = NULL;
	return argc;
}

/* A copy of this process, for which 0 is returned; what it writes on both streams comes out there. */
static pid_t
copy(int *out)
{
	int fd[2];
	pid_t pid;

	if (pipe(fd) != 0)
		return -1;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)dup2(fd[1], STDOUT_FILENO);
		(void)dup2(fd[1], STDERR_FILENO);
		(void)close(fd[0]);
	}
	(void)close(fd[1]);
	*out = fd[0];
	return pid;
}

/* Start dlock with the words of a line. */
static pid_t
start(const char *line, int *out)
{
	char *argv[WORDS_MAX];
	const int argc = split(line, argv);
	const pid_t pid = copy(out);
	int i;

	if (pid == 0) {
		i = dlock_main(argc, argv);
		(void)fflush(stdout);
		_exit(i);
	}
	for (i = 0; i < argc; i++)
		free(argv[i]);
	return pid;
}

/* Run dlock with the words of a line; returns its exit status. */
static int call(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int
call(const char *format, ...)
{
	char line[512];
	va_list args;
	int out = -1;
	pid_t pid;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	pid = start(line, &out);
	return finish(pid, out);
}

static bool
said(const char *part)
{
	if (strstr(store->said, part) != NULL)
		return true;
	printf("# not said: %s\n# but: ", part);
	tap_print(store->said);
	putchar('\n');
	return false;
}

TEST(environment)
{
	for (int i = 0; environ[i] != NULL; i++) {
		if (strncmp(environ[i], "DLOCK_", 6) == 0)
			environ[i][0] = '_';
	}
	(void)setenv("DLOCK_NODES", "memory:", 1);
	(void)setenv("DLOCK_CONFIG", "/dev/null", 1);
	if (!ok(store_open(), "shared memory"))
		exit(1);
}

TEST(run)
{
	is_int(call("run --ttl 5s k -- sh -c echo $DLOCK_KEY $DLOCK_TTL_MS $DLOCK_FENCE"), 0, "run");
	is_str(store->said, "k 30000 1\n", "the environment of the command, and nothing else is printed");
	ok(!store->memory.held && store->memory.releases == 1, "the lock is released");
	ok(store->node_timeout_ms == 500 && store->replicas_timeout_ms == 250, "times to answer follow from --ttl");
	is_int(call("run k -- sh -c exit 7"), 7, "the exit status of the command");
	is_int(call("run k -- sh -c kill -9 $$"), 137, "the exit status of a command that a signal ended");
	is_int(call("run k -- /nowhere/x"), 127, "no command");
	ok(!store->memory.held && said("/nowhere/x"), "the lock is released, and the command is named");
	is_int(call("run k -- /dev/null/x"), 127, "nor is there one behind a file");
	is_int(call("run --ttl 1m k -- true"), 0, "a lease shorter than --ttl will do for run");
	store->memory.ttl_ms = 0;
	is_int(call("run --json k -- true"), 69, "a lease that is over at once");
	ok(said("\"outcome\":\"no-quorum\"") && said("granted too late"), "is none");
	store->memory.ttl_ms = LONGEST_MS;
	is_int(call("run --min-hold 15s k -- /nowhere/x"), 127, "--min-hold of no command");
	ok(!store->memory.held, "the lock is free");
	is_int(call("run --min-hold 15s --label job k -- true"), 0, "--min-hold");
	is_int(call("run k -- true"), 75, "the lock is kept");
	ok(said("dlock: k: kept until ") && said("(--min-hold); job on "), "by which option is said");
	store->memory.held = false;
}

TEST(held)
{
	const char *waited;
	long ms = 0;

	is_int(call("acquire --label backup k"), 0, "acquire");
	is_int(call("run k -- touch /nowhere/x"), 75, "a lock that is held");
	ok(said("dlock: k: held by ") && said("(backup), ") && said("from acquire"), "the holder is named");
	is_int(call("run -q k -- true"), 75, "--quiet");
	is_str(store->said, "", "--quiet says nothing of a lock that is held");
	is_int(call("run -E 9 k -- true"), 9, "-E");
	/* It is counted from the first attempt: on a machine that stalls before that it may be less than the limit. */
	for (int i = 0; i < 20 && ms < 50; i++) {
		each(call("acquire --wait 50ms --json k") == 75, "the wait ends");
		waited = strstr(store->said, "\"waited_ms\":");
		ms = waited != NULL ? strtol(waited + 12, NULL, 10) : 0;
	}
	each_ok("the wait ends");
	ok(ms >= 50 && ms < 50000 && said("waited ") && said(ms < 1000 ? "ms\n" : "s\n"),
	    "how long is said, in both forms");
	ok(strstr(strstr(store->said, ": waiting; held by ") + 1, ": waiting") == NULL, "that it waits is said once");
	store->memory.unreachable = true;
	is_int(call("acquire --wait 60s k"), 69, "no server answers any more");
	ok(said("no server answers; waited "), "how long it waited is said");
	store->memory.unreachable = false;
	store->memory.held = false;
}

/* Until dlock waits, or has had ten seconds to begin. */
static void
await_wait(void)
{
	for (int i = 0; i < 2000 && *(volatile int64_t *)&store->until_us == 0; i++)
		(void)poll(NULL, 0, 5);
}

TEST(wait)
{
	int64_t began;
	int out = -1;
	pid_t pid;

	is_int(call("acquire k"), 0, "acquire");
	pid = start("run --wait 60s k -- echo in", &out);
	is_int(call("release k %s", store->token), 0, "release");
	is_int(finish(pid, out), 0, "a waiter");
	ok(said("in\n"), "its command ran");
	is_int(call("acquire k"), 0, "acquire");
	began = clock_now_us();
	store->until_us = 0;
	pid = start("acquire --json --wait 60s k", &out);
	await_wait();
	(void)kill(pid, SIGTERM);
	is_int(finish(pid, out), -SIGTERM, "a signal ends the wait");
	ok(strchr(store->said, '{') == NULL, "there is no object then");
	store->until_us = 0;
	pid = start("run --replace --kill-after 60s k -- true", &out);
	await_wait();
	ok(store->until_us >= began + 60000000, "--replace waits for --kill-after behind the lease");
	is_int(call("release k %s", store->token), 0, "release");
	is_int(finish(pid, out), 0, "it runs");
}

TEST(tokens)
{
	char token[TOKEN_SIZE];

	is_int(call("acquire --ttl 1m k"), 64, "acquire, for which nobody renews, wants the whole lease");
	is_int(call("acquire --ttl 1m --json k"), 64, "--json");
	ok(said("dlock: no lease is so long\n") && store->said[0] == 'd', "an error of usage has no object");
	is_int(call("acquire --ttl 25s k"), 0, "acquire");
	memcpy(token, store->token, sizeof(token));
	ok(strncmp(store->said, token, strlen(token)) == 0 && strcmp(store->said + strlen(token), "\n") == 0,
	    "it prints the token only");
	is_int(call("renew k %s", token), 0, "renew");
	is_str(store->said, "", "renew prints nothing");
	is_int(call("renew --json k %s", token), 0, "renew --json");
	ok(said("\"outcome\":\"renewed\"") && said("\"ttl_ms\":30000"), "its outcome");
	is_int(call("renew k token-%0*d", TOKEN_SIZE - 7, 0), 1, "a token that does not hold");
	ok(said("dlock: k: gone: ") && said("held by another"), "the message names the holder");
	is_int(call("release k nonsense"), 64, "no token");
	ok(said("malformed TOKEN") && said("96 letters"), "how a token looks is said");
	is_int(call("release k %s", token), 0, "release");
	is_str(store->said, "", "release prints nothing");
	is_int(call("release --json k %s", token), 1, "release once more");
	ok(said("\"outcome\":\"gone\"") && said("dlock: k: gone: it expired, was broken or was released"),
	    "it is gone");
	is_int(call("acquire --json k"), 0, "acquire --json");
	ok(said("\"key\":\"k\"") && said("\"ttl_ms\":30000") && said("\"nodes\":1,\"granted\":1"), "the lease");
	is_int(call("release k %s", store->token), 0, "release");
	is_int(call("acquire --export=sh k"), 0, "acquire --export");
	ok(said("DLOCK_KEY=") && said(store->token), "variables");
	is_int(call("acquire --export=sh k"), 75, "acquire --export of a lock that is held");
	ok(said("75"), "a line that fails with that status");
	store->memory.held = false;
}

/* The keeper of a lock is the child of this process when the process that called it has ended. */
TEST(keep)
{
	const int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	pid_t kept;
	int status;

	if (fd < 0) /* not known to valgrind */
		return;
	(void)close(fd);
	kept = fork();
	if (kept == 0) {
		(void)poll(NULL, 0, -1);
		_exit(0);
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	is_int(call("acquire --keep %ld k", (long)kept), 0, "acquire --keep");
	is_int(call("release k token-%0*d", TOKEN_SIZE - 7, 0), 1, "a release by another token");
	is_int(waitpid(-1, &status, WNOHANG), 0, "the keeper and its process go on");
	is_int(call("release k %s", store->token), 0, "release");
	ok(waitpid(-1, &status, WNOHANG) > 0, "the keeper has ended with the release");
	is_int(waitpid(kept, &status, WNOHANG), 0, "the process goes on");
	kill_off(kept);
}

TEST(status)
{
	is_int(call("status k"), 1, "status of a free lock");
	is_int(call("status"), 0, "status of all");
	is_int(call("acquire --label backup k"), 0, "acquire");
	is_int(call("status k"), 0, "status of a lock that is held");
	ok(said("KEY") && said("held") && said("backup (acquire)") && said("1/1"), "a table");
	is_int(call("status --json"), 0, "status --json of all");
	ok(said("\"key\":\"k\",\"state\":\"held\"") && said("\"token_hint\":\"toke\""), "an object");
	ok(strstr(store->said, store->token) == NULL, "status does not show the token");
	is_int(call("status --waiters k"), 1, "exit status 1 if nobody waits");
	store->memory.held = false;
}

/* What is printed of a lease with so much time left; samples are packed, so lengths around those of their groups count. */
static bool
remaining(int64_t left_ms)
{
	static struct record r = { .state = LOCK_HELD, .holders = 1, .holder[0].state = LOCK_HELD };
	static struct view v;
	char expected[80];
	struct err err;
	int out = -1;
	const pid_t pid = copy(&out);

	if (pid == 0) {
		r.holder[0].left_ms = left_ms;
		if (view_add_sample(&v, "k", &r, &err) == ST_OK)
			view_metrics(&v, NULL, 0);
		(void)fflush(stdout);
		_exit(0);
	}
	(void)finish(pid, out);
	(void)snprintf(expected, sizeof(expected), "\ndlock_remaining_seconds{key=\"k\"} %" PRId64 ".%03" PRId64 "\n",
	    left_ms / 1000, left_ms % 1000);
	return said(expected);
}

TEST(metrics)
{
	int64_t left_ms;
	int bits;

	for (bits = 0; bits < 48; bits++) {
		left_ms = INT64_C(1) << bits;
		each(remaining(left_ms - 1) && remaining(left_ms), "%" PRId64 " ms left", left_ms);
	}
	each_ok("the time left of a lock");
}

TEST(break)
{
	char at[TIME_SIZE], after[TIME_SIZE], expected[32];
	int released;

	is_int(call("break --force k"), 1, "break of a free lock");
	ok(said("dlock: k: not broken: the lock is free"), "it says so");
	is_int(call("acquire --label backup k"), 0, "acquire");
	is_int(call("break --force k"), 0, "break");
	ok(said("k: broken; it was held by ") && said("(backup)"), "the message names the former holder");
	is_int(call("renew k %s", store->token), 1, "renew of a broken lock");
	ok(said("dlock: k: gone: broken by "), "the message names who broke it");
	is_int(call("release --json k %s", store->token), 1, "release of a broken lock");
	ok(said("\"outcome\":\"broken\"") && said("\"broken_by\":{"), "its outcome");
	store->broken_ago_ms = INT64_C(100) * 86400000;
	do { /* the date may change meanwhile */
		(void)duration_show_time(clock_wall_us() - store->broken_ago_ms * 1000, at);
		released = call("release k %s", store->token);
		(void)duration_show_time(clock_wall_us() - store->broken_ago_ms * 1000, after);
	} while (strncmp(at, after, 10) != 0);
	is_int(released, 1, "release, long after the break");
	(void)snprintf(expected, sizeof(expected), " at %.10s ", at);
	ok(said(expected) && said(", 100d00h ago"), "when it was broken");
	store->broken_ago_ms = 0;
	is_int(call("acquire k"), 0, "acquire");
	is_int(call("release k %s", store->token), 0, "release");
	is_int(call("release k %s", store->token), 1, "release once more");
	ok(said("dlock: k: gone: it expired"), "it was the lock before that was broken");
}

TEST(ask)
{
	is_int(call("acquire k"), 0, "acquire");
	store->asked = 1;
	is_int(call("break --ask k"), 69, "break --ask that reaches nobody");
	store->asked = 0;
	is_int(call("break --ask k"), 0, "one that has reached the holder: an outage may pass");
	is_int(store->asked, 3, "it has asked again");
	ok(said("k: asked to end; held by ") && said("k: ended; it was held by "), "the messages");
}

/* Broken while a command runs. */
TEST(loss)
{
	int out = -1;
	pid_t pid;

	(void)memory_alerted(&store->memory.base); /* of the break before */
	pid = start("run --exec-on-lost echo${IFS}hook:$DLOCK_LOST_REASON k -- sleep 60", &out);
	while (!*(volatile bool *)&store->memory.held)
		(void)poll(NULL, 0, 5);
	is_int(call("break --force k"), 0, "break of a run");
	is_int(finish(pid, out), 76, "the run");
	ok(said("hook:the lock is lost: gone: broken by "), "the reason is told to the hook");
}

/* What a service cannot do is a usage error. */
TEST(abilities)
{
	is_int(call("history k"), 64, "history");
	ok(said("Memory keeps no history"), "the service is named");
	is_int(call("status --max-age 1h k"), 64, "--max-age");
	is_int(call("run --replicas 1 k -- true"), 64, "--replicas");
	ok(said("--replicas is not for Memory"), "the service is named");
	is_int(call("run --slots 2 k -- true"), 64, "--slots");
	is_int(call("run --shared k -- true"), 64, "--shared");
	is_int(call("run -N memory:a -N memory:b k -- true"), 64, "two nodes");
	is_int(call("run -N other:a k -- true"), 64, "a URL of another service");
	ok(said("--node: not a URL of memory"), "the error of the service is shown");
}
