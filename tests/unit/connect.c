/* SPDX-License-Identifier: MIT */
#include "net/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "net/channel.h"
#include "server.h"

/* A list of addresses on this machine, as getaddrinfo() gives one. */
struct list_args {
	struct addrinfo entry[12];
	struct sockaddr_in address[12];
	int count;
};

static void
add(struct list_args *l, int family, int port)
{
	struct addrinfo *a = &l->entry[l->count];

	l->address[l->count] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	l->address[l->count].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*a = (struct addrinfo){ .ai_family = family, .ai_addrlen = sizeof(l->address[0]) };
	a->ai_addr = (struct sockaddr *)&l->address[l->count];
	if (l->count > 0)
		l->entry[l->count - 1].ai_next = a;
	l->count++;
}

/* Fill a queue of connections, so that further ones hang. */
static void
block_up(int port, int client[8])
{
	struct list_args l = { .count = 0 };

	add(&l, AF_INET, port);
	for (int i = 0; i < 8; i++) {
		client[i] = connect_socket(AF_INET);
		(void)connect(client[i], l.entry[0].ai_addr, l.entry[0].ai_addrlen);
	}
}

static struct loop loop;
static bool called;

static void
ready(void *context, int64_t now_us)
{
	called = true;
}

static struct watch owner = { .fd = -1, .at_us = CLOCK_NEVER, .ready = ready };

static enum connect_state
begin(struct connecting *r, const struct addrinfo *list, int64_t now_us)
{
	*r = (struct connecting){ .owner = &owner, .connected = -1 };
	return connect_race(r, list, now_us);
}

/* Drive it to its end. */
static enum connect_state
run(struct connecting *r, const struct list_args *l)
{
	const int64_t until = clock_now_us() + PATIENCE_US;
	enum connect_state state = begin(r, l->entry, clock_now_us());

	while (state == CONNECT_BUSY && clock_now_us() < until) {
		called = false;
		(void)loop_turn(&loop, &(struct wait){ clock_sooner(owner.at_us, until), -1 });
		each(called || clock_now_us() >= owner.at_us, "the owner is called");
		state = connect_go_on(r, clock_now_us());
	}
	return state;
}

static int
peer_port(int fd)
{
	struct sockaddr_in address = { .sin_port = 0 };
	socklen_t length = sizeof(address);

	return getpeername(fd, (struct sockaddr *)&address, &length) == 0 ? ntohs(address.sin_port) : -1;
}

/* 'o' open, 'r' refused, 'c' clogged: who wins? */
static const struct {
	const char *addresses;
	int connected; /* -1: none */
} races[] = {
	{ "o", 0 },
	{ "oo", 0 },
	{ "ro", 1 },
	{ "rro", 2 },
	{ "co", 1 },
	{ "ccco", 3 },
	{ "cro", 2 },
	{ "rco", 2 },
	{ "coc", 1 },
	{ "r", -1 },
	{ "rrr", -1 },
	{ "rrrrrrrr", -1 },
};

TEST(races)
{
	static const char kinds[] = "orc";
	static const int queues[] = { 64, -1, 0 };
	int server[COUNT(queues)], port[COUNT(queues)], client[8];
	struct connecting r;

	loop_add(&loop, &owner);
	for (size_t i = 0; i < COUNT(queues); i++)
		server[i] = listen_at_port(queues[i], &port[i]);
	block_up(port[2], client);
	for (size_t i = 0; i < COUNT(races); i++) {
		struct list_args l = { .count = 0 };
		const char *a = races[i].addresses;

		for (size_t j = 0; a[j] != '\0'; j++)
			add(&l, AF_INET, port[strchr(kinds, a[j]) - kinds]);
		is_int(run(&r, &l), races[i].connected < 0 ? CONNECT_FAILED : CONNECT_DONE, "%s", a);
		if (races[i].connected < 0)
			is_int(r.error, ECONNREFUSED, "%s: the reason", a);
		else
			is_int(peer_port(r.connected), port[0], "%s: the one that is open", a);
		each(races[i].connected < 0 || r.next >= races[i].connected + 1, "%s: those before were tried", a);
		if (r.connected >= 0)
			(void)close(r.connected);
		connect_stop(&r);
		connect_stop(&r);
		for (size_t j = 0; j < (size_t)r.next; j++)
			each(r.socket[j].fd < 0, "%s: socket %zu is closed", a, j);
		each(loop.watches == &owner && owner.next == NULL && r.running == 0, "%s: nothing is left", a);
	}
	for (size_t j = 0; j < COUNT(client); j++)
		(void)close(client[j]);
	for (size_t j = 0; j < COUNT(server); j++)
		(void)close(server[j]);
	each_ok("everything was tried and closed");
}

/* connect(2) fails at once: TCP has no broadcasts. */
TEST(at_once)
{
	struct list_args l = { .count = 0 };
	struct connecting r;
	int lowest, again;

	for (int i = 0; i < 3; i++) {
		add(&l, AF_INET, 1);
		l.address[i].sin_addr.s_addr = htonl(INADDR_BROADCAST);
	}
	lowest = dup(STDIN_FILENO);
	(void)close(lowest);
	is_int(run(&r, &l), CONNECT_FAILED, "no address can be reached");
	is_int(r.error, ENETUNREACH, "the reason");
	connect_stop(&r);
	again = dup(STDIN_FILENO);
	(void)close(again);
	is_int(again, lowest, "each socket is closed");
}

/* The second address isn't waited for where the first one answers. */
TEST(patience)
{
	int port, listener = listen_at_port(0, &port), client[8];
	struct list_args l = { .count = 0 };
	struct connecting r;
	int64_t now = 1000000;

	block_up(port, client);
	add(&l, AF_INET, port);
	add(&l, AF_INET, port);
	add(&l, AF_INET, port);
	is_int(begin(&r, l.entry, now), CONNECT_BUSY, "the first one is on its way");
	is_int(r.running, 1, "one connection is tried");
	ok(owner.at_us > now && owner.at_us <= now + 250000, "the next one is due soon");
	is_int(connect_go_on(&r, owner.at_us - 1), CONNECT_BUSY, "before it is due");
	is_int(r.running, 1, "one connection is tried still");
	is_int(connect_go_on(&r, owner.at_us), CONNECT_BUSY, "when it is due");
	is_int(r.running, 2, "the second connection is tried as well");
	is_int(connect_go_on(&r, owner.at_us), CONNECT_BUSY, "after the same time again");
	is_int(r.running, 3, "the third connection is tried as well");
	ok(owner.at_us == CLOCK_NEVER, "no more timer is needed");
	connect_stop(&r);
	for (size_t j = 0; j < COUNT(client); j++)
		(void)close(client[j]);
	(void)close(listener);
}

/* Of the families 4 and 6, in the order in which they are tried. */
static const struct {
	const char *given, *tried;
} orders[] = {
	{ "4", "4" },
	{ "666", "666" },
	{ "6644", "6464" },
	{ "64", "64" },
	{ "46", "46" },
	{ "666644", "646466" },
	{ "4666", "4666" },
	{ "6666666664", "64666666" },
};

TEST(order)
{
	char tried[ADDRESSES_MAX + 1];
	struct connecting r;
	int j;

	for (size_t i = 0; i < COUNT(orders); i++) {
		struct list_args l = { .count = 0 };

		for (j = 0; orders[i].given[j] != '\0'; j++)
			add(&l, orders[i].given[j] == '4' ? AF_INET : AF_INET6, 1);
		(void)begin(&r, l.entry, 0);
		for (j = 0; j < r.addresses; j++)
			tried[j] = r.address[j]->ai_family == AF_INET ? '4' : '6';
		tried[j] = '\0';
		is_str(tried, orders[i].tried, "the order of %s", orders[i].given);
		connect_stop(&r);
	}
}

static char folder[60];
static struct endpoint local;

TEST(full_queue)
{
	struct connecting c;
	int listener, client[8], i;

	ok(temporary_folder(folder, sizeof(folder)), "a folder");
	(void)snprintf(local.path, sizeof(local.path), "%s/socket", folder);
	listener = listen_at_path(0, local.path);
	for (i = 0; i < 8 && connect_begin(&c, &local, &owner) == CONNECT_DONE; i++)
		client[i] = c.connected;
	is_int(c.error, EAGAIN, "the queue of a server that does not accept is full");
	is_int(connect_go_on(&c, owner.at_us), CONNECT_BUSY, "which may pass");
	ok(owner.at_us > 0 && owner.at_us < clock_now_us() + PATIENCE_US, "so it is tried again");
	(void)close(accept(listener, NULL, NULL));
	is_int(connect_go_on(&c, owner.at_us), CONNECT_DONE, "and succeeds when there is room");
	(void)close(c.connected);
	while (i-- > 0)
		(void)close(client[i]);
	(void)close(listener);
}

/* What belongs to one connection does not get into the next one. */
TEST(channel_again)
{
	static const struct channel_words words = { "", "", "" };
	char got[16] = "";
	struct channel c, other;
	int listener = listen_at_path(8, local.path), server, fd;

	(void)signal(SIGPIPE, SIG_IGN);
	channel_init(&c, &loop, &words, ready, NULL);
	(void)channel_send(&c, "old", 3);
	channel_fail(&c, FAILED, "of the old one");
	channel_close(&c);
	channel_open(&c, &local);
	is_int(c.state, CHANNEL_OPEN, "a channel");
	c.alarm_us = 1; /* it was to be answered long ago */
	(void)channel_send(&c, "new", 3);
	is_int((int64_t)(c.queued + c.written), 6, "its counts");
	server = accept(listener, NULL, NULL);
	ok(recv(server, got, sizeof(got), 0) == 3 && write(server, "yes", 3) == 3, "a request is answered");
	is_str(got, "new", "what was queued before is forgotten");
	is_int((int64_t)channel_read(&c, got, sizeof(got)), 3, "the answer");
	ok(c.alarm_us == CLOCK_NEVER && c.watch.at_us == CLOCK_NEVER, "which ends the time for it");
	channel_close(&c);
	(void)close(server);
	channel_open(&c, &local);
	(void)close(accept(listener, NULL, NULL));
	(void)channel_send(&c, "cut", 3); /* fails */
	(void)channel_read(&c, got, sizeof(got));
	is_str(c.failure.reason.text, "the server closed the connection without an answer", "an answer before is none");
	channel_close(&c);
	(void)channel_send(&c, "next", 4);
	channel_open(&c, &local);
	channel_go_on(&c, 0);
	server = accept(listener, NULL, NULL);
	is_int(recv(server, got, sizeof(got), MSG_DONTWAIT), 4, "nor is a write before one that failed");
	(void)close(server);
	channel_init(&other, &loop, &words, ready, NULL);
	channel_open(&other, &local);
	fd = c.fd;
	channel_move(&c, &other);
	ok(fcntl(fd, F_GETFD) < 0 && c.state == CHANNEL_OPEN, "one in whose place another one moves is closed");
	channel_end(&other);
	channel_end(&c);
	(void)close(listener);
	(void)unlink(local.path);
	(void)rmdir(folder);
	each_ok("sockets could be made");
}

/* One that is given up leaves no descriptor behind, though its thread may hang for longer. */
TEST(name)
{
	static const struct endpoint named = { .host = "localhost", .port = "1" };
	const int64_t until = clock_now_us() + PATIENCE_US;
	struct connecting c;

	is_int(connect_begin(&c, &named, &owner), CONNECT_BUSY, "a name");
	connect_stop(&c);
	while (fcntl(owner.fd, F_GETFD) >= 0 && clock_now_us() < until)
		(void)poll(NULL, 0, 1);
	ok(fcntl(owner.fd, F_GETFD) < 0, "it is given up");
	owner.fd = -1;
}

TEST(options)
{
	static const int options[][3] = { { IPPROTO_TCP, TCP_NODELAY, 1 }, { SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 15 }, { IPPROTO_TCP, TCP_KEEPINTVL, 5 }, { IPPROTO_TCP, TCP_KEEPCNT, 3 } };
	const int fd = connect_socket(AF_INET);
	socklen_t length = sizeof(int);
	int value = -1;

	for (size_t i = 0; i < COUNT(options); i++)
		each(getsockopt(fd, options[i][0], options[i][1], &value, &length) == 0 && value == options[i][2],
		    "option %zu is %d", i, value);
	each_ok("a peer that vanishes is noticed within half a minute");
	(void)close(fd);
}

TEST(waits_for)
{
	struct channel c = { .state = CHANNEL_CONNECTING };

	is_str(channel_waits_for(&c), "no connection in time", "a connection");
	c.tls = (struct tls *)(void *)&c;
	is_str(channel_waits_for(&c), "no TLS handshake in time; does it speak TLS?", "TLS");
	c.connecting.resolving = (struct resolving *)(void *)&c;
	is_str(channel_waits_for(&c), "its name was not resolved in time", "a name");
	c.state = CHANNEL_OPEN;
	is_str(channel_waits_for(&c), "no answer in time", "an answer");
}
