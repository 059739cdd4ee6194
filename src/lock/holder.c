/* SPDX-License-Identifier: MIT */
#include "lock/holder.h"

#include <string.h>

#include "base/clock.h"
#include "base/duration.h"

size_t
holder_owner_length(const char *owner)
{
	static const char *const suffixes[] = { OWNER_OF_ACQUIRE, OWNER_OF_KEEPER };
	const size_t length = strlen(owner);
	size_t i, suffix;

	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		suffix = strlen(suffixes[i]);
		if (length > suffix && strcmp(owner + length - suffix, suffixes[i]) == 0)
			return length - suffix;
	}
	return length;
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
	text_addf(part[HOLDER_LEAD], "%s", lead);
	add_owner(h, part[HOLDER_OWNER]);
	if (h->label[0] != '\0') {
		text_addf(part[HOLDER_LABEL], " (");
		text_add_quoted(part[HOLDER_LABEL], h->label, strlen(h->label));
		text_addf(part[HOLDER_LABEL], ")");
	}
	if (h->state == LOCK_HANDOVER)
		text_addf(part[HOLDER_LEFT], ", released already");
	duration_show(h->left_ms, length, sizeof(length));
	text_addf(part[HOLDER_LEFT], h->left_ms < 0 ? ", without expiry" : ", %s of its lease left", length);
	if (h->held_ms < 0)
		return;
	duration_show(h->held_ms, length, sizeof(length));
	text_addf(part[HOLDER_SINCE], "; held since %s, for %s%s",
	    duration_show_time(clock_wall_us() - h->held_ms * 1000, at), length,
	    holder_from_acquire(h)     ? ", from acquire"
		: holder_has_keeper(h) ? ", from acquire --keep"
				       : "");
}

void
holder_say(const struct holder *h, const char *lead, struct text *text)
{
	struct text *const parts[HOLDER_PARTS] = { text, text, text, text, text };

	holder_describe(h, lead, parts);
}

enum status
holder_error(const struct holder *h, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));

	holder_say(h, "held by ", &text);
	return ST_HELD;
}
