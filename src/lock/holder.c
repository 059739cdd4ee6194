/* SPDX-License-Identifier: MIT */
#include "lock/holder.h"

#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"

size_t
holder_owner_length(const char *owner)
{
	static const char *const suffixes[] = { OWNER_OF_ACQUIRE, OWNER_KEPT };
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
holder_is_kept(const struct holder *h)
{
	return strcmp(h->owner + holder_owner_length(h->owner), OWNER_KEPT) == 0;
}

void
holder_describe(const struct holder *h, const char *unknown, struct text *owner, struct text *label)
{
	if (h->owner[0] != '\0')
		text_add_quoted(owner, h->owner, holder_owner_length(h->owner));
	else
		text_addf(owner, "%s", unknown);
	if (h->label[0] != '\0') {
		text_addf(label, " (");
		text_add_quoted(label, h->label, strlen(h->label));
		text_addf(label, ")");
	}
}

/* "sh on host", or the owner if there is no label. */
static void
describe_command(const struct holder *h, struct text *text)
{
	const char *const at = strrchr(h->owner, '@'), *const host = at != NULL ? at + 1 : h->owner;

	if (h->label[0] == '\0') {
		holder_describe(h, "its command", text, text);
		return;
	}
	text_add_quoted(text, h->label, strlen(h->label));
	text_addf(text, " on ");
	text_add_quoted(text, host, strcspn(host, ":"));
}

void
holder_describe_hold(const struct holder *h, const char *held_by, struct text *text)
{
	const int64_t now_us = clock_wall_us();
	char at[TIME_SIZE], length[32];

	if (h->kept) {
		duration_show(h->ended_ms, length, sizeof(length));
		text_addf(text, "kept until %s", duration_show_time(now_us + h->left_ms * 1000, at));
		text_addf(text, h->kept_by[0] != '\0' ? " (--%s); " : "; ", h->kept_by);
		describe_command(h, text);
		text_addf(text, " ended %s ago", length);
		return;
	}
	text_addf(text, "%s", held_by);
	holder_describe(h,
	    h->client != NULL	? h->client
		: h->other_type ? "a foreign lock type (the key is not a string)"
				: "a client that is not dlock",
	    text, text);
	duration_show(h->left_ms, length, sizeof(length));
	text_addf(text, h->left_ms < 0 ? ", without expiry" : ", %s of its lease left", length);
	if (h->held_ms < 0)
		return;
	duration_show(h->held_ms, length, sizeof(length));
	text_addf(text, "; held since %s, for %s%s", duration_show_time(now_us - h->held_ms * 1000, at), length,
	    holder_from_acquire(h)  ? ", from acquire"
		: holder_is_kept(h) ? ", from acquire --keep"
				    : "");
}

enum status
holder_error(const struct holder *h, struct err *err)
{
	struct text text = text_in(err->text, sizeof(err->text));

	holder_describe_hold(h, "held by ", &text);
	return ST_HELD;
}

/* -- Other clients ---------------------------------------------------------- */

#define HEX "0123456789abcdef"
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/* A UUID as from uuid1() of Python: the version is 1, and the first bits of the variant are 10. */
static bool
is_time_uuid(const char *hex)
{
	return hex[12] == '1' && strchr("89ab", hex[16]) != NULL;
}

static const char *
client_of_string(const char *token)
{
	const size_t length = strlen(token);

	if (length == 32 && strspn(token, HEX) == 32)
		return is_time_uuid(token) ? "redis-py" : "node-redlock";
	if (length == 24 && strspn(token, BASE64) == 22 && strcmp(token + 22, "==") == 0)
		return "redsync";
	return NULL;
}

const char *
holder_other_client(const struct holder *h)
{
	static const char redisson[] = "########-####-####-####-############:";
	const char *thread = h->token + sizeof(redisson) - 1;

	if (!h->other_client || h->client != NULL)
		return h->client;
	if (strcmp(h->type, "hash") == 0 && text_begins_as(h->token, strlen(h->token), redisson) && thread[0] != '\0' &&
	    strspn(thread, "0123456789") == strlen(thread))
		return "Redisson";
	return strcmp(h->type, "string") == 0 ? client_of_string(h->token) : NULL;
}
