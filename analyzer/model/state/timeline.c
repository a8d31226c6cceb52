/* SPDX-License-Identifier: MIT */
#include "analyzer/model/state/parts.h"

#include "analyzer/base/memory.h"

#define FIRST_SHIFT 16

void sl_timeline_window(struct sl_timeline *timeline, uint64_t begin_ns, uint64_t until_ns)
{
	timeline->begin_ns = begin_ns ? begin_ns : 1;
	timeline->until_ns = until_ns > timeline->begin_ns ? until_ns : timeline->begin_ns + 1;
	while ((timeline->until_ns - 1 - timeline->begin_ns) >> timeline->shift >= SL_TIMELINE_BINS)
		timeline->shift++;
}

static uint32_t last_bin(const struct sl_timeline *timeline)
{
	return (uint32_t)((timeline->until_ns - 1 - timeline->begin_ns) >> timeline->shift);
}

struct sl_line *sl_timeline_add(struct sl_timeline *timeline, enum sl_line_what what, int device, int index)
{
	struct sl_line *line = sl_memory_must(calloc(1, sizeof(*line)));

	timeline->lines = sl_memory_must(realloc(timeline->lines, (timeline->line_count + 1) * sizeof(*timeline->lines)));
	line->what = what;
	line->device = device;
	line->index = index;
	timeline->lines[timeline->line_count++] = line;
	return line;
}

struct sl_line *sl_timeline_copy(struct sl_timeline *timeline, const struct sl_line *line, enum sl_line_what what)
{
	struct sl_line *copy = sl_timeline_add(timeline, what, line->device, line->index);

	*copy = *line;
	copy->what = what;
	copy->bins = sl_memory_must(malloc(line->capacity * sizeof(*copy->bins)));
	memcpy(copy->bins, line->bins, line->capacity * sizeof(*copy->bins));
	return copy;
}

struct sl_line *sl_timeline_find(const struct sl_timeline *timeline, enum sl_line_what what, int device, int index)
{
	for (unsigned i = 0; i < timeline->line_count; i++) {
		struct sl_line *line = timeline->lines[i];

		if (line->what == what && line->device == device && line->index == index)
			return line;
	}
	return NULL;
}

static struct sl_bin merged(const struct sl_bin *a, const struct sl_bin *b)
{
	struct sl_bin bin = *a;

	if (b->max > a->max) {
		bin.max = b->max;
		bin.max_ns = b->max_ns;
		bin.max_site = b->max_site;
	}
	bin.min = b->min < a->min ? b->min : a->min;
	bin.area += b->area;
	bin.last = b->last;
	return bin;
}

static void fold_line(struct sl_line *line)
{
	if (!line->begun)
		return;
	for (uint32_t i = line->first / 2; i <= line->bin / 2; i++) {
		bool left = i * 2 >= line->first, right = i * 2 + 1 <= line->bin;

		if (left && right)
			line->bins[i] = merged(&line->bins[i * 2], &line->bins[i * 2 + 1]);
		else
			line->bins[i] = line->bins[left ? i * 2 : i * 2 + 1];
	}
	line->first /= 2;
	line->bin /= 2;
}

static uint32_t bin_of(struct sl_timeline *timeline, uint64_t time_ns)
{
	if (!timeline->begin_ns) {
		timeline->shift = FIRST_SHIFT;
		timeline->begin_ns = time_ns ? time_ns : 1;
	}
	if (time_ns < timeline->begin_ns)
		return 0;
	if (timeline->until_ns && time_ns >= timeline->until_ns)
		return last_bin(timeline) + 1; /* beyond the last bin: dropped at the end */
	while ((time_ns - timeline->begin_ns) >> timeline->shift >= SL_TIMELINE_BINS) {
		for (unsigned i = 0; i < timeline->line_count; i++)
			fold_line(timeline->lines[i]);
		timeline->shift++;
	}
	return (uint32_t)((time_ns - timeline->begin_ns) >> timeline->shift);
}

/* Room for the bins that the line has reached, rounded up, so that a short run is small. */
static void reach(struct sl_line *line, uint32_t bin)
{
	uint32_t capacity = line->capacity ? line->capacity : 16;

	if (bin < line->capacity)
		return;
	while (capacity <= bin)
		capacity *= 2;
	line->bins = sl_memory_must(realloc(line->bins, capacity * sizeof(*line->bins)));
	line->capacity = capacity;
}

/* Waits for the window to begin; its first bin starts with what the line holds then. */
static void await_window(const struct sl_timeline *timeline, struct sl_line *line, uint64_t time_ns)
{
	line->last_ns = time_ns < timeline->begin_ns ? time_ns : timeline->begin_ns;
	line->bins[0] = (struct sl_bin){
		.min = line->value, .max = line->value, .last = line->value, .max_ns = line->last_ns, .max_site = line->site};
}

bool sl_timeline_advance(struct sl_timeline *timeline, struct sl_line *line, uint64_t time_ns)
{
	uint32_t bin;

	if (timeline->bare >> line->what & 1)
		return false;
	bin = bin_of(timeline, time_ns);
	reach(line, bin);
	if (!line->begun) {
		line->begun = true;
		line->site = SL_NO_SITE;
		line->first = line->bin = bin;
		line->last_ns = time_ns;
		line->bins[bin] = (struct sl_bin){.min = 0, .max = 0, .max_ns = time_ns, .max_site = SL_NO_SITE};
		return true;
	}
	if (timeline->until_ns && line->last_ns < timeline->begin_ns)
		await_window(timeline, line, time_ns);
	while (line->bin < bin) {
		uint64_t end = timeline->begin_ns + ((uint64_t)(line->bin + 1) << timeline->shift);

		line->bins[line->bin].area += (double)line->value * (double)(end - line->last_ns);
		line->last_ns = end;
		line->bin++;
		line->bins[line->bin] = (struct sl_bin){
			.min = line->value, .max = line->value, .last = line->value, .max_ns = end, .max_site = line->site};
	}
	return true;
}

static void close_window(const struct sl_timeline *timeline, struct sl_line *line)
{
	uint32_t last = last_bin(timeline);

	line->begun = line->begun && line->last_ns >= timeline->begin_ns && line->first <= last;
	line->bin = line->bin < last ? line->bin : last;
	line->last_ns = line->last_ns < timeline->until_ns ? line->last_ns : timeline->until_ns;
}

void sl_timeline_end(struct sl_timeline *timeline, uint64_t time_ns)
{
	timeline->end_ns = time_ns;
	for (unsigned i = 0; i < timeline->line_count; i++) {
		struct sl_line *line = timeline->lines[i];

		if (line->begun && time_ns > line->last_ns)
			sl_timeline_set(timeline, line, time_ns, line->value, SL_NO_SITE);
		if (timeline->until_ns)
			close_window(timeline, line);
		if (line->begun && line->bin < line->capacity) {
			line->capacity = line->bin + 1;
			line->bins = sl_memory_must(realloc(line->bins, line->capacity * sizeof(*line->bins)));
		}
	}
}

double sl_timeline_at(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t time_ns)
{
	const struct sl_bin *bin;
	uint64_t at;

	if (!line || !line->begun || time_ns < timeline->begin_ns)
		return 0;
	at = (time_ns - timeline->begin_ns) >> timeline->shift;
	if (at < line->first)
		return 0;
	if (at > line->bin || time_ns >= line->last_ns)
		return (double)line->value;
	bin = &line->bins[at];
	if (bin->min == bin->max || at == line->bin)
		return (double)(bin->min == bin->max ? bin->max : bin->last);
	return bin->area / (double)(1ull << timeline->shift);
}

uint64_t sl_timeline_min(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t min = UINT64_MAX, from, to;

	if (!line || !line->begun || begin_ns < timeline->begin_ns)
		return 0;
	from = (begin_ns - timeline->begin_ns) >> timeline->shift;
	to = (end_ns - timeline->begin_ns) >> timeline->shift;
	if (from < line->first)
		return 0;
	if (from > line->bin)
		return line->value;
	for (uint64_t at = from; at <= to && at <= line->bin; at++)
		min = line->bins[at].min < min ? line->bins[at].min : min;
	return min;
}

uint64_t sl_timeline_max(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t max = 0, from, to;

	if (!line || !line->begun || end_ns < timeline->begin_ns)
		return 0;
	from = begin_ns > timeline->begin_ns ? (begin_ns - timeline->begin_ns) >> timeline->shift : 0;
	to = (end_ns - timeline->begin_ns) >> timeline->shift;
	if (from > line->bin)
		return line->value;
	for (uint64_t at = from > line->first ? from : line->first; at <= to && at <= line->bin; at++)
		if (line->bins[at].max > max)
			max = line->bins[at].max;
	return max;
}

const struct sl_bin *sl_timeline_highest(const struct sl_line *line, uint32_t from, uint32_t to)
{
	const struct sl_bin *highest = NULL;

	for (uint32_t b = from; line && line->begun && b < to && b <= line->bin; b++)
		if (b >= line->first && (!highest || line->bins[b].max > highest->max))
			highest = &line->bins[b];
	return highest;
}

void sl_timeline_free(struct sl_timeline *timeline)
{
	for (unsigned i = 0; i < timeline->line_count; i++) {
		free(timeline->lines[i]->bins);
		free(timeline->lines[i]);
	}
	free(timeline->lines);
	*timeline = (struct sl_timeline){0};
}
