/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/acquisition.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/view.h"
#include "lock/token.h"
#include "run/supervisor.h"

/* Of a variable. */
#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* The state of one run. */
struct run {
	struct invocation *inv;
	char label[LABEL_MAX + 1];
	struct acquisition acquisition;
	bool acquired;
	struct supervised end;
};

/* -- The label --------------------------------------------------------------- */

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
 * The words behind a wrapper and its options; NULL: it is no wrapper, or its command is no word of its own.  An option
 * takes the next word if it is among the letters with an argument, and is the last one of its word.
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

/* The words behind `dlock run KEY`; NULL: it is another command. */
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
cmd_run_label(char *const *argv, bool shell, char label[LABEL_MAX + 1])
{
	struct line outer = { "", { NULL } }, inner;
	char *const *word = shell ? cut(argv[0], &outer) : argv, *const * next;
	const char *name = "";

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

/* -- The report ------------------------------------------------------------- */

/* The exit status of the command, or minus the signal that ended it. */
static int
end_of(int status)
{
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * The outcome for programs, as one JSON object and a newline: the exit status alone does not distinguish a 75 of the
 * command from that of dlock.
 */
static void
print_report(FILE *out, const struct run *r, enum status status)
{
	const struct acquisition *const a = &r->acquisition;
	const struct command_end child = { r->end.status >= 0, end_of(r->end.status) };
	struct json j = json_begin_line(out);

	json_string(&j, "outcome",
	    r->acquired && status != ST_NO_QUORUM ? supervised_outcome(status)
		: status == ST_HELD		  ? "held"
		: status == ST_INTERRUPTED	  ? "interrupted"
						  : "no-quorum");
	view_json_child(&j, &child);
	acquisition_json(a, r->inv, &j);
	json_number_or_null(&j, "fence", a->lease.fence, r->acquired && a->lease.fence > 0);
	view_json_holder(&j, r->acquired ? &r->end.holder : &a->holder);
	view_json_owner(&j, "asked_by", r->end.asked_by);
	json_number(&j, "waited_ms", a->waited_us / 1000);
	json_number(&j, "held_ms", r->end.held_us / 1000);
	json_end_line(&j);
}

/*
 * The descriptor that a path names, which a shell passes on as such a name; -1: none.  It is used as it is: opened again,
 * it would have an offset of its own, and what is written here and there would overwrite each other.
 */
static int
named_descriptor(const char *path)
{
	static const char *const standard[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr" };
	char rest;
	int fd;

	for (fd = 0; fd < 3; fd++) {
		if (strcmp(path, standard[fd]) == 0)
			return fd;
	}
	if (sscanf(path, "/dev/fd/%4d%c", &fd, &rest) == 1 || sscanf(path, "/proc/self/fd/%4d%c", &fd, &rest) == 1)
		return fd;
	return -1;
}

/*
 * A regular file, or a link to one, is replaced by a temporary file of the same folder: readers see the old report or
 * the new one.  Anything else that is there is appended to: a pipe, a terminal, a descriptor of another process.
 */
static bool
is_appended_to(const char *path, const struct stat *file)
{
	return !S_ISREG(file->st_mode) || strncmp(path, "/proc/", 6) == 0;
}

/* Can a report be written there, as far as that can be checked in advance?  ST_SYSTEM: no. */
static enum status
check_report(const char *path, struct err *err)
{
	const char *const slash = strrchr(path, '/');
	char folder[PATH_MAX], shown[300];
	const int fd = named_descriptor(path), flags = fd >= 0 ? fcntl(fd, F_GETFL) : 0;
	struct stat file;
	int error = 0;

	if (strcmp(path, "-") == 0)
		return ST_OK;
	(void)snprintf(folder, sizeof(folder), "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
	    slash == NULL ? "." : path);
	if (fd >= 0)
		error = flags < 0 || (flags & O_ACCMODE) == O_RDONLY ? EBADF : 0;
	else if (stat(path, &file) != 0)
		error = errno != ENOENT || path[0] == '\0' || access(folder, W_OK | X_OK) != 0 ? errno : 0;
	else if (S_ISDIR(file.st_mode))
		error = EISDIR;
	else if (access(is_appended_to(path, &file) ? path : folder, W_OK) != 0)
		error = errno;
	if (error == 0)
		return ST_OK;
	return err_set(err, ST_SYSTEM, "the report cannot be written to %s: %s",
	    path[0] == '\0' ? "''" : text_show(path, shown, sizeof(shown)), strerror(error));
}

/*
 * Write it to a file, or for "-" to standard output, completely or not at all.  In a folder such as /tmp, it is the kernel
 * that refuses links and pipes of other users: see fs.protected_symlinks and fs.protected_fifos in proc(5).
 */
static enum status
write_report(const char *path, const struct run *r, enum status status, struct err *err)
{
	char temporary[PATH_MAX], token[TOKEN_SIZE], shown[300];
	const int fd = named_descriptor(path);
	struct stat file;
	const bool append = fd >= 0 || (stat(path, &file) == 0 && is_appended_to(path, &file));
	FILE *out = NULL;
	bool good;

	if (strcmp(path, "-") == 0) {
		print_report(stdout, r, status);
		return output_flush(err);
	}
	(void)text_show(path, shown, sizeof(shown));
	errno = ENAMETOOLONG;
	if (fd >= 0)
		out = fdopen(fcntl(fd, F_DUPFD_CLOEXEC, 3), "w");
	else if (append)
		out = fopen(path, "ae");
	else if (token_new(token) &&
	    snprintf(temporary, sizeof(temporary), "%s.%.6s", path, token) < (int)sizeof(temporary))
		out = fopen(temporary, "wxe");
	if (out == NULL)
		return err_system(err, errno, shown);
	print_report(out, r, status);
	good = !ferror(out);
	if (fclose(out) == 0 && good && (append || rename(temporary, path) == 0))
		return ST_OK;
	(void)err_system(err, errno, shown);
	if (!append)
		(void)unlink(temporary);
	return ST_SYSTEM;
}

static void
report(struct run *r, enum status status)
{
	const struct options *o = &r->inv->options;
	struct err err = { "" };

	if (o->json || o->report != NULL)
		signals_unwatch(&r->acquisition.signals); /* a pipe may have no reader */
	if (o->json && write_report("-", r, status, &err) != ST_OK) {
		setup_name_key(r->inv, &err);
		log_warn(&r->inv->log, "%s", err.text);
	}
	if (o->report != NULL && write_report(o->report, r, status, &err) != ST_OK) {
		err_prefix(&err, "the report could not be written");
		setup_name_key(r->inv, &err);
		log_warn(&r->inv->log, "%s", err.text);
	}
}

/* -- The command ------------------------------------------------------------ */

enum status
cmd_run(struct invocation *inv, struct err *err)
{
	struct run run = { .inv = inv, .end.status = -1 }, *const r = &run;
	static char sh[] = "sh", dash_c[] = "-c";
	struct options *const o = &inv->options;
	char *shell[] = { sh, dash_c, inv->operand[1], NULL };
	struct supervision plan = {
		.argv = o->shell ? shell : inv->operand + 1,
		.foreground = o->foreground,
		.max_run_us = o->max_run_ms == DURATION_FOREVER ? 0 : o->max_run_ms * 1000,
		.min_hold_us = o->min_hold_ms * 1000,
		.once_per_us = o->once_per_ms * 1000,
		.log = inv->log,
		.quiet = o->quiet,
	};
	enum status status = ST_OK;
	int code;

	if (o->shell && inv->operands > 2)
		status = err_set(err, ST_USAGE, "--shell takes COMMAND as one string; quote it");
	else if (o->report != NULL)
		status = check_report(o->report, err);
	if (status == ST_OK && o->label == NULL) {
		cmd_run_label(inv->operand + 1, o->shell, r->label);
		o->label = r->label;
	}
	if (status == ST_OK)
		status = acquisition_open(&r->acquisition, inv, err);
	if (status != ST_OK)
		goto out;
	status = acquisition_acquire(&r->acquisition, inv, err);
	if (status == ST_NO) /* for --token; 1 would look like the status of COMMAND */
		status = ST_HELD;
	r->acquired = status == ST_OK;
	if (r->acquired)
		status = acquisition_supervise(&r->acquisition, inv, &plan, &r->end, err);
	report(r, status);
	/*
	 * dlock exits as the command did, unless it ended it; after --max-run with 137 if it was killed, as timeout(1).
	 */
	code = end_of(r->end.status);
	if (status == ST_OK || (status == ST_MAX_RUN && code == -SIGKILL))
		inv->exit_status = code < 0 ? 128 - code : code;
	/* Of a signal of the terminal, the calling script must end, too, as it would without dlock. */
	if (status == ST_OK && r->end.ended_by_terminal)
		inv->died_of = -code;
out:
	/* Each message says which lock it is about; those of a refusal do so already. */
	if (status != ST_HELD && status != ST_NO && status != ST_DENIED)
		setup_name_key(inv, err);
	acquisition_close(&r->acquisition);
	return status;
}
