/* SPDX-License-Identifier: MIT */
#include "tap.h"
#include "zk/backend.h"

TEST(errors)
{
	static const struct {
		enum zk_code code;
		int servers;
		const char *reason;
		enum status status;
		const char *text;
	} cases[] = {
		{ ZK_INTERRUPTED, 1, "slow", ST_INTERRUPTED, "interrupted" },
		{ ZK_LOCAL, 1, "no room", ST_SYSTEM, "no room" },
		{ ZK_TIMEOUT, 1, "slow", ST_NO_QUORUM, "a:1: slow" },
		{ ZK_CONNECTION_LOSS, 2, "cut", ST_NO_QUORUM, "no server answers; the last: b:2: cut" },
		{ ZK_CONNECTION_LOSS, 2, "", ST_NO_QUORUM, "b:2: it failed with error -4 of ZooKeeper" },
		{ ZK_REFUSED, 1, "a certificate", ST_DENIED, "a:1: a certificate" },
		{ ZK_NO_AUTH, 1, "", ST_DENIED, "a:1: its ACL gives us no permission" },
		{ ZK_FORBIDDEN, 1, "", ST_DENIED, "a:1: its ACL does not let us create" },
		{ ZK_AUTH_FAILED, 1, "", ST_DENIED, "a:1: it does not accept our user" },
		{ ZK_INVALID_ACL, 1, "", ST_DENIED, "a:1: it does not know the ACL" },
		{ ZK_SASL_REQUIRED, 1, "", ST_DENIED, "a:1: it wants its clients to authenticate" },
		{ ZK_EXPIRED, 1, "", ST_NO_QUORUM, "a:1: the session expired" },
		{ ZK_MOVED, 1, "", ST_NO_QUORUM, "a:1: another process uses the session" },
		{ ZK_NO_NODE, 1, "", ST_NO_QUORUM, "a:1: the node of the lock was removed" },
		{ ZK_NOT_READ_ONLY, 1, "", ST_NO_QUORUM, "a:1: this server is cut off" },
		{ ZK_LOCAL_SESSION, 1, "", ST_NO_QUORUM, "a:1: the ensemble makes local sessions" },
		{ ZK_THROTTLED, 1, "", ST_NO_QUORUM, "a:1: it is overloaded" },
		{ -99, 1, "", ST_NO_QUORUM, "a:1: it failed with error -99 of ZooKeeper" },
	};
	static struct zk_backend z;
	struct err err;

	is_int(zk_url_parse("zk://a:1,b:2", &z.url, &err), ST_OK, "a URL");
	for (size_t i = 0; i < COUNT(cases); i++) {
		z.url.servers = cases[i].servers;
		z.session.tried.server = cases[i].servers - 1;
		reason_set(&z.session.tried.reason, "%s", cases[i].reason);
		is_int(zk_error(&z, cases[i].code, &err), cases[i].status, "error %d", (int)cases[i].code);
		ok(strncmp(err.text, cases[i].text, strlen(cases[i].text)) == 0, "%s", err.text);
	}
}
