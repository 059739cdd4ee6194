/* SPDX-License-Identifier: MIT */
#include "base/trace.h"

#include <stdarg.h>
#include <stdio.h>

void
trace_say(const struct trace *trace, const char *format, ...)
{
	char line[1024];
	va_list args;

	if (trace->say == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	trace->say(line);
}
