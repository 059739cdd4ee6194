/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status
err_set(struct err *err, enum status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return status;
}

void
err_prefix(struct err *err, const char *prefix)
{
	char text[sizeof(err->text)];

	(void)snprintf(text, sizeof(text), "%s", err->text);
	(void)snprintf(err->text, sizeof(err->text), "%.200s: %.800s", prefix, text);
}

void
err_suffix(struct err *err, const char *suffix)
{
	const size_t length = strlen(err->text);

	(void)snprintf(err->text + length, sizeof(err->text) - length, "; %s", suffix);
}

enum status
err_system(struct err *err, int number, const char *what)
{
	return err_set(err, ST_SYSTEM, "%s: %s", what, strerror(number));
}

const char *
err_lack(int number)
{
	switch (number) {
	case EMFILE:
		return "this process has too many open files; raise its limit (ulimit -n)";
	case ENFILE:
		return "this host has too many open files; raise fs.file-max";
	case ENOBUFS:
		return "this host has no memory for another socket";
	case ENOMEM:
		return OUT_OF_MEMORY;
	default:
		return NULL;
	}
}

void
reason_set(struct reason *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(r->text, sizeof(r->text), format, args);
	va_end(args);
}

void
reason_prefix(struct reason *r, const char *prefix)
{
	const struct reason bare = *r;

	reason_set(r, "%s: %s", prefix, bare.text);
}

void
failure_set(struct failure *f, enum failure_kind kind, const char *format, ...)
{
	va_list args;

	*f = (struct failure){ .kind = kind };
	va_start(args, format);
	(void)vsnprintf(f->reason.text, sizeof(f->reason.text), format, args);
	va_end(args);
}

void
log_line(void (*write)(const char *line), const char *format, ...)
{
	char line[1024];
	va_list args;

	if (write == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	write(line);
}
