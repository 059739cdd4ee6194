/* SPDX-License-Identifier: MIT */
#include "redis/topology.h"

#include "tap.h"

static enum redirection
redirect(struct topology *t, const char *text, int from, int *endpoint)
{
	struct parser *parser = parser_new();
	enum redirection where = REDIRECT_NONE;
	struct reply *reply;

	parser_feed(parser, text, strlen(text));
	reply = parser_next(parser);
	if (each(reply != NULL, "a reply: %s", text))
		where = topology_redirect(t, reply, from, endpoint);
	reply_free(reply);
	parser_free(parser);
	return where;
}

int
main(void)
{
	struct url url, target;
	struct topology t;
	struct err err;
	int endpoint = NOWHERE;

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
	url_free(&url);
	return tap_end();
}
