/* SPDX-License-Identifier: MIT */
/*
 * One command to a Redis server, for the tests, which send thousands: redis-cli itself takes 4 ms of a processor to start.
 *
 *	rcli SOCKET WORD...
 *
 * The reply is printed as by redis-cli where its output is no terminal.  The exit status is 1 if there is none.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>

static void
print(const redisReply *r, const char *end)
{
	if (r->type == REDIS_REPLY_INTEGER)
		printf("%lld", r->integer);
	else if (r->type == REDIS_REPLY_ARRAY)
		for (size_t i = 0; i < r->elements; i++)
			print(r->element[i], i + 1 < r->elements ? "\n" : "");
	else if (r->type != REDIS_REPLY_NIL)
		fwrite(r->str, 1, r->len, stdout);
	fputs(r->type == REDIS_REPLY_ERROR ? "\n" : "", stdout);
	fputs(end, stdout);
}

int
main(int argc, char **argv)
{
	redisContext *const c = argc > 2 ? redisConnectUnix(argv[1]) : NULL;
	void *const words = argv + 2;
	redisReply *reply = NULL;

	if (c != NULL && c->err == 0)
		reply = redisCommandArgv(c, argc - 2, words, NULL);
	if (reply == NULL) {
		fprintf(stderr, "rcli: %s\n", c == NULL ? "usage: rcli SOCKET WORD..." : c->errstr);
		return 1;
	}
	/* Some commands have texts of lines: these are not ended once more. */
	print(reply,
	    reply->type == REDIS_REPLY_STRING && reply->len > 0 && reply->str[reply->len - 1] == '\n' ? "" : "\n");
	freeReplyObject(reply);
	redisFree(c);
	return 0;
}
