/* SPDX-License-Identifier: MIT */
#include "net/libssl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const library_names[] = { LIBSSL_NEWEST, "libssl.so.1.1" };

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
#define LIBSSL_SYMBOL(name) { #name, offsetof(struct libssl, name) },
	LIBSSL_FUNCTIONS(LIBSSL_SYMBOL)
#undef LIBSSL_SYMBOL
};

static bool
find_symbols(void *library, struct libssl *found)
{
	void *address;
	size_t i;

	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		address = dlsym(library, symbols[i].name);
		if (address == NULL)
			return false;
		memcpy((char *)found + symbols[i].offset, &address, sizeof(address));
	}
	return true;
}

const struct libssl *
libssl_load(void)
{
	static struct libssl ssl;
	static bool loaded;
	void *library;
	size_t i;

	for (i = 0; i < sizeof(library_names) / sizeof(library_names[0]) && !loaded; i++) {
		library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
		loaded = library != NULL && find_symbols(library, &ssl);
	}
	return loaded ? &ssl : NULL;
}
