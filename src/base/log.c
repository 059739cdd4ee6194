/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 0))) static void
write_line(void (*write)(const char *line), const char *format, va_list args)
{
	char line[1024];

	(void)vsnprintf(line, sizeof(line), format, args);
	write(line);
}

void
log_warn(const struct log *log, const char *format, ...)
{
	va_list args;

	if (log->warn == NULL)
		return;
	va_start(args, format);
	write_line(log->warn, format, args);
	va_end(args);
}

void
log_debug(const struct log *log, const char *format, ...)
{
	va_list args;

	if (log->debug == NULL)
		return;
	va_start(args, format);
	write_line(log->debug, format, args);
	va_end(args);
}
