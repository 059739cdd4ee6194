/* SPDX-License-Identifier: MIT */
/*
 * The least that a lock over one Redis can be, to measure what dlock's safety costs on top of it.
 *
 *	least FORM SOCKET|PORT KEY LEASE_MS COMMAND...
 *
 * FORM is
 *
 *	run	one connection, SET with NX and PX, vfork(2), and a script that deletes KEY where the token is ours;
 *	wait	the same, and whoever is refused waits with BLPOP: the script also pushes to a list, which wakes one of
 *		them, and that one tries again;
 *	hold	the same as wait, and a thread that renews the lease each third of it.
 *
 * It has no fence, hands over to nobody in particular, leaves no word for people on call, waits forever for a holder
 * that died, and its command runs on when it is killed, when the lease ends, or when the terminal goes away.  Nobody is
 * to use it.
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNLESS_OURS "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
#define RENEW UNLESS_OURS "return redis.call('PEXPIRE', KEYS[1], ARGV[2])"
#define RELEASE UNLESS_OURS "return redis.call('DEL', KEYS[1])"
/* At most one element is there: it stays if nobody waits, and the next one who has to wait looks twice. */
#define RELEASE_AND_WAKE UNLESS_OURS "redis.call('DEL', KEYS[1], KEYS[2]) redis.call('RPUSH', KEYS[2], 1) return 1"

static struct lock {
	const char *key, *lease_ms;
	char token[17], wake[128];
	int fd;
	pthread_mutex_t turn; /* of whoever asks the server */
} lock = { .turn = PTHREAD_MUTEX_INITIALIZER };

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

/* Send a request of words up to NULL; does its answer begin so? */
static bool
answers(const char *expected, const char *const words[])
{
	char request[1024], answer[256];
	size_t count = 0, length, i;
	bool matches;

	while (words[count] != NULL)
		count++;
	length = (size_t)snprintf(request, sizeof(request), "*%zu\r\n", count);
	for (i = 0; i < count && length < sizeof(request); i++)
		length += (size_t)snprintf(request + length, sizeof(request) - length, "$%zu\r\n%s\r\n",
		    strlen(words[i]), words[i]);
	if (length >= sizeof(request))
		return false;
	(void)pthread_mutex_lock(&lock.turn);
	matches = write(lock.fd, request, length) == (ssize_t)length && read(lock.fd, answer, sizeof(answer)) > 0 &&
	    strncmp(answer, expected, strlen(expected)) == 0;
	(void)pthread_mutex_unlock(&lock.turn);
	return matches;
}

static bool
acquire(bool wait)
{
	const char *const set[] = { "SET", lock.key, lock.token, "NX", "PX", lock.lease_ms, NULL };
	const char *const pop[] = { "BLPOP", lock.wake, "0", NULL };

	while (!answers("+OK", set))
		if (!wait || !answers("*2", pop))
			return false;
	return true;
}

static bool
release(bool wake)
{
	const char *const plain[] = { "EVAL", RELEASE, "1", lock.key, lock.token, NULL };
	const char *const waking[] = { "EVAL", RELEASE_AND_WAKE, "2", lock.key, lock.wake, lock.token, NULL };

	return answers(":1", wake ? waking : plain);
}

static void *
renew(void *unused)
{
	const char *const words[] = { "EVAL", RENEW, "1", lock.key, lock.token, lock.lease_ms, NULL };
	const long third_ms = strtol(lock.lease_ms, NULL, 10) / 3;
	const struct timespec pause = { .tv_sec = third_ms / 1000, .tv_nsec = third_ms % 1000 * 1000000 };

	do
		(void)nanosleep(&pause, NULL);
	while (answers(":1", words));
	return unused;
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
	pthread_t thread;
	bool waits, renews;
	int status;
	size_t i;

	if (argc < 6 || getentropy(random, sizeof(random)) != 0)
		return 64;
	renews = strcmp(argv[1], "hold") == 0;
	waits = renews || strcmp(argv[1], "wait") == 0;
	lock.key = argv[3];
	lock.lease_ms = argv[4];
	for (i = 0; i < sizeof(random); i++)
		(void)snprintf(lock.token + 2 * i, 3, "%02x", random[i]);
	(void)snprintf(lock.wake, sizeof(lock.wake), "%s:wake", lock.key);
	lock.fd = argv[2][0] == '/' ? dial_path(argv[2]) : dial_port((unsigned short)strtoul(argv[2], NULL, 10));
	if (lock.fd < 0 || !acquire(waits))
		return 69;
	if (renews && pthread_create(&thread, NULL, renew, NULL) != 0)
		return 71;
	status = run(argv + 5);
	return release(waits) ? status : 69;
}
