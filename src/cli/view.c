/* SPDX-License-Identifier: MIT */
#include "cli/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/output.h"
#include "lock/holder.h"
#include "lock/merge.h"

/* -- JSON ------------------------------------------------------------------- */

void
view_json_owner(struct json *j, const char *name, const char *owner)
{
	char copy[OWNER_MAX + 1];
	const char *user, *host, *pid;

	if (owner[0] == '\0') {
		json_null(j, name);
		return;
	}
	(void)snprintf(copy, sizeof(copy), "%s", owner);
	output_split_owner(copy, &user, &host, &pid);
	json_open(j, name, '{');
	json_string(j, "user", user);
	json_string(j, "host", host);
	json_number(j, "pid", strtoll(pid, NULL, 10));
	if (strcmp(name, "owner") == 0)
		json_string(j, "command",
		    owner[holder_owner_length(owner)] == '\0' ? "run" : owner + holder_owner_length(owner) + 1);
	json_close(j, '}');
}

void
view_json_child(struct json *j, const struct command_end *end)
{
	if (!end->is) {
		json_null(j, "child");
		return;
	}
	json_open(j, "child", '{');
	json_number(j, end->status < 0 ? "signal" : "exit", end->status < 0 ? -end->status : end->status);
	json_close(j, '}');
}

/* Of a lock whose command has ended: how long ago, and which option keeps it. */
static void
json_kept(struct json *j, const struct holder *h, enum lock_state state)
{
	json_number_or_null(j, "ended_ms", h->ended_ms, state == LOCK_KEPT);
	json_string_or_null(j, "kept_by", state == LOCK_KEPT ? h->kept_by : NULL);
}

static void
json_nodes(struct json *j, const struct lock_status *v)
{
	int i;

	json_open(j, "nodes", '[');
	for (i = 0; i < v->nodes; i++) {
		json_open(j, NULL, '{');
		json_string(j, "node", v->node[i].name);
		json_string(j, "state", output_state(v->node[i].state));
		json_number(j, "ttl_ms", v->node[i].left_ms);
		if (v->node[i].state == LOCK_UNKNOWN)
			json_string(j, "error", v->node[i].reason.text);
		else
			json_null(j, "error");
		json_close(j, '}');
	}
	json_close(j, ']');
}

bool
view_is_held(const struct lock_status *v)
{
	return v->state == LOCK_HELD || v->state == LOCK_HANDOVER || v->state == LOCK_KEPT ||
	    v->state == LOCK_OTHER_CLIENT;
}

const char *
view_client(const struct holder *h, char client[CLIENT_SIZE])
{
	const char *known = holder_other_client(h), *thread = strrchr(h->token, ':');

	if (!h->other_client)
		(void)snprintf(client, CLIENT_SIZE, "dlock");
	else if (known != NULL && h->other_type && thread != NULL)
		(void)snprintf(client, CLIENT_SIZE, "%s, thread %.20s", known, thread + 1);
	else if (known != NULL)
		(void)snprintf(client, CLIENT_SIZE, "%s", known);
	else if (h->other_type)
		(void)snprintf(client, CLIENT_SIZE, "a %s", h->type);
	else
		return NULL;
	return client;
}

void
view_json_holder(struct json *j, const struct holder *h)
{
	char client[CLIENT_SIZE];

	if (h == NULL || h->token[0] == '\0') {
		json_null(j, "holder");
		return;
	}
	json_open(j, "holder", '{');
	json_string(j, "state", output_state(merge_state(true, h)));
	json_number(j, "ttl_ms", h->left_ms);
	view_json_owner(j, "owner", h->owner);
	json_string_or_null(j, "client", view_client(h, client));
	json_string_or_null(j, "label", h->label);
	json_number_or_null(j, "held_ms", h->held_ms, !h->other_client);
	json_kept(j, h, merge_state(true, h));
	json_number_or_null(j, "fence", h->fence, h->fence > 0);
	json_close(j, '}');
}

void
view_print_json(const char *key, const struct lock_status *v)
{
	const struct holder *h = &v->holder;
	const bool held = view_is_held(v);
	struct json j = json_begin_line(stdout);
	char hint[TOKEN_HINT_SIZE], client[CLIENT_SIZE];

	(void)snprintf(hint, sizeof(hint), "%.4s", h->token);
	json_string(&j, "key", key);
	json_string(&j, "state", output_state(v->state));
	json_number(&j, "ttl_ms", held ? h->left_ms : 0);
	view_json_owner(&j, "owner", h->owner);
	json_string_or_null(&j, "client", held ? view_client(h, client) : NULL);
	json_string_or_null(&j, "label", h->label);
	json_number_or_null(&j, "held_ms", h->held_ms, held && !h->other_client);
	json_kept(&j, h, v->state);
	json_number_or_null(&j, "fence", h->fence, h->fence > 0);
	json_number(&j, "waiting", h->waiting);
	json_number(&j, "holds", held && !h->other_client ? h->holds : 0);
	json_string_or_null(&j, "token_hint", hint);
	json_nodes(&j, v);
	json_end_line(&j);
}
