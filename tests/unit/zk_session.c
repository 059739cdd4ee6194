/* SPDX-License-Identifier: MIT */
#include "zk/session.h"

#include <unistd.h>

#include "base/clock.h"
#include "server.h"

static struct zk_url url;
static const struct log silent = { .debug = NULL };
static struct session s;

TEST(pause)
{
	struct err err;
	enum zk_code code = ZK_TIMEOUT;
	unsigned int tries = 0;
	int64_t began = clock_now_us();
	int end[2];

	is_int(zk_url_parse("zk://a:1,b:2", &url, &err), ST_OK, "a URL");
	session_init(&s, &url, &silent);
	ok(session_pause(&s, &tries, &(struct wait){ CLOCK_NEVER, -1 }, &code), "another try");
	ok(clock_now_us() - began >= 10000 && tries == 1, "after a pause");
	for (int i = 0; i < 100; i++)
		each(!session_pause(&s, &tries, &(struct wait){ 0, -1 }, &code), "pause %d", i);
	each_ok("no other try behind the limit, however many there were");
	began = clock_now_us();
	(void)session_pause(&s, &tries, &(struct wait){ CLOCK_NEVER, -1 }, &code);
	ok(clock_now_us() - began >= 500000, "the longest pause");
	is_int(code, ZK_TIMEOUT, "the code stays");
	each(pipe(end) == 0 && write(end[1], "x", 1) == 1, "a pipe");
	ok(!session_pause(&s, &tries, &(struct wait){ CLOCK_NEVER, end[0] }, &code),
	    "no other try behind an interrupt");
	is_int(code, ZK_INTERRUPTED, "which the code says");
	session_free(&s);
}

/* -- A server ----------------------------------------------------------------- */

#define WITHIN(us) (&(struct wait){ clock_now_us() + (us), -1 })

/*
 * A server in a process of its own, the first of the URL of a session; the second one, which counts if there are two,
 * accepts one connection and is silent.  What the first does: g grants a session, c closes the connection, C the port
 * before that, s is silent; e waits for the end of the connection that was granted last.
 */
static pid_t
serve(const char *deeds, int servers)
{
	static const unsigned char granted[41] = { [3] = 37, [10] = 23, [19] = 7, [23] = 16 };
	int port, other, fd, last = -1, listener = listen_at_port(9, &port);
	const pid_t pid = fork();
	char text[100];
	struct err err;

	(void)alarm(pid == 0 ? 60 : 0);
	for (; pid == 0 && *deeds != '\0'; deeds++) {
		while (*deeds == 'e' && read(last, text, sizeof(text)) > 0)
			continue;
		fd = *deeds == 'e' ? last : accept(listener, NULL, NULL);
		if (*deeds != 'e' && read(fd, text, sizeof(text)) < 0)
			_exit(1);
		if (*deeds == 'C')
			(void)close(listener);
		if (*deeds == 'g' && write(fd, granted, sizeof(granted)) > 0)
			last = fd;
		else if (*deeds != 's')
			(void)close(fd);
	}
	while (pid == 0)
		(void)pause();
	(void)close(listener);
	(void)listen_at_port(0, &other);
	(void)snprintf(text, sizeof(text), "zk://127.0.0.1:%d,127.0.0.1:%d", port, other);
	each(zk_url_parse(text, &url, &err) == ST_OK, "a URL");
	url.servers = servers;
	session_init(&s, &url, &silent);
	s.server = 0;
	return pid;
}

/* Attach to the session with a new connection. */
static enum zk_code
attach(int64_t us)
{
	session_begin(&s);
	return session_send(&s, WITHIN(us));
}

TEST(place)
{
	const pid_t pid = serve("gcegg", 1);

	is_int(session_create(&s, 5888, WITHIN(PATIENCE_US)), ZK_OK, "a session");
	is_int(attach(PATIENCE_US), ZK_OK, "a server without a place for a second connection: the first is closed");
	ok(s.old.fd < 0 && attach(PATIENCE_US) == ZK_OK && s.old.fd >= 0, "the old one stays open otherwise");
	session_prove(&s);
	ok(s.old.fd < 0, "until the session is proven");
	session_free(&s);
	kill_off(pid);
}

static enum zk_code
second_works(void *tries, const struct wait *limit)
{
	(void)limit;
	return (*(int *)tries)++ == 0 ? ZK_TIMEOUT : ZK_OK;
}

TEST(silent_servers)
{
	const pid_t pid = serve("gsgg", 2);
	int tries = 0;

	is_int(session_create(&s, 5888, WITHIN(PATIENCE_US)), ZK_OK, "a session");
	is_int(attach(2000000), ZK_TIMEOUT, "its server is silent");
	ok(s.tried.server == 0 && s.server == 1, "the next one is tried next time");
	is_int(session_create(&s, 5888, WITHIN(1000000)), ZK_OK, "one accepts and is silent: the other is tried then");
	is_int(session_retry(&s, second_works, &tries, WITHIN(PATIENCE_US)), ZK_OK, "another try");
	ok(s.server == 1 && tries == 2, "by the next server");
	is_int(session_create(&s, 5888, WITHIN(3000000)), ZK_OK, "one that does not even accept has its share");
	session_free(&s);
	kill_off(pid);
}

TEST(elections)
{
	const int64_t began = clock_now_us();
	pid_t pid = serve("C", 1);

	is_int(session_create(&s, 5888, WITHIN(300000)), ZK_CONNECTION_LOSS,
	    "a server accepts once, and is refused then");
	ok(clock_now_us() - began >= 300000, "it is tried until the limit");
	is_int(session_create(&s, 5888, WITHIN(INT32_MAX)), ZK_CONNECTION_LOSS, "one that never accepts is tried once");
	session_free(&s);
	kill_off(pid);
	pid = serve("cs", 1);
	is_int(session_create(&s, 5888, WITHIN(1000000)), ZK_TIMEOUT, "one closes the connection, and is silent then");
	ok(strstr(s.tried.reason.text, "closed the connection") != NULL, "the better reason: %s", s.tried.reason.text);
	session_free(&s);
	kill_off(pid);
}
