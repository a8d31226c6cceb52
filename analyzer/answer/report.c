/* SPDX-License-Identifier: MIT */
#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/report/api_names.h"
#include "analyzer/report/missing.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_SHOWN 20 /* of a process */
#define NOTES_TOLD  16

bool sl_answer_is_windows(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		if (!report->processes[i].model->snapshot)
			return false;
	return report->process_count > 0;
}

static void note_warnings(struct sl_make *make)
{
	struct sl_report *report = make->report;
	const struct sl_images *images = &report->images;
	const struct sl_run *ours = images->run_count ? &images->runs[report->run] : NULL;

	sl_report_warn_of_symbols(report);
	for (size_t i = 0; i < report->warnings.count; i++)
		sl_answers_note(make->to, "%s", report->warnings.item[i]);
	for (unsigned i = 0; ours && !sl_images_is_all(report->options.run) && i < images->run_count; i++)
		if (&images->runs[i] != ours && images->runs[i].id[0])
			sl_answers_note(make->to, "other run here: --run %s  (%u process%s)", images->runs[i].id,
					images->runs[i].images, images->runs[i].images == 1 ? "" : "es");
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];

		for (size_t k = 0; k < process->model->in_flight.count; k++) {
			const struct sl_hook *hook = sl_header_hook(process->model->header, process->model->in_flight.item[k].api);

			sl_answers_note(make->to, "%s: %s had not returned", SL_WHO(process), hook ? hook->plain : "a call");
		}
	}
}

/* What the recorders themselves said, each sentence once. */
static void note_recorders(struct sl_make *make)
{
	SL_VECTOR(const char *) told = {0};

	for (unsigned i = 0; i < make->report->process_count; i++) {
		const struct sl_defs *defs = &make->report->processes[i].trace->defs;

		for (size_t k = 0; k < defs->notes.count && told.count < NOTES_TOLD; k++) {
			size_t at = 0;

			while (at < told.count && strcmp(told.item[at], defs->notes.item[k]) != 0)
				at++;
			if (at < told.count)
				continue;
			*SL_PUSH(&told) = defs->notes.item[k];
			sl_answers_note(make->to, "%s: %s", SL_WHO(&make->report->processes[i]), defs->notes.item[k]);
		}
	}
	free(told.item);
}

/* What the program itself calls its memory. */
static void note_names(struct sl_make *make)
{
	for (unsigned i = 0; i < make->report->process_count; i++) {
		const struct sl_model *model = make->report->processes[i].model;

		for (size_t k = 0; k < model->called.count && k < NAMES_SHOWN; k++)
			sl_answers_note(make->to, "%s, so named by the program: %s at most, %s at the end",
					sl_defs_text(model->defs, model->called.item[k].text),
					SL_ANSWER_SIZE(model->called.item[k].peak_bytes),
					SL_ANSWER_SIZE(model->called.item[k].live_bytes));
	}
}

static bool is_bad(const struct sl_answers *answers)
{
	for (size_t i = 0; i < answers->item.count; i++)
		if (answers->item.item[i]->word < SL_WORD_OK)
			return true;
	return false;
}

const struct sl_answers *sl_answer_report(struct sl_report *report)
{
	struct sl_make make = {.report = report};

	if (report->answers)
		return report->answers;
	make.to = report->answers = sl_answers_new();
	sl_leak_list_take(&make.leaks, report);
	sl_make_ooms(&make);
	sl_make_leaks(&make);
	sl_make_findings(&make);
	if (sl_answer_is_windows(report))
		sl_make_windows(&make);
	else
		sl_make_dry(&make);
	if (!is_bad(make.to) && !make.to->item.count)
		sl_make_ok(&make);
	if (make.retried)
		sl_answers_note(make.to, "%s", make.retried);
	for (size_t i = 0; i < make.hints.count; i++)
		sl_answers_note(make.to, "%s%s%s", make.hints.item[i].text, make.hints.item[i].advice ? ": " : "",
				make.hints.item[i].advice ?: "");
	SL_DROP(&make.hints);
	note_names(&make);
	note_recorders(&make);
	sl_make_ranks(&make);
	sl_make_devices(&make);
	note_warnings(&make);
	sl_leak_list_free(&make.leaks);
	sl_answers_sort(make.to);
	sl_make_around(&make);
	sl_make_title(&make);
	return make.to;
}

struct sl_answers *sl_answer_error(struct sl_report *report, struct sl_process *process, size_t index)
{
	struct sl_make make = {.to = sl_answers_new(), .report = report};

	sl_make_title(&make);
	sl_make_error(&make, process, index);
	return make.to;
}

static void describe_error(struct sl_report *report, struct sl_process *process, size_t index)
{
	struct sl_make make = {.to = sl_answers_new(), .report = report};
	const struct sl_answer *answer = sl_make_error(&make, process, index);
	struct sl_account *account = &process->accounts[index];

	account->cause_text = sl_answer_join(answer, answer->headline, SL_LABEL_WHY);
	account->advice = sl_api_names_translate(process->model, sl_answer_join(answer, NULL, SL_LABEL_FIX));
	sl_answers_free(make.to);
}

/* What an error found has its sentences. */
static void describe_finding(const struct sl_report *report, struct sl_finding *finding)
{
	const struct sl_process *process = &report->processes[finding->process];
	size_t k = 0;

	if (finding->text)
		return;
	while (sl_process_unix(process, process->model->ooms.item[k].time_ns) != finding->unix_ns)
		k++;
	finding->text = sl_memory_copy(process->accounts[k].cause_text);
	finding->advice = process->accounts[k].advice ? sl_memory_copy(process->accounts[k].advice) : NULL;
}

void sl_answer_describe(struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];

		for (size_t k = 0; k < process->model->ooms.count; k++)
			if (!process->accounts[k].cause_text)
				describe_error(report, process, k);
	}
	for (size_t i = 0; i < report->findings.count; i++)
		if (!strcmp(sl_found_family(report->findings.item[i].kind), "oom"))
			describe_finding(report, &report->findings.item[i]);
		else
			sl_make_describe(report, &report->findings.item[i]);
}

struct sl_answers *sl_answer_title(struct sl_report *report)
{
	struct sl_make make = {.to = sl_answers_new(), .report = report};

	sl_make_title(&make);
	return make.to;
}
