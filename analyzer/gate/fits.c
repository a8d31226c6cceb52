/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"

#include "analyzer/answer/answer.h"
#include "analyzer/base/memory.h"
#include "analyzer/fit/answer.h"
#include "analyzer/fit/window.h"
#include "analyzer/report/place.h"

static struct sl_fits *add(struct sl_fits **list, unsigned *count, const char *session, int device)
{
	struct sl_fits *one;

	*list = sl_memory_must(realloc(*list, (*count + 1) * sizeof(**list)));
	one = &(*list)[(*count)++];
	*one = (struct sl_fits){.verdict = SL_FITS_UNKNOWN};
	snprintf(one->subject, sizeof(one->subject), device < 0 ? "%s" : "%s device %d", session, device);
	return one;
}

static void point(struct sl_fits *one, struct sl_process *process, uint32_t python)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	const struct sl_stack_frame *frame = sl_place_at(process, (struct sl_stack){.python = python}, frames);

	if (!frame || !frame->own)
		return;
	snprintf(one->file, sizeof(one->file), "%s", frame->file);
	one->line = frame->line;
}

static void judge(struct sl_fits *one, struct sl_process *process, const struct sl_fit_recording *recording, uint64_t capacity)
{
	struct sl_fit_question question = {.capacities = {capacity},
					   .capacity_count = 1,
					   .settings = {NULL},
					   .setting_count = 1,
					   .unscanned = !recording->window};
	char may[SL_FORMAT_BYTES], bytes[SL_FORMAT_BYTES], reserved[SL_FORMAT_BYTES], why[120];
	const struct sl_fit_outcome *o;
	struct sl_fit_subject subject;
	bool goes_on; /* past the end of what was recorded */

	question.ties = SL_FIT_GIVEN;
	sl_fit_ask(&subject, recording, &question);
	sl_answer_size(may, capacity);
	o = subject.answers ? &subject.answers->at[0] : NULL;
	goes_on = o && o->verdict == SL_FIT_UNKNOWN;
	if (!o)
		snprintf(one->message, sizeof(one->message), "%s: whether it fits in %s is not known: %s", one->subject, may,
			 sl_fit_why(&subject, why, sizeof(why)));
	else if (subject.answers->ambiguous[0] || goes_on)
		snprintf(one->message, sizeof(one->message), "%s: whether it fits in %s is not known: %s", one->subject, may,
			 !recording->others_known ? "no sample tells what contexts and other processes take"
			 : goes_on		  ? "the recorded run was refused what is granted there"
			 : recording->unsure	  ? "it depends on what the card takes outside of PyTorch"
			 : recording->window	  ? "it depends on what lay where before the window"
						  : "it depends on where the driver puts segments");
	else if (o->verdict == SL_FIT_FITS)
		snprintf(one->message, sizeof(one->message), "%s fits in %s, %s reserved by PyTorch's allocator%s%s", one->subject,
			 may, sl_answer_size(reserved, o->stats.peak_reserved), recording->window ? SL_FIT_CARD : "",
			 recording->reserved_start ? "; what ran before the window may have needed more" : "");
	else if (o->request)
		snprintf(one->message, sizeof(one->message),
			 "%s does not fit in %s: request %s, of %s, finds no room when %s are reserved", one->subject, may,
			 SL_NUMBER(o->request), sl_answer_size(bytes, o->bytes), sl_answer_size(reserved, o->stats.reserved));
	else if (recording->window)
		snprintf(one->message, sizeof(one->message), "%s does not fit in %s: the blocks from before the window do not",
			 one->subject, may);
	else
		snprintf(one->message, sizeof(one->message), "%s does not fit in %s: all but PyTorch's allocator has %s",
			 one->subject, may, sl_answer_size(bytes, o->bytes));
	if (o && !subject.answers->ambiguous[0] && !goes_on)
		one->verdict = o->verdict == SL_FIT_FITS ? SL_FITS_YES : SL_FITS_NO;
	if (one->verdict == SL_FITS_NO)
		point(one, process, recording->ops.item[o->at].python);
	sl_fit_subject_free(&subject);
}

static void judge_driver(struct sl_fits *one, const struct sl_fit_driver *driver, uint64_t capacity)
{
	static const struct {
		enum sl_fits_verdict verdict;
		const char *words;
	} verdicts[] = {[SL_FIT_FITS] = {SL_FITS_YES, "fits in"},
			[SL_FIT_FAILS] = {SL_FITS_NO, "does not fit in"},
			[SL_FIT_UNKNOWN] = {SL_FITS_UNKNOWN, "may or may not fit in"}};
	char may[SL_FORMAT_BYTES], live[SL_FORMAT_BYTES], why[120];
	enum sl_fit_verdict verdict = sl_fit_judge_driver(driver, capacity, why, sizeof(why));

	one->verdict = verdicts[verdict].verdict;
	snprintf(one->message, sizeof(one->message), "%s, %s live at most, %s %s: %s", one->subject,
		 sl_answer_size(live, driver->peak_bytes), verdicts[verdict].words, sl_answer_size(may, capacity), why);
}

/* True: the recording's last request may have found no room, but the program got over its errors, as no-oom judges them. */
static bool went_on(const struct sl_process *process, int device)
{
	for (const struct sl_oom *oom = NULL; (oom = sl_model_next_failure(process->model, oom));)
		if (oom->device == device && !oom->in_retry)
			return false;
	return process->model->ooms.count && process->model->ooms_total == process->model->ooms.count;
}

void sl_fits_go_on(const struct sl_process *process, struct sl_fit_process *fit)
{
	for (unsigned i = 0; i < fit->count; i++)
		fit->recordings[i].goes_on |= went_on(process, fit->recordings[i].device);
	for (unsigned i = 0; i < fit->driver_count; i++)
		fit->drivers[i].went_on = went_on(process, fit->drivers[i].device);
}

struct sl_fits *sl_fits_of(struct sl_report *report, uint64_t capacity, unsigned *count)
{
	struct sl_fits *list = NULL;

	*count = 0;
	for (unsigned p = 0; p < report->process_count; p++) {
		struct sl_process *process = &report->processes[p];
		struct sl_fit_process fit;
		const char *who;
		char *session;

		if (!process->trace)
			continue;
		session = sl_report_session(process->trace);
		who = sl_header_is_snapshot(&process->trace->header) ? sl_stacks_program(&process->trace->header) : session;
		if (report->images.images[process->image].summary) {
			struct sl_fits *one = add(&list, count, who, -1);

			snprintf(one->message, sizeof(one->message), "%s: a summary has no events: whether it fits needs the trace",
				 who);
			free(session);
			continue;
		}
		sl_fit_record(&fit, process->trace, session, true);
		sl_fits_go_on(process, &fit);
		for (unsigned i = 0; i < fit.count; i++) {
			struct sl_fits *one = add(&list, count, who, fit.recordings[i].device);

			judge(one, process, &fit.recordings[i], capacity);
		}
		for (unsigned i = 0; i < fit.driver_count; i++)
			judge_driver(add(&list, count, who, fit.drivers[i].device), &fit.drivers[i], capacity);
		sl_fit_forget(&fit);
		free(session);
	}
	return list;
}
