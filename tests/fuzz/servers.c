/* SPDX-License-Identifier: MIT */
#include "servers.h"

#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sim/arena.h"
#include "../sim/entry.h"
#include "../sim/event.h"
#include "../sim/judge.h"
#include "../sim/process.h"
#include "../sim/server.h"
#include "redis/command.h"

#define FOR_EVER_US (1000000 * MS)
#define EVENTS_MOST 200000

struct server_notes servers[SERVERS];

static const uint8_t *input;
static size_t left;
static unsigned int operation;

void
fuzz_fail(const char *what, const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: broken: %s: ", file, line, what);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

/* A script has done what servers refuse. */
void
judge_breach(const char *rule, const char *format, ...)
{
	must(false, "%s: %s", rule, format);
}

unsigned int
input_byte(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

/* A number.  Small numbers and the limits of the integer types are frequent. */
static int64_t
input_number(void)
{
	static const int64_t borders[] = { INT64_MIN, INT64_MIN + 1, -2, -1, INT64_MAX, INT64_MAX - 1, INT64_MAX / 1000,
		(int64_t)1 << 53, (int64_t)1 << 50, (int64_t)1 << 32, INT32_MAX, -3, INT64_C(1800000000000000) };
	const unsigned int first = input_byte();
	uint64_t number = 0;

	if (first < 0xe0)
		return (int64_t)first;
	if (first - 0xe0 < sizeof(borders) / sizeof(borders[0]))
		return borders[first - 0xe0];
	for (int i = 0; i < (first < 0xf8 ? 3 : 8); i++)
		number = number << 8 | input_byte();
	return (int64_t)number;
}

/* The bytes before the next NUL. */
static struct value *
input_text(void)
{
	const uint8_t *const text = input;
	size_t length = 0;

	while (left > 0 && input_byte() != 0)
		length++;
	return value_text(VALUE_TEXT, (const char *)text, length);
}

#define HANDOFF "redis.call('GET', 'k') or 'BBBBBBBBBBBBBBBBBBBBBB'}"

/* What the simulated servers do not know; and if it lies, the token of the holder for whoever waits. */
static const struct value *
know_better(int number, int argc, const struct arg *argv, const struct value *v, bool lies)
{
	static const char *const replies[][2] = { { "ASKING", "{ok='OK'}" }, { "AUTH", "{ok='OK'}" },
		{ "BLPOP", "{KEYS[1], " HANDOFF }, { "CLUSTER", "{{0, 7999, {'m1', 1}}, {8000, 16383, {'m1', 2}}}" },
		{ "CONFIG", "{'parameter', 'no'}" }, { "LPOP", "({" HANDOFF ")[1]" }, { "ROLE", "{'master'}" },
		{ "SCAN", "{'0', {'{b}:dlock', '{a}:dlock', '{a}:dlock:history', '{0}:a}:dlock-n'}}" },
		{ "SELECT", "{ok='OK'}" }, { "SENTINEL", "{'m0', '6379'}" }, { "WAIT", "2" } };
	struct arg eval[4] = { { "EVAL", 4 }, { "", 0 }, { "1", 1 }, argv[argc > 1] };
	char script[200];

	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		if (strcmp(argv[0].bytes, replies[i][0]) == 0 && (v->kind == VALUE_ERROR || lies)) {
			eval[1].length = (size_t)snprintf(script, sizeof(script),
			    "--!df flags=allow-undeclared-keys\nreturn %s", replies[i][1]);
			eval[1].bytes = script;
			return store_run(server_store(number), 4, eval, false);
		}
	}
	return v;
}

/* A copy of a reply, in which the input replaces what it likes. */
static struct value *
forge(const struct value *v)
{
	const unsigned int how = input_byte();
	struct value *f;

	if (how >= 0xe0)
		return how < 0xf0 ? value_integer(input_number()) : input_text();
	if (how >= 0xd8)
		return value_of(VALUE_NIL);
	if (v->kind != VALUE_LIST) {
		f = value_of(v->kind);
		*f = *v;
		return f;
	}
	f = value_list(how < 0xc8 ? v->items : how < 0xd0 ? v->items + 1 : how % 8 < v->items ? how % 8 : v->items);
	for (size_t i = 0; i < f->items; i++)
		f->item[i] = i < v->items ? forge(v->item[i]) : input_text();
	return f;
}

struct note *
servers_note(struct server_notes *s, const char *token)
{
	int i;

	for (i = 0; i < s->notes && strncmp(s->note[i].token, token, TOKEN_LENGTH) != 0; i++)
		;
	if (i == s->notes) {
		s->notes += s->notes < NOTES_MOST;
		i = s->notes - 1;
		s->note[i] = (struct note){ .granted = false };
		(void)snprintf(s->note[i].token, sizeof(s->note[i].token), "%s", token);
	}
	return &s->note[i];
}

static bool
is_script(const struct arg *argv, enum script script)
{
	return strcmp(command_script(script), argv[1].bytes) == 0;
}

/* Note what a script says. */
static void
take_note(struct server_notes *s, int argc, const struct arg *argv, const struct value *v)
{
	const int keys = (int)strtol(argv[2].bytes, NULL, 10);
	struct note *const n = servers_note(s, 3 + keys < argc ? argv[3 + keys].bytes : "");
	const struct value *const first = v->kind == VALUE_LIST && v->items > 0 ? v->item[0] : v;
	const bool yes = first->kind == VALUE_INTEGER && first->integer == 1;

	if (is_script(argv, SCRIPT_ACQUIRE) || is_script(argv, SCRIPT_SHARE))
		n->granted = n->granted || yes;
	else if (is_script(argv, SCRIPT_RENEW))
		n->renewed = n->renewed || yes;
	else if (is_script(argv, SCRIPT_RELEASE))
		n->released = n->released || yes || (first->kind == VALUE_INTEGER && first->integer == 2);
	else if (is_script(argv, SCRIPT_UNDO) || is_script(argv, SCRIPT_UNSHARE))
		n->undone = true;
}

static void
come_back(void *subject, unsigned int how)
{
	server_return((int)how / 2, how % 2 == 1);
}

/* Send anything but a whole reply. */
static void
misbehave(struct conn *conn, int number, unsigned int what, const char *bytes, size_t length)
{
	const unsigned int kind = what / 16, how = what % 16;
	const struct value *junk;

	if (kind == 9 && how > 7) { /* no reply to this request */
	} else if (kind == 9)
		net_part(-1, number, event_now() + (how == 0 ? FOR_EVER_US : (int64_t)how * 100 * MS));
	else if (kind == 10 && how > 7)
		net_cut(number);
	else if (kind == 10) {
		(void)server_stop(number);
		event_at(event_now() + (int64_t)how * 100 * MS, come_back, NULL, (unsigned int)number * 2 + how % 2);
	} else if (kind == 15) {
		junk = input_text();
		net_reply(conn, junk->text, junk->length);
	} else
		net_reply(conn, bytes, kind == 11 ? length / 2 : length);
	if (kind == 12)
		net_reply(conn, bytes, length);
	else if (kind == 13)
		net_flood(conn);
	else if (kind == 14 || (kind == 11 && how % 2 == 0))
		net_cut(number);
}

/* Reply as the input says. */
static bool
reply(struct conn *conn, int number, int argc, const struct arg *argv, const struct value *v)
{
	static const char *const errors[] = { NULL, "NOAUTH Authentication required.",
		"NOPERM this user has no permissions to run the 'blpop' command",
		"READONLY You can't write against a read only replica.", "LOADING", "BUSY", "OOM", "MISCONF",
		"WRONGTYPE", "MOVED 5000 m2:7002", "ASK 5000 m2:7002", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN",
		"WRONGPASS", "ERR \x1b[2J\x07" };
	static char bytes[65536];
	const unsigned int what = input_byte(), kind = what / 16, how = what % 16;
	struct server_notes *const s = &servers[number];
	const bool script = strcmp(argv[0].bytes, "EVAL") == 0;
	size_t length;

	must(event_count() < EVENTS_MOST, "it goes on without an end");
	must(!script || v->kind != VALUE_ERROR, "%s", v->text);
	if (v->kind == VALUE_NIL && strcmp(argv[0].bytes, "BLPOP") == 0 && kind < 6)
		return false;
	s->faithful = s->faithful && kind < 6;
	/* After a missing or an additional reply, each further reply is assigned to a different request. */
	s->wild = s->wild || (kind == 9 && how > 7) || (kind == 11 && how % 2 == 1) || kind == 12 || kind == 13 ||
	    kind == 15;
	v = know_better(number, argc, argv, v, kind == 6 || kind == 7);
	if (kind == 6 || kind == 7)
		v = forge(v);
	else if (kind == 8)
		v = value_error(how > 0 ? errors[how] : argv[argc - 1].bytes); /* which may be the password */
	if (script)
		take_note(s, argc, argv, v);
	length = resp_write(v, bytes, sizeof(bytes));
	if (kind > 8)
		misbehave(conn, number, what, bytes, length);
	for (size_t at = 0, n; at < length && kind <= 8; at += n) {
		n = kind == 5 ? 1 : length;
		net_reply(conn, bytes + at, n);
	}
	return true;
}

/* Names lead to the servers, too. */
WRAPPED(int, getaddrinfo,
    (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **addresses))
{
	char address[16];

	(void)snprintf(address, sizeof(address), "10.0.0.%d",
	    1 + ((unsigned char)host[strlen(host) - 1] + 2) % SERVERS);
	return __real_getaddrinfo(address, "6379", hints, addresses);
}

void
servers_begin(const uint8_t *bytes, size_t length)
{
	static const struct clock_plan clock = { .drift = 0 };
	static const struct net_plan plan = { .delay_us = 100, .torn_per_mille = 50 };
	static struct chance chance;

	input = bytes;
	left = length;
	memset(servers, 0, sizeof(servers));
	chance.state = 1;
	arena_reset();
	event_reset(BEGIN_US);
	kernel_reset(&chance);
	net_reset(&plan, &chance);
	server_tell(reply, NULL);
	for (int i = 0; i < SERVERS; i++)
		server_start(i, 0, 0, false);
	kernel_enter(0, &clock);
}

void
servers_end(void)
{
	kernel_leave();
	script_tidy();
	for (int i = 0; i < FILES; i++)
		must(kernel_file[i].kind == FILE_NONE || kernel_file[i].kind == FILE_SIGNAL,
		    "a descriptor was left open");
}

static void
too_late(void *subject, unsigned int of)
{
	must(of != operation, "it takes too long");
}

void
servers_watch(int64_t limit_us)
{
	for (int i = 0; i < SERVERS; i++) {
		servers[i].faithful = true;
		servers[i].notes = 0;
	}
	event_at(event_now() + limit_us, too_late, NULL, ++operation);
}

void
servers_settle(void)
{
	must(!kernel_spins(), "it goes on without an end");
	kernel_sleep(kernel_time() + 10 * MS);
}
