/* SPDX-License-Identifier: MIT */
#include "zk/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define ALL_RIGHTS 31
#define READ 1
#define EPHEMERAL_SEQUENTIAL 3
#define CONTAINER 4

/* -- Writing ---------------------------------------------------------------- */

void
wire_out_free(struct wire_out *o)
{
	free(o->bytes);
	memset(o, 0, sizeof(*o));
}

static void
put(struct wire_out *o, const void *bytes, size_t length)
{
	unsigned char *const grown = o->failed ? NULL : array_room(o->bytes, o->length + length, &o->capacity, 1);

	if (grown == NULL) {
		o->failed = true;
		return;
	}
	o->bytes = grown;
	if (length > 0)
		memcpy(o->bytes + o->length, bytes, length);
	o->length += length;
}

static void
encode(unsigned char *bytes, uint64_t value, int size)
{
	while (size-- > 0) {
		bytes[size] = (unsigned char)value;
		value >>= 8;
	}
}

static void
put_int(struct wire_out *o, int32_t value)
{
	unsigned char bytes[4];

	encode(bytes, (uint32_t)value, 4);
	put(o, bytes, sizeof(bytes));
}

static void
put_long(struct wire_out *o, int64_t value)
{
	unsigned char bytes[8];

	encode(bytes, (uint64_t)value, 8);
	put(o, bytes, sizeof(bytes));
}

static void
put_bool(struct wire_out *o, bool value)
{
	const unsigned char byte = value;

	put(o, &byte, 1);
}

static void
put_buffer(struct wire_out *o, const void *bytes, size_t length)
{
	put_int(o, (int32_t)length);
	put(o, bytes, length);
}

static void
put_text(struct wire_out *o, const char *text)
{
	put_buffer(o, text, strlen(text));
}

static void
begin(struct wire_out *o)
{
	o->frame = o->length;
	put_int(o, 0);
}

static void
begin_request(struct wire_out *o, int32_t xid, enum wire_op op)
{
	begin(o);
	put_int(o, xid);
	put_int(o, (int32_t)op);
}

static void
end(struct wire_out *o)
{
	if (!o->failed)
		encode(o->bytes + o->frame, o->length - o->frame - 4, 4);
}

/* -- Requests --------------------------------------------------------------- */

void
wire_put_connect(struct wire_out *o, const struct wire_connect *c)
{
	begin(o);
	put_int(o, 0);	/* version of the protocol */
	put_long(o, 0); /* the last zxid seen: a server that lags behind serves us, too */
	put_int(o, c->timeout_ms);
	put_long(o, c->session);
	put_buffer(o, c->password, sizeof(c->password));
	put_bool(o, false); /* no server that may only read */
	end(o);
}

void
wire_put_auth(struct wire_out *o, const char *user, const char *password)
{
	const size_t length = strlen(user) + 1 + strlen(password);

	begin_request(o, WIRE_XID_AUTH, WIRE_AUTH);
	put_int(o, 0);
	put_text(o, "digest");
	put_int(o, (int32_t)length);
	put(o, user, strlen(user));
	put(o, ":", 1);
	put(o, password, strlen(password));
	end(o);
}

void
wire_put_path(struct wire_out *o, int32_t xid, enum wire_op op, const char *path, int32_t argument)
{
	begin_request(o, xid, op);
	put_text(o, path);
	if (op == WIRE_DELETE)
		put_int(o, argument);
	else if (op != WIRE_SYNC && op != WIRE_GET_ACL)
		put_bool(o, argument != 0);
	end(o);
}

void
wire_put_set_data(struct wire_out *o, int32_t xid, const char *path, const char *data, int32_t version)
{
	begin_request(o, xid, WIRE_SET_DATA);
	put_text(o, path);
	put_text(o, data);
	put_int(o, version);
	end(o);
}

void
wire_put_close(struct wire_out *o, int32_t xid)
{
	begin_request(o, xid, WIRE_CLOSE);
	end(o);
}

void
wire_put_ping(struct wire_out *o)
{
	begin_request(o, WIRE_XID_PING, WIRE_PING);
	end(o);
}

static void
put_right(struct wire_out *o, int32_t rights, const char *scheme, const char *id)
{
	put_int(o, rights);
	put_text(o, scheme);
	put_text(o, id);
}

static void
put_create(struct wire_out *o, const struct wire_node *n, int32_t flags)
{
	put_text(o, n->path);
	put_text(o, n->data);
	put_int(o, n->authenticated ? 2 : 1);
	if (n->authenticated) {
		put_right(o, ALL_RIGHTS, "auth", "");
		put_right(o, READ, "world", "anyone");
	} else
		put_right(o, ALL_RIGHTS, "world", "anyone");
	put_int(o, flags);
}

void
wire_put_create(struct wire_out *o, int32_t xid, enum wire_op op, const struct wire_node *n)
{
	begin_request(o, xid, op);
	put_create(o, n, op == WIRE_CREATE_CONTAINER ? CONTAINER : 0);
	end(o);
}

/* The header of an operation in a transaction. */
static void
put_step(struct wire_out *o, int32_t op, bool last)
{
	put_int(o, op);
	put_bool(o, last);
	put_int(o, -1);
}

void
wire_multi_begin(struct wire_out *o, int32_t xid)
{
	begin_request(o, xid, WIRE_MULTI);
}

void
wire_multi_create(struct wire_out *o, const struct wire_node *n)
{
	put_step(o, WIRE_CREATE, false);
	put_create(o, n, EPHEMERAL_SEQUENTIAL);
}

void
wire_multi_delete(struct wire_out *o, const char *path, int32_t version)
{
	put_step(o, WIRE_DELETE, false);
	put_text(o, path);
	put_int(o, version);
}

void
wire_multi_set_data(struct wire_out *o, const char *path, const char *data, int32_t version)
{
	put_step(o, WIRE_SET_DATA, false);
	put_text(o, path);
	put_text(o, data);
	put_int(o, version);
}

void
wire_multi_end(struct wire_out *o)
{
	put_step(o, -1, true);
	end(o);
}

/* -- Reading ---------------------------------------------------------------- */

static uint64_t
get(struct wire_in *in, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(in->end - in->at) < size) {
		in->bad = true;
		in->at = in->end;
		return 0;
	}
	for (; size > 0; size--)
		value = value << 8 | *in->at++;
	return value;
}

int32_t
wire_get_int(struct wire_in *in)
{
	return (int32_t)(uint32_t)get(in, 4);
}

int64_t
wire_get_long(struct wire_in *in)
{
	return (int64_t)get(in, 8);
}

struct wire_text
wire_get_text(struct wire_in *in)
{
	const int32_t length = wire_get_int(in);
	struct wire_text text = { (const char *)in->at, 0 };

	if (length <= 0)
		return text;
	if (length > in->end - in->at) {
		in->bad = true;
		in->at = in->end;
		return text;
	}
	text.length = (size_t)length;
	in->at += length;
	return text;
}

int32_t
wire_get_count(struct wire_in *in, size_t least)
{
	const int32_t count = wire_get_int(in);

	if (count <= 0)
		return 0;
	if ((size_t)count > (size_t)(in->end - in->at) / least) {
		in->bad = true;
		return 0;
	}
	return count;
}

enum wire_frame
wire_frame(const unsigned char *bytes, size_t available, struct wire_in *in, size_t *length)
{
	struct wire_in prefix = { bytes, NULL, false };
	int32_t size;

	if (available < 4)
		return WIRE_MORE;
	prefix.end = bytes + 4;
	size = wire_get_int(&prefix);
	if (size < 0 || size > WIRE_FRAME_MAX)
		return WIRE_BAD;
	if (available - 4 < (size_t)size)
		return WIRE_MORE;
	*in = (struct wire_in){ bytes + 4, bytes + 4 + size, false };
	*length = 4 + (size_t)size;
	return WIRE_WHOLE;
}

/* -- Replies ---------------------------------------------------------------- */

bool
wire_get_connected(struct wire_in *in, struct wire_connected *c)
{
	const int32_t version = wire_get_int(in);
	struct wire_text password;

	c->timeout_ms = wire_get_int(in);
	c->session = wire_get_long(in);
	password = wire_get_text(in);
	if (in->bad || version != 0 || in->end - in->at > 1 || password.length != sizeof(c->password))
		return false;
	memcpy(c->password, password.bytes, sizeof(c->password));
	return c->session == 0 || c->timeout_ms > 0;
}

struct wire_header
wire_get_header(struct wire_in *in)
{
	struct wire_header h;

	h.xid = wire_get_int(in);
	(void)wire_get_long(in); /* zxid */
	h.error = wire_get_int(in);
	return h;
}

struct wire_event
wire_get_event(struct wire_in *in)
{
	struct wire_event e;

	e.type = wire_get_int(in);
	(void)wire_get_int(in); /* state of the session */
	e.path = wire_get_text(in);
	return e;
}

struct wire_stat
wire_get_stat(struct wire_in *in)
{
	struct wire_stat s;

	s.czxid = wire_get_long(in);
	(void)wire_get_long(in); /* mzxid */
	s.ctime_ms = wire_get_long(in);
	s.mtime_ms = wire_get_long(in);
	s.version = wire_get_int(in);
	(void)wire_get_int(in); /* version of the children */
	(void)wire_get_int(in); /* version of the ACL */
	s.owner = wire_get_long(in);
	if (s.owner == INT64_MIN) /* the mark of a container */
		s.owner = 0;
	(void)wire_get_int(in);	 /* length of the data */
	(void)wire_get_int(in);	 /* number of children */
	(void)wire_get_long(in); /* pzxid */
	return s;
}

/* Read one result.  Returns its error, or ZK_OK. */
static int32_t
get_result(struct wire_in *in, int32_t op, struct wire_text *path)
{
	*path = (struct wire_text){ "", 0 };
	switch (op) {
	case WIRE_CREATE:
		*path = wire_get_text(in);
		return ZK_OK;
	case WIRE_DELETE:
		return ZK_OK;
	case WIRE_SET_DATA:
		(void)wire_get_stat(in);
		return ZK_OK;
	case -1:
		return wire_get_int(in);
	default:
		in->bad = true;
		return ZK_OK;
	}
}

int32_t
wire_get_multi(struct wire_in *in, struct wire_text *first)
{
	int32_t op, error, failed = ZK_OK;
	struct wire_text path;
	bool last, any = false;

	*first = (struct wire_text){ "", 0 };
	for (;;) {
		op = wire_get_int(in);
		last = get(in, 1) != 0;
		(void)wire_get_int(in); /* the error, which the body of a result has as well */
		if (last || in->bad)
			break;
		error = get_result(in, op, &path);
		if (failed == ZK_OK) /* those before it have no error, those behind it have an error of their own */
			failed = error;
		if (!any)
			*first = path;
		any = true;
	}
	if (!any)
		in->bad = true;
	return failed;
}
