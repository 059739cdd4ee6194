/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/option.h"
#include "cli/services.h"

/* May a comma at `end` separate two hosts of this URL? */
static bool
has_hosts(const char *url, const char *end)
{
	const char *scheme = strstr(url, "://");

	return scheme != NULL && scheme < url + strcspn(url, " ,\t\n") &&
	    (memchr(url, '+', (size_t)(scheme - url)) != NULL || !service_of(url)->several) &&
	    memchr(scheme + 3, '/', (size_t)(end - scheme - 3)) == NULL;
}

/* The @ after the login of the first URL of a list, or the list if there is none.  A password may contain commas. */
static char *
skip_login(char *list)
{
	char *start = strstr(list, "://"), *end, *at;

	if (start == NULL || start > list + strcspn(list, " ,\t\n"))
		return list;
	start += 3;
	end = start + strcspn(start, "/?# \t\n");
	if (end > start && strncmp(end - 1, "://", 3) == 0) {
		while (end > start && *end != ',') /* the scheme of another URL */
			end--;
	}
	for (at = end; at > start; at--) {
		if (at[-1] == '@')
			return at - 1;
	}
	return list;
}

/*
 * Cut the next node off a list.  It ends at a blank or a comma.  A comma after a host of a service separates hosts, and
 * ends the node only if it comes after a path or if a blank, a slash, another comma or another URL follows.
 */
static char *
next_node(char **rest)
{
	char *node = *rest + strspn(*rest, " ,\t\n"), *end, *next;
	const char *scheme;

	*rest = node;
	if (*node == '\0')
		return NULL;
	end = skip_login(node);
	for (;;) {
		end += strcspn(end, " ,\t\n");
		next = end + 1;
		if (*end != ',' || !has_hosts(node, end) || strchr(" ,\t\n/", *next) != NULL)
			break;
		scheme = strstr(next, "://");
		if (scheme != NULL && scheme < next + strcspn(next, " ,\t\n"))
			break;
		end = next;
	}
	*rest = *end == '\0' ? end : next;
	*end = '\0';
	return node;
}

static enum status
nodes_from_environment(struct options *o, const struct option_spec *spec, char *buffer, size_t size, struct err *err)
{
	const char *const value = getenv(spec->environment);
	enum status status = ST_OK;
	char *rest = buffer, *node;

	if (strlen(value) >= size)
		return err_set(err, ST_USAGE, "%s: too long", spec->environment);
	memcpy(buffer, value, strlen(value) + 1);
	o->nodes = 0;
	while (status == ST_OK && (node = next_node(&rest)) != NULL)
		status = option_set(o, spec, node, spec->environment, err);
	if (status == ST_OK && o->nodes == 0)
		return err_set(err, ST_USAGE, "%s: it contains no node", spec->environment);
	return status;
}

enum status
options_from_environment(struct options *o, const bool *given, char *buffer, size_t size, struct err *err)
{
	enum status status = ST_OK;
	char shown[200];
	const char *value;
	size_t i;

	for (i = 0; i < option_count && status == ST_OK; i++) {
		const struct option_spec *spec = &option_specs[i];

		value = spec->environment != NULL ? getenv(spec->environment) : NULL;
		if (value == NULL || value[0] == '\0' || given[i])
			continue;
		if (spec->kind == OPTION_FLAG && strcmp(value, "0") == 0)
			*(bool *)((char *)o + spec->offset) = false; /* overrides the configuration file */
		else if (spec->kind == OPTION_FLAG && strcmp(value, "1") != 0)
			status = err_set(err, ST_USAGE, "%s: invalid flag '%s'; use 1 or 0", spec->environment,
			    text_show(value, shown, sizeof(shown)));
		else if (spec->kind == OPTION_NODE)
			status = nodes_from_environment(o, spec, buffer, size, err);
		else
			status = option_set(o, spec, value, spec->environment, err);
	}
	return status;
}
