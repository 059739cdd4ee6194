/* SPDX-License-Identifier: MIT */
#include "net/password.h"

#include <poll.h>
#include <signal.h>
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

static void
write_file(const char *text)
{
	FILE *const f = fopen(path, "w");

	each(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0, "a file");
}

TEST(file)
{
	struct password p = { .file = path, .log = counting };
	unsigned int version;
	struct err err;

	temporary_folder(folder, sizeof(folder));
	(void)snprintf(path, sizeof(path), "%s/password", folder);
	is_int(password_open(&p, &err), ST_CONFIG, "a file that is missing at the start");
	write_file("one\r\nmore\n");
	is_int(password_open(&p, &err), ST_OK, "a file");
	is_str(password_to_log_in(&p, &version), "one", "its first line");
	ok(!password_refused(&p, version), "refused, and still the same");
	write_file("two");
	is_str(password_to_log_in(&p, &version), "one", "not read again for the next login at once");
	ok(password_refused(&p, version), "refused, and another one");
	ok(password_refused(&p, version), "the old one is refused elsewhere, too");
	is_str(password_to_log_in(&p, &version), "two", "the other one");
	write_file("three\n");
	p.read_us = 0;
	is_str(password_to_log_in(&p, &version), "three", "read again for a later login");
	write_file("\n");
	ok(!password_refused(&p, version) && !password_refused(&p, version), "an empty line is no password");
	(void)unlink(path);
	ok(!password_refused(&p, version), "nor is a file that is gone");
	is_str(password_to_log_in(&p, &version), "three", "the one before is kept");
	is_int(warnings, 2, "a warning for each reason");
	each(mkfifo(path, 0600) == 0, "a pipe");
	ok(!password_refused(&p, version), "a pipe that nobody writes to does not block");
	(void)unlink(path);
}

/* Wait for the command. */
static void
end_command(struct password *p)
{
	while (password_is_pending(p))
		(void)poll(NULL, 0, 1);
}

TEST(command)
{
	struct password p = { .command = "echo run >>runs; cat password", .directory = folder, .log = counting };
	unsigned int version;
	struct err err;

	write_file("one\n");
	is_int(password_open(&p, &err), ST_OK, "a command");
	is_str(password_to_log_in(&p, &version), "one", "its first line");
	write_file("two\n");
	ok(!password_refused(&p, version), "it does not run again within a second");
	p.read_us = 0;
	ok(password_refused(&p, version) && p.pid != 0, "it runs again");
	ok(password_refused(&p, version), "another refusal waits for the same run");
	end_command(&p);
	is_str(password_to_log_in(&p, &version), "two", "its other password");
	p.command = "yes | head -c 2000 | tr -d '\\n'";
	p.read_us = 0;
	ok(password_refused(&p, version), "it runs");
	end_command(&p);
	ok(p.version == version && !password_refused(&p, version), "a line that is too long is no password");
	is_int(warnings, 4, "a warning");
	p.command = "yes >&2 & echo three";
	p.read_us = 0;
	ok(password_refused(&p, version), "it runs");
	end_command(&p);
	is_str(password_to_log_in(&p, &version), "three", "what it leaves behind is not waited for");
	(void)signal(SIGCHLD, SIG_IGN);
	p.command = "echo four";
	p.read_us = 0;
	ok(password_refused(&p, version), "it runs");
	end_command(&p);
	is_str(password_to_log_in(&p, &version), "four", "where SIGCHLD is ignored, too");
	(void)signal(SIGCHLD, SIG_DFL);
	p.command = "echo first >&2; echo not four >&2; exit 3";
	p.read_us = 0;
	ok(password_refused(&p, version), "it runs");
	end_command(&p);
	is_str(warning, "the password command: it failed with exit status 3: not *; the one before is used",
	    "its last words are shown, without the password");
	p.command = "printf 'five\\000\\n'";
	p.read_us = 0;
	ok(password_refused(&p, version), "it runs");
	end_command(&p);
	is_str(warning, "the password command: its first line contains a NUL byte; the one before is used",
	    "a line with a NUL byte is no password");
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/runs", folder);
	(void)unlink(path);
	(void)rmdir(folder);
}

TEST(given)
{
	struct password p = { .text = "one" };
	unsigned int version;
	char shown[8];
	struct err err;

	ok(password_open(&p, &err) == ST_OK && strcmp(password_to_log_in(&p, &version), "one") == 0 &&
		!password_refused(&p, version),
	    "a given password never changes");
	is_str(text_quote("-one-", shown, sizeof(shown)), "-*-", "and is a secret");
}
