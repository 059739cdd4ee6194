/* SPDX-License-Identifier: MIT */
#include "lock/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"

/* -- The holder ------------------------------------------------------------- */

size_t
holder_owner_length(const char *owner)
{
	const char *const end = strrchr(owner, '/');
	const bool is_suffix = end != NULL && end > owner &&
	    (strcmp(end, OWNER_OF_ACQUIRE) == 0 || strcmp(end, OWNER_OF_KEEPER) == 0);

	return is_suffix ? (size_t)(end - owner) : strlen(owner);
}

bool
holder_from_acquire(const struct holder *h)
{
	return strcmp(h->owner + holder_owner_length(h->owner), OWNER_OF_ACQUIRE) == 0;
}

bool
holder_has_keeper(const struct holder *h)
{
	return strcmp(h->owner + holder_owner_length(h->owner), OWNER_OF_KEEPER) == 0;
}

bool
holder_has_ended(const struct holder *h)
{
	return h->state == LOCK_HANDOVER || h->state == LOCK_KEPT;
}

const char *
holder_client(const struct holder *h)
{
	return h->state == LOCK_FREE ? "" : h->state == LOCK_OTHER_CLIENT ? h->client : "dlock";
}

/* -- The sentence ----------------------------------------------------------- */

static void
add_owner(const struct holder *h, struct text *text)
{
	if (h->owner[0] != '\0')
		text_add_quoted(text, h->owner, holder_owner_length(h->owner));
	else if (h->other_type) /* "a hash": nobody is known to have such locks */
		text_addf(text,
		    strncmp(h->client, "a ", 2) == 0 ? "a foreign lock type (%s)" : "%s (a foreign lock type)",
		    h->client);
	else if (h->type[0] == '\0' && h->client[0] != '\0')
		text_addf(text, "%s", h->client);
	else
		text_addf(text,
		    h->client[0] != '\0' ? "a client that is not dlock (%s by its appearance)"
					 : "a client that is not dlock",
		    h->client);
}

/* "kept until 12:05:10 (--min-hold); LABEL on HOST ended 2s ago", with the owner if there is no label. */
static void
describe_kept(const struct holder *h, struct text *text)
{
	const char *const at = strrchr(h->owner, '@'), *const host = at != NULL ? at + 1 : h->owner;
	char until[TIME_SIZE], length[32];

	text_addf(text, "kept until %s", duration_show_time(clock_wall_us() + h->left_ms * 1000, until));
	text_addf(text, h->kept_by[0] != '\0' ? " (--%s); " : "; ", h->kept_by);
	if (h->label[0] != '\0') {
		text_add_quoted(text, h->label, strlen(h->label));
		text_addf(text, " on ");
		text_add_quoted(text, host, strcspn(host, ":"));
	} else if (h->owner[0] != '\0')
		text_add_quoted(text, h->owner, holder_owner_length(h->owner));
	else
		text_addf(text, "its command");
	duration_show(h->ended_ms, length, sizeof(length));
	text_addf(text, " ended %s ago", length);
}

void
holder_describe(const struct holder *h, const char *lead, struct text *const part[HOLDER_PARTS])
{
	char at[TIME_SIZE], length[32];

	if (h->state == LOCK_KEPT) {
		describe_kept(h, part[HOLDER_LABEL]);
		return;
	}
	if (h->state != LOCK_SHARED)
		text_addf(part[HOLDER_LEAD], "%s", lead);
	else if (h->holds == 0)
		text_addf(part[HOLDER_LEAD], "shared by readers, the first was ");
	else
		text_addf(part[HOLDER_LEAD], "shared by %" PRId64 " %s, the first was ", h->holds,
		    h->holds == 1 ? "reader" : "readers");
	add_owner(h, part[HOLDER_OWNER]);
	if (h->label[0] != '\0') {
		text_addf(part[HOLDER_LABEL], " (");
		text_add_quoted(part[HOLDER_LABEL], h->label, strlen(h->label));
		text_addf(part[HOLDER_LABEL], ")");
	}
	if (h->state == LOCK_HANDOVER)
		text_addf(part[HOLDER_LEFT], ", released already");
	duration_show(h->left_ms, length, sizeof(length));
	text_addf(part[HOLDER_LEFT],
	    h->left_ms < 0		  ? ", without expiry"
		: h->state == LOCK_SHARED ? ", %s of the lease left"
					  : ", %s of its lease left",
	    length);
	if (h->writer_waits)
		text_addf(part[HOLDER_LEFT], ", and a writer waits");
	if (h->held_ms < 0)
		return;
	duration_show(h->held_ms, length, sizeof(length));
	text_addf(part[HOLDER_SINCE], "; held since %s, for %s%s",
	    duration_show_time(clock_wall_us() - h->held_ms * 1000, at), length,
	    holder_from_acquire(h)     ? ", from acquire"
		: holder_has_keeper(h) ? ", from acquire --keep"
				       : "");
}

const char *
holder_lead(int slots, char lead[HOLDER_LEAD_SIZE])
{
	(void)snprintf(lead, HOLDER_LEAD_SIZE,
	    slots == 0	     ? "held by "
		: slots == 1 ? "the only slot is held by "
			     : "all %d slots are held; the first to end is held by ",
	    slots);
	return lead;
}

void
holder_say(const struct holder *h, const char *lead, struct text *text)
{
	struct text *const parts[HOLDER_PARTS] = { text, text, text, text, text };

	holder_describe(h, lead, parts);
}

enum status
holder_error(const struct holder *h, int slots, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));
	char lead[HOLDER_LEAD_SIZE];

	holder_say(h, holder_lead(slots, lead), &text);
	return ST_HELD;
}

enum status
holder_crowded(int64_t waiters, int most, struct err *err)
{
	const struct err held = *err;

	return err_set(err, ST_HELD, "%" PRId64 " %s already (--max-waiters %d); %s", waiters,
	    waiters == 1 ? "waits" : "wait", most, held.text);
}

/* -- The record ------------------------------------------------------------- */

const char *
record_state(enum lock_state state)
{
	static const char *const names[] = { [LOCK_FREE] = "free",
		[LOCK_HELD] = "held",
		[LOCK_SHARED] = "shared",
		[LOCK_HANDOVER] = "handover",
		[LOCK_KEPT] = "kept",
		[LOCK_OTHER_CLIENT] = "foreign",
		[LOCK_CONTENDED] = "contended",
		[LOCK_UNKNOWN] = "unknown" };

	return names[state];
}

const struct holder *
record_holder(const struct record *r)
{
	static const struct holder nobody;

	return r->state == LOCK_FREE || r->state == LOCK_CONTENDED || r->state == LOCK_UNKNOWN ? &nobody
											       : &r->holder[0];
}

void
record_note_break(struct record *r, const struct broken *b)
{
	if (b->token[0] != '\0' && (r->broken.token[0] == '\0' || b->ago_ms < r->broken.ago_ms))
		r->broken = *b;
}

const struct former *
record_last(const struct record *r)
{
	size_t i = 0;

	while (i < r->formers && strcmp(r->former[i].outcome, "held") == 0)
		i++;
	return i < r->formers ? &r->former[i] : NULL;
}

bool
former_succeeded(const struct former *f)
{
	return strcmp(f->outcome, "released") == 0 ||
	    (strcmp(f->outcome, "ran") == 0 && f->command.is && f->command.status == 0);
}

void
record_free(struct record *r)
{
	free(r->former);
	free(r->waiter);
	r->former = NULL;
	r->waiter = NULL;
	r->formers = r->former_room = r->waiters = r->waiter_room = 0;
}

/* -- Merging ---------------------------------------------------------------- */

/* Are these the same holder?  The token alone identifies a lock of dlock, and the exact value of the key any other. */
static bool
is_same(const struct holder *a, const struct holder *b)
{
	if (strcmp(a->token, b->token) != 0)
		return false;
	if (a->fingerprint[0] == '\0' && b->fingerprint[0] == '\0')
		return true;
	return (a->state == LOCK_OTHER_CLIENT) == (b->state == LOCK_OTHER_CLIENT) &&
	    (a->state != LOCK_OTHER_CLIENT || strcmp(a->fingerprint, b->fingerprint) == 0);
}

/* Does a lease last at least that long?  Negative: it never ends. */
static bool
lasts(int64_t left_ms, int64_t long_ms)
{
	return left_ms < 0 || (long_ms >= 0 && left_ms >= long_ms);
}

/* A holder, and the nodes that report it. */
struct side {
	bool member[NODES_MAX];
	int members;
	int most; /* of its members have the state of the one that represents it */
};

/*
 * Collect the nodes that agree with this one.  Some of them may see the lock as released already, or lack its metadata:
 * the report of most of them counts.  Returns the one that represents them.
 */
static int
take_side(const struct record *r, const struct holder *said, int node, struct side *side)
{
	int i, j, same, best = node;

	memset(side, 0, sizeof(*side));
	for (i = 0; i < r->nodes; i++) {
		side->member[i] = r->node[i].state != LOCK_UNKNOWN &&
		    (r->node[i].state == LOCK_FREE) == (r->node[node].state == LOCK_FREE) &&
		    (r->node[i].state == LOCK_FREE || is_same(&said[i], &said[node]));
		side->members += side->member[i];
	}
	for (i = 0; i < r->nodes; i++) {
		for (j = 0, same = 0; j < r->nodes; j++)
			same += side->member[j] && r->node[i].state == r->node[j].state;
		if (side->member[i] && same > side->most) {
			side->most = same;
			best = i;
		}
	}
	return best;
}

/* Add a holder: the facts its nodes surely share, and the largest numbers of holds and waiters that any reports. */
static void
add_holder(struct record *r, const struct holder *said, int node, const struct side *side)
{
	struct holder *const h = &r->holder[r->holders++];
	int i, j, lasting, fences;

	*h = said[node];
	h->state = r->node[node].state;
	h->nodes = side->members;
	h->left_ms = h->fence = 0;
	for (i = 0; i < r->nodes; i++) {
		if (!side->member[i])
			continue;
		for (j = 0, lasting = 0, fences = 0; j < r->nodes; j++) {
			lasting += side->member[j] && lasts(r->node[j].left_ms, r->node[i].left_ms);
			fences += side->member[j] && said[j].fence == said[i].fence;
		}
		if (lasting >= quorum_majority(r->nodes) && lasts(r->node[i].left_ms, h->left_ms))
			h->left_ms = r->node[i].left_ms;
		if (fences >= quorum_majority(r->nodes))
			h->fence = said[i].fence;
		h->waiting = said[i].waiting > h->waiting ? said[i].waiting : h->waiting;
		h->holds = said[i].holds > h->holds ? said[i].holds : h->holds;
	}
	if (side->members < quorum_majority(r->nodes))
		h->left_ms = said[node].left_ms;
}

bool
record_merge(struct record *r, const struct holder said[NODES_MAX])
{
	bool taken[NODES_MAX] = { false };
	struct side side;
	int i, j, node, known = 0;

	r->state = LOCK_UNKNOWN;
	r->holders = r->agreeing = 0;
	for (i = 0; i < r->nodes; i++) {
		known += r->node[i].state != LOCK_UNKNOWN;
		if (r->node[i].state == LOCK_UNKNOWN || taken[i])
			continue;
		node = take_side(r, said, i, &side);
		for (j = 0; j < r->nodes; j++)
			taken[j] |= side.member[j];
		r->agreeing = side.members > r->agreeing ? side.members : r->agreeing;
		if (side.members >= quorum_majority(r->nodes)) {
			r->state = r->node[node].state;
			r->holders = 0;
		}
		if (r->node[node].state != LOCK_FREE)
			add_holder(r, said, node, &side);
		if (r->state != LOCK_UNKNOWN)
			return true;
	}
	if (known >= quorum_majority(r->nodes))
		r->state = LOCK_CONTENDED;
	else
		r->holders = 0;
	return r->state == LOCK_CONTENDED;
}
