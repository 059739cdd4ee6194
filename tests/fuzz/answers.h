/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_ANSWERS_H
#define DLOCK_TESTS_FUZZ_ANSWERS_H
#include "fuzz.h"
#include "redis/reply.h"

/*
 * Parts of the target answers.  A few bytes say how, and the replies come out of the parser.
 */
#define TERMINATED(text) (memchr((text), '\0', sizeof(text)) != NULL)

/* What sentinels and a Cluster say of where requests go, for the URL of such a service. */
void answers_topology(const char *url, struct input *how, struct parser *);

/* What a server says of itself, and what is made of it. */
void answers_info(struct input *how, struct parser *);

#endif
