/* SPDX-License-Identifier: MIT */
/*
 * The least that a lock over one Redis can be, to measure what dlock's safety costs on top of it.
 *
 *	least SOCKET|PORT KEY COMMAND...
 *
 * One connection, SET with NX and PX, vfork(2), and a script that deletes KEY where the token is ours.  It renews
 * nothing, waits for nothing, has no fence, hands over to nobody, leaves no word for people on call, and its command
 * runs on when it is killed, when the lease ends, or when the terminal goes away.  Nobody is to use it.
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RELEASE "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

static int
dial_path(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

static int
dial_port(unsigned short port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* Send a request; does its answer begin so? */
static int
answers(int fd, const char *request, int length, const char *expected)
{
	char answer[256];

	return write(fd, request, (size_t)length) == length && read(fd, answer, sizeof(answer)) > 0 &&
	    strncmp(answer, expected, strlen(expected)) == 0;
}

static int
run(char **argv)
{
	int status = 0;
	const pid_t child = vfork();

	if (child == 0) {
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	(void)waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
main(int argc, char **argv)
{
	unsigned char random[8];
	char token[2 * sizeof(random) + 1], request[1024];
	int fd, length, status;
	size_t i;

	if (argc < 4 || getentropy(random, sizeof(random)) != 0)
		return 64;
	for (i = 0; i < sizeof(random); i++)
		(void)snprintf(token + 2 * i, 3, "%02x", random[i]);
	fd = argv[1][0] == '/' ? dial_path(argv[1]) : dial_port((unsigned short)strtoul(argv[1], NULL, 10));
	length = snprintf(request, sizeof(request),
	    "*6\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n", strlen(argv[2]),
	    argv[2], strlen(token), token);
	if (fd < 0 || !answers(fd, request, length, "+OK"))
		return 69;
	status = run(argv + 3);
	length = snprintf(request, sizeof(request),
	    "*5\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(RELEASE), RELEASE,
	    strlen(argv[2]), argv[2], strlen(token), token);
	return answers(fd, request, length, ":1") ? status : 69;
}
