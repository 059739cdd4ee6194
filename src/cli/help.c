/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/layout.h"
#include "cli/output.h"
#include "net/tls.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

static void
show_option(const struct option_spec *spec)
{
	char left[64], letter[8] = "    ";
	struct text text = text_in(left, sizeof(left));

	if (spec->letter != 0)
		(void)snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
	text_addf(&text, "  %s--%s%s%s", letter, spec->name, spec->argument != NULL ? " " : "",
	    spec->argument != NULL ? spec->argument : "");
	if (text.length > 24)
		printf("%s\n%25s", left, "");
	else
		printf("%-25s", left);
	if (spec->kind == OPTION_NODE)
		printf("%s (%s)\n", spec->help, services[0]->default_url);
	else
		printf("%s\n", spec->help);
	if (spec->environment != NULL)
		printf("%25senvironment: %s\n", "", spec->environment);
}

/* The options that these commands use: the common ones, or the others. */
static void
show_options(unsigned int bits, bool common)
{
	const char *heading = common ? "\nCommon options:\n" : "\nOptions:\n";
	size_t i;

	for (i = 0; i < option_count; i++) {
		if ((option_specs[i].commands & bits) == 0 ||
		    ((option_specs[i].commands & CMD_SERVICE) == CMD_SERVICE) != common)
			continue;
		fputs(heading, stdout);
		heading = "";
		show_option(&option_specs[i]);
	}
}

static void
show_command(const struct command *c, bool all)
{
	printf("Usage: dlock %s [options]%s%s\n\n%c%s.\n%s%s", c->name, c->synopsis[0] != '\0' ? " " : "", c->synopsis,
	    c->summary[0] - 'a' + 'A', c->summary + 1, c->details[0] != '\0' ? "\n" : "", c->details);
	show_options(c->bit, false);
	if (all || c->bit == CMD_HELP)
		show_options(c->bit, true);
	else
		printf("\nCommon options (--node, --json, --quiet and more): dlock %s --help all\n", c->name);
}

static void
show_dlock(bool all)
{
	const struct service *const *s;
	size_t i;

	fputs("Usage: dlock COMMAND [options] ...\n\n"
	      "Distributed locks for scripts, cron jobs and deploys.\n\nCommands:\n",
	    stdout);
	for (i = 0; i < command_count; i++) {
		char left[64];

		(void)snprintf(left, sizeof(left), "%s %s", commands[i].name, commands[i].synopsis);
		printf("  %-34s%s\n", left, commands[i].summary);
	}
	if (all)
		show_options(CMD_ALL, false);
	show_options(CMD_ALL, true);
	fputs("\nDUR is 250ms, 30s, 5m, 2h, 1d, 1m30s, or a number of seconds.\n", stdout);
	for (s = services; *s != NULL; s++) {
		printf("URL, for %s:\n  ", (*s)->name);
		layout_wrap((*s)->forms, 2, 80);
	}
	if (!all)
		fputs("The options of a command: dlock COMMAND --help; of all: dlock --help all\n", stdout);
}

void
help_show(const struct command *command, bool all)
{
	if (command != NULL)
		show_command(command, all);
	else
		show_dlock(all);
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
	    stdout);
}

#ifdef STATIC_BINARY
#define LIBSSL_IS "linked statically"
#else
#define LIBSSL_IS "loaded when it is needed"
#endif

void
help_version(void)
{
	const char *library = tls_library();
	const struct service *const *s;

	fputs("dlock " PACKAGE_VERSION "\nservices:", stdout);
	for (s = services; *s != NULL; s++)
		printf("%s %s", s == services ? "" : ",", (*s)->name);
	if (library != NULL)
		printf("\nTLS: %s, " LIBSSL_IS "\n", library);
	else
		fputs("\nTLS: no libssl was found\n", stdout);
}

int
cmd_help(struct invocation *inv, struct err *err)
{
	const bool all = inv->operands > 0 && strcmp(inv->operand[0], "all") == 0;
	const struct command *const command = inv->operands > 0 && !all ? command_find(inv->operand[0]) : NULL;

	if (inv->operands > 0 && !all && command == NULL)
		return (int)command_unknown(inv->operand[0], err);
	help_show(command, all);
	return (int)output_end_page(ST_OK, err);
}
