/* SPDX-License-Identifier: MIT */
#include "net/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Shared by the caller and the thread.  The last user frees it. */
struct resolving {
	atomic_int users;
	int fd;
	atomic_bool done; /* set by the thread: from then on the caller may read the two fields below */
	int code;
	struct addrinfo *addresses;
	char port[6];
	char host[];
};

static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };

struct addrinfo *
resolve_numeric(const char *host, const char *port)
{
	const struct addrinfo numeric = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *addresses = NULL;

	return getaddrinfo(host, port, &numeric, &addresses) == 0 ? addresses : NULL;
}

static void
let_go(struct resolving *r)
{
	if (atomic_fetch_sub(&r->users, 1) != 1)
		return;
	if (r->addresses != NULL)
		freeaddrinfo(r->addresses);
	(void)close(r->fd);
	free(r);
}

static void *
work(void *arg)
{
	struct resolving *r = arg;
	const uint64_t one = 1;

	r->code = getaddrinfo(r->host, r->port, &hints, &r->addresses);
	atomic_store(&r->done, true);
	while (write(r->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	let_go(r);
	return NULL;
}

/* Start a detached thread with a small stack.  Returns 0 or an errno. */
static int
start_thread(struct resolving *r)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	error = pthread_attr_init(&attributes);
	if (error != 0)
		return error;
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attributes, 256 * 1024);
	error = pthread_create(&thread, &attributes, work, r);
	(void)pthread_attr_destroy(&attributes);
	return error;
}

struct resolving *
resolve_start(const char *host, const char *port)
{
	const size_t length = strlen(host) + 1;
	struct resolving *r = calloc(1, sizeof(*r) + length);
	int error;

	if (r == NULL)
		return NULL;
	memcpy(r->host, host, length);
	memcpy(r->port, port, strlen(port) + 1);
	atomic_init(&r->users, 2);
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = r->fd < 0 ? errno : start_thread(r);
	if (error == 0)
		return r;
	if (r->fd >= 0)
		(void)close(r->fd);
	free(r);
	errno = error;
	return NULL;
}

int
resolve_fd(const struct resolving *r)
{
	return r->fd;
}

int
resolve_result(struct resolving *r, struct addrinfo **addresses)
{
	*addresses = NULL;
	if (!atomic_load(&r->done))
		return EAI_AGAIN;
	*addresses = r->addresses;
	r->addresses = NULL;
	return r->code;
}

void
resolve_cancel(struct resolving *r)
{
	if (r != NULL)
		let_go(r);
}
