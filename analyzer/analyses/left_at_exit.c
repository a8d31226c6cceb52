/* SPDX-License-Identifier: MIT */
/*
 * What a process still held when it ended by itself, by stack.  The bytes of all leaks of a row add up to the row's live bytes.
 * The growth of a leak is the slope of a line through the births of its remaining blocks.  The line runs over the program's
 * steps where it has some, because a checkpoint, an evaluation or an idle hour would bend a line over time.
 * (Longer than other files: one leak, from the blocks that were left to its verdict.)
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/analyses/leak_windows.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/utf8.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/report.h"
#include "analyzer/report/suppress.h"

struct birth {
	uint32_t site, torch;
	uint64_t time_ns, bytes;
};

struct births {
	SL_VECTOR(struct birth) list;
	uint64_t *stacks;	      /* hash of each site's stack as a reader sees it; 0: not computed yet */
	bool *growing;		      /* for each track: it is in process->leaks_by_line and grows */
	const struct sl_label *steps; /* of the program; NULL: it has none */
};

static bool counts(unsigned kind)
{
	return kind == SL_KIND_device || kind == SL_KIND_pool || kind == SL_KIND_managed || kind == SL_KIND_vmm ||
	       kind == SL_KIND_array || kind == SL_KIND_host_pinned;
}

/* Frames that only pass a request on are ignored: CPython 3.13 calls from one place of a loop through two places of its own. */
static uint64_t hash_stack(const struct sl_model *model, const struct sl_site *site)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_stacks_resolve(frames, model->defs, NULL, site->stack);
	uint64_t hash = 1;

	count = sl_stacks_fold(frames, count);
	for (unsigned i = 0; i < count; i++) {
		hash = sl_utf8_mix_text(hash, frames[i].module);
		hash = sl_utf8_mix_text(hash, frames[i].file);
		hash = sl_utf8_mix_text(hash, frames[i].function);
		hash = sl_idmap_hash(hash ^ frames[i].offset) ^ frames[i].line;
	}
	return hash ? hash : 1;
}

static void add(struct births *births, const struct sl_model *model, struct birth birth)
{
	if (!counts(model->sites.item[birth.site].kind))
		return;
	if (!births->stacks[birth.site])
		births->stacks[birth.site] = hash_stack(model, &model->sites.item[birth.site]);
	*SL_PUSH(&births->list) = birth;
}

/* Physical memory is a segment of PyTorch if one of its mappings is. */
static void collect_physical(struct births *births, const struct sl_model *model)
{
	size_t count;
	const struct sl_physical *physical = sl_vmm_physical(model->vmm, &count);
	uint8_t *torch = sl_memory_must(calloc(count + 1, 1));

	SL_TABLE_EACH(sl_vmm_mappings(model->vmm), mapping)
	{
		if (mapping->flags & SL_LIVE_TORCH && mapping->owner < count)
			torch[mapping->owner] = 1;
	}
	for (size_t i = 0; i < count; i++)
		if (physical[i].site != SL_NO_SITE)
			add(births, model, (struct birth){physical[i].site, torch[i], physical[i].time_ns, physical[i].bytes});
	free(torch);
}

static void collect(struct births *births, const struct sl_model *model)
{
	const struct sl_table *spaces[] = {&model->pointers, &model->arrays};

	for (size_t s = 0; s < SL_COUNT(spaces); s++)
		SL_TABLE_EACH(spaces[s], live)
		{
			add(births, model, (struct birth){live->site, live->flags & SL_LIVE_TORCH, live->time_ns, live->bytes});
		}
	collect_physical(births, model);
}

/* A leak is one stack, kind and device; blocks of PyTorch's cache are separate from others of the same stack. */
struct grouping {
	const struct sl_model *model;
	const struct births *births;
};

static int compare_groups(const struct grouping *by, const struct birth *a, const struct birth *b)
{
	const struct sl_site *x = &by->model->sites.item[a->site], *y = &by->model->sites.item[b->site];
	uint64_t stack = by->births->stacks[a->site], other = by->births->stacks[b->site];

	return SL_RISING(x->kind, y->kind) ?: SL_RISING(x->device, y->device) ?: SL_RISING(stack, other)
	       ?: SL_RISING(a->torch, b->torch);
}

static int by_group_and_time(const void *a, const void *b, void *by)
{
	const struct birth *x = a, *y = b;

	return compare_groups(by, x, y) ?: SL_RISING(x->time_ns, y->time_ns);
}

/* The program's own clock: its steps, or seconds where it has none. */
struct clock {
	const struct sl_label *steps;
	uint64_t begin_ns, life_ns;
};

/* Steps are no clock for a place that was also busy before or after them. */
static struct clock clock_of(const struct sl_model *model, const struct sl_label *label, const struct birth *births, size_t count)
{
	struct clock clock = {.begin_ns = model->first_ns, .life_ns = model->now_ns - model->first_ns};
	size_t inside = 0;

	for (size_t i = 0; label && i < count; i++)
		inside += births[i].time_ns >= label->first_ns && births[i].time_ns <= label->last_ns;
	if (label && label->entries >= SL_SEVERAL && (double)inside >= SL_MOST_OF * (double)count)
		clock.steps = label;
	return clock;
}

static double read_clock(const struct clock *clock, uint64_t ns)
{
	return clock->steps ? (double)sl_model_step_at(clock->steps, ns) : (double)(ns - clock->begin_ns) / 1e9;
}

/* Fits a straight line to the sum of births over the clock: bytes per unit, and r squared; 0 where there is no line. */
static double line(const struct birth *births, size_t count, const struct clock *clock, double *r_squared)
{
	double n = (double)count, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, sum = 0, xx, xy, yy;

	*r_squared = 0;
	for (size_t i = 0; i < count; i++) {
		double x = read_clock(clock, births[i].time_ns);

		sum += (double)births[i].bytes;
		sx += x;
		sy += sum;
		sxx += x * x;
		sxy += x * sum;
		syy += sum * sum;
	}
	xx = sxx - sx * sx / n;
	xy = sxy - sx * sy / n;
	yy = syy - sy * sy / n;
	if (xx <= 0 || yy <= 0)
		return 0;
	*r_squared = fmin(1, xy * xy / (xx * yy));
	return xy / xx;
}

/*
 * The verdict of leak_trend.c, which has seen freed blocks too.  It judges no folded trace, and no place with fewer births: the
 * purpose of few blocks is not known where memory ran out before there were more.  What was made asleep is of all lines together,
 * with what the program loaded at its start.
 */
static bool is_kept(const struct sl_model *model, const struct births *births, uint32_t track)
{
	if (model->tracks.item[track].stack.python == SL_ASLEEP_STACK)
		return false;
	if (model->folded_ns)
		return true;
	if (model->tracks.item[track].births < SL_KEEPING_BIRTHS)
		return !sl_model_ended_by(model);
	return births->growing[track];
}

/* True: each is larger than the one before, as tables are that are made for larger and larger inputs. */
static bool is_rising(const struct birth *births, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (births[i].bytes <= births[i - 1].bytes)
			return false;
	return true;
}

/* True: they came in a handful of calls. */
static bool is_set_up(const struct birth *births, size_t count, const struct clock *clock)
{
	double near = SL_KEEPING_CALL_PART * (read_clock(clock, births[count - 1].time_ns) - read_clock(clock, births[0].time_ns)) /
		      (double)(count - 1);
	unsigned calls = 1;

	for (size_t i = 1; i < count; i++)
		calls += read_clock(clock, births[i].time_ns) - read_clock(clock, births[i - 1].time_ns) >= near;
	return calls < SL_KEEPING_CALLS;
}

/* The births of one leak, oldest first. */
static void fit(struct sl_leak *leak, const struct birth *births, size_t count, const struct clock *clock)
{
	const struct clock seconds = {.begin_ns = leak->first_ns, .life_ns = clock->life_ns};
	double span = read_clock(clock, leak->last_ns) - read_clock(clock, leak->first_ns);
	double life = clock->steps ? (double)clock->steps->entries : (double)clock->life_ns / 1e9, slope, ignored;

	if (count < SL_SEVERAL || span < SL_QUARTER * life ||
	    (count < SL_KEEPING_BIRTHS && (is_rising(births, count) || is_set_up(births, count, clock))))
		return;
	slope = line(births, count, clock, &leak->r_squared);
	leak->growing = leak->r_squared >= SL_MOST_OF && slope > 0;
	leak->bytes_per_second = line(births, count, &seconds, &ignored);
	if (clock->steps) {
		leak->bytes_per_step = slope;
		leak->step = clock->steps->text;
	}
}

static void call_growing(struct sl_leak *leak)
{
	leak->verdict = "growing";
	leak->severity = "critical";
}

static void judge(struct sl_leak *leak, bool torch)
{
	const char *verdict = torch ? "cache" : sl_suppressions_builtin(leak->library);

	if (verdict) {
		leak->verdict = verdict;
		leak->severity = "info";
	} else if (leak->growing) {
		call_growing(leak);
	} else {
		leak->verdict = "live_at_exit";
		leak->severity = "info"; /* it does not grow: the system takes it back at exit */
	}
}

static void add_leak(struct sl_process *process, const struct births *all, const struct birth *births, size_t count)
{
	const struct sl_model *model = process->model;
	const struct clock clock = clock_of(model, all->steps, births, count);
	const struct sl_site *site = &model->sites.item[births[0].site];
	struct sl_leak leak = {
		.stack = site->stack,
		.kind = site->kind,
		.device = site->device,
		.blocks = count,
		.first_ns = births[0].time_ns,
		.last_ns = births[count - 1].time_ns,
		.library = sl_model_library(model, site),
	};

	for (size_t i = 0; i < count; i++)
		leak.bytes += births[i].bytes;
	if (is_kept(model, all, site->track))
		fit(&leak, births, count, &clock);
	judge(&leak, births[0].torch);
	*SL_PUSH(&process->leaks) = leak;
}

static int by_bytes(const void *a, const void *b)
{
	const struct sl_leak *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes);
}

static void process(struct sl_process *process)
{
	struct births births = {
		.stacks = sl_memory_must(calloc(process->model->sites.count + 1, sizeof(*births.stacks))),
		.growing = sl_memory_must(calloc(process->model->tracks.count + 1, sizeof(*births.growing))),
		.steps = sl_model_steps(process->model),
	};
	struct grouping by = {process->model, &births};
	size_t begin = 0;

	if (process->trace->status == SL_STATUS_COMPLETED)
		collect(&births, process->model);
	for (size_t i = 0; i < process->leaks_by_line.count && process->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++)
		births.growing[process->leaks_by_line.item[i].track - process->model->tracks.item] = true;
	if (births.list.count)
		qsort_r(births.list.item, births.list.count, sizeof(*births.list.item), by_group_and_time, &by);
	for (size_t i = 1; i <= births.list.count; i++) {
		if (i < births.list.count && !compare_groups(&by, &births.list.item[begin], &births.list.item[i]))
			continue;
		add_leak(process, &births, &births.list.item[begin], i - begin);
		begin = i;
	}
	free(births.list.item);
	free(births.stacks);
	free(births.growing);
	if (process->leaks.count)
		qsort(process->leaks.item, process->leaks.count, sizeof(*process->leaks.item), by_bytes);
}

/* What leaks and kept places of a process are looked up by. */
struct looking {
	struct sl_process *process;
	struct sl_leak_list_index leak_lines;
	struct sl_idmap tracks; /* a hash of stack, kind and device -> index into the model's tracks */
};

static uint64_t key_of(struct sl_stack stack, unsigned kind, int device)
{
	return sl_map_mix_two(sl_stack_mix(stack), (uint64_t)kind << 32 | (uint32_t)device);
}

static void begin_looking(struct looking *looking, struct sl_process *process)
{
	*looking = (struct looking){.process = process};
	sl_leak_list_index_take(&looking->leak_lines, process);
	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];

		sl_idmap_claim(&looking->tracks, key_of(site->stack, site->kind, site->device), site->track);
	}
}

static void end_looking(struct looking *looking)
{
	sl_leak_list_index_free(&looking->leak_lines);
	sl_idmap_free(&looking->tracks);
}

/* The first place at the leak's that grows, from the index `at` of process->leaks_by_line on; NULL: none. */
static const struct sl_leak_line *growing_from(const struct looking *looking, const struct sl_leak *leak, uint32_t at)
{
	for (; at != UINT32_MAX; at = looking->leak_lines.next[at]) {
		const struct sl_leak_line *leak_line = &looking->process->leaks_by_line.item[at];

		if (leak_line->verdict == SL_KEPT_GROWING && sl_leak_list_is_at(looking->process, leak, leak_line))
			return leak_line;
	}
	return NULL;
}

static const struct sl_leak_line *first_growing(const struct looking *looking, const struct sl_leak *leak)
{
	return growing_from(looking, leak, sl_leak_list_first(&looking->leak_lines, looking->process, leak));
}

static const struct sl_leak_line *next_growing(const struct looking *looking, const struct sl_leak *leak,
					       const struct sl_leak_line *leak_line)
{
	return growing_from(looking, leak, looking->leak_lines.next[leak_line - looking->process->leaks_by_line.item]);
}

/* True: the births of its place tell the same leak (leak.h). */
static bool is_told_by_births(const struct looking *looking, const struct sl_leak *leak)
{
	return first_growing(looking, leak);
}

/* Gives a leak that is all its place keeps the rate that is reported for the place. */
static void take_rate(const struct looking *looking, struct sl_leak *leak)
{
	for (const struct sl_leak_line *leak_line = first_growing(looking, leak); leak_line;
	     leak_line = next_growing(looking, leak, leak_line))
		if (leak_line->blocks == leak->blocks && !leak_line->count_only && leak->device == leak_line->track->device)
			leak->bytes_per_second = leak_line->per_second;
}

static uint64_t births_at(const struct looking *looking, const struct sl_leak *leak)
{
	uint32_t track = sl_idmap_get(&looking->tracks, key_of(leak->stack, leak->kind, leak->device), UINT32_MAX);

	return track == UINT32_MAX ? leak->blocks : looking->process->model->tracks.item[track].births;
}

/* Tells of each kept place that grows whether some of what it keeps is left, and grows. */
static bool *left_of(const struct looking *looking)
{
	struct sl_process *process = looking->process;
	bool *left = sl_memory_must(calloc(process->leaks_by_line.count + 1, sizeof(*left)));

	for (size_t i = 0; i < process->leaks.count; i++) {
		const struct sl_leak *leak = &process->leaks.item[i];
		const struct sl_leak_line *leak_line = !strcmp(leak->verdict, "growing") ? first_growing(looking, leak) : NULL;

		for (; leak_line; leak_line = next_growing(looking, leak, leak_line))
			left[leak_line - process->leaks_by_line.item] |= leak->device == leak_line->track->device;
	}
	return left;
}

/* Stacks with too few births to be judged grow if their line does: leak_findings.c counts them there. */
static void join_few(const struct looking *looking)
{
	struct sl_process *process = looking->process;
	bool *left = left_of(looking);

	for (size_t i = 0; i < process->leaks.count; i++) {
		struct sl_leak *leak = &process->leaks.item[i];

		if (strcmp(leak->verdict, "live_at_exit") != 0 || births_at(looking, leak) >= SL_KEEPING_BIRTHS)
			continue;
		for (const struct sl_leak_line *leak_line = first_growing(looking, leak); leak_line;
		     leak_line = next_growing(looking, leak, leak_line))
			if (leak->last_ns >= leak_line->since_ns && leak->device == leak_line->track->device &&
			    left[leak_line - process->leaks_by_line.item])
				call_growing(leak);
	}
	free(left);
}

/* about: `leak` tells of it, and not births. */
static void find_growing(struct sl_report *report, unsigned index, const struct sl_leak *leak)
{
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_leak_growing,
						    .severity = "critical",
						    .process = (int)index,
						    .device = leak->device,
						    .bytes = leak->bytes,
						    .stack = leak->stack,
						    .about = true,
						    .leak = leak});
}

/* One block that takes most of the device is an allocator's arena.  What is in it is judged only if its blocks are reported. */
static void find_arena(struct sl_report *report, unsigned index, const struct sl_row *row, int device)
{
	static const struct {
		const char *library, *name;
	} arenas[] = {
		{"xla_cuda", "JAX"}, {"xla_extension", "JAX"}, {"pjrt", "JAX"}, {"jaxlib", "JAX"}, {"tensorflow", "TensorFlow"},
	};
	struct sl_process *process = &report->processes[index];
	const struct sl_model *model = process->model;
	const struct sl_device_state *state = model->devices[device + 1];
	const struct sl_device *def = sl_defs_device(model->defs, device);
	uint64_t total = state && state->total_bytes != SL_UNKNOWN ? state->total_bytes : def ? def->total_bytes : 0;

	if (state && state->torch.pooled)
		return;
	for (size_t s = 0; total && row->peak_bytes >= total / 2 && s < model->sites.count; s++) {
		const struct sl_site *site = &model->sites.item[s];
		const char *library = sl_model_library(model, site);

		if (site->device != device || !site->total_blocks || site->total_bytes / site->total_blocks < total / 2)
			continue;
		for (size_t i = 0; i < SL_COUNT(arenas); i++) {
			if (!strstr(library, arenas[i].library))
				continue;
			sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_allocator_arena,
								    .severity = "info",
								    .process = (int)index,
								    .device = device,
								    .bytes = site->total_bytes / site->total_blocks,
								    .name = arenas[i].name,
								    .stack = site->stack});
			return;
		}
	}
}

/* A pattern that matched nothing may be mistyped, or meant for code that no longer exists. */
static void warn_unused(struct sl_report *report)
{
	const struct sl_suppressions *list = report->options.suppressions;
	bool used[SL_SUPPRESSIONS_MAX] = {false};

	for (unsigned i = 0; list && i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];

		for (size_t k = 0; k < process->leaks.count; k++) {
			const struct sl_leak *leak = &process->leaks.item[k];

			sl_suppress_mark_stack(list, process, leak->library, leak->stack, used);
		}
		for (size_t k = 0; k < process->leaks_by_line.count; k++) {
			const struct sl_track *track = process->leaks_by_line.item[k].track;

			sl_suppress_mark_stack(list, process, NULL, track->stack, used);
		}
	}
	for (size_t p = 0; list && p < list->count; p++)
		if (!used[p])
			sl_report_warn(report, "the suppression leak:%s matches no leak", list->pattern[p]);
}

/* The stack as its lines: an address counts where no line is known. */
static uint64_t hash_lines(struct sl_process *process, const struct sl_leak *leak)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, leak->stack);
	uint64_t hash = sl_idmap_hash(((uint64_t)leak->kind << 32) ^ (uint32_t)leak->device);

	for (unsigned i = 0; i < count; i++) {
		hash = sl_utf8_mix_text(hash, frames[i].module);
		hash = sl_utf8_mix_text(hash, frames[i].file);
		hash = sl_utf8_mix_text(hash, frames[i].function);
		hash = sl_idmap_hash(hash ^ (frames[i].line ? frames[i].line : ~frames[i].offset));
	}
	return hash ? hash : 1;
}

/* Several calls that a compiler made of one, by unrolling a loop, are one leak.  It grows if one of them does. */
static void join_calls(struct sl_leak *leaks, size_t first, const size_t *next)
{
	struct sl_leak *to = &leaks[first];

	for (size_t i = next[first]; i; i = next[i]) {
		to->bytes += leaks[i].bytes;
		to->blocks += leaks[i].blocks;
		to->first_ns = leaks[i].first_ns < to->first_ns ? leaks[i].first_ns : to->first_ns;
		to->last_ns = leaks[i].last_ns > to->last_ns ? leaks[i].last_ns : to->last_ns;
		to->growing |= leaks[i].growing;
		leaks[i].blocks = 0; /* joined to `to`, so gone */
	}
	judge(to, false);
}

/* What an allocator or a library keeps stays as it is. */
static bool may_be_joined(const struct sl_leak *leak)
{
	return leak->stack.native && sl_leak_counts(leak);
}

static void join_lines(struct sl_process *process)
{
	size_t count = process->leaks.count, kept_count = 0;
	struct sl_leak *leaks = process->leaks.item;
	size_t *next = sl_memory_must(calloc(count + 1, sizeof(*next)));
	struct sl_idmap last = {0}; /* a hash of lines -> the last leak of them so far */

	for (size_t i = 0; i < count; i++) {
		uint64_t hash = may_be_joined(&leaks[i]) ? hash_lines(process, &leaks[i]) : 0;
		uint32_t before = hash ? sl_idmap_get(&last, hash, UINT32_MAX) : UINT32_MAX;

		if (before != UINT32_MAX)
			next[before] = i;
		if (hash)
			sl_idmap_set(&last, hash, (uint32_t)i);
	}
	for (size_t i = 0; i < count; i++) {
		if (next[i] && leaks[i].blocks)
			join_calls(leaks, i, next);
		if (leaks[i].blocks)
			leaks[kept_count++] = leaks[i];
	}
	process->leaks.count = kept_count;
	free(next);
	sl_idmap_free(&last);
}

/*
 * What grew but was not left at the end: an interpreter freed it, or it lay inside memory that an allocator kept.  The part
 * that was left has an entry of its own.
 */
static void add_kept(struct sl_process *process)
{
	for (size_t i = 0; i < process->leaks_by_line.count && process->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_leak_line *leak_line = &process->leaks_by_line.item[i];
		const struct sl_track *track = leak_line->track;
		const struct sl_site *site = sl_model_site_of(process->model, track, NULL);
		bool left = counts(track->kind);

		if (track->kind >= SL_KIND_COUNT || leak_line->blocks <= (left ? leak_line->left_blocks : 0))
			continue;
		*SL_PUSH(&process->leaks) = (struct sl_leak){
			.stack = track->stack,
			.kind = track->kind,
			.device = track->device,
			.bytes = leak_line->bytes - (left ? leak_line->left_bytes : 0),
			.blocks = leak_line->blocks - (left ? leak_line->left_blocks : 0),
			.first_ns = track->first_ns,
			.last_ns = track->last_ns,
			.verdict = "kept",
			.severity = "warning",
			.library = site ? sl_model_library(process->model, site) : "?",
			.growing = true,
			.bytes_per_second = leak_line->count_only ? 0 : leak_line->per_second,
			.r_squared = leak_line->confidence,
		};
	}
	if (process->leaks.count)
		qsort(process->leaks.item, process->leaks.count, sizeof(*process->leaks.item), by_bytes);
}

static void find_in_process(struct sl_report *report, unsigned index)
{
	const struct sl_suppressions *list = report->options.suppressions;
	struct sl_process *process = &report->processes[index];
	struct looking looking;

	join_lines(process);
	begin_looking(&looking, process);
	join_few(&looking);
	for (size_t k = 0; k < process->leaks.count; k++) {
		struct sl_leak *leak = &process->leaks.item[k];
		const char *pattern = list && list->count ? sl_suppress_by_stack(list, process, leak->library, leak->stack) : NULL;

		if (pattern) {
			leak->verdict = "workspace";
			leak->severity = "info";
			leak->suppressed = true;
		}
		if (!strcmp(leak->verdict, "growing"))
			take_rate(&looking, leak);
	}
	if (process->trace->status == SL_STATUS_COMPLETED)
		add_kept(process);
	for (size_t k = 0; k < process->leaks.count; k++)
		if (!strcmp(process->leaks.item[k].verdict, "growing") && !is_told_by_births(&looking, &process->leaks.item[k]))
			find_growing(report, index, &process->leaks.item[k]);
	end_looking(&looking);
	for (int d = 0; d < SL_DEVICES_MAX; d++)
		if (sl_model_row(process->model, SL_KIND_device, d + 1)->used)
			find_arena(report, index, sl_model_row(process->model, SL_KIND_device, d + 1), d);
}

const struct sl_analysis sl_analysis_leaks = {
	.name = "leaks", .process = process, .find_in_process = find_in_process, .run = warn_unused};
