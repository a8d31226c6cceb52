/* SPDX-License-Identifier: MIT */
/*
 * Finds places that keep a part of what they allocate to the end of the run, whether or not the program cleans up when it ends. It
 * judges the model's tracks (counts/tracks.h): the minimum that a place held in each of its windows, and the part of it that the
 * place never gave back later ("kept").  Warm-up, a cache that fills, sawtooth patterns, vectors that double and stationary noise
 * do not keep evenly until the end.
 *
 * A place grows (doc/analyzer.md, Leaks) if
 *  - it has SL_KEEPING_BIRTHS births;
 *  - what is kept rises over the windows by more than chance, by the Mann-Kendall test, with the level divided by the number of
 *    places that are tested;
 *  - it rises in each of the last three quarters, by the clock and by the births of the whole process, by at least
 *    QUARTER_MIN of their mean;
 *  - less than half of it is given back in between;
 *  - its births go on to the end.
 * The teardown, which is the final run of deaths, is not judged.
 * (Longer than other files: one verdict, from the counts of a place to its finding.)
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/analyses/self_freed.h"
#include "analyzer/analyses/leak_windows.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/search.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/place.h"
#include "analyzer/report/report.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/window_facts.h"
#include "analyzer/report/suppressed.h"

#define MOMENT_PART    0.05 /* of the time until memory ran out */
#define LITTLE_PART    0.1  /* of what was held when memory ran out */
#define KEPT_MIN_BYTES (64 << 10)
#define KEPT_MIN_PART  0.0005 /* of the most that was held */
#define QUARTER_MIN    0.35
#define WINDOWS_MIN    5    /* with fewer, a window is no shorter than a quarter */
#define STOPPED_TICKS	     0.15  /* share of the process's births after the place's last one */
#define STOPPED_TIME	     0.3   /* the same share of time, in which a process may wait */
#define STOPPED_LAUNCHES     0.5   /* of the launches of graphs, which are work without births */
#define ENDING_NS	     50e6  /* after its last birth a program may take so long to end */
#define ENDING_BEGINNINGS    4	   /* times the start-up, which takes longer on a busy machine too */
#define BURST_EVENTS	     1.05  /* events of the process per birth */
#define BURST_PART	     0.4   /* of the run */
#define BURST_MAX	     100   /* births in start-up */
#define BURST_NOTED	     16	   /* births of a program that only allocated: reported, but not as a leak */
#define LOADED_MAX	     1000  /* births of one place */
#define ITERATION_PLACES_MAX 2000
#define MEASURED_MAX	     2000 /* places that may keep something: each is compared with all places */
#define ONE_BLOCK	     1.1  /* times the mean block */
#define TAKES_FEW	     (1u << SL_KEPT_GROWING | 1u << SL_KEPT_COLLECTED)
#define ALL_ROUNDS	     0.9  /* so large a share of the rounds counts as all, since windows tell a moment only roughly */
#define FINDINGS_MAX	     32	  /* of a process */
#define FEW_MAX		     2000 /* stacks with few births, beside places that leak */
#define STOPPED_GAPS	     3	  /* times the mean time between births, or bursts of them */
#define DECLINE_MAX	     3	  /* standard errors */
#define BOUND_MISSED	     4	  /* blocks */
#define FULL_GAPS	     3	  /* times the most births between two rises before: by chance once in thousands */
#define FALLS_MAX	     0.1  /* of what is kept */
/* What is kept since a moment amid the run is a leak with so many births since, in so large a part of the run's births. */
#define ONSET_BIRTHS 32
#define ONSET_BEFORE 0.1 /* share of what is left that was born before */
#define BEGUN_PART   0.05
#define LOST_MIN     16
#define LOST_BUT     10	 /* births, where some were freed */
#define LOST_OF	     3	 /* of so many one is kept at least */
#define LOST_EARLY   0.1 /* of what is kept: by the middle of the births */
#define LOST_PART    0.5 /* of the run's births */
#define SLOWER	     1	 /* what still fills keeps less in the last quarter than in the mean of three */

/* True: counted in numbers, not bytes: objects, and imports of unknown size. */
static bool by_count(const struct sl_track *track)
{
	return track->kind >= SL_OBJECT_CONTEXT || !track->born_bytes || track->kind == SL_KIND_imported;
}

/*
 * When its births may have ended.  After an error from which the program did not recover comes only its end, however long that
 * takes.
 */
static uint64_t end_of(const struct sl_model *model)
{
	uint64_t end = model->tracks.teardown_ns ? model->tracks.teardown_ns : model->now_ns;

	if (sl_model_ended_by_error(model) && model->ooms.item[model->ooms.count - 1].time_ns < end)
		end = model->ooms.item[model->ooms.count - 1].time_ns;
	return end > model->tracks.last_birth_ns ? end : model->tracks.last_birth_ns;
}

static double ending_of(const struct sl_model *model)
{
	size_t first = 0; /* tracks are ordered by their first requests */
	double begun;

	while (first < model->tracks.count && !model->tracks.item[first].births)
		first++;
	begun = first < model->tracks.count ? (double)model->tracks.item[first].first_ns - (double)model->header->monotonic_ns : 0;
	return fmax(ENDING_NS, ENDING_BEGINNINGS * begun);
}

/* times: how often the place allocated, a burst counting once */
static bool is_gap(double gap, double span, double part, uint64_t times)
{
	return gap > part * span && gap > STOPPED_GAPS * (span - gap) / (double)(times - 1);
}

/* True: no other place allocates between its births. */
static bool is_alone(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);

	return (double)(course->last_event - course->first_event) / (double)(track->births - 1) < BURST_EVENTS;
}

/* True: all at once, at the start of a program that does little else. */
static bool is_burst(const struct sl_model *model, const struct sl_track *track)
{
	return is_alone(model, track) &&
	       (double)(track->last_ns - track->first_ns) < BURST_PART * (double)(model->now_ns - model->first_ns);
}

/* True: the program ends with these births, many in one burst, and did nothing else. */
static bool does_nothing_else(const struct sl_model *model, const struct sl_track *track)
{
	return track->births >= (sl_model_ended_by_error(model) ? BURST_MAX : BURST_NOTED) &&
	       sl_tracks_course(&model->tracks, track)->last_tick == model->tracks.ticks;
}

/* True: from its first birth to its last the process only allocated, whatever the places. */
static bool only_takes(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);

	return (double)(course->last_event - course->first_event) <
	       BURST_EVENTS * (double)(course->last_tick - course->windows[0].begin_tick);
}

/* True: while it allocated the process did nothing else, and then it allocated elsewhere: it loads, and then it works. */
static bool is_first_phase(const struct sl_model *model, const struct sl_track *track)
{
	uint64_t after = model->tracks.ticks - sl_tracks_course(&model->tracks, track)->last_tick;

	return is_alone(model, track) && after >= SL_KEEPING_BIRTHS;
}

/* A trace of stormlog-attach does not know which device it is, unless the call names it. */
static bool of_device(const struct sl_track *track)
{
	return track->device >= 0 || track->kind == SL_KIND_device;
}

/*
 * True: the place may be a loop that loads something, which looks like a leak until the loop ends.  The process only allocated
 * until then.  It still runs, or ran on after stormlog-attach, or ended with an error, or allocated at this place less than a
 * thousand times, as fast as calls can be made or for no longer than a program takes to end.  Contexts, mappings and registered
 * ranges are not loaded: theirs are leaks, but for a few of them in one burst.
 */
static bool may_be_loaded(const struct sl_process *process, const struct sl_track *track)
{
	const struct sl_model *model = process->model;

	if ((track->births < BURST_MAX && is_burst(model, track)) || is_first_phase(model, track))
		return true;
	if (process->trace->exited > 1 && !sl_model_ended_by_error(model) && !by_count(track) &&
	    track->most_blocks == track->births)
		return true; /* it failed while it took these */
	if (sl_model_ended_by_error(model) &&
	    (double)(track->last_ns - track->first_ns) < MOMENT_PART * (double)(end_of(model) - model->first_ns))
		return true; /* one step */
	return !by_count(track) && of_device(track) && only_takes(model, track) &&
	       (process->trace->status == SL_STATUS_RUNNING || process->trace->header.watcher || sl_model_ended_by_error(model) ||
		(track->births < LOADED_MAX && (double)(track->last_ns - track->first_ns) < ending_of(model)));
}

static bool has_stopped(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	double end = (double)end_of(model), gap = end - (double)track->last_ns, span = end - (double)track->first_ns;
	double others = (double)(model->tracks.ticks - course->last_tick);
	double ticks = (double)(model->tracks.ticks - course->windows[0].begin_tick);
	double launches = (double)(model->tracks.launches - course->launches);
	uint64_t times = course->bursts > 1 ? course->bursts : track->births;

	return (is_burst(model, track) && !does_nothing_else(model, track)) || is_gap(others, ticks, STOPPED_TICKS, times) ||
	       is_gap(launches, (double)model->tracks.launches, STOPPED_LAUNCHES, times) ||
	       (gap > ending_of(model) && is_gap(gap, span, STOPPED_TIME, times));
}

static bool is_judged(const struct sl_process *process, const struct sl_track *track, double kept)
{
	const struct sl_model *model = process->model;
	const struct sl_device_state *device = track->device >= 0 ? model->devices[track->device + 1] : NULL;
	double most = device ? (double)device->known_peak : 0;

	if (by_count(track))
		return kept >= SL_KEEPING_BIRTHS;
	return kept >= KEPT_MIN_BYTES && kept >= KEPT_MIN_PART * most;
}

/* A segment of PyTorch is part of its cache; its blocks are judged instead. */
static bool *segments_of(const struct sl_model *model)
{
	bool *segments = sl_memory_must(calloc(model->tracks.count + 1, sizeof(*segments)));

	for (size_t i = 0; i < model->sites.count; i++)
		segments[model->sites.item[i].track] |=
			sl_model_is_on_device(&model->sites.item[i]) && !sl_model_in_use(model, &model->sites.item[i]);
	return segments;
}

/* True: the program ends without cleaning up.  Then as much lives on as was kept before the last round, whose blocks died. */
static bool lives_on(const struct sl_track *track, const struct sl_leak_windows *series)
{
	double live = by_count(track) ? (double)track->live_blocks : (double)track->live_bytes;

	return live > 0 && live >= series->kept[series->count * 3 / 4];
}

/* Leaves out blocks that were only in flight: a last window that is not full, and more than is kept. */
static struct sl_leak_windows steady_part(const struct sl_track_course *course, const struct sl_leak_windows *series, double kept)
{
	struct sl_leak_windows part = *series;

	if (part.count > 4 && course->births_in_last < course->births_per_window &&
	    part.tick[part.count - 1] == (double)course->windows[course->count - 1].begin_tick)
		part.count--;
	for (unsigned i = part.count; i-- && part.kept[i] > kept;)
		part.kept[i] = kept;
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

/* lives: survivors are counted, else the blocks held when the program began to free all. */
static void count_kept(struct sl_kept *kept, const struct sl_model *model, bool lives)
{
	const struct sl_track *track = kept->track;
	uint64_t bytes = track->live_bytes, blocks = track->live_blocks;

	kept->left_blocks = track->live_blocks;
	kept->left_bytes = track->live_bytes;
	if (!lives)
		sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	if (track->kind == SL_OBJECT_CONTEXT) /* the size of the first may not be known */
		bytes = blocks * track->most_bytes;
	if (track->kind == SL_OBJECT_EXEC)
		bytes = pools_of(model, track->device, blocks);
	kept->count_only = by_count(track);
	kept->amount = kept->count_only ? (double)blocks : (double)bytes;
	kept->births = track->births;
	kept->bursts = sl_tracks_course(&model->tracks, track)->bursts;
	kept->blocks = blocks;
	kept->bytes = bytes || track->kind < SL_OBJECT_CONTEXT ? bytes : SL_UNKNOWN;
}

static void measure(struct sl_kept *kept, const struct sl_model *model, const struct sl_leak_windows *series)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, kept->track);
	bool freed = sl_self_freed_is_freed(model, kept->track); /* then what is held at the end says nothing of what was */
	struct sl_leak_windows part;
	uint64_t bytes, blocks;
	double error;

	sl_tracks_held(&model->tracks, kept->track, &bytes, &blocks);
	count_kept(kept, model, lives_on(kept->track, series));
	part = steady_part(course, series, freed ? series->kept[series->count - 1] : kept->amount);
	kept->per_birth = (part.kept[part.count - 1] - part.kept[0]) / (double)((part.count - 1) * course->births_per_window);
	if (kept->track->most_blocks == kept->births) /* each was kept */
		kept->per_birth = kept->count_only ? 1 : (double)kept->track->born_bytes / (double)kept->births;
	else if (!freed && part.kept[0] * (double)kept->blocks <= ONE_BLOCK * kept->amount &&
		 part.tick[0] <= (double)course->windows[0].begin_tick && 2 * kept->blocks >= blocks)
		kept->per_birth = kept->amount / (double)kept->births; /* kept from the first birth on */
	kept->per_second = sl_leak_windows_slope(&part, part.time, &error) * 1e9;
	kept->per_second_error = error * 1e9;
}

/* True: most of it had been freed before the request failed that ended the program, so it was not freed by the end. */
static bool is_gone_before_error(const struct sl_model *model, const struct sl_track *track, double grown)
{
	uint64_t bytes, blocks;

	if (!sl_model_ended_by_error(model))
		return false;
	sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	return (by_count(track) ? (double)blocks : (double)bytes) < grown / 2;
}

/*
 * True: the last three quarters keep as many blocks as a place with SL_KEEPING_BIRTHS even births does.  Fewer are a cache
 * that meets rare keys.
 */
static bool has_births_enough(const struct sl_leak_windows *counted, const double *clock, double end)
{
	double first = sl_leak_windows_kept_at(counted, clock, clock[0] + (end - clock[0]) / 4);

	return counted->kept[counted->count - 1] - first >=
	       (SL_KEEPING_BIRTHS - 1) * 3 / 4; /* the first is there at the beginning */
}

/* True: most of what is left is no older than blocks that were freed had got, as where blocks come and go at random. */
static bool is_turned_over(const struct sl_model *model, const struct sl_track *track, const struct sl_leak_windows *left)
{
	uint64_t lived = sl_tracks_lived(&model->tracks, track),
		 births = sl_tracks_course(&model->tracks, track)->births_per_window;
	unsigned young = (unsigned)(lived / births) + 1;
	double old = young < left->count ? left->kept[left->count - 1 - young] : 0;

	return lived && 2 * old < left->kept[left->count - 1];
}

/* True: the place's memory has not risen for many more births than ever were between two rises. */
static bool is_full(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	uint64_t since = track->births - course->crest_births;

	return since > FULL_GAPS * course->crest_gap;
}

/*
 * The window from which on the place keeps its blocks; 0: its first.  Nearly all that is left was born since.  A quarter of its
 * births came before, and four times as many came since as any freed block lived through.
 */
static unsigned onset_of(const struct sl_model *model, const struct sl_track *track, const struct sl_leak_windows *left)
{
	unsigned window = sl_leak_windows_window_of(left, ONSET_BEFORE);
	uint64_t since;

	while (window && left->kept[window - 1] > (window > 1 ? left->kept[window - 2] : 0))
		window--;
	since = (left->count - window) * sl_tracks_course(&model->tracks, track)->births_per_window;
	return 4 * window >= left->count && left->count - window >= 4 && 4 * sl_tracks_lived(&model->tracks, track) <= since &&
			       left->kept[left->count - 1] >= SL_KEEPING_BIRTHS
		       ? window
		       : 0;
}

/* True: the survivors were born evenly, or what is held hardly ever falls, as in a queue that fills faster than it is emptied. */
static bool is_left_evenly(const struct sl_leak_windows *counted, const struct sl_leak_windows *left)
{
	double last, kept = counted->kept[counted->count - 1];

	return FALLS_MAX * (kept - counted->kept[0]) >= sl_leak_windows_given_back(counted) ||
	       sl_leak_windows_evenness(left, left->tick, &last) >= QUARTER_MIN;
}

/*
 * When the first block that is left was born, or what is held began to grow.  The instant within its window is estimated from
 * how many blocks are left of later windows.
 */
static double since_of(const struct sl_leak_windows *series, const struct sl_leak_windows *left, unsigned onset)
{
	unsigned window = onset ? onset : sl_leak_windows_window_of(left, 0), later = left->count - 1 - window;
	double here = left->kept[window] - (window ? left->kept[window - 1] : 0);
	double full = later ? (left->kept[left->count - 1] - left->kept[window]) / later : here, width;
	unsigned begun = 0;

	/* what is kept may have begun to grow before the oldest that is left was born: a queue */
	while (begun + 1 < series->count &&
	       series->kept[begun + 1] - series->kept[0] <= BEGUN_PART * (series->kept[series->count - 1] - series->kept[0]))
		begun++;
	if (!onset && begun + 1 < window)
		return series->time[begun];
	width = series->time[window + 1] - series->time[window];
	return series->time[window] + (full > here ? width * (1 - here / full) : 0);
}

/*
 * True: for each block that the place keeps, one that another line had made before was freed, no less than half as large: a
 * full ring.
 */
static bool replaces(const struct sl_model *model, const struct sl_kept *kept)
{
	const struct sl_track *track = kept->track;

	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *other = &model->tracks.item[i];
		uint64_t bytes, blocks, gone;

		if (other->kind != track->kind || other->device != track->device ||
		    other->last_ns > track->first_ns)
			continue;
		sl_tracks_held(&model->tracks, other, &bytes, &blocks);
		gone = other->births - blocks;
		if (gone >= SL_KEEPING_BIRTHS && gone + 1 >= kept->blocks && gone <= kept->blocks + 1 &&
		    track->born_bytes * other->births <= 2 * other->born_bytes * track->births)
			return true;
	}
	return false;
}

/* True: the place allocated in a handful of calls, as NCCL does for its first collectives. */
static bool is_of_few_calls(const struct sl_leak_windows *counted)
{
	double others = counted->others[counted->count] - counted->others[0],
	       all = counted->tick[counted->count] - counted->tick[0];
	bool alone = others < SL_KEEPING_OTHERS * all; /* then nothing tells calls apart */
	unsigned calls = sl_leak_windows_calls(counted, counted->others);

	return !alone && calls < SL_KEEPING_CALLS && all - others <= SL_KEEPING_CALL_BIRTHS * calls;
}

/* True: one call of NCCL made all of it, of which NVTX tells: ncclCommInitAll of tests/golden/gpu/libraries makes 194 blocks. */
static bool is_of_one_call(const struct sl_model *model, const struct sl_track *track)
{
	const char *text = track->last_label ? sl_defs_text(model->defs, track->last_label) : NULL;

	for (size_t i = 0; text && !strncmp(text, "NCCL:", 5) && i < model->labels.count; i++)
		if (model->labels.item[i].text == track->last_label)
			return model->labels.item[i].entries + model->labels.item[i].open == 1 &&
			       track->first_ns >= model->labels.item[i].first_ns;
	return false;
}

/*
 * True: births become rarer over the whole run, as those of a cache whose keys come as words in texts
 * (tests/diagnosis/seen/shape_cache.py).  In its last three quarters they are no later than even ones, as where only the set-up
 * was busier.
 */
static bool is_slower(const struct sl_leak_windows *left)
{
	return sl_leak_windows_decline(left, 1) > DECLINE_MAX && sl_leak_windows_decline(left, 0.75) >= 0;
}

/* What a place keeps, by three measures, from the window `onset` on. */
struct course {
	struct sl_leak_windows counted, series, left;
	unsigned onset;
};

/* SL_KEPT_MEANT: it is not reported. */
static enum sl_leak_words_verdict verdict_of(const struct sl_process *process, const struct sl_kept *kept,
					     const struct course *course)
{
	const struct sl_track *track = kept->track;
	const struct sl_leak_windows *left = &course->left;
	bool few = course->onset && course->counted.count < WINDOWS_MIN; /* then each window is a quarter or longer */
	const struct sl_leak_windows *counted = few ? left : &course->counted, *series = few ? left : &course->series;
	double last, by_time, even = sl_leak_windows_evenness(counted, counted->tick, &last);
	bool turned_over = is_turned_over(process->model, track, left), late = course->onset;

	if (is_of_one_call(process->model, track))
		return SL_KEPT_MEANT;
	if (has_stopped(process->model, track) || replaces(process->model, kept))
		return SL_KEPT_MEANT;
	if (!kept->count_only && last < 0.05) /* the same number of blocks but larger ones: a vector that doubles, a ring */
		return SL_KEPT_MEANT;
	/* as many are freed as are allocated, or more and more nearly so: the bound is reached, or near */
	if (turned_over &&
	    (sl_leak_windows_missed(counted) >= BOUND_MISSED || is_full(process->model, track) || is_slower(counted)))
		return SL_KEPT_MEANT;
	even = fmin(even, sl_leak_windows_evenness(series, series->tick, &last));
	if (even >= QUARTER_MIN && (late || has_births_enough(counted, counted->tick, counted->tick[counted->count])) &&
	    is_left_evenly(counted, left)) {
		if (late && left->kept[left->count - 1] < ONSET_BIRTHS)
			return SL_KEPT_LATE;
		if (!is_slower(left))
			return kept->set_up || may_be_loaded(process, track) ? SL_KEPT_UNCLEAR : SL_KEPT_GROWING;
	}
	if (late || turned_over)
		return late ? SL_KEPT_LATE : SL_KEPT_MEANT;
	sl_leak_windows_evenness(series, series->time, &by_time);
	return last > 0.05 && last < SLOWER && by_time > 0.05 ? SL_KEPT_FILLING : SL_KEPT_MEANT;
}

/*
 * Corrects the verdict by who freed the blocks: the program, or its end.  After an error that ended the program, its end did.
 */
static enum sl_leak_words_verdict after_its_end(const struct sl_model *model, const struct sl_track *track, uint64_t begin,
						enum sl_leak_words_verdict verdict)
{
	if (sl_model_ended_by_error(model) || verdict == SL_KEPT_MEANT)
		return verdict;
	if (sl_self_freed_is_freed(model, track))
		return verdict == SL_KEPT_FILLING || verdict == SL_KEPT_LATE ? SL_KEPT_MEANT : SL_KEPT_COLLECTED;
	return verdict == SL_KEPT_GROWING && sl_self_freed_is_last_phase(model, track, begin) ? SL_KEPT_UNCLEAR : verdict;
}

/* False: too many places were measured before; the process says for how many this was so. */
static bool may_measure(struct sl_process *process)
{
	bool may = process->measured < MEASURED_MAX;

	*(may ? &process->measured : &process->unmeasured) += 1;
	return may;
}

/*
 * True: each block is larger than all before it, and all are kept, or a third of them, old ones too: a buffer that grows, and
 * whose old block is lost.  It grows when it must, so this need not be even, nor go on to the end.
 */
static bool judge_lost(struct sl_process *process, const struct sl_track *track, struct sl_kept *kept)
{
	const struct sl_model *model = process->model;
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	struct sl_leak_windows series;
	uint64_t bytes, blocks;
	double middle;

	if (by_count(track) || track->births < LOST_BUT || course->larger < track->births ||
	    !is_judged(process, track, (double)track->born_bytes) ||
	    (double)(course->last_tick - course->windows[0].begin_tick) < LOST_PART * (double)model->tracks.ticks)
		return false;
	sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	if (blocks < track->births ? LOST_OF * blocks < track->births : track->births < LOST_MIN)
		return false;
	sl_leak_windows_take(model, track, false, end_of(model), &series);
	middle = series.tick[0] + (series.tick[series.count] - series.tick[0]) / 2;
	if ((blocks < track->births &&
	     sl_leak_windows_kept_at(&series, series.tick, middle) < LOST_EARLY * series.kept[series.count - 1]) ||
	    !may_measure(process))
		return false;
	*kept = (struct sl_kept){.track = track,
				 .verdict = SL_KEPT_GROWING,
				 .larger = true,
				 .since_ns = track->first_ns,
				 .confidence = 1 - exp(-lgamma((double)track->births + 1))}; /* one of all their orders */
	measure(kept, model, &series);
	return true;
}

static bool judge(struct sl_process *process, const struct sl_track *track, unsigned tested, struct sl_kept *kept)
{
	const struct sl_model *model = process->model;
	struct course course = {0};
	double grown, chance;

	sl_leak_windows_take(model, track, true, end_of(model), &course.counted);
	if (course.counted.count < 4 ||
	    sl_leak_windows_chance(course.counted.kept, course.counted.count) * tested > SL_KEEPING_LEVEL)
		return false;
	sl_leak_windows_take(model, track, by_count(track), end_of(model), &course.series);
	grown = course.series.kept[course.series.count - 1] - course.series.kept[0];
	chance = fmin(1, sl_leak_windows_chance(course.series.kept, course.series.count) * tested);
	if (!is_judged(process, track, grown) || chance > SL_KEEPING_LEVEL ||
	    grown < 2 * sl_leak_windows_given_back(&course.series) || is_gone_before_error(model, track, grown) ||
	    !may_measure(process))
		return false;
	sl_leak_windows_take_left(model, track, &course.counted, &course.left);
	*kept = (struct sl_kept){.track = track, .confidence = 1 - chance};
	course.onset = onset_of(model, track, &course.left);
	kept->since_ns = model->first_ns + sl_stats_bytes(since_of(&course.series, &course.left, course.onset));
	if (course.onset) { /* from the first full window on */
		sl_leak_windows_begin_at(&course.counted, course.onset + 1);
		sl_leak_windows_begin_at(&course.series, course.onset + 1);
		sl_leak_windows_begin_at(&course.left, course.onset);
	}
	measure(kept, model, &course.series);
	kept->set_up = is_of_few_calls(&course.counted);
	kept->verdict = after_its_end(model, track, sl_stats_bytes(course.counted.tick[0]), verdict_of(process, kept, &course));
	kept->young = is_turned_over(model, track, &course.left);
	return kept->verdict != SL_KEPT_MEANT;
}

static bool judge_place(struct sl_process *process, const struct sl_track *track, unsigned tested, struct sl_kept *kept)
{
	struct sl_kept lost;
	bool found;

	if (track->births < SL_KEEPING_BIRTHS)
		return false;
	found = judge(process, track, tested, kept);
	if ((found && kept->verdict != SL_KEPT_FILLING) || !judge_lost(process, track, &lost))
		return found;
	*kept = lost;
	return true;
}

static int by_amount(const void *a, const void *b)
{
	const struct sl_kept *x = a, *y = b;

	return SL_RISING(x->verdict, y->verdict) ?: SL_FALLING(x->amount, y->amount);
}

/* The births of a place that was busy for half of the run's births at least; else 0: a loop of the set-up is no period. */
static uint64_t births_all_along(const struct sl_tracks *tracks, size_t index)
{
	const struct sl_track_course *course = &tracks->course[index];

	return tracks->item[index].births >= SL_KEEPING_BIRTHS && course->count &&
			       2 * (course->last_tick - course->windows[0].begin_tick) >= tracks->ticks
		       ? tracks->item[index].births
		       : 0;
}

/* The number of births that most places have in common: rounds, which need not be the program's own loop. */
static void find_iterations(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	const struct sl_label *steps = sl_model_steps(process->model);
	unsigned most = 1;

	if (steps && steps->entries >= SL_KEEPING_BIRTHS) {
		process->iterations = (struct sl_iterations){steps->entries, sl_defs_text(process->model->defs, steps->text), true};
		return;
	}
	for (size_t i = 0; i < tracks->count && i < ITERATION_PLACES_MAX; i++) {
		uint64_t births = births_all_along(tracks, i);
		unsigned same = 0;

		for (size_t k = 0; births && k < tracks->count && k < ITERATION_PLACES_MAX; k++)
			same += births_all_along(tracks, k) == births;
		if (same > most || (same == most && most > 1 && births > process->iterations.count)) {
			most = same;
			process->iterations = (struct sl_iterations){births, "round", false};
		}
	}
}

/* About how many births the track had had by then. */
static double births_by(const struct sl_tracks *tracks, const struct sl_track *track, uint64_t ns)
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);
	size_t later = SL_FIRST(i, course->count, course->windows[i].begin_ns > ns);
	double begin = later ? (double)course->windows[later - 1].begin_ns : 0, each = (double)course->births_per_window;
	double end = later < course->count ? (double)course->windows[later].begin_ns : (double)track->last_ns;

	if (!later)
		return 0;
	return (double)(later - 1) * each + (later < course->count ? each : (double)course->births_in_last) *
						    (end > begin ? fmin(1, ((double)ns - begin) / (end - begin)) : 1);
}

static uint64_t rounds_of(const struct sl_process *process, const struct sl_track *track)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	double all = (double)process->iterations.count, rounds;
	size_t i = 0;

	if (!process->iterations.count || process->iterations.by_label)
		return 0;
	while (births_all_along(tracks, i) != process->iterations.count)
		i++;
	rounds = births_by(tracks, &tracks->item[i], track->last_ns) - births_by(tracks, &tracks->item[i], track->first_ns);
	return sl_stats_bytes(rounds < ALL_ROUNDS * all ? fmax(1, rounds) : all);
}

/* Adds the first calls of its place, which were named after the replay (replay/late_unwinder.c). */
static void add_first_calls(const struct sl_model *model, struct sl_kept *kept)
{
	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		uint64_t bytes, blocks;

		if (track == kept->track || track->stack.python != kept->track->stack.python ||
		    track->stack.native != kept->track->stack.native || track->kind != kept->track->kind ||
		    track->device != kept->track->device || track->births >= SL_KEEPING_BIRTHS)
			continue;
		sl_tracks_held(&model->tracks, track, &bytes, &blocks);
		kept->births += track->births;
		kept->blocks += blocks;
		kept->bytes += kept->bytes == SL_UNKNOWN ? 0 : bytes;
		kept->amount += kept->count_only ? (double)blocks : (double)bytes;
		kept->left_blocks += track->live_blocks;
		kept->left_bytes += track->live_bytes;
	}
}

/* True: a reported place keeps blocks of this kind on this device, so join() may find both on one line. */
static bool may_join(const struct sl_process *process, size_t judged, const struct sl_track *track)
{
	bool may = false;

	for (size_t i = 0; i < judged; i++) {
		const struct sl_track *other = process->kept.item[i].track;

		if (track == other || (track->stack.native && track->stack.native == other->stack.native &&
				       track->stack.python == other->stack.python)) /* add_first_calls */
			return false;
		may |= 1u << process->kept.item[i].verdict & TAKES_FEW && track->kind == other->kind &&
		       track->device == other->device;
	}
	return may;
}

/* Stacks with too few births to be judged, or whose blocks were all kept unevenly: as a vector grows it calls from elsewhere. */
static void add_few(struct sl_process *process, const bool *segments)
{
	const struct sl_model *model = process->model;
	size_t judged = process->kept.count, few = 0;

	for (size_t i = 0; i < model->tracks.count && judged && few < FEW_MAX; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		struct sl_kept kept = {.track = track, .verdict = SL_KEPT_FEW, .since_ns = track->first_ns};

		if (segments[i] || (track->births >= SL_KEEPING_BIRTHS && track->most_blocks < track->births) ||
		    !may_join(process, judged, track))
			continue;
		count_kept(&kept, model, false);
		if (!kept.blocks)
			continue;
		kept.per_birth = kept.amount / (double)kept.births;
		*SL_PUSH(&process->kept) = kept;
		few++;
	}
}

#define WINDOW_BEGIN 0.5 /* of the window: by then a place has begun, since what sets the program up asks for much */
#define WINDOW_EDGE  1.5 /* rounds in which a place may have ended: a window cuts them */
#define WINDOW_KEPT  0.9 /* of its blocks a place that leaks still holds so many */

/*
 * A window of a snapshot has few rounds, of each of which everything is known: a place leaks that makes something in each
 * round or in each second one, up to the last, and still holds it.  Births are the clock, since a first step takes long.
 */
static bool judge_window(const struct sl_process *process, const struct sl_track *track, uint64_t rounds, uint64_t before,
			 struct sl_kept *kept)
{
	const struct sl_model *model = process->model;
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	uint64_t begin_ns = model->header->monotonic_ns, end_ns = model->now_ns;
	double span = (double)(model->tracks.ticks - before);

	if (track->first_ns <= begin_ns || track->births + 1 < SL_WINDOW_ROUNDS_MIN || 2 * track->births + 2 < rounds ||
	    !course->count || (double)course->windows[0].begin_tick - (double)before > WINDOW_BEGIN * span ||
	    (double)(model->tracks.ticks - course->last_tick) > WINDOW_EDGE * span / (double)rounds)
		return false;
	if ((double)track->live_blocks < WINDOW_KEPT * (double)track->births)
		return false;
	*kept = (struct sl_kept){.track = track,
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

static void judge_windows(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	uint64_t rounds = sl_window_rounds(process), before = 0;
	uint64_t begin_ns = process->model->header->monotonic_ns;
	struct sl_kept kept;

	process->iterations = (struct sl_iterations){rounds, "round", false};
	for (size_t i = 0; i < tracks->count; i++)
		before += tracks->item[i].last_ns <= begin_ns ? tracks->item[i].births : 0;
	for (size_t i = 0; i < tracks->count && rounds >= SL_WINDOW_ROUNDS_MIN; i++)
		if (tracks->item[i].kind == SL_KIND_block && judge_window(process, &tracks->item[i], rounds, before, &kept))
			*SL_PUSH(&process->kept) = kept;
	if (process->kept.count)
		qsort(process->kept.item, process->kept.count, sizeof(kept), by_amount);
}

static void process(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	bool *segments;
	unsigned tested = 0;
	struct sl_kept kept;

	if (process->model->snapshot) {
		judge_windows(process);
		return;
	}
	segments = segments_of(process->model);
	find_iterations(process);
	for (size_t i = 0; i < tracks->count; i++)
		tested += tracks->item[i].births >= SL_KEEPING_BIRTHS;
	for (size_t i = 0; i < tracks->count && !process->model->folded_ns; i++) {
		const struct sl_track *track = &tracks->item[i];

		if (!segments[i] && judge_place(process, track, tested, &kept))
			*SL_PUSH(&process->kept) = kept;
	}
	for (size_t i = 0; i < process->kept.count; i++) {
		process->kept.item[i].rounds = rounds_of(process, process->kept.item[i].track);
		if (process->kept.item[i].track->stack.native)
			add_first_calls(process->model, &process->kept.item[i]);
	}
	add_few(process, segments);
	free(segments);
	if (process->kept.count)
		qsort(process->kept.item, process->kept.count, sizeof(kept), by_amount);
}

static bool is_one_leak(const struct sl_kept *to, const struct sl_kept *one)
{
	return to->track->kind == one->track->kind && to->track->device == one->track->device &&
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
static void slow_down(struct sl_kept *kept, const struct joined *joined)
{
	double rate = rate_between(joined->first_ns, joined->last_ns, kept->amount);

	if (rate > 0 && rate < kept->per_second) {
		kept->per_second_error *= rate / kept->per_second;
		kept->per_second = rate;
	}
}

/* Stacks that differ only outside the named line are one leak. */
static void join(struct sl_process *process)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	struct joined *joined = sl_memory_must(calloc(process->kept.count + 1, sizeof(*joined)));
	size_t kept = 0, k;

	for (size_t i = 0; i < process->kept.count; i++) {
		struct sl_kept one = process->kept.item[i];
		const struct sl_stack_frame *place = sl_place_at(process, one.track->stack, frames);

		for (k = 0; place && k < kept; k++)
			if (is_one_leak(&process->kept.item[k], &one) && sl_place_same(&joined[k].place, place))
				break;
		if (place && k < kept) {
			if (one.verdict == SL_KEPT_FEW)
				one.per_second = rate_between(process->kept.item[k].track->first_ns,
							      process->kept.item[k].track->last_ns, one.amount);
			sl_leak_words_add(&process->kept.item[k], &one);
			if (one.track->first_ns < joined[k].first_ns)
				joined[k].first_ns = one.track->first_ns;
			if (one.track->last_ns > joined[k].last_ns)
				joined[k].last_ns = one.track->last_ns;
			slow_down(&process->kept.item[k], &joined[k]);
		} else if (one.verdict != SL_KEPT_FEW) {
			joined[kept] = (struct joined){place ? *place : (struct sl_stack_frame){0}, one.track->first_ns,
						       one.track->last_ns};
			process->kept.item[kept++] = one;
		}
	}
	process->kept.count = kept;
	free(joined);
}

#define LEFT SL_KEPT_END /* growing, and some of it is still there when the process ends */

static const char *const ids[] = {[SL_KEPT_GROWING] = "leak.kept",
				  [SL_KEPT_FILLING] = "memory.filling",
				  [SL_KEPT_UNCLEAR] = "memory.only_taken",
				  [SL_KEPT_COLLECTED] = "memory.collected",
				  [SL_KEPT_LATE] = "memory.kept_late",
				  [SL_KEPT_SMALL] = "memory.handles",
				  [LEFT] = "leak.growing"};
static const char keepers[] =
	"find the line that keeps them, there or in its callers: a list, a cache without a bound, a handle that is never closed";
static const struct {
	const char *severity, *class, *advice;
	const char *at_error; /* advice where an error ended the program, which a longer run meets too; NULL: the same */
} told[] = {
	[SL_KEPT_GROWING] = {"warning", "leak", keepers},
	[SL_KEPT_FILLING] = {"info", "filling",
			     "a cache without a limit, or one that is not full yet: record a longer run to tell them apart",
			     "a cache without a limit, or one whose limit is more than the device has"},
	[SL_KEPT_UNCLEAR] = {"info", "unclear", "record a longer run: it tells whether this is a leak", keepers},
	[SL_KEPT_COLLECTED] = {"info", "unclear", "if a longer run would collect more than fits, collect and free in parts"},
	[SL_KEPT_LATE] = {"info", "unclear",
			  "a leak since then, or results collected at the end: record a longer run to tell them apart", keepers},
	[SL_KEPT_SMALL] = {"info", "unclear", "close handles that are no longer used; these hold little so far"},
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
 * True: a certain finding reports the same blocks, or they are of one step or one call, or hold too little to have caused the
 * error at the end.
 */
static bool is_known_to_grow(struct sl_process *process, const struct sl_kept *kept)
{
	const struct sl_model *model = process->model;

	if (kept->verdict == SL_KEPT_GROWING && !model->snapshot && sl_roles_is_few_calls(process, kept->track))
		return true;
	if (kept->verdict == SL_KEPT_UNCLEAR && !sl_model_ended_by_error(model) &&
	    sl_process_lacked_room(process) && sl_stack_same(kept->track->stack, model->roomless.stack))
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

/* What a suppression names comes last and is not reported; neither is a guess about blocks that a certain finding reports. */
static void set_aside_meant(struct sl_process *process, const struct sl_suppressions *list)
{
	for (size_t i = 0; i < process->kept.count; i++) {
		struct sl_kept *kept = &process->kept.item[i];
		const struct sl_track *track = kept->track;

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

		join(process);
		set_aside_meant(process, report->options.suppressions);
		for (size_t k = 0; k < process->kept.count && k < FINDINGS_MAX; k++)
			if (ids[process->kept.item[k].verdict]) /* not of what is meant, nor of older summaries' 3 and 4 */
				find(report, i, &process->kept.item[k]);
	}
}

const struct sl_analysis sl_analysis_kept = {.name = "kept", .process = process, .run = run, .of_windows = true};
