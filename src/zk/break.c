/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "zk/operations.h"

/* One break operation. */
struct breaking {
	struct session *session;
	const struct break_args *args;
	struct wait limit;
	char lock[PATH_LOCK_SIZE];
	char record[METADATA_SIZE]; /* what is written to the node of the KEY: who broke the lock; "": nothing */
	int32_t version;
};

/*
 * Make the record, which the node of the KEY keeps as long as it is there.  Data that is not dlock's, or that we may not
 * read, belongs to somebody else, and stays.
 */
static enum zk_code
prepare_record(struct breaking *b)
{
	struct session *const s = b->session;
	struct metadata m, broken = { .holds = 0 };
	struct wire_text data;
	struct wire_stat stat;
	struct wire_in body;
	enum zk_code code;
	int32_t xid;

	(void)session_put_path(s, WIRE_SYNC, b->lock);
	xid = session_put_path(s, WIRE_GET_DATA, b->lock);
	code = session_call(s, xid, &body, &b->limit);
	if (code != ZK_OK || b->args->by == NULL || b->args->holder->token[0] == '\0')
		return code == ZK_NO_AUTH ? ZK_OK : code;
	data = wire_get_text(&body);
	stat = wire_get_stat(&body);
	if (body.bad || (data.length > 0 && !metadata_read(data.bytes, data.length, &m)))
		return ZK_OK;
	(void)snprintf(broken.owner, sizeof(broken.owner), "%s", b->args->by);
	(void)snprintf(broken.broken, sizeof(broken.broken), "%.*s", TOKEN_LENGTH, b->args->holder->token);
	b->version = stat.version;
	metadata_write(&broken, b->record);
	return ZK_OK;
}

/* Delete the first entry if its first node is the one that was looked at, as its number tells, which never comes again. */
static enum zk_code
delete_head(struct breaking *b)
{
	struct session *const s = b->session;
	const int32_t list = session_put_path(s, WIRE_GET_CHILDREN2, b->lock);
	char path[PATH_SIZE];
	struct wire_request step = { .op = WIRE_DELETE, .path = path, .argument = -1 };
	struct queue queue = { .count = 0 };
	enum zk_code code = session_send(s, &b->limit);
	struct wire_text none;
	struct wire_in body;
	size_t i;

	if (code == ZK_OK)
		code = zk_take_queue(s, list, &queue, &b->limit);
	if (code == ZK_OK)
		code = zk_drop_keys(s, b->lock, &queue, queue.count, &b->limit);
	if (code == ZK_OK && (queue.count == 0 || !queue_path(&queue, 0, b->lock, path)))
		code = ZK_NO_NODE;
	if (code == ZK_OK)
		code = session_call(s, session_put_path(s, WIRE_EXISTS, path), &body, &b->limit);
	if (code == ZK_OK && wire_get_stat(&body).czxid != b->args->holder->fence)
		code = ZK_NO_NODE;
	if (code != ZK_OK)
		goto out;
	wire_multi_begin(&s->out, ++s->xid);
	for (i = 0; i < queue.count; i++) {
		if (queue_is_same(&queue, i, 0) && queue_path(&queue, i, b->lock, path))
			wire_multi_put(&s->out, &step);
	}
	step = (struct wire_request){ .op = WIRE_SET_DATA, .path = b->lock, .data = b->record, .argument = b->version };
	if (b->record[0] != '\0')
		wire_multi_put(&s->out, &step);
	wire_multi_end(&s->out);
	code = session_call(s, s->xid, &body, &b->limit);
	if (code == ZK_OK)
		code = wire_get_multi(&body, &none);
out:
	queue_free(&queue);
	return code;
}

enum status
zk_break(struct backend *backend, const struct break_args *args, enum ownership *ownership, struct err *err)
{
	struct zk_backend *z = (struct zk_backend *)backend;
	struct breaking b = { .session = &z->look, .args = args, .limit = { CLOCK_NEVER, -1 } };
	enum zk_code code;

	path_of_key(z->url.chroot, args->key, b.lock);
	code = zk_look_begin(z, &b.limit);
	if (code == ZK_OK)
		code = prepare_record(&b);
	if (code == ZK_OK)
		code = delete_head(&b);
	if ((code == ZK_BAD_VERSION || code == ZK_NO_AUTH) && b.record[0] != '\0') {
		b.record[0] = '\0'; /* that was the matter */
		code = delete_head(&b);
	}
	zk_look_end(z, code);
	*ownership = OWNED;
	if (code == ZK_OK)
		return ST_OK;
	if (code != ZK_NO_NODE)
		return zk_error(z, code, err);
	*ownership = zk_look_owner(z, args->key);
	return loss_error(*ownership, err);
}
