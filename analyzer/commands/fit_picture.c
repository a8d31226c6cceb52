/* SPDX-License-Identifier: MIT */
/* Draws the segments when memory ran out: a bar for each segment with gaps, and who holds what around the largest gap. */

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/terminal.h"
#include "analyzer/commands/fit.h"
#include "analyzer/symbols/symbols.h"

#define BAR	 24
#define SEGMENTS 8

/* One segment of the picture. */
struct segment {
	const struct sl_fit_piece *first;
	size_t count;
	uint64_t bytes, gaps, largest_gap;
	const struct sl_fit_piece *gap; /* the largest gap; NULL: none */
};

const char *sl_fit_line(const struct sl_fit_recording *r, size_t at, char *text, size_t size)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = 0;

	*text = 0;
	if (at != SL_FIT_GAP)
		count = sl_stacks_resolve(frames, &r->trace->defs, NULL, (struct sl_stack){.python = r->ops.item[at].python});
	if (count)
		sl_stacks_describe(text, size, sl_stacks_interesting(frames, count) ?: &frames[0]);
	return text;
}

/* Fills the bar: '=' where more than half is in use. */
static void draw(char bar[BAR + 1], const struct segment *segment)
{
	const uint64_t begin = segment->first->address;

	for (unsigned c = 0; c < BAR; c++) {
		uint64_t from = begin + segment->bytes * c / BAR, to = begin + segment->bytes * (c + 1) / BAR, gaps = 0;

		for (size_t i = 0; i < segment->count; i++) {
			const struct sl_fit_piece *piece = &segment->first[i];
			uint64_t low = piece->address > from ? piece->address : from;
			uint64_t high = piece->address + piece->bytes < to ? piece->address + piece->bytes : to;

			if (piece->at == SL_FIT_GAP && high > low)
				gaps += high - low;
		}
		bar[c] = 2 * gaps > to - from ? '.' : '=';
	}
	bar[BAR] = 0;
}

/* The owners around the largest gap of the segment. */
static const char *neighbours_of(char out[640], const struct sl_fit_recording *r, const struct segment *segment)
{
	const struct sl_fit_piece *before = segment->gap > segment->first ? segment->gap - 1 : NULL;
	const struct sl_fit_piece *after = segment->gap + 1 < segment->first + segment->count ? segment->gap + 1 : NULL;
	char one[300] = "", other[300] = "";

	if (before)
		sl_fit_line(r, before->at, one, sizeof(one));
	if (after)
		sl_fit_line(r, after->at, other, sizeof(other));
	*out = 0;
	if (*one && *other && strcmp(one, other))
		snprintf(out, 640, "between %s and %s", one, other);
	else if (*one || *other)
		snprintf(out, 640, "beside %s", *one ? one : other);
	return out;
}

static int by_gap(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return SL_FALLING(x->largest_gap, y->largest_gap) ?: SL_FALLING(x->bytes, y->bytes)
	       ?: SL_RISING(x->first->segment, y->first->segment);
}

/* Segments sorted by their largest gap, then by size; the caller frees them.  count: how many. */
static struct segment *list_segments(const struct sl_fit_picture *picture, size_t *count)
{
	struct segment *list = sl_memory_must(calloc(picture->pieces.count + 1, sizeof(*list))), *last = list - 1;

	for (size_t i = 0; i < picture->pieces.count; i++) {
		const struct sl_fit_piece *piece = &picture->pieces.item[i];

		if (last < list || last->first->segment != piece->segment)
			(++last)->first = piece;
		last->count++;
		last->bytes += piece->bytes;
		if (piece->at != SL_FIT_GAP)
			continue;
		last->gaps += piece->bytes;
		if (piece->bytes > last->largest_gap) {
			last->largest_gap = piece->bytes;
			last->gap = piece;
		}
	}
	*count = (size_t)(last - list + 1);
	if (*count)
		qsort(list, *count, sizeof(*list), by_gap);
	return list;
}

void sl_fit_picture_print(const struct sl_fit_recording *r, const struct sl_fit_picture *picture, const struct sl_terminal *to)
{
	size_t count, drawn = 0, gaps = 0;
	struct segment *segments = list_segments(picture, &count);
	struct sl_cells table = {.columns = "rlrw"};
	char bar[BAR + 1], around[640];
	uint64_t held_bytes = 0, free_bytes = 0;

	for (size_t i = 0; i < count; i++) {
		held_bytes += segments[i].bytes - segments[i].gaps;
		free_bytes += segments[i].gaps;
	}
	for (size_t i = 0; i < picture->pieces.count; i++)
		gaps += picture->pieces.item[i].at == SL_FIT_GAP;
	sl_terminal_line(to, 0, 4, "  layout: %s segments, %s held, %s in %s gaps", SL_NUMBER(count), SL_SIZE(held_bytes),
			 SL_SIZE(free_bytes), SL_NUMBER(gaps));
	for (; drawn < count && drawn < SEGMENTS && segments[drawn].gap; drawn++) {
		draw(bar, &segments[drawn]);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", SL_SIZE(segments[drawn].bytes));
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", bar);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s free", SL_SIZE(segments[drawn].largest_gap));
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", neighbours_of(around, r, &segments[drawn]));
	}
	if (drawn < count)
		sl_cells_under(&table, "and %s more segments", SL_NUMBER(count - drawn));
	sl_cells_print(&table, to, 4);
	free(segments);
}

static void put_piece(struct sl_json *j, const struct sl_fit_recording *r, const struct sl_fit_piece *piece)
{
	char text[300];

	sl_json_object(j, NULL);
	sl_json_uint(j, "offset", piece->address - piece->segment);
	sl_json_uint(j, "bytes", piece->bytes);
	if (piece->at == SL_FIT_GAP) {
		sl_json_null(j, "requested_bytes");
		sl_json_null(j, "line");
	} else {
		sl_json_uint(j, "requested_bytes", r->ops.item[piece->at].bytes);
		sl_json_string(j, "line", *sl_fit_line(r, piece->at, text, sizeof(text)) ? text : NULL);
	}
	sl_json_end(j);
}

void sl_fit_picture_json(struct sl_json *j, const struct sl_fit_recording *r, const struct sl_fit_picture *picture)
{
	size_t count;
	struct segment *segments = list_segments(picture, &count);

	sl_json_array(j, "segments");
	for (size_t i = 0; i < count; i++) {
		sl_json_object(j, NULL);
		sl_json_uint(j, "bytes", segments[i].bytes);
		sl_json_uint(j, "free_bytes", segments[i].gaps);
		sl_json_uint(j, "stream", segments[i].first->stream);
		sl_json_bool(j, "expandable", segments[i].first->expandable);
		sl_json_array(j, "pieces");
		for (size_t p = 0; p < segments[i].count; p++)
			put_piece(j, r, &segments[i].first[p]);
		sl_json_end(j);
		sl_json_end(j);
	}
	sl_json_end(j);
	free(segments);
}
