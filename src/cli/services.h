/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_SERVICES_H
#define DLOCK_CLI_SERVICES_H
#include <stdbool.h>

#include "base/err.h"
#include "lock/backend.h"

struct checks_terms;
struct finding;

/* The services that can keep locks, one for each kind of URL. */
struct service {
	const char *name;
	bool (*has_url)(const char *url);			 /* does a URL of this form belong to it? */
	enum status (*check_url)(const char *url, struct err *); /* ST_USAGE: not valid */
	bool (*token_valid)(const char *token);
	int token_length; /* of the token of a lock */
	bool several;	  /* it takes several nodes */
	bool fixed_ttl;	  /* a renewal cannot change the length of the lease */
	bool replicas;	  /* it knows --replicas */
	bool guards;	  /* it knows --restart-guard */
	bool history;	  /* it keeps a history of each lock */
	size_t (*judge)(const struct checks_terms *, const struct node_facts *, int nodes,
	    struct finding *found); /* the checks of doctor: there is room for FINDINGS_MAX */
	enum status (*open)(const struct service_config *, struct backend **, struct err *);
};

/* The services; the last one takes any URL.  In a file of its own, so that a test of the commands links its own. */
extern const struct service services[];
extern const size_t service_count;

/* The service of a URL; NULL stands for the default node. */
#define SERVICE_DEFAULT_URL "redis://127.0.0.1:6379"
const struct service *service_of(const char *url);

/* Is it a token of any service? */
bool service_has_token(const char *token);

/* Can one backend have these URLs?  ST_USAGE if not. */
enum status service_check_nodes(const char *const url[NODES_MAX], int nodes, struct err *);

#endif
