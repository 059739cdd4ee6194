/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "net/tls.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

static void
show_option(FILE *out, const struct option_spec *spec)
{
	char left[64], letter[8] = "    ";
	struct text text = text_in(left, sizeof(left));

	if (spec->letter != 0)
		(void)snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
	text_addf(&text, "  %s--%s%s%s", letter, spec->name, spec->argument != NULL ? " " : "",
	    spec->argument != NULL ? spec->argument : "");
	if (text.length > 24)
		fprintf(out, "%s\n%25s%s\n", left, "", spec->help);
	else
		fprintf(out, "%-25s%s\n", left, spec->help);
	if (spec->environment != NULL)
		fprintf(out, "%25senvironment: %s\n", "", spec->environment);
}

static void
show_exit_statuses(FILE *out)
{
	fputs("\nExit status:\n"
	      "  0    success; run: the exit status of COMMAND, 128+n if signal n ended it\n"
	      "  1    no: not the holder, not locked, warnings of doctor\n"
	      "  64   usage error\n"
	      "  69   no quorum: too few nodes reachable or fit to answer\n"
	      "  70   internal error, a bug in dlock\n"
	      "  71   system error on this host\n"
	      "  75   another holds the lock, or still held it after --wait (-E)\n"
	      "  76   the lock was lost while COMMAND ran\n"
	      "  77   permission denied by the server: authentication, ACL\n"
	      "  78   configuration error\n"
	      "  124  --max-run ended COMMAND; 137 if by SIGKILL\n"
	      "  126  COMMAND cannot be executed\n"
	      "  127  COMMAND was not found\n",
	    out);
}

/* The options that these commands use: the common ones, or the others. */
static void
show_options(FILE *out, unsigned int bits, bool common)
{
	const char *heading = common ? "\nCommon options:\n" : "\nOptions:\n";
	size_t i;

	for (i = 0; i < option_count; i++) {
		if ((option_specs[i].commands & bits) == 0 ||
		    ((option_specs[i].commands & CMD_SERVICE) == CMD_SERVICE) != common)
			continue;
		fputs(heading, out);
		heading = "";
		show_option(out, &option_specs[i]);
	}
}

static void
show_command(FILE *out, const struct command *c, bool all)
{
	fprintf(out, "Usage: dlock %s [options]%s%s\n\n%c%s.\n%s%s", c->name, c->synopsis[0] != '\0' ? " " : "",
	    c->synopsis, c->summary[0] - 'a' + 'A', c->summary + 1, c->details[0] != '\0' ? "\n" : "", c->details);
	show_options(out, c->bit, false);
	if (all || c->bit == CMD_HELP)
		show_options(out, c->bit, true);
	else
		fprintf(out, "\nCommon options (--node, --json, --quiet and more): dlock %s --help all\n", c->name);
}

static void
show_dlock(FILE *out, bool all)
{
	size_t i;

	fputs("Usage: dlock COMMAND [options] ...\n\n"
	      "Distributed locks for scripts, cron jobs and deploys, kept in Redis.\n\nCommands:\n",
	    out);
	for (i = 0; i < command_count; i++) {
		char left[64];

		(void)snprintf(left, sizeof(left), "%s %s", commands[i].name, commands[i].synopsis);
		fprintf(out, "  %-34s%s\n", left, commands[i].summary);
	}
	if (all)
		show_options(out, CMD_ALL, false);
	show_options(out, CMD_ALL, true);
	fputs("\nDUR is 250ms, 30s, 5m, 2h, 1d, 1m30s, or a number of seconds.\n"
	      "URL is redis://[user:password@]host[:port][/db], rediss:// (TLS),\n"
	      "unix:///path[?db=N], /path, host[:port], redis+sentinel://h1,h2/service[/db]\n"
	      "or redis+cluster://h1,h2; for ZooKeeper zk://[user:password@]h1,h2[/path].\n",
	    out);
	if (!all)
		fputs("The options of a command: dlock COMMAND --help; of all: dlock --help all\n", out);
}

void
help_show(FILE *out, const struct command *command, bool all)
{
	if (command != NULL)
		show_command(out, command, all);
	else
		show_dlock(out, all);
	show_exit_statuses(out);
}

#ifdef STATIC_BINARY
#define LIBSSL_IS "linked statically"
#else
#define LIBSSL_IS "loaded when it is needed"
#endif

void
help_version(FILE *out)
{
	const char *library = tls_library();

	fputs("dlock " PACKAGE_VERSION
	      "\nservices: redis, rediss (TLS), unix, redis+sentinel, redis+cluster, zk, zks (TLS)\n",
	    out);
	if (library != NULL)
		fprintf(out, "TLS: %s, " LIBSSL_IS "\n", library);
	else
		fputs("TLS: no libssl was found\n", out);
}

int
cmd_help(struct invocation *inv, struct err *err)
{
	const bool all = inv->operands > 0 && strcmp(inv->operand[0], "all") == 0;
	const struct command *const command = inv->operands > 0 && !all ? command_find(inv->operand[0], err) : NULL;

	if (inv->operands > 0 && !all && command == NULL)
		return ST_USAGE;
	help_show(stdout, command, all);
	return (int)output_end_page(ST_OK, err);
}
