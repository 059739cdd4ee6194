/* SPDX-License-Identifier: MIT */
#include "base/reason.h"

#include <stdarg.h>
#include <stdio.h>

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
