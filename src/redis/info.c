/* SPDX-License-Identifier: MIT */
#include "redis/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1LL << 50)

static const char *const parameters[] = { "appendfsync", "save", "timeout", "tcp-keepalive", "maxclients",
	"min-replicas-to-write" };

/* The value of a line "NAME:value", without the line ending; "" if there is no such line. */
static const char *
find(const char *text, const char *name, char *value, size_t size)
{
	const size_t length = strlen(name);
	const char *line = text;

	value[0] = '\0';
	while (line != NULL && !(strncmp(line, name, length) == 0 && line[length] == ':')) {
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	if (line != NULL)
		(void)snprintf(value, size, "%.*s", (int)strcspn(line + length + 1, "\r\n"), line + length + 1);
	return value;
}

static int64_t
to_number(const char *value)
{
	char *end;
	const long long n = strtoll(value, &end, 10);

	if (value[0] < '0' || value[0] > '9' || *end != '\0')
		return FACT_UNKNOWN;
	return n < MOST ? n : MOST; /* safe for arithmetic */
}

static int64_t
number(const char *text, const char *name)
{
	char value[32];

	return to_number(find(text, name, value, sizeof(value)));
}

void
info_forget(struct node_facts *f)
{
	memset(f, 0, sizeof(*f));
	f->uptime_s = f->aof = f->snapshots = f->maxmemory = f->used_memory = f->evicted = FACT_UNKNOWN;
	f->replicas = f->clients = f->maxclients = f->idle_timeout_s = f->keepalive_s = f->min_replicas = FACT_UNKNOWN;
}

/* Compatible servers report a Redis version as well as their own. */
static void
read_software(const char *text, struct node_facts *f)
{
	static const struct {
		const char *field, *name;
	} kinds[] = {
		{ "valkey_version", "Valkey" },
		{ "dragonfly_version", "Dragonfly" },
		{ "redis_version", "Redis" },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (find(text, kinds[i].field, f->version, sizeof(f->version))[0] == '\0')
			continue;
		(void)snprintf(f->software, sizeof(f->software), "%s", kinds[i].name);
		return;
	}
}

void
info_read(const char *text, struct node_facts *f)
{
	char mode[16];

	read_software(text, f);
	(void)find(text, "run_id", f->run_id, sizeof(f->run_id));
	if (strcmp(find(text, "redis_mode", mode, sizeof(mode)), "sentinel") == 0)
		(void)snprintf(f->role, sizeof(f->role), "sentinel");
	else
		(void)find(text, "role", f->role, sizeof(f->role));
	f->uptime_s = number(text, "uptime_in_seconds");
	f->aof = number(text, "aof_enabled");
	f->maxmemory = number(text, "maxmemory");
	f->used_memory = number(text, "used_memory");
	(void)find(text, "maxmemory_policy", f->policy, sizeof(f->policy));
	f->evicted = number(text, "evicted_keys");
	f->replicas = number(text, "connected_slaves");
	f->clients = number(text, "connected_clients");
	f->maxclients = number(text, "maxclients");
}

const char *
info_parameter(size_t index)
{
	return index < sizeof(parameters) / sizeof(parameters[0]) ? parameters[index] : NULL;
}

void
info_set(size_t index, const char *value, struct node_facts *f)
{
	const char *const name = info_parameter(index);

	if (name == NULL)
		return;
	if (strcmp(name, "appendfsync") == 0)
		(void)snprintf(f->fsync, sizeof(f->fsync), "%s", value);
	else if (strcmp(name, "save") == 0)
		f->snapshots = value[0] != '\0';
	else if (strcmp(name, "timeout") == 0)
		f->idle_timeout_s = to_number(value);
	else if (strcmp(name, "tcp-keepalive") == 0)
		f->keepalive_s = to_number(value);
	else if (strcmp(name, "min-replicas-to-write") == 0)
		f->min_replicas = to_number(value);
	else if (f->maxclients == FACT_UNKNOWN)
		f->maxclients = to_number(value);
}
