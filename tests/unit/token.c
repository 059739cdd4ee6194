/* SPDX-License-Identifier: MIT */
#include "lock/token.h"

#include "tap.h"

enum {
	TOKENS = 100000,
	BITS = 6 /* of a character */
};

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static char tokens[TOKENS][TOKEN_SIZE];
static int seen[TOKEN_LENGTH][256]; /* how often each character stands in each place */

TEST(make)
{
	for (size_t i = 0; i < TOKENS; i++) {
		each(token_new(tokens[i]), "token %zu", i);
		each(strlen(tokens[i]) == TOKEN_LENGTH && strspn(tokens[i], alphabet) == TOKEN_LENGTH, "%s", tokens[i]);
		each(token_valid(tokens[i]), "%s is not valid", tokens[i]);
		each(tokens[i][0] != '-', "%s looks like an option", tokens[i]);
		for (size_t j = 0; j < TOKEN_LENGTH; j++)
			seen[j][(unsigned char)tokens[i][j]]++;
	}
	each_ok("tokens have their shape and never begin with a dash");
}

/* 128 bits are 21 whole characters and two bits of one more. */
TEST(spread)
{
	const int fair = TOKENS >> BITS;
	int n;

	for (size_t place = 0; place < TOKEN_LENGTH - 1; place++) {
		for (size_t c = 0; c < sizeof(alphabet) - 1; c++) {
			n = seen[place][(unsigned char)alphabet[c]];
			if (place == 0 && alphabet[c] == '-')
				continue;
			each(n > fair * 3 / 4 && n < fair * 5 / 4, "%c stands %d times in place %zu", alphabet[c], n,
			    place);
		}
	}
	each_ok("all characters are equally likely");
	n = seen[TOKEN_LENGTH - 1]['A'] + seen[TOKEN_LENGTH - 1]['Q'] + seen[TOKEN_LENGTH - 1]['g'] +
	    seen[TOKEN_LENGTH - 1]['w'];
	is_int(n, TOKENS, "the last character has the last two bits");
}

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

TEST(duplicates)
{
	qsort(tokens, TOKENS, sizeof(tokens[0]), compare);
	for (size_t i = 1; i < TOKENS; i++)
		each(strcmp(tokens[i - 1], tokens[i]) != 0, "%s twice", tokens[i]);
	each_ok("no token comes twice");
}

/* The mark is a bit that is not of the token: it stays a token, and differs from all that are not marked. */
TEST(mark)
{
	char reader[TOKEN_SIZE], hold[TOKEN_SIZE];

	for (size_t i = 0; i < 1000; i++) {
		memcpy(reader, tokens[i], sizeof(reader));
		each(!token_shared(reader), "%s is marked", reader);
		token_share(reader);
		each(token_valid(reader) && token_shared(reader), "%s is not marked", reader);
		each(strncmp(reader, tokens[i], TOKEN_LENGTH - 1) == 0, "%s is another one", reader);
		each(hold_new(reader, hold) && token_shared(hold), "the hold %s is not marked", hold);
	}
	each(!token_shared("") && !token_shared("BBBBBBBBBBBBBBBBBBBBB"), "too short for a mark");
	each_ok("a token is marked as that of a reader, and its holds are");
}

static const char *const well_formed[] = { "AAAAAAAAAAAAAAAAAAAAAA", "abcXYZ0189_-abcXYZ0189",
	"_____________________A" };

static const char *const no_tokens[] = { "", "A", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA",
	"AAAAAAAAAAAAAAAAAAAAAA\n", "AAAAAAAAAAAAAAAAAAAAA\n", "AAAAAAAAAAAAAAAAAAAAA ", " AAAAAAAAAAAAAAAAAAAAA",
	"AAAAAAAAAA+AAAAAAAAAAA", "AAAAAAAAAA/AAAAAAAAAAA", "AAAAAAAAAA=AAAAAAAAAAA", "AAAAAAAAAA.AAAAAAAAAAA",
	"AAAAAAAAAA*AAAAAAAAAAA", "AAAAAAAAAA\200AAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAA\xc3\xbc",
	"AAAAAAAAAAAAAAAAAAAA==", "7b2ff54c-0d6c-4d8e-9d55-2f0c5a5cdb4e" };

TEST(valid)
{
	for (size_t i = 0; i < COUNT(well_formed); i++)
		ok(token_valid(well_formed[i]), "'%s' has the shape", well_formed[i]);
	for (size_t i = 0; i < COUNT(no_tokens); i++)
		ok(!token_valid(no_tokens[i]), "'%s' has not the shape", no_tokens[i]);
}

static const char *const no_holds[] = { "AAAAAAAAAAAAAAAAAAAAAA.abcd_-1", "AAAAAAAAAAAAAAAAAAAAAA.abcd_-123",
	"AAAAAAAAAAAAAAAAAAAAAA.abcd.-12", "AAAAAAAAAAAAAAAAAAAAAA.abcd -12", "AAAAAAAAAAAAAAAAAAAAAAAabcd_-12",
	"AAAAAAAAAAAAAAAAAAAAAA abcd_-12", "AAAAAAAAAAAAAAAAAAAAAA.", "AAAAAAAAAAAAAAAAAAAAA.Aabcd_-12",
	".AAAAAAAAAAAAAAAAAAAAA.abcd_-12", "" };

TEST(holds)
{
	char hold[TOKEN_SIZE], again[TOKEN_SIZE];

	ok(hold_valid("AAAAAAAAAAAAAAAAAAAAAA"), "'AAAAAAAAAAAAAAAAAAAAAA' is a hold");
	ok(hold_valid("AAAAAAAAAAAAAAAAAAAAAA.abcd_-12"), "'AAAAAAAAAAAAAAAAAAAAAA.abcd_-12' is a hold");
	for (size_t i = 0; i < COUNT(no_holds); i++)
		ok(!hold_valid(no_holds[i]), "'%s' is not a hold", no_holds[i]);
	ok(hold_new("BBBBBBBBBBBBBBBBBBBBBB", hold) && hold_valid(hold), "a further hold has its shape: %s", hold);
	ok(hold_new(hold, again) && hold_valid(again) && strcmp(hold, again) != 0, "one of a further hold is another");
	ok(strncmp(again, "BBBBBBBBBBBBBBBBBBBBBB.", TOKEN_LENGTH + 1) == 0, "on the same lock");
}
