/* SPDX-License-Identifier: MIT */
/*
 * Runs the fuzz target without libFuzzer: "service" replays each input of its corpus, "service FILE..." these.
 *
 * A corpus has one input to a line, as hexadecimal digits; a line that begins with # is a comment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "servers.h"

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

static void
replay_file(const char *path)
{
	static char bytes[1 << 20];
	FILE *in = fopen(path, "re");

	must(in != NULL, "cannot read %s", path);
	try(bytes, fread(bytes, 1, sizeof(bytes), in));
	(void)fclose(in);
}

/* Replace the digits by the bytes, in place.  Returns their number. */
static size_t
decode(char *line)
{
	size_t length = 0;
	unsigned int byte;

	for (const char *at = line; sscanf(at, "%2x", &byte) == 1; at += 2)
		line[length++] = (char)byte;
	return length;
}

static int
replay_corpus(const char *path)
{
	FILE *in = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int inputs = 0;

	must(in != NULL, "there is no corpus %s", path);
	for (int number = 1; getline(&line, &room, in) > 0; number++) {
		if (line[0] == '#')
			continue;
		printf("# line %d\n", number); /* the last one is what failed */
		(void)fflush(stdout);
		try(line, decode(line));
		inputs++;
	}
	free(line);
	(void)fclose(in);
	printf("ok 1 - %d inputs\n1..1\n", inputs);
	return inputs > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	const char *const top = getenv("top_srcdir");
	char corpus[4096];

	for (int i = 1; i < argc; i++)
		replay_file(argv[i]);
	(void)snprintf(corpus, sizeof(corpus), "%s/tests/fuzz/corpus.txt", top != NULL ? top : ".");
	return argc > 1 ? EXIT_SUCCESS : replay_corpus(corpus);
}
