/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_LOG_H
#define DLOCK_BASE_LOG_H

/*
 * Messages about what is being done.  Each function gets one line without a newline, and may be called from any thread.
 * NULL: these messages are dropped, which costs nothing.
 */
struct log {
	void (*warn)(const char *line);	 /* what the user must know, --quiet or not */
	void (*debug)(const char *line); /* what --verbose shows */
};

void log_line(void (*write)(const char *line), const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_warn(log, ...) log_line((log)->warn, __VA_ARGS__)
#define log_debug(log, ...) log_line((log)->debug, __VA_ARGS__)

#endif
