/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sim/event.h"
#include "../sim/kernel.h"
#include "base/clock.h"
#include "base/text.h"
#include "net/password.h"
#include "redis/backend.h"
#include "redis/url.h"
#include "servers.h"

/*
 * The whole backend with servers of any kind: honest ones, and servers that lie, reply in small pieces, close the
 * connection, hang, or send anything.  Whatever they do, each operation ends in time, leaks nothing, and reports an
 * error in one sentence.  All requests are well-formed.  A lock is acquired, renewed or released only if a majority
 * of the servers has confirmed it.
 */
enum {
	NODES_MOST = 3,
	OPERATIONS = 3
};

#define ROUND_MS 500
#define WAIT_US INT64_C(3000000)
#define LIMIT_US (WAIT_US + INT64_C(20000000))
#define PASSWORD "hunter2"

static struct {
	int nodes;
	bool services;			  /* some of the nodes use Sentinel or are Clusters */
	bool leaked;			  /* the input contains the password, so servers may send it by chance */
	struct hold hold[OPERATIONS + 1]; /* of locks that were not released, behind a foreign one */
	int holds;
	struct backend *backend;
} game;

/* Is it UTF-8 that can be printed, as text_utf8() has it, which a unit test compares with all of Unicode? */
static bool
is_harmless(const char *text)
{
	size_t length;

	for (; *text != '\0'; text += length) {
		length = text_utf8(text, strlen(text));
		if (length == 0)
			return false;
	}
	return true;
}

/* The same, a single line that is not empty, and without the password, as required for an error message? */
static bool
is_sentence(const char *text)
{
	return text[0] != '\0' && is_harmless(text) && (game.leaked || strstr(text, PASSWORD) == NULL);
}

static void
say_debug(const char *line)
{
	must(is_sentence(line), "a step: %s", line);
}

/* Success, an interrupt, or a failure that is known, with a sentence. */
static void
check_status(enum status status, const struct err *err)
{
	const bool failed = status == ST_NO || status == ST_USAGE || status == ST_NO_QUORUM || status == ST_HELD ||
	    status == ST_DENIED;

	must(failed || status == ST_OK || status == ST_INTERRUPTED, "status %d: %s", (int)status, err->text);
	must(!failed || is_sentence(err->text), "%s", err->text);
}

/* The number of servers that may have replied this. */
static int
count_notes(const char *token, size_t member)
{
	int sum = 0;

	for (int i = 0; i < game.nodes; i++)
		sum += servers[i].wild || *(const bool *)((char *)servers_note(&servers[i], token) + member);
	return sum;
}

static void
check_majority(const char *token, size_t member, const char *what)
{
	must(game.services || count_notes(token, member) >= game.nodes / 2 + 1, "%s by %d of %d nodes", what,
	    count_notes(token, member), game.nodes);
}

/* Is it the token of a lock that was left? */
static bool
is_left(const char *token)
{
	int i;

	for (i = 1; i <= game.holds && strncmp(game.hold[i].token, token, TOKEN_LENGTH) != 0; i++)
		;
	return i <= game.holds;
}

/* Grants of honest servers to a failed attempt must have been rolled back, once all bytes have arrived. */
static void
check_undone(const char *but)
{
	servers_settle();
	for (int i = 0; i < game.nodes && !game.services; i++) {
		const struct server_notes *const s = &servers[i];

		for (int j = 0; j < s->notes && s->faithful && !s->wild; j++) {
			const struct note *const n = &s->note[j];

			must(!n->granted || n->undone || n->released || is_left(n->token) || strcmp(n->token, but) == 0,
			    "node %d keeps what %s was granted", i, n->token);
		}
	}
}

/* A holder that servers of any kind describe: its texts end, its numbers are in range. */
static void
check_holder(const struct holder *h)
{
	const int64_t end = (int64_t)1 << 53;

	must(strnlen(h->token, TOKEN_SIZE) < TOKEN_SIZE && strnlen(h->owner, OWNER_MAX + 1) <= OWNER_MAX &&
		strnlen(h->label, LABEL_MAX + 1) <= LABEL_MAX,
	    "a text without an end");
	must(is_harmless(h->type) && (h->state != LOCK_KEPT || is_harmless(h->kept_by)), "%s, %s", h->type, h->kept_by);
	must(h->left_ms >= -1 && h->left_ms < end && h->held_ms >= -1 && h->held_ms < end, "%" PRId64 " ms",
	    h->left_ms);
	must(h->fence >= 0 && h->fence < end && h->waiting >= 0 && h->waiting < end && h->holds >= 0 && h->holds < end,
	    "fence %" PRId64, h->fence);
}

static void
check_view(const struct record *v)
{
	int replied = 0;

	for (int i = 0; i < v->holders; i++)
		check_holder(&v->holder[i]);
	must(v->nodes == game.nodes && v->agreeing >= 0 && v->agreeing <= v->nodes, "%d nodes", v->nodes);
	for (int i = 0; i < v->nodes; i++) {
		replied += v->node[i].state != LOCK_UNKNOWN;
		must(v->node[i].state != LOCK_UNKNOWN || is_sentence(v->node[i].reason.text), "node %d: %s", i,
		    v->node[i].reason.text);
	}
	must((v->state == LOCK_UNKNOWN) == (replied < v->nodes / 2 + 1), "%s by %d replies", record_state(v->state),
	    replied);
}

/* Acquire a lock or a slot; it may enter again by the last lock that it left. */
static bool
try_acquire(unsigned int how, int interrupt_fd, char slot_key[KEY_MAX + 1], struct lease *lease)
{
	const bool slots = (how & 18) == 16;
	const struct acquire_args args = { .key = "k",
		.ttl_ms = 10000,
		.wait = { (how & 1) != 0 ? clock_now_us() + WAIT_US : 0, interrupt_fd },
		.owner = "u@h:1",
		.label = "l",
		.hold = { game.hold[game.holds] },
		.holds = (how & 2) != 0,
		.history = 2,
		.slots = slots ? 3 : 0,
		.slot_key = slot_key,
		.shared = (how & 18) == 18,
		.restart_guard_ms = (how & 4) != 0 ? 60000 : 0 };
	struct err err = { "" };
	enum status status;

	servers_watch(LIMIT_US);
	status = game.backend->service->acquire(game.backend, &args, lease, &err);
	if (status != ST_OK) {
		check_status(status, &err);
		if ((how & 2) == 0)
			check_undone("");
		return false;
	}
	must(slots == (lease->slot > 0) && lease->slot <= args.slots && (lease->key == slot_key) == slots, "slot %d",
	    lease->slot);
	must(hold_valid(lease->token) && lease->fence > 0 && lease->fence <= (int64_t)1 << 53, "fence %" PRId64,
	    lease->fence);
	must(lease->valid_until_us > clock_now_us() && lease->valid_until_us < clock_now_us() + args.ttl_ms * 1000,
	    "validity");
	if (strlen(lease->token) == TOKEN_LENGTH) {
		check_majority(lease->token, offsetof(struct note, granted), "granted");
		check_undone(lease->token);
	}
	return true;
}

static void
try_lease(unsigned int how, int interrupt_fd, bool leave)
{
	const struct service *const ops = game.backend->service;
	const struct wait limit = { CLOCK_NEVER, interrupt_fd };
	char slot_key[KEY_MAX + 1];
	struct lease lease = { .slot = 0 };
	enum ownership ownership;
	struct renewed renewed;
	struct err err = { "" };
	enum status status;

	if (!try_acquire(how, interrupt_fd, slot_key, &lease))
		return;
	servers_watch(LIMIT_US);
	status = ops->renew(game.backend, &lease, &limit, &renewed, &err);
	if (status == ST_OK) {
		check_majority(lease.token, offsetof(struct note, renewed), "renewed");
		ops->heal(game.backend, &lease, lease.valid_until_us, &limit);
	}
	check_status(status, &err);
	if (leave) {
		memcpy(game.hold[++game.holds].token, lease.token, sizeof(lease.token));
		game.hold[game.holds].fence = lease.fence;
		return;
	}
	servers_watch(LIMIT_US);
	status = ops->release(game.backend, &lease, (how & 8) != 0 ? 500 : 0, &ownership, &err);
	if (status == ST_OK)
		check_majority(lease.token, offsetof(struct note, released), "released");
	check_status(status, &err);
}

/* The state of two locks, or the history of one, or both. */
static void
try_look(unsigned int what, int interrupt_fd)
{
	static struct record record[2];
	const bool state = (what & LOOK_STATE) != 0;
	const struct look_args args = { .what = what, .count = state ? 2 : 1, .wait = { CLOCK_NEVER, interrupt_fd } };
	struct err err = { "" };
	enum status status;

	memset(record, 0, sizeof(record));
	record[0].key = "k";
	record[1].key = "b";
	servers_watch(LIMIT_US);
	status = game.backend->service->look(game.backend, &args, record, &err);
	check_status(status, &err);
	for (int i = 0; i < args.count; i++) {
		const struct record *const r = &record[i];

		if (status == ST_OK && state) {
			check_view(r);
			must((r->status == ST_OK) == (r->state != LOCK_UNKNOWN), "%s, status %d",
			    record_state(r->state), (int)r->status);
		}
		if (status == ST_OK)
			check_status(r->status, &r->err);
		for (size_t k = 0; k < r->formers; k++)
			must(token_valid(r->former[k].token) && r->former[k].start_ms > 0 && r->former[k].held_ms >= -1,
			    "entry %zu", k);
		record_free(&record[i]);
	}
}

/* Each key must be listed once, in order. */
static void
try_list(unsigned int how, int interrupt_fd)
{
	const struct look_args args = { .what = (how & 2) != 0 ? LOOK_LAST : LOOK_STATE,
		.wait = { CLOCK_NEVER, interrupt_fd } };
	struct names keys = { .count = 0 };
	struct err err = { "" };
	enum status status;

	servers_watch(INT64_C(1000000000)); /* each page has its own timeout */
	status = game.backend->service->list(game.backend, (how & 1) != 0 ? "*" : NULL, &args, &keys, &err);
	check_status(status, &err);
	for (size_t i = 0; i < keys.count; i++) {
		must(strlen(keys.at[i]) <= KEY_MAX && keys.at[i][0] != '\0', "a key of %zu bytes", strlen(keys.at[i]));
		must(i == 0 || strcmp(keys.at[i - 1], keys.at[i]) < 0, "%s behind %s", keys.at[i], keys.at[i - 1]);
	}
	names_free(&keys);
}

static void
try_break(void)
{
	static const struct look_args args = { .what = LOOK_STATE | LOOK_EXACT,
		.count = 1,
		.wait = { CLOCK_NEVER, -1 } };
	const struct service *const ops = game.backend->service;
	static struct record record;
	struct break_args breaking = { .key = "k" };
	enum ownership ownership;
	struct err err = { "" };
	enum status status;

	memset(&record, 0, sizeof(record));
	record.key = "k";
	servers_watch(LIMIT_US);
	status = ops->look(game.backend, &args, &record, &err);
	must(record.holders >= 0 && record.holders <= game.nodes, "%d holders", record.holders);
	if (status != ST_OK || record.status != ST_OK) {
		check_status(status != ST_OK ? status : record.status, status != ST_OK ? &err : &record.err);
		return;
	}
	check_view(&record);
	for (int i = 0; i < record.holders; i++) {
		breaking.holder = &record.holder[i];
		servers_watch(LIMIT_US);
		status = ops->break_holder(game.backend, &breaking, &ownership, &err);
		check_status(status, &err);
	}
}

static enum status
try_nothing(void *context, int node, struct err *err)
{
	return ST_OK;
}

static void
try_examine(unsigned int how)
{
	static struct probed probed[NODES_MAX];
	static struct findings r;
	struct err err;
	int nodes;

	servers_watch(LIMIT_US);
	if ((how & 1) == 0) {
		nodes = game.backend->service->probe(game.backend, probed);
		must(nodes == game.nodes, "%d nodes", nodes);
		for (int i = 0; i < nodes; i++)
			must(probed[i].up ? probed[i].rtt_us >= 0 : is_sentence(probed[i].reason.text), "node %d: %s",
			    i, probed[i].reason.text);
		return;
	}
	r = (struct findings){ .ttl_ms = 30000, .node_timeout_ms = 2000, .try_lock = try_nothing };
	(void)game.backend->service->doctor(game.backend, &r, &err);
	must(r.nodes == game.nodes, "%d nodes", r.nodes);
	for (size_t k = 0; k < r.count; k++)
		must(r.found[k].what[0] != '\0', "finding %zu", k);
}

static void
open_game(unsigned int shape)
{
	static const char *const urls[2][NODES_MOST] = { { "redis://u:" PASSWORD "@n0/1", "redis://n1", "redis://n2" },
		{ "redis+sentinel://s3,s4/jobs", "redis+cluster://:" PASSWORD "@c1,c4", "redis://n2" } };
	static const struct hold foreign = { "CCCCCCCCCCCCCCCCCCCCCC", 7 };
	static struct password no_password;
	struct service_config config = { .nodes = 1 + (int)(shape % NODES_MOST),
		.password = &no_password,
		.node_timeout_ms = ROUND_MS,
		.replicas = (shape & 0x10) != 0 ? 2 : 0,
		.replicas_timeout_ms = 100,
		.log = { .debug = say_debug } };
	struct err err;

	memset(&game, 0, sizeof(game));
	game.hold[0] = foreign;
	game.nodes = config.nodes;
	game.services = (shape & 0x20) != 0;
	for (int i = 0; i < config.nodes; i++)
		config.url[i] = urls[game.services][(shape & 0x40) != 0 ? config.nodes - 1 - i : i];
	must(redis_service.open(&config, &game.backend, &err) == ST_OK, "%s", err.text);
}

static void
interrupt(void *subject, unsigned int number)
{
	kernel_signal((int)number);
}

static void
try_something(void)
{
	const unsigned int what = input_byte(), how = what / 8, when = input_byte();
	const int interrupt_fd = when > 0 ? kernel_signal_fd(0) : -1;

	if (when > 0)
		event_at(event_now() + (int64_t)(when - 1) * 10000, interrupt, NULL, 0);
	if (what % 8 < 3)
		try_lease(how, interrupt_fd, what % 8 == 2);
	else if (what % 8 == 3)
		try_look(LOOK_STATE | ((what & 0x40) != 0 ? LOOK_HISTORY : 0), interrupt_fd);
	else if (what % 8 == 4)
		try_list(how, interrupt_fd);
	else if (what % 8 == 5)
		try_break();
	else if (what % 8 == 6)
		try_examine(how);
	else
		try_look(LOOK_HISTORY, interrupt_fd);
	servers_settle();
	(void)kernel_take_signals(0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	servers_begin(bytes, length);
	open_game(input_byte());
	game.leaked = memmem(bytes, length, PASSWORD, strlen(PASSWORD)) != NULL;
	for (int i = 0; i < OPERATIONS; i++)
		try_something();
	game.backend->service->close(game.backend);
	servers_end();
	return 0;
}
