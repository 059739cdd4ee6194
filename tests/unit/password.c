/* SPDX-License-Identifier: MIT */
#include "net/password.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tap.h"

static char folder[60], path[100];
static char warning[200]; /* the last one */
static int warnings;

static void
count_warning(const char *line)
{
	(void)snprintf(warning, sizeof(warning), "%s", line);
	warnings++;
}

static const struct log counting = { .warn = count_warning };
static unsigned int version;
static struct err err;

TEST(file)
{
	struct password p = { .file = path, .directory = "/nowhere", .log = counting };

	temporary_folder(folder, sizeof(folder));
	(void)snprintf(path, sizeof(path), "%s/password", folder);
	is_int(password_open(&p, &err), ST_CONFIG, "a file that is missing at the start");
	each(write_file(path, "one\r\nmore\n"), "a file");
	is_int(password_open(&p, &err), ST_OK, "a file");
	is_str(password_to_log_in(&p, &version), "one", "its first line");
	ok(!password_refused(&p, version), "refused, and still the same");
	each(write_file(path, "two"), "a file");
	is_str(password_to_log_in(&p, &version), "one", "not read again for the next login at once");
	ok(password_refused(&p, version), "refused, and another one");
	ok(password_refused(&p, version), "the old one is refused elsewhere, too");
	is_str(password_to_log_in(&p, &version), "two", "the other one");
	each(write_file(path, "three\n"), "a file");
	p.read_us = 0;
	is_str(password_to_log_in(&p, &version), "three", "read again for a later login");
	each(write_file(path, "\n"), "a file");
	ok(!password_refused(&p, version) && !password_refused(&p, version), "an empty line is no password");
	(void)unlink(path);
	ok(!password_refused(&p, version), "nor is a file that is gone");
	is_str(password_to_log_in(&p, &version), "three", "the one before is kept");
	is_int(warnings, 2, "a warning for each reason");
	each(mkfifo(path, 0600) == 0, "a pipe");
	ok(!password_refused(&p, version), "a pipe that nobody writes to does not block");
	(void)unlink(path);
}

/* A later login is refused: the command, or a new one, runs to its end. */
static void
run(struct password *p, const char *command)
{
	p->command = command;
	p->read_us = 0;
	ok(password_refused(p, version), "it runs");
	while (password_is_pending(p))
		(void)poll(NULL, 0, 1);
}

TEST(command)
{
	struct password p = { .command = "echo run >>runs; cat password", .directory = folder, .log = counting };

	each(write_file(path, "one\n"), "a file");
	is_int(password_open(&p, &err), ST_OK, "a command");
	is_str(password_to_log_in(&p, &version), "one", "its first line");
	each(write_file(path, "two\n"), "a file");
	ok(!password_refused(&p, version), "it does not run again within a second");
	p.read_us = 0;
	ok(password_refused(&p, version) && p.pid != 0, "it runs again");
	ok(password_refused(&p, version), "another refusal waits for the same run");
	while (password_is_pending(&p))
		(void)poll(NULL, 0, 1);
	is_str(password_to_log_in(&p, &version), "two", "its other password");
	run(&p, "yes | head -c 2000 | tr -d '\\n'");
	ok(p.version == version && !password_refused(&p, version), "a line that is too long is no password");
	is_int(warnings, 4, "a warning");
	run(&p, "yes >&2 & echo three");
	is_str(password_to_log_in(&p, &version), "three", "what it leaves behind is not waited for");
	(void)signal(SIGCHLD, SIG_IGN);
	run(&p, "echo four");
	is_str(password_to_log_in(&p, &version), "four", "where SIGCHLD is ignored, too");
	(void)signal(SIGCHLD, SIG_DFL);
	run(&p, "echo first >&2; echo not four >&2; exit 3");
	is_str(warning, "the password command: it failed with exit status 3: not *; the one before is used",
	    "its last words are shown, without the password");
	ok(freopen(folder, "r", stdin) != NULL, "a standard input");
	run(&p, "[ /dev/stdin -ef /dev/null ] && echo five");
	is_str(password_to_log_in(&p, &version), "five", "it has no input");
	run(&p, "printf 'six\\000\\n'");
	is_str(warning, "the password command: its first line contains a NUL byte; the one before is used",
	    "a line with a NUL byte is no password");
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/runs", folder);
	(void)unlink(path);
	(void)rmdir(folder);
}

static bool no_process;

pid_t
fork(void)
{
	pid_t (*real)(void);

	*(void **)&real = dlsym(RTLD_NEXT, "fork");
	errno = EAGAIN;
	return no_process ? -1 : real();
}

TEST(no_process)
{
	struct password p = { .command = "echo one", .log = counting };

	no_process = true;
	ok(password_open(&p, &err) == ST_CONFIG && strstr(err.text, strerror(EAGAIN)) != NULL,
	    "no process for a command: %s", err.text);
	ok(!password_is_pending(&p), "it is not waited for");
	no_process = false;
}

TEST(given)
{
	struct password p = { .text = "one" };
	char shown[8];

	ok(password_open(&p, &err) == ST_OK && strcmp(password_to_log_in(&p, &version), "one") == 0 &&
		!password_refused(&p, version),
	    "a given password never changes");
	is_str(text_quote("-one-", shown, sizeof(shown)), "-*-", "and is a secret");
}
