/* SPDX-License-Identifier: MIT */
/* report.json, as schemas/report.schema.json describes it.  Unknown is null, never 0. */
#include <math.h>

#include "analyzer/analyses/hidden.h"
#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/gate/gate.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/bundle_path.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/operator.h"
#include "analyzer/report/place.h"
#include "analyzer/upstream/upstream.h"

static void put_members(struct sl_json *j, const struct sl_stack_frame *frame)
{
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

/* The frame's text in JSON is its key: frames that are written alike have one number. */
static uint64_t number_of(struct sl_json_frames *table, const struct sl_stack_frame *frame)
{
	uintptr_t *number;
	size_t size;

	if (!table->row)
		table->row = sl_json_new(NULL, SL_JSON_COMPACT);
	sl_json_rewind(table->row);
	sl_json_object(table->row, NULL);
	put_members(table->row, frame);
	number = sl_map_at(&table->numbers, sl_json_text(table->row, &size));
	if (!*number) {
		struct sl_stack_frame *row = SL_PUSH(&table->list);

		*row = *frame;
		row->function = sl_map_intern(&table->texts, frame->function);
		row->file = sl_map_intern(&table->texts, frame->file);
		row->module = sl_map_intern(&table->texts, frame->module);
		*number = table->list.count;
	}
	return *number - 1;
}

void sl_json_stack(struct sl_json *j, struct sl_json_frames *table, struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = process ? sl_process_stack(process, frames, stack) : 0;

	if (table)
		sl_json_row(j, "stack");
	else
		sl_json_array(j, "stack");
	for (unsigned i = 0; i < count; i++) {
		if (table) {
			sl_json_uint(j, NULL, number_of(table, &frames[i]));
			continue;
		}
		sl_json_object(j, NULL);
		put_members(j, &frames[i]);
	}
	sl_json_end(j);
}

/* Writes the member "frames", the rows in the order of their numbers, and frees the table. */
static void json_frames_put(struct sl_json *j, struct sl_json_frames *table)
{
	sl_json_array(j, "frames");
	for (size_t i = 0; i < table->list.count; i++) {
		sl_json_object(j, NULL);
		sl_json_flat(j);
		put_members(j, &table->list.item[i]);
	}
	sl_json_end(j);
	if (table->row)
		sl_json_close(table->row);
	SL_DROP(&table->list);
	sl_map_free(&table->numbers);
	sl_map_free(&table->texts);
}

/* One finding in report.json: its kind, the line to look at, the figures behind it. */

/* The line to look at: the frame of the finding's stack that report/place.h chooses, or null. */
static void put_place(struct sl_json *j, struct sl_process *process, const struct sl_finding *finding)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	const struct sl_stack_frame *place = process ? sl_place_at(process, finding->stack, frames) : NULL;

	if (!place) {
		sl_json_null(j, "place");
		return;
	}
	sl_json_object(j, "place");
	sl_json_string(j, "file", place->file);
	sl_json_nonzero(j, "line", place->line);
	sl_json_string(j, "function", place->function);
	sl_json_end(j);
}

static const char *class_of(const struct sl_finding *finding)
{
	return finding->class ?: sl_found_family(finding->kind);
}
static void put_stable_id(struct sl_json *j, struct sl_process *process, const struct sl_finding *finding)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = process ? sl_process_stack(process, frames, finding->stack) : 0;
	char id[SL_FINGERPRINT_BYTES], what[96];

	if (count)
		snprintf(what, sizeof(what), "%s", class_of(finding));
	else
		snprintf(what, sizeof(what), "%s rank %lld device %d", sl_found_name(finding->kind),
			 process ? (long long)process->trace->header.rank : -1, finding->device);
	sl_fingerprint(id, 0, what, frames, count);
	sl_json_string(j, "stable_id", id);
}

static void put_evidence_of_kept(struct sl_json *j, const struct sl_process *process, const struct sl_finding *finding)
{
	struct sl_held_by holder;

	for (size_t i = 0; i < process->leaks_by_line.count; i++) {
		const struct sl_leak_line *line = &process->leaks_by_line.item[i];

		/* the same stack may keep memory on several devices */
		if (!sl_stack_same(line->track->stack, finding->stack) || line->track->device != finding->device ||
		    line->bytes != finding->bytes)
			continue;
		sl_json_uint(j, "births", line->births);
		sl_json_uint(j, "kept", line->blocks);
		sl_json_double(j, "per_second", line->per_second);
		sl_json_double(j, "per_second_error", line->per_second_error);
		sl_json_string(j, "unit", line->count_only ? "objects" : "bytes");
		sl_json_uint(j, "first_ns", sl_process_unix(process, line->track->first_ns));
		sl_json_uint(j, "since_ns", sl_process_unix(process, sl_leak_words_since(line)));
		sl_json_uint(j, "last_ns", sl_process_unix(process, line->track->last_ns));
		if (sl_held_by_take(process, line->track, &holder, 1))
			sl_json_holder(j, "holder", &holder);
		return;
	}
}

static void put_evidence_of_oom(struct sl_json *j, const struct sl_process *process, const struct sl_finding *finding)
{
	const struct sl_oom *oom = finding->oom;
	const struct sl_account *account = sl_process_account(process, oom);

	sl_json_uint(j, "requested_bytes", oom->asked_bytes);
	sl_json_known_uint(j, "free_bytes", oom->free_bytes);
	sl_json_known_uint(j, "total_bytes", oom->total_bytes);
	sl_json_uint(j, "held_bytes", oom->live_bytes);
	sl_json_known_uint(j, "cached_bytes", account->cached);
	sl_json_known_uint(j, "largest_cached_bytes", account->largest_cached);
	sl_json_known_uint(j, "hidden_bytes", account->hidden);
}

static void put_evidence_of_growth(struct sl_json *j, const struct sl_process *process, const struct sl_finding *finding)
{
	for (size_t i = 0; i < process->growth.count; i++) {
		const struct sl_growth *growth = &process->growth.item[i];

		if (!growth->credited || !growth->holder_count || !sl_stack_same(growth->holders[0].stack, finding->stack) ||
		    sl_stats_bytes(growth->slope) != finding->bytes)
			continue;
		sl_json_string(j, "label", sl_defs_text(process->model->defs, process->model->labels.item[growth->label].text));
		sl_json_double(j, "bytes_per_entry", growth->slope);
		sl_json_double(j, "bytes_per_entry_error", growth->error);
		sl_json_double(j, "r_squared", growth->r_squared);
		sl_json_uint(j, "entries", process->model->labels.item[growth->label].points);
		return;
	}
}

/* The figures behind the finding's sentence; {} if the sentence has them all. */
static void put_evidence(struct sl_json *j, const struct sl_process *process, const struct sl_finding *finding)
{
	sl_json_object(j, "evidence");
	if (process && (!strcmp(sl_found_family(finding->kind), "leak") || finding->kind == SL_FOUND_memory_filling))
		put_evidence_of_kept(j, process, finding);
	else if (process && !strcmp(sl_found_family(finding->kind), "oom"))
		put_evidence_of_oom(j, process, finding);
	else if (process && finding->kind == SL_FOUND_label_growing)
		put_evidence_of_growth(j, process, finding);
	sl_json_end(j);
}

/* Appends a finding, as in report.json, to the open array. */
static void json_finding(struct sl_json *j, struct sl_json_frames *frames, const struct sl_report *report,
			 const struct sl_finding *finding)
{
	struct sl_process *process = finding->process < 0 ? NULL : &report->processes[finding->process];

	sl_json_object(j, NULL);
	sl_json_string(j, "id", sl_found_id(finding->kind));
	sl_json_string(j, "kind", sl_found_name(finding->kind));
	sl_json_string(j, "class", class_of(finding));
	sl_json_string(j, "severity", finding->severity);
	sl_json_double(j, "confidence", finding->confidence > 0 ? finding->confidence : NAN);
	put_stable_id(j, process, finding);
	put_place(j, process, finding);
	put_evidence(j, process, finding);
	sl_json_string(j, "session_id", process ? process->session_id : NULL);
	sl_json_known(j, "rank", process ? process->trace->header.rank : -1);
	sl_json_known(j, "device", finding->device);
	sl_json_known_uint(j, "timestamp_ns", finding->unix_ns ? finding->unix_ns : SL_UNKNOWN);
	sl_json_known_uint(j, "bytes", finding->bytes);
	sl_json_string(j, "description", finding->text);
	sl_json_string(j, "recommendation", finding->advice);
	sl_json_stack(j, frames, process, finding->stack);
	sl_json_end(j);
}

/* Writes what makes up the hidden peak, by name. */
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
		sl_json_bool(j, "at_most", name->bound && !strcmp(name->bound, "at most"));
		sl_json_bool(j, "about", name->bound && !strcmp(name->bound, "about"));
		sl_json_known_uint(j, "first_ns", name->first_unix_ns ? name->first_unix_ns : SL_UNKNOWN);
		sl_json_string(j, "label", name->label);
		sl_json_known_uint(j, "step", name->step);
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

static void put_dry_lines(struct sl_json *j, const char *name, const struct sl_report *report,
			  bool (*next)(const struct sl_process *, size_t, struct sl_dry_read *))
{
	struct sl_dry_read line;

	sl_json_array(j, name);
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; next(&report->processes[i], k, &line); k++) {
			sl_json_object(j, NULL);
			sl_json_int(j, "pid", report->processes[i].trace->header.pid);
			sl_json_string(j, "line", line.line);
			sl_json_string(j, "what", line.what);
			sl_json_end(j);
		}
	sl_json_end(j);
}

/* The facts of a dry run's device; null: a real one. */
static void put_dry(struct sl_json *j, const struct sl_report *report)
{
	const char *card = sl_dry_report(report);
	struct sl_dry_need need = {0};
	uint64_t asked;
	bool is_known = sl_dry_need(report, &need);

	if (!card) {
		sl_json_null(j, "dry");
		return;
	}
	sl_json_object(j, "dry");
	sl_json_string(j, "card", card);
	sl_json_bool(j, "measured", need.measured);
	sl_json_known_uint(j, "capacity_bytes", is_known ? need.capacity : SL_UNKNOWN);
	sl_json_known_uint(j, "job_bytes", is_known ? need.job : SL_UNKNOWN);
	sl_json_known_uint(j, "unsure_bytes", is_known ? need.unsure : SL_UNKNOWN);
	sl_json_known_uint(j, "outside_low_bytes", is_known ? need.low : SL_UNKNOWN);
	sl_json_known_uint(j, "outside_high_bytes", is_known ? need.high : SL_UNKNOWN);
	sl_json_known_uint(j, "steps", sl_dry_steps(report, &asked));
	sl_json_known_uint(j, "steps_asked", asked ? asked : SL_UNKNOWN);
	sl_json_string(j, "may_be_ended_by", sl_dry_late(report));
	put_dry_lines(j, "reads", report, sl_dry_read);
	put_dry_lines(j, "unknown", report, sl_dry_unknown);
	sl_json_end(j);
}

void sl_json_device(struct sl_json *j, const struct sl_report *report, const struct sl_shared_device *device)
{
	sl_json_string(j, "host", device->host);
	sl_json_string(j, "uuid", device->uuid);
	sl_json_known(j, "device", device->device);
	sl_json_string(j, "name", device->name);
	sl_json_known_uint(j, "total_bytes", device->total_bytes);
	sl_json_known_uint(j, "used_peak_bytes", device->used_peak_bytes);
	sl_json_known_uint(j, "known_peak_bytes", device->known_peak_bytes);
	sl_json_bool(j, "partial", device->partial);
	sl_json_known_uint(j, "hidden_peak_bytes", device->hidden_peak_bytes);
	sl_json_string(j, "source", device->source);
	sl_json_string(j, "hidden_figure",
		       device->figure == SL_FIGURE_OWN		 ? "process"
		       : device->figure == SL_FIGURE_LESS_OTHERS ? "device_less_others"
		       : device->figure == SL_FIGURE_DEVICE	 ? "device"
								 : NULL);
	put_hidden(j, report, device);
	sl_json_uint(j, "others", device->others);
	sl_json_uint(j, "others_bytes", device->others_bytes);
}

static void put_run(struct sl_json *j, const struct sl_report *report)
{
	const struct sl_header *first = report->process_count ? &report->processes[0].trace->header : NULL;

	sl_json_object(j, "run");
	sl_json_string(j, "id", first ? first->run_id : NULL);
	sl_json_string(j, "job_id", first ? first->job_id : NULL);
	sl_json_known(j, "world_size", sl_report_world(report));
	sl_json_string(j, "tag", first ? first->tag : NULL);
	put_dry(j, report);
	sl_json_object(j, "metadata");
	if (report->process_count)
		sl_output_metadata(j, report->processes[0].model);
	sl_json_end(j);
	sl_json_known_uint(j, "started_at_ns", first ? report->started_unix_ns : SL_UNKNOWN);
	sl_json_known_uint(j, "ended_at_ns", first ? report->ended_unix_ns : SL_UNKNOWN);
	put_skew(j, &report->skew);
	sl_json_array(j, "devices");
	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];

		sl_json_object(j, NULL);
		sl_json_device(j, report, device);
		sl_json_array(j, "processes");
		for (unsigned p = 0; p < device->user_count; p++)
			sl_json_int(j, NULL, report->processes[device->users[p].process].trace->header.pid);
		sl_json_end(j);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}

/* Writes who held the device at the error, in addition to this process's calls. */
static void put_account(struct sl_json *j, const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_account *account = sl_process_account(process, oom);

	sl_json_string(j, "cause", sl_account_cause(account));
	sl_json_string(j, "operator", account->ran ? account->ran->name : NULL);
	sl_json_known_uint(j, "cached_bytes", account->cached);
	sl_json_known_uint(j, "largest_cached_bytes", account->largest_cached);
	sl_json_known_uint(j, "hidden_bytes", account->hidden);
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

static void put_oom(struct sl_json *j, struct sl_json_frames *frames, struct sl_process *process, const struct sl_oom *oom)
{
	static const char *const scopes[] = {"vram", "host", "address_space", "context", "code"};
	const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);
	const struct sl_account *account = sl_process_account(process, oom);
	char bundle[4096];

	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", process->session_id);
	sl_json_known(j, "rank", process->trace->header.rank);
	sl_json_known(j, "device", oom->device);
	sl_json_uint(j, "timestamp_ns", sl_process_unix(process, oom->time_ns));
	sl_json_string(j, "api", hook ? hook->plain : NULL);
	sl_json_int(j, "code", oom->code);
	sl_json_string(j, "scope", scopes[oom->scope]);
	sl_json_uint(j, "requested_bytes", oom->requested_bytes);
	sl_json_uint(j, "live_bytes", oom->live_bytes);
	sl_json_known_uint(j, "device_free_bytes", sl_account_measured(account, oom->free_bytes));
	sl_json_known_uint(j, "device_total_bytes", sl_account_measured(account, oom->total_bytes));
	if (oom->recovered < 0 && !oom->less_bytes)
		sl_json_null(j, "recovered");
	else
		sl_json_bool(j, "recovered", sl_oom_got_over(oom));
	sl_json_bool(j, "injected", oom->injected);
	put_account(j, process, oom);
	sl_json_stack(j, frames, process, oom->stack);
	sl_json_string(j, "bundle", sl_bundle_path(process, oom, bundle, sizeof(bundle)) ? bundle : NULL);
	sl_json_end(j);
}

static void put_leak(struct sl_json *j, struct sl_json_frames *frames, struct sl_process *process, const struct sl_leak *leak)
{
	sl_json_object(j, NULL);
	sl_json_flat(j);
	sl_json_string(j, "session_id", process->session_id);
	sl_json_known(j, "rank", process->trace->header.rank);
	sl_json_known(j, "device", leak->device);
	sl_json_string(j, "kind", sl_event_kinds[leak->kind].name);
	sl_json_uint(j, "bytes", leak->bytes);
	sl_json_uint(j, "blocks", leak->blocks);
	sl_json_string(j, "verdict", leak->verdict);
	sl_json_string(j, "severity", leak->severity);
	sl_json_double(j, "growth_bytes_per_second", leak->growing ? leak->bytes_per_second : NAN);
	sl_json_uint(j, "first_ns", sl_process_unix(process, leak->first_ns));
	sl_json_uint(j, "last_ns", sl_process_unix(process, leak->last_ns));
	sl_json_double(j, "confidence", leak->growing ? leak->r_squared : NAN);
	sl_json_string(j, "suggestion", sl_answer_leak_suggestion(leak));
	sl_json_string(j, "library", leak->library);
	sl_json_stack(j, frames, process, leak->stack);
	sl_json_end(j);
}

/* Share of the limit that stays for the later parts, in sixteenths. */
enum { AFTER_PROCESSES = 8, AFTER_OOMS = 6, AFTER_LEAKS = 3, AFTER_FINDINGS = 1 };

/* Begins a part of report.json; its outermost arrays stay whole. */
static void next_part(struct sl_json *j, unsigned after)
{
	sl_json_thin(j, 1, sl_json_limited() / 16 * after);
}

static void put_processes(struct sl_json *j, struct sl_json_frames *frames, struct sl_report *report)
{
	uint64_t after = sl_json_limited() / 16 * AFTER_PROCESSES, left = sl_json_left(); /* the run is written already */
	uint64_t each = left > after && report->process_count ? (left - after) / report->process_count : 0;

	sl_json_array(j, "processes");
	for (unsigned i = 0; i < report->process_count; i++) {
		sl_json_thin(j, 2, after + each * (report->process_count - 1 - i));
		sl_json_process(j, frames, &report->processes[i]);
	}
	sl_json_end(j);
}

static void put_findings(struct sl_json *j, struct sl_json_frames *frames, struct sl_report *report,
			 const struct sl_telemetry *telemetry)
{
	next_part(j, AFTER_OOMS);
	sl_answer_describe(report);
	sl_json_array(j, "ooms");
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].model->ooms.count; k++)
			put_oom(j, frames, &report->processes[i], &report->processes[i].model->ooms.item[k]);
	sl_json_end(j);
	next_part(j, AFTER_LEAKS);
	sl_json_array(j, "leaks");
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].leaks.count; k++)
			put_leak(j, frames, &report->processes[i], &report->processes[i].leaks.item[k]);
	sl_json_end(j);
	next_part(j, AFTER_FINDINGS);
	sl_json_array(j, "findings");
	for (size_t i = 0; i < report->findings.count; i++)
		json_finding(j, frames, report, &report->findings.item[i]);
	sl_json_end(j);
	sl_face_json(j, "answer", sl_answer_report(report), "");
	next_part(j, 0);
	sl_emit_selected(j, telemetry);
	sl_emit_telemetry(j, telemetry, report->options.emit);
}

void sl_outputs_limit(const struct sl_report *report)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		bytes += report->processes[i].trace->disk_bytes;
	sl_json_limit(sl_budget_written(bytes));
}

const char *sl_outputs_lost(char *text, size_t size)
{
	struct sl_json_lost lost = sl_json_lost();

	if (!lost.texts && !lost.entries)
		return NULL;
	snprintf(text, size,
		 "report.json, telemetry/ or oom/ would take more than %llu MB (STORMLOG_WRITE_MEGABYTES=N: N): %llu texts are cut "
		 "to %d bytes, and %llu "
		 "entries of lists left out",
		 (unsigned long long)(sl_json_limited() / 1000000), (unsigned long long)lost.texts, SL_JSON_CUT,
		 (unsigned long long)lost.entries);
	return text;
}

bool sl_json_report(struct sl_report *report, FILE *out)
{
	struct sl_json *j = sl_json_new(out, SL_JSON_INDENT);
	struct sl_json_frames frames = {0};
	struct sl_telemetry *telemetry = sl_sessions_telemetry(report);
	char text[256];

	sl_outputs_limit(report);
	sl_json_document(j, "stormlog.report", 1);
	next_part(j, AFTER_PROCESSES);
	put_run(j, report);
	put_processes(j, &frames, report);
	put_findings(j, &frames, report, telemetry);
	json_frames_put(j, &frames);
	sl_report_warn_of_symbols(report);
	sl_json_spare(sl_json_limited() / 16);
	sl_json_array(j, "warnings");
	for (size_t i = 0; i < report->warnings.count; i++)
		sl_json_string(j, NULL, report->warnings.item[i]);
	sl_json_thin(j, 0, 0); /* the last one says what was left out */
	if (sl_outputs_lost(text, sizeof(text))) {
		sl_report_warn(report, "%s", text);
		sl_json_string(j, NULL, text);
	}
	sl_json_end(j);
	sl_json_end(j);
	sl_json_newline(j);
	return sl_json_close(j);
}

const struct sl_output sl_output_json = {.name = "report.json", .file = sl_json_report};
