/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include "tap.h"

static char document[512];

static struct json
begin(void)
{
	return (struct json){ .out = fmemopen(document, sizeof(document), "w") };
}

static const struct {
	const char *bytes, *json;
} strings[] = {
	{ "", "\"\"" },
	{ "plain </script>", "\"plain </script>\"" },
	{ "\"quoted\"", "\"\\\"quoted\\\"\"" },
	{ "back\\slash", "\"back\\\\slash\"" },
	{ "\\n\\u0041", "\"\\\\n\\\\u0041\"" },
	{ "\b\f\n\r\t", "\"\\u0008\\u000c\\u000a\\u000d\\u0009\"" },
	{ "\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"" },
	{ "gr\xc3\xbc\xe2\x82\xac\xf0\x9f\x94\x92", "\"gr\xc3\xbc\xe2\x82\xac\xf0\x9f\x94\x92\"" },
	/* C1 controls, characters that turn the direction, separators of lines and paragraphs */
	{ "\xc2\x85\xc2\x9b", "\"\\u0085\\u009b\"" },
	{ "\xd8\x9c\xe2\x80\xae", "\"\\u061c\\u202e\"" },
	{ "\xe2\x80\xa8\xe2\x80\xa9", "\"\\u2028\\u2029\"" },
	/* what is not UTF-8: shown as in messages */
	{ "\xff", "\"\\\\xff\"" },
	{ "a\x80z", "\"a\\\\x80z\"" },
	{ "\xe2\x82", "\"\\\\xe2\\\\x82\"" },
	{ "\xc0\xaf", "\"\\\\xc0\\\\xaf\"" },
	{ "\xed\xa0\x80", "\"\\\\xed\\\\xa0\\\\x80\"" },
	{ "\xf4\x90\x80\x80", "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"" },
	{ "\xfe\xc3\xbc", "\"\\\\xfe\xc3\xbc\"" },
};

TEST(strings)
{
	struct json j;

	for (size_t i = 0; i < COUNT(strings); i++) {
		j = begin();
		json_string(&j, NULL, strings[i].bytes);
		(void)fclose(j.out);
		is_str(document, strings[i].json, "string %zu", i);
	}
}

TEST(document)
{
	struct json j = begin();

	json_open(&j, NULL, '{');
	json_number(&j, "a", INT64_MIN);
	json_open(&j, "b", '[');
	json_open(&j, NULL, '{');
	json_close(&j, '}');
	json_null(&j, NULL);
	json_open(&j, NULL, '[');
	json_number(&j, NULL, 0);
	json_number(&j, NULL, INT64_MAX);
	json_close(&j, ']');
	json_close(&j, ']');
	json_string(&j, "c", "\xff/");
	json_open(&j, "e", '{');
	json_number_or_null(&j, "f", 7, true);
	json_number_or_null(&j, "g", 7, false);
	json_close(&j, '}');
	json_string_or_null(&j, "h", "");
	json_string_or_null(&j, "i", NULL);
	json_string_or_null(&j, "k", "l");
	json_end_line(&j);
	(void)fclose(j.out);
	is_str(document,
	    "{\"a\":-9223372036854775808,\"b\":[{},null,[0,9223372036854775807]],\"c\":\"\\\\xff/\","
	    "\"c_hex\":\"ff2f\",\"e\":{\"f\":7,\"g\":null},\"h\":null,\"i\":null,\"k\":\"l\"}\n",
	    "commas, colons and names in their places");
}
