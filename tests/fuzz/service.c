/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/output.h"
#include "fuzz.h"
#include "redis/redis.h"
#include "redis/script.h"
#include "redis/url.h"
#include "wire.h"

/*
 * The whole service among servers of any kind: honest ones, ones that lie, stutter, close, fall silent, and say anything.  Whatever
 * they do, every operation ends in time, leaks nothing, and says what went wrong in a sentence; what is sent is well formed; and the
 * lock is taken, kept or given back only if a majority of the servers has said so.
 */
enum {
	NODES_MOST = 3,
	NOTES_MOST = 64
};

#define ROUND_MS 500
#define WAIT_US INT64_C(3000000)
#define LIMIT_US (WAIT_US + INT64_C(20000000))
#define PASSWORD "hunter2"

/* What one server has said, as far as it spoke plainly. */
struct server {
	bool wild;     /* it has said what may mean anything */
	bool faithful; /* it has answered everything, and honestly */
	int notes;
	struct note {
		char token[HOLD_SIZE];
		bool granted, undone, renewed, released;
	} note[NOTES_MOST];
};

static struct {
	struct input *in;
	int nodes;
	bool services; /* some of the nodes are sentinels' services or Clusters */
	struct server server[NODES_MOST];
	struct service *service;
} game;

/* -- Saying things ---------------------------------------------------------- */

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

/* A text of the input's choice. */
static void
add_any_text(struct saying *s)
{
	char *text = input_string(game.in, 300);

	add_text(s, text);
	free(text);
}

static void
add_any_number(struct saying *s)
{
	add(s, ":%" PRId64 "\r\n", input_number(game.in));
}

/* -- What servers answer ---------------------------------------------------- */

static struct note *
note_of(struct server *s, const char *token)
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

/* A holder, as acquire.lua and inspect.lua tell of one. */
static void
add_holder(struct saying *s, unsigned int how, const char *token)
{
	add(s, "*13\r\n:0\r\n");
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
	add_any_text(s);
}

static enum script
script_of(const char *source)
{
	size_t length;
	int i;

	for (i = SCRIPT_ACQUIRE; i <= SCRIPT_UNDO; i++) {
		if (strcmp(script_source((enum script)i, &length), source) == 0)
			break;
	}
	must(i <= SCRIPT_UNDO, "a script that there is not");
	return (enum script)i;
}

/* {1, now, length, fence, holds}; anything but 1 where it isn't renewed. */
static void
add_renewal(struct saying *s, unsigned int how, struct note *n)
{
	static const int numbers[] = { 1, 0, -1, 1 };

	n->renewed = n->renewed || numbers[how % 4] == 1;
	add(s, "*5\r\n:%d\r\n", numbers[how % 4]);
	if (how < 4) {
		add(s, ":1763749000000\r\n:10000\r\n:7\r\n$0\r\n\r\n");
		return;
	}
	add_any_number(s);
	add_any_number(s);
	add_any_number(s);
	add_any_text(s);
}

static void
answer_script(struct saying *s, struct server *server, unsigned int how, const struct wire_request *r)
{
	static const char baton[] = "BBBBBBBBBBBBBBBBBBBBBB";
	const int keys = (int)strtol(r->argv[2], NULL, 10);
	struct note *n;

	must(keys >= 1 && 3 + keys < r->argc, "an EVAL of %d keys and %d words", keys, r->argc);
	n = note_of(server, r->argv[3 + keys]);
	switch (script_of(r->argv[1])) {
	case SCRIPT_ACQUIRE:
		must(r->argc == 3 + keys + 11, "an acquire request of %d words", r->argc);
		if (how < 6) {
			n->granted = true;
			add(s, "*3\r\n:1\r\n:%d\r\n$0\r\n\r\n", 7 + (int)how);
		} else if (how == 15)
			add(s, "*3\r\n:-1\r\n:5\r\n$0\r\n\r\n");
		else
			add_holder(s, how - 6, baton);
		break;
	case SCRIPT_INSPECT:
		add_holder(s, how, baton);
		break;
	case SCRIPT_RENEW:
		add_renewal(s, how, n);
		break;
	case SCRIPT_RELEASE:
		n->released = n->released || how % 4 < 2;
		add(s, ":%d\r\n", how % 4 == 1 ? 2 : how % 4 == 0 ? 1 : (int)(how % 4) - 3);
		break;
	case SCRIPT_UNDO:
		n->undone = true;
		add(s, ":1\r\n");
		break;
	case SCRIPT_BREAK:
		if (r->argv[3 + keys][0] == '\0')
			add_any_text(s);
		else
			add(s, ":%d\r\n", (int)(how % 3) - 1);
		break;
	case SCRIPT_FENCE:
	case SCRIPT_HEAL:
	case SCRIPT_LEAVE:
	case SCRIPT_PASS:
		if (how == 1)
			add_text(s, baton);
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
	unsigned int i;

	add(s, "*2\r\n");
	if (how % 2 == 0)
		add_text(s, "0");
	else
		add_any_text(s);
	add(s, "*%u\r\n", how / 2);
	for (i = 0; i < how / 2; i++)
		add_any_text(s);
}

static void
answer_command(struct saying *s, unsigned int how, const struct wire_request *r)
{
	const char *const name = r->argv[0];

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
		add_text(s, r->argv[1 + how % 2]);
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

	must(number >= 0 && number < NODES_MOST, "a connection to %s", p->host);
	return &game.server[number];
}

/* Anything but an honest answer. */
static void
misbehave(struct peer *p, unsigned int kind, unsigned int how, struct saying *s)
{
	char *junk;

	switch (kind) {
	case 9: /* nothing at all */
		return;
	case 10:
		p->closed = true;
		return;
	case 11: /* the half of it */
		wire_say(p, s->bytes, s->length / 2);
		p->closed = how % 2 == 0;
		return;
	case 12: /* twice */
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
		junk = input_string(game.in, 1000);
		wire_say(p, junk, strlen(junk));
		free(junk);
		return;
	}
}

static void
answer(void *context, struct peer *p, const struct wire_request *r)
{
	const unsigned int what = input_byte(game.in), kind = what / 16, how = what % 16;
	struct server *const server = server_of(p);
	struct saying s = { .length = 0 };

	(void)context;
	if (kind == 8) {
		server->faithful = false;
		add(&s, "-%s\r\n", errors[how]);
	} else if (strcmp(r->argv[0], "EVAL") == 0)
		answer_script(&s, server, kind < 8 ? how : 0, r);
	else if (strcmp(r->argv[0], "BLPOP") != 0 || what != 0) /* a list may be empty for long */
		answer_command(&s, how, r);
	if (kind == 7)
		p->piece = 1;
	if (kind <= 8) {
		wire_say(p, s.bytes, s.length);
		return;
	}
	server->faithful = false;
	server->wild = server->wild || kind == 12 || kind == 13 || kind == 15;
	misbehave(p, kind, how, &s);
}

/* -- Checks ----------------------------------------------------------------- */

static void
begin_operation(void)
{
	int i;

	for (i = 0; i < NODES_MOST; i++) {
		game.server[i].faithful = true;
		game.server[i].notes = 0;
	}
	wire_set_limit(LIMIT_US);
}

static void
say_trace(const char *line)
{
	must(is_sentence(line), "a step: %s", line);
}

static void
check_err(enum status status, const struct err *err)
{
	static const enum status known[] = { ST_NO, ST_USAGE, ST_NO_QUORUM, ST_HELD, ST_DENIED, ST_INTERRUPTED };
	bool wild = false;
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]) && known[i] != status; i++)
		;
	must(i < sizeof(known) / sizeof(known[0]), "status %d: %s", (int)status, err->text);
	must(status == ST_INTERRUPTED || is_sentence(err->text), "%s", err->text);
	for (i = 0; i < NODES_MOST; i++)
		wild = wild || game.server[i].wild;
	must(wild || strstr(err->text, PASSWORD) == NULL, "%s", err->text);
}

/* So many servers may have said it. */
static int
count_notes(const char *token, size_t member)
{
	int i, said = 0;

	for (i = 0; i < game.nodes; i++)
		said += game.server[i].wild || *(const bool *)((char *)note_of(&game.server[i], token) + member);
	return said;
}

static void
check_majority(const char *token, size_t member, const char *what)
{
	must(game.services || count_notes(token, member) >= game.nodes / 2 + 1, "%s by %d of %d nodes", what,
	    count_notes(token, member), game.nodes);
}

/* What an honest server has granted to an attempt that failed has been taken back there. */
static void
check_undone(const char *but)
{
	int i, j;

	for (i = 0; i < game.nodes && !game.services; i++) {
		const struct server *const s = &game.server[i];

		for (j = 0; j < s->notes && s->faithful && !s->wild; j++) {
			const struct note *const n = &s->note[j];

			must(!n->granted || n->undone || n->released || (but != NULL && strcmp(n->token, but) == 0),
			    "node %d keeps what %s was granted", i, n->token);
		}
	}
}

static void
check_view(const struct lock_view *v)
{
	int i, told = 0;

	must(v->nodes == game.nodes && v->agreeing >= 0 && v->agreeing <= v->nodes, "%d nodes", v->nodes);
	for (i = 0; i < v->nodes; i++) {
		told += v->node[i].state != LOCK_UNKNOWN;
		must(v->node[i].state != LOCK_UNKNOWN || is_sentence(v->node[i].err.text), "node %d: %s", i,
		    v->node[i].err.text);
	}
	must((v->state == LOCK_UNKNOWN) == (told < v->nodes / 2 + 1), "%s, and %d told", output_state(v->state), told);
}

/* -- Operations ------------------------------------------------------------- */

static void
try_lease(unsigned int how, int interrupt_fd)
{
	const struct service_ops *const ops = game.service->ops;
	const struct claim claim = { .key = "k",
		.ttl_ms = 10000,
		.wait_until_us = (how & 1) != 0 ? clock_now_us() + WAIT_US : 0,
		.owner = "u@h:1",
		.label = "l",
		.hold = { { "CCCCCCCCCCCCCCCCCCCCCC", 7 } },
		.holds = (how & 2) != 0,
		.restart_guard_ms = (how & 4) != 0 ? 60000 : 0 };
	enum ownership ownership;
	struct lease lease;
	struct err err = { "" };
	int64_t sent_us;
	enum status status;

	memset(&lease, 0, sizeof(lease));
	begin_operation();
	status = ops->acquire(game.service, &claim, interrupt_fd, &lease, &err);
	if (status != ST_OK) {
		check_err(status, &err);
		if ((how & 2) == 0)
			check_undone(NULL);
		return;
	}
	must(hold_valid(lease.token) && lease.fence > 0 && lease.fence <= (int64_t)1 << 53, "fence %" PRId64,
	    lease.fence);
	must(lease.valid_until_us > clock_now_us() && lease.valid_until_us < clock_now_us() + claim.ttl_ms * 1000,
	    "validity");
	if (strlen(lease.token) == TOKEN_LENGTH) {
		check_majority(lease.token, offsetof(struct note, granted), "granted");
		check_undone(lease.token);
	}
	begin_operation();
	status = ops->renew(game.service, &lease, CLOCK_NEVER, interrupt_fd, &sent_us, &ownership, &err);
	if (status == ST_OK) {
		check_majority(lease.token, offsetof(struct note, renewed), "renewed");
		ops->heal(game.service, &lease, lease.valid_until_us, CLOCK_NEVER, interrupt_fd);
	} else
		check_err(status, &err);
	begin_operation();
	status = ops->release(game.service, &lease, (how & 8) != 0 ? 500 : 0, &ownership, &err);
	if (status == ST_OK)
		check_majority(lease.token, offsetof(struct note, released), "released");
	else
		check_err(status, &err);
}

static void
tell_view(void *context, const char *key, const struct lock_view *v, enum status status, const struct err *err)
{
	int *const told = context;

	must(strcmp(key, *told == 0 ? "a" : "b") == 0, "%s", key);
	check_view(v);
	must((status == ST_OK) == (v->state != LOCK_UNKNOWN), "%s, status %d", output_state(v->state), (int)status);
	if (status != ST_OK)
		check_err(status, err);
	++*told;
}

static void
try_survey(int interrupt_fd)
{
	static const char *const keys[] = { "a", "b" };
	struct err err = { "" };
	enum status status;
	int told = 0;

	begin_operation();
	status = game.service->ops->survey(game.service, keys, 2, interrupt_fd, tell_view, &told, &err);
	must(told == (status == ST_OK ? 2 : 0), "%d told", told);
	if (status != ST_OK)
		check_err(status, &err);
}

/* Each once, in order. */
static bool
tell_key(void *context, const char *key)
{
	char *const last = context;

	must(strlen(key) <= KEY_MAX && key[0] != '\0', "a key of %zu bytes", strlen(key));
	must(last[0] == '\0' || strcmp(last, key) < 0, "%s behind %s", key, last);
	(void)snprintf(last, KEY_MAX + 1, "%s", key);
	return true;
}

static void
try_list(unsigned int how, int interrupt_fd)
{
	char last[KEY_MAX + 1] = "";
	struct err err = { "" };
	enum status status;

	begin_operation();
	wire_set_limit(INT64_C(1000000000)); /* each page has its time */
	status = game.service->ops->list(game.service, (how & 1) != 0 ? "*" : NULL, interrupt_fd, tell_key, last, &err);
	if (status != ST_OK)
		check_err(status, &err);
}

static void
try_break(void)
{
	const struct service_ops *const ops = game.service->ops;
	static struct pinned pinned;
	enum ownership ownership;
	struct err err = { "" };
	enum status status;
	int i;

	begin_operation();
	status = ops->pin(game.service, "k", &pinned, &err);
	must(pinned.sides >= 0 && pinned.sides <= game.nodes, "%d sides", pinned.sides);
	if (status != ST_OK) {
		check_err(status, &err);
		return;
	}
	check_view(&pinned.view);
	for (i = 0; i < pinned.sides; i++) {
		begin_operation();
		status = ops->force(game.service, "k", &pinned.side[i], &ownership, &err);
		if (status != ST_OK)
			check_err(status, &err);
	}
}

static void
try_examine(unsigned int how)
{
	static struct node_facts facts[NODES_MAX];
	int i, nodes;

	begin_operation();
	nodes = game.service->ops->examine(game.service, (how & 1) != 0, facts);
	must(nodes == game.nodes, "%d nodes", nodes);
	for (i = 0; i < nodes; i++)
		must(facts[i].up ? facts[i].rtt_us >= 0 : is_sentence(facts[i].err.text), "node %d: %s", i,
		    facts[i].err.text);
}

static void
open_game(struct input *in, unsigned int shape)
{
	static const char *const urls[2][NODES_MOST] = { { "redis://u:" PASSWORD "@n0/1", "redis://n1", "redis://n2" },
		{ "redis+sentinel://s0,s1/jobs", "redis+cluster://:" PASSWORD "@c0,c1", "redis://n2" } };
	struct redis_config config = { .nodes = 1 + (int)(shape % NODES_MOST),
		.password = "",
		.node_timeout_ms = ROUND_MS,
		.replicas = (shape & 0x10) != 0 ? 2 : 0,
		.replicas_timeout_ms = 100,
		.trace = { say_trace } };
	struct err err;
	int i;

	memset(&game, 0, sizeof(game));
	game.in = in;
	game.nodes = config.nodes;
	game.services = (shape & 0x20) != 0;
	for (i = 0; i < config.nodes; i++)
		config.url[i] = urls[game.services][(shape & 0x40) != 0 ? config.nodes - 1 - i : i];
	must(redis_open(&config, &game.service, &err) == ST_OK, "%s", err.text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input in = input_of(bytes, length);
	unsigned int what, shape;
	int i, interrupt_fd;

	shape = input_byte(&in);
	wire_begin(&in, answer, NULL);
	open_game(&in, shape);
	for (i = 0; i < 3; i++) {
		what = input_byte(&in);
		interrupt_fd = (what & 0x80) != 0 ? wire_readable() : -1;
		if (what % 8 < 3)
			try_lease(what / 8, interrupt_fd);
		else if (what % 8 == 3)
			try_survey(interrupt_fd);
		else if (what % 8 == 4)
			try_list(what / 8, interrupt_fd);
		else if (what % 8 == 5)
			try_break();
		else
			try_examine(what / 8);
	}
	game.service->ops->close(game.service);
	wire_end();
	return 0;
}
