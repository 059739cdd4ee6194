/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "event.h"
#include "judge.h"
#include "lock/keeper.h"
#include "lock/lease.h"
#include "redis/redis.h"
#include "run/ending.h"
#include "run/renewer.h"
#include "run/tether.h"
#include "world.h"

#define MS INT64_C(1000)
#define KILL_AFTER_US (5000 * MS)
#define PUNCTUAL_US (1 * MS) /* so late may dlock be with what it has to do */

/* What a client has beside dlock's own memory. */
struct client {
	const struct plan *plan;
	int number;
	bool told; /* to end */
	int64_t asleep_until_us;

	/* the command that runs under the lock */
	bool command;
	int64_t ends_at_us;
	const struct turn *turn;
	bool by_token;	  /* there is no dlock that ends it: the script relies on what it was told */
	int64_t until_us; /* of validity, by its own clock */
};

static struct client client[PROCESSES];

bool
client_is_inside(int number)
{
	const struct client *c = &client[number];

	return c->command && kernel_time_of(number, event_now()) < c->until_us;
}

/* -- The command and its tether ------------------------------------------------------------ */

static void
command_dies(struct client *c, const char *why)
{
	if (!c->command)
		return;
	c->command = false;
	judge_leaves(c->number);
	world_say("client %d: the command ends (%s)", c->number, why);
	if (!c->by_token)
		kernel_signal(c->number);
}

static void
command_ends(void *subject, unsigned int number)
{
	struct client *c = subject;

	(void)number;
	if (!c->command || c->by_token || event_now() < c->ends_at_us)
		return;
	if (c->asleep_until_us > event_now())
		event_at(c->asleep_until_us, command_ends, c, 0);
	else
		command_dies(c, "by itself");
}

static void
end_command_in(struct client *c, int64_t us)
{
	const int64_t at = event_now() + us;

	if (at >= c->ends_at_us)
		return;
	c->ends_at_us = at;
	event_at(at, command_ends, c, 0);
}

/* A dlock that is stopped goes on when validity has ended; one that does nothing then is killed, and its command with it. */
static void
watch_validity(void *subject, unsigned int number)
{
	struct client *c = subject;
	int64_t at;

	(void)number;
	if (!c->command || c->by_token)
		return;
	at = kernel_instant(c->number, c->until_us) + 1;
	at = at > c->asleep_until_us ? at : c->asleep_until_us;
	if (event_now() >= at)
		kernel_continue(c->number);
	if (event_now() < at + PUNCTUAL_US) {
		event_at(event_now() < at ? at : at + PUNCTUAL_US, watch_validity, c, 0);
		return;
	}
	if (!kernel_was_paused(c->number, PUNCTUAL_US))
		judge_breach("ending", "client %d did not end its command before its lease ended", c->number);
	command_dies(c, "by its tether");
}

static void
start_command(struct client *c, const struct lease *lease, const struct turn *turn)
{
	if (kernel_is_killed(c->number))
		return;
	c->by_token = turn->by_token;
	c->turn = turn;
	c->command = true;
	c->until_us = lease->valid_until_us;
	c->ends_at_us = INT64_MAX;
	judge_enters(c->number, lease);
	if (c->by_token)
		return;
	end_command_in(c, turn->hold_us);
	event_at(event_now(), watch_validity, c, 0);
}

/* In place of the library's, see the list in tests/local.mk. */
void __wrap_tether_extend(const struct tether *, int64_t);

void
__wrap_tether_extend(const struct tether *tether, int64_t until_us)
{
	struct client *c = &client[kernel_current()];

	(void)tether;
	judge_may_stay(c->number, c->until_us, until_us);
	c->until_us = until_us > c->until_us ? until_us : c->until_us;
}

/* -- dlock run ------------------------------------------------------------------------------ */

struct supervisor {
	struct client *client;
	struct service *service;
	const struct lease *lease;
	struct renewer *renewer;
	struct renewer_state state;
	struct ending ending;
	int alarm;
	int64_t thread_at_us;
};

static void
obey_clock(struct supervisor *s)
{
	enum ending_order order;

	while (
	    (order = ending_next(&s->ending, s->state.valid_until_us, s->state.lost, clock_now_us())) != ENDING_WAIT) {
		if (order == ENDING_KILL)
			command_dies(s->client, "killed by dlock");
		else if (order == ENDING_TERM && s->client->command) {
			world_say("client %d: dlock tells its command to end: %s", s->client->number,
			    s->state.err.text);
			end_command_in(s->client, s->client->turn->term_us);
		}
	}
}

static void
watch(struct supervisor *s)
{
	struct pollfd fds[3] = {
		{ .fd = kernel_signal_fd(s->client->number), .events = POLLIN },
		{ .fd = s->alarm, .events = POLLIN },
		{ .fd = renewer_fd(s->renewer), .events = POLLIN },
	};

	for (;;) {
		renewer_read(s->renewer, &s->state);
		obey_clock(s);
		if (!s->client->command || kernel_is_killed(s->client->number))
			return;
		if (clock_now_us() >= s->thread_at_us && renewer_start(s->renewer) == 0)
			s->thread_at_us = CLOCK_NEVER;
		renewer_set_alarm(s->renewer, s->alarm,
		    s->ending.until_us < s->thread_at_us ? s->ending.until_us : s->thread_at_us, s->ending.lead_us);
		(void)poll(fds, 3, -1);
		renewer_read(s->renewer, &s->state);
		obey_clock(s);
		if (kernel_hear(s->client->number) && s->client->told)
			end_command_in(s->client, s->client->turn->term_us);
	}
}

static void
give_back(struct client *c, struct service *service, const struct lease *lease, int64_t keep_ms)
{
	enum ownership ownership = OWNED;
	struct err err = { "" };
	enum status status;
	const int64_t began = event_now();

	status = service->ops->release(service, lease, keep_ms, &ownership, &err);
	world_say("client %d: the release of %.4s %s%s", c->number, lease->token,
	    status == ST_OK ? (ownership == OWNED_STILL ? "succeeded; others hold it still" : "succeeded") : "failed: ",
	    err.text);
	judge_released(c->number, lease, keep_ms > 0 ? began + keep_ms * MS : 0, status, ownership);
}

static void
run(struct client *c, struct service *service, struct lease *lease, const struct turn *turn)
{
	struct supervisor s = { .client = c, .service = service, .lease = lease };
	bool ran;

	s.renewer = renewer_new(service, lease, NULL);
	s.alarm = clock_alarm_open();
	s.thread_at_us = renewer_due_us(s.renewer);
	s.state.valid_until_us = lease->valid_until_us;
	s.ending.kill_after_us = lease->ttl_ms * 1000 / 6 < KILL_AFTER_US ? lease->ttl_ms * 1000 / 6 : KILL_AFTER_US;
	s.ending.margin_us = lease_kill_margin_us(lease->ttl_ms * 1000, s.ending.kill_after_us);
	s.ending.max_run_at_us = CLOCK_NEVER;
	ran = clock_now_us() < lease->valid_until_us - s.ending.margin_us && clock_now_us() < lease->valid_until_us;
	if (ran) {
		start_command(c, lease, turn);
		watch(&s);
	} else
		world_say("client %d: too late to start the command", c->number);
	renewer_stop(s.renewer);
	if (ran && s.ending.why == ENDING_LOST)
		judge_loses(c->number);
	give_back(c, service, lease, ran ? turn->keep_ms : 0);
	renewer_free(s.renewer);
	(void)close(s.alarm);
}

/* -- dlock acquire, renew, release ------------------------------------------------------------- */

static struct service *open_service(struct client *);

/* Renew when due, each time by a dlock of its own, until the time has come.  False: lost. */
static bool
hold(struct client *c, struct lease *lease, int64_t until_us)
{
	struct limit limit = { .interrupt_fd = -1 };
	struct renewed renewed;
	struct service *service;
	struct keeper keeper;
	enum status status;
	int64_t next;
	struct err err;

	keeper_start(&keeper, lease->sent_us, lease->ttl_ms * 1000, lease->valid_until_us, true);
	for (;;) {
		next = keeper.renew_at_us < keeper.valid_until_us ? keeper.renew_at_us : keeper.valid_until_us;
		kernel_sleep(next < until_us ? next : until_us);
		if (keeper_over(&keeper, clock_now_us()) || kernel_is_killed(c->number))
			return false;
		if (clock_now_us() >= until_us || c->told)
			return true;
		service = open_service(c);
		limit.until_us = keeper.valid_until_us;
		status = service->ops->renew(service, lease, &limit, &renewed, &err);
		if (status == ST_OK && !keeper_over(&keeper, clock_now_us())) {
			keeper_renewed(&keeper, renewed.sent_us);
			lease->valid_until_us = keeper.valid_until_us;
			judge_may_stay(c->number, c->until_us, keeper.valid_until_us);
			c->until_us = keeper.valid_until_us > c->until_us ? keeper.valid_until_us : c->until_us;
			limit.until_us = keeper.renew_at_us;
			service->ops->heal(service, lease, keeper.valid_until_us, &limit);
		} else if (status != ST_NO)
			keeper_failed(&keeper, renewed.sent_us, (uint32_t)renewed.sent_us);
		service->ops->close(service);
		if (status == ST_NO)
			return false;
	}
}

static void
release(struct client *c, const struct lease *lease, int64_t keep_ms)
{
	struct service *service = open_service(c);

	give_back(c, service, lease, keep_ms);
	service->ops->close(service);
}

static void
make_claim(const struct client *c, const struct turn *turn, struct claim *claim)
{
	memset(claim, 0, sizeof(*claim));
	claim->key = SIM_KEY;
	claim->ttl_ms = c->plan->ttl_ms;
	claim->owner = "user@host:1";
	claim->label = "sim";
	claim->restart_guard_ms = c->plan->guarded ? c->plan->ttl_ms : 0;
	if (turn->wait_us != 0)
		claim->wait_until_us = turn->wait_us < 0 ? CLOCK_NEVER : clock_now_us() + turn->wait_us;
}

/* Enter once more. */
static bool
enter_again(struct client *c, const struct turn *turn, const struct lease *outer, struct lease *inner)
{
	struct service *service = open_service(c);
	struct err err = { "" };
	enum status status;
	struct claim claim;

	make_claim(c, turn, &claim);
	claim.hold[0].token = outer->token;
	claim.hold[0].fence = outer->fence;
	claim.holds = 1;
	claim.must_hold = true;
	status = service->ops->acquire(service, &claim, -1, inner, &err);
	service->ops->close(service);
	world_say("client %d: enters again: %s%s", c->number, status == ST_OK ? inner->token : "failed: ", err.text);
	if (status != ST_OK || clock_now_us() >= c->until_us)
		return false;
	if (inner->fence != outer->fence)
		judge_breach("fence of a hold", "client %d entered again by another fence", c->number);
	judge_may_stay(c->number, c->until_us, inner->valid_until_us);
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
	if (turn->outer_first) {
		c->until_us = inner.valid_until_us;
		release(c, outer, 0);
		(void)hold(c, &inner, until);
		*outer = inner;
		return;
	}
	/* The outer hold isn't renewed meanwhile. */
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
		start_command(c, lease, turn);
		if (turn->nested)
			nest(c, lease, turn);
		else
			(void)hold(c, lease, clock_now_us() + turn->hold_us);
		command_dies(c, "by itself");
	}
	release(c, lease, turn->keep_ms);
}

/* -- Turns --------------------------------------------------------------------------------------- */

static void
say_debug(const char *line)
{
	if (kernel_current() >= 0)
		world_say("client %d:   %s", kernel_current(), line);
}

static struct service *
open_service(struct client *c)
{
	static const char *const urls[SERVERS] = { "10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379", "10.0.0.4:6379",
		"10.0.0.5:6379" };
	struct redis_config config = { .nodes = c->plan->servers,
		.password = "",
		.node_timeout_ms = c->plan->round_ms };
	struct service *service = NULL;
	struct err err;

	memcpy(config.url, urls, sizeof(urls));
	if (world_traces())
		config.log.debug = say_debug;
	if (redis_open(&config, &service, &err) != ST_OK)
		judge_breach("program", "%s", err.text);
	return service;
}

static void
play_turn(struct client *c, const struct turn *turn)
{
	struct service *service = open_service(c);
	struct claim claim;
	struct lease lease;
	struct err err = { "" };
	enum status status;

	make_claim(c, turn, &claim);
	judge_asks(c->number, turn->wait_us != 0);
	status = service->ops->acquire(service, &claim, kernel_signal_fd(c->number), &lease, &err);
	judge_asked(c->number, turn, status, err.text);
	world_say("client %d: %s %s%s", c->number,
	    status == ST_OK ? "has got the lock as" : "has not got the lock:", status == ST_OK ? lease.token : "",
	    err.text);
	if (status == ST_OK && !turn->by_token)
		run(c, service, &lease, turn);
	service->ops->close(service);
	if (status == ST_OK && turn->by_token)
		hold_by_token(c, &lease, turn);
	judge_done(c->number);
}

static void
play(int number)
{
	struct client *c = &client[number];
	int i;

	for (i = 0; i < c->plan->turns && !c->told; i++) {
		kernel_sleep(clock_now_us() + c->plan->turn[number][i].pause_us);
		if (!c->told)
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
client_tell(int number)
{
	client[number].told = true;
	kernel_signal(number);
}
