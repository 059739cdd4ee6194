/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_ANSWERS_H
#define DLOCK_TESTS_FUZZ_ANSWERS_H
#include "fuzz.h"
#include "redis/reply.h"

/*
 * Parts of the target answers.  A few bytes of the input select what is tested; the replies come from the parser.
 */
#define TERMINATED(text) (memchr((text), '\0', sizeof(text)) != NULL)

/* The topology that sentinels and a Cluster report, for the URL of such a service. */
void answers_topology(const char *url, struct input *how, struct parser *);

/* The INFO of a server, and the result of reading it. */
void answers_info(struct input *how, struct parser *);

#endif
