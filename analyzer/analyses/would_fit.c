/* SPDX-License-Identifier: MIT */
/*
 * Which changes would have let a run of PyTorch fit: each is replayed (analyzer/fit/proof.h).  It asks about one process: the one
 * that ran out of memory first, or whose peak came near the size of its device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/fit/proof.h"
#include "analyzer/fit/window.h"
#include "analyzer/report/operator.h"
#include "analyzer/report/place.h"
#include "analyzer/report/report.h"
#include "analyzer/report/roles.h"
#include "analyzer/source/source.h"

#define SECONDS 2.0

/* The error of PyTorch's that ended the process; NULL: none. */
static const struct sl_oom *last_error(const struct sl_process *process)
{
	const struct sl_oom *last = NULL;

	for (const struct sl_oom *oom = NULL; (oom = sl_model_next_failure(process->model, oom));)
		last = !sl_oom_made_to_fail(oom) && oom->scope == SL_SCOPE_VRAM && oom->torch.used ? oom : last;
	return last;
}

/* The device, or --limit, that a process of PyTorch's nearly fills; -1: none. */
static int near_full(const struct sl_process *process)
{
	uint64_t limit = sl_header_limit(process->model->header), total;

	for (int d = 0; d < SL_DEVICES_MAX; d++) {
		const struct sl_device_state *state = process->model->devices[d + 1];

		total = state && state->total_bytes < limit ? state->total_bytes : limit;
		if (state && state->torch.used && total && total != SL_UNKNOWN &&
		    (double)(state->known_peak + state->context_bytes + state->module_bytes) > SL_NEARLY_ALL * (double)total)
			return d;
	}
	return -1;
}

/* True: its handler of errors is to change, and no step. */
static bool keeps_a_try(const struct sl_process *process)
{
	for (size_t i = 0; i < process->model->ooms.count; i++)
		if (process->accounts[i].held_by_try)
			return true;
	return false;
}

static struct sl_process *choose(struct sl_report *report, int *device)
{
	struct sl_process *found = NULL;
	uint64_t first = UINT64_MAX, at;

	*device = -1;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_oom *oom = keeps_a_try(&report->processes[i]) ? NULL : last_error(&report->processes[i]);

		at = oom ? sl_process_unix(&report->processes[i], oom->time_ns) : UINT64_MAX;
		if (at >= first)
			continue;
		first = at;
		found = &report->processes[i];
		*device = oom->device;
	}
	for (unsigned i = 0; i < report->process_count && !found; i++)
		if (!keeps_a_try(&report->processes[i]) && (*device = near_full(&report->processes[i])) >= 0)
			found = &report->processes[i];
	return found;
}

/* The source runs the line without autograd already; of the line that failed its callers may, too. */
static bool is_without_grad(struct sl_process *process, const struct sl_change_line *at)
{
	const struct sl_oom *oom = last_error(process);
	struct sl_stack_frame frames[SL_STACK_MAX], line = {.python = true, .own = true, .file = at->file, .line = at->line};
	unsigned count = oom ? sl_process_own(process, frames, oom->stack) : 0, i = 0;

	while (i < count && !sl_place_same(&frames[i], &line))
		i++;
	return process->report->source && at->file &&
	       sl_source_without_grad(process->report->source, process->trace, i < count ? &frames[i] : &line,
				      i < count ? count - i : 1) == SL_SOURCE_YES;
}

/* True: the line may copy to the card what its caller uses there.  Its source decides, else its role, else what ran. */
static bool may_copy(struct sl_process *process, const struct sl_change_line *at)
{
	struct sl_stack_frame frames[SL_STACK_MAX], line = {.python = true, .own = true, .file = at->file, .line = at->line};
	enum sl_source_answer copies = sl_source_copies(process->report->source, process->trace, &line);
	const struct sl_operator *ran = NULL;

	if (copies != SL_SOURCE_UNKNOWN)
		return copies == SL_SOURCE_YES;
	for (size_t i = 0; at->file && !ran && i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];

		if (!sl_process_own(process, frames, site->stack) || !sl_place_same(&frames[0], &line))
			continue;
		if (sl_roles_of(process, site) == SL_ROLE_ACTIVATIONS)
			return false;
		ran = sl_operator_of(process, site->stack);
	}
	return !ran || !strcmp(ran->name, "_to_copy");
}

/* Where autograd is off, there is nothing to detach from. */
static void add(struct sl_changes *changes, struct sl_change change, struct sl_process *process)
{
	bool offload = !strcmp(change.kind, "offload_results"), drop = !strcmp(change.kind, "free_leak");

	if ((offload || drop || !strcmp(change.kind, "no_grad")) && is_without_grad(process, &change.at)) {
		if (!(offload || drop) || sl_change_of_kind(changes, "offload_results"))
			return;
		change.kind = "offload_results";
	}
	change.moved = !strcmp(change.kind, "offload_results") && may_copy(process, &change.at);
	changes->tried[changes->count++] = change;
}

static void keep(struct sl_changes *changes, const struct sl_fit_proof *proof, struct sl_process *process)
{
	if (proof->why_not) {
		changes->left_out = SL_LEFT_OUT_ALL;
		changes->why_not = proof->why_not;
		return;
	}
	changes->capacity = proof->capacity;
	changes->failed = proof->program.failed != SL_FIT_GAP;
	for (unsigned i = 0; i < proof->count; i++)
		add(changes, proof->changes[i], process);
	memcpy(changes->curve, proof->curve, sizeof(changes->curve));
	changes->failed_at = proof->failed_at;
	changes->untried = proof->untried;
	changes->left_out = proof->untried			 ? SL_LEFT_OUT_KINDS
			    : process->report->process_count > 1 ? SL_LEFT_OUT_PROCESSES
								 : SL_LEFT_OUT_NOTHING;
}

static bool zeroes_late(struct sl_process *process)
{
	const struct sl_oom *oom = last_error(process);
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned at;

	return oom && process->report->source &&
	       sl_source_zeroes_late(process->report->source, process->trace, frames, sl_process_own(process, frames, oom->stack),
				     &at);
}

static void run(struct sl_report *report)
{
	int device;
	struct sl_process *process = report->options.until_unix_ns ? NULL : choose(report, &device);
	struct sl_fit_process fit;
	struct sl_fit_proof proof;

	if (!process || !process->trace || report->images.images[process->image].summary)
		return;
	process->changes = sl_memory_must(calloc(1, sizeof(*process->changes)));
	process->changes->device = device;
	process->changes->failed = last_error(process);
	if (process->model->events > SL_FIT_EVENTS_MAX) {
		process->changes->left_out = SL_LEFT_OUT_LARGE;
		return;
	}
	sl_fit_record(&fit, process->trace, "", false);
	for (unsigned i = 0; i < fit.count; i++) {
		if (fit.recordings[i].device != device)
			continue;
		fit.recordings[i].zeroes_late = zeroes_late(process);
		sl_fit_proof_make(&proof, &fit.recordings[i], NULL, SECONDS);
		keep(process->changes, &proof, process);
		sl_fit_proof_free(&proof);
	}
	sl_fit_forget(&fit);
}

const struct sl_analysis sl_analysis_would_fit = {.name = "would_fit", .run = run, .of_windows = true};
