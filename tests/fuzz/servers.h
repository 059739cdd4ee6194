/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_TESTS_FUZZ_SERVERS_H
#define DLOCK_TESTS_FUZZ_SERVERS_H
#include "../sim/net.h"
#include "lock/token.h"

/*
 * The servers of the fuzz target: those of the simulation, which execute the scripts, but the input decides what they
 * say of it.  The caller is the only process of the simulated world.
 */
enum {
	NOTES_MOST = 64
};

/* What one server has replied, as far as the meaning is clear. */
struct server_notes {
	bool wild;     /* it has sent replies that may mean anything */
	bool faithful; /* it has replied to all requests, and honestly */
	int notes;
	struct note {
		char token[TOKEN_SIZE];
		bool granted, undone, renewed, released;
	} note[NOTES_MOST];
};
extern struct server_notes servers[SERVERS];

/* The target.  It aborts if a promise is broken, and leaves no state that affects a later input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A promise.  The further arguments are a printf format and its arguments. */
#define must(condition, ...) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__, __VA_ARGS__))

_Noreturn void fuzz_fail(const char *what, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Create a world and enter it; leave it, with all connections closed. */
void servers_begin(const uint8_t *bytes, size_t length);
void servers_end(void);

/* The next byte of the input; 0 at its end. */
unsigned int input_byte(void);

/* Begin an operation, which must end within that time.  What was noted is forgotten, but not which servers were wild. */
void servers_watch(int64_t limit_us);

/* End it: bytes in transit arrive. */
void servers_settle(void);

/* The note about a token; a new one is created if there is none. */
struct note *servers_note(struct server_notes *, const char *token);

#endif
