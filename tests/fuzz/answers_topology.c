/* SPDX-License-Identifier: MIT */
#include "answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/doctor.h"
#include "redis/topology.h"

/* -- Topology --------------------------------------------------------------- */

static void
check_address(const struct address *p)
{
	const long port = strtol(p->port, NULL, 10);

	must(TERMINATED(p->host) && TERMINATED(p->port) && p->host[0] != '\0' && is_harmless(p->host), "a host");
	must(strpbrk(p->host, " /@,[]\\") == NULL, "host %s", p->host);
	must(p->port[strspn(p->port, "0123456789")] == '\0' && port > 0 && port < 65536, "port %s", p->port);
}

static void
check_topology(const struct topology *t)
{
	const bool cluster = t->url->kind == URL_CLUSTER;
	struct url url;
	int i, target;

	must(t->endpoints >= t->seeds && t->endpoints <= 4096 && t->parts >= 0 && t->parts <= t->endpoints, "%d places",
	    t->endpoints);
	must(t->primary >= NOWHERE && t->primary < t->endpoints, "master %d of %d", t->primary, t->endpoints);
	for (i = 0; i < t->endpoints; i++)
		check_address(&t->endpoint[i]);
	for (i = 0; cluster && i < 16384; i++) {
		target = topology_find(t, i, 0);
		must(target >= NOWHERE && target < t->endpoints, "slot %d goes to %d of %d", i, target, t->endpoints);
	}
	for (i = -1; i < 3; i++) {
		target = topology_find(t, NO_SLOT, i < 0 ? 0 : i);
		must(target >= NOWHERE && target < t->endpoints, "part %d goes to %d of %d", i, target, t->endpoints);
		if (target == NOWHERE)
			continue;
		topology_url(t, target, &url);
		must(TERMINATED(url.name) && is_sentence(url.name), "a place named %s", url.name);
	}
}

static void
try_redirection(struct topology *t, const struct reply *reply)
{
	int place = NOWHERE;
	const enum redirection where = topology_redirect(t, reply, 0, &place);

	must(where == REDIRECT_NONE || reply_kind(reply) == REPLY_ERROR, "sent elsewhere by no error");
	must((where == REDIRECT_ASK) == (place != NOWHERE), "redirection %d to %d", (int)where, place);
	must(place < t->endpoints, "sent to %d of %d", place, t->endpoints);
	(void)topology_is_demoted(reply);
}

void
answers_topology(const char *text, struct input *how, struct parser *p)
{
	struct reply *reply;
	struct topology t;
	struct reason why;
	struct err err;
	struct url url;
	bool learned;

	must(url_parse(text, &url, &err) == ST_OK, "%s", err.text);
	must(topology_open(&t, &url), "no memory");
	while ((reply = parser_next(p)) != NULL) {
		if (url.kind == URL_CLUSTER && input_byte(how) % 2 == 1)
			try_redirection(&t, reply);
		else {
			learned = topology_learn(&t, reply, &why);
			must(learned || (TERMINATED(why.text) && (why.text[0] == '\0' || is_sentence(why.text))), "%s",
			    why.text);
			must(!learned || topology_find(&t, NO_SLOT, 0) != NOWHERE, "an answer without a server");
			topology_next_source(&t);
			must(t.source < topology_sources(&t), "source %d of %d", t.source, topology_sources(&t));
		}
		reply_free(reply);
	}
	check_topology(&t);
	topology_close(&t);
	url_free(&url);
}

/* -- INFO ------------------------------------------------------------------- */

static bool
is_known(int64_t number)
{
	return number == FACT_UNKNOWN || number >= 0;
}

static void
check_facts(const struct facts *f)
{
	must(TERMINATED(f->software) && TERMINATED(f->version) && TERMINATED(f->run_id) && TERMINATED(f->role) &&
		TERMINATED(f->policy) && TERMINATED(f->fsync),
	    "a text");
	must(is_known(f->uptime_s) && is_known(f->aof) && is_known(f->snapshots) && is_known(f->maxmemory) &&
		is_known(f->used_memory) && is_known(f->evicted) && is_known(f->replicas) && is_known(f->clients) &&
		is_known(f->maxclients) && is_known(f->idle_timeout_s) && is_known(f->keepalive_s) &&
		is_known(f->min_replicas),
	    "a number");
}

/* The data that was read, written in the format of INFO, must be read as the same data. */
static void
check_written(const struct facts *f)
{
	static char text[2048];
	static struct facts again;
	const struct {
		const char *name;
		int64_t number;
	} numbers[] = { { "uptime_in_seconds", f->uptime_s }, { "aof_enabled", f->aof }, { "maxmemory", f->maxmemory },
		{ "used_memory", f->used_memory }, { "evicted_keys", f->evicted }, { "connected_slaves", f->replicas },
		{ "connected_clients", f->clients }, { "maxclients", f->maxclients } };
	size_t i, length;

	length = (size_t)snprintf(text, sizeof(text),
	    "%s_version:%s\r\nrun_id:%s\r\nrole:%s\r\nmaxmemory_policy:%s\r\n",
	    strcmp(f->software, "Valkey") == 0		? "valkey"
		: strcmp(f->software, "Dragonfly") == 0 ? "dragonfly"
							: "redis",
	    f->version, f->run_id, f->role, f->policy);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].number != FACT_UNKNOWN)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s:%" PRId64 "\r\n",
			    numbers[i].name, numbers[i].number);
	}
	facts_forget(&again);
	facts_read_info(&again, text);
	must(memcmp(f, &again, sizeof(again)) == 0, "written down as %s", text);
}

void
answers_info(struct input *how, struct parser *p)
{
	static struct facts facts[2];
	static struct findings r;
	struct reply *reply = parser_next(p);
	size_t i;
	struct err err;

	r = (struct findings){ .ttl_ms = 30000, .node_timeout_ms = 2000 };
	r.restart_guard_ms = input_byte(how) % 2 == 1 ? 60000 : 0;
	facts_forget(&facts[0]);
	facts_forget(&facts[1]);
	facts_read_info(&facts[0], reply_text(reply));
	reply_free(reply);
	check_facts(&facts[0]);
	check_written(&facts[0]);
	for (i = 0; facts_parameter(i) != NULL && (reply = parser_next(p)) != NULL; i++) {
		facts_set_parameter(&facts[0], i, reply_text(reply));
		reply_free(reply);
	}
	check_facts(&facts[0]);
	for (i = 0; i < 2; i++) {
		facts[i].probed.name = i == 0 ? "h:1" : "h:2";
		facts[i].probed.up = true;
		facts[i].clock_known = true;
		facts[i].offset_us = input_number(how) / 4;
		facts[i].probed.rtt_us = 1000;
	}
	r.nodes = 1 + (int)(input_byte(how) % 2);
	facts_judge(facts, &r);
	must(r.count <= FINDINGS_MAX, "%zu findings", r.count);
	for (i = 0; i < r.count; i++)
		must(TERMINATED(r.found[i].what) && TERMINATED(r.found[i].advice) && is_harmless(r.found[i].advice) &&
			r.found[i].what[0] != '\0',
		    "finding %zu: %s", i, r.found[i].advice);
	(void)facts_outcome(facts, &r, &err);
}
