/* SPDX-License-Identifier: MIT */
#include "cli/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/environment.h"
#include "run/supervisor.h"

#define ANSWER_MS 2000		/* for a keeper to pause, or to end */
#define RELEASER_MS 200		/* for one who releases to connect, and to send the token */
#define DESCRIPTORS_MAX 1048576 /* more than any usual limit */

struct keeper {
	struct invocation *inv;
	keeper_print *print;
	keeper_refuse *refuse;
	struct acquisition acquisition;
	int caller_fd; /* to the process that waits for the keeper to be ready */
	int socket;    /* on which a release is announced; -1: none */
	int releaser;  /* the connection of the release; -1: none */
	bool answered; /* it has been told to go ahead */
};

/* The process for which the lock is held; for warn_process(). */
static struct process process = { .fd = -1 };

static void
warn_process(const char *line)
{
	process_say(&process, line);
}

/* -- The announcement of a release ------------------------------------------ */

/*
 * The keeper must know of a release before the next renewal: by then others may have had the lock, and the service no
 * longer knows how it ended.  It listens on an abstract unix socket.  The process that releases sends the token, waits
 * until the keeper renews no more, releases the lock, and sends another message if that succeeded; otherwise the
 * connection ends, and the keeper goes on.  The name is a short hash of the token, so that it does not reveal the token.
 */
static socklen_t
name_socket(const char *token, struct sockaddr_un *name)
{
	uint32_t hash = 2166136261U; /* FNV-1a */
	int length;

	for (; *token != '\0'; token++)
		hash = (hash ^ (unsigned char)*token) * 16777619U;
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "dlock-keeper/%08x", (unsigned int)hash);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Is the other end of a connection a process of this user? */
static bool
is_same_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

static bool
readable_within(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static enum status
listen_for_release(struct keeper *k, struct err *err)
{
	struct sockaddr_un name;
	const socklen_t length = name_socket(k->acquisition.lease.token, &name);

	k->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (k->socket < 0 || bind(k->socket, (struct sockaddr *)&name, length) != 0 || listen(k->socket, 8) != 0)
		return err_system(err, errno, "cannot listen for a release");
	return ST_OK;
}

/* The connection of one who knows the token, and so announces a release of this lock; -1: none. */
static int
accept_releaser(const struct keeper *k)
{
	char token[TOKEN_SIZE];
	ssize_t length;
	int fd;

	while ((fd = accept4(k->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (is_same_user(fd) && readable_within(fd, RELEASER_MS)) {
			length = recv(fd, token, sizeof(token), 0);
			if (length > 0 && (size_t)length == strlen(k->acquisition.lease.token) &&
			    memcmp(token, k->acquisition.lease.token, (size_t)length) == 0)
				break;
		}
		(void)close(fd);
	}
	return fd;
}

/* The connection of a release that succeeded stays open until the keeper ends. */
static enum release_stage
look_for_release(void *context, bool paused, int *fd)
{
	struct keeper *k = context;
	ssize_t length;
	char word;

	if (k->releaser < 0) {
		k->releaser = accept_releaser(k);
		k->answered = false;
	}
	if (k->releaser >= 0) {
		if (paused && !k->answered)
			k->answered = send(k->releaser, "", 1, MSG_NOSIGNAL) >= 0;
		*fd = k->releaser;
		length = recv(k->releaser, &word, sizeof(word), 0);
		if (length > 0)
			return RELEASE_DONE;
		if (length < 0 && (errno == EAGAIN || errno == EINTR))
			return RELEASE_ANNOUNCED;
		(void)close(k->releaser);
		k->releaser = -1;
	}
	*fd = k->socket;
	return RELEASE_NONE;
}

int
keeper_announce(const char *token)
{
	const int64_t until = clock_now_us() + RELEASER_MS * INT64_C(1000);
	struct sockaddr_un name;
	const socklen_t length = name_socket(token, &name);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool connected;
	char word;

	/* The name may be that of another user, who accepts nothing. */
	while (!(connected = connect(fd, (struct sockaddr *)&name, length) == 0) && errno == EAGAIN &&
	    clock_now_us() < until)
		(void)poll(NULL, 0, 10);
	if (connected && is_same_user(fd) && send(fd, token, strlen(token), MSG_NOSIGNAL) > 0) {
		if (readable_within(fd, ANSWER_MS))
			(void)!recv(fd, &word, sizeof(word), 0);
		return fd;
	}
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

void
keeper_tell(int fd, bool released)
{
	if (fd < 0)
		return;
	if (released && send(fd, "", 1, MSG_NOSIGNAL) > 0)
		(void)readable_within(fd, ANSWER_MS);
	(void)close(fd);
}

/* -- Into the background ---------------------------------------------------- */

/* Descriptors that dlock opened are closed on exec; those of the caller came through one. */
static void
close_descriptors_of_caller(void)
{
	const long limit = sysconf(_SC_OPEN_MAX);
	const int most = limit > 0 && limit < DESCRIPTORS_MAX ? (int)limit : DESCRIPTORS_MAX;
	int fd, flags;

	for (fd = STDERR_FILENO + 1; fd < most; fd++) {
		flags = fcntl(fd, F_GETFD);
		if (flags >= 0 && (flags & FD_CLOEXEC) == 0)
			(void)close(fd);
	}
}

static void
replace_standard_descriptors(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;

	if (null < 0)
		null = open("/", O_RDONLY | O_CLOEXEC); /* neither to be read nor written */
	for (fd = 0; fd <= STDERR_FILENO; fd++) {
		if (null < 0 || dup2(null, fd) < 0)
			(void)close(fd);
	}
	if (null > STDERR_FILENO)
		(void)close(null);
}

/* The lock is held: print it, let go of the caller, and let the caller go on. */
static enum status
detach(void *context, struct err *err)
{
	struct keeper *k = context;
	const char ready = 1;
	enum status status;

	status = listen_for_release(k, err);
	if (status == ST_OK)
		status = k->print(k->inv, &k->acquisition, err);
	if (status != ST_OK) {
		err_suffix(err, "the lock was released again");
		return status;
	}
	(void)setsid();
	(void)!chdir("/");
	replace_standard_descriptors();
	close_descriptors_of_caller();
	(void)prctl(PR_SET_PDEATHSIG, 0);
	if (write(k->caller_fd, &ready, sizeof(ready)) != 1)
		return err_system(err, errno, "cannot tell who called");
	(void)close(k->caller_fd);
	return ST_OK;
}

/* The keeper, from its start to its end. */
static enum status
keep(struct keeper *k, struct err *err)
{
	char *const directory = getcwd(NULL, 0); /* the command of --exec-on-lost may be named from there */
	const struct keeping keeping = { .process = &process,
		.started = detach,
		.release_stage = look_for_release,
		.context = k };
	struct supervision plan = {
		.keeping = &keeping,
		.no_kill = !k->inv->options.kill_after_given,
		.hook_directory = directory,
		.log = { .warn = warn_process },
	};
	struct acquisition *const a = &k->acquisition;
	struct supervised ignored;
	enum status status;

	status = process_open(&process, k->inv->options.keep_pid, err);
	if (status == ST_OK)
		status = acquisition_open(a, k->inv, err);
	if (status == ST_OK) {
		status = acquisition_acquire(a, k->inv, err);
		if (status == ST_OK)
			status = acquisition_supervise(a, k->inv, &plan, &ignored, err);
		else
			k->refuse(k->inv, a, status);
	}
	acquisition_close(a);
	process_close(&process);
	free(directory);
	return status;
}

/* -- The process that was called -------------------------------------------- */

/* The keeper has ended before it was ready, and said why. */
static enum status
take_over_status(struct invocation *inv, pid_t keeper)
{
	int status = 0;

	while (waitpid(keeper, &status, 0) < 0 && errno == EINTR)
		;
	inv->died_of = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	inv->exit_status = inv->died_of != 0 ? 128 + inv->died_of : WEXITSTATUS(status);
	return ST_OK;
}

/* Wait until the keeper is ready, and pass signals on to it. */
static enum status
await_keeper(struct invocation *inv, pid_t keeper, int fd, struct err *err)
{
	struct signals signals;
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };
	char ready;
	int signal;

	if (!signals_open(&signals, &inv->given_mask))
		return err_system(err, errno, "cannot watch for signals");
	fds[1].fd = signals.fd;
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_system(err, errno, "cannot wait for the keeper");
		while ((signal = signals_next(&signals, NULL)) != 0)
			(void)kill(keeper, signal);
		if (fds[0].revents != 0)
			return read(fd, &ready, sizeof(ready)) == 1 ? ST_OK : take_over_status(inv, keeper);
	}
}

int
keeper_acquire(struct invocation *inv, keeper_print *print, keeper_refuse *refuse, struct err *err)
{
	const pid_t caller = getpid();
	struct keeper k = { .inv = inv, .print = print, .refuse = refuse, .socket = -1, .releaser = -1 };
	int ends[2], code;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return (int)err_system(err, errno, "cannot start the keeper");
	setup_protect(&inv->options);
	(void)signals_heed(SIGCHLD); /* waitpid(2) would tell nothing */
	pid = fork();
	if (pid < 0)
		return (int)err_system(err, errno, "cannot start the keeper");
	if (pid > 0) {
		(void)close(ends[1]);
		code = (int)await_keeper(inv, pid, ends[0], err);
		(void)close(ends[0]);
		return code;
	}
	(void)close(ends[0]);
	k.caller_fd = ends[1];
	/* Until it is in the background, it ends with the process that was called, even if SIGTERM is ignored. */
	(void)signals_heed(SIGRTMIN);
	if (prctl(PR_SET_PDEATHSIG, SIGRTMIN) != 0 || getppid() != caller)
		return (int)err_set(err, ST_SYSTEM, "cannot start the keeper");
	return (int)keep(&k, err);
}
