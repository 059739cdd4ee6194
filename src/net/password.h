/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_NET_PASSWORD_H
#define DLOCK_NET_PASSWORD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "net/authority.h"

/*
 * The password of all connections that have none of their own: a given one, the first line of a file, or the first line
 * that a command prints.  The one of a file or of a command may change while a lock is held.
 *
 * A file is read again for each login, and when a server refuses it; a pipe is read once.  A command runs again only
 * when a server refuses its password, and then in the background: nothing here waits for it but password_open().  A
 * failure to read one is a warning, and the password stays as it was.
 *
 * It may be used by one thread at a time.
 */
struct password {
	/* Set by the owner, who keeps the strings; all others are zero. */
	const char *file, *command; /* at most one of them; both NULL: it never changes */
	const char *directory;	    /* for the command, and a file without "/"; NULL: that of the process */
	struct log log;
	char text[URL_PASSWORD_SIZE]; /* "": there is none */

	/* Read by everybody. */
	unsigned int version; /* counts the changes of the text */

	/* Private. */
	int64_t read_us;   /* when it was read, or tried to be */
	bool once;	   /* the file is a pipe */
	struct reason why; /* why the last reading failed; "": it did not */
	pid_t pid;	   /* of the helper that runs the command; 0: none */
	int fd;		   /* its answer comes there */
};

/* Read it for the first time, and wait for the command.  ST_CONFIG: why that failed. */
enum status password_open(struct password *, struct err *);

/* The text for a login that begins now; *version is its version. */
const char *password_to_log_in(struct password *, unsigned int *version);

/* A server has refused this version.  False: there is no other one, and none is to be expected. */
bool password_refused(struct password *, unsigned int version);

/* Does the command run, so that there may be another password soon? */
bool password_is_pending(struct password *);

/*
 * Read the first line from a descriptor, without its newline, and nothing behind it.  NULL, or why it cannot be used.
 */
const char *password_line(int fd, char *line, size_t size);

#endif
