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

/* -- The table -------------------------------------------------------------- */

const struct service services[] = {
	{ .name = "ZooKeeper",
	    .has_url = zk_url_is,
	    .check_url = zk_check_url,
	    .token_valid = zk_token_valid,
	    .token_length = ZK_TOKEN_LENGTH,
	    .fixed_ttl = true,
	    .judge = checks_judge_zk,
	    .open = zk_open },
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
	    .open = redis_open },
};

const size_t service_count = sizeof(services) / sizeof(services[0]);
