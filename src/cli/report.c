/* SPDX-License-Identifier: MIT */
#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/view.h"
#include "lock/token.h"

enum {
	FOLDER_SIZE = 4200 /* more than the system allows for a path */
};

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

/*
 * Append to `path`, which is not regular (a pipe, a terminal), or replace it by a temporary file in the same directory.
 */
static bool
write_out(const char *path, bool append, const struct report *r)
{
	char temporary[FOLDER_SIZE], token[TOKEN_SIZE] = "";
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

/*
 * Names of descriptors and devices refer to existing files: the report is appended to them.  /dev/shm is an ordinary
 * directory, like /tmp.
 */
static bool
is_device(const char *path)
{
	return (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0) ||
	    strncmp(path, "/proc/", 6) == 0;
}

/* The folder of a path.  False: its name is too long. */
static bool
folder_of(const char *path, char folder[FOLDER_SIZE])
{
	const char *const slash = strrchr(path, '/');

	return snprintf(folder, FOLDER_SIZE, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
		   slash == NULL ? "." : path) < FOLDER_SIZE;
}

/* Is the path in a directory like /tmp: world-writable, with the sticky bit? */
static bool
is_in_shared_folder(const char *path)
{
	char folder[FOLDER_SIZE];
	struct stat info;

	return folder_of(path, folder) && stat(folder, &info) == 0 && (info.st_mode & S_ISVTX) != 0 &&
	    (info.st_mode & S_IWOTH) != 0;
}

/* There a link is replaced, not followed, and only a pipe of the same user is written to: others may have made them. */
static bool
write_shared(const char *path, const struct report *r)
{
	struct stat file;

	return write_out(path,
	    lstat(path, &file) == 0 && !S_ISREG(file.st_mode) && !S_ISLNK(file.st_mode) && file.st_uid == geteuid(), r);
}

static bool
write_followed(const char *path, const struct report *r)
{
	char *const target = realpath(path, NULL);
	struct stat file;
	bool good = false;
	int error;

	if (target != NULL || errno == ENOENT)
		good = write_out(target != NULL ? target : path,
		    target != NULL && stat(target, &file) == 0 && !S_ISREG(file.st_mode), r);
	error = errno;
	free(target);
	errno = error;
	return good;
}

enum status
report_check(const char *path, struct err *err)
{
	char folder[FOLDER_SIZE], shown[300];
	struct stat file;
	int error = 0;

	if (strcmp(path, "-") == 0)
		return ST_OK;
	if (!folder_of(path, folder))
		error = ENAMETOOLONG;
	else if (stat(path, &file) != 0 && (errno != ENOENT || path[0] == '\0'))
		error = errno;
	else if (access(path, F_OK) == 0 && S_ISDIR(file.st_mode))
		error = EISDIR;
	else if (is_device(path) ? access(path, W_OK) != 0 : access(folder, W_OK | X_OK) != 0)
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
	bool good;

	if (strcmp(path, "-") == 0) {
		report_print(stdout, r);
		return output_flush(err);
	}
	if (is_device(path))
		good = write_out(path, true, r);
	else if (is_in_shared_folder(path))
		good = write_shared(path, r);
	else
		good = write_followed(path, r);
	if (!good)
		(void)err_system(err, errno, text_show(path, shown, sizeof(shown)));
	return good ? ST_OK : ST_SYSTEM;
}
