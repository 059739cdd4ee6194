/* SPDX-License-Identifier: MIT */
#include "lock/service.h"

const struct service *
service_of(const char *url)
{
	const struct service *const *s = services;

	while (!(*s)->has_url(url != NULL ? url : SERVICE_DEFAULT_URL))
		s++;
	return *s;
}

bool
service_has_token(const char *token)
{
	const struct service *const *s;

	for (s = services; *s != NULL; s++) {
		if ((*s)->token_valid(token))
			return true;
	}
	return false;
}

enum status
service_check_nodes(const char *const url[NODES_MAX], int nodes, struct err *err)
{
	int i;

	for (i = 0; i < nodes; i++) {
		if (nodes > 1 && !service_of(url[i])->several)
			return err_set(err, ST_USAGE,
			    "a %s ensemble is a quorum already, and cannot be combined with other nodes; name its "
			    "servers in one URL",
			    service_of(url[i])->name);
	}
	return ST_OK;
}
