/* SPDX-License-Identifier: MIT */
#include "cli/layout.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/output.h"

enum {
	GAP = 2,	  /* between columns */
	DOTS = 2,	  /* the width of what stands for a part that is left out */
	LEAST_TEXT = 10,  /* to which a text is shortened before columns without a rank are dropped */
	LEAST_OWNER = 18, /* the same for an owner: room for a PID of seven digits, and something of user and host */
	LEAST_WRAPPED = 8 /* room for a text that is wrapped */
};

struct layout_cell {
	char *text;
	const char *colour;
};

/* -- Shortening ------------------------------------------------------------- */

/* A text as pieces that are shown or left out: a character with those that combine with it, or an escape. */
struct pieces {
	size_t count;
	uint32_t at[LAYOUT_CELL_MAX + 1]; /* where each begins; at[count]: the end */
	uint8_t width[LAYOUT_CELL_MAX];	  /* at most 4, as of \x1b */
	bool shown[LAYOUT_CELL_MAX];
	uint16_t mark[LAYOUT_CELL_MAX]; /* pieces that make the text differ from another one */
	size_t marks;
	size_t taken; /* columns of what is shown and of the dots */
};

static void
split(const char *text, struct pieces *p)
{
	size_t bytes, width, at = 0;

	memset(p->shown, false, sizeof(p->shown));
	p->marks = 0;
	p->taken = DOTS;
	for (p->count = 0; text[at] != '\0' && p->count < LAYOUT_CELL_MAX; p->count++, at += bytes) {
		if (text[at] == '\\')
			bytes = width = strnlen(text + at, text[at + 1] == 'x' ? 4 : 2);
		else if ((bytes = text_fitting(text + at, 1, &width)) == 0)
			bytes = text_fitting(text + at, 2, &width);
		p->at[p->count] = (uint32_t)at;
		p->width[p->count] = (uint8_t)width;
	}
	p->at[p->count] = (uint32_t)at;
}

/* Keep a piece if there is room for it. */
static void
keep(struct pieces *p, size_t i, size_t most)
{
	bool before, after;
	size_t taken;

	if (i >= p->count || p->shown[i])
		return;
	before = i == 0 || p->shown[i - 1];
	after = i + 1 == p->count || p->shown[i + 1];
	taken = p->taken + p->width[i] + DOTS - (before ? DOTS : 0) - (after ? DOTS : 0);
	if (taken > most)
		return;
	p->taken = taken;
	p->shown[i] = true;
}

/* Mark the piece by which the part of a text from `from` on differs from another text, unless it is shown anyway. */
static void
mark(struct pieces *p, size_t from, const char *part, const char *other)
{
	size_t same = 0, i = p->count > 0 ? p->count - 1 : 0;

	while (part[same] != '\0' && part[same] == other[same])
		same++;
	if (part[same] == other[same])
		return;
	while (p->at[i] > from + same)
		i--;
	if (p->shown[i])
		return;
	for (same = 0; same < p->marks && p->mark[same] != i; same++)
		;
	p->mark[same] = (uint16_t)i;
	p->marks = same == p->marks ? same + 1 : p->marks;
}

static const char *
host_of(const char *owner)
{
	const char *const at = strrchr(owner, '@');

	return at != NULL ? at + 1 : owner;
}

/* Keep a PID, what distinguishes a cell from others, the begin and the end, and as much as possible around these. */
static void
shorten(struct pieces *p, const struct layout *l, size_t cell, size_t most)
{
	const size_t columns = (size_t)l->columns;
	const struct layout_column *const column = &l->column[cell % columns];
	const bool owner = column->kind == LAYOUT_OWNER;
	const char *const text = l->cell[cell].text, *const host = host_of(text), *const colon = strrchr(text, ':'),
			  *other;
	size_t i, end, distance, width;

	split(text, p);
	for (i = p->count; owner && colon != NULL && i-- > 0 && p->at[i] >= (size_t)(colon - text);)
		keep(p, i, most);
	/* The others of its column, as far as they are in memory. */
	for (i = cell % columns; i < l->cells; i += columns) {
		other = l->cell[i].text;
		if (strcmp(other, column->name) == 0) /* its heading */
			continue;
		mark(p, 0, text, other);
		if (owner)
			mark(p, (size_t)(host - text), host, host_of(other));
	}
	for (i = 0; i < p->marks; i++)
		keep(p, p->mark[i], most);
	for (distance = 0; distance < p->count; distance++) {
		keep(p, distance, most);
		keep(p, p->count - 1 - distance, most);
		for (i = 0; i < p->marks; i++) {
			keep(p, p->mark[i] - distance, most);
			keep(p, p->mark[i] + distance, most);
		}
	}
	for (i = 0; i < p->count; i = end + 1) { /* a part that is as short as the dots */
		for (end = i, width = 0; end < p->count && !p->shown[end]; end++)
			width += p->width[end];
		memset(p->shown + i, width <= DOTS, end - i);
	}
}

/* Print a cell in at most `most` columns; returns the number of columns. */
static size_t
print_cell(const struct layout *l, size_t cell, size_t most)
{
	const struct layout_cell *const c = &l->cell[cell];
	size_t i, columns = text_columns(c->text);
	struct pieces p;

	fputs(c->colour, l->out);
	if (columns <= most)
		fputs(c->text, l->out);
	else {
		shorten(&p, l, cell, most);
		for (i = 0, columns = 0; i < p.count; i++) {
			if (p.shown[i]) {
				columns += p.width[i];
				fprintf(l->out, "%.*s", (int)(p.at[i + 1] - p.at[i]), c->text + p.at[i]);
			} else if (i == 0 || p.shown[i - 1]) {
				columns += DOTS;
				fputs("..", l->out);
			}
		}
	}
	fputs(c->colour[0] != '\0' ? COLOUR_END : "", l->out);
	return columns;
}

/* -- Widths ----------------------------------------------------------------- */

/* Make columns as wide as their cells; those of a later block are not narrower than in the one before. */
static void
fit_to_content(struct layout *l)
{
	size_t i, width;

	for (i = 0; i < l->cells; i++) {
		size_t *const column = &l->widths[i % (size_t)l->columns];

		width = text_columns(l->cell[i].text);
		*column = width > *column ? width : *column;
	}
}

static size_t
total_width(const struct layout *l)
{
	size_t total = 0, gap = 0;
	int c;

	for (c = 0; c < l->columns; c++) {
		if (l->dropped[c])
			continue;
		total += gap + l->widths[c];
		gap = l->sentence ? 0 : GAP;
	}
	return total;
}

/* The widest column that may be shortened further; -1 if there is none. */
static int
widest(const struct layout *l)
{
	int c, best = -1;

	for (c = 0; c < l->columns; c++) {
		if (!l->dropped[c] && l->column[c].kind != LAYOUT_WHOLE && l->column[c].kind != LAYOUT_LEAD &&
		    l->widths[c] > (l->column[c].kind == LAYOUT_TEXT ? LEAST_TEXT : LEAST_OWNER) &&
		    (best < 0 || l->widths[c] > l->widths[best]))
			best = c;
	}
	return best;
}

/* The next column to drop, of those with a rank or of the others; -1 if there is none, or if it is the only one. */
static int
dispensable(const struct layout *l, bool ranked)
{
	int c, best = -1, left = 0;

	for (c = 0; c < l->columns; c++) {
		left += l->dropped[c] ? 0 : 1;
		if (!l->dropped[c] && (l->column[c].rank > 0) == ranked &&
		    (best < 0 || !ranked || l->column[c].rank < l->column[best].rank))
			best = c;
	}
	return left > 1 ? best : -1;
}

static void
fit_to_terminal(struct layout *l)
{
	int c;

	while (total_width(l) > l->width && (c = dispensable(l, true)) >= 0)
		l->dropped[c] = true;
	for (;;) {
		while (total_width(l) > l->width && (c = widest(l)) >= 0)
			l->widths[c]--;
		if (total_width(l) <= l->width || (c = dispensable(l, false)) < 0)
			break;
		l->dropped[c] = true;
		if (c > 0 && l->column[c - 1].kind == LAYOUT_LEAD)
			l->dropped[c - 1] = true;
		fit_to_content(l);
	}
	for (c = 0; c < l->columns && total_width(l) > l->width; c++)
		l->widths[c] = l->width; /* the only one */
}

/* -- Rows ------------------------------------------------------------------- */

/* Fit and print the rows so far. */
static void
print_block(struct layout *l)
{
	size_t i, taken;
	int c, last = 0;

	for (c = 0; c < l->columns && !l->begun; c++) {
		l->widths[c] = 0;
		l->dropped[c] = false;
	}
	fit_to_content(l);
	if (l->width > 0)
		fit_to_terminal(l);
	l->begun = true;
	for (c = 0; c < l->columns; c++)
		last = l->dropped[c] ? last : c;
	for (i = 0; i < l->cells; i++) {
		c = (int)(i % (size_t)l->columns);
		if (!l->dropped[c]) {
			taken = print_cell(l, i, l->widths[c]);
			if (c < last && !l->sentence)
				fprintf(l->out, "%*s", (int)(l->widths[c] - taken) + GAP, "");
		}
		if (c == l->columns - 1)
			fputs(l->line_end, l->out);
	}
	while (l->cells > 0)
		free(l->cell[--l->cells].text);
}

enum status
layout_add(struct layout *l, const char *text, const char *colour, struct err *err)
{
	const size_t room = (size_t)l->columns * LAYOUT_ROWS;
	struct layout_cell cell = { NULL, colour };

	if (l->cell == NULL)
		l->cell = malloc(room * sizeof(*l->cell));
	if (l->cell != NULL && l->cells == room)
		print_block(l);
	cell.text = strdup(text[0] != '\0' || l->sentence ? text : "-");
	if (l->cell == NULL || cell.text == NULL) {
		free(cell.text);
		return err_set(err, ST_SYSTEM, OUT_OF_MEMORY);
	}
	l->cell[l->cells++] = cell;
	return ST_OK;
}

void
layout_end(struct layout *l)
{
	if (l->cells > 0)
		print_block(l);
	layout_free(l);
}

void
layout_free(struct layout *l)
{
	while (l->cells > 0)
		free(l->cell[--l->cells].text);
	free(l->cell);
	l->cell = NULL;
	l->begun = false;
}

/* -- Wrapping --------------------------------------------------------------- */

void
layout_wrap(const char *text, size_t from, size_t width)
{
	const size_t room = width > from + LEAST_WRAPPED ? width - from : SIZE_MAX;
	size_t at = 0, length, fitting, taken;

	while (*text != '\0') {
		const size_t space = at > 0 ? 1 : 0;

		length = strcspn(text, " ");
		fitting = text_fitting(text, at + space < room ? room - at - space : 0, &taken);
		if (fitting < length && at > 0) {
			printf("\n%*s", (int)from, "");
			at = 0;
			continue;
		}
		length = fitting < length ? fitting : length; /* a word that is too long for a line */
		printf("%s%.*s", space > 0 ? " " : "", (int)length, text);
		at += space + text_columns(text) - text_columns(text + length);
		text += length;
		text += *text == ' ';
	}
	putchar('\n');
}
