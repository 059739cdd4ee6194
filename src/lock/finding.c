/* SPDX-License-Identifier: MIT */
#include "lock/finding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"

void
finding_add(struct findings *r, enum grade grade, const char *advice, const char *format, ...)
{
	struct finding *f = &r->found[r->count++];
	va_list args;

	f->node = r->node;
	f->check = r->check;
	f->grade = grade;
	(void)snprintf(f->advice, sizeof(f->advice), "%s", grade != GRADE_OK ? advice : "");
	va_start(args, format);
	(void)vsnprintf(f->what, sizeof(f->what), format, args);
	va_end(args);
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

/* A node that refuses: with what to do about that, or else what helps in most cases. */
static void
add_refusal(struct findings *r, const char *what, const char *otherwise)
{
	const struct remedy *known = r->remedies;

	while (known->word != NULL && strstr(what, known->word) == NULL)
		known++;
	finding_add(r, GRADE_FAIL, known->word != NULL ? known->advice : otherwise, "%s", what);
}

void
finding_answer(struct findings *r, const struct probed *p)
{
	static const char no_node[] =
	    "no node is configured: use --node, DLOCK_NODES (sudo drops it) or /etc/dlock/config";
	const int64_t limit_us = r->node_timeout_ms * 1000;
	const double share = (double)p->rtt_us / 10 / (double)r->ttl_ms;
	char rtt[32], ttl[32];

	r->node = p->name;
	r->check = "answer";
	if (p->denied && !p->up)
		finding_add(r, GRADE_FAIL, "check the user, the password and the ACL", "%s", p->reason.text);
	else if (!p->up)
		add_refusal(r, p->reason.text,
		    r->configured ? "check the address, the network and the server" : no_node);
	if (!p->up)
		return;
	finding_add(r,
	    p->rtt_us >= limit_us	   ? GRADE_FAIL
		: p->rtt_us > limit_us / 4 ? GRADE_WARN
					   : GRADE_OK,
	    p->rtt_us >= limit_us ? "no lock is granted in time: use a longer --node-timeout or a nearer node"
				  : "close to --node-timeout: use a longer one and a longer --ttl, or a nearer node",
	    "in %s, %s%.2f%% of the lease of %s", finding_show_us(p->rtt_us, rtt, sizeof(rtt)),
	    share < 0.01 ? "less than " : "", share < 0.01 ? 0.01 : share,
	    finding_show_ms(r->ttl_ms, ttl, sizeof(ttl)));
	r->check = "reach";
	if (p->local != NULL)
		finding_add(r, GRADE_WARN,
		    r->configured ? "name a server that all hosts share, unless this is a proxy to one" : no_node,
		    "only this host can reach it so (%s): a lock excludes no other host", p->local);
}

void
finding_trial(struct findings *r, const struct probed *p)
{
	r->check = "lock";
	if (p->trial == ST_OK)
		finding_add(r, GRADE_OK, "", "a test lock was acquired, renewed and released");
	else
		add_refusal(r, p->trial_err.text,
		    p->trial == ST_DENIED ? "give the user the rights that dlock(1) lists"
					  : "this node grants no lock until this is fixed");
}

void
finding_tls(struct findings *r, bool tls)
{
	r->check = "tls";
	if (tls)
		finding_add(r, r->insecure ? GRADE_WARN : GRADE_OK, "use --cacert instead of --insecure",
		    r->insecure ? "certificates are not verified: anyone on the path can pose as a server"
				: "certificates are verified");
}

enum status
finding_outcome(const struct findings *r)
{
	size_t i;

	for (i = 0; i < r->count; i++) {
		if (r->found[i].grade > GRADE_UNKNOWN)
			return ST_NO;
	}
	return ST_OK;
}
