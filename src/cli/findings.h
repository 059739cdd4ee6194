/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_FINDINGS_H
#define DLOCK_CLI_FINDINGS_H
#include <stddef.h>
#include <stdint.h>

#include "cli/checks.h"

/* What the checks of all services have in common: a list of findings that grows. */
struct findings {
	const struct checks_terms *terms;
	const char *node;  /* of the next finding; NULL: all together */
	const char *check; /* likewise */
	struct finding *next;
};

/* Add a finding.  The format and its arguments are the text of `what`. */
void finding_add(struct findings *, enum grade, const char *advice, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Format a duration that may be shorter than a millisecond. */
const char *finding_show_us(int64_t us, char *text, size_t size);

/* Format a duration as a user would type it: whole seconds without decimals. */
const char *finding_show_ms(int64_t ms, char *text, size_t size);

/* Run the checks of one node; of a node that is not up, only the first. */
struct check {
	const char *name;
	void (*judge)(struct findings *, const struct node_facts *);
};
void finding_judge(struct findings *, const struct node_facts *, const struct check *, size_t count);

/* Does the node answer, and how fast? */
void finding_answer(struct findings *, const struct node_facts *);

/* Are the certificates of servers verified? */
void finding_tls(struct findings *);

/* Can other hosts reach it? */
void finding_reach(struct findings *, const struct node_facts *);

/* Did the test lock work? */
void finding_trial(struct findings *, const struct node_facts *);

#endif
