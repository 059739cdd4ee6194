/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "entry.h"
#include "event.h"
#include "plan.h"

#define UP_US INT64_C(86400000000)

enum {
	BLOCKED = 32
};

struct session {
	struct session *next; /* of the same server */
	struct conn *conn;
	int server;
	char *bytes; /* read, but not yet executed */
	size_t length;
	bool blocked, ended, dead;
	int argc; /* of the blocked BLPOP */
	struct arg argv[LOCKS + 2];
};

static struct server {
	struct store store, saved;
	int64_t offset_us, frozen_until_us;
	int drift;
	unsigned int runs;
	bool up;
	struct session *sessions, **last;
	struct session *blocked[BLOCKED]; /* in the order of arrival */
	int blocks;
	bool refuses; /* BLPOP */
} server[SERVERS];

static server_observer *watcher;
static server_executed *executed;

void
server_tell(server_executed *callee, server_observer *observer)
{
	executed = callee;
	watcher = observer;
}

static void
set_clock(struct server *s)
{
	s->store.now_us = DAY_ONE_US + event_now() + s->offset_us + event_now() * s->drift / 10000;
}

static void
forget_sessions(struct server *s)
{
	s->sessions = NULL;
	s->last = &s->sessions;
	s->blocks = 0;
}

void
server_start(int number, int64_t offset_us, int drift, bool refuses)
{
	struct server *s = &server[number];

	memset(s, 0, sizeof(*s));
	s->offset_us = offset_us;
	s->drift = drift;
	s->refuses = refuses;
	s->up = true;
	forget_sessions(s);
	set_clock(s);
	s->store.started_us = s->store.now_us - UP_US;
	(void)snprintf(s->store.run_id, sizeof(s->store.run_id), "%040u", (unsigned int)number % 1000 + 1);
}

struct store *
server_store(int number)
{
	set_clock(&server[number]);
	return &server[number].store;
}

/* -- Requests ------------------------------------------------------------------------ */

static void
answer(struct session *x, int argc, const struct arg *argv, const struct value *v)
{
	static char bytes[65536];

	if (watcher != NULL)
		watcher(x->server, net_client(x->conn), argc, argv, v);
	net_reply(x->conn, bytes, resp_write(v, bytes, sizeof(bytes)));
}

static void
unblock(struct server *s, const struct session *x)
{
	int i;

	for (i = 0; i < s->blocks && s->blocked[i] != x; i++)
		;
	if (i == s->blocks)
		return;
	s->blocks--;
	memmove(s->blocked + i, s->blocked + i + 1, (size_t)(s->blocks - i) * sizeof(s->blocked[0]));
}

/* Serve blocked clients from lists that have new elements, first come, first served. */
static void
serve_blocked(struct server *s)
{
	const struct value *v;
	struct session *x;
	int i = 0;

	while (i < s->blocks) {
		x = s->blocked[i];
		v = store_run(&s->store, x->argc, x->argv, false);
		if (v->kind == VALUE_NIL) {
			i++;
			continue;
		}
		unblock(s, x);
		x->blocked = false;
		answer(x, x->argc, x->argv, v);
		i = 0;
	}
}

static void
carry_out(struct session *x, int argc, const struct arg *argv)
{
	struct server *s = &server[x->server];
	const struct value *v;
	bool replied;

	set_clock(s);
	if (s->refuses && strcasecmp(argv[0].bytes, "BLPOP") == 0) {
		answer(x, argc, argv, value_error("NOPERM this user has no permissions to run the 'blpop' command"));
		return;
	}
	v = store_run(&s->store, argc, argv, false);
	replied = executed(x->conn, x->server, argc, argv, v);
	if (!replied && v->kind == VALUE_NIL && strcasecmp(argv[0].bytes, "BLPOP") == 0) {
		if (s->blocks == BLOCKED || argc > LOCKS + 2)
			abort();
		x->blocked = true;
		x->argc = argc;
		for (int i = 0; i < argc; i++)
			x->argv[i] = argv[i];
		s->blocked[s->blocks++] = x;
	} else if (!replied)
		answer(x, argc, argv, v);
	if (s->blocks > 0)
		serve_blocked(s);
}

/* Execute all complete requests, and detect the end of the connection. */
static void
go_on(struct session *x)
{
	struct server *s = &server[x->server];
	struct arg argv[STORE_ARGS];
	int argc;
	long used;

	while (!x->dead && !x->blocked && x->length > 0 && s->frozen_until_us <= event_now()) {
		used = resp_read(x->bytes, x->length, argv, &argc);
		if (used < 0)
			abort();
		if (used == 0)
			break;
		x->bytes += used;
		x->length -= (size_t)used;
		carry_out(x, argc, argv);
	}
	if (x->ended && !x->dead && s->frozen_until_us <= event_now()) {
		x->dead = true;
		unblock(s, x);
	}
}

/* -- The network ----------------------------------------------------------------------- */

struct session *
server_accept(int number, struct conn *conn)
{
	struct session *x = arena_alloc(sizeof(*x));

	x->conn = conn;
	x->server = number;
	*server[number].last = x;
	server[number].last = &x->next;
	return x;
}

void
server_take(struct session *x, char *bytes, size_t length)
{
	char *both;

	if (x->dead)
		return;
	if (x->length > 0) {
		both = arena_bytes(x->length + length);
		memcpy(both, x->bytes, x->length);
		memcpy(both + x->length, bytes, length);
		bytes = both;
		length += x->length;
	}
	x->bytes = bytes;
	x->length = length;
	go_on(x);
}

void
server_end(struct session *x)
{
	x->ended = true;
	go_on(x);
}

bool
server_is_idle(const struct session *x)
{
	return x->length == 0 && !x->blocked && !x->ended && !x->dead;
}

void
server_reset(struct session *x)
{
	x->length = 0;
	server_end(x);
}

/* -- Faults ------------------------------------------------------------------------------ */

static void
thaw(void *subject, unsigned int number)
{
	struct server *s = subject;
	struct session *x;

	if (!s->up || s->frozen_until_us > event_now())
		return;
	for (x = s->sessions; x != NULL; x = x->next)
		go_on(x);
}

void
server_freeze(int number, int64_t until_us)
{
	struct server *s = &server[number];

	if (until_us <= s->frozen_until_us)
		return;
	s->frozen_until_us = until_us;
	event_at(until_us, thaw, s, 0);
}

bool
server_stop(int number)
{
	struct server *s = &server[number];
	struct session *x;

	if (!s->up)
		return false;
	net_cut(number);
	for (x = s->sessions; x != NULL; x = x->next)
		x->dead = true;
	net_refuse(number, true);
	forget_sessions(s);
	s->up = false;
	s->frozen_until_us = 0;
	return true;
}

void
server_return(int number, bool empty)
{
	struct server *s = &server[number];

	net_refuse(number, false);
	set_clock(s);
	s->up = true;
	s->store.started_us = s->store.now_us;
	(void)snprintf(s->store.run_id, sizeof(s->store.run_id), "%036u%04u", ++s->runs,
	    (unsigned int)number % 1000 + 1);
	if (empty)
		store_empty(&s->store);
}

void
server_save(int number)
{
	store_save(&server[number].store, &server[number].saved);
}

void
server_restore(int number)
{
	struct server *s = &server[number];

	s->store.keys = s->saved.keys;
	memcpy(s->store.entry, s->saved.entry, sizeof(s->store.entry));
}

void
server_spoil(int number, const char *metadata)
{
	const struct arg key = { metadata, strlen(metadata) };
	const struct arg hset[] = { { "HSET", 4 }, key, { "fence", 5 }, { "9007199254700000", 16 } };
	const struct arg pexpire[] = { { "PEXPIRE", 7 }, key, { "7200000", 7 } };

	(void)store_run(server_store(number), 4, hset, false);
	(void)store_run(server_store(number), 3, pexpire, false);
}

/* -- For compare.py ------------------------------------------------------------------------ */

static int64_t
time_of_day_us(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int
server_serve(void)
{
	static char in[1u << 20], out[1u << 16];
	struct store *s = &server[0].store;
	struct arg argv[STORE_ARGS];
	size_t length = 0;
	ssize_t n;
	long used;
	int argc;

	for (;;) {
		while ((used = resp_read(in, length, argv, &argc)) > 0) {
			s->now_us = time_of_day_us();
			if (strcasecmp(argv[0].bytes, "FLUSHALL") == 0) {
				store_empty(s);
				arena_reset();
				(void)fputs("+OK\r\n", stdout);
			} else
				(void)fwrite(out, 1, resp_write(store_run(s, argc, argv, false), out, sizeof(out)),
				    stdout);
			(void)fflush(stdout);
			length -= (size_t)used;
			memmove(in, in + used, length);
		}
		n = used < 0 || length == sizeof(in) ? -1 : read(STDIN_FILENO, in + length, sizeof(in) - length);
		if (n <= 0)
			return n == 0 ? 0 : 1;
		length += (size_t)n;
	}
}
