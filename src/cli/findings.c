/* SPDX-License-Identifier: MIT */
#include "cli/findings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"

void
finding_add(struct findings *r, enum grade grade, const char *advice, const char *format, ...)
{
	struct finding *f = r->next++;
	va_list args;

	f->node = r->node;
	f->check = r->check;
	f->grade = grade;
	(void)snprintf(f->advice, sizeof(f->advice), "%s", advice);
	va_start(args, format);
	(void)vsnprintf(f->what, sizeof(f->what), format, args);
	va_end(args);
}

void
finding_judge(struct findings *r, const struct node_facts *f, const struct check *checks, size_t count)
{
	size_t i;

	r->node = f->name;
	for (i = 0; i < (f->up ? count : 1); i++) {
		r->check = checks[i].name;
		checks[i].judge(r, f);
	}
}

const char *
finding_show_us(int64_t us, char *text, size_t size)
{
	if (us < 10000)
		(void)snprintf(text, size, "%.2fms", (double)us / 1000);
	else
		duration_show(us / 1000, text, size);
	return text;
}

const char *
finding_show_ms(int64_t ms, char *text, size_t size)
{
	if (ms < 60000 && ms % 1000 == 0)
		(void)snprintf(text, size, "%" PRId64 "s", ms / 1000);
	else
		duration_show(ms, text, size);
	return text;
}

/* What to do about a node that refuses, by a word of its refusal; NULL: not known. */
static const char *
refusal_advice(const char *refusal)
{
	static const struct {
		const char *word, *advice;
	} advices[] = { { "maxmemory", "raise maxmemory, or remove keys: a full server grants no locks" },
		{ "--restart-guard)",
		    "wait until then; --restart-guard 0 is correct only where no lock was ever kept" },
		{ "EVAL", "remove rename-command EVAL from redis.conf, or allow it to this user: dlock needs scripts" },
		{ "INFO", "allow INFO to this user, or use --restart-guard 0" },
		{ "maxclients", "raise maxclients, or close connections of other clients" },
		{ "Cluster is down", "repair the Cluster; redis-cli --cluster check says what is wrong with it" },
		{ "slot is moving", "wait until the slot has moved" },
		{ "busy with a script", "wait for the script, or end it by SCRIPT KILL" },
		{ "access to the keys",
		    "use a --prefix that this user may use, or give it the rights that dlock(1) lists" },
		{ "replica", "use the primary instead, or check its replicas" },
		{ "loading", "wait until the server has loaded its data" },
		{ "its ACL", "use the user and the password that the nodes were made with, or another chroot" },
		{ "disk", "free space on its disk, and see its log" }, { "too late", "use a longer --ttl" } };
	size_t i;

	for (i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
		if (strstr(refusal, advices[i].word) != NULL)
			return advices[i].advice;
	}
	return NULL;
}

void
finding_answer(struct findings *r, const struct node_facts *f)
{
	const int64_t limit_us = r->terms->node_timeout_ms * 1000;
	const double share = (double)f->rtt_us / 10 / (double)r->terms->ttl_ms;
	const char *advice = "";
	enum grade grade = GRADE_OK;
	char rtt[32], ttl[32];

	if (!f->up) {
		advice = f->denied ? "check the user, the password and the ACL" : refusal_advice(f->reason.text);
		finding_add(r, GRADE_FAIL, advice != NULL ? advice : "check the address, the network and the server",
		    "%s", f->reason.text);
		return;
	}
	if (f->rtt_us >= limit_us) {
		grade = GRADE_FAIL;
		advice = "no lock is granted in time: use a longer --node-timeout or a nearer node";
	} else if (f->rtt_us > limit_us / 4) {
		grade = GRADE_WARN;
		advice = "close to --node-timeout: use a longer one and a longer --ttl, or a nearer node";
	}
	finding_add(r, grade, advice, "in %s, %s%.2f%% of the lease of %s",
	    finding_show_us(f->rtt_us, rtt, sizeof(rtt)), share < 0.01 ? "less than " : "", share < 0.01 ? 0.01 : share,
	    finding_show_ms(r->terms->ttl_ms, ttl, sizeof(ttl)));
}

void
finding_tls(struct findings *r)
{
	const bool insecure = r->terms->insecure;

	r->check = "tls";
	if (r->terms->tls)
		finding_add(r, insecure ? GRADE_WARN : GRADE_OK, insecure ? "use --cacert instead of --insecure" : "",
		    insecure ? "certificates are not verified: anyone on the path can pose as a server"
			     : "certificates are verified");
}

void
finding_reach(struct findings *r, const struct node_facts *f)
{
	if (f->local != NULL)
		finding_add(r, GRADE_WARN,
		    r->terms->configured
			? "name a server that all hosts share, unless this is a proxy to one"
			: "no node is configured: use --node, DLOCK_NODES (sudo drops it) or /etc/dlock/config",
		    "only this host can reach it so (%s): a lock excludes no other host", f->local);
}

void
finding_trial(struct findings *r, const struct node_facts *f)
{
	const char *advice = refusal_advice(f->trial_err.text);

	if (advice == NULL)
		advice = f->trial == ST_DENIED ? "give the user the rights that dlock(1) lists"
					       : "this node grants no lock until this is fixed";
	if (f->trial == ST_OK)
		finding_add(r, GRADE_OK, "", "a test lock was acquired, renewed and released");
	else
		finding_add(r, GRADE_FAIL, advice, "%s", f->trial_err.text);
}
