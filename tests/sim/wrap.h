/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_WRAP_H
#define DLOCK_SIM_WRAP_H
/* The functions that replace system calls by --wrap of the linker, and the real ones (list in tests/local.mk). */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>

#define WRAPPED(type, name, arguments) \
	type __real_##name arguments;  \
	type __wrap_##name arguments

WRAPPED(int, clock_gettime, (clockid_t, struct timespec *));
WRAPPED(int, close, (int));
WRAPPED(int, connect, (int, const struct sockaddr *, socklen_t));
WRAPPED(int, eventfd, (unsigned int, int));
WRAPPED(ssize_t, getrandom, (void *, size_t, unsigned int));
WRAPPED(int, getsockopt, (int, int, int, void *, socklen_t *));
WRAPPED(int, poll, (struct pollfd *, nfds_t, int));
WRAPPED(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *));
WRAPPED(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *));
WRAPPED(int, pthread_join, (pthread_t, void **));
WRAPPED(ssize_t, read, (int, void *, size_t));
WRAPPED(int, setsockopt, (int, int, int, const void *, socklen_t));
WRAPPED(int, socket, (int, int, int));
WRAPPED(int, timerfd_create, (int, int));
WRAPPED(int, timerfd_settime, (int, int, const struct itimerspec *, struct itimerspec *));
WRAPPED(ssize_t, write, (int, const void *, size_t));

/* The variants with the checks of _FORTIFY_SOURCE. */
int __wrap___poll_chk(struct pollfd *, nfds_t, int, size_t);
int __wrap___ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
ssize_t __wrap___read_chk(int, void *, size_t, size_t);

#endif
