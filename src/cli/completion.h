/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_COMPLETION_H
#define DLOCK_CLI_COMPLETION_H

/*
 * What a shell offers at the cursor, for the scripts in completions: `dlock --complete N WORD...` with all words of the line
 * behind dlock, of which the Nth, from 0 on, ends at the cursor.  The first line that is printed says what follows:
 *
 *	options, commands	lines of a word, a tab, and what it means
 *	values, keys		lines of a word
 *	list			the same, and a word may go on with a comma
 *	files, programs		nothing: the shell knows them; after "--name=" they are the rest of the word
 *	command N		nothing: the words from the Nth on are a command of their own
 *
 * Nothing is printed if there is nothing to offer.
 */
void completion_print(char **argv);

#endif
