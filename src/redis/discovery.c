/* SPDX-License-Identifier: MIT */
#include "redis/discovery.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"

#define PATIENCE_US 200000 /* for one source, if there are others left */
#define LEAST_US 10000
#define SHARES_MAX 4 /* divisor of the time left: a Cluster has too many sources for equal shares */

static void
finish(struct discovery *d, bool found)
{
	d->patience.at_us = CLOCK_NEVER;
	client_close(d->client);
	d->client = NULL;
	d->finished(d->context, found);
}

/* -- Queries ---------------------------------------------------------------- */

/* The timeout of the current source: its share of the time left.  The last source gets all of it. */
static int64_t
patience_us(const struct discovery *d, int64_t now_us)
{
	const int64_t left = d->end_us - now_us;
	const int64_t share = left / (d->left + 1 < SHARES_MAX ? d->left + 1 : SHARES_MAX);

	if (share < LEAST_US)
		return LEAST_US;
	return d->left > 0 && share > PATIENCE_US ? PATIENCE_US : share;
}

static void
disconnected(void *context, struct pending *first)
{
	struct discovery *const d = context;

	loop_post(d->loop, &first->task);
}

/* Query the current source. */
static void
ask(struct discovery *d)
{
	const int64_t now = clock_now_us();
	struct command question;
	struct url url;

	topology_url(d->topology, topology_source(d->topology), &url);
	url.db = 0;
	if (!d->with_login)
		url.user[0] = url.password[0] = '\0';
	d->client = client_open(d->loop, &url, disconnected, d);
	if (d->client == NULL) {
		d->failure = LOCAL;
		reason_set(&d->reason, OUT_OF_MEMORY);
		d->left = 0;
		d->patience.at_us = 0;
		return;
	}
	topology_question(d->topology, &question);
	client_send_command(d->client, &d->question, &question);
	d->patience.at_us = now + patience_us(d, now);
}

static void
ask_next(struct discovery *d)
{
	client_close(d->client);
	d->client = NULL;
	if (d->left-- <= 0) {
		finish(d, false);
		return;
	}
	/* Sentinels have their own logins, and mostly none. */
	d->with_login = d->topology->url->kind != URL_SENTINEL;
	ask(d);
}

/* -- Replies ---------------------------------------------------------------- */

/*
 * The source could not answer: go on to the next one.  An error that a source reported takes precedence over a
 * connection failure of another one.
 */
static void
try_next(struct discovery *d, const struct reason *why, enum failure failure, bool answered)
{
	if (answered || !d->answered) {
		d->reason = *why;
		d->answered = answered;
		if (d->failure != DENIED)
			d->failure = failure;
	}
	topology_next_source(d->topology);
	ask_next(d);
}

static void
take_reply(struct discovery *d, const struct reply *reply)
{
	struct reason why;
	enum failure failure = FAILED;

	if (reply_kind(reply) == REPLY_ERROR && strstr(reply_text(reply), "NOAUTH") != NULL) {
		failure = DENIED;
		if (!d->with_login && d->topology->url->password[0] != '\0') {
			d->with_login = true;
			client_close(d->client);
			ask(d);
			return;
		}
	}
	if (topology_learn(d->topology, reply, &why)) {
		finish(d, true);
		return;
	}
	topology_add_context(d->topology, topology_source(d->topology), &why);
	try_next(d, &why, failure, !topology_is_early(reply));
}

static void
answered(struct task *task)
{
	struct discovery *const d = ((struct pending *)task)->owner;
	struct reply *const reply = d->question.reply;

	if (d->client == NULL)
		reply_free(reply);
	else if (reply == NULL)
		try_next(d, &d->question.reason, d->question.failure, d->question.failure == DENIED);
	else {
		take_reply(d, reply);
		reply_free(reply);
	}
}

static void
out_of_patience(void *context, int64_t now_us)
{
	struct discovery *const d = context;
	struct reason why;

	(void)now_us;
	if (d->client == NULL) {
		finish(d, false);
		return;
	}
	reason_set(&why, "%s", client_waits_for(d->client));
	topology_add_context(d->topology, topology_source(d->topology), &why);
	try_next(d, &why, FAILED, false);
}

/* -- Interface -------------------------------------------------------------- */

void
discovery_init(struct discovery *d, struct topology *topology, struct loop *loop)
{
	memset(d, 0, sizeof(*d));
	d->loop = loop;
	d->topology = topology;
	d->question.task.run = answered;
	d->question.owner = d;
	d->patience = (struct watch){ .fd = -1, .at_us = CLOCK_NEVER, .ready = out_of_patience, .context = d };
	loop_add(loop, &d->patience);
}

void
discovery_start(struct discovery *d, int64_t most_us)
{
	d->left = topology_sources(d->topology);
	d->answered = false;
	d->failure = FAILED;
	d->end_us = clock_add(clock_now_us(), most_us);
	ask_next(d);
}

bool
discovery_is_running(const struct discovery *d)
{
	return d->client != NULL || d->patience.at_us != CLOCK_NEVER;
}

void
discovery_stop(struct discovery *d)
{
	if (!discovery_is_running(d))
		return;
	client_close(d->client);
	d->client = NULL;
	d->patience.at_us = CLOCK_NEVER;
	topology_next_source(d->topology);
}

void
discovery_close(struct discovery *d)
{
	client_close(d->client);
	loop_cancel(d->loop, &d->question.task);
	d->client = NULL;
	loop_remove(d->loop, &d->patience);
}
