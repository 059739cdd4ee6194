/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_REPLY_H
#define DLOCK_REDIS_REPLY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What Redis speaks: bytes to replies, within limits.  The only file that knows hiredis.
 */
struct reply;  /* opaque */
struct parser; /* opaque: a stream of bytes on its way to be replies */

/* NULL if there is no memory.  parser_free(NULL) does nothing. */
struct parser *parser_new(void);
void parser_free(struct parser *);

/* Add bytes of the stream. */
void parser_feed(struct parser *, const char *bytes, size_t length);

/*
 * The next reply, the caller's now; NULL if it isn't there yet, or if the stream is none of a Redis server: then
 * parser_fault() says why, else it returns NULL.  Where there was no memory for it, the rest of the stream is lost.
 */
struct reply *parser_next(struct parser *);
const char *parser_fault(const struct parser *);
bool parser_lacks_memory(const struct parser *);

/* Reading a reply.  Anything that is not what is asked for reads as absent: -1, 0, "". */
enum reply_kind {
	REPLY_ERROR,
	REPLY_INTEGER,
	REPLY_TEXT,
	REPLY_LIST,
	REPLY_NIL
};
enum reply_kind reply_kind(const struct reply *);
const char *reply_text(const struct reply *); /* also an error's text; ends at the first NUL */
int64_t reply_integer(const struct reply *);
size_t reply_items(const struct reply *);
const struct reply *reply_item(const struct reply *, size_t index);
void reply_free(struct reply *);

#endif
