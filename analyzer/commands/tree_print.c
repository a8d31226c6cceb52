/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/spark.h"

/* ---- tree */

struct drawing {
	const struct sl_owners *owners;
	const struct sl_tree_text *how;
	char *lines; /* for each level above, whether its line goes on below */
	size_t room;
};

static double percent(const struct sl_owners *owners, uint64_t bytes)
{
	uint64_t all = owners->share.item[0].bytes;

	return all ? 100.0 * (double)bytes / (double)all : 0;
}

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

static void put_share(const struct drawing *d, uint32_t at, unsigned level)
{
	const struct sl_share *share = &d->owners->share.item[at];
	char blocks[SL_FORMAT_BYTES];
	bool ascii = d->how->ascii, last = is_last(d, at);

	sl_escape_print(stdout, "%10s %5.1f%% %8s  %s", SL_SIZE(share->bytes), percent(d->owners, share->bytes),
			share->blocks ? sl_format_count(blocks, share->blocks) : "", level > 1 ? d->lines : "");
	if (level > 1)
		sl_escape_print(stdout, "%s", ascii ? (last ? "`-" : "|-") : last ? "└╴" : "├╴");
	sl_escape_put(stdout, SL_ESCAPE_LINE, share->name);
	putchar('\n');
}

static void put_tree(struct drawing *d, uint32_t parent, unsigned level)
{
	const struct sl_share *share = d->owners->share.item;
	size_t length = strlen(d->lines);

	for (uint32_t at = share[parent].child; at && level <= d->how->depth && is_shown(d, at); at = share[at].sibling) {
		put_share(d, at, level);
		if (length + 8 > d->room) {
			d->room *= 2;
			d->lines = realloc(d->lines, d->room);
			if (!d->lines)
				abort();
		}
		if (level > 1)
			strcpy(d->lines + length, is_last(d, at) ? "  " : d->how->ascii ? "| " : "│ ");
		put_tree(d, at, level + 1);
		d->lines[length] = 0;
	}
}

void sl_tree_print(const struct sl_owners *owners, const struct sl_tree_text *how)
{
	struct drawing d = {.owners = owners, .how = how, .lines = calloc(1, 256), .room = 256};

	if (!d.lines)
		abort();
	sl_escape_print(stdout, "%10s %6s %8s\n", "held", "share", "blocks");
	put_tree(&d, 0, 1);
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

static void put_lives(const struct sl_tree_lives *lives, bool ascii)
{
	char made[SL_FORMAT_BYTES], kept[SL_FORMAT_BYTES], temporary[SL_FORMAT_BYTES], lifetime[SL_FORMAT_BYTES];
	char sizes[4 * SL_LIVES_CLASSES + 1];

	sl_spark(sizes, sizeof(sizes), lives->sizes, lives->unknown ? 0 : SL_LIVES_CLASSES, ascii);
	sl_escape_print(stdout, "%9s %8s %9s %9s  %s%*s", count_of(made, lives, lives->made), count_of(kept, lives, lives->kept),
			count_of(temporary, lives, lives->temporary), lifetime_of(lifetime, lives), sizes,
			lives->unknown ? SL_LIVES_CLASSES + 2 : 2, "");
}

void sl_tree_print_table(const struct sl_owners *owners, const struct sl_tree_text *how)
{
	const struct sl_share *share = owners->share.item;
	char blocks[SL_FORMAT_BYTES];
	int width = 0;

	sl_escape_print(stdout, "%10s %6s %8s ", "held", "share", "blocks");
	if (how->lives)
		width = sl_escape_print(stdout, "%9s %8s %9s %9s  %-*s", "made", "kept", "temporary", "lifetime",
					SL_LIVES_CLASSES + 2, "sizes");
	sl_escape_print(stdout, " by %s\n", how->by);
	for (uint32_t at = share[0].child; at; at = share[at].sibling) {
		sl_escape_print(stdout, "%10s %5.1f%% %8s ", SL_SIZE(share[at].bytes), percent(owners, share[at].bytes),
				share[at].blocks ? sl_format_count(blocks, share[at].blocks) : "");
		if (how->lives && !how->lives[at].made && !how->lives[at].unknown)
			sl_escape_print(stdout, "%*s", width, ""); /* owners that are not blocks */
		else if (how->lives)
			put_lives(&how->lives[at], how->ascii);
		putchar(' ');
		sl_escape_put(stdout, SL_ESCAPE_LINE, share[at].name);
		putchar('\n');
	}
	if (how->lives)
		sl_escape_print(stdout,
				"made: blocks %s; kept: not freed by %s; temporary: freed before\n"
				"their stack made its next one; lifetime: mean of the freed; sizes: number of\n"
				"blocks up to 512 B, 2 KiB, 8 KiB ... (each limit is four times the last)\n",
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
