/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/setup.h"

/* -- JSON ------------------------------------------------------------------- */

static void
json_owner(struct json *j, const char *owner)
{
	char copy[OWNER_MAX + 1];
	const char *user, *host, *pid;

	if (owner[0] == '\0') {
		json_null(j, "owner");
		return;
	}
	(void)snprintf(copy, sizeof(copy), "%s", owner);
	output_split_owner(copy, &user, &host, &pid);
	json_open(j, "owner", '{');
	json_string(j, "user", user);
	json_string(j, "host", host);
	json_number(j, "pid", strtoll(pid, NULL, 10));
	json_close(j, '}');
}

static void
json_number_or_null(struct json *j, const char *name, int64_t value, bool known)
{
	if (known)
		json_number(j, name, value);
	else
		json_null(j, name);
}

static void
json_nodes(struct json *j, const struct lock_view *v)
{
	int i;

	json_open(j, "nodes", '[');
	for (i = 0; i < v->nodes; i++) {
		json_open(j, NULL, '{');
		json_string(j, "node", v->node[i].name);
		json_string(j, "state", output_state(v->node[i].state));
		json_number(j, "ttl_ms", v->node[i].left_ms);
		if (v->node[i].state == LOCK_UNKNOWN)
			json_string(j, "error", v->node[i].err.text);
		else
			json_null(j, "error");
		json_close(j, '}');
	}
	json_close(j, ']');
}

static bool
has_holder(const struct lock_view *v)
{
	return v->state == LOCK_HELD || v->state == LOCK_HANDOVER || v->state == LOCK_FOREIGN;
}

static void
print_json(const char *key, const struct lock_view *v)
{
	const struct holder *h = &v->holder;
	const bool held = has_holder(v);
	struct json j = { .out = stdout };
	char hint[TOKEN_HINT_SIZE];

	(void)snprintf(hint, sizeof(hint), "%.4s", h->token);
	json_open(&j, NULL, '{');
	json_string(&j, "key", key);
	json_string(&j, "state", output_state(v->state));
	json_number(&j, "ttl_ms", held ? h->left_ms : 0);
	json_owner(&j, h->owner);
	if (h->label[0] != '\0')
		json_string(&j, "label", h->label);
	else
		json_null(&j, "label");
	json_number_or_null(&j, "held_ms", h->held_ms, held && !h->foreign);
	json_number_or_null(&j, "fence", h->fence, h->fence > 0);
	json_number(&j, "waiting", h->waiting);
	if (hint[0] != '\0')
		json_string(&j, "token_hint", hint);
	else
		json_null(&j, "token_hint");
	json_nodes(&j, v);
	json_close(&j, '}');
	putchar('\n');
}

/* -- Table ------------------------------------------------------------------ */

enum {
	KEY,
	STATE,
	TTL,
	OWNER,
	LABEL,
	HELD,
	FENCE,
	WAITING,
	NODES,
	COLUMNS
};

static const char *const headings[COLUMNS] = { "KEY", "STATE", "TTL", "OWNER", "LABEL", "HELD", "FENCE", "WAITING",
	"NODES" };

struct row {
	char cell[COLUMNS][512];
};

static void
fill_row(struct row *row, const char *key, const struct lock_view *v)
{
	const struct holder *h = &v->holder;
	int i;

	for (i = 0; i < COLUMNS; i++)
		memcpy(row->cell[i], "-", 2);
	(void)text_show(key, row->cell[KEY], sizeof(row->cell[KEY]));
	(void)snprintf(row->cell[STATE], sizeof(row->cell[STATE]), "%s", output_state(v->state));
	(void)snprintf(row->cell[NODES], sizeof(row->cell[NODES]), "%d/%d", v->agreeing, v->nodes);
	if (!has_holder(v))
		return;
	duration_show(h->left_ms < 0 ? DURATION_FOREVER : h->left_ms, row->cell[TTL], sizeof(row->cell[TTL]));
	if (h->owner[0] != '\0')
		(void)text_show(h->owner, row->cell[OWNER], sizeof(row->cell[OWNER]));
	if (h->label[0] != '\0')
		(void)text_show(h->label, row->cell[LABEL], sizeof(row->cell[LABEL]));
	if (!h->foreign)
		duration_show(h->held_ms, row->cell[HELD], sizeof(row->cell[HELD]));
	if (h->fence > 0)
		(void)snprintf(row->cell[FENCE], sizeof(row->cell[FENCE]), "%" PRId64, h->fence);
	if (h->waiting > 0)
		(void)snprintf(row->cell[WAITING], sizeof(row->cell[WAITING]), "%" PRId64, h->waiting);
}

static void
print_cells(const char *const cells[COLUMNS], const size_t widths[COLUMNS])
{
	size_t pad;
	int i;

	for (i = 0; i < COLUMNS; i++) {
		fputs(cells[i], stdout);
		pad = i + 1 < COLUMNS ? widths[i] - text_columns(cells[i]) + 2 : 0;
		printf("%*s", (int)pad, "");
	}
	putchar('\n');
}

static void
print_table(const struct row *rows, int count)
{
	const char *cells[COLUMNS];
	size_t widths[COLUMNS], width;
	int i, c;

	for (c = 0; c < COLUMNS; c++) {
		widths[c] = strlen(headings[c]);
		for (i = 0; i < count; i++) {
			width = text_columns(rows[i].cell[c]);
			widths[c] = width > widths[c] ? width : widths[c];
		}
	}
	print_cells(headings, widths);
	for (i = 0; i < count; i++) {
		for (c = 0; c < COLUMNS; c++)
			cells[c] = rows[i].cell[c];
		print_cells(cells, widths);
	}
}

/* -- Looking ---------------------------------------------------------------- */

static void
say_nodes(const struct invocation *inv, const struct lock_view *v)
{
	int i;

	for (i = 0; i < v->nodes; i++)
		trace_say(&inv->trace, "%s: %s%s%s", v->node[i].name, output_state(v->node[i].state),
		    v->node[i].state == LOCK_UNKNOWN ? ": " : "", v->node[i].err.text);
}

static enum status
look_at(const struct invocation *inv, struct service *service, const char *operand, struct lock_view *view,
    struct err *err)
{
	char key[KEY_MAX + 1];
	enum status status;

	status = setup_key(inv, operand, key, err);
	if (status == ST_OK)
		status = service->ops->inspect(service, key, view, err);
	if (status == ST_OK)
		say_nodes(inv, view);
	return status;
}

static enum status
show(const struct invocation *inv, struct service *service, struct row *rows, struct err *err)
{
	enum status status = ST_OK;
	struct lock_view view = { .state = LOCK_UNKNOWN };
	int i;

	for (i = 0; i < inv->operands; i++) {
		status = look_at(inv, service, inv->operand[i], &view, err);
		if (status != ST_OK)
			return status;
		if (inv->options.json)
			print_json(inv->operand[i], &view);
		else
			fill_row(&rows[i], inv->operand[i], &view);
	}
	if (!inv->options.json)
		print_table(rows, inv->operands);
	return inv->operands == 1 && view.state == LOCK_FREE ? ST_NO : ST_OK;
}

int
cmd_status(struct invocation *inv, struct err *err)
{
	struct service *service = NULL;
	struct row *rows = calloc((size_t)inv->operands + 1, sizeof(*rows));
	struct err output_err;
	enum status status;

	if (rows == NULL)
		return (int)err_set(err, ST_SYSTEM, "out of memory");
	status = setup_service(inv, &service, err);
	if (status == ST_OK) {
		status = show(inv, service, rows, err);
		if (output_flush(&output_err) != ST_OK && (status == ST_OK || status == ST_NO)) {
			*err = output_err;
			status = ST_SYSTEM;
		}
		service->ops->close(service);
	}
	free(rows);
	return (int)status;
}
