/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <sys/stat.h>

#include "analyzer/catalogue/catalogue.h"

#include "analyzer/answer/answer.h"
#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/owners.h"
#include "common/fnv.h"

#define METRICS_OF_ONE (SL_CARD_METRICS / SL_MEASURE_OF_COUNT) /* the largest of each sort */

static int64_t or_minus_one(uint64_t value)
{
	return value > INT64_MAX ? -1 : (int64_t)value;
}

/* ---- who and when */

/* What the program reported takes precedence over what was given at its start. */
static const char *metadata(const struct sl_report *report, const char *key)
{
	const struct sl_header *header = &report->processes[0].trace->header;
	const struct sl_metadata *entry = sl_defs_metadata(report->processes[0].model->defs, key);

	if (entry)
		return entry->value;
	for (unsigned i = 0; i < header->metadata_count; i++)
		if (!strcmp(header->metadata[i].name, key))
			return header->metadata[i].value;
	return NULL;
}

static const char *some(const char *text)
{
	return text && *text ? text : NULL;
}

static const char *project_of(const struct sl_report *report)
{
	const char *project = some(metadata(report, "project")), *repository = some(metadata(report, "git.repository"));
	const char *folder = some(report->processes[0].trace->header.cwd);

	return project ? project : repository ? repository : folder ? some(sl_paths_name(folder)) : NULL;
}

static const char *command_of(struct sl_card *card, const struct sl_header *header)
{
	char *text = NULL;
	const char *copy;
	size_t size;
	FILE *out = sl_memory_must(open_memstream(&text, &size));

	for (unsigned i = 0; i < header->argc; i++)
		fprintf(out, "%s%s", i ? " " : "", header->argv[i] ? header->argv[i] : "");
	sl_memory_must(fclose(out) ? NULL : text);
	copy = sl_card_keep(card, *text ? text : header->exe);
	free(text);
	return copy;
}

/* The worst status of its processes. */
static const char *status_of(const struct sl_report *report)
{
	enum sl_ended worst = SL_ENDED_COMPLETED;

	for (unsigned i = 0; i < report->process_count; i++)
		if (sl_trace_ended(report->processes[i].trace) < worst)
			worst = sl_trace_ended(report->processes[i].trace);
	return sl_ended_names[worst];
}

static void take_identity(struct sl_card *card, const struct sl_report *report)
{
	const struct sl_header *first = &report->processes[0].trace->header;

	card->identity = card->run_id = sl_card_keep(card, first->run_id);
	card->job_id = sl_card_keep(card, first->job_id);
	card->project = sl_card_keep(card, project_of(report));
	card->tag = sl_card_keep(card, some(first->tag) ? first->tag : sl_stacks_program(first));
	card->command = command_of(card, first);
	card->host = sl_card_keep(card, first->host);
	card->status = status_of(report);
	card->commit_id = sl_card_keep(card, metadata(report, "commit") ?: metadata(report, "git.commit"));
	card->branch = sl_card_keep(card, metadata(report, "git.branch"));
	card->started_ns = report->started_unix_ns ? or_minus_one(report->started_unix_ns) : -1;
	card->ended_ns = report->ended_unix_ns ? or_minus_one(report->ended_unix_ns) : -1;
}

/* ---- figures */

static void take_figures(struct sl_card *card, const struct sl_report *report)
{
	int64_t world = sl_report_world(report);
	uint64_t events;

	card->lost = or_minus_one(sl_missing_events(report, &events));
	card->processes = report->process_count;
	card->devices = report->device_count;
	card->ooms = card->findings = 0;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		struct sl_card_session session = {.id = process->session_id,
						  .host = process->trace->header.host,
						  .status = sl_ended_names[sl_trace_ended(process->trace)],
						  .pid = process->trace->header.pid,
						  .rank = process->trace->header.rank,
						  .bundle = process->model->ooms_total > 0};

		card->ooms += (int64_t)process->model->ooms_total;
		sl_card_add_session(card, &session);
	}
	card->ranks = world > 0 ? world : report->process_count;
	for (size_t i = 0; i < report->findings.count; i++)
		card->findings += strcmp(report->findings.item[i].severity, "info") != 0;
	if (report->findings.count) {
		card->finding = sl_found_name(report->findings.item[0].kind);
		card->severity = report->findings.item[0].severity;
	}
}

static int64_t *total_of(struct sl_card *card, const char *key)
{
	return !strcmp(key, "peak")	? &card->peak_bytes
	       : !strcmp(key, "hidden") ? &card->hidden_bytes
	       : !strcmp(key, "leak")	? &card->leak_bytes
					: NULL;
}

/* A figure that one process could not tell is unknown for the whole run. */
static void take_metrics(struct sl_card *card, struct sl_report *report)
{
	struct sl_measures measures;
	unsigned counts[SL_MEASURE_OF_COUNT] = {0};

	sl_measures_take(&measures, report);
	for (size_t i = 0; i < measures.list.count; i++) {
		const struct sl_measure *measure = &measures.list.item[i];
		int64_t bytes = measure->unknown ? -1 : or_minus_one(measure->bytes);

		if (measure->of == SL_MEASURE_TOTAL) {
			if (total_of(card, measure->key))
				*total_of(card, measure->key) = bytes;
			continue;
		}
		if (counts[measure->of]++ == METRICS_OF_ONE) {
			card->left_out++;
			counts[measure->of]--;
			continue;
		}
		sl_card_add_metric(card, sl_measure_names[measure->of], measure->key, measure->what, bytes);
		for (size_t k = 0; k < measure->lines.list.count; k++)
			sl_card_add_name(card, SL_NAME_PLACE, measure->lines.list.item[k].what);
	}
	sl_measures_free(&measures);
}

/* ---- names */

/* met: the texts of each kind */
static void add_once(struct sl_card *card, struct sl_map *met, enum sl_name_kind kind, const char *text)
{
	if (text && *text && !(*sl_map_at(&met[kind], text))++)
		sl_card_add_name(card, kind, text);
}

static void add_stack(struct sl_card *card, struct sl_map *met, struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);

	for (unsigned i = 0; i < count; i++) {
		add_once(card, met, SL_NAME_FUNCTION, frames[i].function);
		add_once(card, met, SL_NAME_FILE, frames[i].file ? sl_paths_name(frames[i].file) : NULL);
		add_once(card, met, SL_NAME_LIBRARY,
			 frames[i].python || !frames[i].module ? NULL : sl_paths_name(frames[i].module));
	}
}

/* Metadata that a process was given, and its own. */
static void add_metadata(struct sl_card *card, struct sl_map *met, const struct sl_process *process)
{
	const struct sl_header *header = &process->trace->header;
	const struct sl_defs *defs = process->model->defs;
	struct sl_arena arena = {0};

	for (size_t i = 0; i < defs->metadata.count + header->metadata_count; i++) {
		bool from_header = i >= defs->metadata.count;
		const struct sl_pair *given = from_header ? &header->metadata[i - defs->metadata.count] : NULL;

		add_once(card, met, SL_NAME_META,
			 sl_arena_printf(&arena, "%s=%s", from_header ? given->name : defs->metadata.item[i].key,
					 from_header ? given->value ?: "" : defs->metadata.item[i].value));
	}
	sl_arena_free(&arena);
}

/* The stacks that have metrics: those that held something at a peak, and leaks. */
static void take_names(struct sl_card *card, struct sl_report *report)
{
	struct sl_map met[SL_NAME_KIND_COUNT] = {0};
	uint64_t bytes;

	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		const struct sl_model *model = process->model;

		add_metadata(card, met, process);
		for (size_t k = 0; k < model->labels.count; k++)
			add_once(card, met, SL_NAME_LABEL, sl_defs_text(model->defs, model->labels.item[k].text));
		for (size_t k = 0; k < model->holders.count; k++)
			if (model->holders.item[k].peak_bytes)
				add_once(card, met, SL_NAME_LIBRARY, model->libraries.item[model->holders.item[k].library]);
		for (const struct sl_site *site = NULL;
		     (site = sl_owners_next(process, SL_DEVICE_ANY, SL_WEIGH_PEAK, site, &bytes));)
			add_stack(card, met, process, site->stack);
		for (size_t k = 0; k < process->leaks.count; k++)
			add_stack(card, met, process, process->leaks.item[k].stack);
	}
	for (unsigned kind = 0; kind < SL_NAME_KIND_COUNT; kind++)
		sl_map_free(&met[kind]);
}

/* A part of the run cannot be read, so what is left tells neither how the run ended nor its figures. */
static void forget_figures(struct sl_card *card)
{
	card->status = "damaged";
	card->finding = card->severity = card->verdict = NULL;
	card->left_out += card->metrics.count;
	card->left_out += !card->left_out; /* a place that is not listed is unknown, and not empty */
	card->metrics.count = 0;
	for (unsigned i = 0; i < sl_card_field_count; i++)
		if (sl_card_fields[i].type == SL_CARD_BYTES || sl_card_fields[i].type == SL_CARD_COUNT)
			*sl_card_number(card, &sl_card_fields[i]) = -1;
}

static bool is_damaged(const struct sl_report *report)
{
	if (sl_missing_unreadable(report))
		return true;
	for (unsigned i = 0; i < report->images.image_count; i++) {
		const struct sl_image *image = &report->images.images[i];
		const char *file = image->file_count ? image->files[0] : image->ring;

		if (file && sl_archive_is_torn(file))
			return true;
	}
	return false;
}

static void card_take_verdict(struct sl_card *card, const struct sl_answers *answers)
{
	const struct sl_answer *first = answers->item.count ? answers->item.item[0] : NULL;
	char *line = first ? sl_memory_print("%s: %s", sl_answer_word(first->word), first->headline) : NULL;

	card->verdict = sl_card_keep(card, line);
	free(line);
}

void sl_card_take(struct sl_card *card, struct sl_report *report, const char *source)
{
	take_identity(card, report);
	card->source = sl_card_keep(card, source);
	card->dry = sl_card_keep(card, sl_dry_report(report));
	take_figures(card, report);
	take_metrics(card, report);
	take_names(card, report);
	card_take_verdict(card, sl_answer_report(report));
	if (is_damaged(report))
		forget_figures(card);
}

void sl_card_measures(const struct sl_card *card, struct sl_measures *measures)
{
	static const char *const totals[] = {"peak", "hidden", "leak"};

	*measures = (struct sl_measures){.dry_card = card->dry ? sl_memory_copy(card->dry) : NULL};
	for (size_t i = 0; i < SL_COUNT(totals); i++) {
		int64_t bytes = *total_of((struct sl_card *)card, totals[i]);
		struct sl_measure *measure = sl_measures_add(measures, SL_MEASURE_TOTAL, totals[i], totals[i]);

		measure->bytes = bytes < 0 ? SL_UNKNOWN : (uint64_t)bytes;
	}
	for (size_t i = 0; i < card->metrics.count; i++) {
		const struct sl_card_metric *metric = &card->metrics.item[i];
		struct sl_measure *measure;
		unsigned of = 0;

		while (of < SL_MEASURE_OF_COUNT && strcmp(sl_measure_names[of], metric->of) != 0)
			of++;
		if (of == SL_MEASURE_OF_COUNT)
			continue;
		measure = sl_measures_add(measures, of, metric->key, metric->what ? metric->what : metric->key);
		measure->bytes = metric->bytes < 0 ? SL_UNKNOWN : (uint64_t)metric->bytes;
	}
	sl_measures_sort(measures);
}

/* The card of a log: what the text of a job tells, where nothing was recorded. */

struct sl_log *sl_card_read_log(const char *path, struct stat *st)
{
	/* what is written while it is read makes it a new file */
	return sl_log_kind_of_file(path) == SL_LOG_IS_TEXT && !stat(path, st) ? sl_log_of((char *const[]){(char *)path, NULL}, true)
									      : NULL;
}

void sl_card_take_log(struct sl_card *card, const struct sl_log *log, const char *source, int64_t ended_ns)
{
	const struct sl_log_failure *failure = log->first;
	bool fails = log->verdict >= SL_LOG_VERDICT_host_memory;
	struct sl_answers *answers = sl_answer_log(log, source ? sl_paths_name(source) : "log");
	char text[300];

	if (source)
		snprintf(text, sizeof(text), "log-%016" PRIx64, sl_fnv_text(source));
	card->identity = source ? sl_card_keep(card, text) : NULL;
	card->run_id = card->identity;
	card->source = sl_card_keep(card, source);
	card->tag = sl_card_keep(card, sl_paths_name(source));
	card->command = sl_card_keep(card, *log->command ? log->command : sl_paths_name(source) ?: "log");
	card->status = log->verdict == SL_LOG_VERDICT_host_memory ? "killed" : fails ? "failed" : "unknown";
	card->finding = log->verdict ? sl_log_verdicts[log->verdict] : NULL;
	card_take_verdict(card, answers);
	sl_answers_free(answers);
	card->severity = log->verdict ? fails ? "critical" : "info" : NULL;
	card->ended_ns = ended_ns;
	card->ooms = log->verdict == SL_LOG_VERDICT_host_memory ? 0 : log->count;
	for (unsigned i = 0; failure && i < failure->trace.frames; i++) {
		const char *file = sl_paths_name(failure->trace.frame[i].file);

		snprintf(text, sizeof(text), "%s:%" PRIu32, file, failure->trace.frame[i].line);
		sl_card_add_name(card, SL_NAME_PLACE, text);
		sl_card_add_name(card, SL_NAME_FILE, file);
		if (*failure->trace.frame[i].function)
			sl_card_add_name(card, SL_NAME_FUNCTION, failure->trace.frame[i].function);
	}
}
