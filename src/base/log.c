/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

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
