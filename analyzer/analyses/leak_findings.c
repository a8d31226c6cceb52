/* SPDX-License-Identifier: MIT */
/* Judges the places of a process, joins those of one line, and writes the findings. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/analyses/leak.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/state/model.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/suppressed.h"

#define LITTLE_PART  0.1 /* of what was held when memory ran out */
#define FINDINGS_MAX 32	 /* of a process */

/* A segment of PyTorch is part of its cache; its blocks are judged instead. */
static bool *segments_of(const struct sl_model *model)
{
	bool *segments = sl_memory_must(calloc(model->tracks.count + 1, sizeof(*segments)));

	for (size_t i = 0; i < model->sites.count; i++)
		segments[model->sites.item[i].track] |=
			sl_model_is_on_device(&model->sites.item[i]) && !sl_model_in_use(model, &model->sites.item[i]);
	return segments;
}

static int by_amount(const void *a, const void *b)
{
	const struct sl_kept *x = a, *y = b;

	return SL_RISING(x->verdict, y->verdict) ?: SL_FALLING(x->amount, y->amount);
}

static void judge(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	bool *segments = segments_of(process->model);
	unsigned tested = 0;
	struct sl_kept kept;

	sl_leak_find_rounds(process);
	for (size_t i = 0; i < tracks->count; i++)
		tested += tracks->item[i].births >= SL_KEEPING_BIRTHS;
	for (size_t i = 0; i < tracks->count && !process->model->folded_ns; i++) {
		const struct sl_track *track = &tracks->item[i];

		if (!segments[i] && sl_leak_judge(process, track, tested, &kept))
			*SL_PUSH(&process->kept) = kept;
	}
	for (size_t i = 0; i < process->kept.count; i++)
		process->kept.item[i].rounds = sl_leak_rounds(process, process->kept.item[i].track);
	sl_leak_add(process, segments);
	free(segments);
}

static void process(struct sl_process *process)
{
	if (process->model->snapshot)
		sl_leak_of_snapshot(process);
	else
		judge(process);
	if (process->kept.count)
		qsort(process->kept.item, process->kept.count, sizeof(*process->kept.item), by_amount);
}

#define LEFT SL_KEPT_END /* growing, and some of it is still there when the process ends */

static const char *const ids[] = {[SL_KEPT_GROWING] = "leak.kept",	   [SL_KEPT_FILLING] = "memory.filling",
				  [SL_KEPT_UNCLEAR] = "memory.only_taken", [SL_KEPT_COLLECTED] = "memory.collected",
				  [SL_KEPT_LATE] = "memory.kept_late",	   [SL_KEPT_SMALL] = "memory.handles",
				  [SL_KEPT_HELD] = "memory.held",	   [LEFT] = "leak.growing"};
static const char keepers[] =
	"find the line that keeps them, there or in its callers: a list, a cache without a bound, a handle that is never closed";
static const struct {
	const char *severity, *class, *advice;
	const char *at_error; /* advice where an error ended the program, which a longer run meets too; NULL: the same */
} told[] = {
	[SL_KEPT_GROWING] = {"critical", "leak", keepers},
	[SL_KEPT_FILLING] = {"info", "filling",
			     "a cache without a limit, or one that is not full yet: record a longer run to tell them apart",
			     "a cache without a limit, or one whose limit is more than the device has"},
	[SL_KEPT_UNCLEAR] = {"info", "unclear", "record a longer run: it tells whether this is a leak", keepers},
	[SL_KEPT_COLLECTED] = {"info", "unclear", "if a longer run would collect more than fits, collect and free in parts"},
	[SL_KEPT_LATE] = {"info", "unclear",
			  "a leak since then, or results collected at the end: record a longer run to tell them apart", keepers},
	[SL_KEPT_SMALL] = {"info", "unclear", "close handles that are no longer used; these hold little so far"},
	[SL_KEPT_HELD] = {"info", "held", "free it, if nothing reads it after its loop"},
	[LEFT] = {"critical", "leak", keepers},
};

static bool is_left(struct sl_process *process, const struct sl_kept *kept)
{
	for (size_t i = 0; i < process->leaks.count; i++)
		if (!strcmp(process->leaks.item[i].verdict, "growing") &&
		    sl_leak_list_is_at(process, &process->leaks.item[i], kept))
			return true;
	return false;
}

static void find(struct sl_report *report, unsigned index, const struct sl_kept *kept)
{
	const struct sl_track *track = kept->track;
	bool left = kept->verdict == SL_KEPT_GROWING && is_left(&report->processes[index], kept);
	unsigned how = left ? LEFT : kept->verdict;
	bool error = told[how].at_error && sl_model_ended_by_error(report->processes[index].model);

	sl_report_find(report, &(struct sl_finding){.id = ids[how],
						    .severity = told[how].severity,
						    .class = told[how].class,
						    .confidence = kept->confidence,
						    .process = (int)index,
						    .device = track->device,
						    .bytes = kept->bytes,
						    .text = sl_leak_words_sentence(&report->processes[index], kept),
						    .advice = sl_memory_copy(error ? told[how].at_error : told[how].advice),
						    .stack = track->stack});
}

/*
 * True: the blocks are no finding of their own.  A few calls of a model or an optimizer made them.  Or they stopped for lack of
 * room, which another finding reports.  Or they hold too little to have caused the error at the end.
 */
static bool is_known_to_grow(struct sl_process *process, const struct sl_kept *kept)
{
	const struct sl_model *model = process->model;

	if (kept->verdict == SL_KEPT_GROWING && !model->snapshot && sl_roles_is_few_calls(process, kept->track))
		return true;
	if (kept->verdict == SL_KEPT_UNCLEAR && !sl_model_ended_by_error(model) && sl_process_lacked_room(process) &&
	    sl_stack_same(kept->track->stack, model->roomless.stack))
		return true;
	if (kept->verdict == SL_KEPT_UNCLEAR && sl_model_ended_by_error(model)) /* what holds little is not why */
		return kept->bytes != SL_UNKNOWN &&
		       kept->bytes < LITTLE_PART * (double)model->ooms.item[model->ooms.count - 1].live_bytes;
	return false;
}

/*
 * True: handles that hold less than 1 % of the peak, and are no thousand.  Libraries load their code at the first launch of each
 * kernel: tests/real-gpu/cases/chat_server has 312 modules of 9 MiB below 2.27 GiB.
 */
static bool is_small(const struct sl_process *process, const struct sl_kept *kept)
{
	static const unsigned handles = 1u << (SL_OBJECT_MODULE - SL_OBJECT_CONTEXT) | 1u << (SL_OBJECT_EXEC - SL_OBJECT_CONTEXT) |
					1u << (SL_OBJECT_STREAM - SL_OBJECT_CONTEXT) | 1u << (SL_OBJECT_EVENT - SL_OBJECT_CONTEXT);
	unsigned kind = kept->track->kind;
	uint64_t bytes = kept->bytes == SL_UNKNOWN ? 0 : kept->bytes;

	return kept->verdict == SL_KEPT_GROWING && kind >= SL_OBJECT_CONTEXT && handles >> (kind - SL_OBJECT_CONTEXT) & 1 &&
	       kept->blocks <= 1000 && bytes < sl_devices_peak(process) / 100;
}

static enum sl_role role_of(struct sl_process *process, const struct sl_track *track)
{
	const struct sl_model *model = process->model;

	for (size_t i = 0; i < model->sites.count; i++)
		if (&model->tracks.item[model->sites.item[i].track] == track)
			return sl_roles_of(process, &model->sites.item[i]);
	return SL_ROLE_UNKNOWN;
}

/*
 * A loop ended and made it.  A model and its optimizer are used, and a graph of activations is not.  What steps trained is no
 * by-product of them: an ensemble votes afterwards.  Here the source may decide what else is held: a container that is read after
 * the loop, or never again.
 */
static enum sl_leak_words_verdict read_roles(struct sl_process *process, const struct sl_kept *kept)
{
	enum sl_role role = role_of(process, kept->track);
	bool trained = kept->clock && (role == SL_ROLE_PARAMETERS || role == SL_ROLE_OPTIMIZER);

	if (kept->verdict == SL_KEPT_GROWING && !trained)
		return SL_KEPT_GROWING;
	if (kept->graph)
		return role == SL_ROLE_ACTIVATIONS && !kept->joined_at.python ? SL_KEPT_GROWING : SL_KEPT_MEANT;
	return role == SL_ROLE_ACTIVATIONS || role == SL_ROLE_UNKNOWN || trained ? SL_KEPT_HELD : SL_KEPT_MEANT;
}

/* Moves to the end what a suppression names and what is_known_to_grow() finds: neither is reported. */
static void set_aside_meant(struct sl_process *process, const struct sl_suppressions *list)
{
	for (size_t i = 0; i < process->kept.count; i++) {
		struct sl_kept *kept = &process->kept.item[i];
		const struct sl_track *track = kept->track;

		if (kept->ended_ns && (kept->verdict == SL_KEPT_HELD || kept->verdict == SL_KEPT_GROWING))
			kept->verdict = read_roles(process, kept);
		if (is_known_to_grow(process, kept) || (list && list->count && sl_suppressed_by(list, process, NULL, track->stack)))
			kept->verdict = SL_KEPT_MEANT;
		else if (is_small(process, kept))
			kept->verdict = SL_KEPT_SMALL;
	}
	if (process->kept.count)
		qsort(process->kept.item, process->kept.count, sizeof(*process->kept.item), by_amount);
}

static void run(struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];

		sl_leak_join(process);
		set_aside_meant(process, report->options.suppressions);
		for (size_t k = 0; k < process->kept.count && k < FINDINGS_MAX; k++)
			if (ids[process->kept.item[k].verdict]) /* not of what is meant, nor of older summaries' 3 and 4 */
				find(report, i, &process->kept.item[k]);
	}
}

const struct sl_analysis sl_analysis_kept = {.name = "kept", .process = process, .run = run, .of_windows = true};
