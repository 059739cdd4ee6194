/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_REDIS_REPLY_H
#define DLOCK_REDIS_REPLY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Parser for the Redis protocol, with limits on the size of replies.  Its implementation is the only file that uses
 * hiredis.
 */
struct reply;  /* opaque */
struct parser; /* opaque: parser for a stream of replies */

/* NULL: out of memory.  parser_free(NULL) does nothing. */
struct parser *parser_new(void);
void parser_free(struct parser *);

/* Add received bytes. */
void parser_feed(struct parser *, const char *bytes, size_t length);

/*
 * The next reply, to be freed by the caller.  NULL if it is not complete yet, or if parser_failure() says why the
 * stream has ended: it is not that of a Redis server, or memory is lacking.  The rest of the stream is lost then.
 */
struct reply *parser_next(struct parser *);
const struct failure *parser_failure(const struct parser *);

/* Access to a reply.  A value of another kind, or none, reads as -1, 0 or "". */
enum reply_kind {
	REPLY_NIL,
	REPLY_ERROR,
	REPLY_INTEGER,
	REPLY_TEXT,
	REPLY_LIST
};
enum reply_kind reply_kind(const struct reply *);
const char *reply_text(const struct reply *); /* also the text of an error; ends at the first NUL */
int64_t reply_integer(const struct reply *);
size_t reply_items(const struct reply *);
const struct reply *reply_item(const struct reply *, size_t index);
/* Is it an error whose text begins with one of these codes?  NULL ends the list. */
bool reply_is_error(const struct reply *, const char *const *codes);
void reply_free(struct reply *);

#endif
