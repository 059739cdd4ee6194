/* SPDX-License-Identifier: MIT */
#include "redis/cursor.h"

#include "tap.h"

/* How many answers are taken whose cursors go round in a circle of so many after a lead; at most `most`. */
static int
answers_of_circle(int lead, int circle, int most)
{
	struct cursor c;
	char text[CURSOR_SIZE];
	int i, n = 0;

	cursor_start(&c);
	for (i = 0; i < most; i++) {
		(void)snprintf(text, sizeof(text), "%d", i < lead ? i + 1000000 : (i - lead) % circle + 1);
		if (!cursor_note(&c, text, 0))
			break;
		n++;
	}
	return n;
}

/* The same for cursors that are ever new, each with so many names. */
static long
answers_of_line(size_t names, long most)
{
	struct cursor c;
	char text[CURSOR_SIZE] = "7000000000";
	long n;
	int at;

	cursor_start(&c);
	for (n = 0; n < most && cursor_note(&c, text, names); n++) {
		for (at = 9; text[at] == '9'; at--)
			text[at] = '0';
		text[at]++;
	}
	return n;
}

int
main(void)
{
	struct cursor c;
	long answers;

	cursor_start(&c);
	ok(cursor_at_end(&c), "the first cursor is that of the end");
	ok(cursor_note(&c, "17", 5) && !cursor_at_end(&c), "one more");
	is_str(c.text, "17", "the next cursor is stored");
	ok(cursor_note(&c, "0", 5) && cursor_at_end(&c), "the end");
	cursor_next_server(&c);
	ok(cursor_note(&c, "17", 5), "the cursors of another server are its own");
	is_int((int64_t)c.names, 15, "the names of all are counted");
	ok(answers_of_circle(0, 1, 100) <= 2, "a SCAN that repeats one cursor is aborted");
	ok(answers_of_circle(50, 7, 1000) < 200, "a SCAN whose cursors repeat is aborted");
	ok(answers_of_circle(0, 1000, 100000) < 4100, "a SCAN whose cursors repeat after many is aborted");
	answers = answers_of_line(0, 20000000);
	ok(answers >= 4300000, "a SCAN may have as many replies as all keys of a Redis take");
	ok(answers < 10000000, "a SCAN of new cursors without names is aborted");
	is_int(answers_of_line(1000, 20000000), 10000, "a SCAN of too many names is aborted");
	return tap_end();
}
