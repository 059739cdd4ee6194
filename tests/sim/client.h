/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_CLIENT_H
#define DLOCK_SIM_CLIENT_H
#include "plan.h"

/*
 * The clients.  They do what the commands of dlock do, with the code of dlock (the Redis backend, the keepalive thread,
 * the kill policy).  The command that they run is only a duration.
 */
void client_start(const struct plan *, int client);

/* Does a command run under its lock, and is that allowed by the client's own state and clock? */
bool client_is_inside(int client);

/* The hold by which it is inside; "": it is not. */
const char *client_relies_on(int client);

/* Kill the client and its command. */
void client_kill(int client, bool host_gone);

/* Suspend its host until that time. */
void client_sleep(int client, int64_t until_us);

/* Send it a signal to end. */
void client_signal(int client);

#endif
