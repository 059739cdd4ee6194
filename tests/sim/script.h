/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_SCRIPT_H
#define DLOCK_SIM_SCRIPT_H
#include "store.h"

/* From now on replace `from` by `to` in the source of the scripts. */
void script_mutate(const char *from, const char *to);

#endif
