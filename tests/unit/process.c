/* SPDX-License-Identifier: MIT */
#include "run/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include "tap.h"

/* Let pidfd_getfd(2) fail from now on, as on an older kernel. */
static bool
forget_pidfd_getfd(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	const struct sock_fprog filter = { COUNT(code), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* What process_say() writes to a file that a process has as its standard error, opened for reading. */
static off_t
said_to_reader(void)
{
	char path[128], file_path[136], byte = 0;
	int file, ready[2];
	struct process process;
	struct err err;
	off_t length;
	pid_t pid;

	if (!temporary_folder(path, sizeof(path)))
		return -1;
	(void)snprintf(file_path, sizeof(file_path), "%s/file", path);
	file = write_file(file_path, "old") ? open(file_path, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0 || pipe(ready) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)dup2(file, STDERR_FILENO);
		(void)!write(ready[1], &byte, 1);
		for (;;)
			(void)pause();
	}
	(void)!read(ready[0], &byte, 1);
	if (process_open(&process, pid, &err) == ST_OK)
		process_say(&process, "said");
	process_close(&process);
	length = lseek(file, 0, SEEK_END) - 3;
	(void)close(file);
	(void)close(ready[0]);
	(void)close(ready[1]);
	kill_off(pid);
	(void)unlink(file_path);
	(void)rmdir(path);
	return length;
}

/* Of a subshell it is the shell that counts. */
TEST(caller)
{
	const pid_t test = getpid();
	int copies = 0;
	pid_t pid;

	while ((pid = fork()) == 0 && ++copies < 3)
		;
	if (copies > 0)
		_exit(pid == 0 ? process_caller() != test : end_of(pid) != 0);
	is_int(end_of(pid), 0, "the caller of a copy is that of its original");
}

/* A name may look like what follows it, and a file may be longer than there is room for. */
TEST(fields)
{
	char name[16] = "", text[4] = "";
	uint64_t stat[STAT_FIELDS];

	(void)prctl(PR_GET_NAME, name);
	(void)prctl(PR_SET_NAME, "a) R 1 (b");
	ok(process_stat(getpid(), stat), "a process with such a name");
	is_int((int64_t)stat[STAT_PARENT], getppid(), "its parent");
	(void)prctl(PR_SET_NAME, name);
	ok(process_read(getpid(), "stat", text, 3) && strlen(text) == 2, "the begin of a file");
	ok(!process_read(getpid(), "fd", text, 3) && text[0] == '\0', "a folder, which read(2) refuses");
}

static void *
open_thread(void *err)
{
	struct process process;

	ok(process_open(&process, (pid_t)syscall(SYS_gettid), err) == ST_USAGE || on_valgrind(),
	    "a thread is no process");
	process_close(&process);
	return NULL;
}

TEST(thread)
{
	struct err err = { "" };
	pthread_t thread;

	ok(pthread_create(&thread, NULL, open_thread, &err) == 0 && pthread_join(thread, NULL) == 0, "a thread");
	ok(strncmp(err.text, "--keep: there is no process ", 28) == 0 || on_valgrind(), "the message: %s", err.text);
}

/* A pipe that is full, for its reader hangs. */
TEST(full_pipe)
{
	static const char bytes[4096];
	struct process process;
	struct err err;
	int own, ends[2];

	if (on_valgrind())
		return;
	own = dup(STDERR_FILENO);
	ok(process_open(&process, getpid(), &err) == ST_OK && pipe2(ends, O_NONBLOCK) == 0 &&
		dup2(ends[1], STDERR_FILENO) >= 0,
	    "a pipe");
	while (write(ends[1], bytes, sizeof(bytes)) > 0)
		;
	(void)fcntl(ends[1], F_SETFL, 0); /* now a write would wait */
	(void)alarm(60);
	process_say(&process, "said");
	(void)dup2(own, STDERR_FILENO);
	ok(alarm(0) > 0, "it is not waited for");
	process_close(&process);
	(void)close(own);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

TEST(standard_error)
{
	const int own = dup(STDERR_FILENO);
	char logged[64] = "";
	int ends[2];
	pid_t pid;

	openlog("", LOG_PERROR, LOG_USER); /* to our standard error, too */
	ok(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0, "a pipe");
	is_int(said_to_reader(), 0, "a process that may only read its standard error");
	openlog("", 0, LOG_USER);
	(void)dup2(own, STDERR_FILENO);
	(void)close(own);
	(void)close(ends[1]);
	ok((read(ends[0], logged, sizeof(logged) - 1) > 0 && strstr(logged, "dlock: said") != NULL) || on_valgrind(),
	    "it is for the system's log then: %s", logged);
	(void)close(ends[0]);
	ok(forget_pidfd_getfd(), "a kernel without pidfd_getfd(2)");
	if (geteuid() == 0)
		is_int(said_to_reader(), 0, "root does not open it again");
	if (on_valgrind())
		return;
	pid = fork();
	if (pid == 0)
		_exit(
		    (geteuid() != 0 || (setuid(65534) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0)) && said_to_reader() == 12
			? 0
			: 1);
	is_int(end_of(pid), 0, "the owner opens it again, and appends to it");
}
