/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "client.h"
#include "event.h"
#include "judge.h"
#include "kernel.h"
#include "server.h"

#define MOST_EVENTS 200000

static const struct plan *plan;
static struct chance chance;
static bool traces;

bool
world_traces(void)
{
	return traces;
}

void
world_say(const char *format, ...)
{
	va_list args;

	if (!traces || (kernel_current() >= 0 && kernel_is_killed(kernel_current())))
		return;
	printf("%11.3f ms  ", (double)(event_now() - BEGIN_US) / 1000);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* -- The trace of the servers ---------------------------------------------------------------- */

static void
show_value(const struct value *v, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	if (v->kind == VALUE_INTEGER)
		(void)snprintf(text, size, "%lld", (long long)v->integer);
	else if (v->kind == VALUE_LIST) {
		for (size_t i = 0; i < v->items && i < 4 && used + 30 < size; i++) {
			if (i > 0)
				text[used++] = ' ';
			show_value(v->item[i], text + used, 30);
			used += strlen(text + used);
		}
	} else if (v->kind == VALUE_NIL)
		(void)snprintf(text, size, "nil");
	else
		(void)snprintf(text, size, "%.*s", v->kind == VALUE_ERROR ? 80 : 17, v->length > 0 ? v->text : "''");
}

/* The name of a script, identified by a text that no other script has. */
static const char *
name_of(const char *script)
{
	static const char *const marks[][2] = { { "local slots", "look" }, { "writers_before", "share" },
		{ "HALF_HOUR", "acquire" }, { "local function release", "unshare" }, { "REMEMBERED", "release" },
		{ "local MOST, TICKETS", "invite" }, { "local MOST", "renew" }, { "others", "heal" },
		{ "RPUSH", "leave" }, { "LPUSH", "pass" }, { "HOUR", "fence" }, { "DEL", "undo" } };

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (strstr(script, marks[i][0]) != NULL)
			return marks[i][1];
	}
	return "a script";
}

static void
tell_request(int server, int client, int argc, const struct arg *argv, const struct value *v)
{
	char text[160];
	int keys;

	show_value(v, text, sizeof(text));
	if (argc > 3 && strcmp(argv[0].bytes, "EVAL") == 0) {
		keys = argv[2].bytes[0] - '0';
		world_say("     node %d: %s %.4s of client %d -> %s", server, name_of(argv[1].bytes),
		    argc > 3 + keys ? argv[3 + keys].bytes : "", client, text);
	} else
		world_say("     node %d: %s of client %d -> %s", server, argv[0].bytes, client, text);
}

/* -- Faults ------------------------------------------------------------------------------------ */

/* The server of this fault is started again: with its data, without, or with the data as it was saved. */
static void
come_back(void *subject, unsigned int number)
{
	const enum fault_kind kind = plan->fault[number].kind;
	const int server = plan->fault[number].server;

	if (kind == FAULT_STALE)
		server_restore(server);
	server_return(server, kind == FAULT_LOSE);
	if (kind != FAULT_RESTART)
		judge_data_lost(server);
	world_say("     node %d is there again%s", server,
	    kind == FAULT_LOSE	      ? ", empty"
		: kind == FAULT_STALE ? ", as it was before"
				      : "");
}

static void
go_down(unsigned int number, int64_t length_us)
{
	if (server_stop(plan->fault[number].server))
		event_at(event_now() + length_us, come_back, NULL, number);
}

static void
fall_back(void *subject, unsigned int number)
{
	go_down(number, 1 * MS);
}

static void
say_fault(const struct fault *f)
{
	static const char *const names[] = { "node %d freezes for %.3f ms", "node %d loses its connections",
		"node %d is down for %.3f ms", "node %d is down for %.3f ms and loses its data",
		"node %d saves its data, and a handoff token if it gets one, and falls back on that after %.3f ms",
		"node %d has got a fence of another century", "node %d does not reply for %.3f ms",
		"node %d and client %d are cut off from each other for %.3f ms",
		"client %d is cut off from all nodes for %.3f ms", "client %d is killed", "client %d's host is gone",
		"client %d is stopped for %.3f ms", "client %d's host sleeps for %.3f ms", "client %d gets SIGTERM" };
	char text[160];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (f->kind == FAULT_PART)
		(void)snprintf(text, sizeof(text), names[f->kind], f->server, f->client, (double)f->length_us / 1000);
	else
		(void)snprintf(text, sizeof(text), names[f->kind], f->kind < FAULT_PART ? f->server : f->client,
		    (double)f->length_us / 1000);
#pragma GCC diagnostic pop
	world_say("FAULT: %s", text);
}

static void
strike(void *subject, unsigned int number)
{
	const struct fault *f = &plan->fault[number];
	const int64_t until = event_now() + f->length_us;

	if (traces)
		say_fault(f);
	switch (f->kind) {
	case FAULT_FREEZE:
		server_freeze(f->server, until);
		break;
	case FAULT_CUT:
		net_cut(f->server);
		break;
	case FAULT_RESTART:
	case FAULT_LOSE:
		go_down(number, f->length_us);
		break;
	case FAULT_STALE:
		server_save(f->server);
		judge_save_handoff(f->server);
		event_at(until, fall_back, NULL, number);
		break;
	case FAULT_SPOIL:
		for (int i = 0; i <= plan->slots; i++)
			server_spoil(f->server, judge_names[i].metadata);
		break;
	case FAULT_MUTE:
		net_part(-1, f->server, until);
		break;
	case FAULT_PART:
		net_part(f->client, f->server, until);
		break;
	case FAULT_ISOLATE:
		for (int i = 0; i < plan->servers; i++)
			net_part(f->client, i, until);
		break;
	case FAULT_CRASH:
	case FAULT_VANISH:
		client_kill(f->client, f->kind == FAULT_VANISH);
		break;
	case FAULT_STOP:
		kernel_pause(f->client, until);
		break;
	case FAULT_SLEEP:
		client_sleep(f->client, until);
		break;
	case FAULT_SIGNAL:
		client_signal(f->client);
		break;
	case FAULT_KINDS:
		break;
	}
}

/* -- The simulation ------------------------------------------------------------------------------ */

static bool
judge(struct conn *conn, int server, int argc, const struct arg *argv, const struct value *v)
{
	judge_request(server, net_client(conn), argc, argv, v);
	return false;
}

static void
set_up(const struct plan *p, bool trace)
{
	plan = p;
	traces = trace;
	chance.state = p->chance;
	arena_reset();
	event_reset(BEGIN_US);
	kernel_reset(&chance);
	net_reset(&p->net, &chance);
	server_tell(judge, trace ? tell_request : NULL);
	for (int i = 0; i < p->servers; i++)
		server_start(i, p->server_offset_us[i], p->server_drift[i], p->refuses);
}

static bool
somebody_runs(void)
{
	for (int i = 0; i < plan->clients; i++) {
		if (kernel_runs(i))
			return true;
	}
	return false;
}

/* The time by which all clients have finished all turns, whatever the faults. */
static int64_t
long_enough(void)
{
	const int64_t turns = plan->clients * plan->turns;

	return (20000 + turns * (15000 + 4 * plan->ttl_ms)) * MS + plan->turn[0][0].hold_us;
}

bool
world_run(const struct plan *p, bool trace, struct breach *breach)
{
	int64_t until;

	set_up(p, trace);
	judge_start(p, breach);
	for (int i = 0; i < p->clients; i++)
		client_start(p, i);
	for (int i = 0; i < p->faults; i++)
		event_at(event_now() + p->fault[i].at_us, strike, NULL, (unsigned int)i);
	until = event_now() + long_enough();
	while (breach->rule == NULL && somebody_runs()) {
		if (!event_next(until))
			judge_breach("everybody is served", "a client has not ended");
		else if (event_count() > MOST_EVENTS)
			judge_breach("endless loop", "more than %d events", MOST_EVENTS);
		judge_step();
	}
	if (breach->rule == NULL)
		judge_end();
	for (int i = 0; i < p->clients; i++)
		kernel_kill(i, true);
	return breach->rule == NULL;
}
