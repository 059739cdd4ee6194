/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_SCRIPT_H
#define DLOCK_SIM_SCRIPT_H
#include "store.h"

/* From now on scripts run with this change of their text: what stands in one of them, and what shall stand there. */
void script_mutate(const char *from, const char *to);

#endif
