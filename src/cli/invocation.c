/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "cli/secret.h"

#define GIVEN_MAX 64
#define LONG_BASE 256 /* getopt_long() returns this plus the index in the table */

/* The options of the command line, which are set after those of environment and file. */
struct given {
	const struct option_spec *spec[GIVEN_MAX];
	const char *value[GIVEN_MAX];
	int count;
	bool has[OPTIONS_MAX]; /* which options of the table */
	const char *config;    /* the last --config; NULL: none */
	bool help;	       /* --help or --version */
};

/* -- Tables for getopt ------------------------------------------------------ */

/* "-" returns operands in order; ":" distinguishes a missing argument from an unknown option. */
static void
build_tables(char letters[2 * OPTIONS_MAX + 3], struct option longs[OPTIONS_MAX + 1])
{
	size_t i;
	char *at = letters;

	*at++ = '-';
	*at++ = ':';
	for (i = 0; i < option_count && i < OPTIONS_MAX; i++) {
		const struct option_spec *spec = &option_specs[i];

		longs[i] = (struct option){ spec->name, no_argument, NULL, LONG_BASE + (int)i };
		if (spec->argument != NULL)
			longs[i].has_arg = option_needs_value(spec) ? required_argument : optional_argument;
		if (spec->letter != 0)
			*at++ = spec->letter;
		if (spec->letter != 0 && option_needs_value(spec))
			*at++ = ':';
	}
	longs[i] = (struct option){ NULL, 0, NULL, 0 };
	*at = '\0';
}

/* `returned` is a value of the tables. */
static const struct option_spec *
spec_of(int returned)
{
	const struct option_spec *spec = option_specs;

	if (returned >= LONG_BASE)
		return &option_specs[returned - LONG_BASE];
	while (spec->letter != returned)
		spec++;
	return spec;
}

/* -- Errors ----------------------------------------------------------------- */

/* getopt reports the first byte of a letter; add the other bytes of a UTF-8 character. */
static void
copy_letter(char letter[5], const char *word, char first)
{
	const char *at = strchr(word, first);
	size_t i = 1;

	letter[0] = first;
	for (; at != NULL && (first & 0xc0) == 0xc0 && i < 4 && (at[i] & 0xc0) == 0x80; i++)
		letter[i] = at[i];
	letter[i] = '\0';
}

/* Options of flock(1) and timeout(1), and what to use instead; NULL: not one of these. */
static const char *
explain_foreign(const char *name)
{
	static const char exclusive[] = "every lock is exclusive, there is no option for it";
	static const char *const foreign[][2] = { { "timeout", "use --wait DUR" }, { "nonblock", "use --no-wait (-n)" },
		{ "nonblocking", "use --no-wait (-n)" }, { "nb", "use --no-wait (-n)" },
		{ "try", "use --no-wait (-n)" }, { "x", exclusive }, { "e", exclusive }, { "exclusive", exclusive },
		{ "s", "there are no shared locks; a signal is --signal SIG" },
		{ "shared", "there are no shared locks" }, { "u", "use the command release" },
		{ "unlock", "use the command release" }, { "expire", "use --ttl DUR" } };
	size_t i;

	for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		if (strcmp(foreign[i][0], name) == 0)
			return foreign[i][1];
	}
	return NULL;
}

/* getopt also accepts the beginning of a name, which would be another option when a new one is added. */
static bool
is_abbreviated(const char *word)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	return strncmp(name, "--", 2) == 0 && option_find(name + 2) == NULL;
}

/* `word` is the argument in which getopt found it. */
static enum status
unknown_option(const struct command *command, const char *word, struct err *err)
{
	char shown[100], letter[5], help[32] = "dlock --help all";
	char name[64];

	if (command != NULL)
		(void)snprintf(help, sizeof(help), "dlock %s --help", command->name);
	if (optopt != 0 && optopt < LONG_BASE) {
		copy_letter(letter, word, (char)optopt);
		if (explain_foreign(letter) != NULL)
			return err_set(err, ST_USAGE, "unknown option '-%s'; %s", letter, explain_foreign(letter));
		return err_set(err, ST_USAGE, "unknown option '-%s'; see %s", text_show(letter, shown, sizeof(shown)),
		    help);
	}
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	(void)text_show(name, shown, sizeof(shown));
	if (option_find(name) != NULL)
		return err_set(err, ST_USAGE, "--%s takes no value", shown);
	if (explain_foreign(name) != NULL)
		return err_set(err, ST_USAGE, "unknown option '--%s'; %s", shown, explain_foreign(name));
	return err_set(err, ST_USAGE, "unknown option '--%s'; see %s", shown, help);
}

/* -- Words ------------------------------------------------------------------ */

static bool
is_run(const struct invocation *inv)
{
	return inv->command != NULL && inv->command->bit == CMD_RUN;
}

/* Copy a word that is visible in the list of processes, before its secret is overwritten there. */
static char *
keep_copy(struct invocation *inv, const char *word)
{
	char *const copy = inv->text;

	inv->text = stpcpy(inv->text, word) + 1;
	return copy;
}

/* The same for a token. */
static char *
hide_token(struct invocation *inv, char *token)
{
	char *const copy = keep_copy(inv, token);

	if (strcmp(token, "-") != 0)
		memset(token, '*', strlen(token));
	return copy;
}

/* Take an operand.  True if no options may follow it. */
static bool
take_operand(struct invocation *inv, char *word, enum status *status, struct err *err)
{
	if (inv->command == NULL) {
		inv->command = command_find(word, err);
		*status = inv->command != NULL ? ST_OK : ST_USAGE;
		return false;
	}
	if (inv->operands == 1 && (inv->command->bit & (CMD_RENEW | CMD_RELEASE)) != 0)
		word = hide_token(inv, word);
	inv->operand[inv->operands++] = word;
	return is_run(inv) && inv->operands == 2;
}

/* May the following word, NULL if there is none, be the value of an option whose argument is optional? */
static bool
may_be_value(const struct option_spec *spec, const char *next)
{
	int64_t ms;

	if (next == NULL)
		return false;
	return spec->kind == OPTION_DURATION ? duration_parse(next, &ms)
					     : spec->kind == OPTION_ALL && strcmp(next, "all") == 0;
}

static enum status
note_option(struct invocation *inv, struct given *given, int returned, char *next, struct err *err)
{
	const struct option_spec *const spec = spec_of(returned);
	const char *value = optarg;

	if (given->count == GIVEN_MAX)
		return err_set(err, ST_USAGE, "more than %d options", GIVEN_MAX);
	if (value == NULL && may_be_value(spec, next)) {
		value = next;
		optind++;
	}
	if (spec->kind == OPTION_NODE) {
		value = keep_copy(inv, optarg);
		secret_blot(optarg);
	} else if (spec->offset == offsetof(struct options, token))
		value = hide_token(inv, optarg);
	else if (spec->offset == offsetof(struct options, config))
		given->config = value;
	else if (spec->kind == OPTION_ALL || spec->offset == offsetof(struct options, version))
		given->help = true;
	given->has[spec - option_specs] = true;
	given->spec[given->count] = spec;
	given->value[given->count++] = value;
	return ST_OK;
}

/* In "run -- nice ./job" KEY is missing: "nice" is the command, not a lock. */
static enum status
no_key(const char *word, struct err *err)
{
	char shown[100];

	(void)text_show(word, shown, sizeof(shown));
	return err_set(err, ST_USAGE,
	    "KEY is missing before '--', or a second '--' after KEY: use run KEY -- %s ..., or run -- %s -- COMMAND",
	    shown, shown);
}

static enum status
read_words(struct invocation *inv, int argc, char **argv, struct given *given, struct err *err)
{
	char letters[2 * OPTIONS_MAX + 3];
	struct option longs[OPTIONS_MAX + 1];
	enum status status = ST_OK;
	bool over = false, key_came;
	int c, at;

	build_tables(letters, longs);
	opterr = 0;
	while (status == ST_OK && !over) {
		at = optind;
		c = getopt_long(argc, argv, letters, longs, NULL);
		if (c == -1)
			break;
		if (c == 1)
			over = take_operand(inv, optarg, &status, err);
		else if (c == '?' || is_abbreviated(argv[at]))
			status = unknown_option(inv->command, argv[at], err);
		else if (c == ':')
			status = err_set(err, ST_USAGE, "--%s needs a value: %s", spec_of(optopt)->name,
			    spec_of(optopt)->argument);
		else
			status = note_option(inv, given, c, argv[optind], err);
	}
	key_came = inv->operands > 0;
	for (; status == ST_OK && optind < argc; optind++) {
		/* In "run -- KEY -- COMMAND" the second "--" belongs to the options, too.  It must be there. */
		if (inv->operands == 1 && !key_came && is_run(inv)) {
			if (strcmp(argv[optind], "--") != 0) {
				inv->operands = 0;
				return no_key(inv->operand[0], err);
			}
			key_came = true;
		} else
			(void)take_operand(inv, argv[optind], &status, err);
	}
	inv->operand[inv->operands] = NULL;
	return status;
}

/* -- Precedence of options -------------------------------------------------- */

static enum status
apply_given(struct invocation *inv, const struct given *given, struct err *err)
{
	struct options *o = &inv->options;
	enum status status = ST_OK;
	const char *with_keep = NULL;
	char where[64];
	int i;

	o->reading = (struct source){ .origin = ORIGIN_LINE };
	for (i = 0; i < given->count && status == ST_OK; i++) {
		const struct option_spec *spec = given->spec[i];

		if (inv->command != NULL && !option_accepted(spec, inv->command->bit))
			return err_set(err, ST_USAGE, "--%s is not an option of %s", spec->name, inv->command->name);
		(void)snprintf(where, sizeof(where), "--%s", spec->name);
		status = option_set(o, spec, given->value[i], where, err);
		o->ttl_on_line = o->ttl_on_line || spec->offset == offsetof(struct options, ttl_ms);
		if ((spec->commands & CMD_KEEP) != 0)
			with_keep = spec->name;
	}
	if (status == ST_OK && with_keep != NULL && o->keep_pid == 0 && inv->command != NULL &&
	    inv->command->bit == CMD_ACQUIRE)
		return err_set(err, ST_USAGE, "--%s is an option of acquire only with --keep", with_keep);
	return status;
}

static enum status
set_options(struct invocation *inv, const struct given *given, struct err *err)
{
	const char *const named = getenv("DLOCK_CONFIG"), *const nodes = getenv("DLOCK_NODES");
	const char *config = given->config;
	enum status status;

	options_default(&inv->options);
	if (given->help || (inv->command != NULL && inv->command->bit == CMD_HELP))
		return apply_given(inv, given, err); /* a broken environment must not hide the help */
	if (config == NULL && named != NULL && named[0] != '\0')
		config = named;
	status = config_read(config, &inv->options, inv->config, &inv->warning, err);
	if (status == ST_OK)
		status = options_from_environment(&inv->options, given->has, inv->text,
		    nodes != NULL ? strlen(nodes) + 1 : 0, err);
	if (status == ST_OK && inv->options.nodes == 0 && !given->has[option_find("node") - option_specs] &&
	    getenv("SUDO_USER") != NULL &&
	    (inv->command == NULL || (inv->command->bit & (CMD_DOCTOR | CMD_CONFIG)) == 0))
		(void)err_set(&inv->warning, ST_CONFIG,
		    "no node is configured, perhaps since sudo drops DLOCK_NODES: locks are kept on this host only");
	/* In a file, "quiet" is for messages: status would print nothing at all. */
	if (status == ST_OK && inv->command != NULL && inv->command->bit == CMD_STATUS)
		inv->options.quiet = false;
	return status == ST_OK ? apply_given(inv, given, err) : status;
}

static enum status
check_operands(const struct invocation *inv, struct err *err)
{
	const struct command *c = inv->command;

	if (inv->options.help || inv->options.version)
		return ST_OK;
	if (c == NULL)
		return err_set(err, ST_USAGE, "missing command; see dlock --help");
	if (inv->operands < c->least)
		return err_set(err, ST_USAGE, "%s is missing; usage: dlock %s [options] %s",
		    inv->operands == 0 ? "KEY" : "COMMAND", c->name, c->synopsis);
	if (c->most >= 0 && inv->operands > c->most)
		return err_set(err, ST_USAGE, "too many operands; usage: dlock %s [options]%s%s", c->name,
		    c->synopsis[0] != '\0' ? " " : "", c->synopsis);
	return ST_OK;
}

/* Memory for the operands, for copies of the nodes among the words, and for those of DLOCK_NODES. */
static bool
allocate(struct invocation *inv, int argc, char **argv)
{
	const char *const nodes = getenv("DLOCK_NODES");
	size_t size = ((size_t)argc + 1) * sizeof(*inv->operand) + (nodes != NULL ? strlen(nodes) + 1 : 0);
	int i;

	for (i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	inv->operand = malloc(size);
	inv->text = (char *)(inv->operand + argc + 1);
	return inv->operand != NULL;
}

enum status
invocation_parse(struct invocation *inv, int argc, char **argv, struct err *err)
{
	struct given given = { .count = 0 };
	enum status status;

	memset(inv, 0, sizeof(*inv));
	inv->exit_status = -1;
	if (!allocate(inv, argc, argv))
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	status = read_words(inv, argc, argv, &given, err);
	if (status == ST_OK)
		status = set_options(inv, &given, err);
	inv->service = inv->options.nodes > 0 ? service_of(inv->options.node[0]) : services[0];
	return status == ST_OK ? check_operands(inv, err) : status;
}

void
invocation_free(struct invocation *inv)
{
	free(inv->operand);
	free(inv->config[0].text);
	free(inv->config[1].text);
}
