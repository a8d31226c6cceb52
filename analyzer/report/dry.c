/* SPDX-License-Identifier: MIT */
#include "analyzer/report/dry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/devices.h"
#include "common/tracefile.h"

static const char *value(const struct sl_header *header, const char *name)
{
	for (unsigned i = 0; i < header->dry_count; i++)
		if (!strcmp(header->dry[i].name, name))
			return header->dry[i].value;
	return NULL;
}

static uint64_t number(const struct sl_header *header, const char *name)
{
	const char *text = value(header, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

const char *sl_dry_card(const struct sl_header *header)
{
	static const char *const makers[] = {"NVIDIA ", "GeForce ", "Tesla "};
	const char *name = value(header, "name");

	for (size_t i = 0; name && i < SL_COUNT(makers); i++)
		if (!strncmp(name, makers[i], strlen(makers[i])))
			name += strlen(makers[i]);
	return header->dry_count ? name ? name : "a card without a name" : NULL;
}

static const struct sl_header *dry_one(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		if (report->processes[i].trace->header.dry_count)
			return &report->processes[i].trace->header;
	return NULL;
}

const char *sl_dry_report(const struct sl_report *report)
{
	const struct sl_header *header = dry_one(report);

	return header ? sl_dry_card(header) : NULL;
}

void sl_dry_head(FILE *out, const char *card)
{
	if (card)
		sl_escape_print(out, "DRY RUN on %s: no number was computed\n", card);
}

#define UNSURE "dry.unsure." /* begins the key of metadata that tells how much more a library may hold (dry/unsure.h) */

/* The most that a process may hold beyond its figures, or 0.  *what gets the use that its last word is about. */
static uint64_t unsure_of(const struct sl_defs *defs, const char **what)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < defs->metadata.count; i++)
		if (!strncmp(defs->metadata.item[i].key, UNSURE, strlen(UNSURE))) {
			bytes = strtoull(defs->metadata.item[i].value, NULL, 10);
			*what = defs->metadata.item[i].key + strlen(UNSURE);
		}
	return bytes;
}

uint64_t sl_dry_span(const struct sl_trace *trace)
{
	const struct sl_header *header = &trace->header;
	const char *what;

	return number(header, "context_high") + number(header, "kernels_high") - number(header, "context_low") -
	       number(header, "kernels_low") + unsure_of(&trace->defs, &what);
}

/* What handles of cuBLAS took. */
static uint64_t handles_of(const struct sl_model *model)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < model->sites.count; i++)
		if (sl_model_is_cublas(sl_model_library(model, &model->sites.item[i])))
			bytes += model->tracks.item[model->sites.item[i].track].most_bytes;
	return bytes;
}

bool sl_dry_need(const struct sl_report *report, struct sl_dry_need *need)
{
	const struct sl_header *header = dry_one(report);
	const struct sl_shared_device *fullest = NULL;
	uint64_t limit, handles = 0;

	for (unsigned i = 0; header && i < report->device_count; i++)
		if (report->devices[i].known_peak_bytes != SL_UNKNOWN &&
		    (!fullest || report->devices[i].known_peak_bytes > fullest->known_peak_bytes))
			fullest = &report->devices[i];
	if (!fullest || !number(header, "memory")) /* a snapshot of a dry run has only the name */
		return false;
	limit = sl_header_limit(header);
	*need = (struct sl_dry_need){
		.job = fullest->known_peak_bytes,
		.low = fullest->user_count * (number(header, "context_low") + number(header, "kernels_low")),
		.high = fullest->user_count * (number(header, "context_high") + number(header, "kernels_high")),
		.capacity = number(header, "memory"),
		.measured = number(header, "measured"),
	};
	need->limited = limit < need->capacity;
	need->capacity = need->limited ? limit : need->capacity;
	for (unsigned i = 0; i < report->process_count; i++) {
		need->unsure += unsure_of(report->processes[i].model->defs, &need->unsure_of);
		handles += need->measured ? 0 : handles_of(report->processes[i].model);
	}
	handles = handles < need->job ? handles : need->job;
	need->job -= handles;
	need->high += handles;
	return true;
}

bool sl_dry_depends(const struct sl_dry_need *need)
{
	return need->job + need->unsure + need->high > need->capacity;
}

/* The line number `index` of those that metadata tells of, whose keys begin so (dry/python/stormlog_dry.py). */
static bool line_at(const struct sl_process *process, const char *begin, size_t index, struct sl_dry_read *read)
{
	const struct sl_defs *defs = process->model->defs;

	for (size_t i = 0; i < defs->metadata.count; i++) {
		const struct sl_metadata *entry = &defs->metadata.item[i];

		if (strncmp(entry->key, begin, strlen(begin)) || index--)
			continue;
		*read = (struct sl_dry_read){entry->key + strlen(begin), entry->value};
		return true;
	}
	return false;
}

bool sl_dry_read(const struct sl_process *process, size_t index, struct sl_dry_read *read)
{
	return line_at(process, "dry.read.", index, read);
}

bool sl_dry_weights(const struct sl_process *process, struct sl_dry_weights *weights)
{
	const struct sl_defs *defs = process->model->defs;
	int class = 0, line = 0;

	for (size_t i = defs->metadata.count; i-- && !line;)
		if (!strcmp(defs->metadata.item[i].key, "dry.weights")) {
			sscanf(defs->metadata.item[i].value, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %n%*s %n",
			       &weights->placed, &weights->total, &weights->wide, &weights->own, &class, &line);
			weights->class = defs->metadata.item[i].value + class;
			weights->line = defs->metadata.item[i].value + line;
		}
	return line > 0;
}

bool sl_dry_unknown(const struct sl_process *process, size_t index, struct sl_dry_read *unknown)
{
	return line_at(process, "dry.unknown.", index, unknown);
}

bool sl_dry_uncounted(const struct sl_report *report, char *out, size_t size)
{
	struct sl_dry_read unknown;
	size_t at = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; sl_dry_unknown(&report->processes[i], k, &unknown) && at < size; k++)
			at += (size_t)snprintf(out + at, size - at, "%s%s (%s)", at ? ", " : "not counted: ", unknown.what,
					       sl_paths_name(unknown.line));
	return at > 0;
}

const char *sl_dry_end(const struct sl_process *process)
{
	const struct sl_metadata *entry = sl_defs_metadata(process->model->defs, "dry.end");

	return entry ? entry->value : NULL;
}

/* What the launcher told the job; NULL: nothing. */
static const char *read_variable(const struct sl_header *header, const char *variable)
{
	for (unsigned i = 0; i < header->environment_count; i++)
		if (!strcmp(header->environment[i].name, variable))
			return header->environment[i].value;
	return NULL;
}

const char *sl_dry_noted(const struct sl_report *report, const char *key)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_metadata *entry = sl_defs_metadata(report->processes[i].model->defs, key);

		if (entry && entry->value)
			return entry->value;
	}
	return NULL;
}

/* --steps; 0: none was given. */
static uint64_t asked_steps(const struct sl_header *header)
{
	const char *steps = read_variable(header, "STORMLOG_DRY_STEPS");

	return steps ? strtoull(steps, NULL, 10) : 0;
}

#define STEPS_MIN 2 /* of an optimizer: from the second one on its state is there beside the activations */

const char *sl_dry_until(const struct sl_report *report)
{
	const struct sl_header *header = dry_one(report);

	return header && !sl_dry_unanswered(report) ? read_variable(header, "STORMLOG_DRY_UNTIL") : NULL;
}

/* SL_UNKNOWN: no PyTorch was loaded, or an earlier version recorded it. */
static uint64_t steps_of(const struct sl_process *process)
{
	const struct sl_metadata *entry = sl_defs_metadata(process->model->defs, "dry.steps");

	return entry ? strtoull(entry->value, NULL, 10) : SL_UNKNOWN;
}

/* "3 train.py:88, train.py:90": the last step with lines that read a value that decides an end, and those; NULL: none did. */
static const char *deciding(const struct sl_process *process)
{
	const struct sl_metadata *entry = sl_defs_metadata(process->model->defs, "dry.late");

	return entry ? entry->value : NULL;
}

uint64_t sl_dry_early(const struct sl_report *report, struct sl_dry_read *read)
{
	struct sl_dry_read one;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		uint64_t asked = asked_steps(&process->trace->header), wanted = asked > STEPS_MIN ? asked : STEPS_MIN;
		const char *lines = deciding(process);
		size_t count = 0;

		if (!lines || sl_dry_end(process) || steps_of(process) >= wanted)
			continue;
		for (size_t k = 0; sl_dry_read(process, k, &one); k++)
			if (strstr(lines, sl_paths_name(one.line))) {
				*read = one;
				count++;
			}
		if (count)
			return wanted;
	}
	return 0;
}

bool sl_dry_is_size(const struct sl_dry_read *read)
{
	return strstr(read->what, " elements") != NULL; /* "mask of 0 of 1000 elements" */
}

bool sl_dry_copied(const struct sl_report *report, struct sl_dry_read *read)
{
	static const char *const whole[] = {"numpy of float", "tolist of float", "numpy of bfloat", "tolist of bfloat"};

	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; sl_dry_read(&report->processes[i], k, read); k++)
			for (size_t w = 0; w < SL_COUNT(whole); w++)
				if (!strncmp(read->what, whole[w], strlen(whole[w])))
					return true;
	return false;
}

bool sl_dry_shape(const struct sl_report *report, struct sl_dry_read *read)
{
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; sl_dry_read(&report->processes[i], k, read); k++)
			if (sl_dry_is_size(read))
				return true;
	return false;
}

enum sl_refuser sl_dry_refused(const struct sl_report *report)
{
	enum sl_refuser found = SL_REFUSER_NONE;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_model *model = report->processes[i].model;

		for (const struct sl_oom *oom = NULL; (oom = sl_model_next_failure(model, oom));) {
			enum sl_refuser by = sl_refuser_of(&report->processes[i], oom);

			if (oom->in_retry)
				continue;
			if (!sl_refuser_words(by))
				return by;
			found = by;
		}
		if (model->ooms_total > model->ooms.count)
			return SL_REFUSER_CARD;
	}
	return found;
}

bool sl_dry_ran_out(const struct sl_report *report)
{
	enum sl_refuser by = sl_dry_refused(report);

	return by && !sl_refuser_words(by);
}

const char *sl_dry_of(const struct sl_report *report, char *out, size_t size)
{
	const struct sl_header *header = dry_one(report);
	uint64_t limit = header ? sl_header_limit(header) : UINT64_MAX;

	if (header && limit < number(header, "memory"))
		snprintf(out, size, "%s of %s (--limit)", SL_SIZE(limit), sl_dry_card(header));
	else
		snprintf(out, size, "%s", header ? sl_dry_card(header) : "");
	return out;
}

uint64_t sl_dry_steps(const struct sl_report *report, uint64_t *asked)
{
	uint64_t max_steps = SL_UNKNOWN, steps;

	*asked = 0;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];

		steps = steps_of(process);
		if (steps == SL_UNKNOWN || (max_steps != SL_UNKNOWN && steps <= max_steps))
			continue;
		max_steps = steps;
		*asked = asked_steps(&process->trace->header);
	}
	return max_steps;
}

const char *sl_dry_late(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		const char *lines = deciding(process), *first = lines ? strchr(lines, ' ') : NULL;

		if (first && !sl_dry_end(process) && strtoull(lines, NULL, 10) + 1 >= steps_of(process))
			return first + 1;
	}
	return NULL;
}

bool sl_dry_ran(const struct sl_report *report, char *out, size_t size)
{
	uint64_t asked, steps = sl_dry_steps(report, &asked), early;
	const char *late = sl_dry_late(report);
	struct sl_dry_read read;
	char of[32] = "";

	if (steps == SL_UNKNOWN || (!steps && !asked && !late)) /* not each program trains */
		return false;
	early = sl_dry_early(report, &read);
	if (asked > steps)
		snprintf(of, sizeof(of), " of %s", SL_NUMBER(asked));
	snprintf(out, size, "%s%s optimizer step%s ran%s%s%s", SL_NUMBER(steps), of, steps == 1 && !*of ? "" : "s",
		 late && !early ? "; a value that was not computed may have ended it (" : "", late && !early ? late : "",
		 late && !early ? ")" : "");
	return true;
}

/*
 * The process that started a worker ends it, and tells how the run ended: a pool terminates its workers.  It may have used no
 * device: vLLM kills its engine.
 */
static bool is_worker(const struct sl_report *report, const struct sl_process *process)
{
	const struct sl_header *header = &process->trace->header;

	if (process->parent || sl_trace_ended(process->trace) != SL_ENDED_KILLED)
		return process->parent != NULL;
	return sl_devices_recorded(report, header->host, header->ppid) || sl_defs_metadata(process->model->defs, "dry.server.up");
}

const char *sl_dry_unfinished(const struct sl_report *report)
{
	static const char *const ends[SL_ENDED_COUNT] = {
		[SL_ENDED_RUNNING] = "it is still running",
		[SL_ENDED_KILLED] = "it was killed",
		[SL_ENDED_FAILED] = "it ended with a status other than 0",
		[SL_ENDED_UNKNOWN] = "how it ended was not recorded",
	};
	static char ended[400];
	enum sl_ended worst = SL_ENDED_COMPLETED, one;
	const char *refused;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];

		if (is_worker(report, process))
			continue;
		if (sl_dry_end(process) && !asked_steps(&process->trace->header)) {
			snprintf(ended, sizeof(ended),
				 "stormlog ended it once its memory had settled: run it again with --steps %" PRIu64,
				 steps_of(process));
			return ended;
		}
		one = sl_trace_ended(process->trace);
		worst = one < worst ? one : worst;
	}
	refused = worst == SL_ENDED_FAILED ? sl_dry_noted(report, "dry.refused") : NULL;
	if (!refused)
		return ends[worst];
	snprintf(ended, sizeof(ended), "it must not write %s: --allow-writes DIR opens a folder", refused);
	return ended;
}

bool sl_dry_unanswered(const struct sl_report *report)
{
	char mark[4096];
	bool marked = false;

	for (unsigned i = 0; i < report->path_count; i++) {
		snprintf(mark, sizeof(mark), "%s/" SL_DRY_UNANSWERED, report->paths[i]);
		marked |= !access(mark, F_OK);
	}
	return marked && !sl_dry_unfinished(report);
}

void sl_dry_say(const struct sl_dry_need *need, char *out, size_t size)
{
	char all[SL_FORMAT_SPAN_BYTES], outside[SL_FORMAT_SPAN_BYTES], more[128] = "";

	if (need->unsure)
		snprintf(more, sizeof(more), ", up to %s more for %s", SL_SIZE(need->unsure), need->unsure_of);
	snprintf(out, size, "%s of %s: %s of the job%s, and %s outside of it (%s)",
		 sl_format_span(all, need->job + need->low, need->job + need->unsure + need->high), SL_SIZE(need->capacity),
		 SL_SIZE(need->job), more, sl_format_span(outside, need->low, need->high),
		 need->measured ? "context and code, measured" : "context, code and cuBLAS, not measured");
}
