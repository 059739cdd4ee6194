/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_SIM_WRAP_H
#define DLOCK_SIM_WRAP_H

/* Define the function that --wrap of the linker puts in place of this one; tests/local.mk finds it by the line. */
#define WRAPPED(type, name, arguments) \
	type __real_##name arguments;  \
	type __wrap_##name arguments;  \
	type __wrap_##name arguments

#endif
