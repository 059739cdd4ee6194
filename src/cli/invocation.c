/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "net/authority.h"

/* -- Words ------------------------------------------------------------------ */

/* The option has no value in its own word.  An optional one is the word that follows only if that fits. */
static enum word
take_value(struct words *w)
{
	char *const next = *w->next;
	bool takes = option_needs_value(w->spec);
	int64_t ms;

	if (takes && next == NULL)
		return WORD_LACKING;
	if (!takes && next != NULL && w->spec->argument != NULL)
		takes = (w->spec->kind == OPTION_DURATION && duration_parse(next, &ms)) ||
		    (w->spec->kind == OPTION_ALL && strcmp(next, "all") == 0);
	w->value = takes ? next : NULL;
	w->next += takes;
	return WORD_OPTION;
}

static enum word
take_letter(struct words *w)
{
	const struct option_spec *spec = option_specs;

	w->text = w->letter++;
	if (*w->letter == '\0')
		w->letter = NULL;
	while (spec < option_specs + option_count && spec->letter != *w->text)
		spec++;
	if (spec == option_specs + option_count)
		return WORD_UNKNOWN;
	w->spec = spec;
	if (w->letter == NULL)
		return take_value(w);
	w->value = NULL;
	if (option_needs_value(spec)) {
		w->value = w->letter;
		w->letter = NULL;
	}
	return WORD_OPTION;
}

static enum word
take_long(struct words *w)
{
	const size_t length = strcspn(w->text + 2, "=");

	w->spec = option_find(w->text + 2, length);
	if (w->spec == NULL)
		return WORD_UNKNOWN;
	if (w->text[2 + length] == '\0')
		return take_value(w);
	w->value = w->text + 2 + length + 1;
	return w->spec->argument != NULL ? WORD_OPTION : WORD_EXCESS;
}

/* Take a "--" that ends the options, or that must be before COMMAND.  False: the word is another one. */
static bool
take_dashes(struct words *w)
{
	const bool run = w->command != NULL && w->command->bit == CMD_RUN;

	if (strcmp(w->text, "--") != 0)
		return false;
	if (!w->over) {
		w->over = true;
		w->behind = w->operands == 0;
		return true;
	}
	if (!run || w->operands != 1 || !w->behind)
		return false;
	w->behind = false;
	return true;
}

enum word
words_next(struct words *w)
{
	if (w->letter != NULL)
		return take_letter(w);
	do {
		w->text = *w->next;
		if (w->text == NULL)
			return WORD_END;
		w->next++;
	} while (take_dashes(w));
	if (!w->over && w->text[0] == '-' && w->text[1] == '-')
		return take_long(w);
	if (!w->over && w->text[0] == '-' && w->text[1] != '\0') {
		w->letter = w->text + 1;
		return take_letter(w);
	}
	if (!w->named) {
		w->named = true;
		w->command = command_find(w->text);
		return WORD_COMMAND;
	}
	if (w->command != NULL && w->command->bit == CMD_RUN && w->operands == 1) {
		if (w->behind) {
			w->text = w->next[-2];
			return WORD_MISPLACED;
		}
		w->over = true;
	}
	w->operands++;
	return WORD_OPERAND;
}

/* -- Errors ----------------------------------------------------------------- */

struct meaning {
	const char *word, *meant;
};

/* The meaning of a word of other tools; NULL: it is unknown.  The last one has no word. */
static const char *
look_up(const struct meaning *m, const char *word)
{
	while (m->word != NULL && strcmp(m->word, word) != 0)
		m++;
	return m->meant;
}

enum status
command_unknown(const char *name, struct err *err)
{
	static const struct meaning commands_of_others[] = { { "unlock", "release" }, { "free", "release" },
		{ "lock", "acquire" }, { "take", "acquire" }, { "list", "status" }, { "ls", "status" },
		{ "show", "status" }, { "ps", "status" }, { "exec", "run" }, { "kill", "break" }, { "check", "doctor" },
		{ NULL, NULL } };
	const char *const meant = look_up(commands_of_others, name);
	char shown[100];

	return err_set(err, ST_USAGE, "unknown command '%s'; %s%s%ssee dlock --help",
	    text_show(name, shown, sizeof(shown)), meant != NULL ? "did you mean " : "", meant != NULL ? meant : "",
	    meant != NULL ? "? " : "");
}

/* Refuse a word that is not valid. */
static enum status
refuse_word(enum word kind, const struct words *w, struct err *err)
{
	/* Of flock(1) and timeout(1). */
	static const char exclusive[] = "a lock is exclusive unless --shared is given";
	static const struct meaning options_of_others[] = { { "timeout", "use --wait DUR" },
		{ "nonblock", "use --no-wait (-n)" }, { "nonblocking", "use --no-wait (-n)" },
		{ "nb", "use --no-wait (-n)" }, { "try", "use --no-wait (-n)" }, { "x", exclusive }, { "e", exclusive },
		{ "exclusive", exclusive }, { "s", "use --shared; a signal is --signal SIG" },
		{ "u", "use the command release" }, { "unlock", "use the command release" },
		{ "expire", "use --ttl DUR" }, { NULL, NULL } };
	const bool letter = w->text != w->next[-1];
	char name[64], shown[100];
	size_t length = strcspn(w->text, "=");
	const char *foreign;

	if (kind == WORD_COMMAND)
		return command_unknown(w->text, err);
	if (kind == WORD_EXCESS)
		return err_set(err, ST_USAGE, "--%s takes no value", w->spec->name);
	if (kind == WORD_LACKING)
		return err_set(err, ST_USAGE, "--%s needs a value: %s", w->spec->name, w->spec->argument);
	(void)text_show(w->text, shown, sizeof(shown));
	if (kind == WORD_MISPLACED)
		return err_set(err, ST_USAGE,
		    "KEY is missing before '--', or a second '--' after KEY: use run KEY -- %s ..., or run -- %s -- COMMAND",
		    shown, shown);
	if (letter) /* all bytes of a UTF-8 character */
		for (length = 1; (w->text[0] & 0xc0) == 0xc0 && length < 4 && (w->text[length] & 0xc0) == 0x80;)
			length++;
	(void)snprintf(name, sizeof(name), "%.*s", (int)length, w->text);
	foreign = look_up(options_of_others, letter ? name : name + 2);
	(void)text_show(name, shown, sizeof(shown));
	if (foreign != NULL)
		return err_set(err, ST_USAGE, "unknown option '%s%s'; %s", letter ? "-" : "", shown, foreign);
	return err_set(err, ST_USAGE, "unknown option '%s%s'; see dlock %s%s--help%s", letter ? "-" : "", shown,
	    w->command != NULL ? w->command->name : "", w->command != NULL ? " " : "",
	    w->command != NULL ? "" : " all");
}

/* -- The command line -------------------------------------------------------- */

/* Copy a word that is visible in the list of processes, and overwrite its secret there: a token, or that of a URL. */
static char *
hide(struct invocation *inv, char *word, bool token)
{
	char *const copy = inv->text;

	inv->text = stpcpy(inv->text, word) + 1;
	if (!token)
		url_blot(word);
	else if (strcmp(word, "-") != 0)
		memset(word, '*', strlen(word));
	return copy;
}

/*
 * The first error counts.  It does not end the loop: messages name KEY, and a failed --export prints something for
 * eval.
 */
static enum status
read_words(struct invocation *inv, char **argv, struct err *err)
{
	struct words w = { .next = argv };
	enum status status = ST_OK, ended;
	bool token, sane = true; /* all words were understood so far */
	struct err ignored = { "" }, *why;
	enum word kind;

	inv->options.reading = (struct source){ .origin = ORIGIN_LINE };
	while ((kind = words_next(&w)) != WORD_END) {
		why = status == ST_OK ? err : &ignored;
		ended = ST_OK;
		if (kind == WORD_OPTION) {
			token = w.spec->offset == offsetof(struct options, token);
			if (w.value != NULL && (token || w.spec->kind == OPTION_NODE))
				w.value = hide(inv, w.value, token);
			ended = option_set(&inv->options, w.spec, w.value, why);
		} else if (kind == WORD_OPERAND && sane) {
			if (inv->operands == 1 && (w.command->bit & (CMD_RENEW | CMD_RELEASE)) != 0)
				w.text = hide(inv, w.text, true);
			inv->operand[inv->operands++] = w.text;
		} else if (kind == WORD_COMMAND && w.command != NULL)
			inv->command = w.command;
		else if (sane) {
			ended = refuse_word(kind, &w, why);
			sane = false;
			if (kind == WORD_MISPLACED) /* it is no KEY */
				inv->operands = 0;
		}
		if (status == ST_OK)
			status = ended;
	}
	inv->operand[inv->operands] = NULL;
	return status;
}

/* -- Precedence of options -------------------------------------------------- */

/*
 * The options of the line must be those of the command, wherever it stands among them.  --no-wait sets --wait, too, and
 * is behind it in the table.
 */
static enum status
check_accepted(const struct invocation *inv, struct err *err)
{
	const struct options *const o = &inv->options;
	size_t i;

	for (i = option_count; i-- > 0 && inv->command != NULL;) {
		const struct option_spec *const spec = &option_specs[i];

		if (o->source[i].origin != ORIGIN_LINE)
			continue;
		/* config accepts each setting. */
		if ((spec->commands & inv->command->bit) == 0 &&
		    (inv->command->bit != CMD_CONFIG || (spec->commands & CMD_LINE_ONLY) != 0))
			return err_set(err, ST_USAGE, "--%s is not an option of %s", spec->name, inv->command->name);
		if ((spec->commands & CMD_KEEP) != 0 && o->keep_pid == 0 && inv->command->bit == CMD_ACQUIRE)
			return err_set(err, ST_USAGE, "--%s is an option of acquire only with --keep", spec->name);
	}
	return ST_OK;
}

/* The options that were not given on the line. */
static enum status
find_defaults(struct invocation *inv, struct err *err)
{
	struct options *const o = &inv->options;
	enum status status = options_from_environment(o, inv->text, err);

	if (status == ST_OK)
		status = config_read(o->config, o, inv->config, &inv->warning, err);
	if (status == ST_OK && o->nodes == 0 && getenv("SUDO_USER") != NULL &&
	    (inv->command == NULL || (inv->command->bit & (CMD_DOCTOR | CMD_CONFIG)) == 0))
		(void)err_set(&inv->warning, ST_CONFIG,
		    "no node is configured, perhaps since sudo drops DLOCK_NODES: locks are kept on this host only");
	/* In a file, "quiet" is for messages: status would print nothing at all. */
	if (inv->command != NULL && inv->command->bit == CMD_STATUS && options_origin(o, "quiet") != ORIGIN_LINE)
		o->quiet = false;
	return status;
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

enum status
invocation_parse(struct invocation *inv, int argc, char **argv, struct err *err)
{
	const char *const nodes = getenv("DLOCK_NODES");
	size_t size = ((size_t)argc + 1) * sizeof(*inv->operand) + (nodes != NULL ? strlen(nodes) + 1 : 0);
	enum status status;
	int i;

	memset(inv, 0, sizeof(*inv));
	inv->exit_status = -1;
	/* Memory for the operands, for copies of the nodes among the words, and for those of DLOCK_NODES. */
	for (i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	inv->operand = malloc(size);
	if (inv->operand == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	inv->text = (char *)(inv->operand + argc + 1);
	options_default(&inv->options);
	status = read_words(inv, argv + (argc > 0), err);
	if (status == ST_OK)
		status = check_accepted(inv, err);
	/* A broken environment must not hide the help. */
	if (status == ST_OK && !inv->options.help && !inv->options.version &&
	    (inv->command == NULL || inv->command->bit != CMD_HELP))
		status = find_defaults(inv, err);
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
