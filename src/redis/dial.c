/* SPDX-License-Identifier: MIT */
#include "redis/dial.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

#define UNIX_RETRY_US 2000 /* when the server's queue of new connections is full */

void
dial_init(struct dial *d)
{
	memset(d, 0, sizeof(*d));
	d->link.fd = -1;
	d->wake_us = CLOCK_NEVER;
	race_init(&d->race);
}

static enum dial_state
fail(struct dial *d, const char *error)
{
	d->error = error;
	return DIAL_FAILED;
}

static enum dial_state
fail_locally(struct dial *d, const char *error)
{
	d->local = true;
	return fail(d, error);
}

static enum dial_state
fail_of(struct dial *d, int error)
{
	if (err_lack(error) != NULL)
		return fail_locally(d, err_lack(error));
	if (error == ECONNREFUSED)
		return fail(d, "connection refused; is Redis running there?");
	return fail(d, error == ENOENT ? "there is no such socket; is Redis running there?" : strerror(error));
}

/* -- TLS -------------------------------------------------------------------- */

static enum dial_state
shake_hands(struct dial *d)
{
	switch (tls_handshake(d->link.tls)) {
	case TLS_DONE:
		return DIAL_CONNECTED;
	case TLS_WANTS_READ:
		d->tls_events = POLLIN;
		return DIAL_BUSY;
	case TLS_WANTS_WRITE:
		d->tls_events = POLLOUT;
		return DIAL_BUSY;
	case TLS_CLOSED:
		return fail(d, "the server closed the connection at the TLS handshake; does it speak TLS?");
	case TLS_FAILED:
		break;
	}
	return fail(d, tls_fault(d->link.tls, &d->denied));
}

static enum dial_state
connected(struct dial *d, int fd)
{
	d->link.fd = fd;
	d->wake_us = CLOCK_NEVER;
	race_stop(&d->race);
	if (d->url->tls == NULL)
		return DIAL_CONNECTED;
	d->link.tls = tls_start(d->url->tls, fd, d->url->host);
	return d->link.tls != NULL ? shake_hands(d) : fail_locally(d, OUT_OF_MEMORY);
}

/* -- Sockets ---------------------------------------------------------------- */

static enum dial_state
connect_unix(struct dial *d)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t length = strlen(d->url->path) + 1;
	const int fd = race_socket(AF_UNIX);
	int error;

	if (fd < 0)
		return fail_of(d, errno);
	memcpy(address.sun_path, d->url->path, length);
	if (connect(fd, (const struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
		return connected(d, fd);
	error = errno;
	(void)close(fd);
	if (error != EAGAIN)
		return fail_of(d, error);
	d->wake_us = clock_now_us() + UNIX_RETRY_US;
	return DIAL_BUSY;
}

static enum dial_state
race_on(struct dial *d, enum race_state state)
{
	int fd;

	d->wake_us = d->race.wake_us;
	switch (state) {
	case RACE_WON:
		fd = d->race.winner;
		d->race.winner = -1;
		return connected(d, fd);
	case RACE_LOST:
		return fail_of(d, d->race.error);
	case RACE_BUSY:
		break;
	}
	return DIAL_BUSY;
}

static enum dial_state
take_addresses(struct dial *d, int64_t now_us)
{
	const int code = resolve_result(d->resolving, &d->addresses);

	resolve_cancel(d->resolving);
	d->resolving = NULL;
	if (code == EAI_MEMORY)
		return fail_locally(d, OUT_OF_MEMORY);
	if (code != 0)
		return fail(d, code == EAI_SYSTEM ? "the name cannot be resolved" : gai_strerror(code));
	return race_on(d, race_start(&d->race, d->addresses, now_us));
}

/* -- The whole -------------------------------------------------------------- */

enum dial_state
dial_start(struct dial *d, const struct url *url)
{
	dial_init(d);
	d->url = url;
	if (url->host[0] == '\0')
		return connect_unix(d);
	d->addresses = resolve_numeric(url->host, url->port);
	if (d->addresses != NULL)
		return race_on(d, race_start(&d->race, d->addresses, clock_now_us()));
	d->by_name = true;
	d->resolving = resolve_start(url->host, url->port);
	if (d->resolving != NULL)
		return DIAL_BUSY;
	return errno == EAGAIN ? fail_locally(d, "this host has no thread to look up its name") : fail_of(d, errno);
}

enum dial_state
dial_handle(struct dial *d, int64_t now_us)
{
	if (d->resolving != NULL)
		return take_addresses(d, now_us);
	if (d->link.tls != NULL)
		return shake_hands(d);
	if (d->url->host[0] == '\0')
		return now_us >= d->wake_us ? connect_unix(d) : DIAL_BUSY;
	return race_on(d, race_go(&d->race, now_us));
}

int
dial_fd(const struct dial *d)
{
	if (d->resolving != NULL)
		return resolve_fd(d->resolving);
	return d->link.fd >= 0 ? d->link.fd : race_fd(&d->race);
}

short
dial_events(const struct dial *d)
{
	if (d->resolving != NULL)
		return POLLIN;
	return d->link.fd >= 0 ? d->tls_events : race_events(&d->race);
}

const char *
dial_silence(const struct dial *d)
{
	if (d->resolving != NULL)
		return "its name was not resolved in time";
	return d->link.tls != NULL ? "no TLS handshake in time; does it speak TLS?" : "no connection in time";
}

struct link
dial_take(struct dial *d)
{
	const struct link link = d->link;

	d->link = (struct link){ .fd = -1 };
	return link;
}

void
dial_stop(struct dial *d)
{
	resolve_cancel(d->resolving);
	d->resolving = NULL;
	race_stop(&d->race);
	link_close(&d->link);
	if (d->addresses != NULL)
		freeaddrinfo(d->addresses);
	d->addresses = NULL;
	d->wake_us = CLOCK_NEVER;
}
