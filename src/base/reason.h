/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_REASON_H
#define DLOCK_BASE_REASON_H

/* Why a node or a connection failed, in a few words.  It is short since there is one for each request. */
struct reason {
	char text[200]; /* cut when longer */
};

void reason_set(struct reason *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put "PREFIX: " before it. */
void reason_prefix(struct reason *, const char *prefix);

#endif
