/* SPDX-License-Identifier: MIT */
#include "redis/node.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* hiredis's headers have functions that our warnings would complain of. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <hiredis.h>
#pragma GCC diagnostic pop

#include "base/clock.h"
#include "base/text.h"
#include "redis/dial.h"

#define PENDING_MAX 64
#define REPLY_BYTES_MAX (4u * 1024 * 1024) /* a server that says more without an end is no Redis */
#define REPLY_ITEMS_MAX 4096
#define TAG_LOGIN 0u /* AUTH and SELECT; callers' tags start at 1 */

/* BROKEN: err says why; what is pending is delivered as failures, then IDLE. */
enum state {
	IDLE,
	DIALLING,
	CONNECTED,
	BROKEN
};

/* A request whose answer is outstanding, and where in the connection's stream of bytes it begins. */
struct pending {
	unsigned int tag;
	uint64_t start;
};

struct node {
	struct url url;
	enum state state;
	struct dial dial;		    /* while DIALLING */
	redisContext *redis;		    /* there unless IDLE; its fd is -1 until there is a socket */
	redisReplyObjectFunctions builders; /* hiredis's own */
	redisReplyObjectFunctions guarded;  /* the same with limits */
	uint64_t given, written;	    /* bytes of this connection's stream */
	struct pending pending[PENDING_MAX];
	size_t first, count;
	bool answered; /* this connection has brought an answer */
	bool login_failed;
	bool reached;	/* the connection was established */
	bool deaf;	/* the server takes no more bytes */
	struct err err; /* why it is BROKEN, or why the login failed */
};

static void
broken(struct node *n, const char *what)
{
	(void)err_set(&n->err, ST_NO_QUORUM, "%s", what);
	n->state = BROKEN;
}

/* -- Replies with limits ---------------------------------------------------- */

/* hiredis allocates a list as long as the server announces it. */
#if HIREDIS_MAJOR >= 1
typedef size_t list_length;
#else
typedef int list_length;
#endif

static void *
create_list(const redisReadTask *task, list_length items)
{
	const struct node *n = task->privdata;

	return (size_t)items <= REPLY_ITEMS_MAX ? n->builders.createArray(task, items) : NULL;
}

static void
limit_replies(struct node *n)
{
	redisReader *reader = n->redis->reader;

	n->builders = n->guarded = *reader->fn;
	n->guarded.createArray = create_list;
	reader->fn = &n->guarded;
	reader->privdata = n;
}

/* -- Sending ---------------------------------------------------------------- */

static void
queue_command(struct node *n, unsigned int tag, int argc, const char *const *argv, const size_t *length)
{
	char *bytes = NULL;
	const long long formatted = (long long)redisFormatCommandArgv(&bytes, argc, (const char **)(uintptr_t)argv,
	    length);
	struct pending *p = &n->pending[(n->first + n->count) % PENDING_MAX];

	if (n->count == PENDING_MAX)
		broken(n, "too many requests without an answer");
	else if (formatted <= 0 || redisAppendFormattedCommand(n->redis, bytes, (size_t)formatted) != REDIS_OK)
		broken(n, "out of memory");
	else {
		p->tag = tag;
		p->start = n->given;
		n->given += (uint64_t)formatted;
		n->count++;
	}
	redisFreeCommand(bytes);
}

static void
queue_words(struct node *n, const char *command, const char *first, const char *second)
{
	const char *const argv[3] = { command, first, second };
	const size_t length[3] = { strlen(command), strlen(first), second != NULL ? strlen(second) : 0 };

	queue_command(n, TAG_LOGIN, second != NULL ? 3 : 2, argv, length);
}

static void
queue_login(struct node *n)
{
	char db[16];

	if (n->url.password[0] != '\0' && n->url.user[0] != '\0')
		queue_words(n, "AUTH", n->url.user, n->url.password);
	else if (n->url.password[0] != '\0')
		queue_words(n, "AUTH", n->url.password, NULL);
	if (n->url.db != 0) {
		(void)snprintf(db, sizeof(db), "%d", n->url.db);
		queue_words(n, "SELECT", db, NULL);
	}
}

/* What can't be written any more may have been answered all the same (a server that refuses us says why): read on. */
static void
write_out(struct node *n)
{
	int done;

	if (redisBufferWrite(n->redis, &done) == REDIS_OK)
		n->written = n->given - sdslen(n->redis->obuf);
	else {
		n->redis->err = 0;
		n->deaf = true;
	}
}

/* -- Connecting ------------------------------------------------------------- */

/* Close everything; what is pending stays, to be delivered as failed. */
static void
hang_up(struct node *n)
{
	dial_stop(&n->dial);
	if (n->redis != NULL)
		redisFree(n->redis);
	n->redis = NULL;
}

/* What the dialling has come to. */
static void
dialled(struct node *n, enum dial_state state)
{
	switch (state) {
	case DIAL_BUSY:
		n->state = DIALLING;
		break;
	case DIAL_FAILED:
		broken(n, n->dial.error);
		break;
	case DIAL_CONNECTED:
		n->redis->fd = dial_take(&n->dial);
		dial_stop(&n->dial);
		n->state = CONNECTED;
		n->reached = true;
		write_out(n);
		break;
	}
}

static void
start(struct node *n)
{
	n->given = n->written = 0;
	n->answered = n->login_failed = n->deaf = n->reached = false;
	n->redis = redisConnectFd(-1);
	if (n->redis == NULL) {
		broken(n, "out of memory");
		return;
	}
	n->redis->flags &= ~REDIS_BLOCK;
	limit_replies(n);
	queue_login(n);
	if (n->state == BROKEN)
		return;
	dialled(n, dial_start(&n->dial, &n->url));
}

/* -- Receiving -------------------------------------------------------------- */

static void
describe_read_error(struct node *n)
{
	const bool closed = n->redis->err == REDIS_ERR_EOF || (n->redis->err == REDIS_ERR_IO && errno == ECONNRESET);
	char what[200];

	if (closed)
		broken(n,
		    n->answered ? "the server closed the connection"
				: "the server closed the connection without an answer");
	else if (n->redis->err == REDIS_ERR_PROTOCOL) {
		(void)snprintf(what, sizeof(what), "this is no Redis server (%s)", n->redis->errstr);
		broken(n, what);
	} else if (n->redis->err == REDIS_ERR_OOM)
		broken(n, "this is no Redis server (it announced a reply too large)");
	else
		broken(n, n->redis->errstr);
}

static void
read_in(struct node *n)
{
	if (redisBufferRead(n->redis) != REDIS_OK)
		describe_read_error(n);
	else if (n->redis->reader->len > REPLY_BYTES_MAX)
		broken(n, "this is no Redis server (its reply has no end)");
}

static struct pending
pop_pending(struct node *n)
{
	const struct pending p = n->pending[n->first];

	n->first = (n->first + 1) % PENDING_MAX;
	n->count--;
	return p;
}

/* AUTH or SELECT were answered.  After an error whatever follows ran as somebody else, or in another database. */
static void
note_login(struct node *n, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR && !n->login_failed) {
		n->login_failed = true;
		(void)err_set(&n->err, ST_DENIED, "%s", reply->str);
		text_hide(n->err.text, n->url.password); /* a server that knows no AUTH repeats it */
	}
}

static void
deliver_failure(const struct node *n, struct pending p, struct delivery *d)
{
	d->tag = p.tag;
	d->reply = NULL;
	d->unsent = p.start >= n->written;
	d->denied = n->login_failed;
	d->broken = n->reached;
	d->err = n->err;
}

/* Take one reply off the wire.  False if there is none. */
static bool
take_reply(struct node *n, struct delivery *d)
{
	void *reply = NULL;
	struct pending p;

	while (n->count > 0) {
		if (redisGetReplyFromReader(n->redis, &reply) != REDIS_OK) {
			describe_read_error(n);
			return false;
		}
		if (reply == NULL)
			return false;
		p = pop_pending(n);
		n->answered = true;
		if (p.tag == TAG_LOGIN) {
			note_login(n, reply);
			freeReplyObject(reply);
			continue;
		}
		if (n->login_failed) {
			deliver_failure(n, p, d);
			freeReplyObject(reply);
		} else
			*d = (struct delivery){ .tag = p.tag, .reply = reply };
		return true;
	}
	return false;
}

bool
node_take(struct node *n, struct delivery *d)
{
	struct pending p;

	if (n->state == CONNECTED && take_reply(n, d))
		return true;
	if (n->state != BROKEN)
		return false;
	hang_up(n);
	while (n->count > 0) {
		p = pop_pending(n);
		if (p.tag != TAG_LOGIN) {
			deliver_failure(n, p, d);
			return true;
		}
	}
	n->state = IDLE;
	return false;
}

/* -- The rest of the room's door -------------------------------------------- */

struct node *
node_open(const struct url *url, const char *password)
{
	struct node *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->url = *url;
	if (n->url.password[0] == '\0')
		(void)snprintf(n->url.password, sizeof(n->url.password), "%s", password);
	n->state = IDLE;
	n->dial.fd = -1;
	return n;
}

void
node_close(struct node *n)
{
	if (n == NULL)
		return;
	if (n->state == CONNECTED && !node_flushed(n))
		write_out(n);
	hang_up(n);
	free(n);
}

const char *
node_name(const struct node *n)
{
	return n->url.name;
}

void
node_send(struct node *n, unsigned int tag, const struct request *r)
{
	if (n->state == IDLE)
		start(n);
	if (n->state == BROKEN) {
		/* Its failure is due like those of the requests before it; nothing of it was sent. */
		if (n->count < PENDING_MAX) {
			n->pending[(n->first + n->count) % PENDING_MAX] = (struct pending){ tag, UINT64_MAX };
			n->count++;
		}
		return;
	}
	queue_command(n, tag, r->argc, r->argv, r->length);
	if (n->state == CONNECTED)
		write_out(n);
}

int
node_fd(const struct node *n)
{
	if (n->state == DIALLING)
		return dial_fd(&n->dial);
	return n->state == CONNECTED ? n->redis->fd : -1;
}

short
node_events(const struct node *n)
{
	if (n->state == DIALLING)
		return dial_events(&n->dial);
	return n->state == CONNECTED && !node_flushed(n) ? POLLIN | POLLOUT : POLLIN;
}

int64_t
node_wake_us(const struct node *n)
{
	if (n->state == BROKEN)
		return 0;
	return n->state == DIALLING ? n->dial.wake_us : CLOCK_NEVER;
}

void
node_handle(struct node *n, int64_t now_us)
{
	if (n->state == DIALLING) {
		dialled(n, dial_handle(&n->dial, now_us));
		return;
	}
	if (n->state == CONNECTED && !node_flushed(n))
		write_out(n);
	if (n->state == CONNECTED)
		read_in(n);
}

void
node_break(struct node *n)
{
	if (n->state == CONNECTED && n->count > 0)
		broken(n, "no answer in time");
}

void
node_stop_dialling(struct node *n)
{
	if (n->state == DIALLING)
		broken(n, "not waited for");
}

bool
node_dials_name(const struct node *n)
{
	return n->state == DIALLING && n->dial.by_name;
}

bool
node_flushed(const struct node *n)
{
	return n->state == IDLE || n->deaf || n->written == n->given;
}

const char *
node_silence(const struct node *n)
{
	if (n->state == DIALLING && n->dial.resolving != NULL)
		return "its name was not resolved in time";
	return n->state == CONNECTED ? "no answer in time" : "no connection in time";
}

/* -- Reading replies -------------------------------------------------------- */

static const redisReply *
inside(const struct reply *r)
{
	return (const redisReply *)(const void *)r;
}

enum reply_kind
reply_kind(const struct reply *r)
{
	if (r == NULL)
		return REPLY_NIL;
	switch (inside(r)->type) {
	case REDIS_REPLY_ERROR:
		return REPLY_ERROR;
	case REDIS_REPLY_INTEGER:
		return REPLY_INTEGER;
	case REDIS_REPLY_STRING:
	case REDIS_REPLY_STATUS:
		return REPLY_TEXT;
	case REDIS_REPLY_ARRAY:
		return REPLY_LIST;
	default:
		return REPLY_NIL;
	}
}

const char *
reply_text(const struct reply *r)
{
	const enum reply_kind kind = reply_kind(r);

	return kind == REPLY_TEXT || kind == REPLY_ERROR ? inside(r)->str : "";
}

int64_t
reply_integer(const struct reply *r)
{
	return reply_kind(r) == REPLY_INTEGER ? inside(r)->integer : -1;
}

size_t
reply_items(const struct reply *r)
{
	return reply_kind(r) == REPLY_LIST ? inside(r)->elements : 0;
}

const struct reply *
reply_item(const struct reply *r, size_t index)
{
	return index < reply_items(r) ? (const struct reply *)(const void *)inside(r)->element[index] : NULL;
}

void
reply_free(struct reply *r)
{
	freeReplyObject(r);
}
