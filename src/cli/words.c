/* SPDX-License-Identifier: MIT */
#include "cli/words.h"

#include <string.h>

#include "base/duration.h"

/* The word that follows, NULL if there is none, as the value of an option whose argument is optional. */
static char *
optional_value(struct words *w)
{
	char *const next = *w->next;
	int64_t ms;
	bool fits = false;

	if (next != NULL && w->spec->kind == OPTION_DURATION)
		fits = duration_parse(next, &ms);
	else if (next != NULL && w->spec->kind == OPTION_ALL)
		fits = strcmp(next, "all") == 0;
	w->next += fits;
	return fits ? next : NULL;
}

/* The option has no value in its own word. */
static enum word
take_value(struct words *w)
{
	if (!option_needs_value(w->spec)) {
		w->value = w->spec->argument != NULL ? optional_value(w) : NULL;
		return WORD_OPTION;
	}
	w->value = *w->next;
	if (w->value == NULL)
		return WORD_LACKING;
	w->next++;
	return WORD_OPTION;
}

static enum word
take_letter(struct words *w)
{
	w->text = w->letter++;
	w->spec = option_of_letter(*w->text);
	if (w->spec != NULL && option_needs_value(w->spec) && *w->letter != '\0') {
		w->value = w->letter;
		w->letter = NULL;
		return WORD_OPTION;
	}
	if (*w->letter == '\0')
		w->letter = NULL;
	if (w->spec == NULL)
		return WORD_UNKNOWN;
	if (w->letter == NULL)
		return take_value(w);
	w->value = NULL;
	return WORD_OPTION;
}

static enum word
take_long(struct words *w)
{
	char *const equals = strchr(w->text, '=');

	w->spec = option_find_prefix(w->text + 2,
	    equals != NULL ? (size_t)(equals - w->text - 2) : strlen(w->text + 2));
	if (w->spec == NULL)
		return WORD_UNKNOWN;
	if (equals == NULL)
		return take_value(w);
	w->value = equals + 1;
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
