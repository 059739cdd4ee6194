/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer: each input of its corpus once.
 *
 *	url			replay the corpus of the target url, as "make check" does
 *	url FILE...		replay these inputs
 *	url --unpack FOLDER	write each input of the corpus to a file in the directory, as libFuzzer needs them
 *	url --pack FILE...	print the files as a corpus
 *
 * A corpus is a text with one input per line, with \\, \n, \r, \t, \0 and \xHH for bytes that are not printable
 * ASCII.  A line that begins with # is the name of the inputs below it, each of which is a separate test.  All
 * unnamed inputs are one test together.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

static int last_line; /* of the corpus, to find the input that aborted */

static void
tell_line(void)
{
	char text[64];
	const int length = snprintf(text, sizeof(text), "by line %d of the corpus\n", last_line);

	(void)!write(STDERR_FILENO, text, (size_t)length);
}

static void
aborted(int signal)
{
	(void)signal;
	tell_line();
	_exit(EXIT_FAILURE);
}

/* Defined only in a build with ASan. */
void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

static const char marks[] = "\\nrt0", bytes_of_marks[] = "\\\n\r\t";

/* Replace the escapes of a line in place.  Returns the number of bytes. */
static size_t
decode(char *line)
{
	char *from = line, *to = line;
	const char *fingerprint;
	unsigned int byte;

	while (*from != '\0' && *from != '\n') {
		if (*from != '\\')
			*to++ = *from++;
		else if (from[1] == 'x' && sscanf(from + 2, "%2x", &byte) == 1) {
			*to++ = (char)byte;
			from += 4;
		} else {
			fingerprint = from[1] != '\0' ? strchr(marks, from[1]) : NULL;
			must(fingerprint != NULL, "an escape that there is not: %s", from);
			*to++ = bytes_of_marks[fingerprint - marks];
			from += 2;
		}
	}
	return (size_t)(to - line);
}

static void
encode(const char *bytes, size_t length)
{
	const char *found;

	for (size_t i = 0; i < length; i++) {
		found = memchr(bytes_of_marks, bytes[i], sizeof(bytes_of_marks));
		if (found != NULL)
			printf("\\%c", marks[found - bytes_of_marks]);
		else if (bytes[i] < 0x20 || bytes[i] > 0x7e || (i == 0 && bytes[i] == '#'))
			printf("\\x%02x", (unsigned int)(unsigned char)bytes[i]);
		else
			putchar(bytes[i]);
	}
	putchar('\n');
}

/* Run the target with a copy of the input, in memory of the exact size. */
static void
try(const char *bytes, size_t length)
{
	uint8_t *copy = malloc(length > 0 ? length : 1);

	must(copy != NULL, "no memory");
	memcpy(copy, bytes, length);
	(void)LLVMFuzzerTestOneInput(copy, length);
	free(copy);
}

static size_t
read_file(const char *path, char **bytes)
{
	enum {
		MOST = 1 << 20
	};
	FILE *in = fopen(path, "re");
	size_t length;

	must(in != NULL, "cannot read %s", path);
	*bytes = malloc(MOST);
	must(*bytes != NULL, "no memory");
	length = fread(*bytes, 1, MOST, in);
	(void)fclose(in);
	return length;
}

static void
write_file(const char *folder, int number, const char *bytes, size_t length)
{
	char path[4096];
	FILE *out;

	(void)snprintf(path, sizeof(path), "%s/%04d", folder, number);
	out = fopen(path, "we");
	must(out != NULL && fwrite(bytes, 1, length, out) == length && fclose(out) == 0, "cannot write %s", path);
}

/* Report a test: of a named input, or of all unnamed inputs. */
static int
passed(int number, const char *name)
{
	printf("ok %d - %s\n", number, name);
	(void)fflush(stdout);
	return number;
}

/* Write each input of the corpus to the directory; if it is NULL, run the target with each. */
static int
go_through(const char *corpus, const char *folder)
{
	FILE *in = fopen(corpus, "re");
	char *line = NULL, name[120] = "";
	size_t room = 0, length;
	int inputs = 0, tests = 0, unnamed = 0, number;

	must(in != NULL, "there is no corpus %s", corpus);
	for (number = 1; getline(&line, &room, in) > 0; number++) {
		if (line[0] == '#') {
			(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(line + 2, "\n"), line + 2);
			continue;
		}
		length = decode(line);
		inputs++;
		unnamed += name[0] == '\0';
		if (folder != NULL) {
			write_file(folder, inputs, line, length);
			continue;
		}
		last_line = number;
		try(line, length);
		if (name[0] != '\0')
			tests = passed(tests + 1, name);
	}
	free(line);
	(void)fclose(in);
	(void)snprintf(name, sizeof(name), "%d inputs that cover much", unnamed);
	if (folder == NULL)
		printf("1..%d\n", passed(tests + 1, name));
	return inputs > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
go_through_files(int files, char **paths, bool pack)
{
	size_t length;
	char *bytes;

	for (int i = 0; i < files; i++) {
		length = read_file(paths[i], &bytes);
		if (pack)
			encode(bytes, length);
		else
			try(bytes, length);
		free(bytes);
	}
	return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	const char *const top = getenv("top_srcdir");
	const char *const slash = strrchr(argv[0], '/');
	char corpus[4096];

	(void)snprintf(corpus, sizeof(corpus), "%s/tests/fuzz/corpus/%s.txt", top != NULL ? top : ".",
	    slash != NULL ? slash + 1 : argv[0]);
	if (argc == 1) {
		(void)signal(SIGABRT, aborted);
		if (__sanitizer_set_death_callback != NULL)
			__sanitizer_set_death_callback(tell_line);
		return go_through(corpus, NULL);
	}
	if (argc == 3 && strcmp(argv[1], "--unpack") == 0)
		return go_through(corpus, argv[2]);
	if (strcmp(argv[1], "--pack") == 0)
		return go_through_files(argc - 2, argv + 2, true);
	return go_through_files(argc - 1, argv + 1, false);
}
