/* SPDX-License-Identifier: MIT */
/*
 * dlock: locks for scripts, cron jobs and deploys across a fleet of machines.
 *
 * main takes the command line apart, runs the command, says what went wrong, and exits.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/output.h"
#include "run/signals.h"

static void
say(const char *line)
{
	fprintf(stderr, "dlock: %s\n", line);
}

/*
 * Occupy standard descriptors that were closed, so that no socket gets their numbers.  The placeholders can't be used in
 * the direction that matters, and the command finds them closed again.
 */
static void
occupy_standard_descriptors(void)
{
	int fd;

	for (fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}

static int
dispatch(struct invocation *inv, struct err *err)
{
	if (inv->options.verbose)
		inv->trace.say = say;
	inv->notice.say = say;
	if (inv->options.version)
		help_version(stdout);
	else if (inv->options.help)
		help_show(stdout, inv->command);
	else
		return inv->command->run(inv, err);
	return (int)output_flush(err);
}

int
main(int argc, char **argv)
{
	struct err err = { "" };
	struct invocation inv;
	int code;

	occupy_standard_descriptors();
	code = (int)invocation_parse(&inv, argc, argv, &err);
	signals_block_pipe(&inv.given_mask);
	if (code == ST_OK)
		code = dispatch(&inv, &err);
	if (err.text[0] != '\0' && !(code == ST_HELD && inv.options.quiet))
		say(err.text);
	if (code == ST_HELD && err.text[0] != '\0')
		code = inv.options.conflict_exit;
	invocation_free(&inv);
	return code;
}
