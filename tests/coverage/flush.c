/* SPDX-License-Identifier: MIT */
/*
 * For coverage builds only: what a process has counted is written before it goes by a way that runs no exit handlers,
 * which are _exit and a signal that it lets through.
 *
 * The linker sends the calls here (--wrap), so that nothing of this stands in the program.  The counters start again
 * from 0 each time: behind vfork they are the parent's, too, and it writes its own when it ends.  Where tests/inject lets
 * calls fail, those of this are left alone.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);
_Noreturn void __real__exit(int);
_Noreturn void __wrap__exit(int);
int __real_raise(int);
int __wrap_raise(int);
int __real_sigprocmask(int, const sigset_t *, sigset_t *);
int __wrap_sigprocmask(int, const sigset_t *, sigset_t *);

static void (*suspend)(bool);

static __attribute__((constructor)) void
find_injection(void)
{
	*(void **)&suspend = dlsym(RTLD_DEFAULT, "inject_suspend");
}

/* Before the counters are written at exit. */
static __attribute__((destructor)) void
end_injection(void)
{
	if (suspend != NULL)
		suspend(true);
}

static void
flush(void)
{
	if (suspend != NULL)
		suspend(true);
	__gcov_dump();
	__gcov_reset();
	if (suspend != NULL)
		suspend(false);
}

_Noreturn void
__wrap__exit(int status)
{
	flush();
	__real__exit(status);
}

int
__wrap_raise(int signal)
{
	flush();
	return __real_raise(signal);
}

int
__wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t pending;

	if (how == SIG_UNBLOCK && sigpending(&pending) == 0 && !sigisemptyset(&pending))
		flush();
	return __real_sigprocmask(how, set, old);
}
