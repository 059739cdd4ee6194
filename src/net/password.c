/* SPDX-License-Identifier: MIT */
#include "net/password.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define FRESH_US 100000	       /* a file is not read again for logins that follow each other within this time */
#define START_PAUSE_US 1000000 /* between the end of a command and its next start */
#define LIMIT_US 10000000      /* of a command */
#define SPARE_US 2000000       /* for the helper to end it */
#define SLICE_MS 5	       /* the helper looks so often for the end of the command */
#define READS_LEFT 16	       /* after its end; a process that it leaves behind may write without end */
#define DESCRIPTORS 65536      /* at most are closed one by one */
#define REPORT_FD 3	       /* of the helper */
#define TIMED_OUT INT_MIN      /* in place of a status of waitpid(2) */

/* The report of the helper, in one write to a pipe. */
struct answer {
	int status;
	size_t out_length, err_length;
	char out[URL_PASSWORD_SIZE + 1]; /* the beginning of the standard output */
	char err[256];			 /* the end of the standard error */
};

_Static_assert(sizeof(struct answer) <= PIPE_BUF, "it is written at once");

/* -- Lines ------------------------------------------------------------------ */

/* Make a string of the first line, in a buffer of this size.  NULL, or why it cannot be used. */
static const char *
cut_line(char *text, size_t length, size_t size)
{
	const char *const end = memchr(text, '\n', length);

	if (end != NULL)
		length = (size_t)(end - text);
	if (length >= size)
		return "its first line is too long";
	if (memchr(text, '\0', length) != NULL)
		return "its first line contains a NUL byte";
	if (length > 0 && text[length - 1] == '\r')
		length--;
	text[length] = '\0';
	return length > 0 ? NULL : "its first line is empty";
}

const char *
password_line(int fd, char *line, size_t size)
{
	size_t length = 0;
	ssize_t n = 0;

	while (length < size && (n = read(fd, line + length, 1)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return strerror(errno);
		if (line[length++] == '\n')
			break;
	}
	return cut_line(line, length, size);
}

/* -- The helper of a command ------------------------------------------------ */

/*
 * The command runs below a process of its own, a copy of dlock that calls system functions only: it takes the output,
 * limits the time, and ends the command when dlock has ended.  So dlock never waits for the command, and whoever waits
 * for the children of dlock sees a dlock.
 */

/* Nothing of dlock is left to it but the pipe: a copy of the death pipe would keep the kernel from noticing our end. */
static void
become_helper(int report)
{
	const struct sched_param none = { .sched_priority = 0 };
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	long fd, most;
	sigset_t nothing;

	(void)setsid(); /* no signal of the terminal reaches it */
	if (sched_getscheduler(0) == SCHED_FIFO)
		(void)sched_setscheduler(0, SCHED_OTHER, &none);
	(void)sigaction(SIGCHLD, &standard, NULL);
	(void)sigemptyset(&nothing);
	(void)sigprocmask(SIG_SETMASK, &nothing, NULL);
	(void)dup3(report, REPORT_FD, O_CLOEXEC);
	for (fd = 0; fd < REPORT_FD; fd++)
		(void)close((int)fd);
	(void)open("/dev/null", O_RDWR); /* 0, which is then 1 and 2 as well */
	(void)dup2(0, 1);
	(void)dup2(0, 2);
#ifdef SYS_close_range
	if (syscall(SYS_close_range, REPORT_FD + 1, UINT_MAX, 0) == 0)
		return;
#endif
	most = sysconf(_SC_OPEN_MAX);
	for (fd = REPORT_FD + 1; fd < (most > 0 && most < DESCRIPTORS ? most : DESCRIPTORS); fd++)
		(void)close((int)fd);
}

/* Read what has come: the beginning of the output is kept, and of the errors the end. */
static void
collect(struct answer *a, struct pollfd fd[2])
{
	char bytes[sizeof(a->err)];
	size_t length, kept;
	ssize_t n;
	int i;

	for (i = 0; i < 2; i++) {
		if (fd[i].revents == 0)
			continue;
		n = read(fd[i].fd, bytes, sizeof(bytes));
		length = n > 0 ? (size_t)n : 0;
		if (length == 0)
			fd[i].fd = -1;
		else if (i == 0) {
			kept = sizeof(a->out) - a->out_length;
			memcpy(a->out + a->out_length, bytes, length < kept ? length : kept);
			a->out_length += length < kept ? length : kept;
		} else {
			kept = a->err_length < sizeof(a->err) - length ? a->err_length : sizeof(a->err) - length;
			memmove(a->err, a->err + a->err_length - kept, kept);
			memcpy(a->err + kept, bytes, length);
			a->err_length = kept + length;
		}
	}
}

static _Noreturn void
help(const struct password *p, int report)
{
	const int64_t until_us = clock_now_us() + LIMIT_US;
	struct answer a = { .status = TIMED_OUT };
	struct pollfd fd[3] = { { .events = POLLIN }, { .events = POLLIN }, { .fd = REPORT_FD } };
	int out[2], err[2], left = READS_LEFT;
	bool ended = false;
	pid_t pid;

	become_helper(report);
	if ((p->directory != NULL && chdir(p->directory) != 0) || pipe2(out, O_CLOEXEC) != 0 ||
	    pipe2(err, O_CLOEXEC) != 0)
		_exit(ST_SYSTEM);
	pid = fork();
	if (pid == 0) {
		(void)setpgid(0, 0);
		(void)dup2(out[1], STDOUT_FILENO);
		(void)dup2(err[1], STDERR_FILENO);
		(void)execl("/bin/sh", "sh", "-c", p->command, (char *)NULL);
		_exit(ST_NOT_FOUND);
	}
	if (pid < 0)
		_exit(ST_SYSTEM);
	(void)setpgid(pid, pid);
	(void)close(out[1]);
	(void)close(err[1]);
	fd[0].fd = out[0];
	fd[1].fd = err[0];
	/* A process that it leaves behind may keep the pipes open. */
	do {
		ended = ended || waitpid(pid, &a.status, WNOHANG) == pid;
		(void)poll(fd, 3, ended ? 0 : SLICE_MS);
		collect(&a, fd);
	} while (fd[2].revents == 0 && clock_now_us() < until_us &&
	    (!ended || (fd[0].revents + fd[1].revents != 0 && left-- > 0)));
	if (!ended)
		(void)kill(-pid, SIGKILL);
	(void)!write(REPORT_FD, &a, sizeof(a));
	_exit(0);
}

/* -- The command ------------------------------------------------------------ */

/* NULL, or why it cannot be started. */
static const char *
start(struct password *p)
{
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return strerror(errno);
	p->read_us = clock_now_us();
	p->pid = fork();
	if (p->pid == 0)
		help(p, ends[1]);
	error = errno;
	(void)close(ends[1]);
	p->fd = ends[0];
	if (p->pid > 0)
		return NULL;
	(void)close(ends[0]);
	p->pid = 0;
	return strerror(error);
}

/* The last line of what the command has said, behind ": "; "" if it has said nothing. */
static const char *
last_words(struct answer *a, char *shown, size_t size)
{
	struct text text = text_in(shown, size);
	const char *line;

	while (a->err_length > 0 && strchr("\n\r ", a->err[a->err_length - 1]) != NULL)
		a->err_length--;
	line = memrchr(a->err, '\n', a->err_length);
	line = line != NULL ? line + 1 : a->err;
	if (a->err_length > 0) {
		text_add(&text, ": ", 2);
		text_add_quoted(&text, line, a->err_length - (size_t)(line - a->err));
	}
	return shown;
}

/* The helper has reported, or has ended, or hangs.  NULL: a->out is the password; or why there is none. */
static const char *
take_answer(struct password *p, struct answer *a, struct err *err)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };
	const char *why;
	char words[200];
	ssize_t n = 0;

	if (poll(&fd, 1, 0) == 1)
		n = read(p->fd, a, sizeof(*a));
	else
		(void)kill(p->pid, SIGKILL);
	(void)close(p->fd);
	/* Somebody else may have waited for all children of dlock. */
	(void)waitpid(p->pid, NULL, 0);
	p->pid = 0;
	if (n != (ssize_t)sizeof(*a))
		return "it could not be run";
	(void)last_words(a, words, sizeof(words));
	if (a->status == TIMED_OUT)
		(void)err_set(err, ST_CONFIG, "it did not end within %d s%s", LIMIT_US / 1000000, words);
	else if (WIFSIGNALED(a->status))
		(void)err_set(err, ST_CONFIG, "it was ended by signal %d%s", WTERMSIG(a->status), words);
	else if (WEXITSTATUS(a->status) != 0)
		(void)err_set(err, ST_CONFIG, "it failed with exit status %d%s", WEXITSTATUS(a->status), words);
	else if ((why = cut_line(a->out, a->out_length, URL_PASSWORD_SIZE)) != NULL)
		(void)err_set(err, ST_CONFIG, "%s%s", why, words);
	else
		return NULL;
	return err->text;
}

/* -- Readings --------------------------------------------------------------- */

/* The message about a reading that failed. */
static void
complain(const struct password *p, const char *why, struct err *err)
{
	char shown[256];

	if (p->command != NULL)
		(void)err_set(err, ST_CONFIG, "the password command: %s", why);
	else
		(void)err_set(err, ST_CONFIG, "password file %s: %s", text_show(p->file, shown, sizeof(shown)), why);
}

/* A reading is over: take the text, or why it failed. */
static void
finish(struct password *p, const char *text, const char *why)
{
	struct err err;

	p->read_us = clock_now_us();
	if (why != NULL && p->version > 0 && strncmp(p->why.text, why, sizeof(p->why.text) - 1) != 0) {
		complain(p, why, &err);
		log_warn(&p->log, "%s; the one before is used", err.text);
	}
	reason_set(&p->why, "%s", why != NULL ? why : "");
	if (why != NULL || (p->version > 0 && strcmp(text, p->text) == 0))
		return;
	(void)snprintf(p->text, sizeof(p->text), "%s", text);
	text_keep_secret(SECRET_PASSWORD, p->text, strlen(p->text));
	p->version++;
}

/* Later, a pipe would be empty, or nobody would write to it. */
static void
read_file(struct password *p)
{
	char path[PATH_MAX], text[URL_PASSWORD_SIZE];
	const char *why = "its name is too long";
	struct stat info;
	int fd;

	if (p->once)
		return;
	if (snprintf(path, sizeof(path), "%s%s%s", p->directory != NULL && p->file[0] != '/' ? p->directory : "",
		p->directory != NULL && p->file[0] != '/' ? "/" : "", p->file) < (int)sizeof(path)) {
		fd = open(path, O_RDONLY | O_CLOEXEC | (p->version > 0 ? O_NONBLOCK : 0));
		p->once = fd >= 0 && fstat(fd, &info) == 0 && !S_ISREG(info.st_mode);
		why = fd >= 0 ? password_line(fd, text, sizeof(text)) : strerror(errno);
		if (fd >= 0)
			(void)close(fd);
	}
	finish(p, text, why);
	explicit_bzero(text, sizeof(text));
}

/* -- The interface ---------------------------------------------------------- */

bool
password_is_pending(struct password *p)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };
	struct err err = { "" };
	struct answer a;
	const char *why;

	if (p->pid == 0)
		return false;
	if (poll(&fd, 1, 0) == 0 && clock_now_us() < p->read_us + LIMIT_US + SPARE_US)
		return true;
	why = take_answer(p, &a, &err);
	finish(p, a.out, why);
	explicit_bzero(&a, sizeof(a));
	return false;
}

enum status
password_open(struct password *p, struct err *err)
{
	struct pollfd fd = { .events = POLLIN };
	const char *why;

	if (p->file != NULL)
		read_file(p);
	else if (p->command != NULL && (why = start(p)) != NULL)
		finish(p, NULL, why);
	else if (p->command == NULL && p->text[0] != '\0')
		text_keep_secret(SECRET_PASSWORD, p->text, strlen(p->text));
	fd.fd = p->fd;
	while (password_is_pending(p))
		(void)poll(&fd, 1, (LIMIT_US + SPARE_US) / 1000);
	if (p->why.text[0] == '\0')
		return ST_OK;
	complain(p, p->why.text, err);
	return ST_CONFIG;
}

const char *
password_to_log_in(struct password *p, unsigned int *version)
{
	(void)password_is_pending(p);
	if (p->file != NULL && clock_now_us() - p->read_us >= FRESH_US)
		read_file(p);
	*version = p->version;
	return p->text;
}

bool
password_refused(struct password *p, unsigned int version)
{
	const char *why;

	if (password_is_pending(p) || p->version != version)
		return true;
	if (p->file != NULL)
		read_file(p);
	else if (p->command != NULL && clock_now_us() - p->read_us >= START_PAUSE_US) {
		why = start(p);
		if (why != NULL)
			finish(p, NULL, why);
		return why == NULL;
	}
	return p->version != version;
}
