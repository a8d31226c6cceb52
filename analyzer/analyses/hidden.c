/* SPDX-License-Identifier: MIT */
/* Memory of a device that no recorded call asked for, by name: see sl_hidden_split. */
#include "analyzer/analyses/hidden.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/counts/sample_wait.h"
#include "analyzer/report/devices.h"

static struct sl_hidden_name *find(struct sl_hidden *hidden, const struct sl_hidden_name *like)
{
	struct sl_arena arena = {0};
	uintptr_t *at = sl_map_at(&hidden->index, sl_arena_printf(&arena, "%s %lld %s", like->what, (long long)like->pid,
								  like->library ? like->library : "\n"));

	sl_arena_free(&arena);
	if (*at)
		return &hidden->item[*at - 1];
	SL_ROOM(hidden);
	hidden->item[hidden->count] = *like;
	hidden->item[hidden->count].bytes = 0;
	*at = ++hidden->count;
	return &hidden->item[*at - 1];
}

static void set_first(struct sl_hidden_name *name, const struct sl_process *process, const struct sl_instant *first)
{
	name->first_unix_ns = sl_process_unix(process, first->time_ns);
	name->label = sl_defs_text(process->model->defs, first->label);
	name->step = first->step;
}

static uint64_t named_of(const struct sl_hidden *hidden)
{
	uint64_t named = 0;

	for (size_t i = 0; i < hidden->count; i++)
		named += hidden->item[i].bytes;
	return named;
}

/*
 * Adds contexts and code of processes, except of those that had left the device before the peak.  `ended`: adds those whose
 * recording had ended by then, as far as there is room, because they may have left before the sample was taken.
 */
static void add_parts(const struct sl_report *report, const struct sl_shared_device *device, struct sl_hidden *hidden, bool ended)
{
	uint64_t peak_ns = device->hidden_peak_unix_ns;

	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_process *p = &report->processes[device->users[i].process];
		const struct sl_device_state *state = device->users[i].state;

		if (ended != (p->ended_unix_ns < peak_ns) || (ended && device->users[i].left_ns < peak_ns))
			continue;
		for (size_t k = 0; k < state->parts.count; k++) {
			const struct sl_hidden_part *part = &state->parts.item[k];
			bool code = part->what == SL_HIDDEN_CODE;
			struct sl_hidden_name like = {.what = code ? "code" : "context",
						      .pid = p->trace->header.pid,
						      .library = part->library},
					      *name;

			if (!part->peak_bytes || sl_process_unix(p, part->first.time_ns) > peak_ns ||
			    (ended && named_of(hidden) + part->peak_bytes > device->hidden_peak_bytes))
				continue;
			name = find(hidden, &like);
			if (!name->bytes)
				set_first(name, p, &part->first);
			name->bytes += part->peak_bytes;
			if (state->context_sampled == k + 1 && (!name->bound || !state->context_steady))
				name->bound = sl_sample_wait_context_bound(state);
		}
	}
}

/* The most that each process without a recording held.  Two ranks that see the same one: it counts once. */
static void take_strangers(const struct sl_report *report, const struct sl_shared_device *device, struct sl_hidden *strangers)
{
	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_process *p = &report->processes[device->users[i].process];
		const struct sl_device_state *state = device->users[i].state;

		for (size_t k = 0; sl_devices_knows_others(state) && k < state->neighbours.count; k++) {
			const struct sl_neighbour *one = &state->neighbours.item[k];
			struct sl_hidden_name like = {.what = "process", .pid = one->pid}, *name;

			if (!one->peak_bytes || sl_devices_recorded(report, device->host, one->pid))
				continue;
			name = find(strangers, &like);
			if (!name->bytes || sl_process_unix(p, one->first.time_ns) < name->first_unix_ns)
				set_first(name, p, &one->first);
			if (one->peak_bytes > name->bytes)
				name->bytes = one->peak_bytes;
		}
	}
}

static int by_bytes(const void *a, const void *b)
{
	const struct sl_hidden_name *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: strcmp(x->what, y->what);
}

/* What limits had contexts set aside by the peak. */
static uint64_t set_aside(const struct sl_report *report, const struct sl_shared_device *device)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_header *header = &report->processes[device->users[i].process].trace->header;

		bytes += sl_device_state_aside(device->users[i].state,
					       device->hidden_peak_unix_ns - header->started_ns + header->monotonic_ns);
	}
	return bytes;
}

void sl_hidden_split(const struct sl_report *report, const struct sl_shared_device *device, struct sl_hidden *hidden)
{
	uint64_t named;

	*hidden = (struct sl_hidden){0};
	if (device->hidden_peak_bytes == SL_UNKNOWN)
		return;
	add_parts(report, device, hidden, false);
	if (device->figure == SL_FIGURE_DEVICE)
		add_parts(report, device, hidden, true);
	named = named_of(hidden);
	if (hidden->count)
		qsort(hidden->item, hidden->count, sizeof(*hidden->item), by_bytes);
	if (named < device->hidden_peak_bytes) {
		const struct sl_hidden_name rest = {.what = "unexplained", .step = SL_UNKNOWN};
		const struct sl_hidden_name rounding = {.what = "rounding", .step = SL_UNKNOWN};
		const struct sl_hidden_name limit = {.what = "limit", .step = SL_UNKNOWN};
		uint64_t left = device->hidden_peak_bytes - named, rounded = sl_devices_rounding(report, device);
		uint64_t aside = set_aside(report, device);

		aside = aside < left ? aside : left;
		left -= aside;
		if (aside)
			find(hidden, &limit)->bytes = aside;
		rounded = rounded < left ? rounded : left;
		if (rounded)
			find(hidden, &rounding)->bytes = rounded;
		if (rounded < left)
			find(hidden, &rest)->bytes = left - rounded;
	}
}

void sl_hidden_free(struct sl_hidden *hidden)
{
	free(hidden->item);
	sl_map_free(&hidden->index);
}

const struct sl_track *sl_hidden_most(const struct sl_process *process, int device, enum sl_object object)
{
	const struct sl_track *largest = NULL;

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];
		bool more = !largest || (object == SL_OBJECT_MODULE ? track->born_bytes > largest->born_bytes
								    : track->most_blocks > largest->most_blocks);

		if (track->kind == object && track->device == device && more)
			largest = track;
	}
	return largest;
}

/* count: contexts. */
static void find_place(struct sl_report *report, const struct sl_shared_device *device, unsigned index, struct sl_stack stack,
		       uint64_t bytes, enum sl_hidden_by by, unsigned count)
{
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_hidden_place,
						    .severity = "info",
						    .process = (int)index,
						    .device = device->device,
						    .bytes = bytes ? bytes : SL_UNKNOWN,
						    .stack = stack,
						    .by = by,
						    .count = count});
}

/* Limits what a place loaded to the code that the process had at the peak: the rest had been unloaded. */
static uint64_t code_at_peak(const struct sl_device_state *state, uint64_t loaded)
{
	uint64_t code_bytes = 0;

	for (size_t i = 0; i < state->parts.count; i++)
		code_bytes += state->parts.item[i].what == SL_HIDDEN_CODE ? state->parts.item[i].peak_bytes : 0;
	return loaded < code_bytes ? loaded : code_bytes;
}

/* Findings: the lines that cause hidden memory, by loading code or making more than one context. */
static void find_places(struct sl_report *report, const struct sl_shared_device *device)
{
	for (unsigned i = 0; device->hidden_peak_bytes != SL_UNKNOWN && i < device->user_count; i++) {
		const struct sl_device_state *state = device->users[i].state;
		const struct sl_process *process = &report->processes[device->users[i].process];
		const struct sl_track *code = sl_hidden_most(process, state->device, SL_OBJECT_MODULE);
		uint64_t loaded = code ? code_at_peak(state, code->born_bytes) : 0;
		const struct sl_track *contexts = sl_hidden_most(process, state->device, SL_OBJECT_CONTEXT);
		const struct sl_row *pools = sl_model_row(process->model, SL_KIND_pool, state->device + 1);
		uint64_t pool_bytes = pools->frees ? pools->peak_bytes : 0;

		pool_bytes = pool_bytes < process->model->keeps_bytes ? pool_bytes : process->model->keeps_bytes;
		if (pool_bytes && pool_bytes <= device->hidden_peak_bytes &&
		    (double)pool_bytes >= SL_LITTLE * (double)device->hidden_peak_bytes)
			find_place(report, device, device->users[i].process, process->model->keeps_stack, pool_bytes,
				   SL_HIDDEN_BY_POOL, 0);
		if (loaded && (double)loaded >= SL_LITTLE * (double)device->hidden_peak_bytes)
			find_place(report, device, device->users[i].process, code->stack, loaded, SL_HIDDEN_BY_CODE, 0);
		if (contexts && contexts->most_blocks > 1)
			find_place(report, device, device->users[i].process, contexts->stack, contexts->born_bytes,
				   SL_HIDDEN_BY_CONTEXTS, (unsigned)contexts->most_blocks);
		if (state->limit_bytes && sl_device_state_limit(state) <= device->hidden_peak_bytes &&
		    (double)sl_device_state_limit(state) >= SL_LITTLE * (double)device->hidden_peak_bytes)
			find_place(report, device, device->users[i].process, state->limit_stack, 0, SL_HIDDEN_BY_LIMIT, 0);
	}
}

/* A neighbour is found with its pid as count. */
static void run(struct sl_report *report)
{
	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];
		struct sl_hidden strangers = {0};

		find_places(report, device);
		take_strangers(report, device, &strangers);
		for (size_t k = 0; k < strangers.count && device->total_bytes != SL_UNKNOWN; k++) {
			const struct sl_hidden_name *name = &strangers.item[k];

			if ((double)name->bytes < SL_TRACE * (double)device->total_bytes)
				continue;
			sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_device_neighbour,
								    .severity = "warning",
								    .process = -1,
								    .device = device->device,
								    .unix_ns = name->first_unix_ns,
								    .bytes = name->bytes,
								    .count = (unsigned)name->pid});
		}
		sl_hidden_free(&strangers);
	}
}

const struct sl_analysis sl_analysis_hidden = {.name = "hidden", .run = run};
