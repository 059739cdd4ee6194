/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SECRET_H
#define DLOCK_CLI_SECRET_H
#include <stdbool.h>

/*
 * Protection of passwords.
 */

/* Is there a password in the URL? */
bool secret_in_url(const char *url);

/* Append the URL with *** in place of its password. */
struct text;
void secret_add_url(const char *url, struct text *);

/* The variable of the environment that has the password; NULL: none has. */
const char *secret_variable(void);

/* Overwrite the user and password of a URL by "*". */
void secret_blot(char *url);

/* Is it a regular file that is world-readable? */
bool secret_is_public(const char *path);

#endif
