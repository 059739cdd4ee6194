/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SECRET_H
#define DLOCK_CLI_SECRET_H
#include <stdbool.h>

/*
 * Passwords: where they may stand, and who may see them.
 */

/* Is there a password in the URL? */
bool secret_in_url(const char *url);

/* Overwrite the user and password of a URL, with as many characters. */
void secret_blot(char *url);

/* May others than the owner and his group read the open file? */
bool secret_is_public(int fd);

/*
 * Keep this process's memory out of cores, and from other processes of the user.  What is executed is not concerned: exec
 * ends it.
 */
void secret_guard(void);

#endif
