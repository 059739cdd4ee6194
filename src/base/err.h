/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_ERR_H
#define DLOCK_BASE_ERR_H
#include <stdbool.h>

/*
 * Statuses and error messages.
 *
 * A function that can fail returns an enum status.  If it takes a struct err (always the last parameter), it stores a
 * complete message there.  Nothing below main prints or exits; main prints the message once, after "dlock: ".  The set
 * of statuses is closed; their lowest eight bits are also the exit statuses in the manual.
 */
enum status {
	ST_OK = 0,
	ST_NO = 1, /* negative answer: not the holder, not locked */
	ST_USAGE = 64,
	ST_NO_QUORUM = 69, /* too few nodes reachable or fit to answer */
	ST_BUG = 70,
	ST_SYSTEM = 71, /* fork, memory, output ... */
	ST_HELD = 75,	/* by another */
	ST_LOST = 76,	/* while the command ran */
	ST_DENIED = 77, /* authentication, ACL */
	ST_CONFIG = 78,
	ST_MAX_RUN = 124,
	ST_NOT_EXECUTABLE = 126,
	ST_NOT_FOUND = 127,
	/* Somebody asked the holder to end, and so its command was ended.  The exit status is that of ST_LOST. */
	ST_ASKED = 256 + ST_LOST,
	ST_INTERRUPTED = 128 /* by a signal, or by the owner of the thread; never an exit status itself */
};

struct err {
	char text[1024]; /* without a newline; truncated if longer */
};

/* Store the message and return the status, so that a caller can write `return err_set(...)`. */
enum status err_set(struct err *, enum status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prepend "PREFIX: " to the message, or append "; SUFFIX". */
void err_prefix(struct err *, const char *prefix);
void err_suffix(struct err *, const char *suffix);

/* A system error: "WHAT: strerror(number)". */
enum status err_system(struct err *, int number, const char *what);

/* The resource that this host lacks according to an errno, with advice; NULL for any other errno. */
const char *err_lack(int number);

/* The text of err_lack() for ENOMEM. */
#define OUT_OF_MEMORY "out of memory"

/* Why a node or a connection failed, in a few words.  It is short since there is one for each request. */
struct reason {
	char text[200]; /* cut when longer */
};

void reason_set(struct reason *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put "PREFIX: " before it. */
void reason_prefix(struct reason *, const char *prefix);

/* Why a connection, a request or a node failed: from the socket to the message.  A zeroed struct is no failure. */
struct failure {
	enum failure_kind {
		NO_FAILURE,
		FAILED, /* no connection, a broken one, or no reply in time */
		DENIED, /* refused by the server (login, TLS, rights); trying again does not help */
		LOCAL	/* this host lacks a resource, such as memory */
	} kind;
	bool login;	/* it is DENIED for its password, or for the lack of one */
	bool connected; /* the connection had been established */
	bool closed;	/* the server has closed it, or accepts none: it is alive */
	bool sent;	/* of a request: a byte of it was written, so the server may have executed it */
	struct reason reason;
};

/* Set the kind and the reason: not connected, not closed, not sent. */
void failure_set(struct failure *, enum failure_kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Messages about what is being done.  Each function gets one line without a newline, and may be called from any thread.
 * NULL: these messages are dropped, which costs nothing.
 */
struct log {
	void (*warn)(const char *line);	 /* the lines that the user must see, --quiet or not */
	void (*debug)(const char *line); /* the lines that --verbose shows */
};

void log_line(void (*write)(const char *line), const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_warn(log, ...) log_line((log)->warn, __VA_ARGS__)
#define log_debug(log, ...) log_line((log)->debug, __VA_ARGS__)

#endif
