/* SPDX-License-Identifier: MIT */
/*
 * A library for LD_PRELOAD that leaks, so that a test can see whether leaks are looked for; see tests/harness/leaks.bats.
 */
#include <stdlib.h>
#include <string.h>

#define LEAKS 16 /* an address may be left behind somewhere by chance, but not that of each */

__attribute__((constructor)) static void
leak(void)
{
	char *volatile lost;

	for (int i = 0; i < LEAKS; i++) {
		lost = malloc(4321);
		if (lost != NULL)
			memset(lost, i, 4321);
	}
	lost = NULL;
	(void)lost;
}
