/* SPDX-License-Identifier: MIT */
/* Judges the places of a process, joins those of one line, and writes the findings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/analyses/freed_by_program.h"
#include "analyzer/analyses/leak.h"
#include "analyzer/analyses/leak_clock.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/state/model.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/suppress.h"
#include "analyzer/report/window_facts.h"

bool sl_leak_by_count(const struct sl_track *track)
{
	return track->kind >= SL_OBJECT_CONTEXT || !track->born_bytes || track->kind == SL_KIND_imported;
}

/* True: the program ends without cleaning up.  Then as much lives on as was kept before the last round, whose blocks died. */
static bool lives_on(const struct sl_track *track, const struct sl_leak_windows *series)
{
	double live = sl_leak_by_count(track) ? (double)track->live_blocks : (double)track->live_bytes;

	return live > 0 && live >= series->retained[series->count * 3 / 4];
}

/* Leaves out blocks that were only in flight: a last window that is not full, and more than is kept. */
static struct sl_leak_windows steady_part(const struct sl_track_course *course, const struct sl_leak_windows *series,
					  double kept_amount)
{
	struct sl_leak_windows part = *series;

	if (part.count > 4 && course->births_in_last < course->births_per_window &&
	    part.tick[part.count - 1] == (double)course->windows[course->count - 1].begin_tick)
		part.count--;
	for (unsigned i = part.count; i-- && part.retained[i] > kept_amount;)
		part.retained[i] = kept_amount;
	return part;
}

/* What so many graphs of PyTorch's keep in their private pools, beside tensors. */
static uint64_t pools_of(const struct sl_model *model, int device, uint64_t graphs)
{
	const struct sl_torch *torch =
		device >= 0 && model->devices[device + 1] ? &model->devices[device + 1]->torch_at_peak : NULL;
	uint64_t unused = torch && torch->graph_reserved_bytes > torch->graph_allocated_bytes
				  ? torch->graph_reserved_bytes - torch->graph_allocated_bytes
				  : 0;

	return torch && graphs < torch->graph_pools ? unused / torch->graph_pools * graphs : unused;
}

/* Blocks and bytes. lives: survivors are counted, else the blocks held when the program began to free all. */
static void count_kept(struct sl_leak_line *line, const struct sl_model *model, bool lives)
{
	const struct sl_track *track = line->track;
	uint64_t bytes = track->live_bytes, blocks = track->live_blocks;

	line->left_blocks = track->live_blocks;
	line->left_bytes = track->live_bytes;
	if (!lives)
		sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	if (track->kind == SL_OBJECT_CONTEXT) /* the size of the first may not be known */
		bytes = blocks * track->most_bytes;
	if (track->kind == SL_OBJECT_EXEC)
		bytes = pools_of(model, track->device, blocks);
	line->count_only = sl_leak_by_count(track);
	line->amount = line->count_only ? (double)blocks : (double)bytes;
	line->births = track->births;
	line->bursts = sl_tracks_course(&model->tracks, track)->bursts;
	line->blocks = blocks;
	line->bytes = bytes || track->kind < SL_OBJECT_CONTEXT ? bytes : SL_UNKNOWN;
}

void sl_leak_measure(struct sl_leak_line *line, const struct sl_model *model, const struct sl_leak_windows *series)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, line->track);
	bool freed = sl_freed_is_freed(model, line->track); /* then what is held at the end says nothing of what was */
	struct sl_leak_windows part;
	uint64_t bytes, blocks;
	double error;

	sl_tracks_held(&model->tracks, line->track, &bytes, &blocks);
	count_kept(line, model, lives_on(line->track, series));
	part = steady_part(course, series, freed ? series->retained[series->count - 1] : line->amount);
	line->per_birth =
		(part.retained[part.count - 1] - part.retained[0]) / (double)((part.count - 1) * course->births_per_window);
	if (line->track->most_blocks == line->births) /* each was kept */
		line->per_birth = line->count_only ? 1 : (double)line->track->born_bytes / (double)line->births;
	else if (!freed && part.retained[0] * (double)line->blocks <= (1 + SL_LITTLE) * line->amount &&
		 part.tick[0] <= (double)course->windows[0].begin_tick && 2 * line->blocks >= blocks)
		line->per_birth = line->amount / (double)line->births; /* kept from the first birth on */
	line->per_second = sl_leak_windows_slope(&part, part.time, &error) * 1e9;
	line->per_second_error = error * 1e9;
}

#define WINDOW_EDGE  1.5 /* rounds in which a place may have ended: a window cuts them */
#define WINDOW_PARTS 4	 /* in each of which a place that frees most of its blocks keeps some */

/* True: each part of the window leaves at least half a block for each of its rounds.  begin: births before the window. */
static bool leaves_in_each_part(const struct sl_model *model, const struct sl_track *track, uint64_t rounds, double begin)
{
	double part = ((double)model->tracks.ticks - begin) / WINDOW_PARTS, least = fmax(1, (double)rounds / WINDOW_PARTS / 2);
	struct sl_leak_windows counted, left;
	double before = 0;
	unsigned at = 0;

	sl_leak_windows_take(model, track, true, model->now_ns, &counted);
	sl_leak_windows_take_left(model, track, &counted, &left);
	for (unsigned i = 1; i <= WINDOW_PARTS; i++) {
		while (at + 1 < left.count && left.tick[at] < begin + i * part)
			at++;
		if (left.retained[at] - before < least)
			return false;
		before = left.retained[at];
	}
	return true;
}

/*
 * A window of a snapshot has few rounds, of each of which everything is known: a place leaks that makes something in each
 * round or in each second one, up to the last, and still holds it.  Births are the clock, since a first step takes long.
 */
static bool judge_window(const struct sl_process *process, const struct sl_track *track, uint64_t rounds, uint64_t before,
			 struct sl_leak_line *line)
{
	const struct sl_model *model = process->model;
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	uint64_t begin_ns = model->header->monotonic_ns, end_ns = model->now_ns;
	double span = (double)(model->tracks.ticks - before);

	if (!sl_leak_is_enough(process, track, (double)track->live_bytes) || track->first_ns <= begin_ns ||
	    track->births + 1 < SL_WINDOW_ROUNDS_MIN || 2 * track->births + 2 < rounds || !course->count ||
	    (double)course->windows[0].begin_tick - (double)before > SL_HALF * span ||
	    (double)(model->tracks.ticks - course->last_tick) > WINDOW_EDGE * span / (double)rounds)
		return false;
	if ((double)track->live_blocks < SL_NEARLY_ALL * (double)track->births &&
	    !leaves_in_each_part(model, track, rounds, (double)before))
		return false;
	*line = (struct sl_leak_line){.track = track,
				      .verdict = SL_KEPT_GROWING,
				      .amount = (double)track->live_bytes,
				      .births = track->births,
				      .blocks = track->live_blocks,
				      .bytes = track->live_bytes,
				      .per_birth = (double)track->live_bytes / (double)track->births,
				      .per_second = (double)track->live_bytes / ((double)(end_ns - begin_ns) / 1e9),
				      .confidence = 1,
				      .since_ns = track->first_ns,
				      .left_blocks = track->live_blocks,
				      .left_bytes = track->live_bytes,
				      .rounds = rounds};
	return true;
}

/* Fills `line` from the window of a snapshot. */
static void leak_of_snapshot(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	uint64_t rounds = sl_window_rounds(process), before = 0;
	uint64_t begin_ns = process->model->header->monotonic_ns;
	struct sl_leak_line line;

	process->iterations = (struct sl_iterations){rounds, "pass", false};
	for (size_t i = 0; i < tracks->count; i++)
		before += tracks->item[i].last_ns <= begin_ns ? tracks->item[i].births : 0;
	for (size_t i = 0; i < tracks->count && rounds >= SL_WINDOW_ROUNDS_MIN; i++)
		if (tracks->item[i].kind == SL_KIND_block && judge_window(process, &tracks->item[i], rounds, before, &line))
			*SL_PUSH(&process->leaks_by_line) = line;
}

#define TAKES_FEW (1u << SL_KEPT_GROWING | 1u << SL_KEPT_COLLECTED)

/* Adds the first calls of its place, which were named after the replay (replay/late_unwinder.c). */
static void add_first_calls(const struct sl_model *model, struct sl_leak_line *line)
{
	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		uint64_t bytes, blocks;

		if (track == line->track || track->stack.python != line->track->stack.python ||
		    track->stack.native != line->track->stack.native || track->kind != line->track->kind ||
		    track->device != line->track->device || track->births >= SL_KEEPING_BIRTHS)
			continue;
		sl_tracks_held(&model->tracks, track, &bytes, &blocks);
		line->births += track->births;
		line->blocks += blocks;
		line->bytes += line->bytes == SL_UNKNOWN ? 0 : bytes;
		line->amount += line->count_only ? (double)blocks : (double)bytes;
		line->left_blocks += track->live_blocks;
		line->left_bytes += track->live_bytes;
	}
}

/* True: a reported place keeps blocks of this kind on this device, so join_leak() may find both on one line. */
static bool may_join(const struct sl_process *process, size_t judged, const struct sl_track *track)
{
	bool may = false;

	for (size_t i = 0; i < judged; i++) {
		const struct sl_track *other = process->leaks_by_line.item[i].track;

		if (track == other || (track->stack.native && track->stack.native == other->stack.native &&
				       track->stack.python == other->stack.python)) /* add_first_calls */
			return false;
		may |= 1u << process->leaks_by_line.item[i].verdict & TAKES_FEW && track->kind == other->kind &&
		       track->device == other->device;
	}
	return may;
}

/* Stacks with too few births to be judged, or whose blocks were all kept unevenly: as a vector grows it calls from elsewhere. */
static void add_few(struct sl_process *process, const bool *segments)
{
	const struct sl_model *model = process->model;
	size_t judged = process->leaks_by_line.count, few = 0;

	for (size_t i = 0; i < model->tracks.count && judged && few < SL_COMPARED_MAX; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		struct sl_leak_line line = {.track = track, .verdict = SL_KEPT_FEW, .since_ns = track->first_ns};

		if (segments[i] || (track->births >= SL_KEEPING_BIRTHS && track->most_blocks < track->births) ||
		    !may_join(process, judged, track))
			continue;
		count_kept(&line, model, false);
		if (!line.blocks)
			continue;
		line.per_birth = line.amount / (double)line.births;
		*SL_PUSH(&process->leaks_by_line) = line;
		few++;
	}
}

/* Adds what was not judged and belongs to a judged place: first calls, and stacks with few births.  segments: for each track. */
static void add_leak(struct sl_process *process, const bool *segments)
{
	for (size_t i = 0; i < process->leaks_by_line.count; i++)
		if (process->leaks_by_line.item[i].track->stack.native)
			add_first_calls(process->model, &process->leaks_by_line.item[i]);
	add_few(process, segments);
}

/* True: this place went on where that of the loop that ended stopped: one line with two callers did not end. */
static bool goes_on(const struct sl_track *track, const struct sl_track *ended)
{
	double gap = (double)(ended->last_ns - ended->first_ns) / (double)(ended->births - 1);

	return track->first_ns > ended->last_ns && (double)(track->first_ns - ended->last_ns) <= SL_CLOCK_PACES * gap;
}

static bool is_one_leak(const struct sl_leak_line *to, const struct sl_leak_line *one)
{
	return to->track->kind == one->track->kind && to->track->device == one->track->device &&
	       ((to->verdict == SL_KEPT_HELD) == (one->verdict == SL_KEPT_HELD) || goes_on(to->track, one->track)) &&
	       (one->verdict != SL_KEPT_FEW || (1u << to->verdict & TAKES_FEW && one->track->last_ns >= to->since_ns));
}

/* Per second of the time between them; 0: there is none. */
static double rate_between(uint64_t first_ns, uint64_t last_ns, double amount)
{
	return last_ns > first_ns ? amount / ((double)(last_ns - first_ns) / 1e9) : 0;
}

/* A leak of several stacks: the place they have in common, and the time in which any of them allocated. */
struct joined {
	struct sl_stack_frame place;
	uint64_t first_ns, last_ns;
};

/* Stacks that allocated one after the other grew at no time by the sum of their rates. */
static void slow_down(struct sl_leak_line *line, const struct joined *joined)
{
	double rate = rate_between(joined->first_ns, joined->last_ns, line->amount);

	if (rate > 0 && rate < line->per_second) {
		line->per_second_error *= rate / line->per_second;
		line->per_second = rate;
	}
}

/* Stacks that differ only outside the named line become one leak.  Main thread. */
static void join_leak(struct sl_process *process)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	struct joined *joined = sl_memory_must(calloc(process->leaks_by_line.count + 1, sizeof(*joined)));
	size_t joined_count = 0, k;

	for (size_t i = 0; i < process->leaks_by_line.count; i++) {
		struct sl_leak_line one = process->leaks_by_line.item[i];
		const struct sl_stack_frame *place = sl_place_at(process, one.track->stack, frames);

		for (k = 0; place && k < joined_count; k++)
			if (is_one_leak(&process->leaks_by_line.item[k], &one) && sl_place_same(&joined[k].place, place))
				break;
		if (place && k < joined_count) {
			if (one.verdict == SL_KEPT_FEW)
				one.per_second = rate_between(process->leaks_by_line.item[k].track->first_ns,
							      process->leaks_by_line.item[k].track->last_ns, one.amount);
			sl_leak_words_add(&process->leaks_by_line.item[k], &one);
			if (one.track->first_ns < joined[k].first_ns)
				joined[k].first_ns = one.track->first_ns;
			if (one.track->last_ns > joined[k].last_ns)
				joined[k].last_ns = one.track->last_ns;
			slow_down(&process->leaks_by_line.item[k], &joined[k]);
		} else if (one.verdict != SL_KEPT_FEW) {
			joined[joined_count] = (struct joined){place ? *place : (struct sl_stack_frame){0}, one.track->first_ns,
							       one.track->last_ns};
			process->leaks_by_line.item[joined_count++] = one;
		}
	}
	process->leaks_by_line.count = joined_count;
	free(joined);
}

#define FINDINGS_MAX 32 /* of a process */

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
	const struct sl_leak_line *x = a, *y = b;

	return SL_RISING(x->verdict, y->verdict) ?: SL_FALLING(x->amount, y->amount);
}

static void judge(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	bool *segments = segments_of(process->model);
	unsigned tested = 0;
	struct sl_leak_line line;

	sl_leak_find_rounds(process);
	for (size_t i = 0; i < tracks->count; i++)
		tested += tracks->item[i].births >= SL_KEEPING_BIRTHS;
	for (size_t i = 0; i < tracks->count && !process->model->folded_ns; i++) {
		const struct sl_track *track = &tracks->item[i];

		if (!segments[i] && sl_leak_judge(process, track, tested, &line))
			*SL_PUSH(&process->leaks_by_line) = line;
	}
	for (size_t i = 0; i < process->leaks_by_line.count; i++)
		process->leaks_by_line.item[i].rounds = sl_leak_rounds(process, process->leaks_by_line.item[i].track);
	add_leak(process, segments);
	free(segments);
}

static void process(struct sl_process *process)
{
	if (process->model->recording.follows_process)
		judge(process);
	else
		leak_of_snapshot(process);
	if (process->leaks_by_line.count)
		qsort(process->leaks_by_line.item, process->leaks_by_line.count, sizeof(*process->leaks_by_line.item), by_amount);
}

#define LEFT SL_KEPT_END /* growing, and some of it is still there when the process ends */

static const enum sl_found kinds[] = {
	[SL_KEPT_GROWING] = SL_FOUND_leak_kept,		[SL_KEPT_FILLING] = SL_FOUND_memory_filling,
	[SL_KEPT_UNCLEAR] = SL_FOUND_memory_only_taken, [SL_KEPT_COLLECTED] = SL_FOUND_memory_collected,
	[SL_KEPT_LATE] = SL_FOUND_memory_kept_late,	[SL_KEPT_SMALL] = SL_FOUND_memory_handles,
	[SL_KEPT_HELD] = SL_FOUND_memory_held,		[LEFT] = SL_FOUND_leak_growing};
static const char *const classes[] = {
	[SL_KEPT_GROWING] = "leak", [SL_KEPT_FILLING] = "filling", [SL_KEPT_UNCLEAR] = "unclear", [SL_KEPT_COLLECTED] = "unclear",
	[SL_KEPT_LATE] = "unclear", [SL_KEPT_SMALL] = "unclear",   [SL_KEPT_HELD] = "held",	  [LEFT] = "leak"};

static bool is_left(struct sl_process *process, const struct sl_leak_line *line)
{
	for (size_t i = 0; i < process->leaks.count; i++)
		if (!strcmp(process->leaks.item[i].verdict, "growing") &&
		    sl_leak_list_is_at(process, &process->leaks.item[i], line))
			return true;
	return false;
}

static void find(struct sl_report *report, unsigned index, const struct sl_leak_line *line)
{
	const struct sl_track *track = line->track;
	bool left = line->verdict == SL_KEPT_GROWING && is_left(&report->processes[index], line);
	unsigned how = left ? LEFT : line->verdict;

	sl_report_find(report, &(struct sl_finding){.kind = kinds[how],
						    .severity = line->verdict == SL_KEPT_GROWING ? "critical" : "info",
						    .class = classes[how],
						    .confidence = line->confidence,
						    .process = (int)index,
						    .device = track->device,
						    .bytes = line->bytes,
						    .stack = track->stack,
						    .leak_line = line});
}

/*
 * True: the blocks are no finding of their own.  A few calls of a model or an optimizer made them, or they are weights that
 * were there before the model ran.  Or they stopped for lack of room, which another finding reports.  Or they hold too little to
 * have caused the error at the end.
 */
static bool is_known_to_grow(struct sl_process *process, const struct sl_leak_line *line)
{
	const struct sl_model *model = process->model;
	const struct sl_oom *end = sl_model_ended_by(model);

	if (line->verdict == SL_KEPT_GROWING && model->recording.follows_process &&
	    (sl_roles_is_few_calls(process, line->track) || sl_roles_is_loading(process, line->track)))
		return true;
	if (line->verdict == SL_KEPT_UNCLEAR && !end && sl_process_lacked_room(process) &&
	    sl_stack_same(line->track->stack, model->roomless.stack))
		return true;
	if (line->verdict == SL_KEPT_UNCLEAR && end) /* what holds little is not why */
		return line->bytes != SL_UNKNOWN && line->bytes < SL_LITTLE * (double)end->live_bytes;
	return false;
}

/*
 * True: handles that hold less than 1 % of the peak, and are no thousand.  Libraries load their code at the first launch of each
 * kernel: tests/real-gpu/cases/chat_server has 312 modules of 9 MiB below 2.27 GiB.
 */
static bool is_small(const struct sl_process *process, const struct sl_leak_line *line)
{
	static const unsigned handles = 1u << (SL_OBJECT_MODULE - SL_OBJECT_CONTEXT) | 1u << (SL_OBJECT_EXEC - SL_OBJECT_CONTEXT) |
					1u << (SL_OBJECT_STREAM - SL_OBJECT_CONTEXT) | 1u << (SL_OBJECT_EVENT - SL_OBJECT_CONTEXT);
	unsigned kind = line->track->kind;
	uint64_t bytes = line->bytes == SL_UNKNOWN ? 0 : line->bytes;

	return line->verdict == SL_KEPT_GROWING && kind >= SL_OBJECT_CONTEXT && handles >> (kind - SL_OBJECT_CONTEXT) & 1 &&
	       line->blocks <= 1000 && bytes < sl_devices_peak(process) / 100;
}

/*
 * A loop ended and made it.  A model and its optimizer are used, and a graph of activations is not.  What steps trained is no
 * by-product of them: an ensemble votes afterwards.  Here the source may decide what else is held: a container that is read after
 * the loop, or never again.
 */
static enum sl_leak_words_verdict read_roles(struct sl_process *process, const struct sl_leak_line *line)
{
	enum sl_role role = sl_roles_of_track(process, line->track);
	bool trained = line->clock && (role == SL_ROLE_PARAMETERS || role == SL_ROLE_GRADIENTS || role == SL_ROLE_OPTIMIZER);

	if (line->verdict == SL_KEPT_GROWING && !trained)
		return SL_KEPT_GROWING;
	if (line->graph)
		return role == SL_ROLE_ACTIVATIONS && !line->joined_at.python ? SL_KEPT_GROWING : SL_KEPT_MEANT;
	return role == SL_ROLE_ACTIVATIONS || role == SL_ROLE_UNKNOWN || trained ? SL_KEPT_HELD : SL_KEPT_MEANT;
}

/* Moves to the end what a suppression names and what is_known_to_grow() finds: neither is reported. */
static void set_aside_meant(struct sl_process *process, const struct sl_suppressions *list)
{
	for (size_t i = 0; i < process->leaks_by_line.count; i++) {
		struct sl_leak_line *line = &process->leaks_by_line.item[i];
		const struct sl_track *track = line->track;

		if (line->ended_ns && (line->verdict == SL_KEPT_HELD || line->verdict == SL_KEPT_GROWING))
			line->verdict = read_roles(process, line);
		else if (line->verdict == SL_KEPT_UNCLEAR && sl_roles_of_track(process, track) == SL_ROLE_OPTIMIZER)
			line->verdict = SL_KEPT_MEANT; /* the state of its first step */
		if (is_known_to_grow(process, line) ||
		    (list && list->count && sl_suppress_by_stack(list, process, NULL, track->stack)))
			line->verdict = SL_KEPT_MEANT;
		else if (is_small(process, line))
			line->verdict = SL_KEPT_SMALL;
	}
	if (process->leaks_by_line.count)
		qsort(process->leaks_by_line.item, process->leaks_by_line.count, sizeof(*process->leaks_by_line.item), by_amount);
}

static void find_in_process(struct sl_report *report, unsigned index)
{
	struct sl_process *process = &report->processes[index];

	join_leak(process);
	set_aside_meant(process, report->options.suppressions);
	for (size_t k = 0; k < process->leaks_by_line.count && k < FINDINGS_MAX; k++)
		if (kinds[process->leaks_by_line.item[k].verdict]) /* not of what is meant, nor of older summaries' 3 and 4 */
			find(report, index, &process->leaks_by_line.item[k]);
}

const struct sl_analysis sl_analysis_leaks_by_line = {
	.name = "kept", .process = process, .find_in_process = find_in_process, .of_windows = true};
