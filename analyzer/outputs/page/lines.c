/* SPDX-License-Identifier: MIT */
/* Lines over time at the page's resolution, and the heat map of ranks. */

#include "analyzer/report/devices.h"
#include "analyzer/base/memory.h"
#include "analyzer/outputs/page/page.h"

struct columns {
	uint32_t n;
	uint64_t first_ns; /* start of the first bin */
	unsigned shift;
	uint32_t offset; /* number of the first bin on the process's own grid */
	double *min, *max;
	float *mean;
	uint32_t *stack;
	uint8_t *at; /* position of the maximum inside its bin, 0..255 */
};

static void room(struct columns *c, size_t n)
{
	c->min = sl_memory_must(calloc(n + 1, sizeof(*c->min)));
	c->max = sl_memory_must(calloc(n + 1, sizeof(*c->max)));
	c->mean = sl_memory_must(calloc(n + 1, sizeof(*c->mean)));
	c->stack = sl_memory_must(calloc(n + 1, sizeof(*c->stack)));
	c->at = sl_memory_must(calloc(n + 1, sizeof(*c->at)));
}

static void free_columns(struct columns *c)
{
	free(c->min);
	free(c->max);
	free(c->mean);
	free(c->stack);
	free(c->at);
}

static const struct sl_timeline *timeline_of(const struct sl_page *page, unsigned process)
{
	return page->draw ? page->draw(page->draw_context, process) : page->timelines[process].timeline;
}

/* Merges 1 << fold bins into one.  The mean covers only the time during which the line existed. */
static struct columns reduce(struct sl_page *page, unsigned process, const struct sl_line *line, unsigned fold)
{
	const struct sl_timeline *timeline = timeline_of(page, process);
	uint32_t begin = line->first >> fold, end = line->bin >> fold;
	struct columns c = {.n = end - begin + 1, .shift = timeline->shift + fold, .offset = begin};

	c.first_ns = timeline->begin_ns + ((uint64_t)begin << c.shift);
	room(&c, c.n);
	for (uint32_t i = 0; i < c.n; i++) {
		uint32_t from = (begin + i) << fold, to = (begin + i + 1) << fold, peak;
		uint64_t start = timeline->begin_ns + ((uint64_t)(begin + i) << c.shift), stop = start + (1ull << c.shift);
		double area = 0;

		from = from < line->first ? line->first : from;
		to = to > line->bin + 1 ? line->bin + 1 : to;
		peak = from;
		c.min[i] = (double)line->bins[from].min;
		for (uint32_t b = from; b < to; b++) {
			if (line->bins[b].max > line->bins[peak].max)
				peak = b;
			if ((double)line->bins[b].min < c.min[i])
				c.min[i] = (double)line->bins[b].min;
			area += line->bins[b].area;
		}
		stop = stop > line->last_ns ? line->last_ns : stop;
		c.max[i] = (double)line->bins[peak].max;
		c.mean[i] = (float)(stop > start ? area / (double)(stop - start) : c.max[i]);
		c.mean[i] = (double)c.mean[i] > c.max[i] ? (float)c.max[i] : c.mean[i];
		c.stack[i] = line->bins[peak].max_site == SL_NO_SITE ? 0 : sl_page_site(page, process, line->bins[peak].max_site);
		c.at[i] = (uint8_t)(line->bins[peak].max_ns > start ? (line->bins[peak].max_ns - start) * 255 >> c.shift : 0);
	}
	return c;
}

static const char *name_of(const struct sl_process *process, const struct sl_line *line)
{
	switch (line->what) {
	case SL_LINE_KIND:
		return sl_event_kinds[line->index].name;
	case SL_LINE_LIBRARY:
		return process->model->libraries.item[line->index];
	case SL_LINE_LABEL:
		return sl_defs_text(process->model->defs, process->model->labelled.item[line->index].text);
	default:
		return "";
	}
}

/* Number of a device that several processes sample, so that it is drawn once. */
static int shared_device(const struct sl_page *page, unsigned process, const struct sl_line *line)
{
	const struct sl_process *p = &page->report->processes[process];
	const struct sl_shared_device *device =
		line->what == SL_LINE_USED ? sl_devices_shared(page->report, p->model->devices[line->device + 1]) : NULL;

	return device ? (int)(device - page->report->devices) : -1;
}

void sl_page_put_line(struct sl_page *page, unsigned process, const struct sl_line *line, const char *name, int shared)
{
	static const char *const whats[] = {
		[SL_LINE_KIND] = "kind",	   [SL_LINE_KNOWN] = "known",	    [SL_LINE_LIBRARY] = "library",
		[SL_LINE_ALLOCATED] = "allocated", [SL_LINE_RESERVED] = "reserved", [SL_LINE_USED] = "used",
		[SL_LINE_HIDDEN] = "hidden",	   [SL_LINE_RSS] = "rss",	    [SL_LINE_CGROUP] = "cgroup",
		[SL_LINE_LABEL] = "label",	   [SL_LINE_OTHERS] = "others",
	};
	unsigned fold = 0;
	struct columns c;
	double peak = 0;

	while ((unsigned)SL_TIMELINE_BINS >> fold > page->budget.bins)
		fold++;
	c = reduce(page, process, line, fold);
	for (uint32_t i = 0; i < c.n; i++)
		peak = c.max[i] > peak ? c.max[i] : peak;
	sl_page_row(page, process);
	sl_json_string(page->j, "what", whats[line->what]);
	sl_json_known(page->j, "device", line->device);
	sl_json_known(page->j, "shared", shared);
	sl_json_string(page->j, "name", name);
	sl_json_double(page->j, "peak", peak);
	/* may be before t0, if the bin begins before the first process */
	sl_json_double(page->j, "start",
		       (double)(int64_t)(c.first_ns + (uint64_t)page->timelines[process].unix_offset - page->t0_unix_ns));
	sl_json_double(page->j, "width", (double)(1ull << c.shift));
	sl_json_uint(page->j, "offset", c.offset);
	sl_json_column(page->j, "min", SL_PACKED_F64, c.min, c.n);
	sl_json_column(page->j, "max", SL_PACKED_F64, c.max, c.n);
	sl_json_column(page->j, "mean", SL_PACKED_F32, c.mean, c.n);
	sl_json_column(page->j, "stack", SL_PACKED_U32, c.stack, c.n);
	sl_json_column(page->j, "at", SL_PACKED_U8, c.at, c.n);
	sl_json_end(page->j);
	free_columns(&c);
}

/* What a dry device says that it uses is made up beside what the program asked for. */
static bool is_drawn(const struct sl_page *page, unsigned process, const struct sl_line *line, bool detailed)
{
	return (line->what != SL_LINE_USED || page->report->processes[process].model->recording.has_device_figures) &&
	       line->begun && line->what != SL_LINE_SAMPLES && (detailed || line->what == SL_LINE_KNOWN) &&
	       !(line->what == SL_LINE_KIND && line->index == SL_KIND_block);
}

void sl_page_lines(struct sl_page *page)
{
	sl_json_array(page->j, "lines");
	for (unsigned k = 0; k < page->report->process_count; k++) {
		const struct sl_timeline *timeline = page->timelines[page->order[k]].timeline;

		for (unsigned i = 0; i < timeline->line_count; i++)
			if (is_drawn(page, page->order[k], timeline->lines[i], k < page->budget.detailed))
				sl_page_put_line(page, page->order[k], timeline->lines[i],
						 name_of(&page->report->processes[page->order[k]], timeline->lines[i]),
						 shared_device(page, page->order[k], timeline->lines[i]));
	}
	sl_json_end(page->j);
}

/* ---- heat map */

/* Maximum of a process's known memory in each column, summed over devices. */
static void heat_row(const struct sl_page *page, unsigned process, double *row, unsigned columns, double width)
{
	const struct sl_timeline *timeline = timeline_of(page, process);
	uint64_t begin = timeline->begin_ns + (uint64_t)page->timelines[process].unix_offset - page->t0_unix_ns;
	double *one = sl_memory_must(calloc(columns, sizeof(*one)));

	for (unsigned i = 0; i < timeline->line_count; i++) {
		const struct sl_line *line = timeline->lines[i];

		if (line->what != SL_LINE_KNOWN || !line->begun)
			continue;
		for (unsigned c = 0; c < columns; c++)
			one[c] = 0;
		for (uint32_t b = line->first; b <= line->bin; b++) {
			int64_t start = (int64_t)(begin + ((uint64_t)b << timeline->shift)),
				end = start + (1ll << timeline->shift) - 1;
			unsigned from, to;

			if (end < 0 || (double)start >= width * columns) /* a snapshot beside recordings is of another time */
				continue;
			from = start > 0 ? (unsigned)((double)start / width) : 0;
			to = (unsigned)((double)end / width);
			for (unsigned c = from; c <= to && c < columns; c++)
				if ((double)line->bins[b].max > one[c])
					one[c] = (double)line->bins[b].max;
		}
		for (unsigned c = 0; c < columns; c++)
			row[c] += one[c];
	}
	free(one);
}

void sl_page_heat(struct sl_page *page)
{
	unsigned rows = page->process_count, columns = page->budget.heat;
	double width = (double)(page->t1_unix_ns - page->t0_unix_ns) / columns, scale = 1;
	double *values = sl_memory_must(calloc((size_t)rows * columns + 1, sizeof(*values)));
	uint8_t *cells = sl_memory_must(calloc((size_t)rows * columns + 1, 1));
	uint32_t *row = sl_memory_must(calloc(rows + 1, sizeof(*row)));

	width = width > 1 ? width : 1;
	for (unsigned i = 0; i < rows; i++) {
		row[i] = i;
		heat_row(page, i, values + (size_t)i * columns, columns, width);
	}
	for (size_t i = 0; i < (size_t)rows * columns; i++)
		scale = values[i] > scale ? values[i] : scale;
	for (size_t i = 0; i < (size_t)rows * columns; i++)
		cells[i] = (uint8_t)(values[i] / scale * 255 + 0.999);
	sl_json_object(page->j, "heat");
	sl_json_column(page->j, "row", SL_PACKED_U32, row, rows);
	sl_json_double(page->j, "start", 0);
	sl_json_double(page->j, "width", width);
	sl_json_uint(page->j, "bins", columns);
	sl_json_double(page->j, "scale", scale);
	sl_json_column(page->j, "values", SL_PACKED_U8, cells, (size_t)rows * columns);
	sl_json_end(page->j);
	free(values);
	free(cells);
	free(row);
}
