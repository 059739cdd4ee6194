/* SPDX-License-Identifier: MIT */
/*
 * Many clients of one Redis in one process, to measure what a lock costs the server.
 *
 *	load pairs FORM SOCKET CONNECTIONS MS
 *		On each connection a lock of its own is acquired and released again and again.  FORM is dlock, with
 *		the scripts and the requests of dlock; evalsha, the same with EVALSHA in place of EVAL, which dlock
 *		does not send; redis-py: SET NX PX and EVALSHA of a script that deletes; or fence, least or packed:
 *		EVALSHA of the shortest scripts, see scripts.h.
 *	load fleet SOCKET HOSTS JOBS MS
 *		So many hosts come within MS, each with a connection of its own, and want one of the locks of JOBS,
 *		without waiting and with a minimum time (--min-hold): one holds it, the others are refused and leave.
 *
 * Says "begun" when all is ready, and at the end "ended COUNT NS SLOWEST": how many pairs, or hosts that were granted
 * a lock, in which time, and the nanoseconds of the slowest one from its connect(2) or acquire to the last reply.
 */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "redis/command.h"
#include "redis/reply.h"
#include "scripts.h"
#include "tool.h"

#define TTL "30000"
#define OWNER "user@host:12345"
#define LABEL "true"

enum {
	EVENTS = 256,
	SHA = 40
};

struct host {
	char key[24], token[24];
	struct parser *parser;
	int64_t begun_ns;
	unsigned int turn;
	int fd;
	bool holds;
};

static struct load {
	struct sockaddr_un address;
	struct host *hosts;
	unsigned int count, jobs;
	enum form {
		DLOCK,
		EVALSHA,
		REDIS_PY,
		FENCE,
		LEAST,
		PACKED
	} form;
	bool fleet;
	char sha[2][SHA + 1]; /* of the scripts that acquire and release */
	int poll;
	unsigned int left; /* hosts that are not at their end */
	uint64_t done;
	int64_t ends_ns, slowest_ns;
} load;

static const struct {
	const char *name, *acquire, *release; /* the scripts, where they are not dlock's */
} forms[] = {
	[DLOCK] = { "dlock", NULL, NULL },
	[EVALSHA] = { "evalsha", NULL, NULL },
	[REDIS_PY] = { "redis-py", NULL, REDIS_PY_RELEASE },
	[FENCE] = { "fence", FENCE_ACQUIRE, FENCE_RELEASE },
	[LEAST] = { "least", LEAST_ACQUIRE, LEAST_RELEASE },
	[PACKED] = { "packed", PACKED_ACQUIRE, PACKED_RELEASE },
};

/* -- Requests --------------------------------------------------------------- */

static void
send_command(const struct host *h, struct command *command)
{
	size_t length, again, sent = 0;
	char *const bytes = command_encode(command, &length, &again);

	if (bytes == NULL)
		fail("out of memory", NULL);
	while (sent < length) {
		const ssize_t n = write(h->fd, bytes + sent, length - sent);

		if (n < 0 && errno != EINTR)
			fail("write", strerror(errno));
		sent += n > 0 ? (size_t)n : 0;
	}
	free(bytes);
}

/* Send EVAL, or the same as EVALSHA. */
static void
send_script(const struct host *h, struct command *command)
{
	if (load.form == EVALSHA) {
		command->argv[0] = "EVALSHA";
		command->length[0] = strlen("EVALSHA");
		command->argv[1] = load.sha[h->holds];
		command->length[1] = SHA;
	}
	send_command(h, command);
}

/* As src/redis/acquire.c and release.c do for `dlock run` without options. */
static void
send_dlock(const struct host *h)
{
	struct timespec now;
	struct command command;
	struct keys names;

	keys_of(h->key, &names);
	if (h->holds) {
		command_eval(&command, SCRIPT_RELEASE, &names, " ");
		command_add(&command, h->token);
		command_add(&command, load.fleet ? TTL : "0");
		command_add(&command, "0");	/* sent again? */
		command_add(&command, "0");	/* one of several nodes? */
		command_add(&command, "1000");	/* window */
		command_add(&command, "0");	/* all holds? */
		command_add(&command, "");	/* handoff token */
		command_add(&command, "ran 0"); /* outcome */
		if (load.fleet) {
			command_add(&command, "min-hold");
			command_add(&command, "");
		}
	} else {
		(void)clock_gettime(CLOCK_REALTIME, &now);
		command_eval(&command, SCRIPT_ACQUIRE, &names, " ");
		command_add(&command, h->token);
		command_add(&command, TTL);
		command_add_number(&command, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
		command_add(&command, OWNER);
		command_add(&command, LABEL);
		command_add(&command, "0");  /* restart guard */
		command_add(&command, "1");  /* number of the node */
		command_add(&command, "");   /* handoff token */
		command_add(&command, "");   /* name of the waiter */
		command_add(&command, "0");  /* its wait */
		command_add(&command, "0");  /* ticket */
		command_add(&command, "0");  /* waited */
		command_add(&command, "20"); /* history */
	}
	send_script(h, &command);
}

static void
send_redis_py(const struct host *h)
{
	struct command command;

	if (h->holds) {
		command_begin(&command, "EVALSHA");
		command_add(&command, load.sha[1]);
		command_add(&command, "1");
		command_add(&command, h->key);
		command_add(&command, h->token);
	} else {
		command_begin(&command, "SET");
		command_add(&command, h->key);
		command_add(&command, h->token);
		command_add(&command, "NX");
		command_add(&command, "PX");
		command_add(&command, TTL);
	}
	send_command(h, &command);
}

static void
send_shortest(const struct host *h)
{
	struct command command;
	char metadata[64]; /* of its own, since each form stores something else */

	(void)snprintf(metadata, sizeof(metadata), "{%s}:%s", h->key, forms[load.form].name);
	command_begin(&command, "EVALSHA");
	command_add(&command, load.sha[h->holds]);
	command_add(&command, "2");
	command_add(&command, h->key);
	command_add(&command, metadata);
	command_add(&command, h->token);
	if (!h->holds) {
		command_add(&command, TTL);
		command_add(&command, OWNER);
		command_add(&command, LABEL);
	}
	send_command(h, &command);
}

static void
send_next(struct host *h)
{
	if (!h->holds) {
		/* Not one of an earlier load, whose last one is gone for good. */
		(void)snprintf(h->token, sizeof(h->token), "%07u%07u%08u", (unsigned int)getpid() % 10000000,
		    (unsigned int)(h - load.hosts) % 10000000, ++h->turn % 100000000);
		if (!load.fleet)
			h->begun_ns = now_ns();
	}
	if (load.form == DLOCK || load.form == EVALSHA)
		send_dlock(h);
	else if (load.form == REDIS_PY)
		send_redis_py(h);
	else
		send_shortest(h);
}

/* -- Replies ---------------------------------------------------------------- */

/* Waits for the next reply; NULL once the connection has nothing more at the moment. */
static struct reply *
receive(struct host *h)
{
	char bytes[4096];
	struct reply *reply = parser_next(h->parser);
	ssize_t n;

	if (reply != NULL)
		return reply;
	n = read(h->fd, bytes, sizeof(bytes));
	if (n <= 0)
		fail("read", n == 0 ? "the server closed a connection" : strerror(errno));
	parser_feed(h->parser, bytes, (size_t)n);
	reply = parser_next(h->parser);
	if (reply != NULL && reply_kind(reply) == REPLY_ERROR)
		fail("the server", reply_text(reply));
	return reply;
}

static bool
succeeded(const struct reply *reply)
{
	if (reply_kind(reply) == REPLY_LIST)
		return reply_integer(reply_item(reply, 0)) == 1;
	return reply_integer(reply) == 1 || strcmp(reply_text(reply), "OK") == 0;
}

static void
leave(struct host *h)
{
	(void)close(h->fd);
	parser_free(h->parser);
	h->parser = NULL;
	load.left--;
}

/* A fleet's host leaves when it is refused or has released; another one goes on until the time is over. */
static void
proceed(struct host *h, bool success)
{
	const int64_t now = now_ns();

	if (!success && (h->holds || !load.fleet))
		fail("a lock of its own was refused", h->key);
	if (h->holds || !success) {
		load.done += load.fleet ? h->holds : 1;
		if (now - h->begun_ns > load.slowest_ns)
			load.slowest_ns = now - h->begun_ns;
	}
	h->holds = success && !h->holds;
	if (!h->holds && (load.fleet || now >= load.ends_ns))
		leave(h);
	else
		send_next(h);
}

static void
serve(int timeout_ms)
{
	struct epoll_event events[EVENTS];
	const int count = epoll_wait(load.poll, events, EVENTS, timeout_ms);

	for (int i = 0; i < count; i++) {
		struct host *const h = events[i].data.ptr;
		struct reply *const reply = receive(h);

		if (reply != NULL)
			proceed(h, succeeded(reply));
		reply_free(reply);
	}
}

/* -- Connections ------------------------------------------------------------ */

static void
dial(struct host *h)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = h } };

	h->begun_ns = now_ns();
	h->parser = parser_new();
	h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (h->parser == NULL || h->fd < 0 ||
	    connect(h->fd, (const struct sockaddr *)&load.address, sizeof(load.address)) != 0 ||
	    epoll_ctl(load.poll, EPOLL_CTL_ADD, h->fd, &event) != 0)
		fail(load.address.sun_path, strerror(errno));
	(void)snprintf(h->key, sizeof(h->key), "job:%u", (unsigned int)(h - load.hosts) % load.jobs);
}

static void
load_script(const char *text, char sha[SHA + 1])
{
	struct command command;
	struct reply *reply;

	command_begin(&command, "SCRIPT");
	command_add(&command, "LOAD");
	command_add(&command, text);
	send_command(&load.hosts[0], &command);
	while ((reply = receive(&load.hosts[0])) == NULL)
		;
	(void)snprintf(sha, SHA + 1, "%s", reply_text(reply));
	reply_free(reply);
}

static int64_t
begin(void)
{
	puts("begun");
	(void)fflush(stdout);
	return now_ns();
}

static int64_t
pairs(int64_t length_ns)
{
	const char *const acquire = forms[load.form].acquire, *const release = forms[load.form].release;
	unsigned int i;
	int64_t begun;

	for (i = 0; i < load.count; i++)
		dial(&load.hosts[i]);
	load_script(acquire != NULL ? acquire : command_script(SCRIPT_ACQUIRE), load.sha[0]);
	load_script(release != NULL ? release : command_script(SCRIPT_RELEASE), load.sha[1]);
	begun = begin();
	load.ends_ns = begun + length_ns;
	for (i = 0; i < load.count; i++)
		send_next(&load.hosts[i]);
	while (load.left > 0)
		serve(-1);
	return begun;
}

/* Hosts come at even distances, however slow the replies are. */
static int64_t
fleet(int64_t length_ns)
{
	const int64_t begun = begin();
	unsigned int come = 0;

	while (load.left > 0) {
		while (come < load.count && now_ns() - begun >= length_ns / load.count * come) {
			dial(&load.hosts[come]);
			send_next(&load.hosts[come++]);
			serve(0);
		}
		if (load.left > 0)
			serve(come < load.count ? 0 : -1);
	}
	return begun;
}

static enum form
parse_form(const char *word)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (strcmp(word, forms[i].name) == 0)
			return (enum form)i;
	fail("no such form", word);
}

int
main(int argc, char **argv)
{
	int64_t begun, length_ns;

	load.fleet = argc == 6 && strcmp(argv[1], "fleet") == 0;
	if (!load.fleet && (argc != 6 || strcmp(argv[1], "pairs") != 0))
		fail("pairs FORM SOCKET CONNECTIONS MS, or fleet SOCKET HOSTS JOBS MS", NULL);
	load.form = load.fleet ? DLOCK : parse_form(argv[2]);
	load.count = load.left = number(argv[load.fleet ? 3 : 4]);
	load.jobs = load.fleet ? number(argv[4]) : load.count;
	load.address.sun_family = AF_UNIX;
	(void)snprintf(load.address.sun_path, sizeof(load.address.sun_path), "%s", argv[load.fleet ? 2 : 3]);
	load.hosts = calloc(load.count, sizeof(*load.hosts));
	load.poll = epoll_create1(EPOLL_CLOEXEC);
	if (load.hosts == NULL || load.poll < 0)
		fail("cannot begin", strerror(errno));
	length_ns = number(argv[5]) * INT64_C(1000000);
	begun = load.fleet ? fleet(length_ns) : pairs(length_ns);
	printf("ended %" PRIu64 " %" PRId64 " %" PRId64 "\n", load.done, now_ns() - begun, load.slowest_ns);
	free(load.hosts);
	return fflush(stdout) != 0;
}
