/* SPDX-License-Identifier: MIT */
#include "redis/reply.h"

#include <stdlib.h>
#include <string.h>

/* Functions in the headers of hiredis would cause warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <hiredis.h>
#pragma GCC diagnostic pop

#define REPLY_BYTES_MAX (16u * 1024 * 1024) /* a longer incomplete reply is not from Redis */
#define REPLY_ITEMS_MAX (512u * 1024)	    /* in all lists of one reply; CLUSTER SLOTS may return 16384 ranges */
#define TLS_ALERT 0x15			    /* first byte that a TLS server sends to a client without TLS */

struct parser {
	redisReader *reader;
	redisReplyObjectFunctions builders; /* those of hiredis */
	redisReplyObjectFunctions guarded;  /* the same with limits */
	bool any;			    /* a byte has been received */
	size_t bytes, items;		    /* of the current, incomplete reply */
	bool too_many;			    /* the reply has more items than allowed */
	struct failure failure;
};

/* -- The stream ------------------------------------------------------------- */

/* hiredis allocates a list with the length that the server announces, so limit it. */
#if HIREDIS_MAJOR >= 1
typedef size_t list_length;
#else
typedef int list_length;
#endif

static void *
create_list(const redisReadTask *task, list_length items)
{
	struct parser *p = task->privdata;

	p->too_many = (size_t)items > REPLY_ITEMS_MAX - p->items;
	if (p->too_many)
		return NULL;
	p->items += (size_t)items;
	return p->builders.createArray(task, items);
}

struct parser *
parser_new(void)
{
	struct parser *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->reader = redisReaderCreate();
	if (p->reader == NULL) {
		free(p);
		return NULL;
	}
	p->builders = p->guarded = *p->reader->fn;
	p->guarded.createArray = create_list;
	p->reader->fn = &p->guarded;
	p->reader->privdata = p;
	return p;
}

void
parser_free(struct parser *p)
{
	if (p == NULL)
		return;
	redisReaderFree(p->reader);
	free(p);
}

void
parser_feed(struct parser *p, const char *bytes, size_t length)
{
	if (!p->any && length > 0 && bytes[0] == TLS_ALERT)
		failure_set(&p->failure, FAILED, "this server speaks TLS; use rediss://");
	p->any = true;
	(void)redisReaderFeed(p->reader, bytes, length); /* parser_next() reports its failure */
	p->bytes += length;
}

struct reply *
parser_next(struct parser *p)
{
	const char *fault;
	void *reply = NULL;

	if (p->failure.kind != NO_FAILURE)
		return NULL;
	if (redisReaderGetReply(p->reader, &reply) == REDIS_OK && reply != NULL) {
		p->bytes = p->items = 0;
		return reply;
	}
	fault = p->too_many		 ? "its reply is too large"
	    : p->reader->err != 0	 ? p->reader->errstr
	    : p->bytes > REPLY_BYTES_MAX ? "its reply does not end"
					 : NULL;
	if (!p->too_many && p->reader->err == REDIS_ERR_OOM)
		failure_set(&p->failure, LOCAL, OUT_OF_MEMORY);
	else if (fault != NULL)
		failure_set(&p->failure, FAILED, "this is not a Redis server (%s)", fault);
	return NULL;
}

const struct failure *
parser_failure(const struct parser *p)
{
	return &p->failure;
}

/* -- Replies ---------------------------------------------------------------- */

struct reply {
	redisReply inside;
};

enum reply_kind
reply_kind(const struct reply *r)
{
	static const enum reply_kind kinds[] = { [REDIS_REPLY_ERROR] = REPLY_ERROR,
		[REDIS_REPLY_INTEGER] = REPLY_INTEGER,
		[REDIS_REPLY_STRING] = REPLY_TEXT,
		[REDIS_REPLY_STATUS] = REPLY_TEXT,
		[REDIS_REPLY_ARRAY] = REPLY_LIST };
	const size_t type = r != NULL ? (size_t)r->inside.type : REDIS_REPLY_NIL;

	return type < sizeof(kinds) / sizeof(kinds[0]) ? kinds[type] : REPLY_NIL;
}

const char *
reply_text(const struct reply *r)
{
	const enum reply_kind kind = reply_kind(r);

	return kind == REPLY_TEXT || kind == REPLY_ERROR ? r->inside.str : "";
}

int64_t
reply_integer(const struct reply *r)
{
	return reply_kind(r) == REPLY_INTEGER ? r->inside.integer : -1;
}

size_t
reply_items(const struct reply *r)
{
	return reply_kind(r) == REPLY_LIST ? r->inside.elements : 0;
}

const struct reply *
reply_item(const struct reply *r, size_t index)
{
	return index < reply_items(r) ? (const struct reply *)(const void *)r->inside.element[index] : NULL;
}

bool
reply_is_error(const struct reply *r, const char *const *codes)
{
	if (reply_kind(r) != REPLY_ERROR)
		return false;
	while (*codes != NULL && strncmp(reply_text(r), *codes, strlen(*codes)) != 0)
		codes++;
	return *codes != NULL;
}

void
reply_free(struct reply *r)
{
	freeReplyObject(r);
}
