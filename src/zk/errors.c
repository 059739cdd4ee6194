/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "zk/operations.h"

static const struct {
	enum zk_code code;
	enum status status;
	const char *sentence;
} errors[] = {
	{ ZK_INTERRUPTED, ST_INTERRUPTED, "interrupted" },
	{ ZK_NO_AUTH, ST_DENIED,
	    "its ACL gives us no permission on the nodes of this lock; see ZOOKEEPER in dlock-nodes(7)" },
	{ ZK_FORBIDDEN, ST_DENIED,
	    "its ACL does not let us create the node of KEY, or one above it; is the chroot right?" },
	{ ZK_AUTH_FAILED, ST_DENIED, "it does not accept our user and password" },
	{ ZK_INVALID_ACL, ST_DENIED, "it does not know the ACL that dlock sets for a user with a password" },
	{ ZK_SASL_REQUIRED, ST_DENIED,
	    "it wants its clients to authenticate (enforce.auth): use a user with a password; dlock has no SASL" },
	{ ZK_EXPIRED, ST_NO_QUORUM, "the session expired" },
	{ ZK_MOVED, ST_NO_QUORUM, "another process uses the session" },
	{ ZK_NO_NODE, ST_NO_QUORUM, "the node of the lock was removed meanwhile" },
	{ ZK_NOT_READ_ONLY, ST_NO_QUORUM, "this server is cut off from the ensemble, and may only read" },
	{ ZK_LOCAL_SESSION, ST_NO_QUORUM,
	    "the ensemble makes local sessions, which can hold no locks; see localSessionsUpgradingEnabled" },
	{ ZK_THROTTLED, ST_NO_QUORUM, "it is overloaded and throttles requests" },
};

static const char *
sentence_of(enum zk_code code, enum status *status)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == code) {
			*status = errors[i].status;
			return errors[i].sentence;
		}
	}
	return NULL;
}

enum status
zk_error(const struct zk_backend *z, enum zk_code code, struct err *err)
{
	enum status status = ST_NO_QUORUM;
	const char *const sentence = sentence_of(code, &status), *const reason = z->session.reason.text;
	char server[300];

	if (code == ZK_INTERRUPTED)
		return err_set(err, status, "%s", sentence);
	if (code == ZK_LOCAL)
		return err_set(err, ST_SYSTEM, "%s", reason);
	if (code == ZK_REFUSED)
		return err_set(err, ST_DENIED, "%s", reason);
	if ((code == ZK_CONNECTION_LOSS || code == ZK_TIMEOUT) && reason[0] != '\0')
		return err_set(err, ST_NO_QUORUM, "%s%s", z->url.servers > 1 ? "no server answers; the last: " : "",
		    reason);
	(void)zk_url_server(&z->url, z->session.server, server, sizeof(server));
	if (sentence != NULL)
		return err_set(err, status, "%s: %s", server, sentence);
	return err_set(err, ST_NO_QUORUM, "%s: it failed with error %d of ZooKeeper", server, (int)code);
}

void
zk_log_answer(const struct zk_backend *z, const char *answer)
{
	char server[300];

	log_debug(&z->log, "%s: %s", zk_url_server(&z->url, z->session.server, server, sizeof(server)), answer);
}
