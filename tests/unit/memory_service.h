/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_UNIT_MEMORY_SERVICE_H
#define DLOCK_TESTS_UNIT_MEMORY_SERVICE_H
/*
 * A table of services that has one: the backend of memory.h, in memory that processes share, with what commands want to
 * know of a lock beside it.  Whoever includes this links none of the real services.
 */
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "lock/service.h"
#include "memory.h"

#define LONGEST_MS 30000

/* The one lock that there is, and what memory.h does not know of it. */
static struct store {
	struct memory memory;
	char key[KEY_MAX + 1];
	char token[TOKEN_SIZE];
	int64_t taken_us, ended_us;
	struct holder holder;
	struct broken broken;
	int64_t broken_ago_ms;
	char said[4096];  /* by the last call, on both streams */
	int64_t until_us; /* the end of the last wait */
	int asked;	  /* so often has its holder been asked to end */
	pid_t test;	  /* other tests run at the same time, and a keeper listens under its token */
	/* What was configured last. */
	int64_t node_timeout_ms, replicas_timeout_ms;
} * store;

static bool
is_held(const char *key)
{
	return store->memory.held && strcmp(store->key, key) == 0;
}

static enum status
check_url(const char *url, struct err *err)
{
	return strncmp(url, "memory:", 7) == 0 ? ST_OK : err_set(err, ST_USAGE, "not a URL of memory");
}

/* As long as there is room for. */
static bool
is_token(const char *text)
{
	return strncmp(text, "token-", 6) == 0 && strlen(text) == TOKEN_SIZE - 1;
}

static struct holder
holder_now(void)
{
	struct holder h = store->holder;

	h.left_ms = (store->taken_us - clock_now_us()) / 1000 + store->memory.ttl_ms;
	h.held_ms = (clock_now_us() - store->taken_us) / 1000;
	h.ended_ms = (clock_now_us() - store->ended_us) / 1000;
	return h;
}

static enum status
acquire(struct backend *backend, const struct acquire_args *args, struct lease *lease, struct err *err)
{
	struct pollfd fd = { .fd = args->wait.interrupt_fd, .events = POLLIN };
	struct text text = text_in(err->text, sizeof(err->text));
	struct holder h;
	enum status status;

	store->until_us = args->wait.until_us;
	while (store->memory.held) {
		h = holder_now();
		if (args->waiting != NULL && args->wait.until_us > 0)
			(void)args->waiting(args->context, &h, 0);
		if (store->memory.unreachable)
			return err_set(err, ST_NO_QUORUM, "no server answers");
		if (clock_now_us() >= args->wait.until_us) {
			if (args->refused_by != NULL)
				*args->refused_by = h;
			holder_say(&h, "held by ", &text);
			return ST_HELD;
		}
		if (poll(&fd, 1, 5) > 0)
			return err_set(err, ST_INTERRUPTED, "interrupted");
	}
	status = memory_acquire(backend, args, lease, err);
	if (status != ST_OK)
		return status;
	(void)snprintf(store->token, sizeof(store->token), "token-%0*ld", TOKEN_SIZE - 7,
	    store->test * 1000L + (long)lease->fence);
	memcpy(lease->token, store->token, sizeof(lease->token));
	(void)snprintf(store->key, sizeof(store->key), "%s", args->key);
	store->taken_us = clock_now_us();
	store->holder = (struct holder){ .state = LOCK_HELD, .fence = lease->fence, .holds = 1 };
	memcpy(store->holder.token, store->token, sizeof(store->holder.token));
	(void)snprintf(store->holder.owner, sizeof(store->holder.owner), "%s", args->owner);
	(void)snprintf(store->holder.label, sizeof(store->holder.label), "%s", args->label);
	return ST_OK;
}

static bool
is_ours(const struct lease *lease)
{
	return is_held(lease->key) && strcmp(lease->token, store->token) == 0 && store->holder.state == LOCK_HELD;
}

static enum status
renew(struct backend *backend, struct lease *lease, const struct wait *limit, struct renewed *renewed, struct err *err)
{
	if (is_ours(lease))
		return memory_renew(backend, lease, limit, renewed, err);
	renewed->ownership = is_held(lease->key) ? OWNED_BY_ANOTHER : OWNED_BY_NOBODY;
	return err_set(err, ST_NO, "gone");
}

static enum status
release(struct backend *backend, const struct lease *lease, int64_t keep_ms, enum ownership *ownership, struct err *err)
{
	*ownership = is_held(lease->key) ? OWNED_BY_ANOTHER : OWNED_BY_NOBODY;
	if (!is_ours(lease))
		return err_set(err, ST_NO, "gone");
	if (keep_ms <= 0)
		return memory_release(backend, lease, keep_ms, ownership, err);
	*ownership = OWNED;
	store->holder.state = LOCK_KEPT;
	store->ended_us = clock_now_us();
	(void)snprintf(store->holder.kept_by, sizeof(store->holder.kept_by), "%s",
	    lease->kept_by != NULL ? lease->kept_by : "min-hold");
	return ST_OK;
}

static void
see(const char *key, struct record *view)
{
	view->nodes = view->answered = view->agreeing = 1;
	view->node[0].name = "memory";
	view->broken = store->broken;
	view->broken.ago_ms = store->broken_ago_ms;
	if (is_held(key)) {
		view->holder[0] = holder_now();
		view->holder[0].nodes = view->holders = 1;
		view->node[0].left_ms = view->holder[0].left_ms;
	}
	view->state = view->node[0].state = view->holder[0].state;
}

static enum status
look(struct backend *backend, const struct look_args *args, struct record *record, struct err *err)
{
	for (int i = 0; i < args->count; i++)
		see(record[i].key, &record[i]);
	return ST_OK;
}

static enum status
list(struct backend *backend, const char *pattern, const struct look_args *args, struct names *names, struct err *err)
{
	if (store->memory.held)
		(void)names_add(names, store->key);
	return ST_OK;
}

static enum status
break_holder(struct backend *backend, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	memcpy(store->broken.token, args->holder->token, sizeof(store->broken.token));
	(void)snprintf(store->broken.owner, sizeof(store->broken.owner), "%s", args->by);
	memory_break((struct memory *)backend);
	*ownership = OWNED;
	return ST_OK;
}

/* The answer to the first request is that it is held, to the next one that no server answers; then it has ended. */
static enum status
ask(struct backend *backend, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	*ownership = OWNED_STILL;
	if (++store->asked == 2)
		return err_set(err, ST_NO_QUORUM, "no server answers");
	store->memory.held = store->asked < 2;
	return store->asked < 2 ? ST_OK : ST_NO;
}

static void
close_nothing(struct backend *backend)
{
}

static const struct service memory_service;

static enum status
open_memory(const struct service_config *config, struct backend **backend, struct err *err)
{
	store->node_timeout_ms = config->node_timeout_ms;
	store->replicas_timeout_ms = config->replicas_timeout_ms;
	store->memory.base.service = &memory_service;
	*backend = &store->memory.base;
	return ST_OK;
}

static const struct service memory_service = { .name = "Memory",
	.forms = "memory:",
	.default_url = "memory:",
	.check_url = check_url,
	.token_valid = is_token,
	.token_length = TOKEN_SIZE - 1,
	.why_single = "there is only one",
	.why_no_replicas = "it has none",
	.fixed_ttl = true,
	.open = open_memory,
	.acquire = acquire,
	.renew = renew,
	.alert_fd = memory_alert_fd,
	.alerted = memory_alerted,
	.release = release,
	.look = look,
	.list = list,
	.break_holder = break_holder,
	.ask = ask,
	.close = close_nothing };
const struct service *const services[] = { &memory_service, NULL };

/* Make it ready.  False: there is no memory. */
static inline bool
store_open(void)
{
	store = mmap(NULL, sizeof(*store), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (store == MAP_FAILED)
		return false;
	memory_open(&store->memory, LONGEST_MS);
	store->test = getpid();
	return true;
}

#endif
