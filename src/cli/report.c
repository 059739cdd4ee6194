/* SPDX-License-Identifier: MIT */
#include "cli/report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/view.h"
#include "lock/token.h"

void
report_print(FILE *out, const struct report *r)
{
	struct json j = json_begin_line(out);

	json_string(&j, "outcome", r->outcome);
	view_json_child(&j, &r->child);
	json_string(&j, "key", r->key);
	json_number_or_null(&j, "fence", r->fence, r->fence > 0);
	view_json_holder(&j, r->holder);
	json_number(&j, "waited_ms", r->waited_ms);
	json_number(&j, "held_ms", r->held_ms);
	json_end_line(&j);
}

/* Is this the name of a descriptor, which may be open to a regular file? */
static bool
is_descriptor(const char *path)
{
	return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/dev/std", 8) == 0 ||
	    strncmp(path, "/proc/", 6) == 0;
}

/*
 * A regular file, or a link to one, is replaced by a temporary file of the same folder: readers see the old report or
 * the new one.  Anything else that is there (a pipe, a terminal, the name of a descriptor) is appended to.
 */
static bool
write_out(const char *path, const struct report *r)
{
	char temporary[PATH_MAX], token[TOKEN_SIZE] = "";
	struct stat file;
	const bool append = stat(path, &file) == 0 && (is_descriptor(path) || !S_ISREG(file.st_mode));
	FILE *out;
	bool good;
	int error;

	errno = ENAMETOOLONG;
	if (!append &&
	    (!token_new(token) ||
		snprintf(temporary, sizeof(temporary), "%s.%.6s", path, token) >= (int)sizeof(temporary)))
		return false;
	out = append ? fopen(path, "ae") : fopen(temporary, "wxe");
	if (out == NULL)
		return false;
	report_print(out, r);
	good = !ferror(out);
	good = fclose(out) == 0 && good && (append || rename(temporary, path) == 0);
	error = errno;
	if (!good && !append)
		(void)unlink(temporary);
	errno = error;
	return good;
}

enum status
report_check(const char *path, struct err *err)
{
	const char *const slash = strrchr(path, '/');
	char folder[PATH_MAX], shown[300];
	struct stat file;
	int error = 0;

	if (strcmp(path, "-") == 0)
		return ST_OK;
	(void)snprintf(folder, sizeof(folder), "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
	    slash == NULL ? "." : path);
	if (stat(path, &file) != 0)
		error = errno != ENOENT || path[0] == '\0' || access(folder, W_OK | X_OK) != 0 ? errno : 0;
	else if (S_ISDIR(file.st_mode))
		error = EISDIR;
	else if (access(S_ISREG(file.st_mode) && !is_descriptor(path) ? folder : path, W_OK) != 0)
		error = errno;
	if (error == 0)
		return ST_OK;
	return err_set(err, ST_SYSTEM, "the report cannot be written to %s: %s",
	    path[0] == '\0' ? "''" : text_show(path, shown, sizeof(shown)), strerror(error));
}

enum status
report_write(const char *path, const struct report *r, struct err *err)
{
	char shown[300];

	if (strcmp(path, "-") == 0) {
		report_print(stdout, r);
		return output_flush(err);
	}
	return write_out(path, r) ? ST_OK : err_system(err, errno, text_show(path, shown, sizeof(shown)));
}
