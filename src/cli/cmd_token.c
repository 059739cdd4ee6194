/* SPDX-License-Identifier: MIT */
/*
 * The commands about a lock whose token its holder keeps: acquire, renew and release.  With --keep it is a process in
 * the background, the keeper, that holds the lock for as long as another process lives.
 */
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
#include "base/json.h"
#include "cli/acquisition.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "cli/view.h"
#include "run/loss.h"
#include "run/supervisor.h"

#define ANSWER_MS 2000		/* for a keeper to pause, or to end */
#define RELEASER_MS 200		/* for one who releases to connect, and to send the token */
#define DESCRIPTORS_MAX 1048576 /* more than any usual limit */

/* -- The output of acquire -------------------------------------------------- */

/* With --json. */
static void
print_refusal(const struct invocation *inv, const struct acquisition *a, enum status status)
{
	struct json j;
	struct err ignored;

	if (!inv->options.json || status == ST_INTERRUPTED || status == ST_USAGE)
		return;
	j = json_begin_line(stdout);
	json_string(&j, "outcome",
	    status == ST_HELD	      ? "held"
		: status == ST_NO     ? "gone"
		: status == ST_DENIED ? "denied"
				      : "no-quorum");
	acquisition_json(a, inv, &j);
	view_json_holder(&j, &a->holder);
	json_number(&j, "waited_ms", a->waited_us / 1000);
	json_end_line(&j);
	(void)output_flush(&ignored);
}

/*
 * Print variables, each value as one word in a form that sh and fish read alike: whichever of them evaluates it, no
 * part of it is a command.  In '...' they differ about \ and ', which therefore stand outside of quotes, behind a \.
 */
static enum status
print_export(const struct acquisition *a, const struct invocation *inv, struct err *err)
{
	const bool fish = inv->options.export_fish;
	char **const environment = setup_environment(acquisition_name(a, inv), &a->lease);
	const char *value;
	int name, plain;
	size_t i;

	if (environment == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	for (i = 0; i < setup_variables(&a->lease); i++) {
		name = (int)strcspn(environment[i], "=");
		value = environment[i] + name + 1;
		printf(fish ? "set -gx %.*s " : "%.*s=", name, environment[i]);
		if (*value == '\0')
			fputs("''", stdout);
		for (; *value != '\0'; value += plain) {
			plain = (int)strcspn(value, "'\\");
			if (plain > 0)
				printf("'%.*s'", plain, value);
			else
				printf("\\%c", value[plain++]);
		}
		if (!fish)
			printf("; export %.*s", name, environment[i]);
		fputs(";\n", stdout);
	}
	free(environment);
	return ST_OK;
}

/* Print a lock that was acquired.  A failure means that nobody got its token. */
static enum status
print_lock(const struct invocation *inv, const struct acquisition *a, struct err *err)
{
	const struct lease *const lease = &a->lease;
	enum status status = ST_OK;
	struct json j;

	if (inv->options.json) {
		j = json_begin_line(stdout);
		json_string(&j, "outcome", "acquired");
		acquisition_json(a, inv, &j);
		json_string(&j, "token", lease->token);
		json_number(&j, "fence", lease->fence);
		json_number(&j, "ttl_ms", lease->ttl_ms);
		json_number(&j, "valid_ms", (lease->valid_until_us - clock_now_us()) / 1000);
		json_number(&j, "nodes", lease->nodes);
		json_number(&j, "granted", lease->granted);
		json_end_line(&j);
	} else if (inv->options.export_lines)
		status = print_export(a, inv, err);
	else
		printf("%s\n", lease->token);
	return status == ST_OK ? output_flush(err) : status;
}

/* -- The announcement of a release ------------------------------------------ */

struct keeper {
	struct invocation *inv;
	struct acquisition acquisition;
	int caller_fd; /* to the process that waits for the keeper to be ready; -1: this is no keeper */
	int socket;    /* on which a release is announced; -1: none */
	int releaser;  /* the connection of the release; -1: none */
	bool answered; /* it has been told to go ahead */
};

/*
 * The keeper must know of a release before the next renewal: by then others may have had the lock, and the service no
 * longer knows how it ended.  It listens on an abstract unix socket.  The process that releases sends the token, waits
 * until the keeper renews no more, releases the lock, and sends another message if that succeeded; otherwise the
 * connection ends, and the keeper goes on.  The name is a short hash of the token, so that it does not reveal the
 * token.
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

/*
 * Before a release: ask the keeper of this token, if there is one on this host that belongs to the same user, to pause.
 * Returns a connection to it; -1: there is none.
 */
static int
announce_release(const char *token)
{
	const int64_t until = clock_now_us() + RELEASER_MS * INT64_C(1000);
	struct sockaddr_un name;
	const socklen_t length = name_socket(token, &name);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool connected;
	char word;

	/* The name may be that of another user, who accepts nothing. */
	while (!(connected = (connect(fd, (struct sockaddr *)&name, length) == 0)) && errno == EAGAIN &&
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

/* -- Into the background ---------------------------------------------------- */

/* Descriptors that dlock opened are closed on exec; those of the caller came through one. */
static void
close_descriptors_of_caller(void)
{
	const long limit = sysconf(_SC_OPEN_MAX);
	const int most = limit > 0 && limit < DESCRIPTORS_MAX ? (int)limit : DESCRIPTORS_MAX;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd, flags;

	if (null < 0)
		null = open("/", O_RDONLY | O_CLOEXEC); /* neither to be read nor written */
	for (fd = 0; fd <= STDERR_FILENO; fd++) {
		if (null < 0 || dup2(null, fd) < 0)
			(void)close(fd);
	}
	for (; fd < most; fd++) {
		flags = fcntl(fd, F_GETFD);
		if (flags >= 0 && (flags & FD_CLOEXEC) == 0)
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
	struct sockaddr_un name;
	const socklen_t length = name_socket(k->acquisition.lease.token, &name);
	enum status status;

	k->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (k->socket < 0 || bind(k->socket, (struct sockaddr *)&name, length) != 0 || listen(k->socket, 8) != 0)
		status = err_system(err, errno, "cannot listen for a release");
	else
		status = print_lock(k->inv, &k->acquisition, err);
	if (status != ST_OK) {
		err_suffix(err, "the lock was released again");
		return status;
	}
	(void)setsid();
	(void)!chdir("/");
	close_descriptors_of_caller();
	(void)prctl(PR_SET_PDEATHSIG, 0);
	if (write(k->caller_fd, &ready, sizeof(ready)) != 1)
		return err_system(err, errno, "cannot tell who called");
	(void)close(k->caller_fd);
	return ST_OK;
}

/* The process for which the lock is held; for warn_process(). */
static struct process process = { .fd = -1 };

static void
warn_process(const char *line)
{
	process_say(&process, line);
}

/* Hold the lock until the process ends. */
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
	struct supervised ignored;
	const enum status status = acquisition_supervise(&k->acquisition, k->inv, &plan, &ignored, err);

	free(directory);
	return status;
}

/* Wait until the keeper is ready, and pass signals on to it.  If it ends before that, it has said why. */
static enum status
await_keeper(struct invocation *inv, pid_t keeper, int fd, struct err *err)
{
	struct signals signals;
	struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };
	char ready;
	int signal, status = 0;

	if (!signals_open(&signals, &inv->given_mask))
		return err_system(err, errno, "cannot watch for signals");
	fds[1].fd = signals.fd;
	do {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return err_system(err, errno, "cannot wait for the keeper");
		while ((signal = signals_next(&signals, NULL)) != 0)
			(void)kill(keeper, signal);
	} while (fds[0].revents == 0);
	if (read(fd, &ready, sizeof(ready)) == 1)
		return ST_OK;
	while (waitpid(keeper, &status, 0) < 0 && errno == EINTR)
		;
	inv->died_of = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	inv->exit_status = inv->died_of != 0 ? 128 + inv->died_of : WEXITSTATUS(status);
	return ST_OK;
}

/*
 * Start the keeper.  Returns twice: in it with caller_fd set; and in this process when the keeper has printed the lock,
 * or with the exit status of a failure that it has reported (see exit_status of the invocation).
 */
static enum status
start_keeper(struct keeper *k, struct err *err)
{
	const pid_t caller = getpid();
	enum status status;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_system(err, errno, "cannot start the keeper");
	setup_protect(&k->inv->options);
	(void)signals_heed(SIGCHLD); /* waitpid(2) would tell nothing */
	pid = fork();
	if (pid < 0)
		return err_system(err, errno, "cannot start the keeper");
	(void)close(ends[pid > 0]);
	if (pid > 0) {
		status = await_keeper(k->inv, pid, ends[0], err);
		(void)close(ends[0]);
		return status;
	}
	k->caller_fd = ends[1];
	/* Until it is in the background, it ends with the process that was called, even if SIGTERM is ignored. */
	(void)signals_heed(SIGRTMIN);
	if (prctl(PR_SET_PDEATHSIG, SIGRTMIN) != 0 || getppid() != caller)
		return err_set(err, ST_SYSTEM, "cannot start the keeper");
	return process_open(&process, k->inv->options.keep_pid, err);
}

/* -- acquire ---------------------------------------------------------------- */

enum status
cmd_acquire(struct invocation *inv, struct err *err)
{
	struct keeper k; /* large: only what is needed is set */
	struct acquisition *const a = &k.acquisition;
	enum status status = ST_OK;
	enum ownership ownership;
	struct err ignored;

	if (inv->options.json && inv->options.export_lines)
		return err_set(err, ST_USAGE, "--export and --json cannot be used together");
	if (inv->options.slots > 0 && !inv->options.json && !inv->options.export_lines && inv->options.keep_pid == 0)
		return err_set(err, ST_USAGE,
		    "--slots needs --export, --json or --keep: a token alone does not name the slot");
	k.inv = inv;
	k.caller_fd = k.socket = k.releaser = -1;
	a->backend = NULL;
	if (inv->options.keep_pid != 0) {
		status = start_keeper(&k, err);
		if (k.caller_fd < 0)
			return status;
	}
	if (status == ST_OK)
		status = acquisition_open(a, inv, err);
	if (status == ST_OK) {
		status = acquisition_acquire(a, inv, err);
		if (status != ST_OK)
			print_refusal(inv, a, status);
		else if (k.caller_fd >= 0)
			status = keep(&k, err);
		else if ((status = print_lock(inv, a, err)) != ST_OK) /* nobody has the token */
			err_suffix(err,
			    a->backend->service->release(a->backend, &a->lease, 0, &ownership, &ignored) == ST_OK
				? "the lock was released again"
				: "the lock ends with its lease");
	}
	acquisition_close(a);
	process_close(&process);
	return status;
}

void
cmd_acquire_failed(const struct invocation *inv, int code)
{
	static const char *const names[] = { "DLOCK_KEY", "DLOCK_TOKEN", "DLOCK_FENCE", "DLOCK_TTL_MS", "DLOCK_SLOT" };
	const size_t count = sizeof(names) / sizeof(names[0]) - (inv->options.slots == 0);
	const bool fish = inv->options.export_fish;
	struct err ignored;
	size_t i;

	if (!inv->options.export_lines || (inv->command != NULL && inv->command->bit != CMD_ACQUIRE))
		return;
	for (i = 0; i < count; i++)
		printf("%s %s;\n", fish ? "set -e" : "unset", names[i]);
	/* With -E 0 it must fail, too. */
	printf(fish ? "sh -c 'exit %d'\n" : "(exit %d)\n", code == 0 ? (int)ST_HELD : code);
	(void)output_flush(&ignored);
}

/* -- renew and release ------------------------------------------------------ */

static void
print_json(const struct invocation *inv, const struct lease *lease, const struct renewed *renewed,
    const struct loss *loss)
{
	static const char *const outcomes[] = { [OWNED] = "released",
		[OWNED_STILL] = "still-held",
		[OWNED_NO_MORE] = "gone",
		[OWNED_BY_NOBODY] = "gone",
		[OWNED_BY_ANOTHER] = "held-by-another" };
	const bool renews = inv->command->bit == CMD_RENEW;
	const int64_t valid_us = renewed->valid_until_us - clock_now_us();
	const bool owned = renewed->ownership == OWNED, broken = loss->broken.token[0] != '\0';
	const char *const outcome = outcomes[renewed->ownership];
	struct json j = json_begin_line(stdout);

	json_string(&j, "key", inv->operand[0]);
	json_string(&j, "outcome",
	    owned && renews				 ? "renewed"
		: broken && strcmp(outcome, "gone") == 0 ? "broken"
							 : outcome);
	if (renews) {
		json_number(&j, "ttl_ms", owned ? lease->ttl_ms : 0);
		json_number(&j, "valid_ms", owned && valid_us > 0 ? valid_us / 1000 : 0);
	}
	view_json_holder(&j, &loss->holder);
	view_json_owner(&j, "broken_by", broken ? loss->broken.owner : "");
	if (renews)
		view_json_owner(&j, "asked_by", renewed->asked_by);
	json_number_or_null(&j, "broken_ms", loss->broken.ago_ms, broken);
	json_end_line(&j);
}

enum status
cmd_token(struct invocation *inv, struct err *err)
{
	const bool renews = inv->command->bit == CMD_RENEW;
	const struct wait limit = { CLOCK_NEVER, -1 };
	struct renewed renewed = { .ownership = OWNED_BY_NOBODY };
	struct loss loss = { .interrupt_fd = -1 };
	struct backend *backend = NULL;
	struct lease lease;
	char key[KEY_MAX + 1], shown[300], asked_by[OWNER_MAX + 1];
	enum status status;
	int keeper;

	status = setup_key(inv, inv->operand[0], key, err);
	if (status == ST_OK)
		status = setup_token(inv, key, &lease, err);
	if (status == ST_OK)
		status = setup_service(inv, &backend, err);
	if (status != ST_OK)
		return status;
	if (renews)
		status = backend->service->renew(backend, &lease, &limit, &renewed, err);
	else {
		keeper = announce_release(lease.token);
		status = backend->service->release(backend, &lease, 0, &renewed.ownership, err);
		/* End the keeper and wait for its end, or let it go on. */
		if (keeper >= 0 && status == ST_OK && send(keeper, "", 1, MSG_NOSIGNAL) > 0)
			(void)readable_within(keeper, ANSWER_MS);
		if (keeper >= 0)
			(void)close(keeper);
	}
	loss.ownership = renewed.ownership;
	if (status == ST_NO)
		status = loss_explain(backend, &lease, &loss, err);
	backend->service->close(backend);
	setup_blame_key(inv, status, err);
	if (renewed.asked_by[0] != '\0' && !inv->options.quiet)
		log_warn(&inv->log, "%s: asked to end by %s; release it",
		    text_show(inv->operand[0], shown, sizeof(shown)),
		    text_quote(renewed.asked_by, asked_by, sizeof(asked_by)));
	if (inv->options.json && (status == ST_OK || status == ST_NO)) {
		print_json(inv, &lease, &renewed, &loss);
		status = output_end(status, err);
	}
	return status;
}
