/* SPDX-License-Identifier: MIT */
#include "servers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/command.h"

struct server servers[SERVERS_MOST];

static struct input *input;

void
servers_begin(struct input *in)
{
	memset(servers, 0, sizeof(servers));
	input = in;
}

void
servers_forget(void)
{
	for (int i = 0; i < SERVERS_MOST; i++) {
		servers[i].faithful = true;
		servers[i].notes = 0;
	}
}

/* -- Writing replies -------------------------------------------------------- */

struct saying {
	char bytes[8192];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void
add(struct saying *s, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(s->bytes + s->length, sizeof(s->bytes) - s->length, format, args);
	va_end(args);
	must(n >= 0 && (size_t)n < sizeof(s->bytes) - s->length, "too much to say");
	s->length += (size_t)n;
}

static void
add_text(struct saying *s, const char *text)
{
	add(s, "$%zu\r\n%s\r\n", strlen(text), text);
}

/* Add a text from the input. */
static void
add_any_text(struct saying *s)
{
	char *text = input_string(input, 300);

	add_text(s, text);
	free(text);
}

static void
add_any_number(struct saying *s)
{
	add(s, ":%" PRId64 "\r\n", input_number(input));
}

/* -- Replies ---------------------------------------------------------------- */

struct note *
servers_note(struct server *s, const char *token)
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

/* Add a holder in the format of acquire.lua and inspect.lua; what only share.lua returns may follow. */
static void
add_holder(struct saying *s, unsigned int how, const char *token, const char *more)
{
	add(s, more != NULL ? "*15\r\n:0\r\n" : "*12\r\n:0\r\n");
	if (how % 2 == 0)
		add_text(s, token);
	else
		add_any_text(s);
	if (how < 2)
		add(s, ":900\r\n:%u\r\n$3\r\nu@h\r\n$1\r\nl\r\n:5\r\n:7\r\n:1\r\n$6\r\nstring\r\n:1\r\n:0\r\n", how);
	else {
		add_any_number(s);
		add(s, ":%u\r\n", how % 3 == 0);
		add_any_text(s);
		add_any_text(s);
		add_any_number(s);
		add_any_number(s);
		add_any_number(s);
		add_any_text(s);
		add_any_number(s);
		add_any_number(s);
	}
	if (more != NULL) {
		add_text(s, "");
		add(s, "%s", more);
	}
}

static enum script
script_of(const char *source)
{
	int i;

	for (i = SCRIPT_ACQUIRE; i <= SCRIPT_UNSHARE; i++) {
		if (strcmp(command_script((enum script)i), source) == 0)
			break;
	}
	must(i <= SCRIPT_UNSHARE, "a script that there is not");
	return (enum script)i;
}

/* {1, now, length, fence, holds, asked}; the first number is not 1 if the lock isn't renewed. */
static void
add_renewal(struct saying *s, unsigned int how, struct note *n)
{
	static const int numbers[] = { 1, 0, -1, 1 };

	n->renewed = n->renewed || numbers[how % 4] == 1;
	add(s, "*6\r\n:%d\r\n", numbers[how % 4]);
	if (how < 4) {
		add(s, ":1763749000000\r\n:10000\r\n:7\r\n$0\r\n\r\n$0\r\n\r\n");
		return;
	}
	add_any_number(s);
	add_any_number(s);
	add_any_number(s);
	add_any_text(s);
	add_any_text(s);
}

/* Slots, each as if it were the only one. */
static void
add_each_slot(struct saying *s, unsigned int how, int count)
{
	add(s, "*%d\r\n", count);
	for (int i = 0; i < count; i++)
		add_holder(s, how + (unsigned int)i, "BBBBBBBBBBBBBBBBBBBBBB", NULL);
}

/* What acquire.lua and share.lua return; `more` follows a holder, see add_holder(). */
static void
add_attempt(struct saying *s, unsigned int how, struct note *n, const char *more)
{
	if (how < 6) {
		n->granted = true;
		add(s, "*2\r\n:1\r\n:%d\r\n", 7 + (int)how);
	} else if (how == 15)
		add(s, "*2\r\n:-1\r\n:5\r\n");
	else if (how == 14) /* it claims to be the server of the first node */
		add(s, "*2\r\n:-2\r\n:1\r\n");
	else if (how == 13) {
		add(s, "*2\r\n:-3\r\n");
		add_any_text(s);
	} else
		add_holder(s, how - 6, "BBBBBBBBBBBBBBBBBBBBBB", more);
}

static void
answer_script(struct saying *s, struct server *server, unsigned int how, int argc, const struct arg *arg)
{
	static const char handoff[] = "BBBBBBBBBBBBBBBBBBBBBB"; /* of a reader */
	const enum script script = script_of(arg[1].bytes);
	const int keys = (int)strtol(arg[2].bytes, NULL, 10);
	struct note *const n = servers_note(server, 3 + keys < argc ? arg[3 + keys].bytes : "");

	must(keys >= 1 && 3 + keys <= argc, "an EVAL of %d keys and %d words", keys, argc);
	switch (script) {
	case SCRIPT_ACQUIRE:
	case SCRIPT_SHARE:
		must(argc == 3 + keys + 14 || argc == 3 + keys + 15, "an acquire request of %d words", argc);
		add_attempt(s, how, n, script == SCRIPT_SHARE ? ":0\r\n:2\r\n" : NULL);
		break;
	case SCRIPT_INSPECT:
		add_holder(s, how, handoff, NULL);
		break;
	case SCRIPT_SLOTS:
		add_each_slot(s, how, how == 15 ? 1 : keys / 2);
		break;
	case SCRIPT_HISTORY:
		add(s, "*5\r\n:1763749000000\r\n");
		add_text(s, handoff);
		add_any_number(s);
		add(s, "*1\r\n");
		add_any_text(s);
		add(s, "*1\r\n");
		add_any_text(s);
		break;
	case SCRIPT_RENEW:
		add_renewal(s, how, n);
		break;
	case SCRIPT_RELEASE:
		n->released = n->released || how % 4 < 2;
		add(s, ":%d\r\n", how % 4 == 1 ? 2 : how % 4 == 0 ? 1 : (int)(how % 4) - 3);
		break;
	case SCRIPT_UNDO:
	case SCRIPT_UNSHARE:
		n->undone = true;
		add(s, ":1\r\n");
		break;
	case SCRIPT_BREAK:
		if (arg[3 + keys].bytes[0] == '\0')
			add_any_text(s);
		else
			add(s, ":%d\r\n", (int)(how % 3) - 1);
		break;
	default:
		if (how == 1)
			add_text(s, handoff);
		else
			add(s, ":%d\r\n", how == 0);
		break;
	}
}

static void
add_slots(struct saying *s, unsigned int how)
{
	if (how == 0) {
		add(s, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$2\r\nm1\r\n:7000\r\n");
		return;
	}
	add(s, "*2\r\n*3\r\n:0\r\n");
	add_any_number(s);
	add(s, "*2\r\n$2\r\nm1\r\n:7000\r\n*4\r\n:8000\r\n:16383\r\n*2\r\n");
	add_any_text(s);
	add_any_number(s);
	add(s, "*2\r\n$2\r\nm3\r\n:7003\r\n");
}

static void
add_page(struct saying *s, unsigned int how)
{
	add(s, "*2\r\n");
	if (how % 2 == 0)
		add_text(s, "0");
	else
		add_any_text(s);
	add(s, "*%u\r\n", how / 2);
	for (unsigned int i = 0; i < how / 2; i++)
		add_any_text(s);
}

static void
answer_command(struct saying *s, unsigned int how, const struct arg *arg)
{
	const char *const name = arg[0].bytes;

	if (strcmp(name, "SCAN") == 0)
		add_page(s, how);
	else if (strcmp(name, "TIME") == 0 && how == 0)
		add(s, "*2\r\n$10\r\n1763749000\r\n$3\r\n123\r\n");
	else if (strcmp(name, "TIME") == 0 || strcmp(name, "CONFIG") == 0) {
		add(s, "*2\r\n");
		add_any_text(s);
		add_any_text(s);
	} else if (strcmp(name, "INFO") == 0)
		add_any_text(s);
	else if (strcmp(name, "ROLE") == 0)
		add(s, "*1\r\n$6\r\n%s\r\n", how == 0 ? "master" : "slave!");
	else if (strcmp(name, "SENTINEL") == 0)
		add(s, how == 0 ? "*2\r\n$2\r\nm0\r\n$4\r\n6379\r\n" : "*-1\r\n");
	else if (strcmp(name, "CLUSTER") == 0)
		add_slots(s, how);
	else if (strcmp(name, "WAIT") == 0)
		add(s, ":%u\r\n", how == 0 ? 255 : how);
	else if (strcmp(name, "BLPOP") == 0) {
		add(s, "*2\r\n");
		add_text(s, arg[1 + how % 2].bytes);
		add_text(s, "BBBBBBBBBBBBBBBBBBBBBB");
	} else if (strcmp(name, "LPOP") == 0)
		add_text(s, "BBBBBBBBBBBBBBBBBBBBBB");
	else {
		must(strcmp(name, "AUTH") == 0 || strcmp(name, "SELECT") == 0 || strcmp(name, "ASKING") == 0, "%s",
		    name);
		add(s, "+OK\r\n");
	}
}

static const char *const errors[] = { "ERR no", "NOAUTH Authentication required.",
	"NOPERM this user has no permissions", "READONLY You can't write against a read only replica.", "LOADING",
	"BUSY", "OOM", "MISCONF", "WRONGTYPE", "MOVED 5000 m2:7002", "ASK 5000 m2:7002", "TRYAGAIN", "CLUSTERDOWN",
	"MASTERDOWN", "WRONGPASS", "ERR \x1b[2J\x07" };

/* -- Requests --------------------------------------------------------------- */

static struct server *
server_of(const struct peer *p)
{
	const int number = p->host[0] == 'n' ? p->host[1] - '0' : 0;

	/* A Cluster may report any host. */
	return &servers[number >= 0 && number < SERVERS_MOST ? number : 0];
}

/* Send anything but an honest reply. */
static void
misbehave(struct peer *p, unsigned int kind, unsigned int how, struct saying *s)
{
	char *junk;

	switch (kind) {
	case 9: /* no reply at all, or no reply to this request only */
		p->mute = how % 2 == 0;
		return;
	case 10:
		p->closed = true;
		return;
	case 11: /* half of the reply */
		wire_say(p, s->bytes, s->length / 2);
		p->closed = how % 2 == 0;
		return;
	case 12: /* the reply twice */
		wire_say(p, s->bytes, s->length);
		wire_say(p, s->bytes, s->length);
		return;
	case 13:
		wire_say(p, s->bytes, s->length);
		p->floods = true;
		return;
	case 14:
		wire_say(p, s->bytes, s->length);
		p->closed = true;
		return;
	default:
		junk = input_string(input, 1000);
		wire_say(p, junk, strlen(junk));
		free(junk);
		return;
	}
}

void
servers_answer(void *context, struct peer *p, int argc, const struct arg *arg)
{
	const unsigned int what = input_byte(input), kind = what / 16, how = what % 16;
	struct server *const server = server_of(p);
	struct saying s = { .length = 0 };

	(void)context;
	if (p->mute) {
		server->faithful = false;
		return;
	}
	if (kind == 8) {
		server->faithful = false;
		add(&s, "-%s\r\n", errors[how]);
	} else if (strcmp(arg[0].bytes, "EVAL") == 0)
		answer_script(&s, server, kind < 8 ? how : 0, argc, arg);
	else if (strcmp(arg[0].bytes, "BLPOP") != 0 || what != 0) /* a list may stay empty for a long time */
		answer_command(&s, how, arg);
	if (kind == 7)
		p->piece = 1;
	if (kind <= 8) {
		wire_say(p, s.bytes, s.length);
		return;
	}
	server->faithful = false;
	/* After a missing or an additional reply, each further reply is assigned to a different request. */
	server->wild = server->wild || kind == 12 || kind == 13 || kind == 15 || (kind % 2 == 1 && how % 2 == 1);
	misbehave(p, kind, how, &s);
}
