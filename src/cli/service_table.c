/* SPDX-License-Identifier: MIT */
#include "cli/services.h"

#include "cli/checks.h"
#include "redis/backend.h"
#include "redis/url.h"
#include "zk/backend.h"
#include "zk/token.h"
#include "zk/url.h"

/* -- Redis ------------------------------------------------------------------ */

/* Whatever no other service takes. */
static bool
redis_has_url(const char *url)
{
	return !zk_url_is(url);
}

static enum status
redis_check_url(const char *text, struct err *err)
{
	struct url url;
	const enum status status = url_parse(text, &url, err);

	if (status == ST_OK)
		url_free(&url);
	return status;
}

static enum status
open_redis(const struct service_config *c, struct backend **backend, struct err *err)
{
	struct redis_config config = { .nodes = c->nodes,
		.password = c->password,
		.tls = c->tls,
		.node_timeout_ms = c->node_timeout_ms,
		.replicas = c->replicas,
		.replicas_timeout_ms = c->replicas_timeout_ms,
		.log = c->log };
	int i;

	for (i = 0; i < c->nodes; i++)
		config.url[i] = c->url[i];
	return redis_open(&config, backend, err);
}

/* -- ZooKeeper -------------------------------------------------------------- */

static enum status
zk_check_url(const char *text, struct err *err)
{
	struct zk_url url;

	return zk_url_parse(text, &url, err);
}

static bool
zk_token_valid(const char *text)
{
	struct zk_token token;

	return zk_token_read(text, &token);
}

static enum status
open_zk(const struct service_config *c, struct backend **backend, struct err *err)
{
	const struct zk_config config = { .url = c->url[0],
		.password = c->password,
		.tls = c->tls,
		.node_timeout_ms = c->node_timeout_ms,
		.log = c->log };

	return zk_open(&config, backend, err);
}

/* -- The table -------------------------------------------------------------- */

const struct service services[] = {
	{ .name = "ZooKeeper",
	    .has_url = zk_url_is,
	    .check_url = zk_check_url,
	    .token_valid = zk_token_valid,
	    .token_length = ZK_TOKEN_LENGTH,
	    .fixed_ttl = true,
	    .judge = checks_judge_zk,
	    .open = open_zk },
	{ .name = "Redis",
	    .has_url = redis_has_url,
	    .check_url = redis_check_url,
	    .token_valid = hold_valid,
	    .token_length = TOKEN_LENGTH,
	    .several = true,
	    .replicas = true,
	    .guards = true,
	    .history = true,
	    .judge = checks_judge,
	    .open = open_redis },
};

const size_t service_count = sizeof(services) / sizeof(services[0]);
