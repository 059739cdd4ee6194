/* SPDX-License-Identifier: MIT */
/*
 * Looking at locks: inspect.lua for the state, break.lua for what exactly the nodes hold, history.lua for the rest; and
 * last.lua for all of it about the many that are free.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "lock/history.h"
#include "redis/operations.h"

#define SHORT_US 2000		     /* for nodes that were unresponsive before */
#define MONTH_MS INT64_C(2592000000) /* the history expires so long after the last lease, see history.lua */
#define ENTRIES_OF_LAST 4 /* of attempts that failed, the lock that is held, and the one that ended before it */

/* A question about one lock, with SCRIPT_LAST about several: one script on all nodes. */
struct query {
	struct look *look;
	struct record *record;
	int records;
	int replies; /* errors included */
	enum script script;
	struct ballot ballot; /* yes: the reply has been read */
	struct node_error error[NODES_MAX];
	struct holder said[NODES_MAX]; /* SCRIPT_INSPECT; SCRIPT_BREAK: only the fingerprint is set */
};

/* The queries of several locks at the same time. */
struct look {
	struct nodes *nodes;
	const struct look_args *args;
	unsigned int what; /* that of `args`; if LOOK_LAST was not enough, more */
	struct record *record;
	struct query *query;
	int queries;
	bool known[LOOK_COUNT_MAX]; /* these records are filled in */
	bool no_memory;
};

/* -- Replies ---------------------------------------------------------------- */

/* A number of milliseconds that is safe for arithmetic, whatever the server sent; -1 if it is not known. */
static int64_t
read_ms(const struct reply *list, size_t index)
{
	const int64_t ms = reply_integer(reply_item(list, index));

	return ms >= 0 && ms <= LATEST_MS ? ms : -1;
}

/* False: malformed. */
static bool
read_history(struct query *q, int node, const struct reply *reply)
{
	const struct reply *const entries = reply_item(reply, 3), *const waiters = reply_item(reply, 4);
	struct history_source source = { .now_ms = read_ms(reply, 0),
		.holder = reply_text(reply_item(reply, 1)),
		.lease_ended_ms = -1 };
	bool fine = true;
	size_t i;

	if (reply_items(reply) != 5)
		return false;
	if (read_ms(reply, 2) >= 0)
		source.lease_ended_ms = source.now_ms + read_ms(reply, 2) - MONTH_MS;
	for (i = 0; i < reply_items(entries); i++)
		fine = fine && history_add(q->record, &source, i, reply_text(reply_item(entries, i)));
	for (i = 0; i < reply_items(waiters); i++)
		fine = fine && history_add_waiter(q->record, node, i, reply_text(reply_item(waiters, i)));
	q->look->no_memory |= !fine;
	return true;
}

/* Of a node that would have to say more the state remains unknown. */
static bool
read_last(struct query *q, int node, const struct reply *reply)
{
	const struct history_source source = { .now_ms = read_ms(reply, 0), .holder = "", .lease_ended_ms = -1 };
	const struct reply *entry;
	bool fine = true;
	int i;

	if (reply_items(reply) != (size_t)q->records + 1)
		return false;
	for (i = 0; i < q->records; i++) {
		entry = reply_item(reply, (size_t)i + 1);
		if (reply_kind(entry) != REPLY_TEXT)
			continue;
		q->record[i].node[node].state = LOCK_FREE;
		fine = fine && history_add(&q->record[i], &source, 0, reply_text(entry));
	}
	q->look->no_memory |= !fine;
	return true;
}

static bool
read_state(struct query *q, int node, const struct reply *reply)
{
	struct node_view *const view = &q->record->node[node];
	struct holder *const said = &q->said[node];
	struct broken broken;

	if (!answer_inspect(reply, said, &broken))
		return false;
	record_note_break(q->record, &broken);
	view->state = said->state;
	view->up_s = reply_integer(reply_item(reply, 14));
	view->left_ms = said->state != LOCK_FREE ? said->left_ms : 0;
	return true;
}

static void
replied(void *context, int node, const struct result *d)
{
	struct query *const q = context;
	bool fine = true;

	q->ballot.vote[node] = VOTE_FAULT;
	q->replies += d->reply != NULL;
	if (!answer_is_reply(d, &q->error[node]))
		return;
	if (q->script == SCRIPT_INSPECT)
		fine = read_state(q, node, d->reply);
	else if (q->script == SCRIPT_HISTORY)
		fine = read_history(q, node, d->reply);
	else if (q->script == SCRIPT_LAST)
		fine = read_last(q, node, d->reply);
	else
		(void)snprintf(q->said[node].fingerprint, FINGERPRINT_SIZE, "%s", reply_text(d->reply));
	if (fine)
		q->ballot.vote[node] = VOTE_YES;
	else
		answer_fail_unexpected(&q->error[node]);
}

/* -- A look ----------------------------------------------------------------- */

static void
send_query(struct look *l, const struct command *request, enum script script, struct record *record, int records)
{
	struct query *const q = &l->query[l->queries++];
	int i, k;

	q->look = l;
	q->record = record;
	q->records = records;
	q->script = script;
	q->ballot.nodes = l->nodes->count;
	for (k = 0; k < records; k++) {
		record[k].nodes = l->nodes->count;
		for (i = 0; i < l->nodes->count; i++) {
			record[k].node[i].name = node_name(l->nodes->node[i]);
			record[k].node[i].state = LOCK_UNKNOWN;
		}
	}
	nodes_send_all(l->nodes, request, replied, q);
}

static void
ask(struct look *l, struct record *record, enum script script)
{
	struct command request;
	struct keys names;

	keys_of(record->key, &names);
	command_eval(&request, script, &names, " ");
	if (script == SCRIPT_BREAK)
		command_add(&request, "");
	else if (script == SCRIPT_INSPECT && l->args->lost != NULL)
		command_add(&request, l->args->lost);
	else if (script == SCRIPT_HISTORY && (l->args->what & LOOK_LAST) != 0)
		command_add_number(&request, ENTRIES_OF_LAST);
	send_query(l, &request, script, record, 1);
}

/* The number of locks that a request may be about: in a Cluster, where a script has only keys of one slot, one. */
static int
locks_together(const struct look *l)
{
	int i, together = l->args->count;

	for (i = 0; i < l->nodes->count; i++)
		together = node_url(l->nodes->node[i])->kind == URL_CLUSTER ? 1 : together;
	return together;
}

static void
ask_last(struct look *l)
{
	struct keys *const names = malloc((size_t)l->args->count * sizeof(*names));
	const int together = locks_together(l);
	struct command request;
	int i, at;

	l->no_memory = names == NULL;
	if (names == NULL)
		return;
	for (i = 0; i < l->args->count; i++)
		keys_of(l->record[i].key, &names[i]);
	for (at = 0; at < l->args->count; at += together) {
		command_last(&request, names + at, together);
		send_query(l, &request, SCRIPT_LAST, l->record + at, together);
	}
	free(names);
}

/*
 * Wait for all replies, but only a short time once a majority has replied about everything, and the others can't change
 * what is shown: another node may be hung.  A break waits: without the vote of a node that is merely late, a holder
 * seems to have no majority, and the others would be broken, too.
 */
static enum loop_event
collect_replies(struct look *l)
{
	const int64_t began_us = clock_now_us();
	struct waiting w = { .nodes = l->nodes,
		.limit = { clock_add(began_us, l->nodes->node_timeout_us), l->args->wait.interrupt_fd },
		.patience = (l->what & LOOK_EXACT) != 0 ? EVERYBODY : AS_FAR_AWAY,
		.began_us = began_us };
	const int majority = quorum_majority(l->nodes->count);
	int i, pending, hung, missing;
	struct query *q;
	bool settled;

	do {
		pending = hung = 0;
		settled = true;
		for (q = l->query; q < l->query + l->queries; q++) {
			missing = quorum_count(&q->ballot, VOTE_PENDING);
			pending += missing;
			for (i = 0; i < l->nodes->count; i++)
				hung += q->ballot.vote[i] == VOTE_PENDING && l->nodes->unresponsive[i];
			if (q->script != SCRIPT_BREAK && quorum_count(&q->ballot, VOTE_YES) < majority)
				settled = false;
			else if (q->script == SCRIPT_HISTORY)
				settled = settled && history_is_settled(q->record, l->nodes->count, missing);
		}
		if (settled && pending > 0 && pending == hung)
			w.limit.until_us = clock_sooner(w.limit.until_us,
			    clock_now_us() + SHORT_US + 2 * (clock_now_us() - began_us));
	} while (nodes_await(&w, pending == 0 ? ROUND_OVER : settled ? ROUND_DECIDED : ROUND_OPEN));
	for (q = l->query; q < l->query + l->queries; q++) {
		q->ballot.closed = true;
		nodes_note_unresponsive(l->nodes, &q->ballot);
	}
	return w.event;
}

/* -- The result ------------------------------------------------------------- */

/* Say of each node without a state why. */
static void
explain_unknown(const struct query *q, struct record *r)
{
	int i;

	for (i = 0; i < r->nodes; i++) {
		if (r->node[i].state != LOCK_UNKNOWN)
			continue;
		r->hidden |= q->error[i].of_keys;
		if (q->error[i].why.kind != NO_FAILURE)
			r->node[i].reason = q->error[i].why.reason;
		else
			reason_set(&r->node[i].reason, "%s", node_waits_for(q->look->nodes->node[i]));
	}
}

/*
 * The state, with the fingerprints if they were asked for.  The lock of another client can't be broken without its own:
 * then this is an error.
 */
static enum status
conclude_state(struct query *q, const struct query *exact, struct err *err)
{
	struct record *const r = q->record;
	enum status status = ST_OK;
	struct node_view *view;
	int i;

	for (i = 0; i < r->nodes; i++) {
		view = &r->node[i];
		if (exact != NULL)
			memcpy(q->said[i].fingerprint, exact->said[i].fingerprint, FINGERPRINT_SIZE);
		if (exact != NULL && status == ST_OK && view->state == LOCK_OTHER_CLIENT &&
		    exact->said[i].fingerprint[0] == '\0' && exact->error[i].why.kind != NO_FAILURE)
			status = err_set(err, exact->error[i].why.kind == DENIED ? ST_DENIED : ST_NO_QUORUM, "%s: %s",
			    view->name, exact->error[i].why.reason.text);
	}
	explain_unknown(q, r);
	(void)record_merge(r, q->said);
	return status;
}

/* Of a lock that all who replied know as free there is no more to know; any other one is looked at again. */
static void
conclude_last(struct look *l, const struct query *q)
{
	static const struct holder nobody[NODES_MAX];
	const int known = quorum_count(&q->ballot, VOTE_YES), nodes = q->ballot.nodes;
	struct record *r;
	int i, free;

	for (r = q->record; r < q->record + q->records; r++) {
		for (i = 0, free = 0; i < nodes; i++)
			free += r->node[i].state == LOCK_FREE;
		l->known[r - l->record] = free == known && record_merge(r, nobody);
		if (l->known[r - l->record]) {
			r->answered = q->replies;
			explain_unknown(q, r);
			history_finish(r, nodes, nodes - known);
		} else {
			record_free(r);
			*r = (struct record){ .key = r->key };
		}
	}
}

/* The query for the fingerprints, if there is one, precedes the one for the state. */
static void
conclude(struct query *q)
{
	const int known = quorum_count(&q->ballot, VOTE_YES), nodes = q->ballot.nodes;
	const bool enough = known >= quorum_majority(nodes);
	struct record *const r = q->record;
	enum status status = ST_OK;
	struct err err;

	if (q->script == SCRIPT_INSPECT) {
		r->answered = q->replies;
		status = conclude_state(q, q > q->look->query && q[-1].script == SCRIPT_BREAK ? q - 1 : NULL, &err);
	} else if (enough)
		history_finish(r, nodes, nodes - known);
	else
		record_free(r);
	if (!enough)
		status = nodes_no_quorum(q->look->nodes, &q->ballot, q->error, &err);
	if (status != ST_OK &&
	    (q->script == SCRIPT_INSPECT || (q->look->args->what & LOOK_LAST) != 0 ||
		(q->look->what & LOOK_STATE) == 0)) {
		r->status = status;
		r->err = err;
	}
}

/* Ask about the records that are not known yet, and fill them in. */
static enum loop_event
look_once(struct look *l)
{
	const unsigned int what = l->what;
	enum loop_event event;
	struct query *q;
	int i, most;

	most = (what & LOOK_LAST) != 0 ? l->args->count / locks_together(l) : l->args->count * 3;
	l->query = calloc((size_t)most, sizeof(*l->query)); /* they are large */
	l->queries = 0;
	l->no_memory = l->query == NULL;
	if (l->no_memory)
		return LOOP_ACTIVE;
	nodes_begin_round(l->nodes);
	if ((what & LOOK_LAST) != 0)
		ask_last(l);
	for (i = 0; i < l->args->count; i++) {
		/*
		 * First: if the holder changes between the two replies, break_holder() finds a different fingerprint.
		 */
		if ((what & LOOK_EXACT) != 0)
			ask(l, &l->record[i], SCRIPT_BREAK);
		if ((what & LOOK_STATE) != 0 && !l->known[i])
			ask(l, &l->record[i], SCRIPT_INSPECT);
		if ((what & (LOOK_WAITERS | LOOK_HISTORY)) != 0 && !l->known[i])
			ask(l, &l->record[i], SCRIPT_HISTORY);
	}
	if (l->args->meanwhile != NULL && what == l->args->what)
		l->args->meanwhile(l->args->context);
	event = collect_replies(l);
	for (q = l->query; q < l->query + l->queries; q++) {
		nodes_cancel(l->nodes, q);
		if (q->script == SCRIPT_BREAK || event == LOOP_INTERRUPTED || l->no_memory)
			continue;
		if (q->script == SCRIPT_LAST)
			conclude_last(l, q);
		else
			conclude(q);
	}
	free(l->query);
	return event;
}

enum status
redis_look(struct backend *backend, const struct look_args *args, struct record *record, struct err *err)
{
	struct look l = { .nodes = &((struct redis_backend *)backend)->nodes,
		.args = args,
		.what = args->what,
		.record = record };
	enum loop_event event = look_once(&l);
	int i = 0;

	while ((args->what & LOOK_LAST) != 0 && i < args->count && l.known[i])
		i++;
	if ((args->what & LOOK_LAST) != 0 && i < args->count && event != LOOP_INTERRUPTED && !l.no_memory) {
		l.what = LOOK_STATE | LOOK_HISTORY;
		event = look_once(&l);
	}
	if (event == LOOP_INTERRUPTED)
		return err_set(err, ST_INTERRUPTED, "interrupted");
	return l.no_memory ? err_set(err, ST_SYSTEM, OUT_OF_MEMORY) : ST_OK;
}

/* -- The list of locks ------------------------------------------------------ */

enum {
	CURSOR_SIZE = 24,
	CURSOR_KEYS = 1000,    /* COUNT of one SCAN: small enough not to block a server for long */
	ANSWERS_MAX = 1 << 20, /* a faulty server may return cursors forever: this many are for a billion keys */
	NAMES_MAX = 10000000
};

struct listing {
	struct redis_backend *backend;
	const char *pattern;		     /* NULL: all */
	bool last;			     /* locks of dlock, also those that have only a history */
	char match[3 * KEY_MAX + 16];	     /* for SCAN */
	char cursor[NODES_MAX][CURSOR_SIZE]; /* for the next SCAN */
	int answers[NODES_MAX];		     /* of all servers of the node */
	size_t names[NODES_MAX];
	int part[NODES_MAX];  /* in a Cluster: the server that is scanned */
	struct ballot ballot; /* yes: all keys received */
	struct node_error error[NODES_MAX];
	struct waiting waiting;
	struct names *keys;
	size_t sort_at;
	bool no_memory;
};

/*
 * Add a name from SCAN: the key of a lock, or, when locks of dlock are listed, a sibling, which names its lock.
 * Doubles are removed from time to time, so that the size depends on the number of locks: a lock is on several nodes,
 * and SCAN may return a name twice.
 */
static void
add_name(struct listing *l, const char *name)
{
	const bool all = l->pattern == NULL || l->last;
	char key[KEY_MAX + 1];
	const enum sibling is = keys_sibling(name, key);

	if (all ? is != METADATA && (is != HISTORY || !l->last)
		: is != SIBLINGS || name[0] == '\0' || strlen(name) > KEY_MAX)
		return;
	if (all && l->pattern != NULL && fnmatch(l->pattern, key, 0) != 0)
		return;
	if (l->keys->count > l->sort_at) {
		names_sort(l->keys);
		l->no_memory |= !names_shrink(l->keys);
		l->sort_at = 2 * l->keys->count + CURSOR_KEYS;
	}
	l->no_memory |= !names_add(l->keys, all ? key : name);
}

static void scan_replied(void *context, int node, const struct result *);

static void
scan_on(struct listing *l, int node)
{
	struct command scan;

	command_begin(&scan, "SCAN %s MATCH %s COUNT %d", l->cursor[node], l->match, CURSOR_KEYS);
	scan.part = l->part[node];
	node_send(l->backend->nodes.node[node], &scan, scan_replied, l);
}

/* All replies of a node are waited for, but once a majority has returned everything each of them has to come soon. */
static void
begin_to_wait(struct listing *l)
{
	l->waiting.limit.until_us = clock_add(clock_now_us(), l->backend->nodes.node_timeout_us);
	l->waiting.began_us = clock_now_us();
	l->waiting.late_us = 0;
}

static void
scan_replied(void *context, int node, const struct result *d)
{
	struct listing *l = context;
	const struct reply *names = reply_item(d->reply, 1);
	const char *cursor = reply_text(reply_item(d->reply, 0));
	bool at_end;
	size_t i;

	l->ballot.vote[node] = VOTE_FAULT;
	if (!answer_is_reply(d, &l->error[node]))
		return;
	if (reply_kind(names) != REPLY_LIST || cursor[0] == '\0' || strlen(cursor) >= CURSOR_SIZE) {
		answer_fail_unexpected(&l->error[node]);
		return;
	}
	for (i = 0; i < reply_items(names); i++)
		add_name(l, reply_text(reply_item(names, i)));
	l->names[node] += reply_items(names);
	at_end = strcmp(cursor, "0") == 0;
	if ((!at_end && strcmp(cursor, l->cursor[node]) == 0) || ++l->answers[node] > ANSWERS_MAX ||
	    l->names[node] > NAMES_MAX) {
		answer_fail(&l->error[node], false, "its SCAN does not end");
		return;
	}
	(void)snprintf(l->cursor[node], CURSOR_SIZE, "%s", cursor);
	if (at_end)
		l->part[node]++;
	l->ballot.vote[node] = l->part[node] < node_parts(l->backend->nodes.node[node]) ? VOTE_PENDING : VOTE_YES;
	begin_to_wait(l);
	if (l->ballot.vote[node] == VOTE_PENDING)
		scan_on(l, node);
}

enum status
redis_list(struct backend *backend, const char *pattern, const struct look_args *args, struct names *keys,
    struct err *err)
{
	struct listing l = { .backend = (struct redis_backend *)backend,
		.pattern = pattern,
		.last = (args->what & LOOK_LAST) != 0,
		.keys = keys };
	struct nodes *const n = &l.backend->nodes;
	const int majority = quorum_majority(n->count);
	enum standing standing;
	int i;

	l.waiting = (struct waiting){ .nodes = n,
		.limit.interrupt_fd = args->wait.interrupt_fd,
		.patience = AS_FAR_AWAY };
	/*
	 * In the name of a sibling a KEY has something before and behind it, which would change what "[" or "\" means.
	 */
	(void)snprintf(l.match, sizeof(l.match),
	    pattern == NULL || (l.last && strpbrk(pattern, "[\\") != NULL) ? "*:dlock*"
		: l.last						   ? "*%s*:dlock*"
									   : "%s",
	    pattern);
	begin_to_wait(&l);
	l.ballot.nodes = n->count;
	for (i = 0; i < n->count; i++) {
		(void)snprintf(l.cursor[i], CURSOR_SIZE, "0");
		scan_on(&l, i);
	}
	do
		standing = l.no_memory || quorum_count(&l.ballot, VOTE_PENDING) == 0 ? ROUND_OVER
		    : quorum_count(&l.ballot, VOTE_YES) >= majority		     ? ROUND_DECIDED
										     : ROUND_OPEN;
	while (nodes_await(&l.waiting, standing));
	nodes_cancel(n, &l);
	l.ballot.closed = true;
	names_sort(keys);
	if (l.waiting.event == LOOP_INTERRUPTED)
		return ST_INTERRUPTED;
	if (l.no_memory)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	if (quorum_count(&l.ballot, VOTE_YES) < majority)
		return nodes_no_quorum(n, &l.ballot, l.error, err);
	return ST_OK;
}
