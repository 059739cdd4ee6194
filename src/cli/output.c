/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum status
output_flush(struct err *err)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return ST_OK;
	return err_system(err, errno != 0 ? errno : EIO, "cannot write to standard output");
}

enum status
output_end(enum status status, struct err *err)
{
	struct err output_err;

	if (output_flush(&output_err) == ST_OK)
		return status;
	*err = output_err;
	return ST_SYSTEM;
}

struct extent
output_extent(void)
{
	struct winsize size = { .ws_col = 0 };
	struct extent e = { 0, 0 };

	if (!isatty(STDOUT_FILENO))
		return e;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	e.columns = size.ws_col > 0 ? size.ws_col : 80;
	e.rows = size.ws_row > 0 ? size.ws_row : 24;
	return e;
}

bool
output_coloured(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (no == NULL || no[0] == '\0') && term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0 &&
	    isatty(STDOUT_FILENO);
}

void
output_shell_word(const char *string)
{
	putchar('\'');
	for (; *string != '\0'; string++) {
		if (*string == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*string);
	}
	putchar('\'');
}

void
output_split_owner(char *owner, const char **user, const char **host, const char **pid)
{
	char *colon = strrchr(owner, ':'), *at;

	*pid = *host = "";
	*user = owner;
	if (colon != NULL) {
		*colon = '\0';
		*pid = colon + 1;
	}
	at = strrchr(owner, '@');
	if (at != NULL) {
		*at = '\0';
		*host = at + 1;
	}
}

const char *
output_state(enum lock_state state)
{
	switch (state) {
	case LOCK_FREE:
		return "free";
	case LOCK_HELD:
		return "held";
	case LOCK_HANDOVER:
		return "handover";
	case LOCK_OTHER_CLIENT:
		return "foreign";
	case LOCK_CONTENDED:
		return "contended";
	case LOCK_UNKNOWN:
		break;
	}
	return "unknown";
}

const char *
output_ownership(enum ownership ownership, const char *owned)
{
	switch (ownership) {
	case OWNED:
		return owned;
	case OWNED_STILL:
		return "still-held";
	case OWNED_BY_ANOTHER:
		return "held-by-another";
	case OWNED_NO_MORE:
	case OWNED_BY_NOBODY:
		break;
	}
	return "expired";
}
