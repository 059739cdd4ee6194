/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SECRET_H
#define DLOCK_CLI_SECRET_H
#include <stdbool.h>

/*
 * Protection of passwords.
 */

/* Is there a password in the URL? */
bool secret_in_url(const char *url);

/* Overwrite the user and password of a URL by "*". */
void secret_blot(char *url);

/* Is the open file a regular file that is world-readable? */
bool secret_is_public(int fd);

#endif
