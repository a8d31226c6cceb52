/* SPDX-License-Identifier: MIT */
/* One process of report.json. */
#include <math.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/change.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/window_facts.h"

/* The results of Stormlog's leak heuristics for a process, in Stormlog's words, as a part of report.json. */

static void begin(struct sl_json *j, const char *analyzer, const char *type, const char *severity)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "analyzer", analyzer);
	sl_json_string(j, "type", type);
	sl_json_string(j, "severity", severity);
	sl_json_object(j, "evidence");
}

static void end(struct sl_json *j)
{
	sl_json_end(j);
	sl_json_end(j);
}

static void put_leaks(struct sl_json *j, const struct sl_leak_series *s)
{
	if (s->monotonic) {
		begin(j, "tensorflow", "monotonic_increase", s->monotonic_high ? "high" : "medium");
		sl_json_double(j, "rising_share", s->rising_share);
		end(j);
	}
	if (s->spikes) {
		begin(j, "tensorflow", "memory_spikes", "medium");
		sl_json_uint(j, "spike_count", s->spikes);
		sl_json_double(j, "spike_limit_mb", s->spike_limit);
		end(j);
	}
	if (s->no_cleanup) {
		begin(j, "tensorflow", "insufficient_cleanup", "medium");
		sl_json_double(j, "initial_avg", s->first_average);
		sl_json_double(j, "final_avg", s->last_average);
		end(j);
	}
	if (s->drift) {
		begin(j, "jax", "leak", s->drift_high ? "high" : "medium");
		sl_json_double(j, "slope", s->drift_slope);
		end(j);
	}
}

static void put_patterns(struct sl_json *j, const struct sl_leak_series *s)
{
	if (s->periodic) {
		begin(j, "tensorflow", "periodic_pattern", NULL);
		sl_json_double(j, "correlation", s->correlation);
		end(j);
	}
	if (s->stepped) {
		begin(j, "tensorflow", "step_pattern", NULL);
		sl_json_uint(j, "step_count", s->steps);
		end(j);
	}
	if (s->autocorrelated) {
		begin(j, "jax", "periodic", NULL);
		end(j);
	}
}

/* The member leak_heuristics of a process. */
static void put_heuristics(struct sl_json *j, const struct sl_process *process)
{
	sl_json_array(j, "leak_heuristics");
	for (size_t i = 0; i < process->heuristics.count; i++) {
		const struct sl_heuristics *found = &process->heuristics.item[i];

		sl_json_object(j, NULL);
		sl_json_int(j, "device", found->device);
		sl_json_uint(j, "samples", found->samples);
		sl_json_array(j, "patterns");
		put_leaks(j, &found->series);
		put_patterns(j, &found->series);
		sl_json_end(j);
		sl_json_end(j);
	}
	sl_json_end(j);
}

#define HOLDERS 64 /* variables that are listed, largest first */

static void put_in_flight(struct sl_json *j, const struct sl_process *process)
{
	const struct sl_model *model = process->model;

	sl_json_array(j, "in_flight");
	for (size_t i = 0; i < model->in_flight.count; i++) {
		const struct sl_in_flight *call = &model->in_flight.item[i];
		const struct sl_hook *hook = sl_header_hook(model->header, call->api);
		const struct sl_thread *thread = sl_defs_thread(model->defs, call->thread);

		sl_json_object(j, NULL);
		sl_json_string(j, "api", hook ? hook->plain : NULL);
		sl_json_uint(j, "bytes", call->bytes);
		sl_json_known(j, "thread", thread ? thread->tid : -1);
		sl_json_uint(j, "since_ns", sl_process_unix(process, call->since_ns));
		sl_json_end(j);
	}
	sl_json_end(j);
}

static void put_memory(struct sl_json *j, const struct sl_process *process)
{
	sl_json_array(j, "memory");
	for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++)
		for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
			const struct sl_row *row = sl_model_row(process->model, kind, d);

			if (!row->used || kind == SL_KIND_block)
				continue;
			sl_json_object(j, NULL);
			sl_json_string(j, "kind", sl_event_kinds[kind].name);
			sl_json_known(j, "device", (int)d - 1);
			sl_json_uint(j, "allocations", row->allocations);
			sl_json_uint(j, "frees", row->frees);
			sl_json_uint(j, "failed_allocations", row->failed_allocations);
			sl_json_uint(j, "implicit_frees", row->implicit_frees);
			sl_json_uint(j, "allocated_bytes", row->allocated_bytes);
			sl_json_uint(j, "live_blocks", row->live_blocks);
			sl_json_uint(j, "live_bytes", row->live_bytes);
			sl_json_uint(j, "peak_bytes", row->peak_bytes);
			sl_json_known_uint(j, "peak_at_ns",
					   row->peak_at_ns ? sl_process_unix(process, row->peak_at_ns) : SL_UNKNOWN);
			sl_json_end(j);
		}
	sl_json_end(j);
}

/* The calls, by row of the header; rows of one name (variants, two meanings) are summed in the first.  The caller frees them. */
static struct sl_api_stats *sum_apis(const struct sl_model *model)
{
	const struct sl_header *header = model->header;
	struct sl_api_stats *sums = sl_memory_must(calloc(header->hook_count + 1, sizeof(*sums)));
	struct sl_map rows = {0}; /* 1 + the first of the name */

	for (unsigned i = 0; i < header->hook_count; i++) {
		uintptr_t *row = sl_map_at(&rows, header->hooks[i].plain);
		struct sl_api_stats *sum = &sums[(*row = *row ? *row : i + 1) - 1];

		sum->calls += model->apis[i + 1].calls;
		sum->failures += model->apis[i + 1].failures;
		sum->bytes += model->apis[i + 1].bytes;
		sum->time_ns += model->apis[i + 1].time_ns;
	}
	sl_map_free(&rows);
	return sums;
}

static void put_apis(struct sl_json *j, const struct sl_model *model)
{
	const struct sl_header *header = model->header;
	struct sl_api_stats *sums = sum_apis(model);

	sl_json_array(j, "apis");
	for (unsigned i = 0; i < header->hook_count; i++) {
		if (!header->hooks[i].is_call || !sums[i].calls)
			continue;
		sl_json_object(j, NULL);
		sl_json_string(j, "api", header->hooks[i].plain);
		sl_json_uint(j, "calls", sums[i].calls);
		sl_json_uint(j, "failures", sums[i].failures);
		sl_json_uint(j, "bytes", sums[i].bytes);
		sl_json_uint(j, "time_ns", sums[i].time_ns);
		sl_json_end(j);
	}
	sl_json_end(j);
	free(sums);
}

static void put_libraries(struct sl_json *j, const struct sl_model *model)
{
	sl_json_array(j, "libraries");
	for (size_t i = 0; i < model->holders.count; i++) {
		const struct sl_holder *holder = &model->holders.item[i];

		if (!holder->peak_bytes)
			continue;
		sl_json_object(j, NULL);
		sl_json_string(j, "library", model->libraries.item[holder->library]);
		sl_json_known(j, "device", holder->device);
		sl_json_uint(j, "live_bytes", holder->live_bytes);
		sl_json_uint(j, "peak_bytes", holder->peak_bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* What the memory at each device's peak was used for; devices without known roles are left out. */
static void put_roles(struct sl_json *j, struct sl_process *process)
{
	uint64_t bytes[SL_ROLE_COUNT];

	sl_json_array(j, "roles");
	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++) {
		if (!process->model->devices[d] || !sl_roles_at_peak(process, process->model->devices[d], bytes))
			continue;
		for (int role = 0; role < SL_ROLE_COUNT; role++) {
			if (!bytes[role])
				continue;
			sl_json_object(j, NULL);
			sl_json_known(j, "device", (int)d - 1);
			sl_json_string(j, "role", sl_roles_name((enum sl_role)role));
			sl_json_uint(j, "bytes_at_peak", bytes[role]);
			sl_json_end(j);
		}
	}
	sl_json_end(j);
}

/* What a framework's pool had given out at its peak, by use. */
static void put_given(struct sl_json *j, const struct sl_given *given)
{
	if (!given->in_use) {
		sl_json_null(j, "given_out");
		return;
	}
	sl_json_object(j, "given_out");
	sl_json_uint(j, "in_use_bytes", given->in_use);
	sl_json_uint(j, "named_bytes", given->named);
	sl_json_uint(j, "rounding_bytes", given->rounded - given->named);
	sl_json_known_uint(j, "unnamed_bytes", sl_given_rest(given));
	sl_json_end(j);
}

static void put_torch(struct sl_json *j, const struct sl_model *model)
{
	sl_json_array(j, "pytorch");
	for (size_t d = 0; d < SL_COUNT(model->devices); d++) {
		const struct sl_torch *torch = model->devices[d] ? &model->devices[d]->torch : NULL;
		bool totals, peaks;

		if (!torch || !torch->used)
			continue;
		sl_json_object(j, NULL);
		sl_json_known(j, "device", (int)d - 1);
		sl_json_uint(j, "events", torch->events);
		totals = sl_torch_has_totals(torch);
		peaks = sl_torch_has_peaks(model, torch);
		sl_json_known_uint(j, "allocated_bytes", totals ? torch->allocated_bytes : SL_UNKNOWN);
		sl_json_known_uint(j, "reserved_bytes", totals ? torch->reserved_bytes : SL_UNKNOWN);
		sl_json_known_uint(j, "peak_allocated_bytes", peaks ? torch->peak_allocated_bytes : SL_UNKNOWN);
		sl_json_known_uint(j, "peak_reserved_bytes", peaks ? torch->peak_reserved_bytes : SL_UNKNOWN);
		sl_json_uint(j, "live_blocks", torch->live_blocks);
		sl_json_uint(j, "ooms", torch->ooms);
		put_given(j, &torch->most_given);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* Changes that would have let it fit, each replayed; null: not asked of this process. */
static void put_changes(struct sl_json *j, const struct sl_changes *changes)
{
	char text[200];

	if (!changes) {
		sl_json_null(j, "changes");
		return;
	}
	sl_json_object(j, "changes");
	sl_json_int(j, "device", changes->device);
	sl_json_uint(j, "capacity_bytes", changes->capacity);
	sl_json_bool(j, "failed", changes->failed);
	sl_json_string(j, "left_out", sl_answer_left_out(text, changes));
	sl_json_array(j, "tried");
	for (unsigned i = 0; i < changes->count; i++)
		sl_change_write(j, &changes->tried[i]);
	sl_json_end(j);
	sl_json_end(j);
}

static void put_holder(struct sl_json *j, struct sl_json_frames *frames, struct sl_process *process,
		       const struct sl_holder_of_growth *holder)
{
	sl_json_object(j, NULL);
	sl_json_double(j, "bytes_per_entry", holder->bytes_per_entry);
	sl_json_string(j, "library", holder->library);
	sl_json_stack(j, frames, process, holder->stack);
	sl_json_end(j);
}

void sl_json_labels(struct sl_json *j, struct sl_json_frames *frames, struct sl_process *process)
{
	const struct sl_model *model = process->model;

	sl_json_array(j, "labels");
	for (size_t i = 0; i < process->growth.count; i++) {
		const struct sl_growth *growth = &process->growth.item[i];
		const struct sl_label *label = &model->labels.item[growth->label];

		sl_json_object(j, NULL);
		sl_json_string(j, "label", sl_defs_text(model->defs, label->text));
		sl_json_uint(j, "entries", label->entries);
		sl_json_uint(j, "open", label->open);
		sl_json_known_uint(j, "duration_ns", label->entries ? label->duration_ns : SL_UNKNOWN);
		sl_json_known_uint(j, "before_bytes", label->entries ? label->before_bytes : SL_UNKNOWN);
		sl_json_known_uint(j, "after_bytes", label->entries ? label->after_bytes : SL_UNKNOWN);
		sl_json_known_uint(j, "peak_bytes", label->entries ? label->peak_bytes : SL_UNKNOWN);
		sl_json_known_uint(j, "allocated_bytes", label->entries ? label->allocated_bytes : SL_UNKNOWN);
		sl_json_known_uint(j, "freed_bytes", label->entries ? label->freed_bytes : SL_UNKNOWN);
		sl_json_known_uint(j, "blocks_created", label->entries ? label->blocks_created : SL_UNKNOWN);
		sl_json_known_uint(j, "blocks_freed", label->entries ? label->blocks_freed : SL_UNKNOWN);
		sl_json_double(j, "growth_bytes_per_entry", growth->verdict ? growth->slope : NAN);
		sl_json_double(j, "growth_error_bytes", growth->verdict ? growth->error : NAN);
		sl_json_double(j, "r_squared", growth->verdict ? growth->r_squared : NAN);
		sl_json_string(j, "verdict", growth->verdict);
		if (frames) {
			sl_json_array(j, "held_by");
			for (unsigned k = 0; k < growth->holder_count; k++)
				put_holder(j, frames, process, &growth->holders[k]);
			sl_json_end(j);
		}
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* Names that the program itself gave to its memory. */
void sl_json_names(struct sl_json *j, const struct sl_model *model)
{
	sl_json_array(j, "names");
	for (size_t i = 0; i < model->called.count; i++) {
		const struct sl_called *called = &model->called.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "name", sl_defs_text(model->defs, called->text));
		sl_json_known(j, "device", called->device);
		sl_json_uint(j, "blocks", called->blocks);
		sl_json_uint(j, "live_bytes", called->live_bytes);
		sl_json_uint(j, "peak_bytes", called->peak_bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
}

void sl_json_holder(struct sl_json *j, const char *key, const struct sl_held_by *holder)
{
	sl_json_object(j, key);
	sl_json_string(j, "path", holder->path);
	sl_json_string(j, "variable", holder->variable);
	sl_json_string(j, "how", holder->how);
	sl_json_string(j, "container", *holder->container ? holder->container : NULL);
	sl_json_string(j, "file", *holder->file ? holder->file : NULL);
	sl_json_string(j, "function", *holder->function ? holder->function : NULL);
	sl_json_known_uint(j, "line", holder->line ?: SL_UNKNOWN);
	sl_json_uint(j, "blocks", holder->blocks);
	sl_json_uint(j, "bytes", holder->bytes);
	sl_json_uint(j, "seen_bytes", holder->seen);
	sl_json_known_uint(j, "look_named", holder->among ? holder->named : SL_UNKNOWN);
	sl_json_known_uint(j, "look_among", holder->among ?: SL_UNKNOWN);
	sl_json_end(j);
}

static void put_holders(struct sl_json *j, const struct sl_process *process)
{
	struct sl_held_by *all = sl_memory_must(calloc(HOLDERS, sizeof(*all)));
	size_t count = sl_held_by_take(process, NULL, all, HOLDERS);

	if (count) {
		sl_json_array(j, "holders");
		for (size_t i = 0; i < count; i++)
			sl_json_holder(j, NULL, &all[i]);
		sl_json_end(j);
	}
	free(all);
}

/* Each rank that this process has in a communicator of NCCL. */
static void put_communicators(struct sl_json *j, const struct sl_model *model)
{
	struct sl_idmap numbers = {0}; /* of what moved, by communicator */
	char number[20];

	for (size_t i = 0; i < model->traffic.count; i++)
		sl_idmap_set(&numbers, model->traffic.item[i].communicator, (uint32_t)i);
	sl_json_array(j, "communicators");
	for (size_t i = 0; i < model->defs->communicators.count; i++) {
		const struct sl_communicator *is = &model->defs->communicators.item[i];
		uint32_t at = sl_idmap_get(&numbers, is->handle, UINT32_MAX);
		struct sl_traffic used = at == UINT32_MAX ? (struct sl_traffic){0} : model->traffic.item[at];

		snprintf(number, sizeof(number), "%016llx", (unsigned long long)is->handle);
		sl_json_object(j, NULL);
		sl_json_string(j, "communicator", number);
		sl_json_string(j, "name", is->name);
		sl_json_known(j, "rank", is->rank);
		sl_json_known(j, "world_size", is->world_size);
		sl_json_known(j, "device", is->device);
		sl_json_uint(j, "collectives", used.collectives);
		sl_json_uint(j, "message_bytes", used.bytes);
		sl_json_end(j);
	}
	sl_idmap_free(&numbers);
	sl_json_end(j);
}

static void put_truth(struct sl_json *j, const char *key, const char *value)
{
	if (!value)
		sl_json_null(j, key);
	else if (!strcmp(value, "true") || !strcmp(value, "false"))
		sl_json_bool(j, key, value[0] == 't');
	else
		sl_json_string(j, key, value);
}

static void put_capabilities(struct sl_json *j, const struct sl_defs *defs)
{
	static const char *const always[] = {"python_stacks", "native_stacks", "pytorch", "device_source"};

	sl_json_object(j, "capabilities");
	for (size_t i = 0; i < SL_COUNT(always); i++) {
		const char *value = sl_defs_capability(defs, always[i]);
		bool seen = i == 0 ? defs->pythons.count != 0 : i == 1 && defs->natives.count != 0;

		put_truth(j, always[i], !value && seen ? "true" : value);
	}
	for (size_t i = 0; i < defs->capabilities.count; i++) {
		const char *name = defs->capabilities.item[i].name;
		bool written = !name || !strcmp(name, "notes");

		for (size_t k = 0; k < SL_COUNT(always) && !written; k++)
			written = !strcmp(name, always[k]);
		if (!written)
			put_truth(j, name, defs->capabilities.item[i].value);
	}
	sl_json_texts(j, "notes", defs->notes.item, defs->notes.count);
	sl_json_end(j);
}

void sl_json_figures(struct sl_json *j, const struct sl_process *process)
{
	put_in_flight(j, process);
	put_memory(j, process);
	put_apis(j, process->model);
	put_libraries(j, process->model);
	put_torch(j, process->model);
	put_changes(j, process->changes);
}

/* The facts of each device in a snapshot of PyTorch's; null: it is a recording. */
static void put_windows(struct sl_json *j, const struct sl_process *process)
{
	struct sl_window_facts facts;
	char text[40];

	if (!sl_header_is_snapshot(process->model->header)) {
		sl_json_null(j, "snapshot");
		return;
	}
	sl_json_object(j, "snapshot");
	sl_json_string(j, "releases", sl_window_releases(process->model->header, text, sizeof(text)));
	sl_json_array(j, "devices");
	for (int d = 0; d < SL_DEVICES_MAX; d++) {
		const struct sl_device_state *state = process->model->devices[d + 1];

		if (!sl_window_facts(process->model->header, d, &facts))
			continue;
		sl_json_object(j, NULL);
		sl_json_int(j, "device", d);
		sl_json_uint(j, "events", facts.events);
		sl_json_known_uint(j, "window_ns", facts.span_ns ? facts.span_ns : SL_UNKNOWN);
		sl_json_uint(j, "rounds", facts.rounds);
		sl_json_uint(j, "requested_before_bytes", facts.requested);
		sl_json_uint(j, "reserved_before_bytes", facts.reserved);
		sl_json_uint(j, "requested_peak_bytes",
			     state ? state->torch_at_peak.allocated_bytes - state->torch_at_peak.rounding : 0);
		sl_json_uint(j, "reserved_at_peak_bytes", state ? state->torch_at_peak.reserved_bytes : 0);
		sl_json_bool(j, "exact", facts.exact);
		sl_json_bool(j, "trimmed", facts.trimmed);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}

void sl_json_identity(struct sl_json *j, const struct sl_process *process)
{
	const struct sl_trace *trace = process->trace;
	const struct sl_header *header = &trace->header;

	sl_json_string(j, "session_id", process->session_id);
	sl_json_known(j, "rank", header->rank);
	sl_json_known(j, "local_rank", header->local_rank);
	sl_json_known(j, "world_size", header->world_size);
	sl_json_string(j, "host", header->host);
	sl_json_int(j, "pid", header->pid);
	sl_json_texts(j, "command", header->argv, header->argc);
	sl_json_string(j, "trace", sl_paths_name(trace->name));
	sl_json_string(j, "status", sl_trace_status(trace));
	sl_json_string(j, "ended", sl_ended_names[sl_trace_ended(trace)]);
	sl_json_known(j, "exit_status", (int64_t)trace->exited - 1);
	sl_json_uint(j, "events", process->model->events);
	sl_json_uint(j, "lost_events", sl_trace_lost_events(trace));
	sl_json_uint(j, "unknown_frees", process->model->unknown_frees);
	sl_json_bool(j, "damaged", trace->damage.damaged);
}

void sl_json_process(struct sl_json *j, struct sl_json_frames *frames, struct sl_process *process)
{
	const struct sl_host *host = &process->model->host;

	sl_json_object(j, NULL);
	sl_json_identity(j, process);
	sl_json_figures(j, process);
	put_windows(j, process);
	put_roles(j, process);
	sl_json_labels(j, frames, process);
	sl_json_names(j, process->model);
	put_holders(j, process);
	put_communicators(j, process->model);
	put_heuristics(j, process);
	sl_json_object(j, "host_memory");
	sl_json_known_uint(j, "rss_peak_bytes", host->rss_peak);
	sl_json_known_uint(j, "cgroup_limit_bytes", host->cgroup_limit);
	sl_json_known_uint(j, "cgroup_peak_bytes", host->cgroup_peak);
	sl_json_known_uint(j, "oom_kills", host->oom_kills);
	sl_json_end(j);
	put_capabilities(j, &process->trace->defs);
	sl_json_end(j);
}
