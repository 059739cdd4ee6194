/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/config.h"
#include "fuzz.h"
#include "redis/url.h"
#include "settings.h"

/*
 * The command line and the environment.  Accepted values are in range, and written back to a command line they mean
 * the same.  Operands are unchanged words, and all words after COMMAND are operands.  An error is one sentence.  No
 * password is left in the command line, where all users can see it.
 */
enum {
	WORDS_MAX = 100
};

struct line {
	int argc;
	char *argv[WORDS_MAX + 1];
};

/* Replaces the function that reads files. */
enum status
config_read(const char *path, struct options *o, char **text, struct err *warning, struct err *err)
{
	(void)path;
	(void)o;
	*text = NULL;
	warning->text[0] = err->text[0] = '\0';
	return ST_OK;
}

static void
add_word(struct line *l, char *word)
{
	must(word != NULL && l->argc < WORDS_MAX, "too many words");
	l->argv[l->argc++] = word;
	l->argv[l->argc] = NULL;
}

static void
free_line(struct line *l)
{
	while (l->argc > 0)
		free(l->argv[--l->argc]);
}

static enum status
parse(struct invocation *inv, const struct line *l, struct err *err)
{
	char *argv[WORDS_MAX + 1];

	memcpy(argv, l->argv, sizeof(argv));
	optind = 0; /* reset getopt of the C library */
	err->text[0] = '\0';
	return invocation_parse(inv, l->argc, argv, err);
}

static void
clear_environment(void)
{
	size_t i;

	for (i = 0; i < option_count; i++) {
		if (option_specs[i].environment != NULL)
			must(unsetenv(option_specs[i].environment) == 0, "unsetenv");
	}
}

/* The first byte is the number of variables; then the words follow. */
static void
take_line(struct input *in, struct line *l)
{
	unsigned int variables = input_byte(in) % 8;
	const struct option_spec *spec;
	char *value;

	clear_environment();
	while (variables-- > 0) {
		spec = &option_specs[input_byte(in) % option_count];
		value = input_string(in, SIZE_MAX);
		if (spec->environment != NULL)
			must(setenv(spec->environment, value, 1) == 0, "setenv");
		free(value);
	}
	add_word(l, strdup("dlock"));
	while (in->left > 0 && l->argc < WORDS_MAX)
		add_word(l, input_string(in, SIZE_MAX));
}

/* -- Operands --------------------------------------------------------------- */

static void
check_operands(const struct invocation *inv, const struct line *l)
{
	const struct command *const c = inv->command;
	int i, word = 0;

	if (!inv->options.help && !inv->options.version) {
		must(c != NULL && inv->operands >= c->least && (c->most < 0 || inv->operands <= c->most), "%d operands",
		    inv->operands);
	}
	for (i = 0; i < inv->operands; i++) {
		for (word++; word < l->argc && l->argv[word] != inv->operand[i]; word++)
			must(c == NULL || c->bit != CMD_RUN || i < 2, "a word behind COMMAND is no operand: %s",
			    l->argv[word]);
		must(word < l->argc, "operand %d is no word behind the one before", i);
	}
	must(c == NULL || c->bit != CMD_RUN || i < 2 || word == l->argc - 1, "words behind the last operand");
	must(inv->operand[inv->operands] == NULL, "the operands have no end");
}

/* -- Passwords -------------------------------------------------------------- */

static int
count_words_with(const struct line *l, const char *text)
{
	int i, words = 0;

	for (i = 1; i < l->argc; i++)
		words += strstr(l->argv[i], text) != NULL;
	return words;
}

/* A node with a login that was in the command line once must have been removed. */
static void
check_hidden(const struct invocation *inv, const struct line *before, const struct line *l)
{
	const struct options *const o = &inv->options;
	struct url url;
	struct err err;
	int i;

	for (i = 0; i < o->nodes; i++) {
		must(url_parse(o->node[i], &url, &err) == ST_OK, "%s", o->node[i]);
		url_free(&url);
		if (url.password[0] == '\0' || getenv("DLOCK_NODES") != NULL)
			continue;
		must(count_words_with(before, o->node[i]) != 1 || count_words_with(l, o->node[i]) == 0,
		    "%s can be seen by everybody", o->node[i]);
	}
}

/* -- The round trip --------------------------------------------------------- */

static char *
write_option(const struct setting *s)
{
	const size_t size = strlen(s->spec->name) + (s->value != NULL ? strlen(s->value) : 0) + 4;
	char *word = malloc(size);

	must(word != NULL, "no memory");
	(void)snprintf(word, size, "--%s%s%s", s->spec->name, s->value != NULL ? "=" : "",
	    s->value != NULL ? s->value : "");
	return word;
}

static void
write_line(const struct invocation *inv, struct line *l)
{
	struct setting settings[SETTINGS_MAX];
	const int count = settings_of(&inv->options, settings);
	int i;

	add_word(l, strdup("dlock"));
	add_word(l, strdup(inv->command->name));
	for (i = 0; i < count; i++) {
		/* Without --keep these may come from the environment only. */
		if (inv->command->bit == CMD_ACQUIRE && inv->options.keep_pid == 0 &&
		    (settings[i].spec->commands & CMD_KEEP) != 0)
			continue;
		if (option_accepted(settings[i].spec, inv->command->bit))
			add_word(l, write_option(&settings[i]));
	}
	add_word(l, strdup("--"));
	for (i = 0; i < inv->operands; i++) {
		if (i == 1 && inv->command->bit == CMD_RUN)
			add_word(l, strdup("--"));
		add_word(l, strdup(inv->operand[i]));
	}
	settings_free(settings, count);
}

static void
check_round_trip(const struct invocation *inv)
{
	struct line l = { .argc = 0 };
	struct invocation again;
	const char *difference;
	struct err err;
	int i;

	if (inv->command == NULL || inv->options.help || inv->options.version || inv->operands > 20)
		return;
	write_line(inv, &l); /* it overrides the environment */
	must(parse(&again, &l, &err) == ST_OK, "%s", err.text);
	difference = settings_difference(&inv->options, &again.options);
	must(difference == NULL, "--%s is another one", difference);
	must(again.command == inv->command && again.operands == inv->operands, "%d operands, not %d", again.operands,
	    inv->operands);
	for (i = 0; i < inv->operands; i++)
		must(strcmp(again.operand[i], inv->operand[i]) == 0, "operand %d", i);
	invocation_free(&again);
	free_line(&l);
}

/* -- The list of nodes ------------------------------------------------------ */

/* Nodes that are joined by blanks are parsed as the same nodes. */
static void
check_nodes(const struct options *o)
{
	static char list[1 << 14], buffer[1 << 14];
	const bool given[OPTIONS_MAX] = { false };
	struct text t = text_in(list, sizeof(list));
	struct options again;
	struct err err = { "" };
	int i;

	for (i = 0; i < o->nodes; i++) {
		if (strpbrk(o->node[i], " \t\n,") != NULL)
			return;
		text_addf(&t, "%s%s", i > 0 ? " " : "", o->node[i]);
	}
	if (o->nodes == 0 || t.cut)
		return;
	clear_environment();
	must(setenv("DLOCK_NODES", list, 1) == 0, "setenv");
	options_default(&again);
	must(options_from_environment(&again, given, buffer, sizeof(buffer), &err) == ST_OK, "%s: %s", list, err.text);
	must(again.nodes == o->nodes, "%d nodes became %d: %s", o->nodes, again.nodes, list);
	for (i = 0; i < o->nodes; i++)
		must(strcmp(again.node[i], o->node[i]) == 0, "%s became %s", o->node[i], again.node[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input in = input_of(bytes, length);
	struct line l = { .argc = 0 }, before = { .argc = 0 };
	struct invocation inv;
	enum status status;
	struct err err;
	int i;

	take_line(&in, &l);
	for (i = 0; i < l.argc; i++)
		add_word(&before, strdup(l.argv[i]));
	status = parse(&inv, &l, &err);
	must(status == ST_OK || status == ST_USAGE, "status %d: %s", (int)status, err.text);
	if (status == ST_OK) {
		settings_check(&inv.options);
		check_operands(&inv, &l);
		check_hidden(&inv, &before, &l);
		check_round_trip(&inv);
		check_nodes(&inv.options);
	} else
		must(is_sentence(err.text), "%s", err.text);
	invocation_free(&inv);
	free_line(&l);
	free_line(&before);
	return 0;
}
