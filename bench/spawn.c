/* SPDX-License-Identifier: MIT */
/*
 * Starts processes and takes their time; small itself, so that what is measured is theirs.
 *
 *	spawn turns ROUNDS ::: COMMAND... [::: COMMAND...]...
 *		Each command once a round, in random order.  A separator may end in a number N: only in each Nth
 *		round; or in +: right behind the command before it, whose output is in its $DLOCK_TOKEN.  A line for
 *		each run: round, number of the command, nanoseconds on the wall, nanoseconds of the CPU, KiB of the
 *		largest process, switches of context that it asked for.
 *	spawn many COUNT COMMAND...
 *		So many processes at once, each with its number in $N, one for each byte on standard input, and at
 *		its end all that are left.  Tells the instants: "begun NS", "started NS", "ended NS"; and "slowest NS",
 *		how long the longest of them ran.
 *	spawn hold FIFO
 *		Says "held", waits for a byte from the FIFO, tells the instant and ends.
 *	spawn stamp
 *		Tells the instant.
 *	spawn tie COMMAND...
 *		Becomes the command, which is killed with whoever started it.
 *
 * The wall's time is from before posix_spawn(3) to after wait4(2).  The CPU's is that of the process, of its children
 * and of whatever outlived it; the next run begins when nothing of this one is left.  An instant is nanoseconds of
 * CLOCK_MONOTONIC.  All processes are killed with the one that started them.
 */
#ifdef HAVE_SYS_PRCTL_H
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

enum {
	COMMANDS = 64,
	TOKEN = 512
};

struct command {
	char **argv;
	unsigned int every; /* only in each so many'th round */
	bool second;	    /* right behind the one before, with its output as the token */
};

struct run {
	int64_t wall_ns, cpu_ns;
	long rss_kib, switches;
};

static int null_fd;

/* Where the parent is gone already, the signal of its death never comes. */
static void
tie(pid_t parent)
{
#ifdef PR_SET_PDEATHSIG
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	if (getppid() != parent)
		_exit(1);
}

static pid_t
start(char *const argv[], int out)
{
	const pid_t parent = getpid();
	const pid_t pid = vfork();

	if (pid < 0)
		fail("vfork", strerror(errno));
	if (pid == 0) {
		tie(parent);
		(void)dup2(null_fd, STDIN_FILENO);
		(void)dup2(out, STDOUT_FILENO);
		(void)execve(argv[0], argv, environ);
		_exit(127);
	}
	return pid;
}

static void
add(struct run *run, const struct rusage *usage)
{
	run->cpu_ns += ((int64_t)usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000;
	run->cpu_ns += ((int64_t)usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
	run->switches += usage->ru_nvcsw;
	if (usage->ru_maxrss > run->rss_kib)
		run->rss_kib = usage->ru_maxrss;
}

/* As a program that runs commands starts them; what it runs ends by itself. */
static struct run
measure(char *const argv[], int out)
{
	posix_spawn_file_actions_t actions;
	struct run run = { 0 };
	struct rusage usage;
	int64_t begun;
	int status;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, null_fd, STDIN_FILENO) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) != 0)
		fail("out of memory", NULL);
	begun = now_ns();
	if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
		fail("posix_spawn", argv[0]);
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			fail("wait4", strerror(errno));
	run.wall_ns = now_ns() - begun;
	(void)posix_spawn_file_actions_destroy(&actions);
	add(&run, &usage);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail("this command failed", argv[0]);
	while (wait4(-1, &status, 0, &usage) > 0)
		add(&run, &usage);
	return run;
}

static void
print_run(unsigned int round, unsigned int index, const struct run *run)
{
	printf("%u %u %" PRId64 " %" PRId64 " %ld %ld\n", round, index, run->wall_ns, run->cpu_ns, run->rss_kib,
	    run->switches);
}

/* The first one's output fits into a pipe; its first line is the second one's token. */
static void
measure_pair(unsigned int round, unsigned int index, const struct command *pair)
{
	char token[TOKEN];
	struct run run;
	ssize_t length;
	int ends[2];

	if (pipe(ends) != 0 || fcntl(ends[0], F_SETFD, FD_CLOEXEC) != 0 || fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0)
		fail("pipe", strerror(errno));
	run = measure(pair[0].argv, ends[1]);
	print_run(round, index, &run);
	length = read(ends[0], token, sizeof(token) - 1);
	token[length > 0 ? length : 0] = '\0';
	token[strcspn(token, "\n")] = '\0';
	(void)setenv("DLOCK_TOKEN", token, 1);
	run = measure(pair[1].argv, null_fd);
	print_run(round, index + 1, &run);
	(void)unsetenv("DLOCK_TOKEN");
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static unsigned int
parse_commands(char **words, struct command *commands)
{
	unsigned int count = 0;

	for (; *words != NULL; words++) {
		if (strncmp(*words, ":::", 3) != 0)
			continue;
		if (count == COMMANDS - 1 || words[1] == NULL)
			fail("too many commands or an empty one", NULL);
		const char *suffix = *words + 3;
		const bool second = strcmp(suffix, "+") == 0;
		commands[count++] = (struct command){
			.argv = words + 1,
			.every = second || *suffix == '\0' ? 1 : number(suffix),
			.second = second,
		};
		*words = NULL; /* the end of the one before */
	}
	commands[count] = (struct command){ 0 };
	if (count == 0 || commands[0].second)
		fail("turns needs ::: COMMAND", NULL);
	return count;
}

static void
shuffle(unsigned int *order, unsigned int count)
{
	static uint32_t state;

	if (state == 0)
		state = (uint32_t)now_ns() | 1;
	for (unsigned int i = count; i > 1; i--) {
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		const unsigned int other = state % i, kept = order[i - 1];
		order[i - 1] = order[other];
		order[other] = kept;
	}
}

static void
turns(unsigned int rounds, char **words)
{
	struct command commands[COMMANDS];
	unsigned int order[COMMANDS], count = 0;
	const unsigned int total = parse_commands(words, commands);

#ifdef PR_SET_CHILD_SUBREAPER
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* what outlives a command is ours to wait for */
#endif
	for (unsigned int i = 0; i < total; i++)
		if (!commands[i].second)
			order[count++] = i;
	for (unsigned int round = 0; round < rounds; round++) {
		shuffle(order, count);
		for (unsigned int i = 0; i < count; i++) {
			const struct command *command = &commands[order[i]];

			if (round % command->every != 0)
				continue;
			if (command[1].second) {
				measure_pair(round, order[i], command);
				continue;
			}
			const struct run run = measure(command->argv, null_fd);
			print_run(round, order[i], &run);
		}
	}
}

static void
tell(const char *what)
{
	printf("%s %" PRId64 "\n", what, now_ns());
	if (fflush(stdout) != 0)
		fail("standard output", strerror(errno));
}

struct started {
	pid_t pid;
	int64_t begun_ns;
};

/* Reap what has ended, or all.  Returns how many of them failed. */
static unsigned int
reap(struct started *started, unsigned int count, int options, int64_t *slowest_ns)
{
	unsigned int failures = 0;
	int status;

	for (pid_t pid; (pid = waitpid(-1, &status, options)) > 0 || (pid < 0 && errno == EINTR);) {
		const int64_t now = now_ns();

		failures += pid > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
		for (unsigned int i = 0; i < count; i++)
			if (started[i].pid == pid && now - started[i].begun_ns > *slowest_ns)
				*slowest_ns = now - started[i].begun_ns;
	}
	return failures;
}

static void
many(unsigned int count, char *const argv[])
{
	struct started *const started = calloc(count, sizeof(*started));
	unsigned int failures = 0;
	int64_t slowest_ns = 0;
	char text[16], gate;

	if (started == NULL)
		fail("out of memory", NULL);
	tell("begun");
	for (unsigned int i = 0; i < count; i++) {
		if (read(STDIN_FILENO, &gate, 1) < 0)
			fail("standard input", strerror(errno));
		(void)snprintf(text, sizeof(text), "%u", i);
		(void)setenv("N", text, 1);
		started[i].begun_ns = now_ns();
		started[i].pid = start(argv, null_fd);
		failures += reap(started, i + 1, WNOHANG, &slowest_ns);
	}
	tell("started");
	failures += reap(started, count, 0, &slowest_ns);
	tell("ended");
	printf("slowest %" PRId64 "\n", slowest_ns);
	free(started);
	if (failures > 0)
		fail("some failed of", argv[0]);
}

static void
hold(const char *fifo)
{
	char byte;
	int fd;

	puts("held");
	(void)fflush(stdout);
	fd = open(fifo, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &byte, 1) < 0)
		fail(fifo, strerror(errno));
	tell("freed");
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		fail("/dev/null", strerror(errno));
	if (strcmp(mode, "stamp") == 0 && argc == 2) {
		tell("begun");
	} else if (strcmp(mode, "hold") == 0 && argc == 3) {
		hold(argv[2]);
	} else if (strcmp(mode, "turns") == 0 && argc > 4) {
		turns(number(argv[2]), argv + 3);
	} else if (strcmp(mode, "many") == 0 && argc > 3) {
		many(number(argv[2]), argv + 3);
	} else if (strcmp(mode, "tie") == 0 && argc > 2) {
		tie(getppid());
		(void)execvp(argv[2], argv + 2);
		fail(argv[2], strerror(errno));
	} else {
		fail("turns ROUNDS ::: COMMAND..., many COUNT COMMAND..., hold FIFO, stamp, tie COMMAND...", NULL);
	}
	return fflush(stdout) != 0;
}
