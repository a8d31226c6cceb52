/* SPDX-License-Identifier: MIT */
/*
 * timeline.png, timeline.svg and ranks.png, for papers and tickets.  They show the memory of the process with the highest peak by
 * library, with the use of the whole device above it, and the maximum of every process over time.  The same bins as the page's;
 * where several fall on one column the largest maximum is drawn.
 */
#include <cairo-svg.h>
#include <cairo.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/devices.h"

#define WIDTH	1200
#define HEIGHT	420
#define LEFT	90
#define RIGHT	20
#define TOP	34
#define BOTTOM	70
#define COLUMNS (WIDTH - LEFT - RIGHT)
#define LAYERS	8
#define TENSORS "tensors"

struct layer {
	const char *name;
	double column[COLUMNS];
	double size;
	unsigned lines; /* with several lines the maxima are upper bounds, since they need not coincide */
};

struct picture {
	const struct sl_process *process;
	uint64_t begin_ns, end_ns;
	double top, used[COLUMNS], accounted[COLUMNS], others[COLUMNS]; /* others: memory of other recorded processes */
	unsigned devices;						/* number of devices whose sum is `used` */
	bool has_others;
	struct layer layer[LAYERS];
	unsigned layers;
};

/* The palette of Okabe and Ito, distinguishable by the colour-blind. */
static const double colours[LAYERS][3] = {{0, .447, .698},    {.902, .624, 0}, {0, .62, .451},	  {.8, .475, .655},
					  {.337, .706, .914}, {.835, .369, 0}, {.549, .42, .694}, {.6, .63, .66}};

static void add_line(double *columns, const struct sl_timeline *timeline, const struct sl_line *line, uint64_t begin_ns,
		     uint64_t end_ns, bool maximum)
{
	double one[COLUMNS] = {0};

	for (uint32_t b = line->first; line->begun && b <= line->bin; b++) {
		uint64_t from_ns = timeline->begin_ns + ((uint64_t)b << timeline->shift), width = 1ull << timeline->shift;
		double span = (double)(end_ns - begin_ns), value;
		long from = (long)sl_stats_whole(((double)from_ns - (double)begin_ns) / span * COLUMNS);
		long to = (long)sl_stats_whole(((double)(from_ns + width) - (double)begin_ns) / span * COLUMNS);

		value = maximum ? (double)line->bins[b].max : line->bins[b].area / (double)width;
		for (long c = from < 0 ? 0 : from; c <= to && c < COLUMNS; c++)
			if (value > one[c])
				one[c] = value;
	}
	for (unsigned c = 0; c < COLUMNS; c++)
		columns[c] += one[c];
}

/* The lowest layer is drawn at its full height. */
static int by_size(const void *a, const void *b)
{
	const struct layer *x = a, *y = b;
	bool first = !strcmp(x->name, TENSORS), second = !strcmp(y->name, TENSORS);

	if (first != second)
		return first ? -1 : 1;
	return SL_FALLING(x->size, y->size);
}

/* Adds a layer: the line, minus `less` if there is one. */
static void add_layer(struct picture *p, const char *name, const struct sl_line *line, const struct sl_line *less)
{
	double minus[COLUMNS] = {0};
	struct layer *layer;
	unsigned i = 0;

	while (i < p->layers && strcmp(p->layer[i].name, name))
		i++;
	if (i == LAYERS) /* all layers are taken: add to the last one */
		p->layer[--i].name = "others";
	if (i == p->layers)
		p->layer[p->layers++] = (struct layer){.name = name};
	layer = &p->layer[i];
	layer->lines += less ? 2 : 1;
	add_line(layer->column, &p->process->model->timeline, line, p->begin_ns, p->end_ns, true);
	if (less)
		add_line(minus, &p->process->model->timeline, less, p->begin_ns, p->end_ns, false);
	for (unsigned c = 0; c < COLUMNS; c++)
		layer->column[c] -= minus[c] < layer->column[c] ? minus[c] : layer->column[c];
	for (unsigned c = 0; c < COLUMNS; c++)
		layer->size += layer->column[c];
}

/* Bytes in a device's segments that no block uses. */
static const char *rest_name(const struct sl_model *model, int device)
{
	const struct sl_device_state *state = model->devices[device + 1];

	return sl_model_rest_name(state ? &state->torch : NULL);
}

static void fill(struct picture *p, const struct sl_process *process)
{
	const struct sl_model *model = process->model;
	const struct sl_timeline *timeline = &model->timeline;
	bool has_device_memory = false;

	for (size_t d = 0; d < SL_COUNT(model->devices); d++)
		has_device_memory |= model->devices[d] && model->devices[d]->used;
	*p = (struct picture){.process = process, .begin_ns = timeline->begin_ns, .end_ns = timeline->end_ns};
	if (p->end_ns <= p->begin_ns)
		p->end_ns = p->begin_ns + 1;
	for (unsigned i = 0; i < timeline->line_count; i++) {
		const struct sl_line *line = timeline->lines[i];

		bool torch = sl_timeline_find(timeline, SL_LINE_ALLOCATED, line->device, 0) != NULL;

		/* where PyTorch's allocator reports, its tensors and its unused memory stand for its segments */
		if (line->what == SL_LINE_LIBRARY && !(torch && sl_model_is_cache(model->libraries.item[line->index])))
			add_layer(p, model->libraries.item[line->index], line, NULL);
		else if (line->what == SL_LINE_ALLOCATED)
			add_layer(p, TENSORS, line, NULL);
		else if (line->what == SL_LINE_RESERVED)
			add_layer(p, rest_name(process->model, line->device), line,
				  sl_timeline_find(timeline, SL_LINE_ALLOCATED, line->device, 0));
		else if (line->what == SL_LINE_RSS && !has_device_memory)
			add_layer(p, "resident on the host", line, NULL),
				add_line(p->accounted, timeline, line, p->begin_ns, p->end_ns, true);
		else if (line->what == SL_LINE_KNOWN)
			add_line(p->accounted, timeline, line, p->begin_ns, p->end_ns, true);
		else if (line->what == SL_LINE_USED)
			p->devices++, add_line(p->used, timeline, line, p->begin_ns, p->end_ns, true);
		else if (line->what == SL_LINE_OTHERS)
			add_line(p->others, timeline, line, p->begin_ns, p->end_ns, true);
	}
	qsort(p->layer, p->layers, sizeof(p->layer[0]), by_size);
	for (unsigned c = 0; c < COLUMNS; c++) {
		/* a sample is older than what was allocated since: the device holds at least that */
		p->used[c] = fmax(p->used[c], p->accounted[c] + p->others[c]);
		p->has_others |= p->others[c] > 0;
		p->top = p->accounted[c] > p->top ? p->accounted[c] : p->top;
		p->top = p->used[c] > p->top ? p->used[c] : p->top;
	}
	p->top = p->top > 0 ? p->top * 1.05 : 1;
}

static void text(cairo_t *c, double x, double y, double align, const char *words)
{
	cairo_text_extents_t size;
	char clean[160];
	size_t n = 0;

	for (; *words && n < sizeof(clean) - 1; words++) /* control characters and torn UTF-8 are not drawn */
		if ((unsigned char)*words >= 0x20 && (unsigned char)*words < 0x7f)
			clean[n++] = *words;
	clean[n] = 0;
	cairo_text_extents(c, clean, &size);
	cairo_move_to(c, x - size.x_advance * align, y);
	cairo_show_text(c, clean);
}

static double y_of(const struct picture *p, double value)
{
	return HEIGHT - BOTTOM - value / p->top * (HEIGHT - TOP - BOTTOM);
}

static void draw_axes(cairo_t *c, const struct picture *p)
{
	double step = 1;

	while (p->top / step > 7)
		step *= 2;
	cairo_set_line_width(c, 1);
	for (double value = 0; value <= p->top; value += step) {
		cairo_set_source_rgb(c, .88, .9, .92);
		cairo_move_to(c, LEFT, y_of(p, value));
		cairo_line_to(c, WIDTH - RIGHT, y_of(p, value));
		cairo_stroke(c);
		cairo_set_source_rgb(c, .25, .28, .32);
		text(c, LEFT - 8, y_of(p, value) + 4, 1, SL_SIZE(sl_stats_bytes(value)));
	}
	for (unsigned i = 0; i <= 4; i++)
		text(c, LEFT + i * COLUMNS / 4.0, HEIGHT - BOTTOM + 18, i / 4.0,
		     i ? SL_SPAN((p->end_ns - p->begin_ns) / 4 * i) : "0");
}

static void draw_line(cairo_t *c, const struct picture *p, const double *columns)
{
	for (unsigned x = 0; x < COLUMNS; x++) {
		cairo_line_to(c, LEFT + x, y_of(p, columns[x]));
		cairo_line_to(c, LEFT + x + 1, y_of(p, columns[x]));
	}
	cairo_stroke(c);
}

static void draw_area(cairo_t *c, const struct picture *p, const double *base, const double *top)
{
	cairo_move_to(c, LEFT, y_of(p, base[0]));
	for (unsigned x = 0; x < COLUMNS; x++) {
		cairo_line_to(c, LEFT + x, y_of(p, top[x]));
		cairo_line_to(c, LEFT + x + 1, y_of(p, top[x]));
	}
	for (unsigned x = COLUMNS; x--;) {
		cairo_line_to(c, LEFT + x + 1, y_of(p, base[x]));
		cairo_line_to(c, LEFT + x, y_of(p, base[x]));
	}
	cairo_fill(c);
}

static double drawn(const struct picture *p, unsigned layer, unsigned x, double base)
{
	return fmax(0, fmin(p->layer[layer].column[x], layer ? fmax(p->accounted[x] - base, 0) : INFINITY));
}

/* Draws the part of the layer's maximum that is above the stacked sum. */
static void draw_beyond(cairo_t *c, const struct picture *p, unsigned layer, const double *base)
{
	const double *own = p->layer[layer].column;

	cairo_set_line_width(c, 2);
	for (unsigned x = 0; x < COLUMNS && p->layer[layer].lines == 1; x++)
		if (own[x] > drawn(p, layer, x, base[x]) * (1 + 1e-9)) {
			cairo_move_to(c, LEFT + x, y_of(p, own[x]));
			cairo_line_to(c, LEFT + x + 1, y_of(p, own[x]));
		}
	cairo_stroke(c);
}

/* Stacks the maxima, but only up to the maximum of the sum, since they need not coincide. */
static void draw_areas(cairo_t *c, const struct picture *p)
{
	static double bases[LAYERS][COLUMNS], top[COLUMNS];

	memset(bases[0], 0, sizeof(bases[0]));
	for (unsigned k = 0; k < p->layers; k++) {
		for (unsigned x = 0; x < COLUMNS; x++)
			top[x] = bases[k][x] + drawn(p, k, x, bases[k][x]);
		cairo_set_source_rgb(c, colours[k][0], colours[k][1], colours[k][2]);
		draw_area(c, p, bases[k], top);
		if (k + 1 < p->layers)
			memcpy(bases[k + 1], top, sizeof(top));
	}
	for (unsigned k = 0; k < p->layers; k++) {
		cairo_set_source_rgb(c, colours[k][0], colours[k][1], colours[k][2]);
		draw_beyond(c, p, k, bases[k]);
	}
	for (unsigned x = 0; x < COLUMNS; x++)
		top[x] = p->accounted[x] + p->others[x];
	cairo_set_source_rgb(c, .8, .82, .84);
	draw_area(c, p, p->accounted, top);
	cairo_set_source_rgb(c, .04, .24, .36);
	cairo_set_line_width(c, 1.2);
	draw_line(c, p, p->accounted);
	if (p->devices) {
		const double dash[] = {4, 3};

		cairo_set_source_rgb(c, .23, .19, .33);
		cairo_set_dash(c, dash, 2, 0);
		draw_line(c, p, p->used);
		cairo_set_dash(c, NULL, 0, 0);
	}
	cairo_set_source_rgb(c, .7, .15, .12);
	for (size_t i = 0; i < p->process->model->ooms.count; i++) {
		double at = (double)(p->process->model->ooms.item[i].time_ns - p->begin_ns) / (double)(p->end_ns - p->begin_ns);

		cairo_move_to(c, LEFT + at * COLUMNS, TOP);
		cairo_line_to(c, LEFT + at * COLUMNS, HEIGHT - BOTTOM);
		cairo_stroke(c);
	}
}

static void draw_words(cairo_t *c, const struct picture *p)
{
	const struct sl_header *header = &p->process->trace->header;
	char title[256];
	double x = LEFT, peak = 0;

	for (unsigned i = 0; i < COLUMNS; i++)
		peak = p->accounted[i] > peak ? p->accounted[i] : peak;
	snprintf(title, sizeof(title), "%s  peak %s", sl_paths_name(p->process->trace->name), SL_SIZE(sl_stats_bytes(peak)));
	cairo_set_source_rgb(c, .1, .12, .14);
	cairo_set_font_size(c, 15);
	text(c, LEFT, 22, 0, title);
	cairo_set_font_size(c, 12);
	text(c, WIDTH - RIGHT, 22, 1, header->host ? header->host : "");
	for (unsigned k = 0; k < p->layers && x < WIDTH - (p->has_others ? 400 : 200); k++) {
		cairo_set_source_rgb(c, colours[k][0], colours[k][1], colours[k][2]);
		cairo_rectangle(c, x, HEIGHT - 28, 11, 11);
		cairo_fill(c);
		cairo_set_source_rgb(c, .1, .12, .14);
		text(c, x + 16, HEIGHT - 18, 0, p->layer[k].name);
		cairo_get_current_point(c, &x, &peak);
		x += 18;
	}
	if (p->devices) {
		snprintf(title, sizeof(title), "%sdashed: use of %s", p->has_others ? "grey: other recorded processes, " : "",
			 p->devices > 1 ? "all its devices" : "the device");
		text(c, WIDTH - RIGHT, HEIGHT - 18, 1, title);
	}
}

static cairo_status_t to_file(void *file, const unsigned char *data, unsigned size)
{
	return fwrite(data, 1, size, file) == size ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

/* White paper with the font of all texts. */
static cairo_t *paper(cairo_surface_t *surface)
{
	cairo_t *c = cairo_create(surface);

	cairo_set_source_rgb(c, 1, 1, 1);
	cairo_paint(c);
	cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
	return c;
}

/*
 * Opens the font, and keeps it open.  fontconfig reads the user's fonts here, and on a machine without a cache of them it makes
 * one; without the right to write it would do so again in every run, and print errors.
 */
static void open_font(void)
{
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);
	cairo_t *c = paper(surface);

	/* without a configuration of fonts fontconfig says so on stderr, and takes what it finds */
	if (saved >= 0 && nowhere >= 0)
		dup2(nowhere, STDERR_FILENO);
	cairo_scaled_font_reference(cairo_get_scaled_font(c)); /* until the program ends */
	text(c, 0, 0, 0, "0");
	if (saved >= 0 && nowhere >= 0)
		dup2(saved, STDERR_FILENO);
	if (nowhere >= 0)
		close(nowhere);
	if (saved >= 0)
		close(saved);
	cairo_destroy(c);
	cairo_surface_destroy(surface);
}

static bool draw_timeline(struct sl_report *report, FILE *out, bool svg)
{
	const struct sl_process *fullest = sl_devices_fullest_process(report);
	const struct sl_process *process = fullest || !report->process_count ? fullest : report->processes;
	struct picture *p = process ? malloc(sizeof(*p)) : NULL;
	cairo_surface_t *surface = svg ? cairo_svg_surface_create_for_stream(to_file, out, WIDTH, HEIGHT)
				       : cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH, HEIGHT);
	cairo_t *c = paper(surface);
	cairo_status_t status;

	cairo_set_font_size(c, 12);
	if (p) {
		fill(p, process);
		draw_axes(c, p);
		draw_areas(c, p);
		draw_words(c, p);
	}
	status = cairo_status(c);
	if (!svg && !status)
		status = cairo_surface_write_to_png_stream(surface, to_file, out);
	cairo_destroy(c);
	cairo_surface_finish(surface);
	status = status ? status : cairo_surface_status(surface);
	cairo_surface_destroy(surface);
	free(p);
	return !status;
}

static bool timeline_png(struct sl_report *report, FILE *out)
{
	return draw_timeline(report, out, false);
}

static bool timeline_svg(struct sl_report *report, FILE *out)
{
	return draw_timeline(report, out, true);
}

/* Sets a colour from light (0) to dark blue (1), in even steps of lightness. */
static void heat(cairo_t *c, double t)
{
	cairo_set_source_rgb(c, .95 - .92 * t, .965 - .78 * t, .976 - .56 * t);
}

static void draw_ranks(const struct sl_report *report, cairo_t *c, double height)
{
	double *cells = sl_memory_must(calloc((size_t)report->process_count * COLUMNS + 1, sizeof(*cells))), max_cell = 1,
	       row = height / report->process_count;
	uint64_t begin = report->started_unix_ns, end = report->ended_unix_ns > begin ? report->ended_unix_ns : begin + 1;
	char words[96];

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];
		const struct sl_timeline *timeline = &p->model->timeline;
		uint64_t shift = p->trace->header.started_ns - p->trace->header.monotonic_ns; /* unix = monotonic + shift */

		for (unsigned k = 0; k < timeline->line_count; k++)
			if (timeline->lines[k]->what == SL_LINE_KNOWN)
				add_line(cells + (size_t)i * COLUMNS, timeline, timeline->lines[k], begin - shift, end - shift,
					 true);
	}
	for (size_t i = 0; i < (size_t)report->process_count * COLUMNS; i++)
		max_cell = cells[i] > max_cell ? cells[i] : max_cell;
	cairo_set_antialias(c, CAIRO_ANTIALIAS_NONE);
	for (unsigned i = 0; i < report->process_count; i++)
		for (unsigned x = 0; x < COLUMNS; x++) {
			heat(c, cells[(size_t)i * COLUMNS + x] / max_cell);
			cairo_rectangle(c, LEFT + x, TOP + i * row, 1, row);
			cairo_fill(c);
		}
	cairo_set_source_rgb(c, .1, .12, .14);
	cairo_set_font_size(c, 15);
	snprintf(words, sizeof(words), "%u processes, dark is %s", report->process_count, SL_SIZE(sl_stats_bytes(max_cell)));
	text(c, LEFT, 22, 0, words);
	cairo_set_font_size(c, 11);
	for (unsigned i = 0, last = 0; i < report->process_count; i++)
		if (!i || (i - last) * row >= 14) {
			snprintf(words, sizeof(words), "%lld",
				 (long long)(report->processes[i].trace->header.rank < 0
						     ? report->processes[i].trace->header.pid
						     : report->processes[i].trace->header.rank));
			text(c, LEFT - 8, TOP + i * row + (row > 12 ? row / 2 + 4 : 8), 1, words);
			last = i;
		}
	free(cells);
}

static bool ranks_png(struct sl_report *report, FILE *out)
{
	double height = report->process_count < 24 ? report->process_count * 16 : report->process_count < 400 ? 400 : 1024;
	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH, (int)height + TOP + 10);
	cairo_t *c = paper(surface);
	cairo_status_t status;

	if (report->process_count)
		draw_ranks(report, c, height);
	status = cairo_surface_write_to_png_stream(surface, to_file, out);
	cairo_destroy(c);
	cairo_surface_destroy(surface);
	return !status;
}

const struct sl_output sl_output_timeline_png = {.name = "timeline.png", .file = timeline_png, .prepare = open_font};
const struct sl_output sl_output_timeline_svg = {.name = "timeline.svg", .file = timeline_svg};
const struct sl_output sl_output_ranks_png = {.name = "ranks.png", .file = ranks_png};
