/* SPDX-License-Identifier: MIT */
/*
 * The document on a terminal: one verdict open, in 24 lines, its sentences in 80 columns at most.  A longer one is laid out again
 * with fewer rows and fewer other verdicts.  Then these go, in this order: notes, a second change that was tried, blank lines from
 * the last one on, the path of the page.  Longer than other files: lines, tables and grids share the page's columns and its door
 * for text.
 */
#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/spark.h"
#include "analyzer/base/terminal.h"
#include "analyzer/faces/faces.h"

#define TEXT	    9 /* column of the sentences behind a label */
#define ROWS	    6
#define ALSO	    3
#define ALSO_SOURCE 24	/* a longer line of source leaves no room for what is said of it */
#define LITTLE	    200 /* a row with less than one of so many parts of the total reads 0.00 */
#define BAR	    20
#define SPARK	    14
#define MARK_SPACE  2
#define MORE_SPACE  16 /* "  12 more: --all" */
#define BLANKS	    3  /* of a verdict: before its labels, table and commands */
#define LEVELS	    (7 + BLANKS)

struct page {
	FILE *out;
	const struct sl_face_style *style;
	unsigned columns, wide;	     /* of a sentence; of what would be cut: places, source text, commands */
	unsigned rows, also, blanks; /* blanks: lines that may stay empty */
	bool notes, second;	     /* second: more than one change that was tried */
};

static const char *const red = "\033[1;31m", *const yellow = "\033[1;33m", *const green = "\033[1;32m", *const cyan = "\033[36m",
			 *const dim = "\033[2m";

static unsigned width_of(const char *text)
{
	return sl_terminal_width(text, strlen(text));
}

static void replace_wide(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++)
		if (!((unsigned char)*at & 0x80) || ((unsigned char)*at & 0x40))
			*to++ = (char)(*at & 0x80 ? '?' : *at);
	*to = 0;
}

/* Prints a part of a text so that it neither controls the terminal nor ends a block of code. */
static void put_part(struct page *page, const char *text, size_t bytes, const char *colour)
{
	char *part = sl_memory_must(strndup(text, bytes));

	if (page->style->ascii)
		replace_wide(part);
	for (char *at = page->style->fenced ? strchr(part, '`') : NULL; at; at = strchr(at, '`'))
		*at = '\'';
	if (page->style->colour && colour)
		fputs(colour, page->out);
	sl_escape_put(page->out, SL_ESCAPE_LINE, part);
	if (page->style->colour && colour)
		fputs("\033[0m", page->out);
	free(part);
}

static void put(struct page *page, const char *text)
{
	put_part(page, text, strlen(text), NULL);
}

static void put_spaces(struct page *page, unsigned count)
{
	while (count--)
		fputc(' ', page->out);
}

static void put_blank(struct page *page)
{
	if (!page->blanks)
		return;
	page->blanks--;
	fputc('\n', page->out);
}

/* Prints the text from column `column` on, and goes on in further lines at `hang`. */
static unsigned put_wrapped(struct page *page, const char *text, unsigned column, unsigned hang)
{
	for (;;) {
		size_t size = sl_terminal_fitting(text, column < page->columns ? page->columns - column : 1);

		put_part(page, text, size, NULL);
		column += sl_terminal_width(text, size);
		text += size;
		text += strspn(text, " ");
		if (!*text)
			return column;
		fputc('\n', page->out);
		put_spaces(page, hang);
		column = hang;
	}
}

/* Prints as much of a text as fits, with an ellipsis where it is cut. */
static unsigned put_cut(struct page *page, const char *text, unsigned room)
{
	unsigned width = width_of(text), columns = 0;
	size_t at = 0;

	if (width <= room) {
		put(page, text);
		return width;
	}
	for (; text[at] && columns + 1 < room; columns++)
		for (at++; ((unsigned char)text[at] & 0xc0) == 0x80; at++)
			;
	put_part(page, text, at, NULL);
	put(page, page->style->ascii ? "~" : "…");
	return columns + 1;
}

/* A list loses whole items: half of a place has no line number. */
static void put_list(struct page *page, const char *text, unsigned room)
{
	size_t keep = 0;

	for (const char *at = width_of(text) > room ? strstr(text, ", ") : NULL; at; at = strstr(at + 2, ", "))
		if (sl_terminal_width(text, (size_t)(at - text)) + 2 <= room)
			keep = (size_t)(at - text);
	if (!keep) {
		put_cut(page, text, room);
		return;
	}
	put_part(page, text, keep, NULL);
	put(page, page->style->ascii ? " ~" : " …");
}

static void put_title(struct page *page, const struct sl_answers *answers)
{
	unsigned left = width_of(answers->title ?: ""), right = width_of(answers->right ?: "");

	put_wrapped(page, answers->title ?: "", 0, 4);
	if (right && left + 2 + right <= page->columns)
		put_spaces(page, page->columns - left - right);
	else if (right)
		fputs("\n    ", page->out);
	if (right)
		put(page, answers->right);
	fputc('\n', page->out);
	for (size_t i = 0; i < answers->under.count; i++) {
		put_wrapped(page, answers->under.item[i], 0, 4);
		fputc('\n', page->out);
	}
}

static const char *colour_of(enum sl_word word)
{
	static const char *const *const colours[] = {&red, &yellow, &green};

	return *colours[sl_answer_tone(word)];
}

static void put_head(struct page *page, const struct sl_answer *answer)
{
	const char *word = sl_answer_word(answer->word);
	unsigned column;

	put_part(page, word, strlen(word), colour_of(answer->word));
	fputs("   ", page->out);
	column = put_wrapped(page, answer->headline, width_of(word) + 3, 5) + 2;
	if (page->style->colour && answer->id && column + width_of(answer->id) <= page->columns) { /* for `explain` */
		put_spaces(page, 2);
		put_part(page, answer->id, strlen(answer->id), dim);
	}
	fputc('\n', page->out);
}

/* "train.py:79", "program+0xa74a" */
static const char *place_of(char *out, size_t size, const struct sl_answer_line *line)
{
	if (line->file && line->line)
		snprintf(out, size, "%s:%u", line->file, line->line);
	else
		snprintf(out, size, "%s", line->file ?: line->function ?: "?");
	return out;
}

static void put_place(struct page *page, const struct sl_answer_line *line)
{
	char place[512];
	struct utsname host;
	bool link = page->style->colour && line->path && *line->path == '/';

	place_of(place, sizeof(place), line);
	if (link) {
		uname(&host);
		fputs("\033]8;;file://", page->out);
		sl_escape_address(page->out, host.nodename, "._-");
		sl_escape_address(page->out, line->path, "/._-");
		fprintf(page->out, "#%u\033\\", line->line);
	}
	put_part(page, place, strlen(place), cyan);
	if (link)
		fputs("\033]8;;\033\\", page->out);
}

static void put_stack(struct page *page, const struct sl_answer *answer)
{
	unsigned widest = 0;
	char place[512];

	for (unsigned i = 0; i < answer->frames; i++) {
		unsigned width = width_of(place_of(place, sizeof(place), &answer->stack[i]));

		widest = width > widest ? width : widest;
	}
	if (answer->frames)
		put_blank(page);
	for (unsigned i = 0; i < answer->frames; i++) {
		const struct sl_answer_line *line = &answer->stack[i];
		const char *text = line->source ?: line->file && line->function ? line->function : "";
		unsigned width = width_of(place_of(place, sizeof(place), line)), indent = widest + 4 + 2 * i;
		unsigned mark = line->mark ? width_of(line->mark) + 3 : 0, column = 2 + width;

		fputs("  ", page->out);
		put_place(page, line);
		if (*text && indent + 8 + mark < page->wide) {
			put_spaces(page, indent - column);
			column = indent + put_cut(page, text, page->wide - indent - (mark ? mark + MARK_SPACE : 0));
		}
		if (mark) {
			put_spaces(page, column + MARK_SPACE + mark <= page->columns ? page->columns - column - mark : MARK_SPACE);
			fputs("<- ", page->out);
			put_part(page, line->mark, strlen(line->mark), colour_of(answer->word));
		}
		fputc('\n', page->out);
	}
}

/* A note, what is open, and a sentence that begins with a line break stand on a line of their own. */
static void put_label(struct page *page, const struct sl_answer *answer, enum sl_said_as label)
{
	const char *name = sl_answer_label(label);
	unsigned column = TEXT;

	if (!answer->label[label].count)
		return;
	fputs("  ", page->out);
	put_part(page, name, strlen(name), label == SL_LABEL_FIX ? green : dim);
	put_spaces(page, TEXT - 2 - width_of(name));
	for (size_t i = 0; i < answer->label[label].count; i++) {
		const char *text = answer->label[label].item[i];
		bool own = *text == '\n' || label == SL_LABEL_NOTE || label == SL_LABEL_OPEN;
		size_t first;

		text += *text == '\n';
		first = sl_terminal_fitting(text, column + 1 < page->columns ? page->columns - column - 1 : 1);
		if (i && *answer->label[label].item[i] == '\n' && label == SL_LABEL_TRIED && !page->second)
			break;
		if (i && (own || (text[first] && text[first] != ' '))) { /* "58 more" does not fit, nor is it cut */
			fputc('\n', page->out);
			put_spaces(page, TEXT);
			column = TEXT;
		} else if (i) {
			fputc(' ', page->out);
			column++;
		}
		column = put_wrapped(page, text, column, TEXT);
	}
	fputc('\n', page->out);
}

static void put_labels(struct page *page, const struct sl_answer *answer)
{
	bool any = false;

	for (enum sl_said_as label = 0; label < SL_LABEL_COUNT; label++) {
		if (!page->notes && (label == SL_LABEL_NOTE || label == SL_LABEL_LESS || label == SL_LABEL_RAN))
			continue;
		if (!any && answer->label[label].count)
			put_blank(page);
		any |= answer->label[label].count > 0;
		put_label(page, answer, label);
	}
}

/*
 * The rows as they are shown, and their numbers behind that of the total: beyond page->rows those with a bar are one row, `others`,
 * which is not larger than the largest.
 */
static void take_rows(struct sl_answer_table *shown, struct sl_answer_number *numbers, const struct page *page,
		      const struct sl_answer_table *table)
{
	struct sl_answer_number *all = sl_memory_must(calloc(table->row.count + 1, sizeof(*all))), rest = {0};
	unsigned barred = 0, count = 0;
	uint64_t others = 0, left = 0, max_bytes = 0;

	*shown = (struct sl_answer_table){.total = table->total, .moment = table->moment};
	sl_answer_numbers(table, all);
	numbers[0] = all[0];
	for (size_t i = 0; i < table->row.count; i++)
		if (!table->row.item[i].bare && !table->row.item[i].fixed) {
			max_bytes = table->row.item[i].bytes > max_bytes ? table->row.item[i].bytes : max_bytes;
			left += table->row.item[i].bytes;
			count++;
		}
	for (size_t i = 0; i < table->row.count; i++) {
		const struct sl_answer_row *row = &table->row.item[i];
		bool fixed = row->bare || row->fixed;

		if (fixed || ((barred < page->rows || left > max_bytes) && row->bytes * LITTLE >= table->total)) {
			*SL_PUSH(&shown->row) = *row;
			numbers[shown->row.count] = all[i + 1];
		} else {
			others += row->bytes;
			sl_answer_number_add(&rest, &all[i + 1]);
		}
		if (fixed)
			continue;
		left -= row->bytes;
		if (++barred == count && others) {
			*SL_PUSH(&shown->row) = (struct sl_answer_row){.bytes = others, .name = "others"};
			numbers[shown->row.count] = rest;
		}
	}
	free(all);
}

static void put_left(struct page *page, const char *text, unsigned columns)
{
	unsigned width = width_of(text);

	put(page, text);
	put_spaces(page, columns > width ? columns - width : 0);
}

static void put_right(struct page *page, const char *text, unsigned columns)
{
	unsigned width = width_of(text);

	put_spaces(page, columns > width ? columns - width : 0);
	put(page, text);
}

static void put_bar(struct page *page, uint64_t bytes, uint64_t max_bytes, bool padded)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned cells = max_bytes ? (unsigned)((double)bytes / (double)max_bytes * BAR * 8 + 0.5) : 0, width = 0;

	for (; width < cells / 8; width++)
		fputs(page->style->ascii ? "=" : "█", page->out); /* ##[ is a command of some CI systems */
	if (cells % 8 && !page->style->ascii)
		fputs(eighths[cells % 8], page->out), width++;
	put_spaces(page, padded ? BAR - width : 0);
}

/* True: 0.00 */
static bool is_nothing(const struct sl_answer_number *number)
{
	return !number->text[strspn(number->text, "0.")];
}

static void put_table(struct page *page, const struct sl_answer *answer)
{
	struct sl_answer_table shown;
	struct sl_answer_number *numbers;
	unsigned names = 0, digits;
	uint64_t max_bytes = 0, unit;
	char spark[4 * SPARK + 1];

	if (!answer->table.row.count)
		return;
	numbers = sl_memory_must(calloc(answer->table.row.count + 2, sizeof(*numbers)));
	take_rows(&shown, numbers, page, &answer->table);
	digits = (unsigned)strlen(numbers[0].text);
	for (size_t i = 0; i < shown.row.count; i++) {
		const struct sl_answer_row *row = &shown.row.item[i];

		if (is_nothing(&numbers[i + 1]))
			continue;
		names = width_of(row->name) > names ? width_of(row->name) : names;
		max_bytes = !row->bare && row->bytes > max_bytes ? row->bytes : max_bytes;
	}
	names = names < 11 ? 11 : names;
	put_blank(page);
	fputs("  ", page->out);
	put(page, numbers[0].text);
	fputs("  ", page->out);
	put(page, sl_answer_unit(shown.total, &unit));
	fputc(' ', page->out);
	put(page, shown.moment ?: "");
	if (answer->table.course.count) {
		uint64_t course[SPARK] = {0};
		unsigned count = answer->table.course.count < SPARK ? (unsigned)answer->table.course.count : SPARK;

		for (size_t i = 0; i < answer->table.course.count; i++) {
			uint64_t *at = &course[i * count / answer->table.course.count];

			*at = answer->table.course.item[i] > *at ? answer->table.course.item[i] : *at;
		}
		sl_spark(spark, sizeof(spark), course, count, page->style->ascii);
		fputs("   ", page->out);
		put(page, spark);
	}
	fputc('\n', page->out);
	for (size_t i = 0; i < shown.row.count; i++) {
		const struct sl_answer_row *row = &shown.row.item[i];
		unsigned column = 2 + digits + 2 + names + 2;
		bool barred = column + BAR + 20 <= page->columns;

		if (is_nothing(&numbers[i + 1]))
			continue;
		put_spaces(page, 2 + digits - width_of(numbers[i + 1].text));
		put(page, numbers[i + 1].text);
		fputs("  ", page->out);
		put(page, row->name);
		if (!row->bare || row->text)
			put_spaces(page, names + 2 - width_of(row->name));
		if (barred && (!row->bare || row->text)) {
			put_bar(page, row->bare ? 0 : row->bytes, max_bytes, row->text);
			column += BAR;
		}
		if (row->text) {
			fputs("  ", page->out);
			put_list(page, row->text, page->wide > column + 2 ? page->wide - column - 2 : 1);
		}
		fputc('\n', page->out);
	}
	free(numbers);
	SL_DROP(&shown.row);
}

static void put_grid(struct page *page, const struct sl_answer_grid *grid)
{
	uint64_t max_bytes = 0, unit;
	unsigned corner = width_of(grid->corner ?: "");
	int digits;

	if (!grid->rows)
		return;
	for (unsigned r = 0; r < grid->rows; r++) {
		for (size_t i = 0; i < grid->row[r].bytes.count; i++)
			if (grid->row[r].bytes.item[i] != UINT64_MAX && grid->row[r].bytes.item[i] > max_bytes)
				max_bytes = grid->row[r].bytes.item[i];
		corner = width_of(grid->row[r].name) > corner ? width_of(grid->row[r].name) : corner;
	}
	const char *name = grid->counts ? "" : sl_answer_unit(max_bytes, &unit);

	unit = grid->counts ? 1 : unit;
	digits = !grid->counts && (double)max_bytes / (double)unit < 99.95 ? 2 : 0;
	put_blank(page);
	put_right(page, name, 6);
	fputs("  ", page->out);
	put_left(page, grid->corner ?: "", corner);
	for (size_t i = 0; i < grid->head.count; i++)
		put_right(page, grid->head.item[i], 7);
	fputc('\n', page->out);
	for (unsigned r = 0; r < grid->rows; r++) {
		fputs("  ", page->out);
		put_left(page, grid->row[r].name, corner + 6);
		for (size_t i = 0; i < grid->row[r].bytes.count; i++)
			if (grid->row[r].bytes.item[i] == UINT64_MAX)
				fputs("      -", page->out);
			else
				fprintf(page->out, "%7.*f", digits, (double)grid->row[r].bytes.item[i] / (double)unit);
		if (grid->row[r].note) {
			fputs("   ", page->out);
			put(page, grid->row[r].note);
		}
		fputc('\n', page->out);
	}
}

static void put_also(struct page *page, const struct sl_answers *answers)
{
	size_t count = answers->item.count, more = 0;
	unsigned shown = 0, room;

	for (size_t i = 1; i < count; i++) {
		const struct sl_answer *answer = answers->item.item[i];
		const struct sl_answer_line *line = answer->frames ? &answer->stack[answer->frames - 1] : NULL;
		const char *word = sl_answer_word(answer->word);
		char text[1024] = "", place[512];
		bool last = shown + 1 == page->also && i + 1 < count;

		if (sl_answer_tone(answer->word) == SL_TONE_GOOD)
			continue;
		if (shown == page->also) {
			more++;
			continue;
		}
		for (unsigned k = 0; answer->brief && k < answer->frames; k++)
			if (answer->stack[k].mark)
				line = &answer->stack[k];
		room = page->wide - 9 - width_of(word) - (last ? MORE_SPACE : 0);
		for (bool source = true;; source = false) {
			snprintf(text, sizeof(text), "%s%s%s%s%s",
				 answer->brief && line ? place_of(place, sizeof(place), line) : "",
				 answer->brief && line && source && line->source ? " " : "",
				 answer->brief && line && source && line->source ? line->source : "",
				 answer->brief && line ? "  " : "", answer->brief ?: answer->headline);
			if (!source || width_of(text) <= room)
				break;
		}
		if (!shown)
			put_blank(page);
		fputs(shown ? "       " : "also   ", page->out);
		put_part(page, word, strlen(word), colour_of(answer->word));
		fputs("  ", page->out);
		put_cut(page, text, room);
		if (last) {
			size_t left = 0;

			for (size_t k = i + 1; k < count; k++)
				left += sl_answer_tone(answers->item.item[k]->word) != SL_TONE_GOOD;
			if (left)
				fprintf(page->out, "  %zu more: --all", left);
		}
		fputc('\n', page->out);
		shown++;
	}
	if (more && !page->also)
		fprintf(page->out, "also   %zu more: --all\n", more);
}

/* A command is pasted, so a longer one goes on in the next line as a shell reads it. */
static void put_command(struct page *page, const char *command)
{
	while (7 + width_of(command) > page->wide) {
		size_t size = sl_terminal_fitting(command, page->wide - 9);

		if (command[size] != ' ')
			break;
		put_part(page, command, size, NULL);
		fputs(" \\\n         ", page->out);
		command += size + strspn(command + size, " ");
	}
	put(page, command);
}

static void put_next(struct page *page, const struct sl_answer *answer, bool also)
{
	unsigned widest = 0;

	if (answer->next.count && !also)
		put_blank(page);
	for (unsigned pass = 0; pass < 2; pass++) /* the first one finds the widest command */
		for (size_t i = 0; i < answer->next.count; i++) {
			const struct sl_answer_next *next = &answer->next.item[i];
			char *command = sl_memory_print("%s%s%s", next->command, next->paths ? " " : "", next->paths ?: "");
			unsigned width = width_of(command);

			if (!pass) {
				widest = width > widest && width < 56 ? width : widest;
				free(command);
				continue;
			}
			fputs(i ? "       " : "next   ", page->out);
			put_command(page, command);
			free(command);
			if (next->shows && 7 + (widest > width ? widest : width) + 4 + width_of(next->shows) <= page->wide) {
				put_spaces(page, (widest > width ? widest - width : 0) + 4);
				put(page, next->shows);
			}
			fputc('\n', page->out);
		}
}

static void put_verdict(struct page *page, const struct sl_answers *answers, const struct sl_answer *answer)
{
	put_head(page, answer);
	put_stack(page, answer);
	put_labels(page, answer);
	if (page->style->brief)
		return;
	put_table(page, answer);
	put_grid(page, &answer->grid);
}

static void put_all(struct page *page, const struct sl_answers *answers)
{
	for (size_t i = 0; i < answers->item.count; i++) {
		fputc('\n', page->out);
		put_verdict(page, answers, answers->item.item[i]);
		put_next(page, answers->item.item[i], false);
	}
	if (answers->note.count)
		fputc('\n', page->out);
	for (size_t i = 0; i < answers->note.count; i++) {
		fputs("note   ", page->out);
		put_wrapped(page, answers->note.item[i], 7, 7);
		fputc('\n', page->out);
	}
}

/* True: the program ended for want of memory, or would. */
static bool is_of_memory(const struct sl_answers *answers)
{
	enum sl_word word = answers->item.count ? answers->item.item[0]->word : SL_WORD_NOTHING;

	return word == SL_WORD_OUT_OF_MEMORY || word == SL_WORD_DOES_NOT_FIT || word == SL_WORD_DOES_NOT_START ||
	       word == SL_WORD_HOST_MEMORY;
}

static void put_one(struct page *page, const struct sl_answers *answers)
{
	bool also = answers->item.count > 1 && sl_answer_tone(answers->item.item[1]->word) != SL_TONE_GOOD;

	if (page->style->brief && !is_of_memory(answers))
		return;
	fputc('\n', page->out);
	put_verdict(page, answers, answers->item.item[0]);
	if (page->style->brief)
		return;
	put_also(page, answers);
	put_next(page, answers->item.item[0], also);
}

static unsigned count_lines(const char *text)
{
	unsigned lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

void sl_face_terminal(const struct sl_answers *answers, FILE *out, const struct sl_face_style *style)
{
	unsigned wide = style->columns < 40 ? 40 : style->columns;

	for (unsigned level = 0; level < LEVELS; level++) {
		struct page page = {.style = style,
				    .columns = wide < SL_FACE_COLUMNS ? wide : SL_FACE_COLUMNS,
				    .wide = wide,
				    .rows = style->all	? UINT32_MAX - 1
					    : level < 1 ? ROWS
					    : level < 3 ? 4
							: 2,
				    .also = level < 2	? ALSO
					    : level < 4 ? 2
							: 1,
				    .notes = level < 4,
				    .second = level < 5,
				    .blanks = level < 6		   ? UINT32_MAX
					      : level + 2 < LEVELS ? LEVELS - 2 - level
								   : 0};
		char *text = NULL;
		size_t size = 0;

		page.out = sl_memory_must(open_memstream(&text, &size));
		if (!style->brief || is_of_memory(answers))
			put_title(&page, answers);
		if (style->all)
			put_all(&page, answers);
		else if (answers->item.count)
			put_one(&page, answers);
		if (style->saved && !style->brief && (style->all || level + 1 < LEVELS)) {
			fputs("report ", page.out);
			sl_escape_print(page.out, "%s/report.html\n", style->saved);
		}
		fclose(page.out);
		if (style->all || level + 1 == LEVELS || count_lines(text) <= SL_FACE_LINES) {
			fwrite(text, 1, size, out);
			free(text);
			return;
		}
		free(text);
	}
}
