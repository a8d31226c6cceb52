/* SPDX-License-Identifier: MIT */
#include "analyzer/report/leak_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/model/state/units.h"
#include "analyzer/report/devices.h"
#include "analyzer/symbols/symbols.h"

const char *sl_leak_words_noun(unsigned kind, bool many)
{
	static const struct noun {
		const char *one, *many;
	} memory[SL_KIND_COUNT] = {
		[SL_KIND_pool] = {"block of a memory pool", "blocks of a memory pool"},
		[SL_KIND_managed] = {"managed block", "managed blocks"},
		[SL_KIND_vmm] = {"physical block (VMM)", "physical blocks (VMM)"},
		[SL_KIND_array] = {"array", "arrays"},
		[SL_KIND_graph] = {"block of graphs", "blocks of graphs"},
		[SL_KIND_imported] = {"imported block (IPC)", "imported blocks (IPC)"},
		[SL_KIND_host_pinned] = {"block of pinned host memory", "blocks of pinned host memory"},
		[SL_KIND_host_registered] = {"registered range of host memory", "registered ranges of host memory"},
		[SL_KIND_block] = {"tensor", "tensors"},
	};
	static const struct noun block = {"block", "blocks"}, objects[] = {
								      {"context", "contexts"},
								      {"module", "modules"},
								      {"memory pool", "memory pools"},
								      {"graph", "graphs"},
								      {"graph executable", "graph executables"},
								      {"stream", "streams"},
								      {"event", "events"},
								      {"retained reference", "retained references"},
								      {"import of external memory", "imports of external memory"},
							      };
	const struct noun *noun = kind >= SL_OBJECT_CONTEXT ? &objects[kind - SL_OBJECT_CONTEXT] : &memory[kind];

	noun = noun->one ? noun : &block;
	return many ? noun->many : noun->one;
}

/* True: a pool reported its blocks itself, and called them something. */
static bool is_told(const struct sl_process *process, const struct sl_track *track)
{
	const struct sl_site *site = track->kind == SL_KIND_block ? sl_model_site_of(process->model, track, NULL) : NULL;
	const struct sl_hook *hook = site ? sl_header_hook(process->model->header, site->api) : NULL;

	return hook && !strcmp(hook->plain, "stormlog_block");
}

/* How many births come at once, if always as many; else 1. */
static double at_once(const struct sl_leak_line *line)
{
	return line->bursts >= SL_SEVERAL && line->births % line->bursts == 0 ? (double)(line->births / line->bursts) : 1;
}

/* Steps of the program from the place's first birth to its last; 0: it allocated mostly outside of them, or none are known. */
static double steps_meanwhile(const struct sl_process *process, const struct sl_track *track)
{
	const struct sl_label *label = sl_model_steps(process->model);
	uint64_t from, to;

	from = label->first_ns > track->first_ns ? label->first_ns : track->first_ns;
	to = label->last_ns < track->last_ns ? label->last_ns : track->last_ns;
	if (to < from || 2 * (to - from) < track->last_ns - track->first_ns)
		return 0;
	return (double)(sl_model_step_at(label, track->last_ns) - sl_model_step_at(label, track->first_ns));
}

/* How many threads allocated there; those whose numbers are 65 536 apart count as one. */
static unsigned threads_at(const struct sl_model *model, const struct sl_track *track)
{
	uint8_t *seen = sl_memory_must(calloc(UINT16_MAX + 1, 1));
	unsigned count = 0;

	for (const struct sl_site *site = NULL; (site = sl_model_site_of(model, track, site));)
		if (!seen[(uint16_t)site->thread])
			seen[(uint16_t)site->thread] = 1, count++;
	free(seen);
	return count;
}

/* Steps from one time that the place allocates, `once` blocks each time, to the next; 0: not known. */
static double steps_between(const struct sl_process *process, const struct sl_leak_line *line, double once)
{
	bool by_label = process->iterations.by_label, all = by_label || line->rounds == process->iterations.count;
	/* Steps from the first birth to the last are one less than births; where they are those of the whole run all are counted */
	double ends = by_label || !all ? 1 : 0;
	double steps = by_label ? steps_meanwhile(process, line->track)
				: (double)(line->rounds ? line->rounds : process->iterations.count);
	double births = (double)line->births, gaps = births / once - ends;
	double whole = round(steps / gaps), each = steps > 0 ? round(births / (steps + ends)) : 0;
	/* A thread's first or last birth may lie outside the steps that are counted, or the first or last step have no birth */
	double slack = threads_at(process->model, line->track);

	if (!all && line->rounds && line->rounds < SL_SEVERAL)
		return 0;
	if (whole > 0 && fabs(steps - whole * gaps) <= whole * slack)
		return by_label || once == 1 || whole != once ? whole : 0; /* else its own blocks are the rounds */
	if (each > 1 && fabs(births - each * (steps + ends)) <= each * slack)
		return once / each;
	return steps > 0 ? (steps + ends * (slack - 1)) / gaps : 0;
}

static bool is_near_whole(double number)
{
	return fabs(number - round(number)) <= SL_TRACE * number;
}

/* The pace has no steps if some of them have more births than others, as where an evaluation runs between them. */
struct sl_leak_pace sl_leak_words_pace(const struct sl_process *process, const struct sl_leak_line *line)
{
	double once = at_once(line), every = steps_between(process, line, once);
	double span = (double)(line->track->last_ns - line->track->first_ns);
	double rounded = every > 0 && every < 1 ? is_near_whole(1 / every) : is_near_whole(every) ? round(every) : every;
	double whole = line->blocks && once == 1 && line->verdict != SL_KEPT_COLLECTED ? line->amount / (double)line->blocks : 0;
	struct sl_leak_pace pace = {.amount = line->per_birth * once * (rounded > 0 ? rounded / every : 1)};

	/* a rate that is finer than a block says how often one is kept; of every second block the rate is about half of one */
	if (pace.amount > 0 && pace.amount < (line->count_only ? 1 - SL_TRACE : SL_HALF + SL_LITTLE) * whole) {
		span *= whole / pace.amount;
		rounded *= whole / pace.amount;
		pace.amount = whole;
	} else if (line->rounds && line->rounds < SL_SEVERAL && line->births == line->track->births &&
		   span < SL_QUARTER * (double)(process->model->now_ns - process->model->first_ns)) {
		pace.amount = line->verdict == SL_KEPT_COLLECTED ? line->per_birth * (double)line->births : line->amount;
		pace.at_once = true;
		pace.ns = span;
		return pace;
	}
	pace.blocks = once > 1 && line->blocks == line->births && !line->count_only && rounded != 1 ? once : 0;
	pace.steps = rounded;
	pace.whole = is_near_whole(rounded);
	pace.ns = line->per_second > 0 ? pace.amount / line->per_second * 1e9 : span / ((double)line->births / once - 1);
	return pace;
}

uint64_t sl_leak_words_since(const struct sl_leak_line *line)
{
	return line->since_ns ? line->since_ns : line->track->first_ns;
}

void sl_leak_words_label(char *out, size_t size, const struct sl_process *process, const struct sl_leak_line *line)
{
	const char *label = line->track->last_label ? sl_defs_text(process->model->defs, line->track->last_label) : NULL;

	out[0] = 0;
	if (label && !(process->iterations.by_label && !strcmp(label, process->iterations.name)))
		snprintf(out, size, ", %s %s", is_told(process, line->track) ? "called" : "in", sl_label_words(label));
}

/* Bytes that a kept byte takes on the device, which rounds blocks up: by the mean block, and at most what all were rounded. */
static double taken_of(const struct sl_device_state *state, const struct sl_leak_line *line)
{
	uint64_t rounding;

	if (!state || line->track->kind != SL_KIND_device || !line->blocks || !line->bytes)
		return 1;
	rounding = line->blocks * sl_units_rounding(line->bytes / line->blocks);
	rounding = rounding < state->hidden_peak_rounded ? rounding : state->hidden_peak_rounded;
	return 1 + (double)rounding / (double)line->bytes;
}

/* Bytes of the device per second; managed memory moves out of it, and imported memory is its exporter's. */
static double rate_of(const struct sl_device_state *state, const struct sl_leak_line *line)
{
	if (line->track->kind == SL_KIND_managed || line->track->kind == SL_KIND_imported)
		return 0;
	if (!line->count_only)
		return line->per_second * taken_of(state, line);
	return line->amount > 0 && line->bytes != SL_UNKNOWN ? line->per_second * (double)line->bytes / line->amount : 0;
}

/* True: the place takes memory of its device, at a known rate. */
static bool fills_device(const struct sl_process *process, const struct sl_leak_line *line)
{
	int device = line->track->device;

	return device >= 0 && process->model->devices[device + 1] && rate_of(process->model->devices[device + 1], line) > 0;
}

/* The most that was in use: the samples' peak, or, since they miss what is freed soon, the calls' peak above what is hidden. */
static uint64_t most_used(const struct sl_device_state *state)
{
	uint64_t with_calls = state->known_peak + state->hidden_last_bytes + sl_device_state_others(state);

	if (state->used_peak_bytes == SL_UNKNOWN || state->hidden_last_bytes == SL_UNKNOWN || with_calls > state->total_bytes)
		return state->used_peak_bytes;
	return with_calls > state->used_peak_bytes ? with_calls : state->used_peak_bytes;
}

/* Bytes per second by which other processes of the run fill the device, of those that lived until this one ended, or about. */
static double rate_of_others(const struct sl_process *process, const struct sl_device_state *state)
{
	const struct sl_report *report = process->report;
	double rate = 0, lived = (double)(process->ended_unix_ns - process->started_unix_ns);
	const struct sl_shared_device *shared = report ? sl_devices_shared(report, state) : NULL;

	for (unsigned i = 0; shared && i < shared->user_count; i++) {
		const struct sl_process *other = &report->processes[shared->users[i].process];
		const struct sl_device_state *there = shared->users[i].state;

		if (other == process || !sl_process_lived(other, process->ended_unix_ns - (uint64_t)(SL_TRACE * lived)))
			continue;
		for (size_t k = 0; k < other->leaks_by_line.count && other->leaks_by_line.item[k].verdict == SL_KEPT_GROWING; k++)
			if (other->leaks_by_line.item[k].track->device == there->device)
				rate += rate_of(there, &other->leaks_by_line.item[k]);
	}
	return rate;
}

bool sl_leak_words_in_turns(const struct sl_process *process)
{
	const struct sl_report *report = process->report;

	for (unsigned i = 0; report && i < report->process_count; i++) {
		const struct sl_process *other = &report->processes[i];

		if ((other->ended_unix_ns <= process->started_unix_ns || process->ended_unix_ns <= other->started_unix_ns) &&
		    other->leaks_by_line.count && other->leaks_by_line.item[0].verdict == SL_KEPT_GROWING &&
		    !strcmp(sl_stacks_program(&other->trace->header), sl_stacks_program(&process->trace->header)))
			return true;
	}
	return false;
}

double sl_leak_words_full_in(const struct sl_process *process, int device, unsigned *places)
{
	const struct sl_device_state *state = device >= 0 ? process->model->devices[device + 1] : NULL;
	double rate = 0, grown = 0, left, seen;
	uint64_t used, total;

	*places = 0;
	for (size_t i = 0; i < process->leaks_by_line.count && process->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_leak_line *line = &process->leaks_by_line.item[i];

		if (line->track->device != device || line->ended_ns || !fills_device(process, line))
			continue;
		++*places;
		rate += rate_of(state, line);
		grown += rate_of(state, line) * (double)(process->model->now_ns - sl_leak_words_since(line)) / 1e9;
	}
	seen = rate > 0 ? grown / rate : 0; /* the mean time, weighted by the rates */
	if (state && rate > 0)
		rate += rate_of_others(process, state);
	used = state ? most_used(state) : SL_UNKNOWN;
	total = state ? state->total_bytes : SL_UNKNOWN;
	if (state && sl_header_limit(process->model->header) < total) { /* of which others of the device take nothing */
		total = sl_header_limit(process->model->header);
		used = state->known_peak + state->context_bytes + state->module_bytes;
	}
	if (!process->model->recording.has_times || used == SL_UNKNOWN || total == SL_UNKNOWN || rate <= 0 ||
	    sl_leak_words_in_turns(process))
		return -1;
	left = used < total ? (double)(total - used) / rate : 0;
	return process->trace->status == SL_STATUS_RUNNING && left >= seen ? -1 : left;
}

void sl_leak_words_add(struct sl_leak_line *to, const struct sl_leak_line *one)
{
	to->per_birth =
		(to->per_birth * (double)to->births + one->per_birth * (double)one->births) / (double)(to->births + one->births);
	to->amount += one->amount;
	to->births += one->births;
	to->bursts += one->bursts;
	to->blocks += one->blocks;
	to->bytes = to->bytes == SL_UNKNOWN ? one->bytes : one->bytes == SL_UNKNOWN ? to->bytes : to->bytes + one->bytes;
	to->per_second += one->per_second;
	to->per_second_error = sqrt(to->per_second_error * to->per_second_error + one->per_second_error * one->per_second_error);
	to->confidence = fmax(to->confidence, one->confidence);
	to->since_ns = one->since_ns < to->since_ns ? one->since_ns : to->since_ns;
	to->left_blocks += one->left_blocks;
	to->left_bytes += one->left_bytes;
}

/* Blocks of a site that are kept; where the program's end freed them, those of the peak. */
static uint64_t kept_of(const struct sl_model *model, const struct sl_leak_line *line, const struct sl_site *site)
{
	return line->left_blocks ? site->live_blocks : sl_model_blocks_at_peak(model, site);
}

/* What all threads that allocate there keep, and the one that keeps most. */
struct keeper {
	uint64_t live, births, its_live, its_births;
	uint32_t thread;
};

static struct keeper keeper_of(const struct sl_model *model, const struct sl_leak_line *line)
{
	const struct sl_site *site = NULL;
	struct keeper keeper = {0};
	uint64_t max_live = 0;

	while ((site = sl_model_site_of(model, line->track, site))) {
		uint64_t live = kept_of(model, line, site);

		keeper.thread = live > max_live ? site->thread : keeper.thread;
		max_live = live > max_live ? live : max_live;
	}
	while ((site = sl_model_site_of(model, line->track, site))) {
		bool its = site->thread == keeper.thread;

		keeper.live += kept_of(model, line, site);
		keeper.births += site->total_blocks;
		keeper.its_live += its ? kept_of(model, line, site) : 0;
		keeper.its_births += its ? site->total_blocks : 0;
	}
	return keeper;
}

const char *sl_leak_words_thread(char *out, size_t size, const struct sl_process *process, const struct sl_leak_line *line)
{
	struct keeper keeper = keeper_of(process->model, line);
	const struct sl_thread *thread = sl_defs_thread(process->model->defs, keeper.thread);

	out[0] = 0;
	if (thread && keeper.its_live && keeper.its_live * 10 >= keeper.live * 9 && keeper.its_births * 2 < keeper.births)
		snprintf(out, size, ", %s by thread %lld, which allocated %llu of the %llu",
			 keeper.its_live == keeper.live ? "all" : "nearly all", (long long)thread->tid,
			 (unsigned long long)keeper.its_births, (unsigned long long)keeper.births);
	return out;
}

const char *sl_leak_words_cut(const struct sl_process *process, const struct sl_leak_line *line)
{
	const struct sl_python_stack *lines = sl_defs_python(process->model->defs, line->track->stack.python);
	const struct sl_native_stack *stack = sl_defs_native(process->model->defs, line->track->stack.native);

	return (lines ? lines->truncated : stack && stack->truncated)
		       ? "; its stacks are cut, and --stack-depth 256 may show who called"
		       : "";
}
