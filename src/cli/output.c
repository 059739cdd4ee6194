/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum status
output_flush(struct err *err)
{
	if (ferror(stdout))
		(void)putchar('\n'); /* an earlier write failed: its error is unknown by now, the next write has one */
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return ST_OK;
	return err_system(err, errno != 0 ? errno : EIO, "cannot write to standard output");
}

enum status
output_end(enum status status, struct err *err)
{
	struct err output_err;

	if (output_flush(&output_err) == ST_OK || (status != ST_OK && status != ST_NO))
		return status;
	*err = output_err;
	return ST_SYSTEM;
}

enum status
output_end_page(enum status status, struct err *err)
{
	struct pollfd fd = { .fd = STDOUT_FILENO, .events = POLLOUT };
	const struct err before = *err;
	const enum status ended = output_end(status, err);

	/* Has the reader of standard output, a pipe, gone? */
	if (ended == status || poll(&fd, 1, 0) != 1 || (fd.revents & POLLERR) == 0)
		return ended;
	*err = before;
	return status;
}

struct extent
output_extent(int fd)
{
	struct winsize size = { .ws_col = 0 };
	struct extent e = { 0, 0 };

	if (!isatty(fd))
		return e;
	(void)ioctl(fd, TIOCGWINSZ, &size);
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
