/* SPDX-License-Identifier: MIT */
#include "redis/route.h"

#include "tap.h"

static enum redirection
redirect(struct route *r, const char *text, int from, int *place)
{
	struct parser *parser = parser_new();
	enum redirection where = GO_NOWHERE;
	struct reply *reply;

	parser_feed(parser, text, strlen(text));
	reply = parser_next(parser);
	if (each(reply != NULL, "a reply: %s", text))
		where = route_redirection(r, reply, from, place);
	reply_free(reply);
	parser_free(parser);
	return where;
}

int
main(void)
{
	struct url url, target;
	struct route r;
	struct err err;
	int place = NOWHERE;

	each(url_parse("redis+cluster://one.test:7001,two.test:7002", &url, &err) == ST_OK && route_open(&r, &url),
	    "a Cluster");
	ok(redirect(&r, "-MOVED 17 three.test:7003\r\n", 1, &place) == GO_BY_SLOT, "MOVED");
	route_url(&r, route_target(&r, 17, 0), &target);
	is_str(target.name, "three.test:7003", "to where it says");
	ok(redirect(&r, "-MOVED 18 :7003\r\n", 1, &place) == GO_BY_SLOT, "MOVED without a host");
	route_url(&r, route_target(&r, 18, 0), &target);
	is_str(target.name, "two.test:7003", "is the host of the server that says so, not that of the guide");
	ok(redirect(&r, "-ASK 18 ?:7004\r\n", 1, &place) == GO_ASKING, "ASK likewise");
	route_url(&r, place, &target);
	is_str(target.name, "two.test:7004", "of a host that isn't known");
	ok(redirect(&r, "-MOVED 19 three.test\r\n", 1, &place) == GO_NOWHERE, "junk");
	route_close(&r);
	url_free(&url);
	return tap_end();
}
