/* SPDX-License-Identifier: MIT */
#include "redis/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/*
 * The reply parser.  The replies and errors don't depend on how the stream is split into pieces.  A reply that is
 * written back is parsed as the same reply.  No reply exceeds the limits.
 */
enum {
	DUMP_MAX = 1 << 18,
	DEPTH_MAX = 16
};

struct dump {
	char bytes[DUMP_MAX];
	size_t length;
};

static void
add(struct dump *d, const char *bytes, size_t length)
{
	must(d->length + length < sizeof(d->bytes), "replies without an end");
	memcpy(d->bytes + d->length, bytes, length);
	d->length += length;
}

static void
add_head(struct dump *d, char kind, int64_t number)
{
	char head[32];

	add(d, head, (size_t)snprintf(head, sizeof(head), "%c%" PRId64 "\r\n", kind, number));
}

/* Access to a reply by the wrong type must return the defaults. */
static void
check_absent(const struct reply *r, enum reply_kind kind)
{
	must(kind == REPLY_INTEGER || reply_integer(r) == -1, "a number in kind %d", (int)kind);
	must(kind == REPLY_TEXT || kind == REPLY_ERROR || reply_text(r)[0] == '\0', "a text in kind %d", (int)kind);
	must(kind == REPLY_LIST || reply_items(r) == 0, "a list in kind %d", (int)kind);
	must(reply_item(r, reply_items(r)) == NULL && reply_item(r, SIZE_MAX) == NULL, "an item behind the last one");
}

/* Write a reply as a server would; the length of a text is the known length. */
static void
write_reply(struct dump *d, const struct reply *r, int depth)
{
	const enum reply_kind kind = reply_kind(r);
	size_t i;

	must(depth < DEPTH_MAX, "lists too deep");
	check_absent(r, kind);
	switch (kind) {
	case REPLY_NIL:
		add_head(d, '$', -1);
		break;
	case REPLY_INTEGER:
		add_head(d, ':', reply_integer(r));
		break;
	case REPLY_ERROR:
		add(d, "-", 1);
		add(d, reply_text(r), strcspn(reply_text(r), "\r\n"));
		add(d, "\r\n", 2);
		break;
	case REPLY_TEXT:
		add_head(d, '$', (int64_t)strlen(reply_text(r)));
		add(d, reply_text(r), strlen(reply_text(r)));
		add(d, "\r\n", 2);
		break;
	case REPLY_LIST:
		add_head(d, '*', (int64_t)reply_items(r));
		for (i = 0; i < reply_items(r); i++)
			write_reply(d, reply_item(r, i), depth + 1);
		break;
	}
}

static void
write_all(struct dump *d, struct parser *p)
{
	struct reply *r;

	while ((r = parser_next(p)) != NULL) {
		write_reply(d, r, 0);
		reply_free(r);
	}
}

/* Feed a stream in pieces of the lengths in `pieces`, repeatedly; without lengths, feed all at once. */
static void
read_stream(struct dump *d, char fault[256], const char *bytes, size_t length, const uint8_t *pieces, size_t count)
{
	struct parser *p = parser_new();
	size_t at, n, i = 0;

	must(p != NULL, "no memory");
	d->length = 0;
	for (at = 0; at < length; at += n, i++) {
		n = count == 0 ? length : 1 + pieces[i % count] % 64u;
		n = n < length - at ? n : length - at;
		parser_feed(p, bytes + at, n);
		write_all(d, p);
	}
	(void)snprintf(fault, 256, "%s", parser_fault(p) != NULL ? parser_fault(p) : "");
	must(fault[0] == '\0' || is_sentence(fault), "%s", fault);
	if (fault[0] != '\0') {
		parser_feed(p, "+OK\r\n", 5);
		must(parser_next(p) == NULL && parser_fault(p) != NULL, "a stream that was broken speaks again");
	}
	parser_free(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static struct dump whole, cut, again;
	char fault[256], cut_fault[256];
	const size_t count = length > 0 ? bytes[0] % 8u : 0;
	const char *stream;

	if (length < 1 + count)
		return 0;
	stream = (const char *)bytes + 1 + count;
	length -= 1 + count;
	read_stream(&whole, fault, stream, length, NULL, 0);
	read_stream(&cut, cut_fault, stream, length, bytes + 1, count == 0 ? 1 : count);
	must(strcmp(fault, cut_fault) == 0, "in one piece '%s', in many '%s'", fault, cut_fault);
	must(whole.length == cut.length && memcmp(whole.bytes, cut.bytes, cut.length) == 0,
	    "other replies in many pieces");
	read_stream(&again, fault, whole.bytes, whole.length, NULL, 0);
	must(fault[0] == '\0' && whole.length == again.length && memcmp(whole.bytes, again.bytes, again.length) == 0,
	    "written down and read again it is another reply");
	return 0;
}
