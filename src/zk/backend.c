/* SPDX-License-Identifier: MIT */
#include "zk/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/password.h"
#include "net/tls.h"

/* -- Errors ----------------------------------------------------------------- */

enum status
zk_error(const struct zk_backend *z, enum zk_code code, struct err *err)
{
	static const struct {
		enum zk_code code;
		enum status status;
		const char *sentence; /* NULL: the sentence of the session */
	} errors[] = {
		{ ZK_REFUSED, ST_DENIED, NULL },
		{ ZK_NO_AUTH, ST_DENIED,
		    "its ACL gives us no permission on the nodes of this lock; see ZOOKEEPER in dlock-nodes(7)" },
		{ ZK_FORBIDDEN, ST_DENIED,
		    "its ACL does not let us create the node of KEY, or one above it; is the chroot right?" },
		{ ZK_AUTH_FAILED, ST_DENIED, "it does not accept our user and password" },
		{ ZK_INVALID_ACL, ST_DENIED, "it does not know the ACL that dlock sets for a user with a password" },
		{ ZK_SASL_REQUIRED, ST_DENIED,
		    "it wants its clients to authenticate (enforce.auth): use a user with a password; dlock has no "
		    "SASL" },
		{ ZK_EXPIRED, ST_NO_QUORUM, "the session expired" },
		{ ZK_MOVED, ST_NO_QUORUM, "another process uses the session" },
		{ ZK_NO_NODE, ST_NO_QUORUM, "the node of the lock was removed meanwhile" },
		{ ZK_NOT_READ_ONLY, ST_NO_QUORUM, "this server is cut off from the ensemble, and may only read" },
		{ ZK_LOCAL_SESSION, ST_NO_QUORUM,
		    "the ensemble makes local sessions, which can hold no locks; see localSessionsUpgradingEnabled" },
		{ ZK_THROTTLED, ST_NO_QUORUM, "it is overloaded and throttles requests" },
	};
	const char *const reason = z->session.tried.reason.text;
	char server[ZK_SERVER_SIZE];
	size_t i = 0;

	if (code == ZK_INTERRUPTED)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	if (code == ZK_LOCAL)
		return err_set(err, ST_SYSTEM, "%s", reason);
	(void)zk_url_server(&z->url, z->session.tried.server, server);
	if (session_is_lost(code) && reason[0] != '\0')
		return err_set(err, ST_NO_QUORUM, "%s%s: %s", z->url.servers > 1 ? "no server answers; the last: " : "",
		    server, reason);
	while (i < sizeof(errors) / sizeof(errors[0]) && errors[i].code != code)
		i++;
	if (i == sizeof(errors) / sizeof(errors[0]))
		return err_set(err, ST_NO_QUORUM, "%s: it failed with error %d of ZooKeeper", server, (int)code);
	return err_set(err, errors[i].status, "%s: %s", server,
	    errors[i].sentence != NULL ? errors[i].sentence : reason);
}

/* -- Tokens ----------------------------------------------------------------- */

bool
zk_adopt(struct zk_backend *z, const struct lease *lease, struct err *err)
{
	struct session *const s = &z->session;
	struct entry *const e = &z->entry;
	struct zk_token token;

	if (!zk_token_read(lease->token, &token)) {
		(void)err_set(err, ST_USAGE, "this is not a ZooKeeper token");
		return false;
	}
	if (s->granted.id != token.session.id || memcmp(e->token.uuid, token.uuid, ZK_UUID_SIZE) != 0) {
		session_disconnect(s);
		s->granted = token.session;
		s->valid_until_us = s->created_us = 0;
		entry_init(e, s, lease->key, &token);
	}
	memcpy(e->token.hold, token.hold, sizeof(token.hold));
	e->added[0] = '\0';
	return true;
}

void
zk_fill_lease(struct zk_backend *z, const struct acquire_args *args, struct lease *lease)
{
	*lease = (struct lease){ .key = args->key,
		.owner = args->owner,
		.label = args->label,
		.ttl_ms = z->session.granted.length_ms,
		.sent_us = z->session.connected_us,
		.valid_until_us = z->session.valid_until_us,
		.fence = z->entry.fence,
		.nodes = 1,
		.granted = 1 };
	z->entry.token.session = z->session.granted;
	zk_token_write(&z->entry.token, lease->token);
}

/* -- Opening ---------------------------------------------------------------- */

static void
zk_close(struct backend *backend)
{
	struct zk_backend *z = (struct zk_backend *)backend;

	if (z == NULL)
		return;
	if (z->look.url != NULL)
		session_abandon(&z->look);
	session_free(&z->session);
	tls_close(z->tls);
	free(z);
}

static enum status
zk_open(const struct service_config *config, struct backend **backend, struct err *err)
{
	struct zk_backend *z = calloc(1, sizeof(*z));
	enum status status;
	int i;

	*backend = NULL;
	if (z == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	z->base.service = &zk_service;
	z->log = config->log;
	z->node_timeout_us = config->node_timeout_ms * 1000;
	status = zk_url_parse(config->url[0], &z->url, err);
	if (z->url.password[0] == '\0' && config->password->text[0] != '\0') {
		z->url.shared = config->password;
		(void)snprintf(z->url.password, sizeof(z->url.password), "%s", config->password->text);
	}
	if (status == ST_OK && z->url.user[0] != '\0' && z->url.password[0] == '\0')
		status = err_set(err, ST_USAGE,
		    "the user of %s has no password; use --password-file, --password-command or DLOCK_PASSWORD, or "
		    "remove the user",
		    z->url.name);
	if (status == ST_OK && z->url.secure)
		status = tls_open(config->tls, &z->tls, err);
	if (status != ST_OK) {
		free(z);
		return status;
	}
	z->base.tls = z->tls != NULL;
	for (i = 0; i < z->url.servers; i++)
		z->url.server[i].tls = z->tls;
	text_keep_secret(SECRET_PASSWORD, z->url.password, strlen(z->url.password));
	session_init(&z->session, &z->url, &z->log);
	z->session.timeout_us = z->node_timeout_us;
	*backend = &z->base;
	return ST_OK;
}

static enum status
check_url(const char *text, struct err *err)
{
	struct zk_url url;

	return zk_url_parse(text, &url, err);
}

static bool
is_token(const char *text)
{
	struct zk_token token;

	return zk_token_read(text, &token);
}

static bool
is_shared(const char *text)
{
	struct zk_token token;

	return zk_token_read(text, &token) && token.shared;
}

const struct service zk_service = {
	.name = "ZooKeeper",
	.forms = "zk://[user:password@]host[:port],...[/path], zks:// (TLS)",
	.has_url = zk_url_is,
	.check_url = check_url,
	.token_valid = is_token,
	.token_length = ZK_TOKEN_LENGTH,
	.token_shared = is_shared,
	.why_single = "a ZooKeeper ensemble is a quorum already, and cannot be combined with other nodes; name its "
		      "servers in one URL",
	.why_no_replicas = "a majority of its servers has every lock",
	.fixed_ttl = true,
	.slot_key = zk_slot_key,
	.open = zk_open,
	.acquire = zk_acquire,
	.renew = zk_renew,
	.alert_fd = zk_alert_fd,
	.alerted = zk_alerted,
	.release = zk_release,
	.look = zk_look,
	.list = zk_list,
	.break_holder = zk_break,
	.ask = zk_ask,
	.probe = zk_probe,
	.doctor = zk_doctor,
	.close = zk_close,
};
