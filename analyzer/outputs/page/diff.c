/* SPDX-License-Identifier: MIT */
/* The page about changes between runs: differences as rows, and stacks at the peak with their bytes before and after. */
#include <math.h>

#include "analyzer/base/paths.h"
#include "analyzer/gate/gate.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/owners.h"
#include "analyzer/outputs/page/page.h"

void sl_page_changes_begin(struct sl_page_changes *changes)
{
	static const struct sl_page_budget none;

	*changes = (struct sl_page_changes){0};
	sl_page_begin(&changes->all, 0, &none);
}

static void add(struct sl_page_changes *changes, uint32_t node, bool after, double bytes)
{
	uint32_t at = sl_idmap_get(&changes->index, node, 0);

	if (!at) {
		SL_ROOM(&changes->stacks);
		changes->stacks.item[changes->stacks.count] = (struct sl_page_change){.node = node};
		at = (uint32_t)++changes->stacks.count;
		sl_idmap_set(&changes->index, node, at);
	}
	*(after ? &changes->stacks.item[at - 1].after : &changes->stacks.item[at - 1].before) += bytes;
}

void sl_page_changes_add(struct sl_page_changes *changes, struct sl_process *process, bool after, double share)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	const struct sl_site *site = NULL;
	uint64_t bytes;

	if (sl_dry_card(&process->trace->header))
		snprintf(changes->dry, sizeof(changes->dry), "%s", sl_dry_card(&process->trace->header));
	while ((site = sl_owners_next(process, SL_DEVICE_ANY, SL_WEIGH_PEAK, site, &bytes))) {
		unsigned count = sl_process_stack(process, frames, site->stack);

		for (unsigned f = 0; f < count; f++) { /* line numbers and offsets differ between builds */
			frames[f].line = 0;
			frames[f].offset = 0;
			frames[f].file = sl_paths_name(frames[f].file);
		}
		add(changes,
		    sl_page_frames(&changes->all, sl_page_note(&changes->all, sl_model_library(process->model, site)), frames,
				   count),
		    after, (double)bytes * share);
	}
}

/* Order: totals, then changes before noise, then by size. */
static int by_change(const void *a, const void *b)
{
	const struct sl_difference *x = *(const struct sl_difference *const *)a, *y = *(const struct sl_difference *const *)b;

	return SL_FALLING(x->of == SL_MEASURE_TOTAL, y->of == SL_MEASURE_TOTAL)
	       ?: SL_FALLING(x->change > SL_CHANGE_UNKNOWN, y->change > SL_CHANGE_UNKNOWN)
	       ?: SL_FALLING(fabs(x->bytes), fabs(y->bytes)) ?: SL_RISING(x, y);
}

static int by_place(const void *a, const void *b)
{
	const struct sl_difference *x = *(const struct sl_difference *const *)a, *y = *(const struct sl_difference *const *)b;

	return SL_RISING(x, y);
}

static void put_rows(struct sl_page *page, const struct sl_differences *differences)
{
	size_t count = differences->list.count, shown = count < page->budget.cards ? count : page->budget.cards;
	const struct sl_difference **rows = sl_memory_must(calloc(count + 1, sizeof(*rows)));

	for (size_t i = 0; i < count; i++)
		rows[i] = &differences->list.item[i];
	qsort(rows, count, sizeof(*rows), by_change);
	qsort(rows, shown, sizeof(*rows), by_place);
	page->left_rows = count - shown;
	sl_json_array(page->j, "differences");
	for (size_t i = 0; i < shown; i++)
		sl_difference_write(page->j, rows[i]);
	sl_json_end(page->j);
	free(rows);
}

/* Counts the changes of places and leaks by kind, since rows may be left out. */
static void put_places(struct sl_page *page, const struct sl_differences *differences)
{
	uint64_t counts[SL_CHANGE_NEW + 1] = {0};

	for (size_t i = 0; i < differences->list.count; i++)
		if (differences->list.item[i].of == SL_MEASURE_STACK || differences->list.item[i].of == SL_MEASURE_LEAK)
			counts[differences->list.item[i].change]++;
	sl_json_object(page->j, "places");
	for (unsigned i = 0; i <= SL_CHANGE_NEW; i++)
		sl_json_known_uint(page->j, sl_change_names[i], counts[i]);
	sl_json_end(page->j);
}

/* The page's node for a stack of `all`. */
static uint32_t copy_stack(struct sl_page *page, const struct sl_page *all, uint32_t node)
{
	struct sl_stack_frame frames[SL_STACK_MAX + 1];
	unsigned count = 0;

	for (; node; node = all->node_parent.item[node]) {
		const struct sl_page_frame *frame = &all->frames.item[all->node_frame.item[node]];

		frames[count++] = (struct sl_stack_frame){
			.function = frame->function ? all->texts.item[frame->function] : NULL,
			.file = frame->file ? all->texts.item[frame->file] : NULL,
			.module = frame->module ? all->texts.item[frame->module] : NULL,
			.python = frame->python,
			.passes_on = frame->folded,
		};
	}
	return sl_page_frames(page, 0, frames, count);
}

static int by_difference(const void *a, const void *b)
{
	const struct sl_page_change *x = a, *y = b;
	double p = fabs(x->after - x->before), q = fabs(y->after - y->before);

	return SL_FALLING(p, q) ?: SL_FALLING(x->after, y->after) ?: SL_RISING(x->node, y->node);
}

static void put_stacks(struct sl_page *page, const struct sl_page_changes *changes)
{
	size_t count = changes->stacks.count, shown = count <= page->budget.samples ? count : page->budget.samples;
	struct sl_page_change *all = sl_memory_must(calloc(count + 1, sizeof(*all)));
	uint32_t *node = sl_memory_must(calloc(count + 1, sizeof(*node)));
	double *bytes[2] = {sl_memory_must(calloc(count + 1, sizeof(double))), sl_memory_must(calloc(count + 1, sizeof(double)))};
	char rest[64];

	for (size_t i = 0; i < count; i++)
		all[i] = changes->stacks.item[i];
	qsort(all, count, sizeof(*all), by_difference);
	for (size_t i = 0; i < count; i++) {
		size_t at = i < shown ? i : shown;

		if (i < shown)
			node[at] = copy_stack(page, &changes->all, all[i].node);
		bytes[0][at] += all[i].before;
		bytes[1][at] += all[i].after;
	}
	page->left_stacks = count - shown;
	if (shown < count) {
		snprintf(rest, sizeof(rest), "%zu stacks that changed less", count - shown);
		node[shown++] = sl_page_note(page, rest);
	}
	sl_json_object(page->j, "stacks");
	sl_json_column(page->j, "stack", SL_PACKED_U32, node, shown);
	sl_json_column(page->j, "before", SL_PACKED_F64, bytes[0], shown);
	sl_json_column(page->j, "after", SL_PACKED_F64, bytes[1], shown);
	sl_json_end(page->j);
	free(all);
	free(node);
	free(bytes[0]);
	free(bytes[1]);
}

static void put_reason(struct sl_page *page, const char *what, bool line, double bytes, double before, double after)
{
	sl_json_object(page->j, NULL);
	sl_json_string(page->j, "what", what);
	sl_json_bool(page->j, "line", line);
	sl_json_double(page->j, "bytes", bytes);
	sl_json_double(page->j, "before", before);
	sl_json_double(page->j, "after", after);
	sl_json_end(page->j);
}

/* The lines of the requests that changed; those beyond the budget are one row. */
static void put_requests(struct sl_page *page, const struct sl_differences *lines)
{
	uint32_t shown = 0, left = 0;
	double bytes = 0, before = 0, after = 0;
	char text[40];

	for (size_t i = 0; i < lines->list.count; i++) {
		const struct sl_difference *d = &lines->list.item[i];

		if (d->bytes == 0)
			continue;
		if (shown++ < page->budget.cards) {
			put_reason(page, d->what, true, d->bytes, d->before.mean, d->after.mean);
			continue;
		}
		left++;
		bytes += d->bytes;
		before += d->before.mean;
		after += d->after.mean;
	}
	snprintf(text, sizeof(text), "%u more lines", left);
	if (left)
		put_reason(page, text, true, bytes, before, after);
}

/* The terms in their order, and behind the requests their lines. */
static void put_because(struct sl_page *page, const struct sl_because *because)
{
	char text[600];

	sl_json_array(page->j, "because");
	for (unsigned t = 0; because && t < SL_BECAUSE_TERMS; t++) {
		bool sizes = t != SL_BECAUSE_SETTINGS;

		if (because->terms[t] == 0)
			continue;
		put_reason(page, sl_because_text(text, sizeof(text), because, t), false, because->terms[t],
			   sizes ? (double)because->was->terms[t] : NAN, sizes ? (double)because->is->terms[t] : NAN);
		if (t == SL_BECAUSE_REQUESTS)
			put_requests(page, &because->lines);
	}
	sl_json_end(page->j);
}

void sl_page_build_changes(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget)
{
	sl_page_begin(page, 0, budget);
	page->budget.bins = SL_TIMELINE_BINS; /* there are no lines to reduce */
	sl_page_open(page, "diff", "What changed", NULL, NULL, of->stacks->dry[0] ? of->stacks->dry : NULL);
	for (unsigned side = 0; side < 2; side++) {
		sl_json_array(page->j, side ? "after" : "before");
		for (unsigned i = 0; i < of->counts[side]; i++)
			sl_json_string(page->j, NULL, of->paths[side ? of->counts[0] + i : i]);
		sl_json_end(page->j);
	}
	put_because(page, of->because);
	put_places(page, of->differences);
	put_rows(page, of->differences);
	put_stacks(page, of->stacks);
	sl_json_array(page->j, "warnings"); /* the page's search looks into these two */
	sl_json_end(page->j);
	sl_json_array(page->j, "processes");
	sl_json_end(page->j);
	sl_page_close(page);
}

void sl_page_changes_free(struct sl_page_changes *changes)
{
	sl_idmap_free(&changes->index);
	free(changes->stacks.item);
	sl_page_free(&changes->all);
}
