/* SPDX-License-Identifier: MIT */
#include "redis/route.h"

#include "tap.h"

static struct reply *
read_reply(const char *text)
{
	struct parser *parser = parser_new();
	struct reply *reply;

	parser_feed(parser, text, strlen(text));
	reply = parser_next(parser);
	each(reply != NULL, "a reply: %s", text);
	parser_free(parser);
	return reply;
}

static enum redirection
redirect(struct route *r, const char *text, int *asking)
{
	struct reply *reply = read_reply(text);
	enum redirection where;

	*asking = NOWHERE;
	where = route_redirect(r, reply, asking);

	reply_free(reply);
	return where;
}

TEST(demoted)
{
	static const struct {
		const char *text;
		bool demoted, early;
	} replies[] = { { "-READONLY You can't write against a read only replica.\r\n", true, false },
		{ "-MASTERDOWN Link with MASTER is down\r\n", true, false },
		{ "-CLUSTERDOWN The cluster is down\r\n", true, true },
		{ "-LOADING Redis is loading the dataset in memory\r\n", true, true },
		{ "-MOVED 1 a.test:1\r\n", true, false }, { "-ASK 1 a.test:1\r\n", true, false },
		{ "-READ ONLY\r\n", false, false }, { "-OOM command not allowed\r\n", false, false },
		{ "+READONLY\r\n", false, false }, { "-ERR Connection refused\r\n", false, true },
		{ "-ERR Connection reset by peer\r\n", false, true },
		{ "-ERR Connection timed out\r\n", false, true } };
	struct reply *reply;

	for (size_t i = 0; i < COUNT(replies); i++) {
		reply = read_reply(replies[i].text);
		each(route_is_demoted(reply) == replies[i].demoted, "demoted: %s", replies[i].text);
		each(route_is_early(reply) == replies[i].early, "early: %s", replies[i].text);
		reply_free(reply);
	}
	each_ok("which errors say that a server is in charge no more, or does not serve yet");
}

TEST(redirections)
{
	struct loop loop = { .watches = NULL };
	const struct route_owner owner = { .loop = &loop };
	struct url url, target;
	struct route r;
	struct err err;
	int asking;

	each(url_parse("redis+cluster://one.test:7001,two.test:7002", &url, &err) == ST_OK &&
		route_open(&r, &url, &owner),
	    "a Cluster");
	r.at = 1;
	ok(redirect(&r, "-MOVED 17 three.test:7003\r\n", &asking) == REDIRECT_NOW && asking == NOWHERE, "MOVED");
	route_url(&r, route_find(&r, 17, 0), &target);
	is_str(target.name, "three.test:7003", "to where it says");
	ok(redirect(&r, "-MOVED 18 :7003\r\n", &asking) == REDIRECT_NOW, "MOVED without a host");
	route_url(&r, route_find(&r, 18, 0), &target);
	is_str(target.name, "two.test:7003", "is the host of the server that says so, not that of the source");
	ok(redirect(&r, "-MOVED 19 ::1:7003\r\n", &asking) == REDIRECT_NOW, "MOVED to an IPv6 address");
	route_url(&r, route_find(&r, 19, 0), &target);
	is_str(target.name, "[::1]:7003", "which has colons of its own");
	ok(redirect(&r, "-ASK 18 ?:7004\r\n", &asking) == REDIRECT_NOW && asking != NOWHERE, "ASK likewise");
	route_url(&r, asking, &target);
	is_str(target.name, "two.test:7004", "of a host that isn't known");
	ok(route_find(&r, NO_SLOT, 0) == NOWHERE, "no redirection tells all servers of the Cluster");
	ok(redirect(&r, "-MOVED 19 three.test\r\n", &asking) == REDIRECT_NONE, "junk");
	ok(redirect(&r, "-ERR no\r\n", &asking) == REDIRECT_NONE, "another error");
	ok(redirect(&r, "-MOVED 16384 three.test:7003\r\n", &asking) == REDIRECT_NONE, "no such slot");
	ok(redirect(&r, "-MOVED 19 three.test:65536\r\n", &asking) == REDIRECT_NONE, "no such port");
	ok(redirect(&r, "-MOVED 19 three.test:0\r\n", &asking) == REDIRECT_NONE, "nor this one");
	ok(redirect(&r, "-ASK 19 three.test:0\r\n", &asking) == REDIRECT_NONE, "nor in ASK");
	route_close(&r);
}
