/* SPDX-License-Identifier: MIT */
/* The command config: each setting, and where it comes from. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "lock/service.h"
#include "net/authority.h"

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
print_option(const struct invocation *inv, const struct option_spec *spec)
{
	static const char *const origins[] = { [ORIGIN_DEFAULT] = "default", [ORIGIN_LINE] = "option" };
	const struct options *const o = &inv->options;
	const struct source *const s = &o->source[spec - option_specs];
	const char *const fallback = strrchr(spec->help, '(');
	const size_t length = fallback != NULL ? strlen(fallback) : 0;
	const bool nodes = spec->kind == OPTION_NODE && o->nodes > 0;
	char value[VALUE_MAX], origin[300];
	struct text text, from;
	int i = 0;

	do {
		text = text_in(value, sizeof(value));
		from = text_in(origin, sizeof(origin));
		if (nodes)
			url_add_hidden(o->node[i], &text);
		else if (spec->argument == NULL)
			text_addf(&text, *((const bool *)((const char *)o + spec->offset)) ? "yes" : "no");
		else if (s->origin != ORIGIN_DEFAULT)
			text_addf(&text, "%s", s->value != NULL ? s->value : "yes");
		else if (!option_needs_value(spec))
			text_addf(&text, "no");
		else if (spec->kind == OPTION_NODE)
			text_addf(&text, "%s", services[0]->default_url);
		else if (length > 2 && fallback[length - 1] == ')')
			text_add(&text, fallback + 1, length - 2);
		if (s->origin == ORIGIN_FILE)
			text_addf(&from, "%s:%d", s->file, nodes ? o->node_line[i] : s->line);
		else if (s->origin == ORIGIN_ENVIRONMENT)
			text_addf(&from, "environment %s", spec->environment);
		else
			text_addf(&from, "%s", origins[s->origin]);
		print_setting(inv, spec->name, value, origin);
	} while (nodes && ++i < o->nodes);
}

enum status
cmd_config(struct invocation *inv, struct err *err)
{
	const char *const variable = setup_password_variable();
	char origin[64] = "default";
	size_t i;

	if (variable != NULL)
		(void)snprintf(origin, sizeof(origin), "environment %s", variable);
	for (i = 0; i < option_count; i++) {
		const struct option_spec *const spec = &option_specs[i];

		if ((spec->commands & CMD_LINE_ONLY) == 0 ? spec->kind != OPTION_NO_WAIT : spec->environment != NULL)
			print_option(inv, spec);
		if (spec->offset == offsetof(struct options, password_file))
			print_setting(inv, "password", variable != NULL ? "***" : "", origin);
	}
	return output_end_page(ST_OK, err);
}
