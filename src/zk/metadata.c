/* SPDX-License-Identifier: MIT */
#include "zk/metadata.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"
#include "net/authority.h"

static const char first_line[] = "dlock 1\n";

/* -- Writing ---------------------------------------------------------------- */

static void
put_text(struct text *data, const char *name, const char *value)
{
	if (value[0] == '\0')
		return;
	text_addf(data, "%s ", name);
	for (; *value != '\0'; value++)
		text_addf(data, (unsigned char)*value < ' ' || *value == '%' ? "%%%02X" : "%c", (unsigned char)*value);
	text_add(data, "\n", 1);
}

void
metadata_write(const struct metadata *m, char data[METADATA_SIZE])
{
	struct text text = text_in(data, METADATA_SIZE);
	int i;

	text_addf(&text, "%s", first_line);
	put_text(&text, "owner", m->owner);
	put_text(&text, "label", m->label);
	text_addf(&text, "ttl_ms %" PRId64 "\nsince_ms %" PRId64 "\n", m->ttl_ms, m->since_ms);
	if (m->slot > 0)
		text_addf(&text, "slot %" PRId64 "\n", m->slot);
	put_text(&text, "kept", m->kept_by);
	put_text(&text, "asked", m->asked_by);
	put_text(&text, "replaces", m->replaces ? "yes" : "");
	put_text(&text, "broken", m->broken);
	for (i = 0; i < m->holds; i++)
		put_text(&text, "hold", m->hold[i]);
}

/* -- Reading ---------------------------------------------------------------- */

/* A line end follows it. */
static bool
get_number(struct url_part value, int64_t *number)
{
	char *end;

	if (*value.at < '0' || *value.at > '9') /* strtoll(3) would skip blanks, and the end of the line */
		return false;
	*number = strtoll(value.at, &end, 10);
	return value.length <= 18 && end == value.at + value.length;
}

static bool
is_named(struct url_part name, const char *expected)
{
	return name.length == strlen(expected) && memcmp(name.at, expected, name.length) == 0;
}

/* Read one line.  The name of an option is printed as it is. */
static bool
get_line(struct url_part name, struct url_part value, struct metadata *m)
{
	if (is_named(name, "owner"))
		return url_decode(value, m->owner, sizeof(m->owner));
	if (is_named(name, "label"))
		return url_decode(value, m->label, sizeof(m->label));
	if (is_named(name, "ttl_ms"))
		return get_number(value, &m->ttl_ms);
	if (is_named(name, "since_ms"))
		return get_number(value, &m->since_ms);
	if (is_named(name, "kept"))
		return url_decode(value, m->kept_by, sizeof(m->kept_by)) &&
		    strspn(m->kept_by, "abcdefghijklmnopqrstuvwxyz-") == strlen(m->kept_by);
	if (is_named(name, "slot"))
		return get_number(value, &m->slot);
	if (is_named(name, "asked"))
		return url_decode(value, m->asked_by, sizeof(m->asked_by));
	m->replaces = m->replaces || is_named(name, "replaces");
	if (is_named(name, "broken"))
		return url_decode(value, m->broken, sizeof(m->broken));
	if (is_named(name, "hold"))
		return m->holds < METADATA_HOLDS && url_decode(value, m->hold[m->holds++], sizeof(m->hold[0]));
	return true;
}

bool
metadata_read(const char *bytes, size_t length, struct metadata *m)
{
	const size_t first = sizeof(first_line) - 1;
	const char *const end = bytes + length;
	const char *line, *blank, *line_end;

	memset(m, 0, sizeof(*m));
	if (length < first || length >= METADATA_SIZE || memcmp(bytes, first_line, first) != 0 ||
	    memchr(bytes, '\0', length) != NULL)
		return false;
	for (line = bytes + first; line < end; line = line_end + 1) {
		line_end = memchr(line, '\n', (size_t)(end - line));
		blank = line_end != NULL ? memchr(line, ' ', (size_t)(line_end - line)) : NULL;
		if (blank == NULL || blank + 1 == line_end ||
		    !get_line((struct url_part){ line, (size_t)(blank - line) },
			(struct url_part){ blank + 1, (size_t)(line_end - blank - 1) }, m))
			return false;
	}
	return true;
}

/* -- Holds ------------------------------------------------------------------ */

int
metadata_holds(const struct metadata *m)
{
	return m->holds > 0 ? m->holds : 1;
}

static int
find_hold(const struct metadata *m, const char *hold)
{
	int i;

	for (i = 0; i < m->holds; i++) {
		if (strcmp(m->hold[i], hold) == 0)
			return i;
	}
	return -1;
}

bool
metadata_has_hold(const struct metadata *m, const char *hold)
{
	return m->holds == 0 ? strcmp(hold, METADATA_FIRST_HOLD) == 0 : find_hold(m, hold) >= 0;
}

bool
metadata_add_hold(struct metadata *m, const char *hold)
{
	if (m->holds == 0)
		(void)snprintf(m->hold[m->holds++], sizeof(m->hold[0]), "%s", METADATA_FIRST_HOLD);
	if (find_hold(m, hold) >= 0) /* added by an earlier try, whose reply was lost */
		return true;
	if (m->holds == METADATA_HOLDS)
		return false;
	(void)snprintf(m->hold[m->holds++], sizeof(m->hold[0]), "%s", hold);
	return true;
}

bool
metadata_remove_hold(struct metadata *m, const char *hold)
{
	const int at = find_hold(m, hold);

	if (at < 0)
		return false;
	m->holds--;
	memmove(m->hold[at], m->hold[at + 1], (size_t)(m->holds - at) * sizeof(m->hold[0]));
	return true;
}

/* -- Tokens ----------------------------------------------------------------- */

#define ENTRY_PREFIX 3 /* length of the "_c_" before the UUID in the name of a node */

#define SHARED ((uint32_t)1 << 31)

/* The characters of a token stand for these bytes.  The numbers are big-endian. */
struct token_bytes {
	unsigned char uuid[ZK_UUID_SIZE];
	uint64_t session;
	unsigned char password[WIRE_PASSWORD_SIZE];
	uint32_t length_ms; /* with SHARED, if it is of a reader */
	uint32_t number;
};

_Static_assert(sizeof(struct token_bytes) == ZK_TOKEN_LENGTH / 4 * 3, "there is no padding");
_Static_assert(ZK_TOKEN_LENGTH + 1 + METADATA_HOLD_LENGTH < TOKEN_SIZE, "there is room for a hold");

void
zk_token_write(const struct zk_token *token, char text[TOKEN_SIZE])
{
	struct token_bytes bytes = { .session = htobe64((uint64_t)token->session.id),
		.length_ms = htobe32((uint32_t)token->session.length_ms | (token->shared ? SHARED : 0)),
		.number = htobe32((uint32_t)token->number) };

	memcpy(bytes.uuid, token->uuid, sizeof(bytes.uuid));
	memcpy(bytes.password, token->session.password, sizeof(bytes.password));
	token_encode((const unsigned char *)&bytes, sizeof(bytes), text);
	if (strcmp(token->hold, METADATA_FIRST_HOLD) != 0)
		(void)snprintf(text + ZK_TOKEN_LENGTH, TOKEN_SIZE - ZK_TOKEN_LENGTH, ".%s", token->hold);
}

bool
zk_token_read(const char *text, struct zk_token *token)
{
	const char *hold = METADATA_FIRST_HOLD;
	struct token_bytes bytes;
	unsigned char *byte = (unsigned char *)&bytes;
	uint32_t group = 0;
	int i;

	if (strspn(text, token_alphabet) != ZK_TOKEN_LENGTH)
		return false;
	if (text[ZK_TOKEN_LENGTH] != '\0') {
		hold = text + ZK_TOKEN_LENGTH + 1;
		if (hold[-1] != '.' || strlen(hold) != METADATA_HOLD_LENGTH ||
		    strspn(hold, token_alphabet) != strlen(hold))
			return false;
	}
	for (i = 0; i < ZK_TOKEN_LENGTH; i++) {
		group = group << 6 | (uint32_t)(strchr(token_alphabet, text[i]) - token_alphabet);
		if (i % 4 == 3) {
			*byte++ = (unsigned char)(group >> 16);
			*byte++ = (unsigned char)(group >> 8);
			*byte++ = (unsigned char)group;
		}
	}
	memcpy(token->uuid, bytes.uuid, sizeof(token->uuid));
	memcpy(token->session.password, bytes.password, sizeof(bytes.password));
	token->session.id = (int64_t)be64toh(bytes.session);
	token->session.length_ms = (int32_t)(be32toh(bytes.length_ms) & ~SHARED);
	token->shared = (be32toh(bytes.length_ms) & SHARED) != 0;
	token->number = (int32_t)be32toh(bytes.number);
	(void)snprintf(token->hold, sizeof(token->hold), "%s", hold);
	return token->session.id != 0 && token->session.length_ms > 0;
}

/* -- UUIDs ------------------------------------------------------------------ */

bool
zk_uuid_new(unsigned char uuid[ZK_UUID_SIZE])
{
	do {
		if (!random_bytes(uuid, ZK_UUID_SIZE))
			return false;
	} while (token_alphabet[uuid[0] >> 2] == '-');
	return true;
}

void
zk_uuid_write(const unsigned char uuid[ZK_UUID_SIZE], char text[ZK_UUID_TEXT_SIZE])
{
	int i;

	for (i = 0; i < ZK_UUID_SIZE; i++)
		text += snprintf(text, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
		    (unsigned int)uuid[i]);
}

bool
zk_token_begin(const char *name, size_t length, char begin[TOKEN_SIZE])
{
	const char *digit = name + ENTRY_PREFIX;
	unsigned char uuid[ZK_UUID_SIZE] = { 0 };
	int i;

	if (!text_begins_as(name, length, "_c_########-####-####-####-############-"))
		return false;
	for (i = 0; i < 2 * ZK_UUID_SIZE; i++, digit++) {
		if (*digit == '-')
			digit++;
		uuid[i / 2] = (unsigned char)(uuid[i / 2] << 4 | (*digit <= '9' ? *digit - '0' : *digit - 'a' + 10));
	}
	token_encode(uuid, sizeof(uuid) / 3 * 3, begin);
	return true;
}
