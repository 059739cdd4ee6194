/* SPDX-License-Identifier: MIT */
#include "lock/service.h"

const struct service *
service_of(const char *url)
{
	const struct service *const *s = services + 1;

	while (*s != NULL && !(*s)->has_url(url))
		s++;
	return *s != NULL ? *s : services[0];
}

bool
service_has_token(const char *token)
{
	const struct service *const *s = services;

	while (*s != NULL && !(*s)->token_valid(token))
		s++;
	return *s != NULL;
}

enum status
loss_error(enum ownership ownership, struct err *err)
{
	return err_set(err, ST_NO, ownership == OWNED_BY_ANOTHER ? "held by another" : "gone");
}
