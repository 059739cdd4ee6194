/* SPDX-License-Identifier: MIT */
#include "zk/session.h"

#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

static struct zk_url url;
static const struct log silent = { .debug = NULL };
static struct session s;

TEST(pause)
{
	struct err err;
	enum zk_code code = ZK_TIMEOUT;
	unsigned int tries = 0;
	int64_t began = clock_now_us();
	int end[2];

	is_int(zk_url_parse("zk://a:1,b:2", &url, &err), ST_OK, "a URL");
	session_init(&s, &url, &silent);
	ok(session_pause(&s, &tries, &(struct wait){ CLOCK_NEVER, -1 }, &code), "another try");
	ok(clock_now_us() - began >= 10000 && tries == 1, "after a pause");
	for (int i = 0; i < 100; i++)
		each(!session_pause(&s, &tries, &(struct wait){ 0, -1 }, &code), "pause %d", i);
	each_ok("no other try behind the limit, however many there were");
	began = clock_now_us();
	(void)session_pause(&s, &tries, &(struct wait){ CLOCK_NEVER, -1 }, &code);
	ok(clock_now_us() - began >= 500000, "the longest pause");
	is_int(code, ZK_TIMEOUT, "the code stays");
	each(pipe(end) == 0 && write(end[1], "x", 1) == 1, "a pipe");
	ok(!session_pause(&s, &tries, &(struct wait){ CLOCK_NEVER, end[0] }, &code),
	    "no other try behind an interrupt");
	is_int(code, ZK_INTERRUPTED, "which the code says");
	session_free(&s);
}
