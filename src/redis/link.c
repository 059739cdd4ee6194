/* SPDX-License-Identifier: MIT */
#include "redis/link.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/sigpipe.h"

static enum link_result
outcome(ssize_t n, size_t *done)
{
	if (n > 0) {
		*done = (size_t)n;
		return LINK_DONE;
	}
	if (n == 0 || errno == ECONNRESET)
		return LINK_CLOSED;
	return errno == EAGAIN || errno == EINTR ? LINK_LATER : LINK_FAILED;
}

static enum link_result
outcome_of_tls(enum tls_result result)
{
	switch (result) {
	case TLS_DONE:
		return LINK_DONE;
	case TLS_CLOSED:
		return LINK_CLOSED;
	case TLS_FAILED:
		return LINK_FAILED;
	case TLS_WANTS_READ:
	case TLS_WANTS_WRITE:
		break;
	}
	return LINK_LATER;
}

enum link_result
link_read(const struct link *l, char *bytes, size_t size, size_t *done)
{
	if (l->tls != NULL)
		return outcome_of_tls(tls_read(l->tls, bytes, size, done));
	return outcome(read(l->fd, bytes, size), done);
}

enum link_result
link_write(const struct link *l, const char *bytes, size_t length, size_t *done)
{
	enum link_result result;

	if (l->tls != NULL)
		return outcome_of_tls(tls_write(l->tls, bytes, length, done));
	result = outcome(write(l->fd, bytes, length), done);
	if (result == LINK_FAILED)
		sigpipe_take_back();
	return result;
}

bool
link_holds_bytes(const struct link *l)
{
	return l->tls != NULL && tls_holds_bytes(l->tls);
}

void
link_close(struct link *l)
{
	tls_stop(l->tls);
	l->tls = NULL;
	if (l->fd >= 0)
		(void)close(l->fd);
	l->fd = -1;
}
