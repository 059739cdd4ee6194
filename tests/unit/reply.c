/* SPDX-License-Identifier: MIT */
#include "redis/reply.h"

#include "tap.h"

static void
feed(struct parser *p, const char *text)
{
	parser_feed(p, text, strlen(text));
}

/* Feed lists of `inner` numbers in a list of `outer`, until there is a reply or a fault. */
static struct reply *
feed_lists(struct parser *p, int outer, int inner)
{
	struct reply *reply = NULL;
	char head[32];

	(void)snprintf(head, sizeof(head), "*%d\r\n", outer);
	feed(p, head);
	(void)snprintf(head, sizeof(head), "*%d\r\n", inner);
	for (int i = 0; i < outer && reply == NULL && parser_failure(p)->kind == NO_FAILURE; i++) {
		feed(p, head);
		for (int j = 0; j < inner; j++)
			feed(p, ":1\r\n");
		reply = parser_next(p);
	}
	return reply;
}

static bool
says(const struct parser *p, const char *hint)
{
	return parser_failure(p)->kind == FAILED && strstr(parser_failure(p)->reason.text, hint) != NULL;
}

TEST(lists)
{
	struct parser *p = parser_new();
	struct reply *reply;

	if (p == NULL)
		abort();
	for (int i = 0; i < 3; i++) {
		reply = feed_lists(p, 16384, 15);
		ok(reply_items(reply) == 16384 && reply_items(reply_item(reply, 16383)) == 15,
		    "a Cluster of as many ranges as there are slots, time %d", i + 1);
		reply_free(reply);
	}
	ok(feed_lists(p, 4000, 4000) == NULL && says(p, "too large"), "lists of too many items in all");
	parser_free(p);
	p = parser_new();
	if (p == NULL)
		abort();
	feed(p, "*2000000000\r\n");
	ok(parser_next(p) == NULL && says(p, "too large"), "a list of too many items");
	parser_free(p);
}

/* Feed strings of a mebibyte each; how many it took until there was a reply or a fault. */
static int
feed_strings(struct parser *p, int most)
{
	static char mebibyte[1024 * 1024 + 1];
	struct reply *reply = NULL;
	char head[32];
	int i;

	memset(mebibyte, 'x', sizeof(mebibyte) - 1);
	(void)snprintf(head, sizeof(head), "*%d\r\n", most);
	feed(p, head);
	for (i = 0; i < most && reply == NULL && parser_failure(p)->kind == NO_FAILURE; i++) {
		feed(p, "$1048576\r\n");
		feed(p, mebibyte);
		feed(p, "\r\n");
		reply = parser_next(p);
	}
	reply_free(reply);
	return i;
}

TEST(bytes)
{
	struct parser *p = parser_new();

	if (p == NULL)
		abort();
	for (int i = 0; i < 10; i++)
		ok(feed_strings(p, 3) == 3 && parser_failure(p)->kind == NO_FAILURE, "three mebibytes, time %d", i + 1);
	ok(feed_strings(p, 100) < 20 && says(p, "does not end"), "a hundred, each of them whole");
	parser_free(p);
}

/* What is read does not depend on where the stream is cut, and a stream that broke stays broken. */
TEST(cuts)
{
	static const char stream[] = "*3\r\n:7\r\n$4\r\na\r\nb\r\n*2\r\n$-1\r\n-ERR no\r\n$x\r\n";
	struct parser *p;
	struct reply *reply;

	for (size_t cut = 0; cut < sizeof(stream); cut++) {
		p = parser_new();
		if (p == NULL)
			abort();
		parser_feed(p, stream, cut);
		reply = parser_next(p);
		parser_feed(p, stream + cut, sizeof(stream) - 1 - cut);
		if (reply == NULL)
			reply = parser_next(p);
		each(reply_items(reply) == 3 && reply_integer(reply_item(reply, 0)) == 7 &&
			strcmp(reply_text(reply_item(reply, 1)), "a\r\nb") == 0 &&
			reply_kind(reply_item(reply_item(reply, 2), 0)) == REPLY_NIL &&
			strcmp(reply_text(reply_item(reply_item(reply, 2), 1)), "ERR no") == 0,
		    "cut at %zu", cut);
		each(reply_integer(reply_item(reply, 1)) == -1 && reply_text(reply_item(reply, 0))[0] == '\0' &&
			reply_item(reply, 3) == NULL,
		    "no item is read as what it is not");
		reply_free(reply);
		each(parser_next(p) == NULL && parser_failure(p)->kind != NO_FAILURE, "junk behind it, cut at %zu",
		    cut);
		feed(p, "+OK\r\n");
		each(parser_next(p) == NULL && parser_failure(p)->kind != NO_FAILURE,
		    "a stream that broke stays broken");
		parser_free(p);
	}
	each_ok("a stream that is cut anywhere");
}
