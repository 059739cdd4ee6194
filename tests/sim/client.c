/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client.h"
#include "event.h"
#include "judge.h"
#include "lock/lease.h"
#include "net/password.h"
#include "redis/backend.h"
#include "run/keepalive.h"
#include "run/policy.h"
#include "world.h"

#define HISTORY 2 /* holders that are remembered */
#define KILL_AFTER_US (5000 * MS)

struct client client[PROCESSES];

/* -- dlock run ------------------------------------------------------------------------------ */

struct supervisor {
	struct client *client;
	struct backend *backend;
	const struct lease *lease;
	struct keepalive keepalive;
	struct keepalive_state state;
	struct policy policy;
	int alarm;
	int64_t thread_at_us;
};

static void
obey_clock(struct supervisor *s)
{
	enum policy_order order;

	if (s->state.asked_by[0] != '\0' && !s->policy.asked)
		judge_is_asked(s->client->number, s->lease);
	s->policy.asked = s->state.asked_by[0] != '\0';
	while (
	    (order = policy_next(&s->policy, s->state.valid_until_us, s->state.lost, clock_now_us())) != POLICY_WAIT) {
		if (order == POLICY_KILL)
			command_dies(s->client, "killed by dlock");
		else if (order == POLICY_TERM && s->client->command) {
			world_say("client %d: dlock ends its command: %s", s->client->number, s->state.err.text);
			command_end_in(s->client, s->client->turn->term_us);
		}
	}
}

static void
watch(struct supervisor *s)
{
	struct pollfd fds[3] = {
		{ .fd = kernel_signal_fd(s->client->number), .events = POLLIN },
		{ .fd = s->alarm, .events = POLLIN },
		{ .events = POLLIN },
	};

	for (;;) {
		keepalive_read(&s->keepalive, &s->state);
		obey_clock(s);
		if (!s->client->command || kernel_is_killed(s->client->number))
			return;
		if (clock_now_us() >= s->thread_at_us && keepalive_start(&s->keepalive) == 0)
			s->thread_at_us = CLOCK_NEVER;
		keepalive_set_alarm(&s->keepalive, s->alarm, s->thread_at_us, &s->policy);
		fds[2].fd = s->keepalive.news_fd;
		(void)poll(fds, 3, -1);
		keepalive_read(&s->keepalive, &s->state);
		obey_clock(s);
		if (kernel_take_signals(s->client->number) && s->client->signalled)
			command_end_in(s->client, s->client->turn->term_us);
	}
}

static void
release_lock(struct client *c, struct backend *backend, const struct lease *lease, int64_t keep_ms)
{
	enum ownership ownership = OWNED;
	struct err err = { "" };
	enum status status;
	const int64_t began = event_now();

	status = backend->service->release(backend, lease, keep_ms, &ownership, &err);
	world_say("client %d: the release of %.4s %s%s", c->number, lease->token,
	    status == ST_OK ? (ownership == OWNED_STILL ? "succeeded; others hold it still" : "succeeded") : "failed: ",
	    err.text);
	if (status == ST_OK && ownership == OWNED_STILL && !c->entered_again && !token_shared(lease->token))
		judge_breach("one hold", "client %d had the only hold, but others hold its lock still", c->number);
	judge_released(c->number, lease, keep_ms > 0 ? began + keep_ms * MS : 0, status, ownership);
}

static void
run(struct client *c, struct backend *backend, struct lease *lease, const struct turn *turn)
{
	struct supervisor s = { .client = c, .backend = backend, .lease = lease };
	bool ran;

	s.state.valid_until_us = lease->valid_until_us;
	s.policy.kill_after_us = lease->ttl_ms * 1000 / 6 < KILL_AFTER_US ? lease->ttl_ms * 1000 / 6 : KILL_AFTER_US;
	s.policy.margin_us = lease_kill_margin_us(lease->ttl_ms * 1000, s.policy.kill_after_us);
	s.policy.max_run_at_us = CLOCK_NEVER;
	keepalive_open(&s.keepalive, backend, lease, s.policy.margin_us, NULL);
	s.alarm = clock_alarm_open();
	s.thread_at_us = s.keepalive.schedule.renew_at_us;
	ran = clock_now_us() < lease->valid_until_us - s.policy.margin_us && clock_now_us() < lease->valid_until_us;
	if (ran) {
		command_start(c, lease, turn);
		watch(&s);
	} else
		world_say("client %d: too late to start the command", c->number);
	keepalive_stop(&s.keepalive);
	if (ran && s.policy.why == ST_LOST)
		judge_loses(c->number);
	release_lock(c, backend, lease, ran ? turn->keep_ms : 0);
	keepalive_close(&s.keepalive);
	(void)close(s.alarm);
}

static void
say_debug(const char *line)
{
	if (kernel_current() >= 0)
		world_say("client %d:   %s", kernel_current(), line);
}

static struct backend *
open_service(struct client *c)
{
	static const char *const urls[SERVERS] = { "10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379", "10.0.0.4:6379",
		"10.0.0.5:6379" };
	static struct password no_password;
	struct service_config config = { .nodes = c->plan->servers,
		.password = &no_password,
		.node_timeout_ms = c->plan->round_ms };
	struct backend *backend = NULL;
	struct err err;

	memcpy(config.url, urls, sizeof(urls));
	if (world_traces())
		config.log.debug = say_debug;
	if (redis_service.open(&config, &backend, &err) != ST_OK)
		judge_breach("program", "%s", err.text);
	return backend;
}

/* -- dlock acquire, renew, release ------------------------------------------------------------- */

/* Renew when due, each time with a new dlock process, until the given time.  False: the lock is lost. */
static bool
hold(struct client *c, struct lease *lease, int64_t until_us)
{
	struct wait limit = { .interrupt_fd = -1 };
	struct renewed renewed;
	struct backend *backend;
	struct lease_schedule schedule;
	struct lease everywhere = *lease; /* a script renews no sooner */
	enum status status;
	int64_t next;
	struct err err;

	everywhere.granted = everywhere.nodes;
	lease_start(&schedule, &everywhere);
	for (;;) {
		next = schedule.renew_at_us < schedule.valid_until_us ? schedule.renew_at_us : schedule.valid_until_us;
		kernel_sleep(next < until_us ? next : until_us);
		if (lease_over(&schedule, clock_now_us()) || kernel_is_killed(c->number))
			return false;
		if (clock_now_us() >= until_us || c->signalled)
			return true;
		backend = open_service(c);
		limit.until_us = schedule.valid_until_us;
		status = backend->service->renew(backend, lease, &limit, &renewed, &err);
		if (status == ST_OK && !lease_over(&schedule, clock_now_us())) {
			lease_renewed(&schedule, renewed.sent_us, renewed.valid_until_us);
			lease->valid_until_us = schedule.valid_until_us;
			judge_may_stay(c->number, lease->token, c->until_us, schedule.valid_until_us);
			c->until_us = schedule.valid_until_us > c->until_us ? schedule.valid_until_us : c->until_us;
			limit.until_us = schedule.renew_at_us;
			backend->service->heal(backend, lease, schedule.valid_until_us, &limit);
		} else if (status != ST_NO)
			lease_failed(&schedule, renewed.sent_us, (uint32_t)renewed.sent_us);
		backend->service->close(backend);
		if (status == ST_NO)
			return false;
	}
}

static void
release(struct client *c, const struct lease *lease, int64_t keep_ms)
{
	struct backend *backend = open_service(c);

	release_lock(c, backend, lease, keep_ms);
	backend->service->close(backend);
}

/* Somebody breaks the lock, whatever holds it has. */
static void
break_lock(struct client *c, const struct lease *lease)
{
	struct holder holder = { .state = LOCK_HELD, .nodes = c->plan->servers };
	const struct break_args args = { .key = lease->key, .holder = &holder, .by = "operator@host:1" };
	struct backend *backend = open_service(c);
	enum ownership ownership = OWNED;
	struct err err = { "" };
	enum status status;

	memcpy(holder.token, lease->token, sizeof(holder.token));
	status = backend->service->break_holder(backend, &args, &ownership, &err);
	backend->service->close(backend);
	world_say("client %d: the break of %.4s %s%s", c->number, lease->token,
	    status == ST_OK ? "succeeded" : "failed: ", err.text);
	judge_released(c->number, lease, 0, status, ownership);
}

static void
make_args(struct client *c, const struct turn *turn, struct acquire_args *args)
{
	memset(args, 0, sizeof(*args));
	args->key = SIM_KEY;
	args->slots = turn->slots;
	args->max_waiters = turn->max_waiters;
	args->replace = turn->replace;
	args->slot_key = c->slot_key;
	args->shared = turn->shared;
	args->ttl_ms = c->plan->ttl_ms;
	args->history = HISTORY;
	args->owner = "user@host:1";
	args->label = "sim";
	args->restart_guard_ms = c->plan->guarded ? c->plan->ttl_ms : 0;
	args->wait.interrupt_fd = -1;
	if (turn->wait_us != 0)
		args->wait.until_us = turn->wait_us < 0 ? CLOCK_NEVER : clock_now_us() + turn->wait_us;
}

/* Enter the lock again. */
static bool
enter_again(struct client *c, const struct turn *turn, const struct lease *outer, struct lease *inner)
{
	struct backend *backend = open_service(c);
	struct err err = { "" };
	enum status status;
	struct acquire_args args;

	make_args(c, turn, &args);
	args.key = outer->key;
	args.slots = 0;
	memcpy(args.hold[0].token, outer->token, sizeof(args.hold[0].token));
	args.hold[0].fence = outer->fence;
	args.holds = 1;
	args.must_hold = true;
	c->entered_again = true;
	status = backend->service->acquire(backend, &args, inner, &err);
	backend->service->close(backend);
	world_say("client %d: enters again: %s%s", c->number, status == ST_OK ? inner->token : "failed: ", err.text);
	if (status != ST_OK || clock_now_us() >= c->until_us)
		return false;
	if (inner->fence < outer->fence || (inner->fence > outer->fence && !turn->shared))
		judge_breach("fence of a hold", "client %d entered again by another fence", c->number);
	judge_may_stay(c->number, inner->token, c->until_us, inner->valid_until_us);
	c->until_us = inner->valid_until_us > c->until_us ? inner->valid_until_us : c->until_us;
	return true;
}

static void
nest(struct client *c, struct lease *outer, const struct turn *turn)
{
	const int64_t until = clock_now_us() + turn->hold_us;
	const int64_t third = clock_now_us() + c->plan->ttl_ms * MS / 3;
	struct lease inner;
	bool kept;

	if (!enter_again(c, turn, outer, &inner)) {
		(void)hold(c, outer, until);
		return;
	}
	if (turn->broken) {
		(void)hold(c, &inner, until);
		return;
	}
	if (turn->outer_first) {
		c->until_us = inner.valid_until_us;
		release(c, outer, 0);
		(void)hold(c, &inner, until);
		*outer = inner;
		return;
	}
	/* The outer hold isn't renewed in the meantime. */
	kept = hold(c, &inner, until - turn->hold_us / 2 < third ? until - turn->hold_us / 2 : third);
	c->until_us = kept ? outer->valid_until_us : 0;
	release(c, &inner, 0);
	if (kept)
		(void)hold(c, outer, until);
}

static void
hold_by_token(struct client *c, struct lease *lease, const struct turn *turn)
{
	if (clock_now_us() < lease->valid_until_us) {
		command_start(c, lease, turn);
		if (turn->nested)
			nest(c, lease, turn);
		else
			(void)hold(c, lease, clock_now_us() + turn->hold_us);
		command_dies(c, "by itself");
	}
	if (turn->broken && c->entered_again)
		break_lock(c, lease);
	else
		release(c, lease, turn->keep_ms);
}

/* -- Turns --------------------------------------------------------------------------------------- */

/* Ask the client that is inside to end, until it has. */
static void
ask_to_end(struct client *c)
{
	struct holder holder = { .state = LOCK_HELD };
	const struct break_args args = { .key = SIM_KEY, .holder = &holder, .by = "operator@host:1" };
	enum ownership ownership;
	struct backend *backend;
	struct err err = { "" };
	enum status status;
	int other = 0;

	while (other < c->plan->clients && !(client_is_inside(other) && client[other].turn->slots == 0))
		other++;
	if (other == c->plan->clients)
		return;
	memcpy(holder.token, client[other].token, sizeof(holder.token));
	backend = open_service(c);
	for (int tries = 0; tries < 40 && !c->signalled && !kernel_is_killed(c->number); tries++) {
		status = backend->service->ask(backend, &args, &ownership, &err);
		world_say("client %d: asks %.4s to end: %s", c->number, holder.token,
		    status == ST_OK ? "it still holds the lock" : err.text);
		if (status == ST_NO && strcmp(client[other].token, holder.token) == 0)
			judge_has_ended(c->number, other);
		if (status == ST_NO)
			break;
		kernel_sleep(clock_now_us() + 50 * MS);
	}
	backend->service->close(backend);
}

static void
play_turn(struct client *c, const struct turn *turn)
{
	struct backend *backend = open_service(c);
	struct acquire_args args;
	struct lease lease;
	struct err err = { "" };
	enum status status;

	c->entered_again = false;
	(void)kernel_take_signals(c->number); /* each turn is a new process, the last one's are gone */
	make_args(c, turn, &args);
	judge_asks(c->number, turn);
	args.wait.interrupt_fd = kernel_signal_fd(c->number);
	status = backend->service->acquire(backend, &args, &lease, &err);
	judge_asked(c->number, turn, status, status == ST_OK ? lease.slot : 0, err.text);
	world_say("client %d: %s %s%s", c->number,
	    status == ST_OK ? "has got the lock as" : "has not got the lock:", status == ST_OK ? lease.token : "",
	    err.text);
	if (status == ST_OK && !turn->by_token)
		run(c, backend, &lease, turn);
	backend->service->close(backend);
	if (status == ST_OK && turn->by_token)
		hold_by_token(c, &lease, turn);
	judge_done(c->number);
}

static void
play(int number)
{
	struct client *c = &client[number];

	for (int i = 0; i < c->plan->turns && !c->signalled; i++) {
		kernel_sleep(clock_now_us() + c->plan->turn[number][i].pause_us);
		if (!c->signalled && c->plan->turn[number][i].asks)
			ask_to_end(c);
		else if (!c->signalled)
			play_turn(c, &c->plan->turn[number][i]);
	}
}

void
client_start(const struct plan *plan, int number)
{
	memset(&client[number], 0, sizeof(client[number]));
	client[number].plan = plan;
	client[number].number = number;
	kernel_start(number, &plan->clock[number], play);
}

void
client_kill(int number, bool host_gone)
{
	if (!kernel_runs(number))
		return;
	judge_crashes(number);
	client[number].command = false;
	kernel_kill(number, host_gone);
}

void
client_sleep(int number, int64_t until_us)
{
	if (until_us > client[number].asleep_until_us)
		client[number].asleep_until_us = until_us;
	kernel_pause(number, until_us);
}

void
client_signal(int number)
{
	client[number].signalled = true;
	kernel_signal(number);
}
