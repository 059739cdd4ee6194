/* SPDX-License-Identifier: MIT */
#include "zk/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

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

/* Write a number at its place, big-endian. */
static void
encode(unsigned char *bytes, uint64_t value, size_t size)
{
	while (size-- > 0) {
		bytes[size] = (unsigned char)value;
		value >>= 8;
	}
}

static void
put_number(struct wire_out *o, uint64_t value, size_t size)
{
	unsigned char bytes[8];

	encode(bytes, value, size);
	put(o, bytes, size);
}

static void
put_int(struct wire_out *o, int32_t value)
{
	put_number(o, (uint32_t)value, 4);
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

void
wire_begin_request(struct wire_out *o, int32_t xid, enum wire_op op)
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
wire_put_connect(struct wire_out *o, const struct wire_session *s)
{
	begin(o);
	put_int(o, 0);	     /* version of the protocol */
	put_number(o, 0, 8); /* the last zxid seen: a server that lags behind serves us, too */
	put_int(o, s->length_ms);
	put_number(o, (uint64_t)s->id, 8);
	put_buffer(o, s->password, sizeof(s->password));
	put_number(o, false, 1); /* no server that may only read */
	end(o);
}

void
wire_put_auth(struct wire_out *o, const char *user, const char *password)
{
	const size_t length = strlen(user) + 1 + strlen(password);

	wire_begin_request(o, WIRE_XID_AUTH, WIRE_AUTH);
	put_int(o, 0);
	put_text(o, "digest");
	put_int(o, (int32_t)length);
	put(o, user, strlen(user));
	put(o, ":", 1);
	put(o, password, strlen(password));
	end(o);
}

/* The ACLs of new nodes: all rights for everybody; or all rights for our user, and reading for everybody. */
#define EVERYBODY "\0\0\0\5world\0\0\0\6anyone"
static const char acl_open[] = "\0\0\0\1\0\0\0\x1f" EVERYBODY;
static const char acl_guarded[] = "\0\0\0\2\0\0\0\x1f\0\0\0\4auth\0\0\0\0\0\0\0\1" EVERYBODY;

static void
put_body(struct wire_out *o, const struct wire_request *r)
{
	if (r->path != NULL)
		put_text(o, r->path);
	if (r->data != NULL)
		put_text(o, r->data);
	switch (r->op) {
	case WIRE_CREATE:
	case WIRE_CREATE_CONTAINER:
		put(o, r->guarded ? acl_guarded : acl_open, (r->guarded ? sizeof(acl_guarded) : sizeof(acl_open)) - 1);
		put_int(o, r->argument);
		break;
	case WIRE_DELETE:
	case WIRE_SET_DATA:
		put_int(o, r->argument);
		break;
	case WIRE_EXISTS:
	case WIRE_GET_DATA:
	case WIRE_GET_CHILDREN2:
		put_number(o, r->argument != 0, 1);
		break;
	default:
		break;
	}
}

void
wire_put(struct wire_out *o, int32_t xid, const struct wire_request *r)
{
	wire_begin_request(o, xid, r->op);
	put_body(o, r);
	end(o);
}

void
wire_multi_put(struct wire_out *o, const struct wire_request *r)
{
	put_int(o, (int32_t)r->op);
	put_number(o, false, 1); /* not the last */
	put_int(o, -1);
	put_body(o, r);
}

void
wire_multi_end(struct wire_out *o)
{
	put_int(o, -1);
	put_number(o, true, 1);
	put_int(o, -1);
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

int64_t
wire_frame(const unsigned char *bytes, size_t available, struct wire_in *packet)
{
	struct wire_in prefix = { bytes, bytes + available, false };
	const int32_t size = wire_get_int(&prefix);

	if (prefix.bad)
		return 0;
	if (size < 0 || size > WIRE_FRAME_MAX)
		return -1;
	if (available - 4 < (size_t)size)
		return 0;
	*packet = (struct wire_in){ bytes + 4, bytes + 4 + size, false };
	return 4 + (int64_t)size;
}

/* -- Replies ---------------------------------------------------------------- */

bool
wire_get_connected(struct wire_in *in, struct wire_session *s)
{
	const int32_t version = wire_get_int(in);
	struct wire_text password;

	s->length_ms = wire_get_int(in);
	s->id = wire_get_long(in);
	password = wire_get_text(in);
	if (in->bad || version != 0 || in->end - in->at > 1 || password.length != sizeof(s->password))
		return false;
	memcpy(s->password, password.bytes, sizeof(s->password));
	return s->id == 0 || s->length_ms > 0;
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
	(void)wire_get_long(in); /* versions of the children and of the ACL */
	s.owner = wire_get_long(in);
	if (s.owner == INT64_MIN) /* the mark of a container */
		s.owner = 0;
	(void)wire_get_long(in); /* length of the data, number of children */
	(void)wire_get_long(in); /* pzxid */
	return s;
}

enum zk_code
wire_get_multi(struct wire_in *in, struct wire_text *first)
{
	int32_t op, error = ZK_OK, own, results;
	struct wire_text path;
	bool last;

	*first = (struct wire_text){ "", 0 };
	for (results = 0;; results++) {
		op = wire_get_int(in);
		last = get(in, 1) != 0;
		(void)wire_get_int(in); /* the error, which the body of a result has as well */
		if (last || in->bad)
			break;
		if (op == WIRE_CREATE) {
			path = wire_get_text(in);
			*first = results == 0 ? path : *first;
		} else if (op == WIRE_SET_DATA)
			(void)wire_get_stat(in);
		else if (op == -1) { /* results before the one that failed have no error, those behind it their own */
			own = wire_get_int(in);
			error = error == ZK_OK ? own : error;
		} else if (op != WIRE_DELETE)
			in->bad = true;
	}
	return in->bad || results == 0 || error > 0 ? ZK_SYSTEM_ERROR : (enum zk_code)error;
}
