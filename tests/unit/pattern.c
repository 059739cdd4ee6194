/* SPDX-License-Identifier: MIT */
#include "lock/pattern.h"

#include "tap.h"

int
main(void)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "a", "a", true },
		{ "a", "ab", false },
		{ "*", "", true },
		{ "*", "a/b", true },
		{ "a*", "a", true },
		{ "*a", "ba", true },
		{ "*a", "ab", false },
		{ "a*b*c", "a-b-b-c", true },
		{ "a*b*c", "a-c-b", false },
		{ "?", "", false },
		{ "?", "x", true },
		{ "a?c", "abc", true },
		{ "[ab]", "b", true },
		{ "[ab]", "c", false },
		{ "[^ab]", "c", true },
		{ "[^ab]", "a", false },
		{ "[a-c]x", "bx", true },
		{ "[c-a]x", "bx", true },
		{ "[a-c]", "d", false },
		{ "\\*", "*", true },
		{ "\\*", "a", false },
		{ "[\\]]", "]", true },
		{ "[a", "a", true },
		{ "a\\", "a\\", true },
		{ "[a-]", "-", false },
		{ "**", "ab", true },
		{ "*****************b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
	};
	static const struct {
		const char *pattern, *prefix;
	} prefixes[] = { { "abc", "abc" }, { "ab*c", "ab" }, { "*", "" }, { "a\\*b?", "a*b" }, { "x[ab]", "x" } };
	char prefix[8];
	size_t i;

	for (i = 0; i < COUNT(cases); i++)
		is_int(pattern_matches(cases[i].pattern, cases[i].text), cases[i].matches, "'%s' and '%s'",
		    cases[i].pattern, cases[i].text);
	for (i = 0; i < COUNT(prefixes); i++) {
		pattern_prefix(prefixes[i].pattern, prefix, sizeof(prefix));
		is_str(prefix, prefixes[i].prefix, "what '%s' begins with", prefixes[i].pattern);
	}
	pattern_prefix("0123456789", prefix, sizeof(prefix));
	is_str(prefix, "0123456", "it is cut");
	return tap_end();
}
