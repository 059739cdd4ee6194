/* SPDX-License-Identifier: MIT */
#include "cli/option.h"

#include <stdlib.h>

#include "base/duration.h"
#include "tap.h"

static void
clear_environment(void)
{
	size_t i;

	for (i = 0; i < option_count; i++) {
		if (option_specs[i].environment != NULL)
			(void)unsetenv(option_specs[i].environment);
	}
}

static bool ttl_on_line; /* --ttl was given */

static enum status
from_environment(struct options *o, const char *name, const char *value, struct err *err)
{
	static char buffer[256];

	clear_environment();
	(void)setenv(name, value, 1);
	options_default(o);
	if (ttl_on_line)
		o->source[option_find("ttl") - option_specs].origin = ORIGIN_LINE;
	return options_from_environment(o, buffer, sizeof(buffer), err);
}

static void
test_precedence(void)
{
	struct options o;
	struct err err;

	ttl_on_line = true;
	ok(from_environment(&o, "DLOCK_TTL", "5s", &err) == ST_OK && o.ttl_ms == 30000,
	    "an option takes precedence over the environment");
	ok(from_environment(&o, "DLOCK_TTL", "junk", &err) == ST_OK,
	    "an option takes precedence over an invalid variable");
	ok(from_environment(&o, "DLOCK_WAIT", "5s", &err) == ST_OK && o.wait_ms == 5000,
	    "other variables are still used");
	ttl_on_line = false;
}

static void
test_environment(void)
{
	struct options o;
	struct err err;

	ok(from_environment(&o, "DLOCK_TTL", "5s", &err) == ST_OK && o.ttl_ms == 5000, "DLOCK_TTL");
	ok(from_environment(&o, "DLOCK_WAIT", "forever", &err) == ST_OK && o.wait_ms == DURATION_FOREVER, "DLOCK_WAIT");
	ok(from_environment(&o, "DLOCK_NODE_TIMEOUT", "1s", &err) == ST_OK && o.node_timeout_ms == 1000 &&
		o.node_timeout_given,
	    "DLOCK_NODE_TIMEOUT");
	ok(from_environment(&o, "DLOCK_LABEL", "a b", &err) == ST_OK && strcmp(o.label, "a b") == 0, "DLOCK_LABEL");
	ok(from_environment(&o, "DLOCK_PREFIX", "p:", &err) == ST_OK && strcmp(o.prefix, "p:") == 0, "DLOCK_PREFIX");
	ok(from_environment(&o, "DLOCK_TTL", "", &err) == ST_OK && o.ttl_ms == 30000, "an empty variable is ignored");
	is_int(from_environment(&o, "DLOCK_TTL", "5 s", &err), ST_USAGE, "an invalid value in a variable");
	ok(strncmp(err.text, "DLOCK_TTL: ", 11) == 0, "the message names the variable: %s", err.text);
}

static void
test_flags(void)
{
	static char buffer[256];
	struct options o;
	struct err err;

	ok(from_environment(&o, "DLOCK_INSECURE", "1", &err) == ST_OK && o.insecure, "1 sets a flag");
	ok(from_environment(&o, "DLOCK_INSECURE", "0", &err) == ST_OK && !o.insecure, "0 does not");
	is_int(from_environment(&o, "DLOCK_INSECURE", "yes", &err), ST_USAGE, "anything else is refused");
	clear_environment();
	options_default(&o);
	o.insecure = true;
	ok(options_from_environment(&o, buffer, sizeof(buffer), &err) == ST_OK && o.insecure,
	    "a flag that the file set stays set");
	(void)setenv("DLOCK_INSECURE", "0", 1);
	ok(options_from_environment(&o, buffer, sizeof(buffer), &err) == ST_OK && !o.insecure,
	    "a variable that is 0 resets a flag of the file");
}

static void
test_node_lists(void)
{
	static const char *const commas[] = { "h:1,g:2", "h:1,", "redis://a,redis://b", "redis://:p@a,redis://:q@b",
		"h:1 g:2,/s" };
	static const char *const zk[] = { "zk://h:1,", "zk://h:1,g:1,/chroot" };
	size_t i;
	struct options o;
	struct err err;
	char list[300];

	ok(from_environment(&o, "DLOCK_NODES", "h:1", &err) == ST_OK && o.nodes == 1 && strcmp(o.node[0], "h:1") == 0,
	    "one node");
	ok(from_environment(&o, "DLOCK_NODES", " h:1 g:2\t/s\n", &err) == ST_OK && o.nodes == 3, "blanks");
	ok(strcmp(o.node[0], "h:1") == 0 && strcmp(o.node[1], "g:2") == 0 && strcmp(o.node[2], "/s") == 0,
	    "the nodes are separated");
	ok(from_environment(&o, "DLOCK_NODES", "redis+sentinel://a,b:1/s zk://a,b/c redis+cluster://c,d redis://:a,b@h",
	       &err) == ST_OK &&
		o.nodes == 4,
	    "commas separate the servers of a service, and may be in a password");
	for (i = 0; i < COUNT(commas); i++) {
		is_int(from_environment(&o, "DLOCK_NODES", commas[i], &err), ST_USAGE, "%s", commas[i]);
		ok(strstr(err.text, "by blanks") != NULL, "%s", err.text);
	}
	for (i = 0; i < COUNT(zk); i++) {
		is_int(from_environment(&o, "DLOCK_NODES", zk[i], &err), ST_USAGE, "%s", zk[i]);
		ok(strstr(err.text, "missing behind a comma") != NULL, "%s", err.text);
	}
	is_int(from_environment(&o, "DLOCK_NODES", " ", &err), ST_USAGE, "only blanks");
	is_int(from_environment(&o, "DLOCK_NODES", "", &err), ST_USAGE, "set, but empty");
	is_int(from_environment(&o, "DLOCK_NODES", "/1 /2 /3 /4 /5 /6 /7 /8 /9 /a /b /c /d /e /f", &err), ST_OK,
	    "the maximum number");
	is_int(from_environment(&o, "DLOCK_NODES", "/1 /2 /3 /4 /5 /6 /7 /8 /9 /a /b /c /d /e /f /g", &err), ST_USAGE,
	    "one too many");
	memset(list, ' ', sizeof(list));
	memcpy(list, "h:1", 3);
	list[255] = '\0';
	is_int(from_environment(&o, "DLOCK_NODES", list, &err), ST_OK, "a list that fits the buffer");
	list[255] = ' ';
	list[256] = '\0';
	is_int(from_environment(&o, "DLOCK_NODES", list, &err), ST_USAGE, "a list that does not");
	clear_environment();
}

int
main(void)
{
	test_environment();
	test_precedence();
	test_flags();
	test_node_lists();
	return tap_end();
}
