/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/answer.h"
#include "analyzer/fit/window.h"
#include "analyzer/gate/gate.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"

/* The moment at which a recording held most, taken apart by the replay: each byte of it is in one part. */

/* What one Python stack held of it, as it was asked for. */
struct sl_fit_held {
	uint64_t bytes;
	uint32_t python; /* 0: none, or made before a snapshot's window */
};

struct sl_fit_peak {
	uint64_t bytes;	    /* the sum of the parts */
	uint64_t requested; /* the sum of `stacks` */
	SL_VECTOR(struct sl_fit_held) stacks;
	uint64_t rounding; /* blocks beyond what was asked for */
	uint64_t waiting;  /* freed blocks that other streams may still use */
	struct sl_fit_unused unused;
	uint64_t libraries; /* asked of the driver by others than PyTorch's allocator */
	uint64_t outside;   /* context, code, other processes */
};

/* What lives after op `at`, by id. */
static void find_held(struct sl_fit_peak *peak, const struct sl_fit_recording *r, size_t at)
{
	struct sl_fit_held *by_id = sl_memory_must(calloc(r->ids + 1, sizeof(*by_id)));

	for (size_t i = 0; i < r->seeds.count; i++)
		if (r->seeds.item[i].active)
			by_id[r->seeds.item[i].id].bytes = r->seeds.item[i].requested;
	for (size_t i = 0; i <= at; i++) {
		const struct sl_fit_op *op = &r->ops.item[i];

		if (op->verb == SL_FIT_ALLOC)
			by_id[op->id] = (struct sl_fit_held){op->bytes, op->python};
		else if (op->verb == SL_FIT_FREE || op->verb == SL_FIT_FREE_LATER)
			by_id[op->id].bytes = 0;
	}
	for (uint32_t id = 0; id < r->ids; id++) {
		if (by_id[id].bytes)
			*SL_PUSH(&peak->stacks) = by_id[id];
		peak->requested += by_id[id].bytes;
	}
	free(by_id);
}

/* Two runs: the first finds the moment, the second ends there. */
static bool take(struct sl_fit_peak *peak, const struct sl_fit_recording *recording, struct sl_fit_case *how)
{
	struct sl_fit_recording until = *recording;
	struct sl_fit_top top = {0};
	struct sl_fit_outcome o;
	const struct sl_fit_unused *unused = &top.unused;

	how->top = &top;
	sl_fit_run(&o, &until, how);
	/* a recording that ran out of memory as it did fails at its last request */
	if (o.stats.broken || !top.bytes || (o.verdict != SL_FIT_FITS && !(o.verdict == SL_FIT_FAILS && recording->ooms)))
		return false;
	until.ops.count = top.at + 1;
	top = (struct sl_fit_top){0};
	sl_fit_run(&o, &until, how);
	find_held(peak, recording, top.at);
	peak->bytes = top.bytes;
	peak->rounding = top.stats.allocated - peak->requested;
	peak->unused = *unused;
	peak->waiting = top.stats.reserved - top.stats.allocated - unused->fragments - unused->cache - unused->pools;
	peak->outside = top.outside;
	peak->libraries = top.others - top.outside;
	return top.stats.allocated >= peak->requested && peak->waiting < UINT64_MAX / 2;
}

/*
 * like NULL: as it was recorded; else its requests under the settings and release of another one. False: the replay does not
 * reproduce the recording (why: in words), or the requests find no room there. The caller frees the peak either way.
 */
static bool find_peak(struct sl_fit_peak *peak, const struct sl_fit_recording *r, const struct sl_fit_choice *like, char *why,
		      size_t size)
{
	const struct sl_fit_question question = {.setting_count = 1, .unscanned = true, .ties = SL_FIT_GIVEN};
	struct sl_fit_case how = {.capacity = UINT64_MAX, .as_recorded = !like};
	struct sl_fit_subject subject;
	struct sl_fit_recording other;
	bool found;

	*peak = (struct sl_fit_peak){0};
	*why = 0;
	sl_fit_ask(&subject, r, &question);
	found = subject.answers != NULL;
	if (!found)
		snprintf(why, size, "%s", sl_fit_why(&subject, why, size));
	sl_fit_subject_free(&subject);
	if (!found)
		return false;
	how.ties = subject.check.ties;
	if (!like)
		return take(peak, r, &how);
	other = r->seeds.count ? sl_fit_from_nothing(r, SL_FIT_BY_ADDRESS) : *r;
	other.release = like->release;
	how.settings = &like->settings;
	how.ties = r->seeds.count ? SL_FIT_REUSED : sl_fit_way(&other, SL_FIT_GIVEN);
	how.capacity = r->ooms || r->window || !r->device_total ? UINT64_MAX : r->device_total;
	found = take(peak, &other, &how);
	if (r->seeds.count) {
		free(other.ops.item);
		free(other.reserved.item);
		free(other.times.item);
	}
	return found;
}

static void free_peak(struct sl_fit_peak *peak)
{
	SL_DROP(&peak->stacks);
}

const char *const sl_because_names[SL_BECAUSE_TERMS] = {
	[SL_BECAUSE_SETTINGS] = "settings",   [SL_BECAUSE_REQUESTS] = "requests", [SL_BECAUSE_ROUNDING] = "rounding",
	[SL_BECAUSE_FRAGMENTS] = "fragments", [SL_BECAUSE_CACHE] = "cache",	  [SL_BECAUSE_POOLS] = "pools",
	[SL_BECAUSE_WAITING] = "waiting",     [SL_BECAUSE_UNUSED] = "unused",	  [SL_BECAUSE_LIBRARIES] = "libraries",
	[SL_BECAUSE_OUTSIDE] = "outside",
};

static const char *const words[SL_BECAUSE_TERMS] = {
	[SL_BECAUSE_SETTINGS] = "other release or settings",
	[SL_BECAUSE_REQUESTS] = "requests",
	[SL_BECAUSE_ROUNDING] = "rounding",
	[SL_BECAUSE_FRAGMENTS] = "fragments",
	[SL_BECAUSE_CACHE] = "cache",
	[SL_BECAUSE_POOLS] = "private pools of graphs, unused",
	[SL_BECAUSE_WAITING] = "freed, waiting for other streams",
	[SL_BECAUSE_UNUSED] = "kept unused by the allocator",
	[SL_BECAUSE_LIBRARIES] = "other libraries",
	[SL_BECAUSE_OUTSIDE] = "context and code, other processes",
};

static const char *setting(const char *text)
{
	return text && *text ? text : "(none)";
}

const char *sl_because_text(char *out, size_t size, const struct sl_because *because, enum sl_because_term term)
{
	const struct sl_because_run *a = because->before, *b = because->after;

	if (term != SL_BECAUSE_SETTINGS)
		return words[term];
	snprintf(out, size, "%s   PyTorch %u.%u %s -> %u.%u %s", words[term], a->release / 100, a->release % 100,
		 setting(a->settings), b->release / 100, b->release % 100, setting(b->settings));
	return out;
}

static struct sl_measures *begin_lines(struct sl_because_parts *parts)
{
	struct sl_measures *lines = SL_PUSH(&parts->lines.runs);

	*lines = (struct sl_measures){0};
	return lines;
}

/* Shown places and what the allocators kept unused, as the report has them. */
static void take_recorded(struct sl_because_parts *parts, struct sl_process *process, const struct sl_device_state *state)
{
	struct sl_measures *lines = begin_lines(parts);
	const struct sl_model *model = process->model;
	uint64_t *terms = parts->terms, peak_bytes, asked = 0, unused = 0, bytes;
	const char *key;

	for (const struct sl_site *site = NULL; (site = sl_owners_next(process, state->device, SL_WEIGH_PEAK, site, &bytes));) {
		sl_measures_put(lines, SL_MEASURE_STACK, process, site, sl_model_library(model, site), bytes, &key);
		asked += bytes;
	}
	sl_measures_sort(lines);
	sl_model_unused(&state->torch_at_peak, &unused);
	terms[SL_BECAUSE_REQUESTS] = asked;
	terms[SL_BECAUSE_UNUSED] = unused;
	terms[SL_BECAUSE_OUTSIDE] = state->context_bytes + state->module_bytes;
	peak_bytes = state->known_peak > asked + unused ? state->known_peak : asked + unused;
	terms[SL_BECAUSE_LIBRARIES] = peak_bytes - asked - unused;
	parts->bytes = peak_bytes + terms[SL_BECAUSE_OUTSIDE];
}

static void take_replayed(struct sl_because_parts *parts, struct sl_process *process, const struct sl_fit_peak *peak)
{
	struct sl_measures *lines = begin_lines(parts);
	const char *key;

	for (size_t i = 0; i < peak->stacks.count; i++) {
		const struct sl_fit_held *stack = &peak->stacks.item[i];
		const struct sl_site site = {.stack.python = stack->python, .kind = SL_KIND_block};

		sl_measures_put(lines, SL_MEASURE_STACK, process, &site,
				stack->python				     ? "PyTorch"
				: !process->model->recording.follows_process ? "made before the window"
									     : "without a Python stack",
				stack->bytes, &key);
	}
	sl_measures_sort(lines);
	parts->bytes = peak->bytes;
	parts->terms[SL_BECAUSE_REQUESTS] = peak->requested;
	parts->terms[SL_BECAUSE_ROUNDING] = peak->rounding;
	parts->terms[SL_BECAUSE_FRAGMENTS] = peak->unused.fragments;
	parts->terms[SL_BECAUSE_CACHE] = peak->unused.cache;
	parts->terms[SL_BECAUSE_POOLS] = peak->unused.pools;
	parts->terms[SL_BECAUSE_WAITING] = peak->waiting;
	parts->terms[SL_BECAUSE_LIBRARIES] = peak->libraries;
	parts->terms[SL_BECAUSE_OUTSIDE] = peak->outside;
}

/* The same requests under what the run before had, if that differs. */
static void take_like(struct sl_because_run *run, struct sl_process *process, const struct sl_fit_recording *recording,
		      const struct sl_because_run *before)
{
	struct sl_fit_choice like = {.settings = sl_fit_defaults};
	struct sl_fit_peak peak;
	const char *at;
	char why[2];

	if (!before || !before->replays || (before->release == run->release && !strcmp(before->settings, run->settings)))
		return;
	like.release = before->release;
	if (sl_fit_settings_parse(&like.settings, before->settings, like.release, &at))
		return;
	run->likened = find_peak(&peak, recording, &like, why, sizeof(why));
	if (run->likened)
		take_replayed(&run->like, process, &peak);
	free_peak(&peak);
}

static void replay(struct sl_because_run *run, struct sl_process *process, int device, const struct sl_because_run *before)
{
	struct sl_fit_process fit;
	struct sl_fit_peak peak;

	snprintf(run->why, sizeof(run->why), "PyTorch's allocator reported no block there");
	sl_fit_record(&fit, process->trace, run->who, true);
	for (unsigned i = 0; i < fit.count; i++) {
		const struct sl_fit_recording *recording = &fit.recordings[i];

		if (recording->device != device)
			continue;
		run->replays = find_peak(&peak, recording, NULL, run->why, sizeof(run->why));
		run->settings = sl_memory_copy(recording->text);
		run->release = recording->release;
		if (run->replays) {
			take_replayed(&run->own, process, &peak);
			take_like(run, process, recording, before);
		}
		free_peak(&peak);
	}
	sl_fit_forget(&fit);
}

void sl_because_take(struct sl_because_run *run, struct sl_report *report, const struct sl_because_run *before)
{
	struct sl_process *process = sl_devices_fullest_process(report);
	const struct sl_device_state *state = process ? sl_devices_home(process) : NULL;

	*run = (struct sl_because_run){0};
	if (!state)
		return;
	run->who = sl_memory_print("%s device %d", process->session_id, state->device);
	take_recorded(&run->recorded, process, state);
	if (report->images.images[process->image].summary || !process->trace)
		snprintf(run->why, sizeof(run->why), "a summary has no events");
	else
		replay(run, process, state->device, before);
}

static void free_parts(struct sl_because_parts *parts)
{
	for (size_t i = 0; i < parts->lines.runs.count; i++)
		sl_measures_free(&parts->lines.runs.item[i]);
	SL_DROP(&parts->lines.runs);
}

void sl_because_run_free(struct sl_because_run *run)
{
	free_parts(&run->recorded);
	free_parts(&run->own);
	free_parts(&run->like);
	free(run->who);
	free(run->settings);
}

bool sl_because(struct sl_because *because, const struct sl_because_run *before, const struct sl_because_run *after)
{
	*because = (struct sl_because){.before = before, .after = after};
	if (!before->who || !after->who)
		return false;
	because->replayed = before->replays && after->replays;
	because->was = because->replayed ? &before->own : &before->recorded;
	because->is = !because->replayed ? &after->recorded : after->likened ? &after->like : &after->own;
	for (unsigned t = 0; t < SL_BECAUSE_TERMS; t++)
		because->terms[t] = (double)because->is->terms[t] - (double)because->was->terms[t];
	if (because->replayed)
		because->terms[SL_BECAUSE_SETTINGS] = (double)after->own.bytes - (double)because->is->bytes;
	sl_diff(&because->lines, &because->was->lines, &because->is->lines);
	return true;
}

void sl_because_free(struct sl_because *because)
{
	sl_differences_free(&because->lines);
}
