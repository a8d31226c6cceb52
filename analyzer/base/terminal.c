/* SPDX-License-Identifier: MIT */
#include "analyzer/base/terminal.h"

#include <ctype.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"

#define COLUMNS_MIN 40
#define WRAPPED_MIN 26 /* a wrapped column is no narrower */
#define GAP	    2

bool sl_terminal_rewrites(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

void sl_terminal_reading(const char *path, uint64_t done, uint64_t bytes)
{
	fputs("\r\033[K", stderr);
	if (done != UINT64_MAX && bytes)
		sl_escape_print(stderr, "reading %s  %llu %%", sl_paths_name(path), (unsigned long long)(100 * done / bytes));
}

struct sl_terminal sl_terminal_here(void)
{
	const char *no_colour = getenv("NO_COLOR"), *columns = getenv("COLUMNS"), *term = getenv("TERM");
	struct sl_terminal terminal = {.out = stdout, .columns = 80};
	struct winsize size;
	bool tty = isatty(STDOUT_FILENO);

	setlocale(LC_CTYPE, "");
	terminal.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	terminal.colour = tty && !(no_colour && *no_colour) && !(term && !strcmp(term, "dumb"));
	if (columns && atoi(columns) >= COLUMNS_MIN)
		terminal.columns = (unsigned)atoi(columns);
	else if (tty && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= COLUMNS_MIN)
		terminal.columns = size.ws_col;
	if (terminal.columns > SL_TERMINAL_COLUMNS_MAX)
		terminal.columns = SL_TERMINAL_COLUMNS_MAX;
	return terminal;
}

static bool begins(unsigned char c)
{
	return (c & 0xc0) != 0x80;
}

unsigned sl_terminal_width(const char *text, size_t bytes)
{
	unsigned columns = 0;

	for (size_t i = 0; i < bytes && text[i]; i++)
		columns += begins((unsigned char)text[i]);
	return columns;
}

/* True: a word that is a number ends there. */
static bool ends_number(const char *text, size_t at)
{
	size_t from = at;

	while (from && (isdigit((unsigned char)text[from - 1]) || text[from - 1] == '.'))
		from--;
	return from < at && (!from || strchr(" (", text[from - 1]));
}

size_t sl_terminal_fitting(const char *text, unsigned room)
{
	size_t at = 0, space = 0, part = 0;
	unsigned columns = 0;

	for (; text[at]; at++) {
		if (begins((unsigned char)text[at]) && ++columns > room)
			return space ?: part ?: at;
		if (text[at] == ' ' && at && text[at - 1] != ' ' &&
		    !(ends_number(text, at) && isalnum((unsigned char)text[at + 1])))
			space = at;
		if (strchr(",/", text[at]) && columns < room)
			part = at + 1;
	}
	return at;
}

static void put_bytes(const struct sl_terminal *to, enum sl_colour colour, const char *text, size_t bytes)
{
	static const char *const codes[] = {[SL_COLOUR_RED] = "\033[1;31m",
					    [SL_COLOUR_YELLOW] = "\033[1;33m",
					    [SL_COLOUR_GREEN] = "\033[1;32m",
					    [SL_COLOUR_PLACE] = "\033[36m",
					    [SL_COLOUR_DIM] = "\033[2m"};
	char *part = sl_memory_must(strndup(text, bytes));

	if (to->colour && colour)
		fputs(codes[colour], to->out);
	sl_escape_put(to->out, SL_ESCAPE_LINE, part);
	if (to->colour && colour)
		fputs("\033[0m", to->out);
	free(part);
}

static void put_spaces(const struct sl_terminal *to, unsigned count)
{
	fprintf(to->out, "%*s", (int)count, "");
}

void sl_terminal_put(const struct sl_terminal *to, enum sl_colour colour, const char *text)
{
	put_bytes(to, colour, text, strlen(text));
}

static void put_wrapped(const struct sl_terminal *to, unsigned at, unsigned hang, const char *text)
{
	for (;;) {
		size_t size = sl_terminal_fitting(text, at < to->columns ? to->columns - at : 1);

		put_bytes(to, SL_COLOUR_NONE, text, size);
		text += size;
		text += strspn(text, " ");
		fputc('\n', to->out);
		if (!*text)
			return;
		put_spaces(to, hang);
		at = hang;
	}
}

void sl_terminal_line(const struct sl_terminal *to, unsigned at, unsigned hang, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = sl_memory_vprint(format, arguments);
	va_end(arguments);
	put_wrapped(to, at, hang, text);
	free(text);
}

void sl_terminal_head(const struct sl_terminal *to, enum sl_colour colour, const char *word, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = sl_memory_vprint(format, arguments);
	va_end(arguments);
	sl_terminal_put(to, colour, word);
	fputs("   ", to->out);
	put_wrapped(to, (unsigned)strlen(word) + 3, 5, text);
	free(text);
}

/* ---- tables */

static void push(struct sl_cells *table, enum sl_colour colour, bool under, const char *format, va_list arguments)
{
	*SL_PUSH(&table->cell) = (struct sl_cell){.text = sl_memory_vprint(format, arguments), .colour = colour, .under = under};
}

void sl_cells_put(struct sl_cells *table, enum sl_colour colour, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	push(table, colour, false, format, arguments);
	va_end(arguments);
}

void sl_cells_under(struct sl_cells *table, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	push(table, SL_COLOUR_NONE, true, format, arguments);
	va_end(arguments);
}

struct layout {
	const struct sl_cells *table;
	const struct sl_terminal *to;
	unsigned indent, count, first, end; /* first, end: columns that are shown beside the first one */
	unsigned *width;
	unsigned below; /* 1: the last column stands below each row */
};

static void measure(struct layout *l)
{
	unsigned total = l->indent, c = 0, narrowest;

	for (size_t i = 0; i < l->table->cell.count; i++) {
		const struct sl_cell *cell = &l->table->cell.item[i];
		unsigned width = sl_terminal_width(cell->text, strlen(cell->text));

		if (cell->under)
			continue;
		l->width[c] = width > l->width[c] ? width : l->width[c];
		c = (c + 1) % l->count;
	}
	for (c = 0; c < l->count; c++)
		total += l->width[c] + (c ? GAP : 0);
	for (c = 0; c < l->count && total > l->to->columns; c++) {
		if (l->table->columns[c] != 'w')
			continue;
		narrowest = l->width[c] < WRAPPED_MIN ? l->width[c] : WRAPPED_MIN;
		narrowest = total - l->width[c] + narrowest < l->to->columns ? l->to->columns - (total - l->width[c]) : narrowest;
		total -= l->width[c] - narrowest;
		l->width[c] = narrowest;
	}
	l->below = c > 1 && total > l->to->columns && l->table->columns[c - 1] == 'w';
}

/* Prints a row from the texts that are left of its cells, as many lines as it takes. */
static void put_row(const struct layout *l, const struct sl_cell *row)
{
	const char **rest = sl_memory_must(calloc(l->count, sizeof(*rest)));
	bool more = true;

	for (unsigned c = 0; c < l->count; c++)
		rest[c] = row[c].text;
	for (bool first = true; more; first = false) {
		unsigned blanks = l->indent;

		more = false;
		for (unsigned c = 0; c < l->end; c = c ? c + 1 : l->first) {
			unsigned hang = first || 2 * row[c].hang > l->width[c] ? 0 : row[c].hang;
			size_t size = sl_terminal_fitting(rest[c], l->width[c] - hang);
			unsigned pad = l->width[c] - hang - sl_terminal_width(rest[c], size);

			blanks += hang + (l->table->columns[c] == 'r' ? pad : 0);
			if (size) {
				put_spaces(l->to, blanks);
				put_bytes(l->to, row[c].colour, rest[c], size);
				blanks = 0;
			}
			blanks += (l->table->columns[c] == 'r' ? 0 : pad) + GAP;
			rest[c] += size;
			rest[c] += strspn(rest[c], " ");
			more |= *rest[c] != 0;
		}
		fputc('\n', l->to->out);
	}
	free(rest);
}

static void put_under(const struct layout *l, const char *text)
{
	put_spaces(l->to, *text ? l->indent + GAP : 0);
	put_wrapped(l->to, l->indent + GAP, l->indent + 2 * GAP, text);
}

/* True: a row has text below a title of the columns that are shown. */
static bool has_text(const struct layout *l)
{
	const struct sl_cell *cell = l->table->cell.item;

	for (size_t i = 0, rows = 0; i < l->table->cell.count; i += cell[i].under ? 1 : l->count) {
		rows += !cell[i].under;
		for (unsigned c = l->first; c < l->end && rows > 1 && !cell[i].under; c++)
			if (*cell[i + c].text)
				return true;
	}
	return false;
}

void sl_cells_print(struct sl_cells *table, const struct sl_terminal *to, unsigned indent)
{
	struct layout l = {.table = table, .to = to, .indent = indent, .count = (unsigned)strlen(table->columns), .end = 1};

	l.width = sl_memory_must(calloc(l.count, sizeof(*l.width)));
	measure(&l);
	while (l.end < l.count - l.below) {
		unsigned used = indent + l.width[0];
		bool shown;

		for (l.first = l.end; l.end < l.count - l.below && (l.end == l.first || used + GAP + l.width[l.end] <= to->columns);
		     l.end++)
			used += GAP + l.width[l.end];
		shown = l.first == 1 || has_text(&l);
		for (size_t i = 0, step; i < table->cell.count; i += step) {
			step = table->cell.item[i].under ? 1 : l.count;
			if (shown && step > 1)
				put_row(&l, &table->cell.item[i]);
			if (l.end == l.count - l.below && (table->cell.item[i].under || l.below))
				put_under(&l, table->cell.item[i + step - 1].text);
		}
	}
	for (size_t i = 0; i < table->cell.count; i++)
		free(table->cell.item[i].text);
	SL_DROP(&table->cell);
	free(l.width);
}
