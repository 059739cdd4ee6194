/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/option.h"

static enum status
nodes_from_environment(struct options *o, const struct option_spec *spec, char *buffer, size_t size, struct err *err)
{
	const char *const value = getenv(spec->environment);
	enum status status = ST_OK;
	char *rest = buffer, *node;
	int count;

	if (strlen(value) >= size)
		return err_set(err, ST_USAGE, "%s: too long", spec->environment);
	memcpy(buffer, value, strlen(value) + 1);
	for (count = 0; status == ST_OK && (node = strtok_r(rest, " \t\n", &rest)) != NULL; count++)
		status = option_set(o, spec, node, spec->environment, err);
	if (count == 0) /* perhaps of another variable that is missing; the default would be a lock on this host only */
		return err_set(err, ST_USAGE, "%s is set, but names no node; name one, or unset it", spec->environment);
	return status;
}

enum status
options_from_environment(struct options *o, char *buffer, size_t size, struct err *err)
{
	enum status status = ST_OK;
	char shown[200];
	const char *value;
	size_t i;

	o->reading = (struct source){ .origin = ORIGIN_ENVIRONMENT };
	for (i = 0; i < option_count && status == ST_OK; i++) {
		const struct option_spec *spec = &option_specs[i];

		value = spec->environment != NULL ? getenv(spec->environment) : NULL;
		if (value == NULL || o->source[i].origin > ORIGIN_ENVIRONMENT)
			continue;
		if (spec->kind == OPTION_NODE)
			status = nodes_from_environment(o, spec, buffer, size, err);
		else if (value[0] == '\0')
			continue;
		else if (spec->kind == OPTION_FLAG && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
			status = err_set(err, ST_USAGE, "%s: invalid flag '%s'; use 1 or 0", spec->environment,
			    text_show(value, shown, sizeof(shown)));
		else
			status = option_set(o, spec, value, spec->environment, err);
	}
	return status;
}
