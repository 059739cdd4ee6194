/* SPDX-License-Identifier: MIT */
/*
 * A library for LD_PRELOAD that lets one call of a program fail.
 *
 * INJECT_CALLS names functions, separated by spaces.  The INJECT_NTH-th call of any of them, in the program or in the
 * processes it forks, counted together from 1, fails, and all after it where a + follows the number: with errno
 * INJECT_AS, or, where that is "short", it moves one byte only.  INJECT_LEDGER is a file of the size of struct ledger, in
 * which the calls are counted, so that whoever runs the program knows whether anything has failed, and what.  What the program executes is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOADED 0x1d10c
#define SHORT (-1)

struct ledger {
	_Atomic int loaded; /* LOADED, once the library counts */
	_Atomic int calls;
	_Atomic int failed; /* how many calls have */
	char function[32];  /* which, lastly */
};

static struct ledger *ledger;
static char functions[1024]; /* with a space at both ends */
static int nth, as;
static bool ever_after;
static _Thread_local bool suspended; /* this thread is in a library that crashes where it gets no memory */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

/* For a library inside the program that calls the system for its own ends: nothing fails, nothing is counted. */
void
inject_suspend(bool on)
{
	suspended = on;
}

/* Shall this call fail?  Safe between vfork and exec, and anywhere else. */
static bool
is_due(const char *function)
{
	char word[40];
	size_t length;
	int number;

	if (ledger == NULL || suspended)
		return false;
	length = strlen(function);
	word[0] = ' ';
	memcpy(word + 1, function, length);
	memcpy(word + 1 + length, " ", 2);
	if (strstr(functions, word) == NULL)
		return false;
	number = atomic_fetch_add(&ledger->calls, 1) + 1;
	if (number < nth || (number > nth && !ever_after))
		return false;
	atomic_fetch_add(&ledger->failed, 1);
	memcpy(ledger->function, function, length + 1);
	return true;
}

static bool
fails(const char *function)
{
	if (!is_due(function))
		return false;
	errno = as;
	return true;
}

__attribute__((constructor)) static void
begin(void)
{
	const char *calls = getenv("INJECT_CALLS"), *path = getenv("INJECT_LEDGER"), *how = getenv("INJECT_AS");
	const char *number = getenv("INJECT_NTH");
	struct ledger *shared;
	char *end;
	int fd;

	if (calls == NULL || path == NULL || how == NULL || number == NULL)
		return;
	(void)snprintf(functions, sizeof(functions), " %s ", calls);
	nth = (int)strtol(number, &end, 10);
	ever_after = *end == '+';
	as = strcmp(how, "short") == 0 ? SHORT : (int)strtol(how, NULL, 10);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (shared == MAP_FAILED)
		abort();
	(void)unsetenv("LD_PRELOAD");
	(void)unsetenv("INJECT_CALLS");
	(void)unsetenv("INJECT_LEDGER");
	(void)unsetenv("INJECT_AS");
	(void)unsetenv("INJECT_NTH");
	atomic_store(&shared->loaded, LOADED);
	ledger = shared;
}

/* Looked up at the first call, which is the same whoever comes first. */
#define REAL(name)                     \
	static __typeof__(name) *real; \
	if (real == NULL)              \
	real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* A function of fixed arguments, with what it returns when it fails. */
#define WRAP(type, name, failure, parameters, arguments)          \
	type name parameters                                      \
	{                                                         \
		REAL(name);                                       \
		return fails(#name) ? (failure) : real arguments; \
	}

/* By libc's own names, since dlsym() itself may want some memory. */
void *
malloc(size_t size)
{
	return fails("malloc") ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	return fails("calloc") ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *old, size_t size)
{
	return fails("realloc") ? NULL : __libc_realloc(old, size);
}

/* glibc's strdup() and getline() come to malloc() as well, within the library or not. */
WRAP(int, setenv, -1, (const char *name, const char *value, int replace), (name, value, replace))

/* glibc 2.36 looks for the kinds of name services without looking whether it got the memory for them. */
int
getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list)
{
	int code;

	REAL(getaddrinfo);
	if (fails("getaddrinfo"))
		return EAI_MEMORY;
	suspended = true;
	code = real(host, port, hints, list);
	suspended = false;
	return code;
}

WRAP(int, setpgid, -1, (pid_t pid, pid_t group), (pid, group))
WRAP(int, execvp, -1, (const char *file, char *const *argv), (file, argv))
WRAP(int, execve, -1, (const char *file, char *const *argv, char *const *envp), (file, argv, envp))
WRAP(pid_t, waitpid, -1, (pid_t pid, int *status, int options), (pid, status, options))
WRAP(int, posix_spawn, as,
    (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
	char *const *argv, char *const *envp),
    (pid, file, actions, attributes, argv, envp))
WRAP(int, posix_spawnp, as,
    (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
	char *const *argv, char *const *envp),
    (pid, file, actions, attributes, argv, envp))
WRAP(int, pthread_create, as,
    (pthread_t * thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument),
    (thread, attributes, work, argument))

int
clone(int (*work)(void *), void *stack, int flags, void *argument, ...)
{
	va_list rest;
	void *a, *b, *c;

	REAL(clone);
	va_start(rest, argument);
	a = va_arg(rest, void *);
	b = va_arg(rest, void *);
	c = va_arg(rest, void *);
	va_end(rest);
	return fails("clone") ? -1 : real(work, stack, flags, argument, a, b, c);
}

/*
 * vfork() returns twice on one stack, so whoever is in between must have left it by then: no C function can be.  Without
 * a few lines for the processor its failure is not tried.
 */
static pid_t (*real_vfork)(void);

__attribute__((used)) static void *
vfork_target(void)
{
	if (real_vfork == NULL)
		real_vfork = (pid_t(*)(void))dlsym(RTLD_NEXT, "vfork");
	return fails("vfork") ? NULL : (void *)real_vfork;
}

#if defined(__x86_64__)
__asm__(".text\n.globl vfork\n.type vfork, @function\n"
	"vfork:\n\tsub $8, %rsp\n\tcall vfork_target\n\tadd $8, %rsp\n"
	"\ttest %rax, %rax\n\tje 1f\n\tjmp *%rax\n"
	"1:\tmov $-1, %eax\n\tret\n.size vfork, .-vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl vfork\n.type vfork, @function\n"
	"vfork:\n\tstp x29, x30, [sp, #-16]!\n\tbl vfork_target\n\tldp x29, x30, [sp], #16\n"
	"\tcbz x0, 1f\n\tbr x0\n"
	"1:\tmov w0, #-1\n\tret\n.size vfork, .-vfork\n");
#endif

#define OPEN(name)                                                  \
	int name(const char *path, int flags, ...)                  \
	{                                                           \
		mode_t mode;                                        \
		va_list rest;                                       \
		REAL(name);                                         \
		va_start(rest, flags);                              \
		mode = va_arg(rest, mode_t);                        \
		va_end(rest);                                       \
		return fails(#name) ? -1 : real(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

#define CONTROL(name, kind)                                             \
	int name(int fd, kind request, ...)                             \
	{                                                               \
		void *argument;                                         \
		va_list rest;                                           \
		REAL(name);                                             \
		va_start(rest, request);                                \
		argument = va_arg(rest, void *);                        \
		va_end(rest);                                           \
		return fails(#name) ? -1 : real(fd, request, argument); \
	}
CONTROL(fcntl64, int)
CONTROL(ioctl, unsigned long)

WRAP(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode))
WRAP(FILE *, fopen64, NULL, (const char *path, const char *mode), (path, mode))
WRAP(int, rename, -1, (const char *from, const char *to), (from, to))
WRAP(int, fstat64, -1, (int fd, struct stat64 *st), (fd, st))
WRAP(int, stat64, -1, (const char *path, struct stat64 *st), (path, st))
WRAP(char *, realpath, NULL, (const char *path, char *to), (path, to))
WRAP(int, pipe2, -1, (int ends[2], int flags), (ends, flags))
WRAP(int, eventfd, -1, (unsigned int value, int flags), (value, flags))
WRAP(int, timerfd_create, -1, (clockid_t clock, int flags), (clock, flags))
WRAP(int, timerfd_settime, -1, (int fd, int flags, const struct itimerspec *to, struct itimerspec *from),
    (fd, flags, to, from))
WRAP(int, timer_create, -1, (clockid_t clock, struct sigevent *event, timer_t *timer), (clock, event, timer))
WRAP(int, timer_settime, -1, (timer_t timer, int flags, const struct itimerspec *to, struct itimerspec *from),
    (timer, flags, to, from))
WRAP(int, signalfd, -1, (int fd, const sigset_t *set, int flags), (fd, set, flags))

WRAP(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, connect, -1, (int fd, const struct sockaddr *to, socklen_t length), (fd, to, length))
WRAP(int, getsockopt, -1, (int fd, int level, int option, void *value, socklen_t *length),
    (fd, level, option, value, length))
WRAP(int, setsockopt, -1, (int fd, int level, int option, const void *value, socklen_t length),
    (fd, level, option, value, length))

/* What may block, or move less than was asked.  Eight bytes are those of an eventfd or a timer, which move them whole. */
#define MOVE(name, parameters, whole, part)                    \
	ssize_t name parameters                                \
	{                                                      \
		REAL(name);                                    \
		if (n == sizeof(uint64_t) || !is_due(#name))   \
			return real whole;                     \
		if (as == SHORT)                               \
			return n > 0 ? real part : real whole; \
		errno = as;                                    \
		return -1;                                     \
	}
MOVE(read, (int fd, void *bytes, size_t n), (fd, bytes, n), (fd, bytes, 1))
MOVE(write, (int fd, const void *bytes, size_t n), (fd, bytes, n), (fd, bytes, 1))
MOVE(recv, (int fd, void *bytes, size_t n, int flags), (fd, bytes, n, flags), (fd, bytes, 1, flags))
MOVE(send, (int fd, const void *bytes, size_t n, int flags), (fd, bytes, n, flags), (fd, bytes, 1, flags))

WRAP(int, poll, -1, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
WRAP(int, ppoll, -1, (struct pollfd * fds, nfds_t n, const struct timespec *left, const sigset_t *mask),
    (fds, n, left, mask))
WRAP(int, sigtimedwait, -1, (const sigset_t *set, siginfo_t *info, const struct timespec *left), (set, info, left))

/* What a program calls instead that is compiled with _FORTIFY_SOURCE. */
#define CHECKED(type, name, parameters, arguments) \
	type __##name##_chk parameters;            \
	type __##name##_chk parameters             \
	{                                          \
		(void)size;                        \
		return name arguments;             \
	}
CHECKED(ssize_t, read, (int fd, void *bytes, size_t n, size_t size), (fd, bytes, n))
CHECKED(ssize_t, recv, (int fd, void *bytes, size_t n, size_t size, int flags), (fd, bytes, n, flags))
CHECKED(int, poll, (struct pollfd * fds, nfds_t n, int ms, size_t size), (fds, n, ms))
CHECKED(int, ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *left, const sigset_t *mask, size_t size),
    (fds, n, left, mask))

WRAP(ssize_t, getrandom, -1, (void *bytes, size_t n, unsigned int flags), (bytes, n, flags))
WRAP(int, gethostname, -1, (char *name, size_t size), (name, size))
WRAP(int, sigprocmask, -1, (int how, const sigset_t *set, sigset_t *before), (how, set, before))
WRAP(int, sigaction, -1, (int signal, const struct sigaction *to, struct sigaction *from), (signal, to, from))
WRAP(int, sched_setscheduler, -1, (pid_t pid, int policy, const struct sched_param *p), (pid, policy, p))

int
prctl(int option, ...)
{
	unsigned long a, b, c, d;
	va_list rest;
	static int (*real)(int, ...);

	if (real == NULL)
		real = (int (*)(int, ...))dlsym(RTLD_NEXT, "prctl");
	va_start(rest, option);
	a = va_arg(rest, unsigned long);
	b = va_arg(rest, unsigned long);
	c = va_arg(rest, unsigned long);
	d = va_arg(rest, unsigned long);
	va_end(rest);
	return fails("prctl") ? -1 : real(option, a, b, c, d);
}
