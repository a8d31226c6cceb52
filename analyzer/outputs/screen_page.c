/* SPDX-License-Identifier: MIT */
#include "analyzer/outputs/screen_page.h"

#include <ctype.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/report/dry.h"

#define OWNERS_SHOWN 5
#define LITTLE_PART  100 /* a row below 1 % of what it is part of is not drawn */
#define LINES_SHOWN  3
#define HANG	     6	/* columns by which continuation lines are indented */
#define OWNER_RIGHT  40 /* column at which the text beside an owner begins */

static bool begins(unsigned char c)
{
	return (c & 0xc0) != 0x80;
}

/* Columns that `bytes` of a text take, counted in code points. */
static unsigned columns_of(const char *text, size_t bytes)
{
	unsigned columns = 0;

	for (size_t i = 0; i < bytes && text[i]; i++)
		columns += begins((unsigned char)text[i]);
	return columns;
}

static void to_ascii(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++)
		if (!((unsigned char)*at & 0x80) || ((unsigned char)*at & 0x40))
			*to++ = (char)(*at & 0x80 ? '?' : *at);
	*to = 0;
}

/* Cleans a name so that it neither controls the terminal nor ends a code block in Markdown. */
static void put(struct sl_screen_page *page, const char *text, size_t bytes)
{
	char *part = sl_memory_must(strndup(text, bytes));

	if (page->style->ascii)
		to_ascii(part);
	for (char *at = page->style->fenced ? strchr(part, '`') : NULL; at; at = strchr(at, '`'))
		*at = '\'';
	sl_escape_put(page->out, SL_ESCAPE_LINE, part);
	free(part);
}

static void spaces(struct sl_screen_page *page, unsigned count)
{
	while (count--)
		fputc(' ', page->out);
}

/*
 * How many bytes of the text to print in `room` columns.  It is cut at a space, but not inside "12 MiB" or "10 307"; a word
 * that is longer than the room is cut where it ends.
 */
static size_t fitting(const char *text, unsigned room)
{
	size_t at = 0, space = 0;
	unsigned columns = 0;

	for (; text[at]; at++) {
		if (begins((unsigned char)text[at]) && ++columns > room)
			return space ? space : at;
		if (text[at] == ' ' && at && text[at - 1] != ' ' &&
		    !(isdigit((unsigned char)text[at - 1]) && isalnum((unsigned char)text[at + 1])))
			space = at;
	}
	return at;
}

/* Prints the text from column `column` on, and continues on further lines. */
static void wrap(struct sl_screen_page *page, const char *text, unsigned column, unsigned hang)
{
	unsigned columns = page->style->columns;

	for (;;) {
		size_t size = fitting(text, column < columns ? columns - column : 1);

		put(page, text, size);
		text += size;
		text += strspn(text, " ");
		if (!*text)
			return;
		fputc('\n', page->out);
		spaces(page, hang);
		column = hang;
	}
}

/* Bytes of "inner < outer" with as many frames as fit, at least the innermost. */
static size_t frames_fitting(const char *text, unsigned room)
{
	size_t size = strlen(text);

	while (columns_of(text, size) > room) {
		size_t at = size;

		while (at > 3 && strncmp(text + at - 3, " < ", 3))
			at--;
		if (at <= 3)
			break;
		size = at - 3;
	}
	return size;
}

void sl_screen_line(struct sl_screen_page *page, unsigned at, const char *left, const char *right)
{
	unsigned columns = page->style->columns, used = page->indent + columns_of(left, strlen(left)), column;
	size_t size = right ? frames_fitting(right, columns - HANG) : 0;

	wrap(page, left, page->indent, HANG);
	page->indent = 0;
	if (size) {
		size_t here;

		column = used + 2 > at ? used + 2 : at;
		here = column < columns ? frames_fitting(right, columns - column) : size;
		if (column + columns_of(right, here) > columns && used + 2 + columns_of(right, here) <= columns)
			column = columns - columns_of(right, here);
		if (column < columns && column + columns_of(right, here) <= columns) {
			spaces(page, column - used);
			put(page, right, here);
		} else {
			fputc('\n', page->out);
			spaces(page, HANG + 8);
			here = frames_fitting(right, columns - HANG - 8);
			if (columns_of(right, here) <= columns - HANG - 8)
				put(page, right, here);
			else
				wrap(page, right, HANG + 8, HANG + 8);
		}
	}
	fputc('\n', page->out);
}

void sl_screen_head(struct sl_screen_page *page, const char *title, enum sl_screen_tone tone)
{
	page->indent = columns_of(title, strlen(title));
	if (page->style->colour)
		fputs(tone == SL_SCREEN_BAD ? "\033[1;31m" : "\033[1m", page->out);
	if (page->style->colour && tone == SL_SCREEN_WARNING)
		fputs("\033[33m", page->out);
	put(page, title, strlen(title));
	if (page->style->colour)
		fputs("\033[0m", page->out);
}

void sl_screen_owner(struct sl_screen_page *page, uint64_t bytes, const char *name, const char *right)
{
	char left[256];

	snprintf(left, sizeof(left), "%12s  %s", SL_SIZE(bytes), name);
	sl_screen_line(page, OWNER_RIGHT, left, right);
}

void sl_screen_place(struct sl_process *process, const struct sl_site *site, char *out, size_t size)
{
	char *via;

	sl_owners_line(process, site->stack, 2, out, size);
	via = strstr(out, " via ");
	if (via)
		*via = 0;
}

/* True: a row that a reader would pass over, as the 25 KiB of cuDNN's handle in PyTorch's programs. */
static bool is_little(const struct sl_share *part, const struct sl_share *whole)
{
	return part->bytes * LITTLE_PART < whole->bytes;
}

void sl_screen_rests(struct sl_owners *owners, struct sl_process *process, const struct sl_torch *torch, const char *name,
		     uint64_t bytes)
{
	struct sl_rest rests[SL_RESTS_MAX];
	unsigned count = sl_model_rests(process->model, torch, name, bytes, rests);

	for (unsigned i = 0; i < count; i++) {
		const struct sl_site site = {.stack = rests[i].stack};
		char where[256];
		const char *names[] = {rests[i].name, where};

		sl_screen_place(process, &site, where, sizeof(where));
		sl_owners_add(owners, names, where[0] ? 2 : 1, rests[i].bytes, 0);
	}
}

uint64_t sl_screen_blocks(const struct sl_process *process, const struct sl_site *site, uint64_t blocks)
{
	const struct sl_model *model = process->model;
	uint64_t most = 0;

	if (!sl_model_is_cublas(sl_model_library(model, site)))
		return blocks;
	for (size_t i = 0; i < model->sites.count; i++)
		if (model->sites.item[i].holder == site->holder && model->tracks.item[model->sites.item[i].track].most_bytes > most)
			most = model->tracks.item[model->sites.item[i].track].most_bytes;
	return 2 * model->tracks.item[site->track].most_bytes > most ? blocks : 0;
}

/* "cuBLAS workspaces, 24 x 64.1 MiB": it takes one for each handle and stream. */
static void put_library(struct sl_screen_page *page, const struct sl_share *library, const char *where)
{
	bool cublas = sl_model_is_cublas(library->name);
	const char *called = cublas ? "cuBLAS workspaces" : library->name;
	const char *doubt = cublas && sl_dry_guessed(page->report) ? ", not measured" : "";
	char name[96];

	if ((!cublas && strcmp(called, SL_SCREEN_WORKSPACES) != 0) || library->blocks < 2)
		snprintf(name, sizeof(name), "%s%s", library->name, doubt);
	else
		snprintf(name, sizeof(name), "%s, %llu x %s%s", called, (unsigned long long)library->blocks,
			 SL_SIZE(library->bytes / library->blocks), doubt);
	sl_screen_owner(page, library->bytes, name, where);
}

void sl_screen_shares(struct sl_screen_page *page, const struct sl_owners *sorted)
{
	const struct sl_share *share = sorted->share.item;
	unsigned libraries = 0;

	for (uint32_t l = share[0].child; l && libraries < OWNERS_SHOWN; l = share[l].sibling, libraries++) {
		unsigned lines = 0;
		uint32_t f = share[l].child;
		bool one = f && (!share[f].sibling || is_little(&share[share[f].sibling], &share[l]));

		if (libraries && is_little(&share[l], &share[0]))
			break;

		put_library(page, &share[l], one ? share[f].name : "");
		for (; f && !one && lines < LINES_SHOWN && !(lines && is_little(&share[f], &share[l]));
		     f = share[f].sibling, lines++) {
			char left[128];

			snprintf(left, sizeof(left), "%12s  %12s", "", SL_SIZE(share[f].bytes));
			sl_screen_line(page, 28, left, share[f].name);
		}
	}
}

void sl_screen_said(struct sl_screen_page *page, const char *id, int process, int device)
{
	for (size_t i = 0; i < page->report->findings.count; i++) {
		const struct sl_finding *finding = &page->report->findings.item[i];

		if (strcmp(finding->id, id) == 0 && finding->device == device && (process < 0 || finding->process == process)) {
			sl_screen_say(page, "      %s", finding->text);
			page->noted = true;
		}
	}
}

void sl_screen_say(struct sl_screen_page *page, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sl_screen_line(page, 0, text, "");
}
