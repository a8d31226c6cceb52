/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"

#include "analyzer/base/memory.h"
#include "analyzer/fit/peak.h"
#include "analyzer/fit/window.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"

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
	uint64_t *terms = parts->terms, known, asked = 0, unused = 0;
	const char *key;

	for (size_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		uint64_t bytes = site->device == state->device ? sl_model_site_at_peak(model, site) : 0;

		if (!bytes || !sl_owners_shows(process, site))
			continue;
		sl_measures_put(lines, SL_MEASURE_STACK, process, site, sl_model_library(model, site), bytes, &key);
		asked += bytes;
	}
	sl_measures_sort(lines);
	sl_model_unused(&state->torch_at_peak, &unused);
	terms[SL_BECAUSE_REQUESTS] = asked;
	terms[SL_BECAUSE_UNUSED] = unused;
	terms[SL_BECAUSE_OUTSIDE] = state->context_bytes + state->module_bytes;
	known = state->known_peak > asked + unused ? state->known_peak : asked + unused;
	terms[SL_BECAUSE_LIBRARIES] = known - asked - unused;
	parts->bytes = known + terms[SL_BECAUSE_OUTSIDE];
}

static void take_replayed(struct sl_because_parts *parts, struct sl_process *process, const struct sl_fit_peak *peak)
{
	struct sl_measures *lines = begin_lines(parts);
	const char *key;

	for (size_t i = 0; i < peak->held.count; i++) {
		const struct sl_fit_held *held = &peak->held.item[i];
		const struct sl_site site = {.stack.python = held->python, .kind = SL_KIND_block};

		sl_measures_put(lines, SL_MEASURE_STACK, process, &site,
				held->python		   ? "PyTorch"
				: process->model->snapshot ? "made before the window"
							   : "without a Python stack",
				held->bytes, &key);
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
	run->likened = sl_fit_peak(&peak, recording, &like, why, sizeof(why));
	if (run->likened)
		take_replayed(&run->like, process, &peak);
	sl_fit_peak_free(&peak);
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
		run->replays = sl_fit_peak(&peak, recording, NULL, run->why, sizeof(run->why));
		run->settings = sl_memory_copy(recording->text);
		run->release = recording->release;
		if (run->replays) {
			take_replayed(&run->own, process, &peak);
			take_like(run, process, recording, before);
		}
		sl_fit_peak_free(&peak);
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
