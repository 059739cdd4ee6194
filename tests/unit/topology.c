/* SPDX-License-Identifier: MIT */
#include "redis/topology.h"

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
redirect(struct topology *t, const char *text, int from, int *endpoint)
{
	struct reply *reply = read_reply(text);
	const enum redirection where = topology_redirect(t, reply, from, endpoint);

	reply_free(reply);
	return where;
}

static void
test_demoted(void)
{
	static const struct {
		const char *text;
		bool demoted;
	} replies[] = { { "-READONLY You can't write against a read only replica.\r\n", true },
		{ "-MASTERDOWN Link with MASTER is down\r\n", true }, { "-CLUSTERDOWN The cluster is down\r\n", true },
		{ "-LOADING Redis is loading the dataset in memory\r\n", true }, { "-MOVED 1 a.test:1\r\n", true },
		{ "-ASK 1 a.test:1\r\n", true }, { "-READ ONLY\r\n", false }, { "-OOM command not allowed\r\n", false },
		{ "+READONLY\r\n", false } };
	struct reply *reply;
	size_t i;

	for (i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		reply = read_reply(replies[i].text);
		each(topology_is_demoted(reply) == replies[i].demoted, "demoted: %s", replies[i].text);
		reply_free(reply);
	}
	each_ok("which errors say that a server is in charge no more");
}

int
main(void)
{
	struct url url, target;
	struct topology t;
	struct err err;
	int endpoint = NOWHERE;

	test_demoted();
	each(url_parse("redis+cluster://one.test:7001,two.test:7002", &url, &err) == ST_OK && topology_open(&t, &url),
	    "a Cluster");
	ok(redirect(&t, "-MOVED 17 three.test:7003\r\n", 1, &endpoint) == REDIRECT_MOVED, "MOVED");
	topology_url(&t, topology_find(&t, 17, 0), &target);
	is_str(target.name, "three.test:7003", "to where it says");
	ok(redirect(&t, "-MOVED 18 :7003\r\n", 1, &endpoint) == REDIRECT_MOVED, "MOVED without a host");
	topology_url(&t, topology_find(&t, 18, 0), &target);
	is_str(target.name, "two.test:7003", "is the host of the server that says so, not that of the source");
	ok(redirect(&t, "-ASK 18 ?:7004\r\n", 1, &endpoint) == REDIRECT_ASK, "ASK likewise");
	topology_url(&t, endpoint, &target);
	is_str(target.name, "two.test:7004", "of a host that isn't known");
	ok(redirect(&t, "-MOVED 19 three.test\r\n", 1, &endpoint) == REDIRECT_NONE, "junk");
	topology_close(&t);
	return tap_end();
}
