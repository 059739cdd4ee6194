/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "cli/view.h"

struct display {
	const struct invocation *inv;
	struct service *service;
	struct view_table table;
	char **found; /* keys of a pattern, full names */
	size_t founds, found_room;
	bool one_key; /* that was named: its state is the exit status */
	enum lock_state last;
	enum status worst; /* of the keys that could not be looked at */
	struct err worst_err;
};

static bool
is_pattern(const char *operand)
{
	return strpbrk(operand, "*?[") != NULL;
}

static void
say_nodes(const struct invocation *inv, const struct lock_view *v)
{
	int i;

	for (i = 0; i < v->nodes; i++)
		trace_say(&inv->trace, "%s: %s%s%s", v->node[i].name, output_state(v->node[i].state),
		    v->node[i].state == LOCK_UNKNOWN ? ": " : "", v->node[i].err.text);
}

/* Show one lock; `key` is its name without the prefix. */
static enum status
show_key(struct display *d, const char *key, const char *full_key, bool even_if_free, struct err *err)
{
	struct lock_view view;
	enum status status;

	status = d->service->ops->inspect(d->service, full_key, &view, err);
	if (status != ST_OK && (status == ST_USAGE || view.answered == 0 || d->one_key))
		return status;
	if (status != ST_OK) { /* this one is spoilt; the others may be whole */
		d->worst = status;
		d->worst_err = *err;
	}
	say_nodes(d->inv, &view);
	d->last = view.state;
	if (view.state == LOCK_FREE && !even_if_free)
		return ST_OK;
	if (!d->inv->options.json)
		return view_add_row(&d->table, key, &view, err);
	view_print_json(key, &view);
	return ST_OK;
}

/* -- Patterns --------------------------------------------------------------- */

static void
note_found(void *context, const char *key)
{
	struct display *d = context;
	const size_t room = d->found_room == 0 ? 64 : d->found_room * 2;
	char **grown;

	if (strncmp(key, d->inv->options.prefix, strlen(d->inv->options.prefix)) != 0)
		return;
	if (d->founds == d->found_room) {
		grown = realloc(d->found, room * sizeof(*grown));
		if (grown == NULL)
			return;
		d->found = grown;
		d->found_room = room;
	}
	d->found[d->founds] = strdup(key);
	if (d->found[d->founds] != NULL)
		d->founds++;
}

/* The prefix as a pattern that means just itself, and the user's pattern behind it. */
static void
write_pattern(const struct invocation *inv, const char *operand, char *pattern, size_t size)
{
	struct text text = text_in(pattern, size);
	const char *at;

	for (at = inv->options.prefix; *at != '\0'; at++) {
		if (strchr("*?[]\\^", *at) != NULL)
			text_add(&text, "\\", 1);
		text_add(&text, at, 1);
	}
	text_add(&text, operand, strlen(operand));
}

/* Every lock that matches; NULL: every lock that dlock keeps. */
static enum status
show_matching(struct display *d, const char *operand, struct err *err)
{
	char pattern[3 * KEY_MAX];
	enum status status;
	size_t i;

	if (operand != NULL)
		write_pattern(d->inv, operand, pattern, sizeof(pattern));
	status = d->service->ops->list(d->service, operand != NULL ? pattern : NULL, note_found, d, err);
	for (i = 0; i < d->founds; i++) {
		if (status == ST_OK &&
		    (operand == NULL || strcmp(operand, d->found[i] + strlen(d->inv->options.prefix)) != 0))
			status = show_key(d, d->found[i] + strlen(d->inv->options.prefix), d->found[i], false, err);
		free(d->found[i]);
	}
	d->founds = 0;
	return status;
}

/* A KEY, or a PATTERN, which may be the name of a lock itself: that is looked for first. */
static enum status
show_operand(struct display *d, const char *operand, struct err *err)
{
	const bool pattern = is_pattern(operand);
	char key[KEY_MAX + 1];
	enum status status;

	status = setup_key(d->inv, operand, key, err);
	if (status == ST_OK)
		status = show_key(d, operand, key, !pattern, err);
	if (status == ST_OK && pattern)
		status = show_matching(d, operand, err);
	return status;
}

static enum status
show_all(struct display *d, struct err *err)
{
	const struct invocation *inv = d->inv;
	enum status status = inv->operands == 0 ? show_matching(d, NULL, err) : ST_OK;
	int i;

	for (i = 0; i < inv->operands && status == ST_OK; i++)
		status = show_operand(d, inv->operand[i], err);
	if (status != ST_OK)
		return status;
	if (!inv->options.json)
		view_print_table(&d->table);
	if (d->worst != ST_OK) {
		*err = d->worst_err;
		return d->worst;
	}
	return d->one_key && d->last == LOCK_FREE ? ST_NO : ST_OK;
}

int
cmd_status(struct invocation *inv, struct err *err)
{
	struct display display = { .inv = inv, .one_key = inv->operands == 1 && !is_pattern(inv->operand[0]) };
	struct err output_err;
	enum status status;

	status = setup_service(inv, &display.service, err);
	if (status != ST_OK)
		return (int)status;
	status = show_all(&display, err);
	if (output_flush(&output_err) != ST_OK && (status == ST_OK || status == ST_NO)) {
		*err = output_err;
		status = ST_SYSTEM;
	}
	display.service->ops->close(display.service);
	free(display.found);
	view_free_table(&display.table);
	return (int)status;
}
