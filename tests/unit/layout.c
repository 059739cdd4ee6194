/* SPDX-License-Identifier: MIT */
#include "cli/layout.h"

#include <unistd.h>

#include "base/text.h"
#include "tap.h"

/* A row of the table under test is a key, an owner, a label, and three cells that are not shortened. */
static const struct layout_column columns[] = {
	{ "KEY", LAYOUT_TEXT, 0 },
	{ "OWNER", LAYOUT_OWNER, 0 },
	{ "LABEL", LAYOUT_TEXT, 0 },
	{ "HELD", LAYOUT_WHOLE, 0 },
	{ "FENCE", LAYOUT_WHOLE, 1 },
	{ "NODES", LAYOUT_WHOLE, 2 },
};

enum {
	LINES_MAX = 1000
};

static struct layout layout;
static char *printed, *line[LINES_MAX];
static size_t lines, printed_size;

static void
begin_bare(size_t width)
{
	free(printed);
	memset(&layout, 0, sizeof(layout));
	memcpy(layout.column, columns, sizeof(columns));
	layout.columns = (int)COUNT(columns);
	layout.width = width;
	layout.line_end = "\n";
	layout.out = open_memstream(&printed, &printed_size);
}

static void
add(const char *text)
{
	struct err err;

	if (layout_add(&layout, text, "", &err) != ST_OK)
		abort();
}

static void
begin(size_t width)
{
	begin_bare(width);
	for (size_t i = 0; i < COUNT(columns); i++)
		add(columns[i].name);
}

static void
add_row(const char *key, const char *owner, const char *label)
{
	add(key);
	add(owner);
	add(label);
	add("3m10s");
	add("1795360267437211");
	add("1/1");
}

/* The lines are in line[], without their ends. */
static void
end(void)
{
	char *at;

	layout_end(&layout);
	(void)fclose(layout.out);
	for (lines = 0, at = printed; *at != '\0' && lines < LINES_MAX; lines++) {
		line[lines] = at;
		at += strcspn(at, "\n");
		if (*at == '\n')
			*at++ = '\0';
	}
}

static bool
fits(void)
{
	for (size_t i = 0; i < lines; i++) {
		if (text_columns(line[i]) > layout.width)
			return false;
	}
	return true;
}

/* Are the first cells of these lines all different? */
static bool
differ(size_t first, size_t last)
{
	for (size_t i = first; i <= last; i++) {
		for (size_t j = first; j < i; j++) {
			const size_t length = strcspn(line[i], " ");

			if (length == strcspn(line[j], " ") && strncmp(line[i], line[j], length) == 0)
				return false;
		}
	}
	return true;
}

TEST(columns)
{
	static const struct {
		size_t width;
		const char *row, *what;
	} cases[] = {
		{ 0,
		    "a-key-that-is-long-enough-for-most-terminals  ops@web-01.example.net:4711  -      3m10s  "
		    "1795360267437211  1/1",
		    "without a terminal nothing is shortened" },
		{ 112,
		    "a-key-that-is-long-enough-for-most-terminals  ops@web-01.example.net:4711  -      3m10s  "
		    "1795360267437211  1/1",
		    "what just fits is not shortened either" },
		{ 110, "a-key-that-is-long-enough-for-most-terminals  ops@web-01.example.net:4711  -      3m10s  1/1",
		    "the column of rank 1 is dropped before a text is shortened" },
		{ 90, "a-key-that-is-long-enough-for-most-terminals  ops@web-01.example.net:4711  -      3m10s",
		    "the column of rank 2 is dropped next" },
		{ 60, "a-key-that..-terminals  ops@web-01..e.net:4711  -      3m10s", "texts are shortened next" },
		{ 44, "a-ke..nals  ops@web-..net:4711  -      3m10s", "to their least width" },
		{ 43, "a-key-t..rminals  ops@web-..net:4711  -", "then the last column is dropped" },
		{ 20, "a-key-tha..terminals", "the last columns are dropped at last" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(cases[i].width);
		add_row("a-key-that-is-long-enough-for-most-terminals", "ops@web-01.example.net:4711", "");
		end();
		if (i == 0)
			is_int((int)lines, 2, "a line for the headings, and one for the row");
		is_str(line[1], cases[i].row, "%s", cases[i].what);
	}
	is_str(line[0], "KEY", "the headings of dropped columns are dropped");

	begin(80);
	end();
	is_str(line[0], "KEY  OWNER  LABEL  HELD  FENCE  NODES", "headings of nothing");
}

/* The first of two keys that do not fit. */
TEST(shortened)
{
	static const struct {
		size_t width;
		const char *key, *other, *shown;
	} cases[] = {
		{ 12, "deploy-production", "backup", "deplo..ction" },
		{ 17, "deploy-production-1-of-the-web-frontend", "deploy-production-2-of-the-web-frontend",
		    "depl..n-1-o..tend" },
		{ 21, "deploy-production-1-of-the-web-frontend", "deploy-production-2-of-the-web-backend!",
		    "deplo..on-1-of..ntend" },
		{ 5, "deploy-1-web", "deploy-2-web", "..1.." },
		{ 6, "abcdefg", "x", "ab..fg" },
		{ 7, "abcdefgh", "x", "abc..gh" },
		{ 15, "\\x01\\x02\\x03\\x04\\e\\e", "x", "\\x01\\x02..\\e\\e" },
		{ 14, "\\x01\\x02\\x03\\x04\\e\\e", "\\x01\\x02\\x03\\x14\\e\\e", "\\x01..\\x04\\e\\e" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin_bare(cases[i].width);
		layout.columns = 1;
		add(cases[i].key);
		add(cases[i].other);
		end();
		is_str(line[0], cases[i].shown, "%zu columns", cases[i].width);
	}
}

static const struct {
	const char *format, *what;
} forms[] = {
	{ "%zu-deploy-production-eu-west-web-frontend", "the begin" },
	{ "deploy-production-eu-west-%zu-web-frontend-blue", "the middle" },
	{ "deploy-production-eu-west-web-frontend-%zu", "the end" },
	{ "deploy-%zu", "the end of short ones" },
	{ "deploy-the-production-%zu-of-eu-west-%zu-web-frontend-%zu", "three places" },
	{ "\xe5\x8f\x91\xe5\xb8\x83\xe7\x94\x9f\xe4\xba\xa7\xe7\x8e\xaf\xe5\xa2\x83-%zu-"
	  "\xe5\x8f\x91\xe5\xb8\x83\xe7\x94\x9f\xe4\xba\xa7\xe7\x8e\xaf\xe5\xa2\x83",
	    "the middle of wide characters" },
	{ "\\e\\x01\\\\\\e\\x01\\\\\\e\\x01\\\\%zu\\e\\x01\\\\\\e\\x01\\\\\\e", "the middle of escapes" },
	{ "o\xcc\x81\xcc\x82o\xcc\x81\xcc\x82-%zu-o\xcc\x81\xcc\x82-and-what-is-combined",
	    "the middle of combining ones" },
};

static void
fill(size_t form, size_t rows)
{
	char key[200], owner[200], label[200];

	for (size_t i = 0; i < rows; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(key, sizeof(key), forms[form].format, i, i / 7, i % 5);
#pragma GCC diagnostic pop
		(void)snprintf(owner, sizeof(owner), "ops@build-runner-%zu.eu-west-1.example.net:4711", i % 50);
		(void)snprintf(label, sizeof(label), "the label of the deploy number %zu of today", i / 3);
		add_row(key, owner, label);
	}
}

TEST(differences)
{
	for (size_t form = 0; form < COUNT(forms); form++) {
		for (size_t width = 40; width <= 200; width += 4) {
			begin(width);
			fill(form, 100);
			end();
			each(lines == 101 && fits(), "%zu columns, %s", width, forms[form].what);
			each(differ(1, 100), "%zu columns, %s: %s, %s", width, forms[form].what, line[1], line[2]);
		}
		each_ok("keys that differ in %s still differ, and fit", forms[form].what);
	}
}

static void
add_three_owners(size_t width)
{
	begin(width);
	add_row("deploy", "alice@web-01.eu.example.net:1234567", "a label that takes the room of all the others");
	add_row("deploy", "bob@web-02.eu.example.net:1234568", "a label that takes the room of all the others");
	add_row("deploy", "bob@web-01.us.example.net:1234569", "a label that takes the room of all the others");
	end();
}

TEST(owners)
{
	add_three_owners(80);
	is_str(line[1], "deploy  alice@web-01.eu.examp..:1234567  a label that ta.. all the others  3m10s",
	    "an owner of three with the same label");
	add_three_owners(51);
	is_str(line[1], "deploy  al..1.eu..:1234567  a label.. others  3m10s", "whose host differs from the others");
}

TEST(blocks)
{
	char key[64];

	begin(70);
	for (size_t i = 0; i < 3 * LAYOUT_ROWS - 7; i++) {
		(void)snprintf(key, sizeof(key), i < LAYOUT_ROWS ? "%zu" : "a-longer-key-with-the-number-%zu-in-it", i);
		add_row(key, "ops@web-01.example.net:4711", "nightly");
	}
	end();
	is_int((int)lines, 3 * LAYOUT_ROWS - 6, "a row for each, and headings once");
	ok(fits(), "a later block with wider texts fits as well");
	ok(strstr(line[LAYOUT_ROWS], "3m10s") != NULL && strstr(line[LAYOUT_ROWS + 1], "3m10s") != NULL,
	    "no column of them is cut off");
	ok(differ(LAYOUT_ROWS + 1, 2 * (size_t)LAYOUT_ROWS), "their keys differ");
	begin(0);
	for (size_t i = 0; i < 2 * LAYOUT_ROWS; i++)
		add_row(i < LAYOUT_ROWS - 1 ? "a-longer-key" : "k", "ops@web-01.example.net:4711", "nightly");
	end();
	is_int(strstr(line[LAYOUT_ROWS], "ops@") - line[LAYOUT_ROWS], strlen("a-longer-key") + 2,
	    "a later block with narrower texts keeps the columns");
}

static void
says(size_t width, const char *sentence, const char *name)
{
	static const char *const cells[] = { "deploy-production-eu-west-1", "ops@web-01.example.net:4711", "",
		" for 9.2s", ", which is long", "" };

	begin_bare(width);
	layout.sentence = true;
	layout.line_end = "";
	for (size_t i = 0; i < COUNT(cells); i++)
		add(cells[i]);
	end();
	is_str(printed, sentence, "%s", name);
}

TEST(sentences)
{
	says(0, "deploy-production-eu-west-1ops@web-01.example.net:4711 for 9.2s, which is long", "a sentence");
	says(63, "deploy-production-eu-west-1ops@web-01.example.net:4711 for 9.2s", "less of it");
	says(53, "deploy-pro..-eu-west-1ops@web-01..e.net:4711 for 9.2s", "shortened");
}

/* -- Wrapping --------------------------------------------------------------- */

TEST(wrapping)
{
	static const struct {
		size_t from, width;
		const char *text, *printed;
	} cases[] = {
		{ 4, 0, "one two three", "one two three\n" },
		{ 4, 17, "one two three", "one two three\n" },
		{ 4, 17, "one two three 4", "one two three\n    4\n" },
		{ 4, 16, "one two three", "one two\n    three\n" },
		{ 4, 13, "one nineteen 3", "one\n    nineteen\n    3\n" },
		{ 4, 13, "one thirteenth 3", "one\n    thirteent\n    h 3\n" },
		{ 4, 12, "without room it is not wrapped", "without room it is not wrapped\n" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		FILE *const file = tmpfile();
		const int own = dup(STDOUT_FILENO);
		char text[100] = "";

		(void)dup2(fileno(file), STDOUT_FILENO);
		layout_wrap(cases[i].text, cases[i].from, cases[i].width);
		fflush(stdout);
		(void)dup2(own, STDOUT_FILENO);
		(void)close(own);
		rewind(file);
		(void)!fread(text, 1, sizeof(text) - 1, file);
		(void)fclose(file);
		is_str(text, cases[i].printed, "%zu columns behind the %zuth", cases[i].width, cases[i].from);
	}
}
