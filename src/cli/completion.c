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

/* The values of an option that begins at `value`, in the same word or in one of its own. */
static void
offer_value(const struct option_spec *spec, const char *word, const char *value)
{
	/* Those that are few, by blanks or |. */
	static const char *const few[] = { [OPTION_WAIT] = "forever",
		[OPTION_GUARD] = "auto",
		[OPTION_SIGNAL] = "HUP INT QUIT ABRT KILL USR1 USR2 ALRM TERM WINCH",
		[OPTION_ON_LOST] = "kill|warn",
		[OPTION_SHELL] = "sh fish",
		[OPTION_ALL] = NULL };
	const char *const argument = spec->argument != NULL ? spec->argument : "", *part = few[spec->kind];
	const int stays = (int)(value - word);
	int length;

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
		for (; part != NULL && *part != '\0'; part += length + (part[length] != '\0')) {
			length = (int)strcspn(part, " |");
			printf("%.*s%s%.*s\n", stays, word, spec->kind == OPTION_SIGNAL && *value == 'S' ? "SIG" : "",
			    length, part);
		}
	}
}

/* Offer options of the command, which may be behind the cursor. */
static void
offer_options(const struct words *before, char *const *after)
{
	struct words w = { .next = after };
	const struct command *command;
	const struct option_spec *o;

	while (!before->named && !w.named && words_next(&w) != WORD_END)
		;
	command = before->named ? before->command : w.command;
	puts("options");
	for (o = option_specs; o < option_specs + option_count; o++) {
		if ((o->commands & (command != NULL ? command->bit : CMD_ALL)) == 0)
			continue;
		printf("--%s\t%s\n", o->name, o->help);
		if (o->letter != 0)
			printf("-%c\t%s\n", o->letter, o->help);
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

/* Look at the words before the cursor, and keep the options that select the locks.  False: it is behind the first word of COMMAND, which has this index. */
static bool
look_before(struct completion *c, char *const *words, int *command)
{
	const char *const home = getenv("HOME"), *value;
	const struct option_spec *spec;
	enum word kind;
	bool tilde;

	c->words.next = words;
	while ((kind = words_next(&c->words)) != WORD_END) {
		if (kind == WORD_LACKING)
			c->wanted = c->words.spec;
		else if (kind == WORD_OPTION && c->options < WHERE_MAX) {
			spec = c->words.spec;
			value = c->words.value;
			tilde = value != NULL && strncmp(value, "~/", 2) == 0 && home != NULL;
			if ((spec->kind == OPTION_NODE || strcmp(spec->name, "prefix") == 0 ||
				strcmp(spec->name, "config") == 0 || strcmp(spec->name, "password-file") == 0) &&
			    asprintf(&c->where[c->options], "--%s=%s%s", spec->name, tilde ? home : "",
				value + tilde) >= 0)
				c->options++;
		} else if ((kind == WORD_OPERAND && c->words.operands == 2 && c->words.command->bit == CMD_RUN) ||
		    kind == WORD_MISPLACED) {
			*command = (int)(c->words.next - words) - 1;
			return false;
		}
	}
	return true;
}

void
completion_print(char **argv)
{
	struct completion c = { .wanted = NULL };
	char **const words = argv + 1, *word;
	const char *equals;
	int at = 0, command;

	if (argv[0] == NULL)
		return;
	while (at < strtol(argv[0], NULL, 10) && words[at] != NULL)
		at++;
	word = words[at];
	if (word == NULL)
		return;
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
		offer_options(&c.words, words + at + 1);
	else if (!c.words.named)
		offer_commands();
	else if (c.words.command == NULL)
		return;
	else if (c.words.operands == 1 && c.words.command->bit == CMD_RUN)
		printf("command %d\n", at);
	else if (c.words.operands == 0 || strstr(c.words.command->synopsis, "...") != NULL) {
		if (strncmp(c.words.command->synopsis, "KEY", 3) == 0 ||
		    strncmp(c.words.command->synopsis, "[KEY", 4) == 0)
			offer_keys(&c);
		else if (strcmp(c.words.command->synopsis, "[COMMAND]") == 0)
			offer_commands();
	}
}
