/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/layout.h"
#include "cli/output.h"
#include "cli/setup.h"
#include "lock/lease.h"
#include "lock/service.h"

/* The findings of one run of doctor. */
struct probing {
	struct node_facts facts[NODES_MAX];
	int nodes;
	struct finding finding[FINDINGS_MAX];
	size_t findings;
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

/* Try a lock on this node alone: a majority would hide its failure. */
static void
try_node(const struct invocation *inv, int node, struct node_facts *f)
{
	struct invocation alone = *inv;
	struct backend *backend = NULL;

	if (inv->options.nodes > 0)
		alone.options.node[0] = inv->options.node[node];
	alone.options.nodes = inv->options.nodes > 0 ? 1 : 0;
	alone.options.quiet = true; /* its warnings have been printed */
	f->trial = setup_service(&alone, &backend, &f->trial_err);
	if (f->trial != ST_OK)
		return;
	f->trial = try_lock(inv, backend, &f->trial_err);
	backend->service->close(backend);
}

/* An ensemble keeps a lock as a whole. */
static void
try_nodes(const struct invocation *inv, struct backend *backend, struct probing *e)
{
	struct err err = { "" };
	enum status status = ST_OK;
	bool tried = false;
	int i;

	for (i = 0; i < e->nodes; i++) {
		if (!e->facts[i].up)
			continue;
		if (service_of(inv->options.node[0])->several) {
			try_node(inv, i, &e->facts[i]);
			continue;
		}
		if (!tried)
			status = try_lock(inv, backend, &err);
		tried = true;
		e->facts[i].trial = status;
		e->facts[i].trial_err = err;
	}
}

/* -- Output ----------------------------------------------------------------- */

static const char *const grades[] = { [GRADE_OK] = "ok", [GRADE_WARN] = "warn", [GRADE_FAIL] = "fail" };
static const char
    *const colours[] = { [GRADE_OK] = COLOUR_GOOD, [GRADE_WARN] = COLOUR_WARN, [GRADE_FAIL] = COLOUR_BAD };

static void
print_json(const struct probing *e)
{
	size_t i;

	for (i = 0; i < e->findings; i++) {
		const struct finding *f = &e->finding[i];
		struct json j = json_begin_line(stdout);

		json_string_or_null(&j, "node", f->node);
		json_string(&j, "check", f->check);
		json_string(&j, "result", grades[f->grade]);
		json_string(&j, "finding", f->what);
		json_string_or_null(&j, "advice", f->advice);
		json_end_line(&j);
	}
}

enum {
	TEXT_AT = 21 /* the column of the finding */
};

static void
print_finding(const struct finding *f, bool coloured, size_t width)
{
	char shown[sizeof(f->what)];

	printf("  %s%-4s%s  %-11s  ", coloured ? colours[f->grade] : "", grades[f->grade], coloured ? COLOUR_END : "",
	    f->check);
	layout_wrap(text_show(f->what, shown, sizeof(shown)), TEXT_AT, width);
	if (f->advice[0] == '\0')
		return;
	printf("%*s", TEXT_AT, "");
	(void)snprintf(shown, sizeof(shown), "-> %s", f->advice);
	layout_wrap(shown, TEXT_AT, width);
}

static void
print_table(const struct probing *e, bool quiet)
{
	const size_t width = output_extent(STDOUT_FILENO).columns;
	const bool coloured = output_coloured();
	const char *node = "";
	size_t i;

	for (i = 0; i < e->findings; i++) {
		const struct finding *f = &e->finding[i];

		if (quiet && f->grade == GRADE_OK)
			continue;
		if (f->node != node)
			printf("%s\n", f->node != NULL ? f->node : e->nodes > 1 ? "all nodes" : "the service");
		node = f->node;
		print_finding(f, coloured, width);
	}
}

/* -- The command ------------------------------------------------------------ */

/* Of an ensemble one server is enough: it is of no use without a majority of the others. */
static enum status
conclude(const struct invocation *inv, const struct probing *e, struct err *err)
{
	enum status status;
	int i = 0;

	if (service_of(inv->options.node[0])->several)
		return checks_outcome(e->facts, e->nodes, e->finding, e->findings, err);
	while (i < e->nodes - 1 && !e->facts[i].up)
		i++;
	status = checks_outcome(&e->facts[i], 1, e->finding, e->findings, err);
	if (status != ST_NO_QUORUM && status != ST_DENIED)
		return status;
	return err_set(err, status, "cannot keep locks: %s",
	    e->facts[i].up ? "the test lock failed" : "no server answers");
}

static enum status
probe(struct invocation *inv, struct probing *e, struct err *err)
{
	const struct options *o = &inv->options;
	const struct checks_terms terms = { .ttl_ms = o->ttl_ms,
		.node_timeout_ms = o->node_timeout_given ? o->node_timeout_ms : lease_node_timeout_ms(o->ttl_ms),
		.configured = o->nodes > 0,
		.restart_guard_ms = setup_guard_ms(o),
		.replicas = o->replicas,
		.tls = setup_has_tls(o),
		.insecure = o->insecure };
	struct backend *backend;
	enum status status;

	status = setup_service(inv, &backend, err);
	if (status != ST_OK)
		return status;
	e->nodes = backend->service->probe(backend, true, e->facts);
	try_nodes(inv, backend, e);
	e->findings = service_of(o->node[0])->judge(&terms, e->facts, e->nodes, e->finding);
	if (o->json)
		print_json(e);
	else
		print_table(e, o->quiet);
	status = conclude(inv, e, err);
	backend->service->close(backend);
	return output_end_page(status, err);
}

int
cmd_doctor(struct invocation *inv, struct err *err)
{
	struct probing *e = calloc(1, sizeof(*e));
	enum status status;

	if (e == NULL)
		return (int)err_set(err, ST_SYSTEM, "out of memory");
	status = probe(inv, e, err);
	free(e);
	return (int)status;
}
