/* SPDX-License-Identifier: MIT */
#include "cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "net/authority.h"

#define FILE_MAX (1024 * 1024)

/* -- Lines ------------------------------------------------------------------ */

/* Unquote a value in place, decoding \" and \\.  NULL if the quote is not closed, or text follows it. */
static char *
unquote(char *value)
{
	char *from = value + 1, *to = value;

	for (; *from != '\0' && *from != '"'; from++) {
		if (*from == '\\' && (from[1] == '"' || from[1] == '\\'))
			from++;
		*to++ = *from;
	}
	if (*from != '"' || from[1] != '\0')
		return NULL;
	*to = '\0';
	return value;
}

/* Split "name value".  *value is NULL if there is none.  False for a malformed quoted value. */
static bool
split_line(char *line, char **name, char **value)
{
	char *end = line + strlen(line);

	while (end > line && strchr(" \t\r", end[-1]) != NULL)
		*--end = '\0';
	*name = line + strspn(line, " \t");
	*value = *name + strcspn(*name, " \t=:");
	if (**value == '\0') {
		*value = NULL;
		return true;
	}
	*value += strspn(*value, " \t");
	if (**value == '=' || **value == ':')
		*value += 1 + strspn(*value + 1, " \t");
	(*name)[strcspn(*name, " \t=:")] = '\0';
	if (**value == '"')
		*value = unquote(*value);
	return *value != NULL;
}

static enum status
unknown_option(const char *name, const char *where, struct err *err)
{
	char shown[100];

	return err_set(err, ST_CONFIG, "%s: unknown option '%s'", where, text_show(name, shown, sizeof(shown)));
}

static enum status
set_line(struct options *o, char *line, const char *where, struct err *err)
{
	const struct option_spec *spec;
	char place[400], *name, *value;

	line += strspn(line, " \t\r");
	if (*line == '\0' || *line == '#')
		return ST_OK;
	if (!split_line(line, &name, &value))
		return err_set(err, ST_CONFIG, "%s: malformed quoted value", where);
	spec = option_find(name);
	if (spec == NULL)
		return unknown_option(name, where, err);
	if ((spec->commands & CMD_LINE_ONLY) != 0)
		return err_set(err, ST_CONFIG, "%s: %s is allowed on the command line only", where, name);
	if (spec->argument == NULL && value != NULL)
		return err_set(err, ST_CONFIG, "%s: %s takes no value", where, name);
	if (option_needs_value(spec) && value == NULL)
		return err_set(err, ST_CONFIG, "%s: %s needs a value", where, name);
	if (spec->kind == OPTION_NODE && url_has_password(value))
		o->secret = true;
	(void)snprintf(place, sizeof(place), "%s: %s", where, name);
	return option_set(o, spec, value, place, err) == ST_OK ? ST_OK : ST_CONFIG;
}

enum status
config_parse(char *text, const char *name, struct options *o, struct err *err)
{
	enum status status = ST_OK;
	char where[300], *line = text, *end;
	int number;

	for (number = 1; line != NULL && status == ST_OK; number++) {
		end = strchr(line, '\n');
		if (end != NULL)
			*end++ = '\0';
		(void)snprintf(where, sizeof(where), "%.250s:%d", name, number);
		o->reading = (struct source){ ORIGIN_FILE, name, number, NULL };
		status = set_line(o, line, where, err);
		line = end;
	}
	return status;
}

/* -- Files ------------------------------------------------------------------ */

/* Read an open file completely, terminated.  NULL with the reason. */
static char *
read_all(int fd, const char **why)
{
	char *const text = malloc(FILE_MAX + 2);
	size_t length = 0;
	ssize_t n = 1;

	while (text != NULL && n != 0 && length <= FILE_MAX) {
		n = read(fd, text + length, FILE_MAX + 1 - length);
		if (n < 0 && errno != EINTR)
			break;
		length += n > 0 ? (size_t)n : 0;
	}
	if (text == NULL || n < 0) {
		*why = strerror(errno);
		free(text);
		return NULL;
	}
	text[length] = '\0';
	*why = length > FILE_MAX ? strerror(EFBIG) : "it contains a NUL byte";
	if (length <= FILE_MAX && strlen(text) == length)
		return text;
	free(text);
	return NULL;
}

/* A group that is ours alone, as many systems give to each user, is not others. */
static void
warn_of_access(const struct options *o, int fd, const char *name, struct err *warning)
{
	struct stat info;

	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
		return;
	if (o->secret && (info.st_mode & S_IROTH) != 0)
		(void)err_set(warning, ST_CONFIG, "%s contains a password and is world-readable; use chmod o-r", name);
	if ((info.st_mode & S_IWOTH) != 0 ||
	    ((info.st_mode & S_IWGRP) != 0 && info.st_gid != 0 && info.st_gid != getegid()))
		(void)err_set(warning, ST_CONFIG, "%s can be written by others; use chmod go-w", name);
}

/* ST_NO: the file does not exist and was not named by the user, which is not an error. */
static enum status
read_file(const char *path, struct options *o, struct config_file *file, struct err *warning, struct err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *why;
	enum status status;

	o->secret = false;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return ST_NO;
	(void)text_show(path, file->name, sizeof(file->name));
	if (fd < 0)
		return err_set(err, ST_CONFIG, "configuration file %s: %s", file->name, strerror(errno));
	file->text = read_all(fd, &why);
	if (file->text == NULL)
		status = err_set(err, ST_CONFIG, "configuration file %s: %s", file->name, why);
	else
		status = config_parse(file->text, file->name, o, err);
	if (file->text != NULL)
		warn_of_access(o, fd, file->name, warning);
	(void)close(fd);
	return status;
}

static bool
home_config(char *path, size_t size)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int length;

	if (base != NULL && base[0] == '/')
		length = snprintf(path, size, "%s/dlock/config", base);
	else if (home != NULL && home[0] == '/')
		length = snprintf(path, size, "%s/.config/dlock/config", home);
	else
		return false;
	return length > 0 && (size_t)length < size;
}

enum status
config_read(const char *path, struct options *o, struct config_file file[2], struct err *warning, struct err *err)
{
	enum status status;
	char home[1024], shown[256];
	int error;

	if (path != NULL) {
		status = read_file(path, o, &file[0], warning, err);
		if (status != ST_NO)
			return status;
		error = errno;
		return err_set(err, ST_CONFIG, "configuration file %s: %s", text_show(path, shown, sizeof(shown)),
		    strerror(error));
	}
	status = read_file("/etc/dlock/config", o, &file[1], warning, err);
	if ((status == ST_OK || status == ST_NO) && home_config(home, sizeof(home)))
		status = read_file(home, o, &file[0], warning, err);
	return status == ST_NO ? ST_OK : status;
}

/* -- The command config ----------------------------------------------------- */

enum {
	VALUE_MAX = 2048
};

static void
print_setting(const struct invocation *inv, const char *name, const char *value, const char *origin)
{
	char shown[VALUE_MAX];
	struct json j;

	if (!inv->options.json) {
		printf("%-20s %-30s %s\n", name, value[0] != '\0' ? text_show(value, shown, sizeof(shown)) : "-",
		    origin);
		return;
	}
	j = json_begin_line(stdout);
	json_string(&j, "name", name);
	json_string(&j, "value", value);
	json_string(&j, "origin", origin);
	json_end_line(&j);
}

/* The default is what the help has in parentheses at its end. */
static void
add_value(const struct options *o, const struct option_spec *spec, struct text *text)
{
	const struct source *const s = &o->source[spec - option_specs];
	const char *const fallback = strrchr(spec->help, '(');
	const size_t length = fallback != NULL ? strlen(fallback) : 0;

	if (spec->argument == NULL)
		text_addf(text, *((const bool *)((const char *)o + spec->offset)) ? "yes" : "no");
	else if (s->origin != ORIGIN_DEFAULT)
		text_addf(text, "%s", s->value != NULL ? s->value : "yes");
	else if (!option_needs_value(spec))
		text_addf(text, "no");
	else if (spec->kind == OPTION_NODE)
		text_addf(text, "%s", services[0]->default_url);
	else if (length > 2 && fallback[length - 1] == ')' && strcmp(fallback, "(DLOCK_PASSWORD)") != 0)
		text_add(text, fallback + 1, length - 2);
}

static void
print_option(const struct invocation *inv, const struct option_spec *spec)
{
	const struct options *const o = &inv->options;
	const struct source *const s = &o->source[spec - option_specs];
	const bool nodes = spec->kind == OPTION_NODE && o->nodes > 0;
	char value[VALUE_MAX], origin[300];
	struct text text, from;
	int i = 0;

	do {
		text = text_in(value, sizeof(value));
		from = text_in(origin, sizeof(origin));
		if (nodes)
			url_add_hidden(o->node[i], &text);
		else
			add_value(o, spec, &text);
		if (s->origin == ORIGIN_FILE)
			text_addf(&from, "%s:%d", s->file, nodes ? o->node_line[i] : s->line);
		else if (s->origin == ORIGIN_ENVIRONMENT)
			text_addf(&from, "environment %s", spec->environment);
		else
			text_addf(&from, "%s", s->origin == ORIGIN_LINE ? "option" : "default");
		print_setting(inv, spec->name, value, origin);
	} while (nodes && ++i < o->nodes);
}

/* The password of the environment. */
static void
print_password(const struct invocation *inv)
{
	const char *const variable = setup_password_variable();
	char origin[64] = "default";

	if (variable != NULL)
		(void)snprintf(origin, sizeof(origin), "environment %s", variable);
	print_setting(inv, "password", variable != NULL ? "***" : "", origin);
}

enum status
cmd_config(struct invocation *inv, struct err *err)
{
	size_t i;

	for (i = 0; i < option_count; i++) {
		const struct option_spec *const spec = &option_specs[i];

		if ((spec->commands & CMD_LINE_ONLY) == 0 ? spec->kind != OPTION_NO_WAIT : spec->environment != NULL)
			print_option(inv, spec);
		if (spec->offset == offsetof(struct options, password_file))
			print_password(inv);
	}
	return output_end_page(ST_OK, err);
}
