/* SPDX-License-Identifier: MIT */
#include "redis/debts.h"

#include <string.h>

void
debts_note(struct debts *d, int node, const char *token)
{
	struct debt *debt = &d->debt[node][d->next[node]];

	d->next[node] = (d->next[node] + 1) % DEBTS_MAX;
	memcpy(debt->token, token, strlen(token) + 1);
	debt->tag = 0;
}

bool
debts_send(struct debts *d, struct fleet *f, int node, const struct names *names)
{
	struct request undo;
	struct debt *debt;
	bool any = false;

	for (debt = d->debt[node]; debt < d->debt[node] + DEBTS_MAX; debt++) {
		if (debt->token[0] == '\0' || debt->tag != 0)
			continue;
		request_eval(&undo, SCRIPT_UNDO, names);
		request_add(&undo, debt->token);
		debt->tag = fleet_new_tag(f);
		fleet_send(f, node, debt->tag, &undo);
		any = true;
	}
	return any;
}

bool
debts_delivered(struct debts *d, int node, const struct delivery *delivery)
{
	struct debt *debt;

	for (debt = d->debt[node]; debt < d->debt[node] + DEBTS_MAX; debt++) {
		if (debt->token[0] == '\0' || debt->tag != delivery->tag)
			continue;
		if (delivery->reply != NULL && reply_kind(delivery->reply) == REPLY_INTEGER)
			debt->token[0] = '\0';
		debt->tag = 0;
		return true;
	}
	return false;
}

bool
debts_under_way(const struct debts *d, int node)
{
	int i;

	for (i = 0; i < DEBTS_MAX; i++) {
		if (d->debt[node][i].token[0] != '\0' && d->debt[node][i].tag != 0)
			return true;
	}
	return false;
}
