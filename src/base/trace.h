/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_TRACE_H
#define DLOCK_BASE_TRACE_H

/*
 * What is being done, step by step, for whoever asked to see it (--verbose).  Without a listener it costs nothing.
 * `say` gets one line without a newline and may be called from any thread.
 */
struct trace {
	void (*say)(const char *line);
};

void trace_say(const struct trace *, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
