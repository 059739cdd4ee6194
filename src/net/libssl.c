/* SPDX-License-Identifier: MIT */
#include "net/libssl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

static const char *const library_names[] = { LIBSSL_NEWEST, "libssl.so.1.1" };

static const char *const function_names[] = {
#define LIBSSL_NAME(name) #name,
	LIBSSL_FUNCTIONS(LIBSSL_NAME)
#undef LIBSSL_NAME
};

const struct libssl *
libssl_load(void)
{
	static union {
		struct libssl functions;
		void *address[sizeof(function_names) / sizeof(function_names[0])]; /* of each, in the same order */
	} ssl;
	static bool loaded;
	void *library;
	size_t i, j;

	for (i = 0; i < sizeof(library_names) / sizeof(library_names[0]) && !loaded; i++) {
		library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
		loaded = library != NULL;
		for (j = 0; j < sizeof(ssl.address) / sizeof(ssl.address[0]) && loaded; j++) {
			ssl.address[j] = dlsym(library, function_names[j]);
			loaded = ssl.address[j] != NULL;
		}
	}
	return loaded ? &ssl.functions : NULL;
}
