/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "zk/metadata.h"
#include "zk/path.h"
#include "zk/queue.h"
#include "zk/token.h"
#include "zk/wire.h"

/*
 * What a ZooKeeper server sends: packets of any bytes.  Nothing that is read lies outside the packet.  A queue has an
 * order, and each of its entries is before another one or first.  Metadata, KEYs and tokens that are written again are
 * read as the same.
 */

static void
check_inside(const struct wire_in *in, struct wire_text text)
{
	must(text.length == 0 || (const unsigned char *)text.bytes + text.length <= in->end, "outside the packet");
}

static void
check_queue(struct queue *q)
{
	size_t i, before, entries;

	queue_sort(q);
	entries = queue_entries(q, q->count);
	must(entries <= q->count && (entries > 0) == (q->count > 0), "%zu entries of %zu", entries, q->count);
	for (i = 0; i < q->count && i < 64; i++) {
		before = queue_before(q, i);
		must((before == QUEUE_NOBODY) == (i == 0), "%zu: nobody before", i);
		must(before == QUEUE_NOBODY || before < i, "%zu is before %zu", before, i);
		must(queue_entries(q, i) != 1 || queue_is_same(q, i - 1, 0), "%zu is second", i);
		(void)queue_client(q->contender[i].name, q->contender[i].length);
	}
	queue_free(q);
}

static void
read_children(struct wire_in in)
{
	struct queue q = { .contender = NULL };
	const int32_t count = wire_get_count(&in, 4);
	struct wire_text name;
	int32_t i;

	must(count >= 0 && count <= (in.end - in.at) / 4, "%d children", (int)count);
	for (i = 0; i < count && !in.bad; i++) {
		name = wire_get_text(&in);
		check_inside(&in, name);
		must(queue_add(&q, name.bytes, name.length), "no memory");
	}
	check_queue(&q);
}

static void
check_metadata(struct wire_text data)
{
	struct metadata m, again;
	char text[METADATA_SIZE];

	if (!metadata_read(data.bytes, data.length, &m))
		return;
	must(m.holds >= 0 && m.holds <= METADATA_HOLDS && m.ttl_ms >= 0 && m.since_ms >= 0, "numbers");
	metadata_write(&m, text);
	must(metadata_read(text, strlen(text), &again), "not read again");
	must(strcmp(m.owner, again.owner) == 0 && strcmp(m.label, again.label) == 0 &&
		strcmp(m.kept_by, again.kept_by) == 0 && strcmp(m.broken, again.broken) == 0 && m.holds == again.holds,
	    "read as another");
}

static void
read_data(struct wire_in in)
{
	const struct wire_text data = wire_get_text(&in);

	check_inside(&in, data);
	check_metadata(data);
	(void)wire_get_stat(&in);
}

static void
check_key(const char *key)
{
	char path[PATH_LOCK_SIZE], again[1100];

	if (key[0] == '\0' || strlen(key) > 1024)
		return;
	path_of_key("/c", key, path);
	must(path_to_key(path, 2, again, sizeof(again)), "'%s' is no KEY any more", path);
	if (key[0] == '/' && key[1] != '\0' && (key[1] != '/' || key[2] == '\0'))
		key++; /* this slash is dropped */
	must(strcmp(again, key) == 0, "'%s' became '%s'", key, again);
}

static void
check_token(const char *text)
{
	char again[TOKEN_SIZE];
	struct zk_token token;

	if (!zk_token_read(text, &token))
		return;
	zk_token_write(&token, again);
	must(strcmp(text, again) == 0, "%s became %s", text, again);
}

static void
read_packet(const uint8_t *bytes, size_t length)
{
	struct wire_in in, body;
	struct wire_session connected;
	struct wire_text first;
	int64_t used;

	while ((used = wire_frame(bytes, length, &in)) > 0) {
		must(used >= 4 && (size_t)used <= length && in.end - in.at == (long)used - 4, "%ld of %zu bytes",
		    (long)used, length);
		body = in;
		if (wire_get_connected(&body, &connected))
			must(connected.id == 0 || connected.length_ms > 0, "a session without a length");
		body = in;
		(void)wire_get_int(&body);
		(void)wire_get_long(&body);
		(void)wire_get_int(&body);
		read_children(body);
		read_data(body);
		(void)wire_get_multi(&body, &first);
		check_inside(&body, first);
		bytes += used;
		length -= (size_t)used;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input in = input_of(bytes, length);
	const struct wire_text whole = { (const char *)bytes, length };
	char *text;

	read_packet(bytes, length);
	check_metadata(whole);
	text = input_string(&in, SIZE_MAX);
	check_key(text);
	check_token(text);
	free(text);
	return 0;
}
