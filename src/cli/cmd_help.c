/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/output.h"

int
cmd_help(struct invocation *inv, struct err *err)
{
	const struct command *command = NULL;
	char shown[100];

	if (inv->operands > 0) {
		command = command_find(inv->operand[0]);
		if (command == NULL)
			return (int)err_set(err, ST_USAGE, "unknown command '%s'; see dlock --help",
			    text_show(inv->operand[0], shown, sizeof(shown)));
	}
	help_show(stdout, command);
	return (int)output_flush(err);
}
