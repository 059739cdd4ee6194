/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include "tap.h"

#define TOKEN "AAAAAAAAAAAAAAAAAAAAAA"

/* What TEST(every_character) has not. */
static const struct {
	const char *bytes;
	int64_t length;
	const char *what;
} characters[] = {
	{ "\xe2\x82\xac", 3, "the euro sign" },
	{ "\xf0\x9f\x94\x92", 4, "a padlock" },
	{ "\xe2\x82\xac\xe2\x82", 3, "a character before half of one" },

	{ "", 0, "nothing" },
	{ "\x1b[31m", 0, "an escape" },
	{ "\x80", 0, "a continuation alone" },
	{ "\xbf\xbf", 0, "two continuations" },
	{ "\xc3", 0, "a start alone" },
	{ "\xc3\x28", 0, "a start without continuation" },
	{ "\xe2\x82", 0, "two of three bytes" },
	{ "\xe2\x28\xa1", 0, "a hole in three bytes" },
	{ "\xf0\x9f\x94", 0, "three of four bytes" },
	{ "\xf0\x9f\x94\x28", 0, "four bytes with a wrong end" },
	{ "\xc0\x80", 0, "an overlong NUL" },
	{ "\xc0\xaf", 0, "an overlong slash" },
	{ "\xc1\xbf", 0, "an overlong delete" },
	{ "\xe0\x80\xaf", 0, "an overlong slash of three bytes" },
	{ "\xe0\x9f\xbf", 0, "the last overlong of three bytes" },
	{ "\xf0\x80\x80\xaf", 0, "an overlong slash of four bytes" },
	{ "\xf0\x8f\xbf\xbf", 0, "the last overlong of four bytes" },
	{ "\xed\xa0\x80", 0, "the first surrogate" },
	{ "\xed\xbf\xbf", 0, "the last surrogate" },
	{ "\xed\xa0\xbd\xed\xb4\x92", 0, "a pair of surrogates" },
	{ "\xf4\x90\x80\x80", 0, "the first behind Unicode" },
	{ "\xf5\x80\x80\x80", 0, "far behind Unicode" },
	{ "\xf8\x88\x80\x80\x80", 0, "five bytes" },
	{ "\xfc\x84\x80\x80\x80\x80", 0, "six bytes" },
	{ "\xfe", 0, "a byte that is never used" },
	{ "\xff\xff\xff\xff", 0, "four of them" },
};

static size_t
encode(unsigned int code, char bytes[5])
{
	const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned int marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; code >>= 6)
		bytes[i] = (char)(0x80 | (code & 0x3f));
	bytes[0] = (char)(marks[n] | code);
	bytes[n] = '\0';
	return n;
}

static bool
is_control(unsigned int code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* Unicode's property Bidi_Control, and its two separators. */
static bool
misleads(unsigned int code)
{
	return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	    (code >= 0x2066 && code <= 0x2069);
}

/* Blocks where one may argue what is printable: general punctuation, specials, private use and unassigned planes. */
static bool
debatable(unsigned int code)
{
	return code == 0xad || (code >= 0x2000 && code < 0x2070) || (code >= 0xe000 && code < 0xf900) ||
	    (code >= 0xfe00 && code <= 0xffff) || code >= 0x30000 || (code & 0xfffe) == 0xfffe;
}

TEST(every_character)
{
	char bytes[5], broken[5];
	size_t n, got;

	for (unsigned int code = 1; code <= 0x10ffff; code++) {
		if (code >= 0xd800 && code < 0xe000)
			continue;
		n = encode(code, bytes);
		got = text_utf8(bytes, n);
		if (is_control(code) || misleads(code))
			each(got == 0, "U+%04X is shown", code);
		else
			each(got == n || (got == 0 && debatable(code)), "U+%04X is not shown", code);
		if (n > 1 && code % 61 == 0) {
			each(text_utf8(bytes, n - 1) == 0, "U+%04X without its last byte", code);
			for (size_t i = 1; i < n; i++) {
				memcpy(broken, bytes, sizeof(broken));
				broken[i] = (char)((code & 1) != 0 ? broken[i] ^ 0x40 : broken[i] & 0x3f);
				each(text_utf8(broken, n) == 0, "U+%04X with byte %zu broken", code, i);
			}
		}
	}
	each_ok("every character of Unicode");
}

TEST(characters)
{
	for (size_t i = 0; i < COUNT(characters); i++) {
		const char *bytes = characters[i].bytes;

		is_int((int64_t)text_utf8(bytes, strlen(bytes)), characters[i].length, "%s", characters[i].what);
	}
	ok(text_utf8("\xe2\x82\xac", 2) == 0, "bytes behind the length are not read");
	ok(text_utf8("a", 0) == 0, "of no bytes, none is a character");
	ok(text_utf8("\0", 1) == 0, "NUL is no character");
}

static const struct piece {
	const char *bytes, *shown;
	int64_t columns;
} pieces[] = {
	{ "a", "a", 1 },
	{ " ", " ", 1 },
	{ "'", "'", 1 },
	{ "\"", "\"", 1 },
	{ "%", "%", 1 },
	{ "\\", "\\\\", 2 },
	{ "\n", "\\n", 2 },
	{ "\t", "\\t", 2 },
	{ "\r", "\\r", 2 },
	{ "\x1b", "\\e", 2 },
	{ "\x01", "\\x01", 4 },
	{ "\x7f", "\\x7f", 4 },
	{ "\xff", "\\xff", 4 },
	{ "\xc2\x9b", "\\xc2\\x9b", 8 },
	{ "\xe2\x80\xae", "\\xe2\\x80\\xae", 12 },
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80", 12 },
	{ "\xc0\xaf", "\\xc0\\xaf", 8 },
	{ "\xc3\xbc", "\xc3\xbc", 1 },
	{ "\xe2\x82\xac", "\xe2\x82\xac", 1 },
	{ "\xf0\x9f\x94\x92", "\xf0\x9f\x94\x92", 2 },
	{ "\xe9\x94\x81", "\xe9\x94\x81", 2 },
};

TEST(pieces)
{
	char buffer[32];
	struct text t;

	for (size_t i = 0; i < COUNT(pieces); i++) {
		is_str(text_show(pieces[i].bytes, buffer, sizeof(buffer)), pieces[i].shown, "shown as %s",
		    pieces[i].shown);
		is_int((int64_t)text_columns(buffer), pieces[i].columns, "the columns of %s", pieces[i].shown);
	}
	ok(text_show("x", buffer, sizeof(buffer)) == buffer, "text_show() returns the buffer");
	t = text_in(buffer, sizeof(buffer));
	text_add_shown(&t, "a\0b\n", 4);
	is_str(buffer, "a\\x00b\\n", "a NUL is shown as well");
	ok(t.length == strlen(buffer) && !t.cut, "the length is known");
	text_add(&t, "xyz", 2);
	text_addf(&t, "%d%%", 42);
	is_str(buffer, "a\\x00b\\nxy42%", "more is added behind it");
	t = text_in(buffer, sizeof(buffer));
	text_add_shown(&t, "x\xe2\x82\xac", 3);
	is_str(buffer, "x\\xe2\\x82", "nothing behind the length is read");
}

/* Is all of it printable UTF-8, without a part of a character? */
static bool
is_clean(const char *text)
{
	size_t n = 1;

	for (; *text != '\0' && n > 0; text += n)
		n = text_utf8(text, strlen(text));
	return n > 0;
}

/* Nothing that is shown can move a cursor, whatever came in. */
TEST(noise)
{
	char bytes[24], buffer[128];

	for (size_t i = 0; i < 20000; i++) {
		for (size_t j = 0; j < sizeof(bytes) - 1; j++)
			bytes[j] = (char)(below(3) == 0 ? 1 + below(255) : 0x80 + below(0x80));
		bytes[sizeof(bytes) - 1] = '\0';
		each(is_clean(text_show(bytes, buffer, sizeof(buffer))), "random bytes %zu", i);
	}
	each_ok("what is shown is printable UTF-8");
}

enum {
	LONGEST = 12
};

/* What must come out: all pieces, or as many as fit before "...". */
static void
expect(const struct piece *const *chosen, size_t count, size_t size, char *wanted)
{
	size_t total = 0, kept = 0;

	for (size_t i = 0; i < count; i++) {
		total += strlen(chosen[i]->shown);
		if (total + 3 < size)
			kept = i + 1;
	}
	if (total < size)
		kept = count;
	*wanted = '\0';
	for (size_t i = 0; i < kept; i++)
		wanted += snprintf(wanted, 32, "%s", chosen[i]->shown);
	if (total >= size && size >= 4)
		memcpy(wanted, "...", 4);
}

/* A buffer of exactly that size, so that a sanitizer sees what goes past its end. */
static void
check_cut(const struct piece *const *chosen, size_t count, size_t size)
{
	char wanted[LONGEST * 32], *buffer = malloc(size);
	struct text t;

	if (buffer == NULL) {
		each(false, "out of memory");
		return;
	}
	expect(chosen, count, size, wanted);
	t = text_in(buffer, size);
	for (size_t i = 0; i < count; i++)
		text_add_shown(&t, chosen[i]->bytes, strlen(chosen[i]->bytes));
	each(memchr(buffer, '\0', size) != NULL && t.length == strlen(buffer), "size %zu: not terminated", size);
	each(is_clean(buffer), "size %zu: a character is cut in two: %s", size, buffer);
	if (size >= 4)
		each(strcmp(buffer, wanted) == 0, "size %zu: %s, wanted %s", size, buffer, wanted);
	free(buffer);
}

/* Of what is shown as several escapes, each is a piece. */
static bool
is_single(const struct piece *p)
{
	return strlen(p->shown) <= 4;
}

TEST(cutting)
{
	const struct piece *chosen[LONGEST];
	size_t count, size;

	for (size_t i = 0; i < 4000; i++) {
		count = (size_t)below(LONGEST + 1);
		for (size_t j = 0; j < count; j++) {
			do
				chosen[j] = &pieces[below(COUNT(pieces))];
			while (!is_single(chosen[j]));
		}
		for (size = 1; size <= (i < 2000 ? 8 : 24); size++)
			check_cut(chosen, count, size);
	}
	each_ok("what does not fit is left out whole, in buffers of 1 to 24 bytes");
}

TEST(after_cut)
{
	char buffer[8], large[4096], long_text[1500];
	struct text t = text_in(buffer, sizeof(buffer));

	text_add(&t, "abcdefg", 7);
	ok(!t.cut && strcmp(buffer, "abcdefg") == 0, "a text that fits exactly is not cut");
	text_add(&t, "", 0);
	ok(!t.cut, "an empty text still fits");
	text_add(&t, "h", 1);
	ok(t.cut && strlen(buffer) < sizeof(buffer) && strcmp(buffer + strlen(buffer) - 3, "...") == 0,
	    "one byte more does not");
	text_add(&t, "", 0);
	text_add(&t, "i", 1);
	text_addf(&t, "%s", "j");
	ok(strcmp(buffer + strlen(buffer) - 3, "...") == 0, "nothing is added behind a cut");

	memset(large, '~', sizeof(large));
	t = text_in(large, 8);
	text_add(&t, "0123456789", 10);
	ok(large[8] == '~', "nothing is written behind the end");

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	t = text_in(large, sizeof(large));
	text_addf(&t, "%s", long_text);
	ok(t.cut ? strcmp(large + strlen(large) - 3, "...") == 0 : strcmp(large, long_text) == 0,
	    "a long formatted text is there whole, or ends as one that was cut");
}

/* Of a lock's name in Chinese, an accent that joins its letter, and a padlock. */
static const struct {
	const char *text;
	int64_t columns;
	const char *what;
} widths[] = {
	{ "a", 1, "a letter" },
	{ "\xc3\xa9", 1, "a letter with an accent" },
	{ "e\xcc\x81", 1, "a letter and a combining accent" },
	{ "\xd7\xa9\xd6\xb8", 1, "a Hebrew letter with a point" },
	{ "\xe0\xb8\xaa\xe0\xb8\xb1\xe0\xb9\x88\xe0\xb8\x87", 2, "two Thai letters with two marks" },
	{ "\xe9\x94\x81", 2, "a Chinese character" },
	{ "\xe3\x82\xab\xe3\x82\x99", 2, "a Katakana letter with a combining mark" },
	{ "\xef\xbd\xb1", 1, "a halfwidth Katakana letter" },
	{ "\xef\xbc\xa1", 2, "a fullwidth letter" },
	{ "\xed\x95\x9c", 2, "a Hangul syllable" },
	{ "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", 2, "a Hangul syllable of three letters" },
	{ "\xe2\x9c\x85", 2, "a check mark" },
	{ "\xe2\x9b\x94", 2, "a no-entry sign" },
	{ "\xe2\x86\x92", 1, "an arrow" },
	{ "\xf0\x9f\x9a\x80", 2, "a rocket" },
	{ "\xf0\x9f\xab\xa0", 2, "a newer emoji" },
};

TEST(widths)
{
	for (size_t i = 0; i < COUNT(widths); i++)
		is_int((int64_t)text_columns(widths[i].text), widths[i].columns, "the columns of %s", widths[i].what);
}

TEST(fitting)
{
	static const char text[] = "a\xe9\x94\x81"
				   "e\xcc\x81\xf0\x9f\x94\x92z";
	static const size_t bytes[] = { 0, 1, 1, 4, 7, 7, 11, 12, 12 }, taken[] = { 0, 1, 1, 3, 4, 4, 6, 7, 7 };
	size_t columns;

	is_int((int64_t)text_columns(text), 7, "wide characters count twice, those that join another not at all");
	for (size_t i = 0; i < COUNT(bytes); i++) {
		is_int((int64_t)text_fitting(text, i, &columns), (int64_t)bytes[i], "what fits into %zu columns", i);
		is_int((int64_t)columns, (int64_t)taken[i], "the columns that it takes");
	}
	is_int((int64_t)text_fitting("\xff\xfe", 1, &columns), 1, "a byte that is no character is one");
}

static const struct {
	const char *text, *quoted;
} quotes[] = {
	{ "a secret word", "a * word" },
	{ "secretsecret", "**" },
	{ "secretive", "*" },
	{ "glued" TOKEN "on", "glued*on" },
	{ "another-word-of-22-let", "another-word-of-22-let" },
	{ "a\\b\n", "a\\\\b\\n" },
	{ "an \xc3\xa4nigma", "an *" },
	{ "t95", "*" },
};

TEST(quoting)
{
	static const char *const passwords[] = { "secret", "secretive", "s\\p", "\xc3\xa4nigma", "" };
	char text[64], word[8], padded[100];
	struct text t = text_in(text, sizeof(text));

	for (size_t i = 0; i < COUNT(passwords); i++)
		text_keep_secret(SECRET_PASSWORD, passwords[i], strlen(passwords[i]));
	text_keep_secret(SECRET_TOKEN, TOKEN, strlen(TOKEN)); /* "t95" replaces it */
	for (size_t i = 0; i < 100; i++) {
		(void)snprintf(word, sizeof(word), "t%zu", i);
		text_keep_secret(SECRET_TOKEN, word, strlen(word));
	}
	text_keep_secret(SECRET_TOKEN, TOKEN, strlen(TOKEN));
	text_add_quoted(&t, "a secret", 5);
	is_str(text, "a sec", "a secret is whole");
	for (size_t i = 0; i < COUNT(quotes); i++)
		is_str(text_quote(quotes[i].text, text, sizeof(text)), quotes[i].quoted, "'%s' quoted", quotes[i].text);
	is_str(text_quote("t84 t85", text, sizeof(text)), "t84 *", "only the newest tokens are hidden");
	for (size_t i = 40; i < 70; i++) {
		(void)snprintf(padded, sizeof(padded), "%*s" TOKEN, (int)i, "");
		each(strchr(text_quote(padded, text, sizeof(text)), 'A') == NULL, "behind %zu blanks", i);
	}
	each_ok("no part of a token is left where the text is cut");
}
