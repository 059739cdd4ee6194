/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>

#include "tap.h"

TEST(err)
{
	struct err err;
	char longer[3000];

	memset(&err, 'z', sizeof(err));
	is_int(err_set(&err, ST_HELD, "%s: %d", "a", 5), ST_HELD, "the status is returned");
	is_str(err.text, "a: 5", "the sentence is recorded");
	err_prefix(&err, "node h:1");
	is_str(err.text, "node h:1: a: 5", "a prefix stands before it");
	is_int(err_system(&err, ENOENT, "file %s"), ST_SYSTEM, "the system refused");
	ok(strncmp(err.text, "file %s: ", 9) == 0 && strcmp(err.text + 9, strerror(ENOENT)) == 0,
	    "the message has the reason: %s", err.text);

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	(void)err_set(&err, ST_BUG, "%s", longer);
	is_int((int64_t)strlen(err.text), sizeof(err.text) - 1, "a text that is too long is cut");
	err_prefix(&err, "here");
	ok(strncmp(err.text, "here: xxx", 9) == 0 && memchr(err.text, '\0', sizeof(err.text)) != NULL,
	    "behind a prefix");
	err_prefix(&err, longer);
	ok(strncmp(err.text, "xxx", 3) == 0 && strstr(err.text, ": here: xxx") != NULL, "behind a long prefix");
	err.text[0] = '\0';
	err_prefix(&err, "here");
	is_str(err.text, "here: ", "an empty sentence");
	is_str(err_lack(ENOMEM), OUT_OF_MEMORY, "ENOMEM is a lack of this host");
	ok(err_lack(ENFILE) != NULL && err_lack(ENOBUFS) != NULL, "so are these");
	ok(err_lack(EMFILE) != NULL && err_lack(ECONNREFUSED) == NULL, "EMFILE is one, ECONNREFUSED is not");
}

/* What an earlier failure said does not stay. */
TEST(failure)
{
	struct failure f = { .kind = DENIED, .login = true, .connected = true, .closed = true, .sent = true };

	failure_set(&f, FAILED, "%s", "why");
	ok(f.kind == FAILED && !f.login && !f.connected && !f.closed && !f.sent, "nothing but what is said now");
	is_str(f.reason.text, "why", "the reason");
}
