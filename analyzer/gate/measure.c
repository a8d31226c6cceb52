/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/format.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/window_facts.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/place.h"
#include "analyzer/report/owners.h"

#define MANY	  32
#define PAIRS_MAX (1 << 20) /* above so many pairs of lines, lines are matched by name only */

static void forget_numbers(struct sl_measure_lines *lines)
{
	if (lines->numbers)
		sl_map_free(lines->numbers);
	free(lines->numbers);
	lines->numbers = NULL;
}

/* The number of the line of that place, from 1; 0: there is none. */
static size_t find(struct sl_measure_lines *lines, const char *place)
{
	size_t i = 0;

	if (lines->list.count < MANY) {
		while (i < lines->list.count && strcmp(lines->list.item[i].place, place))
			i++;
		return i < lines->list.count ? i + 1 : 0;
	}
	if (!lines->numbers) {
		lines->numbers = sl_memory_must(calloc(1, sizeof(*lines->numbers)));
		for (; i < lines->list.count; i++)
			*sl_map_at(lines->numbers, lines->list.item[i].place) = i + 1;
	}
	return sl_map_find(lines->numbers, place);
}

/* The line of that place, made where there is none; texts are copied. */
static struct sl_measure_line *lines_add(struct sl_measure_lines *lines, const char *place, const char *what, uint64_t order)
{
	size_t number = find(lines, place);
	struct sl_measure_line *line;

	if (number) {
		line = &lines->list.item[number - 1];
		if (strcmp(line->what, what)) { /* reached by several callers: name none of them */
			free(line->what);
			line->what = sl_memory_copy(place);
		}
		return line;
	}
	line = SL_PUSH(&lines->list);
	*line = (struct sl_measure_line){.place = sl_memory_copy(place), .what = sl_memory_copy(what), .order = order};
	if (lines->numbers)
		*sl_map_at(lines->numbers, place) = lines->list.count;
	return line;
}

static int by_order(const void *a, const void *b)
{
	const struct sl_measure_line *x = a, *y = b;

	return SL_RISING(x->order, y->order) ?: strcmp(x->place, y->place);
}

static void lines_sort(struct sl_measure_lines *lines)
{
	forget_numbers(lines);
	if (lines->list.count)
		qsort(lines->list.item, lines->list.count, sizeof(*lines->list.item), by_order);
}

static void lines_free_texts(struct sl_measure_line *line)
{
	free(line->place);
	free(line->what);
	free(line->detail);
	free(line->file);
	free(line->key);
}

static void lines_free(struct sl_measure_lines *lines)
{
	for (size_t i = 0; i < lines->list.count; i++)
		lines_free_texts(&lines->list.item[i]);
	forget_numbers(lines);
	free(lines->list.item);
	*lines = (struct sl_measure_lines){0};
}

const struct sl_measure_line *sl_measure_lines_most(const struct sl_measure_lines *lines)
{
	const struct sl_measure_line *largest = NULL;

	for (size_t i = 0; i < lines->list.count; i++)
		if (!largest || lines->list.item[i].bytes > largest->bytes)
			largest = &lines->list.item[i];
	return largest;
}

/* Returns how many were found. */
static size_t match_names(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was)
{
	struct sl_map names = {0};
	size_t found = 0;

	for (size_t i = 0; i < before->list.count; i++)
		*sl_map_at(&names, before->list.item[i].place) = i + 1;
	for (size_t i = 0; i < after->list.count; i++) {
		was[i] = (long)*sl_map_at(&names, after->list.item[i].place) - 1;
		found += was[i] >= 0;
	}
	sl_map_free(&names);
	return found;
}

static double change(const struct sl_measure_line *a, const struct sl_measure_line *b)
{
	return a->bytes < b->bytes ? (double)(b->bytes - a->bytes) : (double)(a->bytes - b->bytes);
}

/* cost[i][k]: the least total change of lines i.. of `before` matched with lines k.. of `after`; the cheapest way is taken. */
static void match_in_order(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was)
{
	size_t n = before->list.count, m = after->list.count, row = m + 1;
	double *cost = sl_memory_must(calloc((n + 1) * row, sizeof(*cost)));

	for (size_t i = n + 1; i--;)
		for (size_t k = m + 1; k--;) {
			double *at = &cost[i * row + k];

			if (i == n && k == m)
				continue;
			*at = i < n ? at[row] + (double)before->list.item[i].bytes : at[1] + (double)after->list.item[k].bytes;
			if (k < m && at[1] + (double)after->list.item[k].bytes < *at)
				*at = at[1] + (double)after->list.item[k].bytes;
			if (i < n && k < m && at[row + 1] + change(&before->list.item[i], &after->list.item[k]) <= *at)
				*at = at[row + 1] + change(&before->list.item[i], &after->list.item[k]);
		}
	for (size_t i = 0, k = 0; k < m;) {
		const double *at = &cost[i * row + k];

		if (i < n && *at == at[row + 1] + change(&before->list.item[i], &after->list.item[k]))
			was[k++] = (long)i++;
		else if (i < n && *at == at[row] + (double)before->list.item[i].bytes)
			i++;
		else
			was[k++] = -1;
	}
	free(cost);
}

void sl_measure_lines_match(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was)
{
	size_t n = before->list.count, m = after->list.count, found = match_names(before, after, was);

	if (found < n && found < m && n <= PAIRS_MAX / m)
		match_in_order(before, after, was);
}

const char *const sl_measure_names[SL_MEASURE_OF_COUNT] = {"total", "library", "stack", "leak", "label", "growth"};

const char *sl_measure_word(const char *key, bool of_windows)
{
	return !strcmp(key, "leak")		    ? "left at the end"
	       : !strcmp(key, "allocated")	    ? "in tensors"
	       : of_windows && !strcmp(key, "peak") ? "peak of what was reserved"
						    : key;
}

bool sl_measure_is_count(enum sl_measure_of of, const char *key)
{
	return of == SL_MEASURE_TOTAL && !strcmp(key, "tensors");
}

struct sl_measure *sl_measures_find(const struct sl_measures *measures, enum sl_measure_of of, const char *key)
{
	uintptr_t at = sl_map_find(&measures->index[of], key);

	return at ? &measures->list.item[at - 1] : NULL;
}

/* The first of several with one key is found. */
static void note(struct sl_measures *measures, size_t position)
{
	uintptr_t *at = sl_map_at(&measures->index[measures->list.item[position].of], measures->list.item[position].key);

	*at = *at ? *at : position + 1;
}

static void forget_positions(struct sl_measures *measures)
{
	for (unsigned of = 0; of < SL_MEASURE_OF_COUNT; of++)
		sl_map_free(&measures->index[of]);
}

struct sl_measure *sl_measures_add(struct sl_measures *measures, enum sl_measure_of of, const char *key, const char *what)
{
	struct sl_measure *measure;

	measure = SL_PUSH(&measures->list);
	*measure = (struct sl_measure){.of = of, .key = sl_memory_copy(key), .what = sl_memory_copy(what), .bytes = SL_UNKNOWN};
	note(measures, measures->list.count - 1);
	return measure;
}

static int by_bytes(const void *a, const void *b)
{
	const struct sl_measure *x = a, *y = b;

	return SL_RISING(x->of, y->of) ?: SL_FALLING(x->bytes, y->bytes) ?: strcmp(x->key, y->key);
}

void sl_measures_sort(struct sl_measures *measures)
{
	if (measures->list.count)
		qsort(measures->list.item, measures->list.count, sizeof(*measures->list.item), by_bytes);
	forget_positions(measures);
	for (size_t i = 0; i < measures->list.count; i++)
		note(measures, i);
}

/* ---- the figures of one process; the run keeps the largest of each */

struct taking {
	struct sl_measures *measures;
	struct sl_measures one;			  /* the process that is being read */
	SL_VECTOR(struct sl_measure_line) places; /* bytes of each line, over all its callers */
	struct sl_map place_index;		  /* "of place" -> position + 1 */
	struct sl_measure_lines left;		  /* becomes measures->left */
	struct sl_map left_index, run_left;	  /* kind and line -> position + 1 in `left` and in measures->left */
	struct sl_device_state *worst; /* this process on the device with the highest peak; NULL: it did not use that device */
};

static struct sl_measure *entry_of(struct sl_measures *measures, enum sl_measure_of of, const char *key, const char *what)
{
	struct sl_measure *measure = sl_measures_find(measures, of, key);

	return measure ? measure : sl_measures_add(measures, of, key, what);
}

static struct sl_measure *add(struct sl_measures *measures, enum sl_measure_of of, const char *key, const char *what,
			      uint64_t bytes)
{
	struct sl_measure *measure = entry_of(measures, of, key, what);

	measure->bytes = measure->bytes == SL_UNKNOWN ? bytes : measure->bytes + bytes;
	return measure;
}

/* Adds to what the line holds over all its callers, and keeps the line that holds most. */
static void add_most(struct taking *taking, unsigned of, const struct sl_measure_line *line, uint64_t bytes)
{
	struct sl_measure_line *largest = &taking->measures->largest[of], *all;
	char *name = sl_memory_print("%u %s", of, line->place);
	uintptr_t *at = sl_map_at(&taking->place_index, name);

	free(name);
	if (!*at) {
		*SL_PUSH(&taking->places) = (struct sl_measure_line){.bytes = 0};
		*at = taking->places.count;
	}
	all = &taking->places.item[*at - 1];
	all->bytes += bytes;
	if (largest->place && all->bytes <= largest->bytes)
		return;
	if (!largest->place || strcmp(largest->place, line->place) != 0) {
		lines_free_texts(largest);
		*largest = (struct sl_measure_line){.place = sl_memory_copy(line->place),
						    .what = sl_memory_copy(line->place),
						    .file = line->file ? sl_memory_copy(line->file) : NULL,
						    .line = line->line};
	}
	largest->bytes = all->bytes;
}

/* Adds a leak to its line.  Lines are distinguished as on the terminal's summary. */
static void add_left(struct taking *taking, struct sl_process *process, const struct sl_leak *leak,
		     const struct sl_measure_line *line, const char *key)
{
	char name[420];
	int length = snprintf(name, sizeof(name), "%u ", leak->kind);
	struct sl_measure_line *all;
	uintptr_t *at;

	sl_leak_list_line(process, leak->stack, name + length, sizeof(name) - (size_t)length);
	if (!name[length])
		snprintf(name + length, sizeof(name) - (size_t)length, "%s", leak->library);
	at = sl_map_at(&taking->left_index, name);
	if (!*at) {
		*SL_PUSH(&taking->left.list) = (struct sl_measure_line){.place = sl_memory_copy(name),
									.what = sl_memory_copy(line->what),
									.detail = sl_memory_copy(line->detail),
									.file = line->file ? sl_memory_copy(line->file) : NULL,
									.key = sl_memory_copy(key),
									.line = line->line};
		*at = taking->left.list.count;
	}
	all = &taking->left.list.item[*at - 1];
	all->bytes += leak->bytes;
	all->growing += !strcmp(leak->verdict, "growing") ? leak->bytes : 0;
}

struct sl_measure_line *sl_measures_put(struct sl_measures *measures, enum sl_measure_of of, struct sl_process *process,
					const struct sl_site *site, const char *library, uint64_t bytes, const char **entry)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, site->stack);
	const struct sl_stack_frame *frame = sl_place_of(process, frames, count);
	char key[SL_FINGERPRINT_BYTES], place[400], what[400];
	struct sl_measure_line *line;
	struct sl_measure *measure;

	if (process->model->recording.lists_tensors && frame &&
	    !frame->python) /* an operation that autograd ran, whatever it asked inside */
		sl_fingerprint(key, site->kind, library, frame, 1);
	else
		sl_fingerprint(key, site->kind, library, frames, count);
	sl_owners_line(process, site->stack, 1, place, sizeof(place));
	sl_owners_line(process, site->stack, 2, what, sizeof(what));
	measure = add(measures, of, key, what[0] ? what : library, bytes);
	*entry = measure->key;
	line = lines_add(&measure->lines, place[0] ? place : library, what[0] ? what : library,
			 !frame	       ? 0
			 : frame->line ? frame->line
				       : frame->offset);
	line->bytes += bytes;
	if (!line->detail)
		line->detail = sl_memory_print("%s, %s", sl_event_kinds[site->kind].name, library);
	/* native lines too: ci_reports.c leaves out those whose source is not in the repository */
	if (!line->file && frame && (!frame->python || sl_stacks_is_own(frame)) && frame->file && frame->line) {
		line->file = sl_memory_copy(frame->file);
		line->line = frame->line;
	}
	return line;
}

static void add_place(struct taking *taking, enum sl_measure_of of, struct sl_process *process, const struct sl_site *site,
		      const char *library, uint64_t bytes, const struct sl_leak *leak)
{
	const char *key;
	struct sl_measure_line *line = sl_measures_put(&taking->one, of, process, site, library, bytes, &key);

	if (leak && !strcmp(leak->verdict, "growing"))
		line->growing += bytes;
	if (of != SL_MEASURE_STACK || (taking->worst && taking->worst->device == site->device))
		add_most(taking, of, line, bytes);
	if (of == SL_MEASURE_STACK && site->kind == SL_KIND_block && taking->worst && taking->worst->device == site->device &&
	    (process->model->recording.lists_tensors ||
	     taking->worst->torch_at_peak.allocated_bytes == taking->worst->torch.peak_allocated_bytes))
		add_most(taking, SL_MOST_TENSORS, line, bytes);
	if (leak && strcmp(leak->verdict, "kept") != 0) /* a finding reports what is merely kept */
		add_left(taking, process, leak, line, key);
}

static void take_sites(struct taking *taking, struct sl_process *process)
{
	uint64_t bytes;

	for (const struct sl_site *site = NULL; (site = sl_owners_next(process, SL_DEVICE_ANY, SL_WEIGH_PEAK, site, &bytes));)
		add_place(taking, SL_MEASURE_STACK, process, site, sl_model_library(process->model, site), bytes, NULL);
}

static void add_leak(void *context, struct sl_process *process, const struct sl_leak *leak)
{
	struct taking *taking = context;
	struct sl_site site = {.stack = leak->stack, .kind = (uint8_t)leak->kind, .device = (int16_t)leak->device};

	add_place(taking, SL_MEASURE_LEAK, process, &site, leak->library, leak->bytes, leak);
	add(&taking->one, SL_MEASURE_TOTAL, "leak", "live at exit, or kept until then and growing", leak->bytes);
}

/* What is left of the driver's memory is counted as left. */
static void take_held(struct sl_measures *measures, struct sl_process *process)
{
	struct sl_stack largest_stack = {0};
	uint64_t bytes = 0;

	for (size_t i = 0; i < process->leaks_by_line.count; i++) { /* largest first */
		const struct sl_leak_line *line = &process->leaks_by_line.item[i];

		if (line->verdict != SL_KEPT_HELD || line->bytes == SL_UNKNOWN)
			continue;
		largest_stack = bytes ? largest_stack : line->track->stack;
		bytes += line->bytes - (line->track->kind == SL_KIND_block ? 0 : line->left_bytes);
	}
	if (bytes <= measures->held_bytes)
		return;
	measures->held_bytes = bytes;
	measures->held_by = process;
	measures->held_at = largest_stack;
}

static void take_leaks(struct taking *taking, struct sl_process *process)
{
	bool ended = process->trace->status == SL_STATUS_COMPLETED;

	/* a snapshot tells no end, so that its total is known only where something grows */
	if (process->model->recording.follows_process || process->leaks.count ||
	    (process->leaks_by_line.count && process->leaks_by_line.item[0].verdict == SL_KEPT_GROWING))
		add(&taking->one, SL_MEASURE_TOTAL, "leak", "live at exit, or kept until then and growing", ended ? 0 : SL_UNKNOWN)
			->unknown = !ended;
	take_held(taking->measures, process);
	sl_leak_list_left(process, add_leak, taking);
}

static void take_growth(struct taking *taking, const char *name, const struct sl_growth *growth)
{
	bool noisy = !strcmp(growth->verdict, "noisy"), growing = !strcmp(growth->verdict, "growing");
	struct sl_measure *measure = add(&taking->one, SL_MEASURE_GROWTH, name, name,
					 noisy	   ? SL_UNKNOWN
					 : growing ? sl_stats_bytes(growth->slope)
						   : 0);

	if (noisy)
		measure->at_most = sl_stats_bytes(growth->at_most) + 1;
	measure->is_outermost = !growth->inside;
	if (growing)
		measure->at_least = sl_stats_bytes(2 * growth->slope - growth->at_most);
}

static void keep_most(struct sl_measure *all, uint64_t bytes)
{
	if (bytes == SL_UNKNOWN)
		all->unknown++;
	else if (all->bytes == SL_UNKNOWN || bytes > all->bytes)
		all->bytes = bytes;
}

static void take_names(struct taking *taking, const struct sl_process *process)
{
	const struct sl_model *model = process->model;
	char library[256];

	for (size_t i = 0; i < model->holders.count && !model->recording.lists_tensors; i++) { /* which names no library */
		if (!model->holders.item[i].peak_bytes)
			continue;
		sl_fingerprint_library(library, sizeof(library), model->libraries.item[model->holders.item[i].library]);
		keep_most(entry_of(&taking->one, SL_MEASURE_LIBRARY, library, library), model->holders.item[i].peak_bytes);
	}
	for (size_t i = 0; i < process->growth.count; i++) {
		const struct sl_growth *growth = &process->growth.item[i];
		const struct sl_label *label = &model->labels.item[growth->label];
		const char *name = sl_defs_text(model->defs, label->text);
		if (!name)
			continue;
		add(&taking->one, SL_MEASURE_LABEL, name, name, label->entries ? label->peak_bytes : SL_UNKNOWN);
		if (growth->verdict)
			take_growth(taking, name, growth);
	}
}

/* Keeps the lines of the worse process; a line that grows in either grows. */
static void keep_lines(struct sl_measure *all, struct sl_measure *one)
{
	struct sl_measure_lines other = one->lines;

	if (all->bytes == SL_UNKNOWN || one->bytes > all->bytes) {
		other = all->lines;
		all->lines = one->lines;
	}
	for (size_t i = 0; i < other.list.count; i++)
		for (size_t k = 0; other.list.item[i].growing && k < all->lines.list.count; k++) {
			struct sl_measure_line *line = &all->lines.list.item[k];
			uint64_t growing = other.list.item[i].growing;

			if (!line->growing && !strcmp(line->place, other.list.item[i].place))
				line->growing = growing < line->bytes ? growing : line->bytes;
		}
	one->lines = other;
}

static void keep_left(struct taking *taking)
{
	for (size_t i = 0; i < taking->left.list.count; i++) {
		struct sl_measure_line *one = &taking->left.list.item[i], other = *one, *all;
		uintptr_t *at = sl_map_at(&taking->run_left, one->place);

		if (!*at) {
			*SL_PUSH(&taking->measures->left.list) = (struct sl_measure_line){.bytes = 0};
			*at = taking->measures->left.list.count;
		}
		all = &taking->measures->left.list.item[*at - 1];
		if (one->growing == all->growing ? one->bytes > all->bytes : one->growing > all->growing) {
			*one = *all;
			*all = other;
		}
	}
	lines_free(&taking->left);
	sl_map_free(&taking->left_index);
	taking->left_index = (struct sl_map){0};
}

/* Each measure of the run becomes that of the worst process so far. */
static void keep_worst(struct taking *taking)
{
	for (size_t i = 0; i < taking->one.list.count; i++) {
		struct sl_measure *one = &taking->one.list.item[i];
		struct sl_measure *all = entry_of(taking->measures, one->of, one->key, one->what);

		keep_lines(all, one);
		keep_most(all, one->bytes);
		all->unknown += one->bytes != SL_UNKNOWN && one->unknown;
		all->at_most = one->at_most > all->at_most ? one->at_most : all->at_most;
		all->is_outermost |= one->is_outermost;
		all->at_least = one->at_least > all->at_least ? one->at_least : all->at_least;
	}
	keep_left(taking);
	sl_measures_free(&taking->one);
	sl_map_free(&taking->place_index);
	SL_DROP(&taking->places);
	taking->place_index = (struct sl_map){0};
}

/* Describes a place with several lines by its largest line and the number of the others. */
static void name_sums(struct sl_measures *measures)
{
	for (size_t i = 0; i < measures->list.count; i++) {
		struct sl_measure *m = &measures->list.item[i];
		const struct sl_measure_line *largest = sl_measure_lines_most(&m->lines);
		size_t more = m->lines.list.count - 1;

		if (!largest)
			continue;
		lines_sort(&m->lines);
		largest = sl_measure_lines_most(&m->lines);
		free(m->what);
		m->what = more ? sl_memory_print("%s and %zu more line%s", largest->what, more, more == 1 ? "" : "s")
			       : sl_memory_copy(largest->what);
	}
}

static void take_totals(struct sl_measures *run, const struct sl_report *report)
{
	bool measured = !report->process_count;

	/* a run without a device held nothing; hidden memory is unknown */
	entry_of(run, SL_MEASURE_TOTAL, "peak", "most held on one device")->bytes = 0;
	for (unsigned p = 0; p < report->process_count; p++)
		measured |= report->processes[p].model->recording.has_device_figures;
	if (measured) /* else it can never be known */
		entry_of(run, SL_MEASURE_TOTAL, "hidden", "used on a device beyond what was recorded");
	for (unsigned p = 0; p < report->process_count;
	     p++) /* also on a device whose number no call told, of a program attached to */
		keep_most(sl_measures_find(run, SL_MEASURE_TOTAL, "peak"), sl_devices_peak(&report->processes[p]));
	for (unsigned i = 0; i < report->device_count; i++) {
		struct sl_measure *hidden = sl_measures_find(run, SL_MEASURE_TOTAL, "hidden");
		uint64_t bytes = report->devices[i].hidden_peak_bytes;
		bool bound = report->devices[i].figure == SL_FIGURE_DEVICE; /* what other programs hold is part of it */

		keep_most(sl_measures_find(run, SL_MEASURE_TOTAL, "peak"), report->devices[i].known_peak_bytes);
		if (hidden)
			keep_most(hidden, bound ? SL_UNKNOWN : bytes);
		if (hidden && bytes != SL_UNKNOWN && bytes > hidden->at_most)
			hidden->at_most = bytes;
		for (unsigned u = 0; u < report->devices[i].user_count; u++) {
			const struct sl_device_state *state = report->devices[i].users[u].state;
			const struct sl_model *model = report->processes[report->devices[i].users[u].process].model;

			if (model->recording.lists_tensors) /* its known peak is what was reserved when tensors held most */
				keep_most(sl_measures_find(run, SL_MEASURE_TOTAL, "peak"), state->torch.peak_reserved_bytes);
			if (!state->torch.used)
				continue;
			keep_most(
				entry_of(run, SL_MEASURE_TOTAL, "allocated", "most that tensors of one process held on one device"),
				model->recording.lists_tensors
					? state->torch_at_peak.allocated_bytes - state->torch_at_peak.rounding
					: state->torch.peak_allocated_bytes);
			/* a part that was folded has peaks of bytes only */
			keep_most(entry_of(run, SL_MEASURE_TOTAL, "tensors", "most tensors of one process on one device"),
				  model->folded_ns ? SL_UNKNOWN : state->torch.peak_blocks);
		}
	}
}

void sl_measures_take(struct sl_measures *measures, struct sl_report *report)
{
	struct taking taking = {.measures = measures};
	const struct sl_shared_device *worst = report->devices;

	*measures = (struct sl_measures){.no_device = !report->device_count && !sl_devices_fullest_process(report),
					 .of_windows = sl_window_all(report),
					 .dry_card = sl_dry_report(report) ? sl_memory_copy(sl_dry_report(report)) : NULL};
	take_totals(measures, report);
	for (unsigned i = 1; i < report->device_count; i++)
		if (report->devices[i].known_peak_bytes > worst->known_peak_bytes)
			worst = &report->devices[i];
	for (unsigned i = 0; i < report->process_count; i++) {
		taking.worst = report->device_count ? sl_devices_state(report, worst, i) : NULL;
		take_sites(&taking, &report->processes[i]);
		take_leaks(&taking, &report->processes[i]);
		take_names(&taking, &report->processes[i]);
		keep_worst(&taking);
	}
	sl_map_free(&taking.run_left);
	name_sums(measures);
	sl_measures_sort(measures);
}

void sl_measures_free(struct sl_measures *measures)
{
	for (size_t i = 0; i < measures->list.count; i++) {
		free(measures->list.item[i].key);
		free(measures->list.item[i].what);
		lines_free(&measures->list.item[i].lines);
	}
	free(measures->list.item);
	free(measures->dry_card);
	forget_positions(measures);
	lines_free(&measures->left);
	for (unsigned of = 0; of < SL_MOST_COUNT; of++)
		lines_free_texts(&measures->largest[of]);
	*measures = (struct sl_measures){0};
}
