/* SPDX-License-Identifier: MIT */
#include "run/signals.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "tap.h"

static struct signals s;
static sigset_t given;

TEST(names)
{
	static const char *const bad[] = { "NOSUCH", "-1", "TERM INT", "RTMIN+", "RTMIN+31", "RTMIN-1", "RTMAX-x",
		"RTMAX+1", "RTMAX-31", "RTMIN+ 1", "RTMAX-9223372036854775808" };
	char name[SIGNAL_NAME_SIZE];

	is_str(signals_name(SIGTERM, name), "SIGTERM", "a name");
	is_str(signals_name(SIGRTMIN + 3, name), "SIGRTMIN+3", "a real-time signal");
	for (int signal = 1; signal < 32; signal++)
		each(signals_number(signals_name(signal, name)) == signal, "%d is %s", signal, name);
	for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
		each(signals_number(signals_name(signal, name)) == signal, "%d is %s", signal, name);
	each_ok("a name that is shown is the name of that signal");
	for (size_t i = 0; i < COUNT(bad); i++)
		each(signals_number(bad[i]) == 0, "'%s' is a signal", bad[i]);
	(void)snprintf(name, sizeof(name), "%d", NSIG);
	each(signals_number(name) == 0, "'%s' is a signal", name);
	each_ok("what is no signal is refused");
}

TEST(watched)
{
	static const int others[] = { SIGKILL, SIGSTOP, SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH,
		SIGPIPE, SIGXFSZ };
	int signal, watched = 0;
	sigset_t mask;

	(void)sigprocmask(SIG_BLOCK, NULL, &given);
	(void)sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	ok(signals_open(&s, &given), "signals_open() succeeds");
	for (signal = 1; signal <= SIGRTMAX; signal++)
		watched += sigismember(&s.watched, signal) == 1;
	ok(watched >= 31 - 11 - 1 - 4 + SIGRTMAX - SIGRTMIN + 1, "all that end a process: %d", watched);
	ok(sigismember(&s.watched, SIGUSR1) == 0, "a signal that was ignored is not watched");
	for (size_t i = 0; i < COUNT(others); i++)
		each(sigismember(&s.watched, others[i]) == 0, "%d is watched", others[i]);
	each_ok("signals that do not end a process, or that writes get, are not watched");
	ok(signals_watch_command(&s) && sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGTTIN) == 1 &&
		sigismember(&mask, SIGTTOU) == 1,
	    "another process of the group that uses the terminal does not stop dlock");
	(void)close(s.fd);
	(void)sigprocmask(SIG_SETMASK, &given, NULL);
	(void)sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

/* A process that has its signals watched and then reads where it must not. */
TEST(fault)
{
	const struct rlimit none = { 0, 0 };
	int status;
	const pid_t pid = fork();

	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		(void)sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
		(void)sigprocmask(SIG_BLOCK, NULL, &given);
		if (!signals_open(&s, &given))
			_exit(1);
		_exit(*(volatile char *)mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	}
	status = end_of(pid);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a fault ends the process: %x", (unsigned int)status);
}

/* The signal of a write to a pipe that nobody reads is not seen. */
TEST(pipe)
{
	int ends[2];

	signals_block_failed_writes(&given);
	if (!signals_open(&s, &given) || pipe(ends) != 0)
		return;
	(void)close(ends[0]);
	ok(write(ends[1], "x", 1) < 0 && errno == EPIPE, "a pipe that nobody reads");
	is_int(signals_next(&s, NULL), 0, "its signal is not read");
	(void)close(ends[1]);
	(void)close(s.fd);
}

TEST(asked_to_end)
{
	static const int end[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

	(void)sigprocmask(SIG_BLOCK, NULL, &given);
	ok(signals_open(&s, &given), "signals_open() succeeds");
	for (size_t i = 0; i < COUNT(end); i++) {
		(void)raise(SIGUSR2);
		each(!signals_asked_to_end(&s), "no signal to end");
		(void)raise(end[i]);
		each(signals_asked_to_end(&s), "signal %d", end[i]);
	}
	each_ok("the signals by which a user ends dlock");
	(void)close(s.fd);
	(void)sigprocmask(SIG_SETMASK, &given, NULL);
}

/* A process that a shell started with SIGTSTP ignored stops all the same. */
TEST(stop)
{
	int status = 0;
	const pid_t pid = fork();

	if (pid == 0) {
		(void)sigaction(SIGTSTP, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
		(void)signals_stop(false, CLOCK_NEVER);
		_exit(0);
	}
	ok(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "it stops: %x", (unsigned int)status);
	kill_off(pid);
}

TEST(die)
{
	const struct rlimit limit = { on_valgrind() ? 0 : RLIM_INFINITY, RLIM_INFINITY };
	char folder[64];
	int status;
	pid_t pid;

	temporary_folder(folder, sizeof(folder));
	pid = fork();
	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &limit);
		(void)sigaction(SIGQUIT, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
		signals_die_of(chdir(folder) == 0 ? SIGQUIT : SIGTERM);
		_exit(0);
	}
	status = end_of(pid);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT, "it dies of ^\\: %x", (unsigned int)status);
	ok(!WCOREDUMP(status) && rmdir(folder) == 0, "without a core dump");
}

TEST(unwatch)
{
	sigset_t mask;
	const pid_t pid = fork();

	if (pid == 0) {
		(void)sigemptyset(&mask);
		(void)sigprocmask(SIG_SETMASK, &mask, NULL);
		signals_block_failed_writes(&given);
		if (!signals_open(&s, &given) || raise(SIGTERM) != 0)
			_exit(1);
		signals_unwatch(&s);
		(void)sigprocmask(SIG_BLOCK, NULL, &mask);
		_exit(sigismember(&mask, SIGTERM) + 2 * !sigismember(&mask, SIGPIPE));
	}
	is_int(end_of(pid), 0, "a signal that came before is late, those that come now are not blocked");
}
