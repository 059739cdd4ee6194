/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/layout.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "lock/lease.h"
#include "lock/service.h"

struct examination {
	struct invocation *inv;
	struct backend *backend;
	struct findings found;
};

/* -- The test lock ---------------------------------------------------------- */

/* Take, renew and give back a lock that nobody else knows of, with the guard that these options give to locks. */
static enum status
try_lock(const struct invocation *inv, struct backend *backend, struct err *err)
{
	char name[TOKEN_SIZE + 16], token[TOKEN_SIZE], key[KEY_MAX + 1];
	char owner[OWNER_MAX + 1];
	struct acquire_args args;
	struct lease lease;
	enum ownership ownership;
	enum status status;
	struct err release_err;
	struct wait limit = { .interrupt_fd = -1 };
	struct renewed renewed;

	if (!token_new(token))
		return err_set(err, ST_SYSTEM, "the system provides no random numbers");
	(void)snprintf(name, sizeof(name), "dlock-doctor-%s", token);
	status = setup_key(inv, name, key, err);
	if (status == ST_OK)
		status = setup_acquire(inv, key, owner, &args, err);
	if (status != ST_OK)
		return status;
	args.label = "dlock doctor";
	args.wait = (struct wait){ 0, -1 };
	args.may_be_shorter = true;
	status = backend->service->acquire(backend, &args, &lease, err);
	if (status != ST_OK)
		return status;
	limit.until_us = lease.valid_until_us;
	status = backend->service->renew(backend, &lease, &limit, &renewed, err);
	if (backend->service->release(backend, &lease, 0, &ownership, &release_err) != ST_OK && status == ST_OK) {
		*err = release_err;
		status = ST_NO_QUORUM;
	}
	return status;
}

/* See struct findings. */
static enum status
try_on(void *context, int node, struct err *err)
{
	const struct examination *e = context;
	struct invocation alone = *e->inv;
	struct backend *backend = NULL;
	enum status status;

	if (node < 0)
		return try_lock(e->inv, e->backend, err);
	if (alone.options.nodes > 0) {
		alone.options.node[0] = alone.options.node[node];
		alone.options.nodes = 1;
	}
	alone.options.quiet = true; /* its warnings have been printed */
	status = setup_service(&alone, &backend, err);
	if (status != ST_OK)
		return status;
	status = try_lock(e->inv, backend, err);
	backend->service->close(backend);
	return status;
}

/* -- Output ----------------------------------------------------------------- */

static const struct {
	const char *word, *colour;
} grades[] = { [GRADE_OK] = { "ok", COLOUR_GOOD },
	[GRADE_UNKNOWN] = { "unknown", COLOUR_DIM },
	[GRADE_WARN] = { "warn", COLOUR_WARN },
	[GRADE_FAIL] = { "fail", COLOUR_BAD } };

enum {
	TEXT_AT = 24 /* the column of the finding */
};

static void
print(const struct findings *r, bool json, bool quiet)
{
	const size_t width = output_extent(STDOUT_FILENO).columns;
	const bool coloured = output_coloured();
	const char *node = "";
	const struct finding *f;
	char shown[sizeof(f->what)];
	struct json j;

	for (f = r->found; f < r->found + r->count; f++) {
		if (json) {
			j = json_begin_line(stdout);
			json_string_or_null(&j, "node", f->node);
			json_string(&j, "check", f->check);
			json_string(&j, "result", grades[f->grade].word);
			json_string(&j, "finding", f->what);
			json_string_or_null(&j, "advice", f->advice);
			json_end_line(&j);
		}
		if (json || (quiet && f->grade <= GRADE_UNKNOWN))
			continue;
		if (f->node != node)
			printf("%s\n", f->node != NULL ? f->node : r->nodes > 1 ? "all nodes" : "the service");
		node = f->node;
		printf("  %s%-7s%s  %-11s  ", coloured ? grades[f->grade].colour : "", grades[f->grade].word,
		    coloured ? COLOUR_END : "", f->check);
		layout_wrap(text_show(f->what, shown, sizeof(shown)), TEXT_AT, width);
		if (f->advice[0] == '\0')
			continue;
		printf("%*s", TEXT_AT, "");
		(void)snprintf(shown, sizeof(shown), "-> %s", f->advice);
		layout_wrap(shown, TEXT_AT, width);
	}
}

/* -- The command ------------------------------------------------------------ */

enum status
cmd_doctor(struct invocation *inv, struct err *err)
{
	const struct options *o = &inv->options;
	struct examination *const e = calloc(1, sizeof(*e));
	enum status status;

	if (e == NULL)
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	e->inv = inv;
	e->found = (struct findings){ .ttl_ms = o->ttl_ms,
		.node_timeout_ms = setup_node_timeout_ms(o),
		.restart_guard_ms = setup_guard_ms(o),
		.replicas = o->replicas,
		.configured = o->nodes > 0,
		.insecure = o->insecure,
		.try_lock = try_on,
		.context = e };
	status = setup_service(inv, &e->backend, err);
	if (status == ST_OK) {
		status = e->backend->service->doctor(e->backend, &e->found, err);
		print(&e->found, o->json, o->quiet);
		e->backend->service->close(e->backend);
		status = output_end_page(status, err);
	}
	free(e);
	return status;
}
