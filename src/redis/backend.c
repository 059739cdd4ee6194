/* SPDX-License-Identifier: MIT */
#include "redis/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "net/password.h"
#include "net/tls.h"
#include "redis/operations.h"
#include "redis/url.h"

static void
redis_close(struct backend *backend)
{
	struct redis_backend *s = (struct redis_backend *)backend;

	if (s == NULL)
		return;
	nodes_close(&s->nodes);
	tls_close(s->tls);
	free(s->renewal);
	free(s);
}

/* Are they the same server by name?  Databases of one server are not separate nodes. */
static bool
is_same(const struct url *a, const struct url *b)
{
	if (a->kind != URL_SERVER || b->kind != URL_SERVER)
		return strcmp(a->name, b->name) == 0;
	return strcmp(a->endpoint.host, b->endpoint.host) == 0 && strcmp(a->endpoint.port, b->endpoint.port) == 0 &&
	    strcmp(a->endpoint.path, b->endpoint.path) == 0;
}

static enum status
add_node(struct redis_backend *s, const struct service_config *config, struct err *err)
{
	struct nodes *const f = &s->nodes;
	struct node_options options = { &f->loop, &f->log, f->count, &f->unresponsive[f->count] };
	enum status status;
	struct url url;
	int i;

	status = url_parse(config->url[f->count], &url, err);
	if (status == ST_OK && url.secure && s->tls == NULL)
		status = tls_open(config->tls, &s->tls, err);
	s->base.tls = s->tls != NULL;
	if (status != ST_OK)
		return status;
	for (i = 0; i < f->count; i++) {
		if (is_same(node_url(f->node[i]), &url))
			return err_set(err, ST_USAGE,
			    "nodes %s and %s are the same server; a quorum needs independent nodes",
			    node_name(f->node[i]), url.name);
	}
	if (url.password[0] == '\0' && config->password->text[0] != '\0')
		url.shared = config->password;
	if (url.user[0] != '\0' && url.password[0] == '\0' && url.shared == NULL)
		return err_set(err, ST_USAGE,
		    "the user of %s has no password; use --password-file, --password-command or DLOCK_PASSWORD, or "
		    "remove the user",
		    url.name);
	text_keep_secret(SECRET_PASSWORD, url.password, strlen(url.password));
	url.sentinel_user = config->sentinel_user != NULL ? config->sentinel_user : "";
	url.sentinel_password = config->sentinel_password;
	url.endpoint.tls = url.secure ? s->tls : NULL;
	url.replicas = config->replicas;
	url.replicas_ms = config->replicas_timeout_ms;
	url.node_timeout_us = f->node_timeout_us;
	f->node[f->count] = node_open(&url, &options);
	if (f->node[f->count] == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	f->count++;
	return ST_OK;
}

static enum status
redis_open(const struct service_config *config, struct backend **backend, struct err *err)
{
	struct redis_backend *s = calloc(1, sizeof(*s));
	enum status status = ST_OK;
	int i;

	*backend = NULL;
	if (s == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	s->base.service = &redis_service;
	s->nodes.node_timeout_us = config->node_timeout_ms * 1000;
	s->nodes.log = config->log;
	for (i = 0; i < config->nodes && status == ST_OK; i++)
		status = add_node(s, config, err);
	if (status != ST_OK) {
		redis_close(&s->base);
		return status;
	}
	*backend = &s->base;
	return ST_OK;
}

static enum status
check_url(const char *text, struct err *err)
{
	struct url url;

	return url_parse(text, &url, err);
}

const struct service redis_service = {
	.name = "Redis",
	.forms =
	    "redis://[user:password@]host[:port][/db], rediss:// (TLS), unix:///path[?db=N], /path, host, host:port, "
	    "redis+sentinel://host[:port],.../service[/db], redis+cluster://host[:port],...",
	.default_url = "redis://127.0.0.1:6379",
	.password_variable = "REDISCLI_AUTH",
	.check_url = check_url,
	.token_valid = hold_valid,
	.token_length = TOKEN_LENGTH,
	.token_shared = token_shared,
	.guards = true,
	.keeps_history = true,
	.slot_key = keys_of_slot,
	.open = redis_open,
	.acquire = redis_acquire,
	.renew = redis_renew,
	.heal = redis_heal,
	.release = redis_release,
	.look = redis_look,
	.list = redis_list,
	.break_holder = redis_break,
	.ask = redis_ask,
	.probe = redis_probe,
	.doctor = redis_doctor,
	.close = redis_close,
};
