/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_CLIENT_H
#define DLOCK_SIM_CLIENT_H
#include "plan.h"

/*
 * The clients: what dlock's commands do, by dlock's own code (the service on Redis, the renewing thread, the decisions
 * when a command must end), and a command, which is only a time.
 */
void client_start(const struct plan *, int client);

/* Does something run under its lock, and may it, by what the client knows and its own clock? */
bool client_is_inside(int client);

/* It is killed, and its command with it. */
void client_kill(int client, bool host_gone);

/* Its host sleeps until then. */
void client_sleep(int client, int64_t until_us);

/* It is told to end, by a signal. */
void client_tell(int client);

#endif
