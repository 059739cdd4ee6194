/* SPDX-License-Identifier: MIT */
#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"

void
report_print(FILE *out, const struct report *r)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "outcome", r->outcome);
	if (r->started) {
		json_open(&j, "child", '{');
		if (WIFSIGNALED(r->status))
			json_number(&j, "signal", WTERMSIG(r->status));
		else
			json_number(&j, "exit", WEXITSTATUS(r->status));
		json_close(&j, '}');
	} else
		json_null(&j, "child");
	json_string(&j, "key", r->key);
	if (r->fence > 0)
		json_number(&j, "fence", r->fence);
	else
		json_null(&j, "fence");
	json_number(&j, "waited_ms", r->waited_ms);
	json_number(&j, "held_ms", r->held_ms);
	json_close(&j, '}');
	putc('\n', out);
}

/* A temporary file in the same folder, so that it can be renamed. */
static FILE *
open_beside(const char *path, char *temporary, size_t size)
{
	const mode_t mask = umask(077);
	int fd = -1;

	(void)umask(mask);
	if (snprintf(temporary, size, "%s.XXXXXX", path) < (int)size)
		fd = mkstemp(temporary);
	else
		errno = ENAMETOOLONG;
	if (fd < 0)
		return NULL;
	(void)fchmod(fd, 0666 & ~mask);
	return fdopen(fd, "w");
}

enum status
report_write(const char *path, const struct report *r, struct err *err)
{
	char temporary[4096], shown[300];
	FILE *out = open_beside(path, temporary, sizeof(temporary));
	bool good = false;
	int error = errno;

	if (out != NULL) {
		report_print(out, r);
		good = !ferror(out);
		good = fclose(out) == 0 && good && rename(temporary, path) == 0;
		error = errno;
		if (!good)
			(void)unlink(temporary);
	}
	if (good)
		return ST_OK;
	return err_set(err, ST_SYSTEM, "report %s: %s", text_show(path, shown, sizeof(shown)), strerror(error));
}
