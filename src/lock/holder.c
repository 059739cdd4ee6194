/* SPDX-License-Identifier: MIT */
#include "lock/holder.h"

#include <string.h>

#include "base/text.h"

void
holder_describe(const struct holder *h, const char *unknown, struct text *text)
{
	if (h->owner[0] != '\0')
		text_add_shown(text, h->owner, strlen(h->owner));
	else
		text_addf(text, "%s", unknown);
	if (h->label[0] != '\0') {
		text_addf(text, " (");
		text_add_shown(text, h->label, strlen(h->label));
		text_addf(text, ")");
	}
}
