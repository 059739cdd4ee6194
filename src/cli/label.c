/* SPDX-License-Identifier: MIT */
#include "cli/label.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* The first words of a line of the shell. */
struct line {
	char text[1024];
	char *word[32];
};

static const char *
base_name(const char *path)
{
	const char *const slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static bool
is_assignment(const char *word)
{
	const size_t name = strspn(word, NAME);

	return name > 0 && word[name] == '=';
}

/* Cut a line into words, up to the first one that has a meaning for the shell, such as a quote. */
static char *const *
cut(const char *line, struct line *w)
{
	static const char blanks[] = " \t\n";
	size_t count = 0;
	char *rest = w->text, *word;

	(void)snprintf(w->text, sizeof(w->text), "%s", line);
	while (count + 1 < sizeof(w->word) / sizeof(w->word[0]) && (word = strtok_r(rest, blanks, &rest)) != NULL &&
	    strpbrk(word, "'\"\\`$(){}[]<>;&|*?!#~") == NULL)
		w->word[count++] = word;
	w->word[count] = NULL;
	return w->word;
}

/*
 * The words behind a wrapper and its options; NULL: it is none, or what it runs is not a word of its own.  An option takes
 * the next word if it is among the letters with an argument, and is the last one of its word.
 */
static char *const *
behind_wrapper(char *const *word)
{
	/* Its name, the letters with an argument, those with the code to run, and operands before the command. */
	static const char *const wrappers[][4] = { { "bash", "oO", "c", "" }, { "chrt", "DPT", "", "1" },
		{ "dash", "o", "c", "" }, { "doas", "Cu", "", "" }, { "env", "Cu", "S", "" },
		{ "ionice", "PcnPpu", "", "" }, { "ksh", "o", "c", "" }, { "nice", "n", "", "" },
		{ "nohup", "", "", "" }, { "python", "WX", "c", "" }, { "python3", "WX", "c", "" },
		{ "setsid", "", "", "" }, { "sh", "o", "c", "" }, { "stdbuf", "eio", "", "" },
		{ "sudo", "CDRTUghprtu", "", "" }, { "timeout", "ks", "", "1" }, { "zsh", "o", "c", "" } };
	const char *const name = base_name(*word);
	size_t i = 0, letters;

	while (i < sizeof(wrappers) / sizeof(wrappers[0]) && strcmp(wrappers[i][0], name) != 0)
		i++;
	if (i == sizeof(wrappers) / sizeof(wrappers[0]))
		return NULL;
	for (word++; *word != NULL && **word == '-'; word++) {
		if (strcmp(*word, "--") == 0) {
			word++;
			break;
		}
		if ((*word)[1] == '-')
			continue;
		letters = strcspn(*word, wrappers[i][1]);
		if (strcspn(*word, wrappers[i][2]) < letters)
			return NULL;
		if ((*word)[letters] != '\0' && (*word)[letters + 1] == '\0' && *++word == NULL)
			return NULL;
	}
	while (*word != NULL && is_assignment(*word)) /* of env and sudo */
		word++;
	return *word != NULL && wrappers[i][3][0] != '\0' ? word + 1 : word;
}

/* The words behind `dlock run KEY`; NULL: it is none. */
static char *const *
behind_dlock(char *const *word, struct line *line)
{
	struct words w = { .next = word + 1 };
	bool shell = false;
	enum word kind;

	if (strcmp(base_name(*word), "dlock") != 0)
		return NULL;
	while ((kind = words_next(&w)) != WORD_END && w.operands < 2) {
		shell = shell || (kind == WORD_OPTION && w.spec->letter == 'c');
		if (kind == WORD_MISPLACED || kind == WORD_LACKING)
			return NULL;
	}
	if (w.operands < 2 || w.command == NULL || w.command->bit != CMD_RUN)
		return NULL;
	return shell ? cut(w.text, line) : w.next - 1;
}

void
label_default(char *const *argv, bool shell, char label[LABEL_MAX + 1])
{
	char *const *word = shell ? NULL : argv, *const * next;
	const char *name = "";
	struct line outer, inner;

	if (shell)
		word = cut(argv[0], &outer);
	while (word != NULL && *word != NULL) {
		next = word + 1;
		if (!is_assignment(*word)) {
			name = base_name(*word);
			next = behind_wrapper(word);
			next = next != NULL ? next : behind_dlock(word, &inner);
		}
		word = next;
	}
	if (strspn(name, NAME "./+-") != strlen(name))
		name = "";
	(void)snprintf(label, LABEL_MAX + 1, "%s", name);
}
