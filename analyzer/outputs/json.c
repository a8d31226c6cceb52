/* SPDX-License-Identifier: MIT */
/* report.json, as schemas/report.schema.json describes it.  Unknown is null, never 0. */
#include "analyzer/base/json.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/hidden.h"
#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"
#include "analyzer/outputs/heuristics.h"
#include "analyzer/outputs/output.h"
#include "analyzer/upstream/sessions.h"
#include "analyzer/upstream/answers/emit.h"
#include "analyzer/report/bundle_path.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"

static void put_known(struct sl_json *j, const char *key, uint64_t value)
{
	if (value == SL_UNKNOWN)
		sl_json_null(j, key);
	else
		sl_json_uint(j, key, value);
}

static void put_device(struct sl_json *j, const char *key, int device)
{
	sl_json_known(j, key, device);
}

static void put_frames(struct sl_json *j, const char *key, const struct sl_stack_frame *frames, unsigned count)
{
	sl_json_array(j, key);
	for (unsigned i = 0; i < count; i++) {
		const struct sl_stack_frame *frame = &frames[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "language", frame->python ? "python" : "native");
		sl_json_string(j, "function", frame->function);
		sl_json_string(j, "file", frame->file);
		sl_json_known(j, "line", frame->line ? (int64_t)frame->line : -1);
		sl_json_string(j, "module", frame->module);
		if (frame->python)
			sl_json_null(j, "offset");
		else
			sl_json_uint(j, "offset", frame->offset);
		sl_json_end(j);
	}
	sl_json_end(j);
}

void sl_output_stack(struct sl_json *j, const char *key, struct sl_process *process, uint32_t python, uint32_t native,
		     uint64_t caller)
{
	struct sl_stack_frame frames[SL_STACK_MAX];

	put_frames(j, key, frames, sl_process_stack(process, frames, python, native, caller));
}

/* The hidden peak by name. */
static void put_hidden(struct sl_json *j, const struct sl_report *report, const struct sl_shared_device *device)
{
	struct sl_hidden hidden;

	sl_hidden_split(report, device, &hidden);
	sl_json_array(j, "hidden");
	for (size_t i = 0; i < hidden.count; i++) {
		const struct sl_hidden_name *name = &hidden.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "what", name->what);
		sl_json_string(j, "library", name->library);
		sl_json_known(j, "pid", name->pid ? name->pid : -1);
		sl_json_uint(j, "bytes", name->bytes);
		put_known(j, "first_ns", name->first_unix_ns ? name->first_unix_ns : SL_UNKNOWN);
		sl_json_string(j, "label", name->label);
		put_known(j, "step", name->step);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_hidden_free(&hidden);
}

static void put_skew(struct sl_json *j, const struct sl_skew *skew)
{
	if (skew->hosts < 2) {
		sl_json_null(j, "clock_skew");
		return;
	}
	sl_json_object(j, "clock_skew");
	sl_json_uint(j, "bound_ns", skew->bound_ns);
	sl_json_string(j, "evidence", skew->evidence);
	sl_json_uint(j, "communicators", skew->meetings);
	sl_json_end(j);
}

static void put_run(struct sl_json *j, const struct sl_report *report)
{
	const struct sl_header *first = report->process_count ? &report->processes[0].trace->header : NULL;
	int64_t world = -1;

	for (unsigned i = 0; i < report->process_count; i++)
		if (report->processes[i].trace->header.world_size > world)
			world = report->processes[i].trace->header.world_size;
	sl_json_object(j, "run");
	sl_json_string(j, "id", first ? first->run_id : NULL);
	sl_json_string(j, "job_id", first ? first->job_id : NULL);
	sl_json_known(j, "world_size", world);
	sl_json_string(j, "tag", first ? first->tag : NULL);
	sl_json_object(j, "metadata");
	if (report->process_count)
		sl_output_metadata(j, report->processes[0].model);
	sl_json_end(j);
	put_known(j, "started_at_ns", first ? report->started_unix_ns : SL_UNKNOWN);
	put_known(j, "ended_at_ns", first ? report->ended_unix_ns : SL_UNKNOWN);
	put_skew(j, &report->skew);
	sl_json_array(j, "devices");
	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "host", device->host);
		sl_json_string(j, "uuid", device->uuid);
		put_device(j, "device", device->device);
		sl_json_string(j, "name", device->name);
		put_known(j, "total_bytes", device->total_bytes);
		put_known(j, "used_peak_bytes", device->used_peak_bytes);
		put_known(j, "known_peak_bytes", device->known_peak_bytes);
		put_known(j, "hidden_peak_bytes", device->hidden_peak_bytes);
		sl_json_string(j, "source", device->source);
		put_hidden(j, report, device);
		sl_json_array(j, "processes");
		for (unsigned p = 0; p < device->process_count; p++)
			sl_json_int(j, NULL, report->processes[device->processes[p]].trace->header.pid);
		sl_json_end(j);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}

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
			put_device(j, "device", (int)d - 1);
			sl_json_uint(j, "allocations", row->allocations);
			sl_json_uint(j, "frees", row->frees);
			sl_json_uint(j, "failed_allocations", row->failed_allocations);
			sl_json_uint(j, "implicit_frees", row->implicit_frees);
			sl_json_uint(j, "allocated_bytes", row->allocated_bytes);
			sl_json_uint(j, "live_blocks", row->live_blocks);
			sl_json_uint(j, "live_bytes", row->live_bytes);
			sl_json_uint(j, "peak_bytes", row->peak_bytes);
			put_known(j, "peak_at_ns", row->peak_at_ns ? sl_process_unix(process, row->peak_at_ns) : SL_UNKNOWN);
			sl_json_end(j);
		}
	sl_json_end(j);
}

/* Rows of one name (variants, two meanings) are one entry. */
static void put_apis(struct sl_json *j, const struct sl_model *model)
{
	const struct sl_header *header = model->header;
	struct sl_api_stats *sums = sl_memory_must(calloc(header->hook_count + 1, sizeof(*sums)));
	struct sl_map rows = {0}; /* 1 + the first of the name */

	for (unsigned i = 0; i < header->hook_count; i++) {
		uintptr_t *row = sl_map_at(&rows, header->hooks[i].plain);

		*row = *row ? *row : i + 1;
		sums[*row - 1].calls += model->apis[i + 1].calls;
		sums[*row - 1].failures += model->apis[i + 1].failures;
		sums[*row - 1].bytes += model->apis[i + 1].bytes;
		sums[*row - 1].time_ns += model->apis[i + 1].time_ns;
	}
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
	sl_map_free(&rows);
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
		put_device(j, "device", holder->device);
		sl_json_uint(j, "live_bytes", holder->live_bytes);
		sl_json_uint(j, "peak_bytes", holder->peak_bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* What the peak of each device was for; of a device of which nothing is known there is nothing. */
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
			put_device(j, "device", (int)d - 1);
			sl_json_string(j, "role", sl_roles_name((enum sl_role)role));
			sl_json_uint(j, "bytes_at_peak", bytes[role]);
			sl_json_end(j);
		}
	}
	sl_json_end(j);
}

/* What a framework's pool has given out, by what it is for; as it said, when that was most. */
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
	if (given->in_use >= given->rounded)
		sl_json_uint(j, "unnamed_bytes", given->in_use - given->rounded);
	else /* it had given back what the program still held */
		sl_json_null(j, "unnamed_bytes");
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
		put_device(j, "device", (int)d - 1);
		sl_json_uint(j, "events", torch->events);
		totals = sl_torch_has_totals(torch);
		peaks = sl_torch_has_peaks(model, torch);
		put_known(j, "allocated_bytes", totals ? torch->allocated_bytes : SL_UNKNOWN);
		put_known(j, "reserved_bytes", totals ? torch->reserved_bytes : SL_UNKNOWN);
		put_known(j, "peak_allocated_bytes", peaks ? torch->peak_allocated_bytes : SL_UNKNOWN);
		put_known(j, "peak_reserved_bytes", peaks ? torch->peak_reserved_bytes : SL_UNKNOWN);
		sl_json_uint(j, "live_blocks", torch->live_blocks);
		sl_json_uint(j, "ooms", torch->ooms);
		put_given(j, &torch->most_given);
		sl_json_end(j);
	}
	sl_json_end(j);
}

static void put_holder(struct sl_json *j, struct sl_process *process, const struct sl_holder_of_growth *holder)
{
	sl_json_object(j, NULL);
	sl_json_double(j, "bytes_per_entry", holder->bytes_per_entry);
	sl_json_string(j, "library", holder->library);
	sl_output_stack(j, "stack", process, holder->python, holder->native, holder->caller);
	sl_json_end(j);
}

static void put_labels(struct sl_json *j, struct sl_process *process)
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
		put_known(j, "duration_ns", label->entries ? label->duration_ns : SL_UNKNOWN);
		put_known(j, "before_bytes", label->entries ? label->before_bytes : SL_UNKNOWN);
		put_known(j, "after_bytes", label->entries ? label->after_bytes : SL_UNKNOWN);
		put_known(j, "peak_bytes", label->entries ? label->peak_bytes : SL_UNKNOWN);
		put_known(j, "allocated_bytes", label->entries ? label->allocated_bytes : SL_UNKNOWN);
		put_known(j, "freed_bytes", label->entries ? label->freed_bytes : SL_UNKNOWN);
		put_known(j, "blocks_created", label->entries ? label->blocks_created : SL_UNKNOWN);
		put_known(j, "blocks_freed", label->entries ? label->blocks_freed : SL_UNKNOWN);
		if (growth->verdict) {
			sl_json_double(j, "growth_bytes_per_entry", growth->slope);
			sl_json_double(j, "growth_error_bytes", growth->error);
			sl_json_double(j, "r_squared", growth->r_squared);
		} else {
			sl_json_null(j, "growth_bytes_per_entry");
			sl_json_null(j, "growth_error_bytes");
			sl_json_null(j, "r_squared");
		}
		sl_json_string(j, "verdict", growth->verdict);
		sl_json_array(j, "held_by");
		for (unsigned k = 0; k < growth->holder_count; k++)
			put_holder(j, process, &growth->holders[k]);
		sl_json_end(j);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* What the program itself called its memory. */
static void put_names(struct sl_json *j, const struct sl_model *model)
{
	sl_json_array(j, "names");
	for (size_t i = 0; i < model->called.count; i++) {
		const struct sl_called *called = &model->called.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "name", sl_defs_text(model->defs, called->text));
		put_device(j, "device", called->device);
		sl_json_uint(j, "blocks", called->blocks);
		sl_json_uint(j, "live_bytes", called->live_bytes);
		sl_json_uint(j, "peak_bytes", called->peak_bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* Each rank that this process has in a communicator of NCCL. */
static void put_communicators(struct sl_json *j, const struct sl_model *model)
{
	char number[20];

	sl_json_array(j, "communicators");
	for (size_t i = 0; i < model->defs->communicators.count; i++) {
		const struct sl_communicator *is = &model->defs->communicators.item[i];
		struct sl_traffic used = {is->handle, 0, 0};

		for (size_t k = 0; k < model->traffic.count; k++)
			if (model->traffic.item[k].communicator == is->handle)
				used = model->traffic.item[k];
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
		bool said = !name || !strcmp(name, "notes");

		for (size_t k = 0; k < SL_COUNT(always) && !said; k++)
			said = !strcmp(name, always[k]);
		if (!said)
			put_truth(j, name, defs->capabilities.item[i].value);
	}
	sl_json_array(j, "notes");
	for (size_t i = 0; i < defs->notes.count; i++)
		sl_json_string(j, NULL, defs->notes.item[i]);
	sl_json_end(j);
	sl_json_end(j);
}

void sl_json_figures(struct sl_json *j, const struct sl_process *process)
{
	put_in_flight(j, process);
	put_memory(j, process);
	put_apis(j, process->model);
	put_libraries(j, process->model);
	put_torch(j, process->model);
}

static void put_process(struct sl_json *j, struct sl_process *process)
{
	const struct sl_trace *trace = process->trace;
	const struct sl_header *header = &trace->header;
	const struct sl_host *host = &process->model->host;

	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", process->session_id);
	sl_json_known(j, "rank", header->rank);
	sl_json_known(j, "local_rank", header->local_rank);
	sl_json_known(j, "world_size", header->world_size);
	sl_json_string(j, "host", header->host);
	sl_json_int(j, "pid", header->pid);
	sl_json_array(j, "command");
	for (unsigned i = 0; i < header->argc; i++)
		sl_json_string(j, NULL, header->argv[i]);
	sl_json_end(j);
	sl_json_string(j, "trace", sl_stacks_basename(trace->name));
	sl_json_string(j, "status", sl_status_name(trace->status));
	sl_json_known(j, "exit_status", (int64_t)trace->exited - 1);
	sl_json_uint(j, "events", process->model->events);
	sl_json_uint(j, "lost_events", trace->gap_events + trace->damage.lost_events);
	sl_json_uint(j, "unknown_frees", process->model->unknown_frees);
	sl_json_bool(j, "damaged", trace->damage.damaged);
	sl_json_figures(j, process);
	put_roles(j, process);
	put_labels(j, process);
	put_names(j, process->model);
	put_communicators(j, process->model);
	sl_heuristics_put(j, process);
	sl_json_object(j, "host_memory");
	put_known(j, "rss_peak_bytes", host->rss_peak);
	put_known(j, "cgroup_limit_bytes", host->cgroup_limit);
	put_known(j, "cgroup_peak_bytes", host->cgroup_peak);
	put_known(j, "oom_kills", host->oom_kills);
	sl_json_end(j);
	put_capabilities(j, &trace->defs);
	sl_json_end(j);
}

/* Who had the device then, beside this process's own calls. */
static void put_account(struct sl_json *j, const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_account *account = &process->accounts[oom - process->model->ooms.item];

	sl_json_string(j, "cause", account->cause_text);
	put_known(j, "cached_bytes", account->cached);
	put_known(j, "largest_cached_bytes", account->largest_cached);
	put_known(j, "hidden_bytes", account->hidden);
	sl_json_array(j, "others");
	for (unsigned i = 0; i < account->other_count; i++) {
		sl_json_object(j, NULL);
		sl_json_int(j, "pid", account->others[i].pid);
		sl_json_known(j, "rank", account->others[i].rank);
		sl_json_uint(j, "bytes", account->others[i].bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
}

static void put_oom(struct sl_json *j, struct sl_process *process, const struct sl_oom *oom)
{
	static const char *const scopes[] = {"vram", "host", "address_space", "context", "code"};
	const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);
	char bundle[4096];

	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", process->session_id);
	sl_json_known(j, "rank", process->trace->header.rank);
	put_device(j, "device", oom->device);
	sl_json_uint(j, "timestamp_ns", sl_process_unix(process, oom->time_ns));
	sl_json_string(j, "api", hook ? hook->plain : NULL);
	sl_json_int(j, "code", oom->code);
	sl_json_string(j, "scope", scopes[oom->scope]);
	sl_json_uint(j, "requested_bytes", oom->requested_bytes);
	sl_json_uint(j, "live_bytes", oom->live_bytes);
	put_known(j, "device_free_bytes", oom->free_bytes);
	put_known(j, "device_total_bytes", oom->total_bytes);
	if (oom->recovered < 0)
		sl_json_null(j, "recovered");
	else
		sl_json_bool(j, "recovered", oom->recovered);
	sl_json_bool(j, "injected", oom->injected);
	put_account(j, process, oom);
	sl_output_stack(j, "stack", process, oom->python, oom->native, oom->caller);
	sl_json_string(j, "bundle", sl_oom_bundle_path(process, oom, bundle, sizeof(bundle)) ? bundle : NULL);
	sl_json_end(j);
}

static void put_leak(struct sl_json *j, struct sl_process *process, const struct sl_leak *leak)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", process->session_id);
	sl_json_known(j, "rank", process->trace->header.rank);
	put_device(j, "device", leak->device);
	sl_json_string(j, "kind", sl_event_kinds[leak->kind].name);
	sl_json_uint(j, "bytes", leak->bytes);
	sl_json_uint(j, "blocks", leak->blocks);
	sl_json_string(j, "verdict", leak->verdict);
	sl_json_string(j, "severity", leak->severity);
	if (leak->growing) {
		sl_json_double(j, "growth_bytes_per_second", leak->bytes_per_second);
	} else {
		sl_json_null(j, "growth_bytes_per_second");
	}
	sl_json_uint(j, "first_ns", sl_process_unix(process, leak->first_ns));
	sl_json_uint(j, "last_ns", sl_process_unix(process, leak->last_ns));
	if (leak->growing)
		sl_json_double(j, "confidence", leak->r_squared);
	else
		sl_json_null(j, "confidence");
	sl_json_string(j, "suggestion", leak->suggestion);
	sl_json_string(j, "library", leak->library);
	sl_output_stack(j, "stack", process, leak->python, leak->native, leak->caller);
	sl_json_end(j);
}

static void put_findings(struct sl_json *j, struct sl_report *report, const struct sl_telemetry *telemetry)
{
	sl_json_array(j, "ooms");
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].model->ooms.count; k++)
			put_oom(j, &report->processes[i], &report->processes[i].model->ooms.item[k]);
	sl_json_end(j);
	sl_json_array(j, "leaks");
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].leaks.count; k++)
			put_leak(j, &report->processes[i], &report->processes[i].leaks.item[k]);
	sl_json_end(j);
	sl_telemetry_emit_selected(j, telemetry, report->options.emit);
	sl_json_array(j, "findings");
	for (size_t i = 0; i < report->findings.count; i++)
		sl_json_finding(j, report, &report->findings.item[i]);
	sl_json_end(j);
}

bool sl_json_report(struct sl_report *report, FILE *out)
{
	struct sl_json *j = sl_json_new(out, SL_JSON_INDENT);
	struct sl_arena arena = {0};
	struct sl_telemetry *telemetry = sl_sessions_telemetry(report, &arena);

	sl_json_object(j, NULL);
	sl_json_string(j, "schema", "stormlog.report");
	sl_json_int(j, "schema_version", 1);
	put_run(j, report);
	sl_json_array(j, "processes");
	for (unsigned i = 0; i < report->process_count; i++)
		put_process(j, &report->processes[i]);
	sl_json_end(j);
	put_findings(j, report, telemetry);
	sl_report_warn_of_symbols(report);
	sl_json_array(j, "warnings");
	for (size_t i = 0; i < report->warnings.count; i++)
		sl_json_string(j, NULL, report->warnings.item[i]);
	sl_json_end(j);
	sl_telemetry_emit(j, telemetry, report->options.emit);
	sl_json_end(j);
	sl_json_newline(j);
	sl_telemetry_free(telemetry);
	sl_arena_free(&arena);
	return sl_json_close(j);
}

const struct sl_output sl_output_json = {.name = "report.json", .file = sl_json_report};
