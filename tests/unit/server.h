/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_UNIT_SERVER_H
#define DLOCK_TESTS_UNIT_SERVER_H
/* Sockets of servers for tests of connections. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tap.h"

#define PATIENCE_US 20000000 /* for whatever should come soon */

/* A socket at a port of this machine that listens, its queue of so many connections; -1: one that doesn't listen. */
static inline int
listen_at_port(int queue, int *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	each(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0, "bind");
	each(getsockname(fd, (struct sockaddr *)&address, &length) == 0, "getsockname");
	each(queue < 0 || listen(fd, queue) == 0, "listen");
	*port = ntohs(address.sin_port);
	return fd;
}

/* The same at a path, where another one may have been. */
static inline int
listen_at_path(int queue, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)unlink(path);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	each(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
	each(listen(fd, queue) == 0, "listen");
	return fd;
}

#endif
