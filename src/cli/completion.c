/* SPDX-License-Identifier: MIT */
#include "cli/completion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/setup.h"

enum {
	WHERE_MAX = 32 /* options that select the locks */
};

struct completion {
	struct words words;
	const struct option_spec *wanted; /* whose value the current word is; NULL: none */
	char *where[WHERE_MAX + 1];
	int options;
};

/* Offer what blanks or | separate in a text, each after the part of the word that stays. */
static void
offer_parts(const char *stays, int length, const char *parts)
{
	size_t part;

	for (; *parts != '\0'; parts += part + (parts[part] != '\0')) {
		part = strcspn(parts, " |");
		printf("%.*s%.*s\n", length, stays, (int)part, parts);
	}
}

/* The columns are the words in capitals behind COLUMNS in the help of status. */
static void
offer_columns(const char *stays, const char *value)
{
	static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *const comma = strrchr(value, ','), *const last = comma != NULL ? comma + 1 : value;
	const char *at = strstr(command_find("status")->details, "COLUMNS:") + strlen("COLUMNS:");
	const bool lower = *last >= 'a' && *last <= 'z';
	size_t length, i;

	for (; *at != '.'; at += length + (length == 0)) {
		length = strspn(at, capitals);
		if (length == 0)
			continue;
		printf("%.*s", (int)(last - stays), stays);
		for (i = 0; i < length; i++)
			putchar(lower ? at[i] + ('a' - 'A') : at[i]);
		putchar('\n');
	}
}

/* The values of an option that are few, separated by blanks or |. */
static const char *
few_values(const struct option_spec *spec, bool long_names)
{
	switch (spec->kind) {
	case OPTION_SIGNAL:
		return long_names ? "SIGHUP SIGINT SIGQUIT SIGABRT SIGKILL SIGUSR1 SIGUSR2 SIGALRM SIGTERM SIGWINCH"
				  : "HUP INT QUIT ABRT KILL USR1 USR2 ALRM TERM WINCH";
	case OPTION_WAIT:
		return "forever";
	case OPTION_GUARD:
		return "auto";
	case OPTION_SHELL:
		return "sh fish";
	default:
		return spec->kind == OPTION_ON_LOST ? spec->argument : "";
	}
}

/* The value of an option that begins at `value`, in the same word or in one of its own. */
static void
offer_value(const struct option_spec *spec, const char *word, const char *value)
{
	const char *const argument = spec->argument != NULL ? spec->argument : "";
	const int stays = (int)(value - word);

	if (strcmp(argument, "FILE") == 0 || strcmp(argument, "DIR") == 0 ||
	    (spec->kind == OPTION_NODE && (*value == '/' || *value == '~')))
		puts("files");
	else if (strcmp(argument, "CMD") == 0)
		puts("programs");
	else if (spec->kind == OPTION_PID)
		printf("values\n%.*s%ld\n", stays, word, (long)setup_caller());
	else if (strcmp(argument, "COLUMNS") == 0) {
		puts("list");
		offer_columns(word, value);
	} else {
		puts("values");
		offer_parts(word, stays, few_values(spec, *value == 'S'));
	}
}

static void
offer_options(const struct command *command)
{
	size_t i;

	puts("options");
	for (i = 0; i < option_count; i++) {
		const struct option_spec *const spec = &option_specs[i];

		if ((spec->commands & (command != NULL ? command->bit : CMD_ALL)) == 0)
			continue;
		printf("--%s\t%s\n", spec->name, spec->help);
		if (spec->letter != 0)
			printf("-%c\t%s\n", spec->letter, spec->help);
	}
}

static void
offer_commands(void)
{
	size_t i;

	puts("commands");
	for (i = 0; i < command_count; i++)
		printf("%s\t%s\n", commands[i].name, commands[i].summary);
}

/* Keep an option that selects the locks. */
static void
keep_where(struct completion *c)
{
	const struct option_spec *const spec = c->words.spec;
	const char *const home = getenv("HOME");
	const bool tilde = c->words.value != NULL && strncmp(c->words.value, "~/", 2) == 0 && home != NULL;

	if (c->options == WHERE_MAX ||
	    (spec->kind != OPTION_NODE && strcmp(spec->name, "prefix") != 0 && strcmp(spec->name, "config") != 0 &&
		strcmp(spec->name, "password-file") != 0))
		return;
	if (asprintf(&c->where[c->options], "--%s=%s%s", spec->name, tilde ? home : "", c->words.value + tilde) >= 0)
		c->options++;
}

/* Offer the keys of the existing locks: dlock status prints them, in a second at most. */
static void
offer_keys(struct completion *c)
{
	static char dlock[] = "dlock", status[] = "status", column[] = "--output=KEY", plain[] = "--no-headings",
		    timeout[] = "--node-timeout=200ms";
	char *argv[WHERE_MAX + 6] = { dlock, status, column, plain, timeout };

	puts("keys");
	if (fflush(stdout) != 0)
		return;
	memcpy(argv + 5, c->where, sizeof(c->where));
	(void)alarm(1);
	(void)execv("/proc/self/exe", argv);
}

/* Look at the words before the cursor.  False: it is behind the first word of COMMAND, which has this index. */
static bool
look_before(struct completion *c, char *const *words, int *command)
{
	enum word kind;

	c->words.next = words;
	while ((kind = words_next(&c->words)) != WORD_END) {
		if (kind == WORD_LACKING)
			c->wanted = c->words.spec;
		else if (kind == WORD_OPTION)
			keep_where(c);
		else if ((kind == WORD_OPERAND && c->words.operands == 2 && c->words.command->bit == CMD_RUN) ||
		    kind == WORD_MISPLACED) {
			*command = (int)(c->words.next - words) - 1;
			return false;
		}
	}
	return true;
}

/* The command may be behind the cursor. */
static const struct command *
command_after(const struct words *before, char *const *after)
{
	struct words w = { .next = after };

	while (!before->named && !w.named && words_next(&w) != WORD_END)
		;
	return before->named ? before->command : w.command;
}

static void
offer_operand(struct completion *c, int at)
{
	const struct command *const command = c->words.command;
	const char *const synopsis = command != NULL ? command->synopsis : "";

	if (command != NULL && c->words.operands == 1 && command->bit == CMD_RUN)
		printf("command %d\n", at);
	else if (c->words.operands > 0 && strstr(synopsis, "...") == NULL)
		return;
	else if (strncmp(synopsis, "KEY", 3) == 0 || strncmp(synopsis, "[KEY", 4) == 0)
		offer_keys(c);
	else if (strcmp(synopsis, "[COMMAND]") == 0)
		offer_commands();
}

void
completion_print(char **argv)
{
	struct completion c = { .wanted = NULL };
	char **const words = argv + 1, **after, *word;
	const char *equals;
	int at = 0, command;

	if (argv[0] == NULL)
		return;
	while (at < strtol(argv[0], NULL, 10) && words[at] != NULL)
		at++;
	word = words[at];
	if (word == NULL)
		return;
	after = words + at + 1;
	words[at] = NULL;
	if (!look_before(&c, words, &command))
		printf("command %d\n", command);
	else if (c.wanted != NULL)
		offer_value(c.wanted, word, word);
	else if (!c.words.over && strncmp(word, "--", 2) == 0 && (equals = strchr(word, '=')) != NULL) {
		c.wanted = option_find(word + 2, (size_t)(equals - word - 2));
		if (c.wanted != NULL)
			offer_value(c.wanted, word, equals + 1);
	} else if (!c.words.over && word[0] == '-')
		offer_options(command_after(&c.words, after));
	else if (!c.words.named)
		offer_commands();
	else
		offer_operand(&c, at);
}
