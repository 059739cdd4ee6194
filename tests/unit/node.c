/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

#include <poll.h>

#include "base/clock.h"
#include "net/password.h"
#include "redis/operations.h"
#include "server.h"

static char folder[60], path[100];

/* What a connection has brought so far, at least so many bytes of it. */
static void
receive(int fd, char *text, size_t size, size_t least)
{
	size_t length = 0;
	ssize_t n = 1;

	while (length < least && n > 0) {
		n = read(fd, text + length, size - 1 - length);
		length += n > 0 ? (size_t)n : 0;
	}
	text[length] = '\0';
}

/* So many bytes, whatever they are. */
static void
skip(int fd, size_t length)
{
	char text[400];

	receive(fd, text, sizeof(text), length);
}

/* It brings this request and nothing else. */
static void
is_request(int fd, const char *request, const char *name)
{
	char text[400];

	receive(fd, text, sizeof(text), strlen(request));
	is_str(text, request, "%s", name);
}

static void
answer(int fd, const char *text)
{
	each(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "an answer");
}

/* What the completions got, in order; the context of a request is its number. */
static struct got {
	uintptr_t tag;
	bool reply, unsent, broken, unconfirmed;
	int64_t connection;
} gots[512];
static int first_got, last_got;

static struct loop loop;
static const struct log quiet;
static bool unresponsive;

static void
completed(void *context, int node, const struct result *result)
{
	each(node == 7, "the node's number");
	gots[last_got++ % 512] = (struct got){ .tag = (uintptr_t)context,
		.reply = result->reply != NULL,
		.unsent = result->reply == NULL && !result->failure.sent,
		.broken = result->reply == NULL && result->failure.connected,
		.unconfirmed = result->reply != NULL && result->failure.kind != NO_FAILURE,
		.connection = result->reply != NULL ? result->connection : 0 };
}

static struct password *shared; /* of the nodes that are opened */
static struct node *n;		/* the one under test, */
static int server, port;	/* its server, */
static int client;		/* and the connection to it */

static void
open_node(const char *where, int replicas)
{
	const struct node_options options = { &loop, &quiet, 7, &unresponsive };
	struct url url;
	struct err err;

	each(url_parse(where, &url, &err) == ST_OK, "a URL");
	url.shared = shared;
	url.replicas = replicas;
	url.replicas_ms = 100;
	url.node_timeout_us = PATIENCE_US;
	first_got = last_got = 0;
	n = node_open(&url, &options);
}

/* With a server at the path, or at a port. */
static void
begin(int replicas)
{
	server = listen_at_path(8, path);
	open_node(path, replicas);
}

static void
begin_at_port(const char *scheme)
{
	char url[60];

	server = listen_at_port(8, &port);
	(void)snprintf(url, sizeof(url), "%s127.0.0.1:%d", scheme, port);
	open_node(url, 0);
}

static void
end(void)
{
	node_close(n);
	(void)close(client);
	(void)close(server);
}

static struct got d; /* the last one that was taken */

/* Go on until a completion runs, or for so long that none will. */
static bool
take(int64_t for_us)
{
	const int64_t until = clock_now_us() + for_us;

	while (first_got == last_got) {
		if (clock_now_us() > until)
			return false;
		(void)loop_turn(&loop, &(struct wait){ clock_now_us() + 1000, -1 });
	}
	d = gots[first_got++ % 512];
	return true;
}

static void
send_command(uintptr_t tag, const struct command *c)
{
	node_send(n, c, completed, (void *)tag);
}

static void
send_word(uintptr_t tag, const char *word)
{
	struct command r;

	command_begin(&r, "%s", word);
	r.needs_replicas = true;
	send_command(tag, &r);
}

/* Go on until there is something to read. */
static void
await_input(int from)
{
	struct pollfd fd = { .fd = from, .events = POLLIN };
	bool early;

	do
		early = take(1000);
	while (!early && poll(&fd, 1, 0) == 0);
	each(!early, "not yet");
}

/* Go on until the node has made a connection to this server.  -1: it makes none. */
static int
await_client(int of)
{
	struct pollfd fd = { .fd = of, .events = POLLIN };

	await_input(of);
	return poll(&fd, 1, 0) == 1 ? accept(of, NULL, NULL) : -1;
}

/* With replicas each one takes a WAIT as well, so that the connection has too many before the node. */
static void
send_too_many(int replicas, int many)
{
	bool failed[201] = { false };
	uintptr_t i;
	int count = 0;

	begin(replicas);
	for (i = 1; i <= (uintptr_t)many; i++)
		send_word(i, "PING");
	while (count < many && take(PATIENCE_US)) {
		each(!d.reply && d.tag <= (uintptr_t)many && !failed[d.tag], "a failure of %u", (unsigned int)d.tag);
		failed[d.tag] = true;
		count++;
	}
	is_int(count, many, "each of too many requests fails");
	each(!take(1000), "no more");
	each_ok("once");
	send_word(201, "PING");
	close(accept(server, NULL, NULL));
	client = accept(server, NULL, NULL);
	answer(client, "+PONG\r\n");
	ok(take(PATIENCE_US) && d.tag == 201 && d.reply, "a further request is answered");
	end();
}

TEST(too_many)
{
	(void)signal(SIGPIPE, SIG_IGN); /* main blocks it */
	temporary_folder(folder, sizeof(folder));
	(void)snprintf(path, sizeof(path), "%s/s", folder);
	send_too_many(0, 100);
	send_too_many(1, 100);
	send_too_many(0, 200);
}

TEST(wait_for_nothing)
{
	begin(1);
	unresponsive = true;
	send_word(1, "EVAL");
	client = await_client(server);
	skip(client, 20);
	answer(client, ":0\r\n:0\r\n");
	ok(take(PATIENCE_US) && d.reply && !d.unconfirmed, "where nothing was written, no replica need confirm it");
	ok(!unresponsive, "a node that replies is not unresponsive any more");
	node_disconnect(n); /* nothing is pending, so the connection stays */
	send_word(2, "EVAL");
	skip(client, 20);
	answer(client, ":1\r\n:0\r\n");
	ok(take(PATIENCE_US) && d.unconfirmed, "the reply to that WAIT is not the next reply");
	end();
}

/* The request is larger than the socket's buffer, so that the WAIT behind it is never written. */
TEST(unwritten_wait)
{
	const size_t size = 8000000;
	char *large = malloc(size);
	struct command r;

	begin(1);
	memset(large, 'x', size - 1);
	large[size - 1] = '\0';
	command_begin(&r, "EVAL %s", large);
	r.needs_replicas = true;
	send_command(1, &r);
	client = accept(server, NULL, NULL);
	skip(client, 20);
	answer(client, ":1\r\n");
	close(client);
	ok(take(PATIENCE_US), "the server closes before WAIT is written");
	ok(d.reply && d.unconfirmed, "what was granted is not confirmed");
	ok(!d.unsent, "it does not count as unsent");
	end();
	free(large);
}

TEST(closed)
{
	struct command r;

	begin(0);
	command_begin(&r, "FIRST %c", '0');
	send_command(1, &r);
	command_begin(&r, "POP");
	r.once = true;
	send_command(2, &r);
	send_word(3, "SECOND");
	client = accept(server, NULL, NULL);
	is_request(client, "*2\r\n$5\r\nFIRST\r\n$1\r\n0\r\n*1\r\n$3\r\nPOP\r\n*1\r\n$6\r\nSECOND\r\n",
	    "requests in their order");
	close(client);
	ok(take(PATIENCE_US) && d.tag == 2 && !d.reply && !d.unsent,
	    "the server closes: what may be sent once only fails");
	send_word(4, "THIRD"); /* while the others are still to fail */
	ok(!take(1000), "nothing else does");
	client = await_client(server);
	is_request(client, "*2\r\n$5\r\nFIRST\r\n$1\r\n1\r\n*1\r\n$6\r\nSECOND\r\n*1\r\n$5\r\nTHIRD\r\n",
	    "the others are sent again in their order, marked as repeated");
	answer(client, "+1\r\n");
	ok(take(PATIENCE_US) && d.tag == 1 && d.connection != 0, "the reply names the new connection");
	command_begin(&r, "BOUND");
	r.connection = d.connection;
	close(client);
	ok(take(PATIENCE_US) && d.tag == 3 && !d.reply && d.broken, "a request that was cut off twice fails");
	ok(!take(1000), "nothing else does");
	client = await_client(server);
	answer(client, "+3\r\n");
	ok(take(PATIENCE_US) && d.tag == 4, "a request that was cut off once is sent again");
	send_command(5, &r);
	ok(take(PATIENCE_US) && d.tag == 5 && !d.reply && d.unsent,
	    "a request that is bound to a connection is not sent on another one");
	end();
}

/* The server may have executed what it was sent before it went, although the second connection to it brought nothing. */
TEST(gone)
{
	begin(0);
	send_word(1, "FIRST");
	client = await_client(server);
	skip(client, strlen("*1\r\n$5\r\nFIRST\r\n"));
	close(server);
	close(client);
	ok(take(PATIENCE_US) && !d.reply && !d.unsent, "what a server got that is gone counts as sent");
	node_close(n);
}

/* The node asks its server, which is one of a Cluster, for the slots.  Returns the connection; -1: it makes none. */
static int
await_source(const char *name)
{
	const int source = await_client(server);
	char text[100] = "";

	if (source >= 0) {
		await_input(source);
		receive(source, text, sizeof(text), strlen("*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n"));
	}
	ok(strstr(text, "SLOTS") != NULL, "%s", name);
	return source;
}

/* It does so, and gets an answer. */
static void
answer_source(const char *text, const char *name)
{
	const int source = await_source(name);

	answer(source, text);
	(void)close(source);
}

/* It does so, and learns that the server at a port has all slots.  Returns the connection. */
static int
answer_slots(int owner)
{
	const int source = await_source("a source is asked");
	char text[100];

	(void)snprintf(text, sizeof(text), "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", owner);
	answer(source, text);
	return source;
}

/* It learns that this server has them, and sends it so many bytes.  Returns the first connection. */
static int
begin_cluster(size_t length)
{
	const int source = answer_slots(port);

	client = await_client(server);
	await_input(client);
	skip(client, length);
	return source;
}

/* In a Cluster, where the server says that another one has the slot: an attempt, and perhaps its rollback behind it. */
static void
move(bool followed)
{
	int source, other_port, second;
	const int other = listen_at_port(8, &other_port);
	struct command c;
	char text[200], moved[60];

	begin_at_port("redis+cluster://");
	command_begin(&c, "BLPOP job");
	c.key = "job";
	c.needs_replicas = true;
	send_command(1, &c);
	if (followed)
		send_command(2, &c);
	source = begin_cluster((followed ? 2 : 1) * strlen("*2\r\n$5\r\nBLPOP\r\n$3\r\njob\r\n"));
	(void)snprintf(moved, sizeof(moved), "-MOVED %d 127.0.0.1:%d\r\n", keys_slot("job", 3), other_port);
	answer(client, moved);
	if (followed)
		ok(take(PATIENCE_US) && d.tag == 1 && d.reply, "an attempt is not sent again behind its rollback");
	else {
		second = await_client(other);
		for (int i = 1; i <= 8; i++) {
			await_input(second);
			receive(second, text, sizeof(text), strlen("*2\r\n$5\r\nBLPOP\r\n$3\r\njob\r\n"));
			each(strstr(text, "BLPOP") != NULL, "redirection %d", i);
			if (i < 8)
				answer(second, moved);
		}
		each_ok("else it is, to where the server says, and so on");
		close(second);
		answer_source("", "a server that closes the connection may be none of the Cluster any more");
	}
	end();
	close(source);
	close(other);
}

/* A server of a Cluster that is loading is asked again, for a request that keeps trying; one of no Cluster is not. */
TEST(sources)
{
	struct command c;

	begin_at_port("redis+cluster://");
	command_begin(&c, "PING");
	c.keeps_trying = true;
	send_command(1, &c);
	answer_source("-LOADING it has just started\r\n", "a server is asked for the slots");
	answer_source("-ERR This instance has cluster support disabled\r\n", "one that is loading is asked again");
	ok(take(PATIENCE_US) && !d.reply && d.unsent, "one that is in no Cluster is not");
	end();
}

/* A server that may be in charge no more: a source is asked before the next request. */
static void
leave(const char *last, const char *name)
{
	int source;

	begin_at_port("redis+cluster://");
	send_word(1, "PING");
	source = begin_cluster(strlen("*1\r\n$4\r\nPING\r\n"));
	answer(client, last);
	each(take(PATIENCE_US) && d.tag == 1 && d.reply, "its reply counts");
	if (last[0] == '+') {
		close(client);
		client = -1;
		(void)poll(NULL, 0, 150);
	}
	send_word(2, "PING");
	answer_source("", name);
	end();
	close(source);
}

TEST(demoted)
{
	leave("-READONLY You can't write\r\n", "a server that has become a replica");
	leave("+PONG\r\n", "a server that closed the connection while nothing was asked");
}

/* The owner of the slots has died, and none of the others has its place yet. */
TEST(no_owner)
{
	int source, gone;
	const int closed = listen_at_port(-1, &gone);

	begin_at_port("redis+cluster://");
	send_word(1, "PING");
	source = answer_slots(gone);
	ok(take(PATIENCE_US) && d.tag == 1 && !d.reply && d.unsent, "a server that refuses the connection");
	send_word(2, "PING");
	answer_source("", "the next request: a source is asked again");
	end();
	close(source);
	close(closed);
}

TEST(moved)
{
	move(true);
	move(false);
}

/* A connection that nobody has used for a while is looked at: the request isn't lost on it. */
TEST(idle)
{
	int other;

	begin_at_port("");
	send_word(1, "PING");
	client = await_client(server);
	skip(client, strlen("*1\r\n$4\r\nPING\r\n")); /* or else the end is a reset */
	answer(client, "+PONG\r\n");
	each(take(PATIENCE_US) && d.reply, "an answer");
	close(client);
	(void)poll(NULL, 0, 150);
	send_word(2, "PING");
	client = await_client(server);
	answer(client, "+PONG\r\n");
	ok(take(PATIENCE_US) && d.reply, "a connection that was closed long ago");
	answer(client, "+PONG\r\n");
	ok(!take(1000), "a reply to no request");
	send_word(3, "PING");
	other = await_client(server);
	ok(other >= 0, "is not that to the next request");
	close(other);
	end();
}

/* Go on until the node needs this process to get a request, or doesn't. */
static bool
comes_to_need_us(bool needs)
{
	const int64_t until = clock_now_us() + PATIENCE_US;

	while ((node_needs_us(n) || node_resends(n)) != needs && clock_now_us() < until)
		(void)take(1000);
	return clock_now_us() < until;
}

TEST(patient)
{
	struct command r;

	open_node(path, 0);
	command_begin(&r, "PING");
	r.keeps_trying = true;
	(void)unlink(path);
	send_command(1, &r);
	ok(!take(100000), "a server that is away is waited for");
	ok(comes_to_need_us(false), "but it need not be reached");
	server = listen_at_path(8, path);
	client = await_client(server);
	ok(comes_to_need_us(true), "once it is there, it must be reached");
	answer(client, "-LOADING it has just started\r\n");
	ok(!take(100000), "a server that is loading is waited for");
	ok(comes_to_need_us(true) && node_resends(n), "it is alive");
	is_str(node_waits_for(n), "no answer in time", "the reason is that of the connection");
	answer(client, "+PONG\r\n");
	ok(take(PATIENCE_US) && d.reply, "the request is answered when the server has loaded");
	close(client);
	close(server);
	(void)unlink(path);
	send_command(2, &r);
	ok(!take(100000), "a server that is away again is waited for");
	node_disconnect(n);
	ok(take(PATIENCE_US) && d.tag == 2 && !d.reply && d.unsent, "the request fails when the node is disconnected");
	node_close(n);
}

/* A server refuses the login, or a request of a connection that is logged in, and the file has another password. */
TEST(login_again)
{
	static const struct {
		const char *query, *refusal, *answer;
		size_t length; /* of the login and the request */
		bool perhaps;  /* it may have been executed */
	} logins[] = { { "", "-WRONGPASS no\r\n-NOPERM no\r\n", "+OK\r\n-NOAUTH no\r\n", 58, true },
		{ "", "+OK\r\n-NOAUTH no\r\n", "+OK\r\n-NOAUTH no\r\n", 58, false },
		/* Of several refusals the first counts. */
		{ "?db=2", "-WRONGPASS no\r\n-ERR DB index is out of range\r\n-NOPERM no\r\n",
		    "+OK\r\n+OK\r\n-NOAUTH no\r\n", 81, true } };
	struct password p = { .text = "one", .version = 1 };
	char file[120], text[300], url[140];
	struct command c;

	(void)snprintf(file, sizeof(file), "%s/password", folder);
	for (size_t i = 0; i < COUNT(logins); i++) {
		server = listen_at_path(8, path);
		each(write_file(file, "two\n"), "a file");
		p = (struct password){ .file = file, .text = "one", .version = 1, .read_us = INT64_MAX };
		shared = &p;
		(void)snprintf(url, sizeof(url), "unix://%s%s", path, logins[i].query);
		open_node(url, 0);
		shared = NULL;
		command_begin(&c, "EVAL a 0 %c", '0');
		send_command(1, &c);
		client = await_client(server);
		receive(client, text, sizeof(text), logins[i].length);
		each(strstr(text, "AUTH") != NULL && strstr(text, "one") != NULL, "the old password, not %s", text);
		answer(client, logins[i].refusal);
		(void)close(client); /* it is not of use any more */
		client = await_client(server);
		receive(client, text, sizeof(text), logins[i].length);
		each(strstr(text, "two") != NULL, "the new password, not %s", text);
		each((strstr(text, "$1\r\n1\r\n") != NULL) == logins[i].perhaps, "it may have been executed before: %s",
		    text);
		answer(client, logins[i].answer);
		each(take(PATIENCE_US) && d.reply, "the same password is not tried again");
		end();
	}
	each_ok("another password logs in anew");
	(void)unlink(file);
}

TEST(login_refused)
{
	char url[140];

	server = listen_at_path(8, path);
	(void)snprintf(url, sizeof(url), "unix://user:word@%s", path);
	open_node(url, 0);
	send_word(1, "PING");
	client = await_client(server);
	skip(client, 48);
	answer(client, "-ERR max number of clients reached\r\n");
	(void)close(client);
	ok(take(PATIENCE_US) && !d.reply, "a server that has too many clients refuses the login");
	send_word(2, "PING");
	client = await_client(server);
	skip(client, 48);
	answer(client, "+OK\r\n+PONG\r\n");
	ok(take(PATIENCE_US) && d.reply, "the next request logs in anew");
	(void)close(client);
	(void)take(1000);
	send_word(3, "PING");
	client = await_client(server);
	skip(client, 48);
	(void)close(client);
	client = await_client(server);
	answer(client, "+OK\r\n+PONG\r\n");
	ok(take(PATIENCE_US) && d.reply, "a login that was cut off is not answered any more");
	end();
}

/* Who has the lock, by the nodes that say that it is not ours. */
TEST(refused)
{
	static const struct {
		enum ownership owner[5], expected;
	} rounds[] = {
		{ { OWNED_BY_ANOTHER, OWNED_BY_ANOTHER, OWNED_BY_ANOTHER, OWNED_NO_MORE, OWNED_BY_NOBODY },
		    OWNED_BY_ANOTHER },
		{ { OWNED_BY_ANOTHER, OWNED_BY_ANOTHER, OWNED_NO_MORE, OWNED_NO_MORE, OWNED_BY_NOBODY },
		    OWNED_NO_MORE },
		{ { OWNED_BY_ANOTHER, OWNED_BY_ANOTHER, OWNED_BY_NOBODY, OWNED_BY_NOBODY, OWNED_BY_NOBODY },
		    OWNED_BY_NOBODY },
		{ { OWNED_BY_ANOTHER, OWNED_BY_ANOTHER, OWNED_NO_MORE, OWNED_BY_NOBODY, OWNED }, OWNED_NO_MORE },
	};
	static struct round r = { .ballot = { .nodes = 5 } };
	enum ownership ownership;
	struct err err;

	for (size_t i = 0; i < COUNT(rounds); i++) {
		for (int node = 0; node < 5; node++) {
			r.ballot.vote[node] = VOTE_NO;
			r.owner[node] = rounds[i].owner[node];
		}
		each(nodes_round_refused(&r, &ownership, &err) == ST_NO, "it is not ours");
		each(ownership == rounds[i].expected, "round %zu: %d", i, (int)ownership);
	}
	each_ok("another one holds it if most of the nodes say so");
}

/* Why there is no majority: y and n votes, d refused, l no resource, f failed, g started too recently, p silent. */
TEST(no_quorum)
{
	static const struct {
		const char *nodes, *said;
		enum status status;
		bool open;
	} table[] = {
		{ "ydd", "no quorum: 1 of 3 nodes answered, 2 are needed; ", ST_DENIED, false },
		{ "yyddd", "2 of 5 nodes answered, 3 are needed; ", ST_DENIED, false },
		{ "yyddf", "2 of 5", ST_NO_QUORUM, false },
		{ "nff", "1 of 3 nodes answered, 2 are needed; ", ST_NO_QUORUM, false },
		{ "yfl", "1 of 3", ST_SYSTEM, false },
		{ "ffl", "0 of 3", ST_NO_QUORUM, false },
		{ "yll", "1 of 3", ST_SYSTEM, false },
		{ "ygf", "1 of 3 nodes voted", ST_NO_QUORUM, false },
		{ "ypp", "s: no connection in time", ST_NO_QUORUM, false },
		{ "ypp", "s: not waited for", ST_NO_QUORUM, true },
		{ "d", "s: d", ST_DENIED, false },
		{ "l", "s: l", ST_SYSTEM, false },
		{ "f", "s: f", ST_NO_QUORUM, false },
	};
	static struct nodes all;
	struct err err;

	open_node(path, 0);
	for (size_t i = 0; i < COUNT(table); i++) {
		struct node_error error[NODES_MAX] = { { .duplicate = 0 } };
		struct ballot b = { .nodes = (int)strlen(table[i].nodes), .closed = !table[i].open };
		int named = 0, silent = 0;

		all.count = b.nodes;
		for (int k = 0; k < all.count; k++) {
			const char c = table[i].nodes[k];

			all.node[k] = n;
			b.vote[k] = c == 'y' ? VOTE_YES : c == 'n' ? VOTE_NO : c == 'p' ? VOTE_PENDING : VOTE_FAULT;
			error[k].guarded = c == 'g';
			if (strchr("ynp", c) == NULL)
				failure_set(&error[k].why, c == 'd' ? DENIED : c == 'l' ? LOCAL : FAILED, "%c", c);
			silent += all.count > 1 && b.vote[k] != VOTE_YES && b.vote[k] != VOTE_NO;
		}
		each(nodes_no_quorum(&all, &b, error, &err) == table[i].status, "status of %s", table[i].nodes);
		each(strstr(err.text, table[i].said) != NULL, "%s: %s", table[i].nodes, err.text);
		for (const char *c = err.text; *c != '\0'; c++)
			named += *c == ';';
		each(named == silent, "%s: %d of them are named: %s", table[i].nodes, named, err.text);
	}
	node_close(n);
	each_ok("why there is no majority");
}

TEST(window)
{
	struct nodes ns = { .node_timeout_us = 50000 };
	const int64_t least = redis_window_ms(&ns);

	ns.node_timeout_us = 2000000;
	ok(least == 1000 && redis_window_ms(&ns) == 4000,
	    "a handoff token lasts for two rounds, and at least a second");
}

TEST(end)
{
	(void)unlink(path);
	(void)rmdir(folder);
}
