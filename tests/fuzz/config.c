/* SPDX-License-Identifier: MIT */
#include "cli/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fuzz.h"
#include "settings.h"

/*
 * The configuration file.  Accepted values are in range, and written back to a file they mean the same.  An error names
 * the file and an existing line.  Options that are for the command line only are not accepted.
 */
#define NAME "/etc/dlock/config"

static void
check_refusal(const char *text, const struct err *err)
{
	const size_t length = strlen(NAME ":");
	long line, lines = 1;

	for (; *text != '\0'; text++)
		lines += *text == '\n';
	must(is_sentence(err->text) && strncmp(err->text, NAME ":", length) == 0, "%s", err->text);
	line = strtol(err->text + length, NULL, 10);
	must(line >= 1 && line <= lines, "line %ld of %ld: %s", line, lines, err->text);
}

static void
add_line(struct text *t, const struct setting *s)
{
	const char *at;

	text_addf(t, "%s", s->spec->name);
	if (s->value != NULL) {
		text_addf(t, " = \"");
		for (at = s->value; *at != '\0'; at++) {
			if (*at == '"' || *at == '\\')
				text_add(t, "\\", 1);
			text_add(t, at, 1);
		}
		text_add(t, "\"", 1);
	}
	text_add(t, "\n", 1);
}

static void
check_round_trip(const struct options *o)
{
	static char written[1 << 16];
	struct text t = text_in(written, sizeof(written));
	struct setting settings[SETTINGS_MAX];
	const int count = settings_of(o, settings);
	struct options again;
	const char *difference;
	struct err err = { "" };
	int i;

	options_default(&again);
	for (i = 0; i < count; i++) {
		add_line(&t, &settings[i]);
		must(strcmp(settings[i].spec->name, "token") != 0 && strcmp(settings[i].spec->name, "config") != 0 &&
			strcmp(settings[i].spec->name, "force") != 0 && strcmp(settings[i].spec->name, "help") != 0 &&
			strcmp(settings[i].spec->name, "version") != 0,
		    "%s stands in a file", settings[i].spec->name);
	}
	settings_free(settings, count);
	must(!t.cut && config_parse(written, NAME, &again, &err) == ST_OK, "%s", err.text);
	difference = settings_difference(o, &again);
	must(difference == NULL, "%s is another one", difference);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input in = input_of(bytes, length);
	char *text = input_string(&in, SIZE_MAX), *copy = strdup(text);
	struct options o;
	struct err err = { "" };
	enum status status;

	must(copy != NULL, "no memory");
	options_default(&o);
	status = config_parse(text, NAME, &o, &err);
	must(status == ST_OK || status == ST_CONFIG, "status %d", (int)status);
	if (status == ST_OK) {
		settings_check(&o);
		check_round_trip(&o);
	} else
		check_refusal(copy, &err);
	free(copy);
	free(text);
	return 0;
}
