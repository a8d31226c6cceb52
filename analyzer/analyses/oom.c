/* SPDX-License-Identifier: MIT */
/*
 * Out of memory: the holders of the device at that moment, and why the request did not fit, in plain words.  Causes are tried in
 * order: one that explains the refusal by itself comes before one that only made it more likely.
 * (Longer than other files: one error, from who held the device to its finding.)
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/analyses/demand.h"
#include "analyzer/analyses/oom_causes.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/fit/proof.h"
#include "analyzer/model/counts/ledger.h"
#include "analyzer/model/counts/sample_wait.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/report/bundle_path.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/operator.h"
#include "analyzer/report/place.h"
#include "analyzer/report/refuser.h"
#include "analyzer/report/report.h"
#include "analyzer/report/roles.h"

#define WENT_ON_MIN    16 /* least allocations of a place by which a program went on after an error */
#define REPLAY_SECONDS 1.0
#define ROOMY	       4 /* a device is not full of which more than one such part is free */

/* A device on which the process got nothing is matched only by its name. */
static const struct sl_shared_device *by_uuid(const struct sl_report *report, const struct sl_process *process, int ordinal)
{
	const struct sl_device *def = sl_defs_device(&process->trace->defs, ordinal);
	const char *host = process->trace->header.host;

	for (unsigned i = 0; def && def->uuid && host && i < report->device_count; i++)
		if (report->devices[i].uuid && !strcmp(report->devices[i].uuid, def->uuid) && report->devices[i].host &&
		    !strcmp(report->devices[i].host, host))
			return &report->devices[i];
	return NULL;
}

/*
 * A process that got no context does not know the device's name.  Then the device of its number is meant, if the host has
 * only one of that number.
 */
static const struct sl_shared_device *by_number(const struct sl_report *report, const struct sl_process *process, int ordinal)
{
	const struct sl_shared_device *found = NULL;
	const char *host = process->trace->header.host;

	for (unsigned i = 0; host && i < report->device_count; i++) {
		const struct sl_shared_device *one = &report->devices[i];

		if (one->device != ordinal || !one->uuid || !one->host || strcmp(one->host, host))
			continue;
		if (found)
			return NULL;
		found = one;
	}
	return found;
}

static const struct sl_shared_device *device_of(const struct sl_report *report, unsigned process, int ordinal)
{
	const struct sl_shared_device *device = sl_devices_shared(report, report->processes[process].model->devices[ordinal + 1]);

	if (device)
		return device;
	return sl_defs_device(&report->processes[process].trace->defs, ordinal)
		       ? by_uuid(report, &report->processes[process], ordinal)
		       : by_number(report, &report->processes[process], ordinal);
}

static void add_other(struct sl_account *account, int64_t pid, struct sl_process *recorded, const struct sl_device_state *state,
		      uint64_t bytes)
{
	unsigned at;

	for (at = 0; at < account->other_count && account->others[at].pid != pid; at++)
		;
	if (at == SL_OTHERS_MAX)
		return;
	if (at == account->other_count) {
		account->other_count++;
		account->others[at].pid = pid;
		account->others[at].bytes = bytes;
		account->others[at].rank = -1;
	}
	if (!recorded)
		return;
	account->others[at].bytes = bytes; /* at that time, not when the device was last sampled */
	account->others[at].process = recorded;
	account->others[at].state = state;
	account->others[at].rank = recorded->trace->header.rank;
	account->others[at].stray = recorded->trace->header.rank >= 0 && sl_devices_home(recorded) != state;
}

/* True: the process was recorded, and had ended by then, after the last sample of the device that lists it. */
static bool has_ended(const struct sl_report *report, const struct sl_shared_device *device, int64_t pid, uint64_t unix_ns)
{
	bool ended = false;

	for (unsigned i = 0; device && i < device->user_count; i++) {
		const struct sl_process *other = &report->processes[device->users[i].process];

		if (other->trace->header.pid != pid)
			continue;
		if (sl_process_lived(other, unix_ns))
			return false;
		ended = true;
	}
	return ended;
}

/*
 * What another process took at that time beside the sizes of its blocks: its code, and the rounding of its blocks.  Both are
 * known for its hidden peak; rounding is scaled down to what the process held of its peak.
 */
static uint64_t beside_its_blocks(const struct sl_process *other, const struct sl_device_state *state, uint64_t held_bytes,
				  uint64_t then_ns)
{
	double at_peak = state->line ? sl_timeline_at(&other->model->timeline, state->line, state->hidden_peak_ns) : 0;
	uint64_t bytes =
		at_peak > 0 ? sl_stats_bytes((double)state->hidden_peak_rounded * fmin(1, (double)held_bytes / at_peak)) : 0;

	for (size_t i = 0; i < state->parts.count; i++)
		if (state->parts.item[i].what == SL_HIDDEN_CODE && state->parts.item[i].first.time_ns <= then_ns)
			bytes += state->parts.item[i].peak_bytes;
	return bytes;
}

/* By the driver's own list; SL_UNKNOWN: it does not name the process. */
static uint64_t sampled_of(const struct sl_account *account, int64_t pid)
{
	for (unsigned i = 0; i < account->other_count; i++)
		if (account->others[i].pid == pid)
			return account->others[i].bytes;
	return SL_UNKNOWN;
}

/* Returns what blocks of recorded processes held. */
static uint64_t take_others(const struct sl_report *report, unsigned process, const struct sl_oom *oom, struct sl_account *account)
{
	const struct sl_shared_device *device = device_of(report, process, oom->device);
	uint64_t unix_ns = sl_process_unix(&report->processes[process], oom->time_ns), blocks = 0;

	for (unsigned i = 0; i < oom->neighbour_count; i++)
		if (!has_ended(report, device, oom->neighbours[i].pid, unix_ns))
			add_other(account, oom->neighbours[i].pid, NULL, NULL, oom->neighbours[i].bytes);
	for (unsigned i = 0; device && i < device->user_count; i++) {
		struct sl_process *other = &report->processes[device->users[i].process];
		const struct sl_header *header = &other->trace->header;
		const struct sl_device_state *state = device->users[i].state;
		uint64_t bytes = 0, overhead, sampled, then_ns;

		if (device->users[i].process == process || !sl_process_lived(other, unix_ns))
			continue;
		then_ns = unix_ns - header->started_ns + header->monotonic_ns;
		if (state->line)
			bytes = sl_timeline_max(&other->model->timeline, state->line, then_ns, then_ns);
		blocks += bytes;
		overhead = beside_its_blocks(other, state, bytes, then_ns);
		if (state->context_made.time_ns <= then_ns) { /* 0: no call that made it was seen */
			/* a context that no sample showed is taken to cost what this process's does */
			uint64_t context =
				state->context_made.time_ns && !state->parts.count ? oom->context_bytes : state->context_bytes;

			bytes += context;
			account->contexts += context != 0;
			account->context_each = context > account->context_each ? context : account->context_each;
		}
		/* `overhead` is an estimate: a sample of the process limits it */
		sampled = sampled_of(account, header->pid);
		if (sampled != SL_UNKNOWN && sampled < bytes + overhead)
			overhead = sampled > bytes ? sampled - bytes : 0;
		bytes += overhead;
		if (bytes)
			add_other(account, header->pid, other, state, bytes);
	}
	return blocks;
}

/* Free memory by the samples of other processes of the run: without a context this process could not ask. */
static void take_room(const struct sl_report *report, unsigned process, struct sl_oom *oom)
{
	const struct sl_shared_device *device = device_of(report, process, oom->device);
	uint64_t unix_ns = sl_process_unix(&report->processes[process], oom->time_ns), used = 0;

	for (unsigned i = 0; device && i < device->user_count; i++) {
		const struct sl_process *other = &report->processes[device->users[i].process];
		const struct sl_device_state *state = device->users[i].state;
		uint64_t then_ns = unix_ns - other->trace->header.started_ns + other->trace->header.monotonic_ns;

		if (device->users[i].process == process || !state->used_line || !sl_process_lived(other, unix_ns))
			continue;
		used = sl_stats_bytes(fmax((double)used, sl_timeline_at(&other->model->timeline, state->used_line, then_ns)));
	}
	if (!used || device->total_bytes == SL_UNKNOWN || used > device->total_bytes)
		return;
	oom->total_bytes = device->total_bytes;
	oom->free_bytes = device->total_bytes - used;
}

/*
 * HIP is not asked after an error, since an answer would clear the error that the program may read (hipGetLastError).  What was
 * free follows from the last sample: what it found beside the blocks is taken to be there still.
 */
static void take_sampled(const struct sl_model *model, struct sl_oom *oom, struct sl_account *account)
{
	const struct sl_device_state *state = model->devices[oom->device + 1];
	uint64_t used;

	if (!state || !state->hidden_line || state->total_bytes == SL_UNKNOWN)
		return;
	used = oom->live_bytes + sl_stats_bytes(sl_timeline_at(&model->timeline, state->hidden_line, oom->time_ns));
	oom->total_bytes = state->total_bytes;
	oom->free_bytes = used < oom->total_bytes ? oom->total_bytes - used : 0;
	account->about = true;
}

/* Bytes in use on the device that this process did not ask for; SL_UNKNOWN. */
static uint64_t count_unrequested(const struct sl_oom *oom)
{
	uint64_t used;

	if (oom->scope == SL_SCOPE_HOST || oom->total_bytes == SL_UNKNOWN || oom->free_bytes > oom->total_bytes)
		return SL_UNKNOWN;
	used = oom->total_bytes - oom->free_bytes;
	return used > oom->live_bytes ? used - oom->live_bytes : 0;
}

/*
 * Free memory is read after the error.  If it and the blocks of recorded processes are more than the device has, a process gave
 * memory back in between, as one does that failed at the same instant: there was no room for the request.
 */
static void take_back(struct sl_oom *oom, uint64_t blocks)
{
	if (oom->scope == SL_SCOPE_VRAM && oom->total_bytes != SL_UNKNOWN && oom->free_bytes != SL_UNKNOWN &&
	    oom->free_bytes >= sl_units_taken(oom) && oom->free_bytes + oom->live_bytes + blocks > oom->total_bytes)
		oom->free_bytes = 0;
}

/*
 * Divides what is in use beside this process's blocks.  Its context and code are known and come first.  What others held was
 * sampled a moment before, so they get no more than the rest.
 */
static void take_hidden(const struct sl_model *model, const struct sl_oom *oom, struct sl_account *account)
{
	const struct sl_device_state *state = oom->device >= 0 ? model->devices[oom->device + 1] : NULL;
	uint64_t rest = count_unrequested(oom), aside = state ? sl_device_state_aside(state, oom->time_ns) : 0;

	if (rest == SL_UNKNOWN)
		return;
	if (oom->context_bytes) {
		account->context = oom->context_bytes < rest ? oom->context_bytes : rest;
		account->context_bound = state ? sl_sample_wait_context_bound(state) : NULL;
		rest -= account->context;
	}
	if (oom->module_bytes) {
		account->modules = oom->module_bytes < rest ? oom->module_bytes : rest;
		rest -= account->modules;
	}
	account->others_bytes = 0;
	for (unsigned i = 0; i < account->other_count; i++)
		account->others_bytes += account->others[i].bytes;
	account->others_bytes = account->others_bytes < rest ? account->others_bytes : rest;
	rest -= account->others_bytes;
	account->rounding = oom->rounded < rest ? oom->rounded : rest;
	account->hidden = rest;
	rest -= account->rounding;
	account->aside = aside < rest ? aside : rest;
	account->unexplained = rest - account->aside;
	account->hidden +=
		(account->context != SL_UNKNOWN ? account->context : 0) + (account->modules != SL_UNKNOWN ? account->modules : 0);
}

/*
 * Another process is the cause where it leaves too little room, but not if it holds little and this one leaks a lot.  What others
 * hold is counted with their contexts, and so is what this one holds.
 */
static bool is_neighbours(struct sl_process *process, const struct sl_oom *oom, const struct sl_account *account)
{
	uint64_t own = oom->live_bytes + oom->context_bytes + oom->module_bytes + account->rounding;

	if (!oom->asked_bytes || oom->free_bytes + account->others_bytes < sl_units_taken(oom))
		return false;
	return account->others_bytes >= own || sl_oom_causes_leaked(process, oom) < sl_oom_causes_missing(oom);
}

/* One more context, in a process that keeps several: they take more than its blocks, or nobody measured them. */
static bool is_of_contexts(const struct sl_oom *oom, const struct sl_account *account)
{
	return oom->scope == SL_SCOPE_CONTEXT && oom->contexts > 1 && oom->device >= 0 &&
	       (account->context == SL_UNKNOWN || account->context >= oom->live_bytes);
}

/* A process's requests of PyTorch's allocator, read where an error first asks for them. */
struct requests {
	struct sl_fit_process fit;
	bool read;
};

/* NULL: a summary has none, and a process with very many events is not read once more. */
static struct sl_fit_process *requests_of(struct requests *requests, struct sl_process *process)
{
	if (process->report->images.images[process->image].summary || process->model->events > SL_FIT_EVENTS_MAX)
		return NULL;
	if (!requests->read)
		sl_fit_record(&requests->fit, process->trace, "", false);
	requests->read = true;
	return &requests->fit;
}

/* True: what is held is not above what was held before. */
static bool held_before(const struct sl_oom *oom)
{
	const struct sl_surge *rise = &oom->device_rise;

	return rise->count && rise->bytes <= rise->highest + oom->asked_bytes;
}

/*
 * True: with segments that can grow, the replay fits this request and the rest of its step into the same device.  Where that rest
 * is not known, it fits the request, and an earlier rise, which passed, was as high.
 * *replayed: false where the replay does not reproduce the recording, as of a pool with rules of its own
 * (tests/diagnosis/seen/nectar.c).  There the unused pieces together are larger than the request, and such a rise passed.
 */
static bool fits_unfragmented(struct sl_fit_process *fit, const struct sl_oom *oom, bool *replayed)
{
	bool fits = false, unlike = false;

	for (unsigned i = 0; fit && i < fit->count; i++) {
		struct sl_fit_recording until;
		struct sl_fit_proof proof;

		if (fit->recordings[i].device != oom->device || !sl_fit_until(&until, &fit->recordings[i], oom->time_ns))
			continue;
		sl_fit_proof_make(&proof, &until, "settings:expandable_segments", REPLAY_SECONDS);
		unlike |= proof.why_not != NULL;
		if (proof.count)
			fits |= proof.changes[0].passes == SL_PASSES ||
				(proof.changes[0].passes == SL_PASSES_REQUEST && proof.program.rest == SL_FIT_REST_NONE &&
				 held_before(oom));
		sl_fit_proof_free(&proof);
	}
	*replayed = fits;
	return fits || (unlike && held_before(oom));
}

/* What leaks held more than lay unused: without fragments the program fails some requests later. */
static bool leaks_more(struct sl_process *process, const struct sl_oom *oom, uint64_t unused)
{
	const struct sl_leak_line *leak = sl_oom_causes_leak(process, oom);

	return leak && leak->verdict == SL_KEPT_GROWING && sl_oom_causes_leaked(process, oom) >= unused;
}

static enum sl_cause cause_of(struct sl_process *process, const struct sl_oom *oom, struct sl_account *account, bool demand,
			      struct sl_fit_process *fit)
{
	if (sl_oom_made_to_fail(oom))
		return SL_CAUSE_INJECTED;
	if (oom->scope == SL_SCOPE_HOST)
		return SL_CAUSE_HOST;
	if (oom->scope == SL_SCOPE_ADDRESS_SPACE)
		return SL_CAUSE_ADDRESS_SPACE;
	if (is_of_contexts(oom, account))
		return SL_CAUSE_FULL;
	account->own_limit = sl_refuser_own_limit(process, oom);
	if (account->own_limit)
		return SL_CAUSE_FULL;
	if (oom->free_bytes == SL_UNKNOWN)
		return SL_CAUSE_UNKNOWN;
	if (oom->total_bytes == SL_UNKNOWN && /* a snapshot tells no card's size; all that is known would not do */
	    (oom->free_bytes >= oom->asked_bytes || oom->asked_bytes > oom->free_bytes + oom->live_bytes))
		return SL_CAUSE_UNKNOWN;
	if (oom->of_framework)
		return oom->asked_bytes > oom->total_bytes ? SL_CAUSE_TOO_LARGE : SL_CAUSE_FULL;
	if (oom->scope == SL_SCOPE_CONTEXT)
		return SL_CAUSE_FULL;
	if (oom->asked_bytes > oom->total_bytes)
		return SL_CAUSE_TOO_LARGE;
	if (account->cached != SL_UNKNOWN && account->cached >= oom->asked_bytes && account->largest_cached != SL_UNKNOWN &&
	    account->largest_cached < oom->asked_bytes && !demand && !leaks_more(process, oom, account->cached) &&
	    fits_unfragmented(fit, oom, &account->replayed))
		return SL_CAUSE_FRAGMENTED;
	if (oom->asked_bytes && oom->free_bytes >= sl_units_taken(oom))
		return SL_CAUSE_DRIVER;
	if (is_neighbours(process, oom, account))
		return SL_CAUSE_NEIGHBOUR;
	return SL_CAUSE_FULL;
}

/* An unknown cause is not reported as a finding. */
static const enum sl_found kinds[] = {
	[SL_CAUSE_INJECTED] = SL_FOUND_oom_injected,
	[SL_CAUSE_HOST] = SL_FOUND_oom_host,
	[SL_CAUSE_ADDRESS_SPACE] = SL_FOUND_oom_address_space,
	[SL_CAUSE_FRAGMENTED] = SL_FOUND_oom_fragmented,
	[SL_CAUSE_DRIVER] = SL_FOUND_oom_driver,
	[SL_CAUSE_NEIGHBOUR] = SL_FOUND_oom_neighbour,
	[SL_CAUSE_TOO_LARGE] = SL_FOUND_oom_too_large,
	[SL_CAUSE_FULL] = SL_FOUND_oom_full,
};

/* Which story led to the error, if the trace tells.  demand: what the framework's user was about to need. */
static void tell(struct sl_process *process, const struct sl_oom *oom, struct sl_account *account, const struct sl_story *demand)
{
	struct sl_story story = *demand;
	bool found;

	if (account->cause == SL_CAUSE_NEIGHBOUR || account->cause == SL_CAUSE_HOST)
		found = sl_oom_causes_grew(&story, process, oom);
	else if (oom->of_framework || account->own_limit ||
		 (account->cause != SL_CAUSE_FULL && account->cause != SL_CAUSE_TOO_LARGE))
		found = false;
	else if (oom->asked_bytes)
		found = (account->cause == SL_CAUSE_FULL && story.kind) || sl_oom_causes_tell(&story, process, oom, account);
	else
		found = account->cause == SL_CAUSE_FULL && !is_of_contexts(oom, account) &&
			sl_oom_causes_grew(&story, process, oom);
	if (found)
		account->story = story;
}

static void account(struct sl_report *report, unsigned process, size_t index, struct requests *requests)
{
	struct sl_process *p = &report->processes[process];
	struct sl_oom *oom = &p->model->ooms.item[index];
	struct sl_account *account = &p->accounts[index];
	struct sl_story demand = {0};
	struct sl_fit_process *fit = NULL;

	if (oom->torch.used && oom->torch.reserved_bytes >= oom->torch.allocated_bytes) {
		account->cached = oom->torch.reserved_bytes - oom->torch.allocated_bytes;
		account->largest_cached = oom->largest_cached;
	}
	if (oom->device >= 0 && oom->free_bytes == SL_UNKNOWN && oom->scope == SL_SCOPE_CONTEXT)
		take_room(report, process, oom);
	else if (oom->device >= 0 && oom->free_bytes == SL_UNKNOWN && oom->scope == SL_SCOPE_VRAM && oom->asked_bytes)
		take_sampled(p->model, oom, account);
	if (oom->device >= 0 && !oom->of_framework && !oom->injected) /* a limit counts this process only */
		take_back(oom, take_others(report, process, oom, account));
	if (!oom->of_framework)
		take_hidden(p->model, oom, account);
	if (account->held_by_try) {
		sl_oom_causes_retry(&demand, p, oom);
	} else if (oom->torch.used && !sl_oom_got_over(oom) && !account->told_later) {
		fit = requests_of(requests, p);
		sl_demand_tell(&demand, p, oom, fit);
	}
	account->cause = cause_of(p, oom, account, demand.kind, fit);
	account->ran = sl_operator_of(p, oom->stack);
	if (!account->told_later || !oom->torch.used) /* an earlier attempt of PyTorch's has the cause of the last */
		tell(p, oom, account, &demand);
	if (oom->recovered == 1 || account->told_later || account->cause == SL_CAUSE_UNKNOWN)
		return;
	sl_report_find(report, &(struct sl_finding){.kind = kinds[account->cause],
						    .severity = sl_oom_made_to_fail(oom) || oom->less_bytes ? "info" : "critical",
						    .process = (int)process,
						    .device = oom->device,
						    .unix_ns = sl_process_unix(p, oom->time_ns),
						    .bytes = oom->asked_bytes,
						    .stack = oom->stack,
						    .oom = oom});
}

/* Only the newest errors of the run keep their bundles. */
static void retain(struct sl_report *report)
{
	unsigned limit = report->options.oom_max_dumps ? report->options.oom_max_dumps : SL_OOM_DUMPS;
	size_t count;
	uint64_t *times = sl_bundle_times(report, &count);

	if (count > limit) /* of equal ones all go */
		report->bundles_from_ns = times[count - limit] + (times[count - limit - 1] == times[count - limit]);
	free(times);
}

/* True: the program's own lines are the same, from the place to the outermost: what failed is within one call of the program. */
static bool is_one_call(struct sl_process *process, const struct sl_oom *one, const struct sl_oom *next)
{
	struct sl_chain a, b;

	if (!one->stack.python || !next->stack.python || one->stack.python == next->stack.python)
		return one->stack.python && one->stack.python == next->stack.python;
	sl_place_take(&a, process, one->stack);
	sl_place_take(&b, process, next->stack);
	return a.count && a.count == b.count && sl_place_shared(&a, &b) == a.count;
}

/*
 * The same line asked again, and its memory was not given back.  An algorithm search of cuDNN asks by several native ways
 * from one line of the program, and PyTorch gives unused segments back between the attempts.
 */
static bool is_another_attempt(struct sl_process *process, const struct sl_oom *one, const struct sl_oom *next)
{
	bool one_call;

	if (one->thread != next->thread || one->device != next->device || one->scope != next->scope || one->recovered == 1 ||
	    sl_oom_made_to_fail(one))
		return false;
	one_call = one->torch.used && is_one_call(process, one, next);
	return (one_call || sl_tracks_alike(process->model->defs, one->stack, next->stack)) &&
	       (one_call ? one->torch.allocated_bytes <= next->torch.allocated_bytes : one->live_bytes <= next->live_bytes);
}

/* Several attempts at a request are reported by the last one: memory freed between them is no longer held. */
static void join_group(struct sl_process *process, uint32_t *last)
{
	const struct sl_oom *ooms = process->model->ooms.item;

	for (size_t k = 0; k < process->model->ooms.count; k++) {
		if (ooms[k].group != k)
			process->accounts[last[ooms[k].group]].told_later = true;
		last[ooms[k].group] = (uint32_t)k;
	}
}

/*
 * Repeated failures at one place are one error, described by the last attempt, from which the program did not recover.  So are a
 * failed try and one by its handler.
 */
static void join_attempts(struct sl_process *process)
{
	const struct sl_oom *ooms = process->model->ooms.item;
	struct sl_story story;
	size_t total = process->model->ooms.count, after = total;
	uint32_t *last = sl_memory_must(calloc(total + 1, sizeof(*last)));

	join_group(process, last);
	free(last);
	for (size_t k = total; k--;) {
		if (process->accounts[k].told_later)
			continue;
		process->accounts[k].held_by_try = !sl_oom_got_over(&ooms[k]) && sl_oom_causes_retry(&story, process, &ooms[k]);
		if (after < total && (process->accounts[after].told_later || !sl_oom_got_over(&ooms[after])))
			process->accounts[k].told_later =
				process->accounts[after].held_by_try || is_another_attempt(process, &ooms[k], &ooms[after]);
		after = k;
	}
	for (size_t k = 0, first = 0, count = 0; k < total; k++) {
		first = count ? first : k;
		process->accounts[k].first_attempt = (unsigned)first;
		process->accounts[k].attempts_before = (unsigned)count;
		count = process->accounts[k].told_later ? count + 1 : 0;
	}
}

/* How long other places went on to allocate after the error. */
static uint64_t went_on_ns(const struct sl_process *process, const struct sl_oom *oom)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];
		uint64_t from = track->first_ns > oom->time_ns ? track->first_ns : oom->time_ns;

		if (track->births >= WENT_ON_MIN && track->last_ns > from && track->last_ns - from > longest &&
		    !sl_stack_same(track->stack, oom->stack))
			longest = track->last_ns - from;
	}
	return longest;
}

/* True: the growth until the device was full is a leak, so that going on is luck. */
static bool is_of_leak(struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_leak_line *line = sl_oom_causes_leak(process, oom);

	return line && line->verdict == SL_KEPT_GROWING &&
	       (double)sl_oom_causes_leaked(process, oom) >= SL_THIRD * (double)oom->live_bytes;
}

/*
 * Errors that a program which ended well did without: other places went on for a good part of its run, or it had done
 * without before at that place, or with memory of another kind. Times of a dry run are not the card's: there any part will do.
 */
static void do_without(struct sl_process *process)
{
	const struct sl_model *model = process->model;
	double run = model->recording.has_times ? SL_LITTLE * (double)(model->last_call_ns - model->first_ns) : 1;

	if (sl_trace_ended(process->trace) != SL_ENDED_COMPLETED)
		return;
	for (size_t k = 0; k < model->ooms.count; k++) {
		struct sl_oom *oom = &model->ooms.item[k];

		if (!sl_oom_got_over(oom) && !sl_oom_made_to_fail(oom) && oom->scope == SL_SCOPE_VRAM &&
		    (double)went_on_ns(process, oom) >= run && !is_of_leak(process, oom)) {
			oom->less_bytes = oom->asked_bytes;
			oom->elsewhere = true;
		}
	}
	for (size_t k = 0; k < model->ooms.count; k++)
		for (size_t i = 0; i < model->ooms.count && !sl_oom_got_over(&model->ooms.item[k]); i++)
			if (model->ooms.item[i].less_bytes && model->ooms.item[i].elsewhere &&
			    sl_stack_same(model->ooms.item[i].stack, model->ooms.item[k].stack))
				model->ooms.item[k].less_bytes = model->ooms.item[k].asked_bytes;
}

/* True: PyTorch tried an algorithm of cuDNN, and catches the error to try the next one (aten/src/ATen/native/cudnn/Conv_v*.cpp). */
static bool is_of_search(struct sl_process *process, const struct sl_oom *oom)
{
	return sl_process_calls(process, oom->stack, "at::native::run_conv_plan") ||
	       sl_process_calls(process, oom->stack, "at::native::AlgoIterator");
}

/* Marks errors of a search that found another algorithm: the thread went on to another call, or got what it asked for next. */
static void go_on_searching(struct sl_process *process)
{
	const struct sl_model *model = process->model;

	for (size_t k = model->ooms.count; k--;) {
		struct sl_oom *oom = &model->ooms.item[k];
		const struct sl_thread_state *thread = oom->thread < model->threads.count ? model->threads.item[oom->thread] : NULL;
		uint64_t next_ns = thread ? thread->last_block_ns : 0;

		if (sl_oom_got_over(oom) || sl_oom_made_to_fail(oom) || !is_of_search(process, oom))
			continue;
		for (size_t i = k + 1; i < model->ooms.count; i++) {
			const struct sl_oom *next = &model->ooms.item[i];

			if (next->thread != oom->thread)
				continue;
			next_ns = next->stack.python == oom->stack.python && !sl_oom_got_over(next) ? 0 : next->time_ns;
			break;
		}
		if (next_ns > oom->time_ns)
			oom->recovered = 1;
	}
}

/* The allocation that --inject-oom should have made fail but did not, in a run that has ended; NULL: none. */
static const char *uninjected(const struct sl_report *report)
{
	const char *asked = NULL;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		const struct sl_header *header = &process->trace->header;

		if (process->trace->status == SL_STATUS_RUNNING)
			return NULL;
		for (size_t k = 0; k < process->model->ooms.count; k++)
			if (process->model->ooms.item[k].injected)
				return NULL;
		if (*sl_header_setting(header, "inject_oom"))
			asked = sl_header_setting(header, "inject_oom");
	}
	return asked;
}

/* Weights that do not fit are no leak, though all of them stayed. */
static void spare_weights(struct sl_report *report, unsigned process)
{
	struct sl_process *p = &report->processes[process];

	for (size_t i = 0; i < p->leaks_by_line.count; i++)
		if (p->leaks_by_line.item[i].verdict == SL_KEPT_GROWING &&
		    sl_roles_makes_weights(p, p->leaks_by_line.item[i].track->stack))
			p->leaks_by_line.item[i].verdict = SL_KEPT_UNCLEAR;
	for (size_t i = report->findings.count; i--;) {
		struct sl_finding *finding = &report->findings.item[i];

		if (finding->process != (int)process || strcmp(sl_found_family(finding->kind), "leak") != 0 ||
		    !sl_roles_makes_weights(p, finding->stack))
			continue;
		free(finding->text);
		free(finding->advice);
		memmove(finding, finding + 1, (--report->findings.count - i) * sizeof(*finding));
	}
}

static void run(struct sl_report *report)
{
	const char *asked = uninjected(report);

	if (asked)
		sl_report_warn(report, "--inject-oom %s failed no call: no process made that many", asked);
	retain(report);
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		struct requests requests = {.read = false};

		if (!process->model->ooms.count) /* saves 3 kB in each of thousands of ranks */
			continue;
		process->accounts = sl_memory_must(calloc(process->model->ooms.count, sizeof(*process->accounts)));
		for (size_t k = 0; k < process->model->ooms.count; k++)
			process->accounts[k] = (struct sl_account){SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN,
								   SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN};
		go_on_searching(process);
		do_without(process);
		join_attempts(process);
		for (size_t k = 0; k < process->model->ooms.count; k++)
			account(report, i, k, &requests);
		for (size_t k = 0; k < process->model->ooms.count; k++)
			if (process->accounts[k].story.kind == SL_STORY_WEIGHTS)
				spare_weights(report, i);
		if (requests.read)
			sl_fit_forget(&requests.fit);
	}
}

const struct sl_analysis sl_analysis_accounts = {.name = "accounts", .run = run, .of_windows = true};
