/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/output.h"
#include "net/tls.h"
#include "run/process.h"

static const char run_details[] = "If another holds the lock, COMMAND is not run and the exit status is 75; see\n"
				  "--wait.  The lease is renewed while COMMAND runs.  If that fails, COMMAND is\n"
				  "ended before the lease ends, and the exit status is 76.\n";

static const char acquire_details[] =
    "The lock is held until its lease ends or until it is released:\n"
    "    token=$(dlock acquire deploy) || exit\n"
    "    ./deploy.sh; dlock release deploy \"$token\"\n"
    "or, renewed in the background, until the script ends:\n"
    "    token=$(dlock acquire --keep $$ deploy) || exit\n"
    "-k, --on-lost, --exec-on-lost and --signal need --keep: COMMAND is then PID.\n"
    "SHELL is sh (also for bash, dash, ksh, zsh), the default, or fish.  eval of what\n"
    "--export prints fails if the lock was not acquired.\n";

#define TOKEN_DETAILS                                                                      \
	"TOKEN is the output of acquire; the default is DLOCK_TOKEN.  With - it is read\n" \
	"from standard input, which keeps it out of the list of processes.\n"              \
	"Exit status 1: TOKEN does not hold the lock, or no longer holds it.\n"

static const char renew_details[] =
    "The length is that of acquire, or --ttl.  A renewal makes no lease shorter.\n" TOKEN_DETAILS;

static const char status_details[] = "PATTERN has * for any characters, ? for one, [..] for one of these.  Without\n"
				     "operands all locks are shown.\n"
				     "COLUMNS: KEY STATE TTL OWNER LABEL HELD FENCE WAITING NODES, which are shown by\n"
				     "default, and USER HOST PID CLIENT TOKEN; with --all LAST OUTCOME TOOK SUCCESS.\n"
				     "Exit status for a single KEY: 0 if it is held, 1 if it is free.\n"
				     "With --waiters or --max-age: 0, or 1 if nobody waits, or a success is older.\n"
				     "With --failed: 1 if a lock is shown.\n";

static const char history_details[] = "Shows the last holders, the newest first: when, how long they held and waited,\n"
				      "and the OUTCOME: the exit status of COMMAND or the signal that ended it, lost,\n"
				      "max-run, released, expired (not released), broken or asked to end and by whom,\n"
				      "held (still).\n"
				      "Exit status: 0 if a holder is known for each KEY, else 1.\n";

static const char break_details[] = "Shows the holder, asks for confirmation at a terminal, and removes the lock\n"
				    "from all nodes if it still has that holder.  A dlock run whose lock is broken\n"
				    "ends its COMMAND and exits with 76.\n"
				    "With --ask the holder ends its COMMAND first, and then releases the lock.\n"
				    "dlock waits for that without a limit, unless --wait sets one.\n"
				    "Exit status: 0 if it was broken, or has ended, 1 if it was free, 75 if it is\n"
				    "still held.\n";

static const char doctor_details[] = "Checks each node, and acquires, renews and releases a test lock on it.\n"
				     "Exit status: 0 if all is well, 1 with warnings, 69 or 77 if too few nodes can\n"
				     "keep locks.\n";

static const char config_details[] = "Prints name, value and origin of each setting: option, environment VARIABLE,\n"
				     "FILE:LINE or default.  Passwords are hidden.\n";

const struct command commands[] = {
	{ "run", CMD_RUN, "KEY [--] COMMAND [ARG...]", "hold KEY while COMMAND runs", 2, -1, cmd_run, run_details },
	{ "acquire", CMD_ACQUIRE, "KEY", "acquire KEY and print its token", 1, 1, cmd_acquire, acquire_details },
	{ "renew", CMD_RENEW, "KEY [TOKEN]", "renew the lease for its full length", 1, 2, cmd_token, renew_details },
	{ "release", CMD_RELEASE, "KEY [TOKEN]", "release KEY", 1, 2, cmd_token, TOKEN_DETAILS },
	{ "status", CMD_STATUS, "[KEY|PATTERN...]", "show who holds which locks", 0, -1, cmd_status, status_details },
	{ "history", CMD_HISTORY, "KEY|PATTERN...", "show who held KEY before", 1, -1, cmd_history, history_details },
	{ "break", CMD_BREAK, "KEY", "take KEY away from its holder", 1, 1, cmd_break, break_details },
	{ "doctor", CMD_DOCTOR, "", "check whether the nodes can keep locks", 0, 0, cmd_doctor, doctor_details },
	{ "config", CMD_CONFIG, "", "show each setting, and where it comes from", 0, 0, cmd_config, config_details },
	{ "help", CMD_HELP, "[COMMAND]", "show help for dlock or a command", 0, 1, cmd_help, "" },
};

const size_t command_count = sizeof(commands) / sizeof(commands[0]);

const struct command *
command_find(const char *name)
{
	size_t i;

	for (i = 0; i < command_count; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* -- Help ------------------------------------------------------------------- */

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

/* The options that these commands use: the common ones, or the others. */
static void
show_options(unsigned int bits, bool common)
{
	const char *heading = common ? "\nCommon options:\n" : "\nOptions:\n";
	const struct option_spec *o;
	char left[64], letter[8];
	struct text text;

	for (o = option_specs; o < option_specs + option_count; o++) {
		if ((o->commands & bits) == 0 || ((o->commands & CMD_SERVICE) == CMD_SERVICE) != common)
			continue;
		fputs(heading, stdout);
		heading = "";
		text = text_in(left, sizeof(left));
		(void)snprintf(letter, sizeof(letter), o->letter != 0 ? "-%c, " : "    ", o->letter);
		text_addf(&text, "  %s--%s%s%s", letter, o->name, o->argument != NULL ? " " : "",
		    o->argument != NULL ? o->argument : "");
		if (text.length > 24)
			printf("%s\n%25s", left, "");
		else
			printf("%-25s", left);
		fputs(o->help, stdout);
		if (o->kind == OPTION_NODE)
			printf(" (%s)", services[0]->default_url);
		putchar('\n');
		if (o->environment != NULL)
			printf("%25senvironment: %s\n", "", o->environment);
	}
}

/* NULL: of dlock.  `all`: with the options that are common to all commands. */
static void
show_help(const struct command *c, bool all)
{
	const struct service *const *s;
	size_t i;

	if (c == NULL) {
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
	} else {
		printf("Usage: dlock %s [options]%s%s\n\n%c%s.\n%s%s", c->name, c->synopsis[0] != '\0' ? " " : "",
		    c->synopsis, c->summary[0] - 'a' + 'A', c->summary + 1, c->details[0] != '\0' ? "\n" : "",
		    c->details);
		show_options(c->bit, false);
		if (all || c->bit == CMD_HELP)
			show_options(c->bit, true);
		else
			printf("\nCommon options (--node, --json, --quiet and more): dlock %s --help all\n", c->name);
	}
	fputs("\nExit status:\n"
	      "  0    success; run: the exit status of COMMAND, 128+n if signal n ended it\n"
	      "  1    no: not the holder, not locked, warnings of doctor\n"
	      "  64   usage error\n"
	      "  69   no quorum: too few nodes reachable or fit to answer\n"
	      "  70   internal error, a bug in dlock\n"
	      "  71   system error on this host\n"
	      "  75   another holds the lock, or still held it after --wait (-E)\n"
	      "  76   the lock was lost while COMMAND ran, or somebody asked it to end\n"
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

enum status
cmd_help(struct invocation *inv, struct err *err)
{
	const struct command *command = inv->command;
	const struct service *const *s;
	const char *library;
	bool all = inv->options.help_all;

	if (inv->options.version) {
		library = tls_library();
		fputs("dlock " PACKAGE_VERSION "\nservices:", stdout);
		for (s = services; *s != NULL; s++)
			printf("%s %s", s == services ? "" : ",", (*s)->name);
		if (library != NULL)
			printf("\nTLS: %s, " LIBSSL_IS "\n", library);
		else
			fputs("\nTLS: no libssl was found\n", stdout);
		return output_end_page(ST_OK, err);
	}
	if (!inv->options.help) { /* the command help */
		all = inv->operands > 0 && strcmp(inv->operand[0], "all") == 0;
		command = inv->operands > 0 && !all ? command_find(inv->operand[0]) : NULL;
		if (inv->operands > 0 && !all && command == NULL)
			return command_unknown(inv->operand[0], err);
	}
	show_help(command, all);
	return output_end_page(ST_OK, err);
}

/* -- Completion ------------------------------------------------------------- */

enum {
	WHERE_MAX = 32 /* options that select the locks */
};

struct completion {
	struct words words;
	const struct option_spec *wanted; /* the current word is its value; NULL: none */
	char *where[WHERE_MAX + 1];
	int options;
};

/* The columns are the words in capitals behind COLUMNS in the help of status. */
static void
offer_columns(const char *stays, const char *value)
{
	static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *const comma = strrchr(value, ','), *const last = comma != NULL ? comma + 1 : value;
	const char *at = strstr(status_details, "COLUMNS:") + strlen("COLUMNS:");
	const bool lower = *last >= 'a' && *last <= 'z';
	size_t length, i;

	for (; *at != '.'; at += length + (length == 0)) {
		length = strspn(at, capitals);
		if (length == 0)
			continue;
		printf("%.*s", (int)(last - stays), stays);
		for (i = 0; i < length; i++)
			putchar(lower ? at[i] + ('a' - 'A') : at[i]);
		putchar('\n');
	}
}

/* The values of an option that begins at `value`, in the same word or in one of its own. */
static void
offer_value(const struct option_spec *spec, const char *word, const char *value)
{
	/* Those that are few, by blanks or |. */
	static const char *const few[] = { [OPTION_WAIT] = "forever",
		[OPTION_GUARD] = "auto",
		[OPTION_SIGNAL] = "HUP INT QUIT ABRT KILL USR1 USR2 ALRM TERM WINCH",
		[OPTION_ON_LOST] = "kill|warn",
		[OPTION_SHELL] = "sh fish",
		[OPTION_ALL] = NULL };
	const char *const argument = spec->argument != NULL ? spec->argument : "", *part = few[spec->kind];
	const int stays = (int)(value - word);
	int length;

	if (strcmp(argument, "FILE") == 0 || strcmp(argument, "DIR") == 0 ||
	    (spec->kind == OPTION_NODE && (*value == '/' || *value == '~')))
		puts("files");
	else if (strcmp(argument, "CMD") == 0)
		puts("programs");
	else if (spec->kind == OPTION_PID)
		printf("values\n%.*s%ld\n", stays, word, (long)process_caller());
	else if (strcmp(argument, "COLUMNS") == 0) {
		puts("list");
		offer_columns(word, value);
	} else {
		puts("values");
		for (; part != NULL && *part != '\0'; part += length + (part[length] != '\0')) {
			length = (int)strcspn(part, " |");
			printf("%.*s%s%.*s\n", stays, word, spec->kind == OPTION_SIGNAL && *value == 'S' ? "SIG" : "",
			    length, part);
		}
	}
}

/* Offer options of the command, which may be behind the cursor. */
static void
offer_options(const struct words *before, char *const *after)
{
	struct words w = { .next = after };
	const struct command *command;
	const struct option_spec *o;

	while (!before->named && !w.named && words_next(&w) != WORD_END)
		;
	command = before->named ? before->command : w.command;
	puts("options");
	for (o = option_specs; o < option_specs + option_count; o++) {
		if ((o->commands & (command != NULL ? command->bit : CMD_ALL)) == 0)
			continue;
		printf("--%s\t%s\n", o->name, o->help);
		if (o->letter != 0)
			printf("-%c\t%s\n", o->letter, o->help);
	}
}

static void
offer_commands(void)
{
	size_t i;

	puts("commands");
	for (i = 0; i < command_count; i++)
		printf("%s\t%s\n", commands[i].name, commands[i].summary);
}

/* Offer the keys of locks that are held, for history of all that have one: dlock status prints them within a second. */
static void
offer_keys(struct completion *c)
{
	static char dlock[] = "dlock", status[] = "status", column[] = "--output=KEY", plain[] = "--no-headings",
		    all[] = "--all", timeout[] = "--node-timeout=200ms";
	const bool history = c->words.command->bit == CMD_HISTORY;
	char *argv[WHERE_MAX + 7] = { dlock, status, column, plain, timeout, history ? all : timeout };

	puts("keys");
	if (fflush(stdout) != 0)
		return;
	memcpy(argv + 6, c->where, sizeof(c->where));
	(void)alarm(1);
	(void)execv("/proc/self/exe", argv);
}

/*
 * Look at the words before the cursor, and keep the options that select the locks.  False: it is behind the first word
 * of COMMAND, which has this index.
 */
static bool
look_before(struct completion *c, char *const *words, int *command)
{
	const char *const home = getenv("HOME"), *value;
	const struct option_spec *spec;
	enum word kind;
	bool tilde;

	c->words.next = words;
	while ((kind = words_next(&c->words)) != WORD_END) {
		if (kind == WORD_LACKING)
			c->wanted = c->words.spec;
		else if (kind == WORD_OPTION && c->options < WHERE_MAX) {
			spec = c->words.spec;
			value = c->words.value;
			tilde = value != NULL && strncmp(value, "~/", 2) == 0 && home != NULL;
			if ((spec->kind == OPTION_NODE || strcmp(spec->name, "prefix") == 0 ||
				strcmp(spec->name, "config") == 0 || strcmp(spec->name, "sentinel-user") == 0 ||
				strstr(spec->name, "password-file") != NULL) &&
			    asprintf(&c->where[c->options], "--%s=%s%s", spec->name, tilde ? home : "",
				value + tilde) >= 0)
				c->options++;
		} else if ((kind == WORD_OPERAND && c->words.operands == 2 && c->words.command->bit == CMD_RUN) ||
		    kind == WORD_MISPLACED) {
			*command = (int)(c->words.next - words) - 1;
			return false;
		}
	}
	return true;
}

void
command_complete(char **argv)
{
	struct completion c = { .wanted = NULL };
	char **const words = argv + 1, *word;
	const char *equals;
	int at = 0, command;

	if (argv[0] == NULL)
		return;
	while (at < strtol(argv[0], NULL, 10) && words[at] != NULL)
		at++;
	word = words[at];
	if (word == NULL)
		return;
	words[at] = NULL;
	if (!look_before(&c, words, &command))
		printf("command %d\n", command);
	else if (c.wanted != NULL)
		offer_value(c.wanted, word, word);
	else if (!c.words.over && strncmp(word, "--", 2) == 0 && (equals = strchr(word, '=')) != NULL) {
		c.wanted = option_find(word + 2, (size_t)(equals - word - 2));
		if (c.wanted != NULL)
			offer_value(c.wanted, word, equals + 1);
	} else if (!c.words.over && word[0] == '-')
		offer_options(&c.words, words + at + 1);
	else if (!c.words.named)
		offer_commands();
	else if (c.words.command == NULL)
		return;
	else if (c.words.operands == 1 && c.words.command->bit == CMD_RUN)
		printf("command %d\n", at);
	else if (c.words.operands == 0 || strstr(c.words.command->synopsis, "...") != NULL) {
		if (strncmp(c.words.command->synopsis, "KEY", 3) == 0 ||
		    strncmp(c.words.command->synopsis, "[KEY", 4) == 0)
			offer_keys(&c);
		else if (strcmp(c.words.command->synopsis, "[COMMAND]") == 0)
			offer_commands();
	}
}
