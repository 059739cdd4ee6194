/* SPDX-License-Identifier: MIT */
#include "zk/wire.h"

#include "tap.h"

/* Compare what was written with bytes in hexadecimal, in which blanks separate the fields, and forget it. */
static void
wrote(struct wire_out *o, const char *fields, const char *name)
{
	char got[2048] = "", wanted[2048] = "";
	size_t n = 0;

	for (size_t i = 0; i < o->length && 2 * i + 2 < sizeof(got); i++)
		(void)snprintf(got + 2 * i, 3, "%02x", (unsigned int)o->bytes[i]);
	for (; *fields != '\0' && n + 1 < sizeof(wanted); fields++) {
		if (*fields != ' ')
			wanted[n++] = *fields;
	}
	is_str(got, wanted, "%s", name);
	wire_out_free(o);
}

TEST(requests)
{
	const struct wire_session connect = { 0x0102030405060708, "0123456789abcde", 30000 };
	struct wire_out o = { .bytes = NULL };

	wire_put_connect(&o, &connect);
	wrote(&o,
	    "0000002d 00000000 0000000000000000 00007530 0102030405060708 00000010 30313233343536373839616263646500 00",
	    "ConnectRequest");
	wire_put_auth(&o, "u", "pw");
	wrote(&o, "0000001e fffffffc 00000064 00000000 00000006 646967657374 00000004 753a7077", "auth");
	wire_put(&o, 7, &(struct wire_request){ WIRE_EXISTS, "/a", NULL, 1, false });
	wrote(&o, "0000000f 00000007 00000003 00000002 2f61 01", "exists with a watch");
	wire_put(&o, 7, &(struct wire_request){ WIRE_DELETE, "/a", NULL, -1, false });
	wire_put(&o, 8, &(struct wire_request){ WIRE_SYNC, "/a", NULL, 0, false });
	wrote(&o, "00000012 00000007 00000002 00000002 2f61 ffffffff 0000000e 00000008 00000009 00000002 2f61",
	    "delete and sync, one behind the other");
	wire_put(&o, WIRE_XID_PING, &(struct wire_request){ .op = WIRE_PING });
	wire_put(&o, 9, &(struct wire_request){ .op = WIRE_CLOSE });
	wrote(&o, "00000008 fffffffe 0000000b 00000008 00000009 fffffff5", "ping and closeSession");
	ok(o.bytes == NULL && o.length == 0, "freed");
}

TEST(creating)
{
	const struct wire_request node = { WIRE_CREATE, "/a", "d", WIRE_EPHEMERAL_SEQUENTIAL, false };
	const struct wire_request owned = { WIRE_CREATE_CONTAINER, "/a", "", WIRE_CONTAINER, true };
	const struct wire_request gone = { WIRE_DELETE, "/b", NULL, 3, false };
	struct wire_out o = { .bytes = NULL };

	wire_put(&o, 1, &owned);
	wrote(&o,
	    "00000041 00000001 00000013 00000002 2f61 00000000 00000002 0000001f 00000004 61757468 00000000 00000001 "
	    "00000005 776f726c64 00000006 616e796f6e65 00000004",
	    "a container with an ACL");
	wire_begin_request(&o, 2, WIRE_MULTI);
	wire_multi_put(&o, &node);
	wire_multi_put(&o, &gone);
	wire_multi_end(&o);
	wrote(&o,
	    "00000057 00000002 0000000e 00000001 00 ffffffff 00000002 2f61 00000001 64 00000001 0000001f 00000005 "
	    "776f726c64 00000006 616e796f6e65 00000003 00000002 00 ffffffff 00000002 2f62 00000003 ffffffff 01 ffffffff",
	    "a transaction");
}

/* A packet of these bytes. */
static struct wire_in
packet(const char *bytes, size_t length)
{
	const struct wire_in in = { (const unsigned char *)bytes, (const unsigned char *)bytes + length, false };

	return in;
}

#define PACKET(literal) packet(literal, sizeof(literal) - 1)

TEST(frames)
{
	static const unsigned char two[] = "\0\0\0\3abc\0\0\0\0x";
	static const unsigned char negative[] = "\377\377\377\377", large[] = "\0\100\0\1";
	struct wire_in in;

	for (size_t i = 0; i < 7; i++)
		each(wire_frame(two, i, &in) == 0, "%zu bytes", i);
	each_ok("a packet is awaited");
	ok(wire_frame(two, 12, &in) == 7 && in.end - in.at == 3, "the first packet");
	ok(wire_frame(two + 7, 5, &in) == 4 && in.end == in.at, "an empty one");
	ok(wire_frame(negative, 4, &in) == -1, "a negative length");
	ok(wire_frame(large, 4, &in) == -1, "a length above the limit");
	ok(wire_frame((const unsigned char *)"HTTP/1.1 400", 12, &in) == -1, "another protocol");
}

TEST(connected)
{
	struct wire_in in = PACKET("\0\0\0\0\0\0\x75\x30\1\2\3\4\5\6\7\x8\0\0\0\x10"
				   "0123456789abcdef"
				   "\0");
	struct wire_in old = PACKET("\0\0\0\0\0\0\x75\x30\1\2\3\4\5\6\7\x8\0\0\0\x10"
				    "0123456789abcdef");
	struct wire_in expired = PACKET("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10"
					"0123456789abcdef"
					"\0");
	static const char newer[] = "\0\0\0\1\0\0\x75\x30\1\2\3\4\5\6\7\x8\0\0\0\x10"
				    "0123456789abcdef\0";
	static const char longer[] = "\0\0\0\0\0\0\x75\x30\1\2\3\4\5\6\7\x8\0\0\0\x10"
				     "0123456789abcdef\0\0";
	static const char no_length[] = "\0\0\0\0\0\0\0\0\1\2\3\4\5\6\7\x8\0\0\0\x10"
					"0123456789abcdef\0";
	struct wire_in others[] = { PACKET("\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0"), PACKET(newer), PACKET(longer),
		PACKET(no_length) };
	struct wire_session c;

	ok(wire_get_connected(&in, &c) && c.length_ms == 30000 && c.id == 0x0102030405060708, "ConnectResponse");
	ok(memcmp(c.password, "0123456789abcdef", 16) == 0, "its password");
	ok(wire_get_connected(&old, &c), "without the last field, as of old servers");
	ok(wire_get_connected(&expired, &c) && c.id == 0, "of a session that has expired");
	for (size_t i = 0; i < COUNT(others); i++)
		each(!wire_get_connected(&others[i], &c), "%zu", i);
	each_ok("another packet, version or length, and a session without a length");
}

TEST(fields)
{
	struct wire_in text = PACKET("\0\0\0\2ab\377\377\377\377\0\0\0\5abc");
	struct wire_in count = PACKET("\0\0\0\2\0\0\0\0\0\0\0\0"), many = PACKET("\0\0\0\3\0\0\0\0\0\0\0\0");
	struct wire_text t = wire_get_text(&text);

	ok(t.length == 2 && memcmp(t.bytes, "ab", 2) == 0, "a string");
	ok(wire_get_text(&text).length == 0 && !text.bad, "a string that is none");
	ok(wire_get_text(&text).length == 0 && text.bad, "a string that is cut off");
	ok(wire_get_long(&text) == 0 && text.bad, "a number behind the end is invalid");
	ok(wire_get_count(&count, 4) == 2 && !count.bad, "a count");
	ok(wire_get_count(&many, 4) == 0 && many.bad, "a count of more than there is");
}

TEST(stat)
{
	char bytes[68] = { [7] = 1, [35] = 2, [44] = '\x80' };
	struct wire_in container = packet(bytes, sizeof(bytes)), node = container;
	struct wire_stat s = wire_get_stat(&container);

	ok(s.czxid == 1 && s.version == 2 && !container.bad, "the data of a node");
	ok(s.owner == 0, "a container has no owner");
	bytes[51] = 3;
	s = wire_get_stat(&node);
	ok(s.owner == INT64_MIN + 3, "a node of a session");
}

TEST(multi)
{
	struct wire_in made = PACKET(
	    "\0\0\0\1\0\0\0\0\0\0\0\0\4/a/1\0\0\0\2\0\0\0\0\0\377\377\377\377\1\377\377\377\377");
	struct wire_in failed = PACKET("\377\377\377\377\0\0\0\0\0\0\0\0\0"
				       "\377\377\377\377\0\377\377\377\x9b\377\377\377\x9b"
				       "\377\377\377\377\0\377\377\377\376\377\377\377\376"
				       "\377\377\377\377\1\377\377\377\377");
	struct wire_in none = PACKET("\377\377\377\377\1\377\377\377\377");
	struct wire_in cut = PACKET("\0\0\0\2\0\0\0\0\0\0\0\0\1\0\0\0\0");
	struct wire_in two = PACKET("\0\0\0\1\0\0\0\0\0\0\0\0\1a\0\0\0\1\0\0\0\0\0\0\0\0\1b"
				    "\377\377\377\377\1\377\377\377\377");
	struct wire_in unknown = PACKET("\0\0\0\15\0\0\0\0\0\377\377\377\377\1\377\377\377\377");
	struct wire_in positive = PACKET("\377\377\377\377\0\0\0\0\1\0\0\0\1\377\377\377\377\1\377\377\377\377");
	struct wire_text first;

	ok(wire_get_multi(&made, &first) == ZK_OK && !made.bad, "a transaction was done");
	ok(first.length == 4 && memcmp(first.bytes, "/a/1", 4) == 0, "the path of the first node that was created");
	is_int(wire_get_multi(&failed, &first), ZK_NO_NODE, "the error of the operation that failed");
	is_int(wire_get_multi(&none, &first), ZK_SYSTEM_ERROR, "a transaction without results is invalid");
	ok(wire_get_multi(&cut, &first) == ZK_SYSTEM_ERROR && cut.bad, "results that are cut off are invalid");
	ok(wire_get_multi(&two, &first) == ZK_OK && first.length == 1 && first.bytes[0] == 'a',
	    "the first of two nodes");
	is_int(wire_get_multi(&unknown, &first), ZK_SYSTEM_ERROR, "the result of another operation is invalid");
	is_int(wire_get_multi(&positive, &first), ZK_SYSTEM_ERROR, "a positive error is none of ours");
}

static bool
is_inside(const struct wire_in *in, struct wire_text text)
{
	return text.length == 0 || (const unsigned char *)text.bytes + text.length <= in->end;
}

/* Packets with a few bytes of others, in memory of exactly their size, so that a sanitizer sees what is read behind them. */
TEST(noise)
{
	static const char reply[] = "\0\0\0\0\0\0\x75\x30\0\0\0\0\0\0\0\x02\0\0\0\x0cx-0000000001"
				    "\0\0\0\x10\0\0\0\1\0\xff\xff\xff\xff\1\xff\xff\xff\xff\0\0\0\0";
	struct wire_session connected;
	struct wire_in in, whole;
	struct wire_text text;
	int32_t count;

	for (int i = 0; i < 50000; i++) {
		const size_t start = (size_t)below(sizeof(reply) - 1), length = sizeof(reply) - 1 - start;
		char *const bytes = malloc(length);

		memcpy(bytes, reply + start, length);
		for (int k = (int)below(4); k > 0; k--)
			bytes[below((int64_t)length)] = (char)(below(2) == 0 ? below(256) : below(5) - 1);
		in = whole = packet(bytes, length);
		if (wire_get_connected(&in, &connected))
			each(connected.id == 0 || connected.length_ms > 0, "a session without a length");
		in = whole;
		(void)wire_get_multi(&in, &text);
		each(is_inside(&whole, text), "the path of a transaction");
		in = whole;
		count = wire_get_count(&in, 4);
		each(count >= 0 && count <= (in.end - in.at) / 4, "%d items", (int)count);
		for (; count > 0 && !in.bad; count--)
			each(is_inside(&whole, wire_get_text(&in)), "a text");
		(void)wire_get_stat(&in);
		free(bytes);
	}
	each_ok("nothing is read outside of any packet");
}
