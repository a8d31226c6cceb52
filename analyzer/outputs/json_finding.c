/* SPDX-License-Identifier: MIT */
/* One finding in report.json: its kind, the line to look at, the figures behind it. */
#include <math.h>

#include "analyzer/base/stats.h"
#include "analyzer/gate/gate.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/place.h"

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

static const char *class_of(char out[32], const struct sl_finding *finding)
{
	const char *point = strchr(finding->id, '.');

	if (finding->class)
		return finding->class;
	snprintf(out, 32, "%.*s", point ? (int)(point - finding->id) : 31, finding->id);
	return out;
}

/*
 * An id that stays the same for a defect in every run: made from its class and the functions of its stack (gate/fingerprint.c), or
 * without a stack from the finding's id, rank and device.
 */
static void put_stable_id(struct sl_json *j, struct sl_process *process, const struct sl_finding *finding)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = process ? sl_process_stack(process, frames, finding->stack) : 0;
	char id[SL_FINGERPRINT_BYTES], what[96], class[32];

	if (count)
		snprintf(what, sizeof(what), "%s", class_of(class, finding));
	else
		snprintf(what, sizeof(what), "%s rank %lld device %d", finding->id,
			 process ? (long long)process->trace->header.rank : -1, finding->device);
	sl_fingerprint(id, 0, what, frames, count);
	sl_json_string(j, "stable_id", id);
}

static void put_evidence_of_kept(struct sl_json *j, const struct sl_process *process, const struct sl_finding *finding)
{
	struct sl_held_by holder;

	for (size_t i = 0; i < process->kept.count; i++) {
		const struct sl_kept *kept = &process->kept.item[i];

		/* the same stack may keep memory on several devices */
		if (!sl_stack_same(kept->track->stack, finding->stack) || kept->track->device != finding->device ||
		    kept->bytes != finding->bytes)
			continue;
		sl_json_uint(j, "births", kept->births);
		sl_json_uint(j, "kept", kept->blocks);
		sl_json_double(j, "per_second", kept->per_second);
		sl_json_double(j, "per_second_error", kept->per_second_error);
		sl_json_string(j, "unit", kept->count_only ? "objects" : "bytes");
		sl_json_uint(j, "first_ns", sl_process_unix(process, kept->track->first_ns));
		sl_json_uint(j, "since_ns", sl_process_unix(process, sl_leak_words_since(kept)));
		sl_json_uint(j, "last_ns", sl_process_unix(process, kept->track->last_ns));
		if (sl_held_by_take(process, kept->track, &holder, 1))
			sl_json_holder(j, "holder", &holder);
		return;
	}
}

static void put_evidence_of_oom(struct sl_json *j, const struct sl_process *process, const struct sl_finding *finding)
{
	for (size_t i = 0; i < process->model->ooms.count; i++) {
		const struct sl_oom *oom = &process->model->ooms.item[i];

		if (sl_process_unix(process, oom->time_ns) != finding->unix_ns)
			continue;
		sl_json_uint(j, "requested_bytes", oom->asked_bytes);
		sl_json_known_uint(j, "free_bytes", oom->free_bytes);
		sl_json_known_uint(j, "total_bytes", oom->total_bytes);
		sl_json_uint(j, "held_bytes", oom->live_bytes);
		sl_json_known_uint(j, "cached_bytes", process->accounts[i].cached);
		sl_json_known_uint(j, "largest_cached_bytes", process->accounts[i].largest_cached);
		sl_json_known_uint(j, "hidden_bytes", process->accounts[i].hidden);
		return;
	}
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
	if (process && (!strncmp(finding->id, "leak.", 5) || !strcmp(finding->id, "memory.filling")))
		put_evidence_of_kept(j, process, finding);
	else if (process && !strncmp(finding->id, "oom.", 4))
		put_evidence_of_oom(j, process, finding);
	else if (process && !strcmp(finding->id, "label.growing"))
		put_evidence_of_growth(j, process, finding);
	sl_json_end(j);
}

void sl_json_finding(struct sl_json *j, struct sl_json_frames *frames, const struct sl_report *report,
		     const struct sl_finding *finding)
{
	struct sl_process *process = finding->process < 0 ? NULL : &report->processes[finding->process];
	char class[32];

	sl_json_object(j, NULL);
	sl_json_string(j, "id", finding->id);
	sl_json_string(j, "class", class_of(class, finding));
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
