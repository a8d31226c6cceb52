/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/spark.h"

/* ---- tree */

struct drawing {
	const struct sl_owners *owners;
	const struct sl_tree_text *how;
	struct sl_cells table;
	char *lines; /* for each level above, whether its line goes on below */
	size_t room;
	bool ascii;
	uint64_t whole; /* of which shares are told */
};

static double percent(uint64_t whole, uint64_t bytes)
{
	return whole ? 100.0 * (double)bytes / (double)whole : 0;
}

static const char *blocks_of(char out[SL_FORMAT_BYTES], const struct sl_share *share)
{
	return share->blocks ? sl_format_count(out, share->blocks) : "";
}
#define BLOCKS_OF(share) blocks_of((char[SL_FORMAT_BYTES]){0}, share)

static bool is_shown(const struct drawing *d, uint32_t at)
{
	const struct sl_share *share = d->owners->share.item;

	return share[at].bytes >= (d->how->min ? d->how->min : share[0].bytes / 200);
}

/* Siblings are sorted, so the first that is too small ends the loop. */
static bool is_last(const struct drawing *d, uint32_t at)
{
	uint32_t next = d->owners->share.item[at].sibling;

	return !next || !is_shown(d, next);
}

/* Prints the owner, and with it those below as long as each is the only one.  Returns the last of them. */
static uint32_t put_share(struct drawing *d, uint32_t at, unsigned level)
{
	const struct sl_share *all = d->owners->share.item, *share = &all[at];
	const char *branch = level < 2 ? "" : is_last(d, at) ? (d->ascii ? "`-" : "└╴") : (d->ascii ? "|-" : "├╴");
	char *name = sl_memory_copy(share->name);

	while (d->how->folded && !(d->how->parted && level == 1) && all[at].child && !all[all[at].child].sibling &&
	       all[all[at].child].bytes == all[at].bytes) {
		char *longer;

		at = all[at].child;
		longer = sl_memory_print("%s > %s", name, all[at].name);
		free(name);
		name = longer;
	}
	sl_cells_put(&d->table, SL_COLOUR_NONE, "%s", SL_SIZE(share->bytes));
	sl_cells_put(&d->table, SL_COLOUR_NONE, "%.1f%%", percent(d->whole, share->bytes));
	sl_cells_put(&d->table, SL_COLOUR_NONE, "%s", BLOCKS_OF(share));
	sl_cells_put(&d->table, SL_COLOUR_NONE, "%s%s%s", level > 1 ? d->lines : "", branch, name);
	d->table.cell.item[d->table.cell.count - 1].hang = level > 1 ? 2 * level : 2;
	free(name);
	return at;
}

static void put_tree(struct drawing *d, uint32_t parent, unsigned level)
{
	const struct sl_share *share = d->owners->share.item;
	size_t length = strlen(d->lines);

	for (uint32_t at = share[parent].child; at && level <= d->how->depth && is_shown(d, at); at = share[at].sibling) {
		uint32_t last;

		if (level == 1 && d->how->parted)
			d->whole = share[at].bytes;
		last = put_share(d, at, level);
		if (length + 8 > d->room)
			d->lines = sl_memory_must(realloc(d->lines, d->room *= 2));
		if (level > 1)
			strcpy(d->lines + length, is_last(d, at) ? "  " : d->ascii ? "| " : "│ ");
		put_tree(d, last, level + 1);
		d->lines[length] = 0;
	}
}

static void put_titles(struct sl_cells *table, const char *const *titles)
{
	for (; *titles; titles++)
		sl_cells_put(table, SL_COLOUR_DIM, "%s", *titles);
}

void sl_tree_print(const struct sl_owners *owners, const struct sl_tree_text *how, const struct sl_terminal *to)
{
	struct drawing d = {.owners = owners,
			    .how = how,
			    .table = {.columns = "rrrw"},
			    .lines = sl_memory_must(calloc(1, 256)),
			    .room = 256,
			    .ascii = to->ascii,
			    .whole = owners->share.item[0].bytes};

	put_titles(&d.table, (const char *[]){"held", "share", "blocks", "", NULL});
	put_tree(&d, 0, 1);
	sl_cells_print(&d.table, to, 2);
	free(d.lines);
}

/* ---- table */

static const char *count_of(char *text, const struct sl_tree_lives *lives, uint64_t count)
{
	return lives->unknown ? "?" : sl_format_count(text, count);
}

static const char *lifetime_of(char *text, const struct sl_tree_lives *lives)
{
	uint64_t ended = lives->made - lives->kept;

	return lives->unknown ? "?" : ended && !lives->timeless ? sl_format_duration(text, lives->ended_ns / ended) : "-";
}

/* Owners that are not blocks have empty cells. */
static void put_lives(struct sl_cells *table, const struct sl_tree_lives *lives, bool ascii)
{
	bool none = !lives->made && !lives->unknown;
	char text[SL_FORMAT_BYTES], sizes[4 * SL_LIVES_CLASSES + 1];

	sl_spark(sizes, sizeof(sizes), lives->sizes, lives->unknown || none ? 0 : SL_LIVES_CLASSES, ascii);
	sl_cells_put(table, SL_COLOUR_NONE, "%s", none ? "" : count_of(text, lives, lives->made));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", none ? "" : count_of(text, lives, lives->kept));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", none ? "" : count_of(text, lives, lives->temporary));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", none ? "" : lifetime_of(text, lives));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", sizes);
}

void sl_tree_print_table(const struct sl_owners *owners, const struct sl_tree_text *how, const struct sl_terminal *to)
{
	static const char *const titles[] = {"held", "share", "blocks", NULL}, *const of_lives[] = {"made",	 "kept",
												    "temporary", "lifetime",
												    "sizes",	 NULL};
	struct sl_cells table = {.columns = how->lives ? "rrrrrrrlw" : "rrrw"};
	const struct sl_share *share = owners->share.item;

	put_titles(&table, titles);
	if (how->lives)
		put_titles(&table, of_lives);
	sl_cells_put(&table, SL_COLOUR_DIM, "by %s", how->by);
	for (uint32_t at = share[0].child; at; at = share[at].sibling) {
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", SL_SIZE(share[at].bytes));
		sl_cells_put(&table, SL_COLOUR_NONE, "%.1f%%", percent(share[0].bytes, share[at].bytes));
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", BLOCKS_OF(&share[at]));
		if (how->lives)
			put_lives(&table, &how->lives[at], to->ascii);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", share[at].name);
	}
	sl_cells_print(&table, to, 2);
	if (how->lives)
		sl_terminal_line(to, 0, 0,
				 "made: blocks %s; kept: not freed by %s; temporary: freed before their stack made its next one; "
				 "lifetime: mean of the freed; sizes: number of blocks up to 512 B, 2 KiB, 8 KiB ... (each limit "
				 "is four times the last)",
				 how->until ? "up to that moment" : "ever", how->until ? "then" : "the end");
}

/* ---- flame */

static void put_flame(const struct sl_owners *owners, uint32_t at, const char *const *names, unsigned depth)
{
	const struct sl_share *share = &owners->share.item[at];
	const char *path[68];
	uint64_t own = share->bytes;

	for (unsigned i = 0; i < depth; i++)
		path[i] = names[i];
	if (at)
		path[depth++] = share->name;
	for (uint32_t child = share->child; child; child = owners->share.item[child].sibling) {
		own -= owners->share.item[child].bytes;
		if (depth < SL_COUNT(path) - 1)
			put_flame(owners, child, path, depth);
	}
	if (!own || !depth)
		return;
	for (unsigned i = 0; i < depth; i++) {
		if (i)
			putchar(';');
		sl_escape_put(stdout, SL_ESCAPE_FRAME, path[i]);
	}
	sl_escape_print(stdout, " %llu\n", (unsigned long long)own);
}

void sl_tree_print_flame(const struct sl_owners *owners)
{
	put_flame(owners, 0, NULL, 0);
}
