/* SPDX-License-Identifier: MIT */
/* Snapshots of PyTorch's: what its window held at most, or what its end holds. */
#include <stdio.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/fit/answer.h"
#include "analyzer/fit/window.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/window_facts.h"

#define FIT_REQUESTS   300000u	/* a window with more is left to the verb fit */
#define FIT_OPERATIONS 1000000u /* of one search */

/* As torch.cuda.memory_allocated() counts, and the rows of the table. */
static uint64_t tensors_of(const struct sl_device_state *device)
{
	return device->torch_at_peak.allocated_bytes;
}

/* The device on which most was asked for; NULL: nothing was. */
static const struct sl_device_state *fullest(const struct sl_process *process)
{
	const struct sl_device_state *largest = NULL;

	for (int d = 1; d <= SL_DEVICES_MAX; d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (state && state->known_peak && (!largest || tensors_of(state) > tensors_of(largest)))
			largest = state;
	}
	return largest;
}

static void say_fit(struct sl_make *make, struct sl_answer *answer, const struct sl_fit_recording *recording)
{
	struct sl_fit_question question = {.settings = {NULL, "expandable_segments:True"},
					   .setting_count = recording->settings.expandable ? 1 : 2,
					   .of_allocator = true,
					   .scan_max = FIT_OPERATIONS,
					   .ties = SL_FIT_GIVEN};
	struct sl_fit_subject subject;
	char why[120];

	sl_fit_ask(&subject, recording, &question);
	if (!subject.answers || subject.answers[0].high == SL_UNKNOWN) {
		sl_answer_say(answer, SL_LABEL_OPEN, "the need: %s",
			      subject.answers ? SL_FIT_SPENT : sl_fit_why(&subject, why, sizeof(why)));
	} else {
		sl_answer_say(answer, SL_LABEL_NEED, "%s%s, and the CUDA context (about 0.5 GiB)",
			      SL_ANSWER_SIZE(subject.answers[0].high),
			      recording->ooms		  ? " to get past the request that was refused"
			      : recording->reserved_start ? " for this window"
							  : "");
		if (question.setting_count > 1 && subject.answers[1].high != SL_UNKNOWN &&
		    subject.answers[1].high < subject.answers[0].low)
			sl_answer_say(answer, SL_LABEL_LESS, "%s with expandable_segments:True",
				      SL_ANSWER_SIZE(subject.answers[1].high));
	}
	sl_fit_subject_free(&subject);
}

/* The smallest capacities for the device that held most. */
static void ask_fit(struct sl_make *make, struct sl_answer *answer, struct sl_process *process)
{
	const struct sl_device_state *device = fullest(process);
	struct sl_window_facts facts;
	struct sl_fit_process fit;

	if (!device || !sl_window_facts(process->model->header, device->device, &facts) || facts.events < SL_WINDOW_FEW)
		return;
	sl_fit_record(&fit, process->trace, process->session_id, true);
	for (unsigned i = 0; i < fit.count; i++)
		if (fit.recordings[i].device == device->device && fit.recordings[i].requests <= FIT_REQUESTS)
			say_fit(make, answer, &fit.recordings[i]);
	sl_fit_forget(&fit);
}

/* The file has no stack of most of what was held. */
static bool has_no_stacks(struct sl_process *process, const struct sl_device_state *device)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	uint64_t without = 0, bytes;

	for (const struct sl_site *site = NULL; (site = sl_owners_next(process, device->device, SL_WEIGH_PEAK, site, &bytes));) {
		unsigned count = site->kind == SL_KIND_block ? sl_process_stack(process, frames, site->stack) : 0;

		if (count && frames[count - 1].function && !strcmp(frames[count - 1].function, "no stack in the file"))
			without += bytes;
	}
	return without > tensors_of(device) / 2;
}

/* " at 203 us of the window"; "": the file has no times. */
static const char *when(char out[80], uint64_t ns)
{
	out[0] = 0;
	if (ns)
		snprintf(out, 80, " at %s of the window", SL_SPAN(ns));
	return out;
}

static void say_cache(struct sl_answer *answer, struct sl_process *process, const struct sl_device_state *device)
{
	struct sl_window_cache cache;
	char line[SL_MAKE_LINE], at[80];

	if (!sl_window_cache(process->model->header, device->device, &cache))
		return;
	sl_make_line(line, process, cache.emptied_stack);
	if (cache.emptied)
		sl_answer_say(answer, SL_LABEL_NOTE, "empty_cache() gave back %s in %s call%s%s%s.",
			      SL_ANSWER_SIZE(cache.emptied_bytes), SL_NUMBER(cache.emptied), cache.emptied == 1 ? "" : "s, most",
			      *line ? " at " : "", line);
	if (strcmp(SL_SIZE(cache.peak), SL_SIZE(device->torch_at_peak.reserved_bytes)) != 0)
		sl_answer_say(answer, SL_LABEL_NOTE, "%s were reserved at most, with %s of tensors%s.", SL_ANSWER_SIZE(cache.peak),
			      SL_ANSWER_SIZE(cache.peak_tensors), when(at, cache.peak_ns));
}

static void put_stackless(struct sl_answer *answer)
{
	sl_answer_say(answer, SL_LABEL_OPEN, "which line asked: the file has no stacks");
	sl_answer_say(answer, SL_LABEL_FIX, "record again with stacks, before the model is made:");
	sl_answer_say(answer, SL_LABEL_FIX, "\n  torch.cuda.memory._record_memory_history()");
	sl_answer_say(answer, SL_LABEL_FIX, "\nor, without a change of code:  stormlog-run -- python ...");
}

/* Whether the next smaller card would do. */
static void next_fit(struct sl_make *make, struct sl_answer *answer, uint64_t bytes)
{
	static const unsigned cards[] = {8, 16, 24, 48, 80, 141, 192}; /* GB that cards are sold with */
	size_t above = 0;

	while (above + 1 < SL_COUNT(cards) && bytes >> 30 >= cards[above])
		above++;
	if (above)
		sl_make_next(make, answer, sl_answers_text(make->to, "fit --capacity %uG,%uG", cards[above - 1], cards[above]),
			     "cards and settings");
}

static void add_window(struct sl_make *make, struct sl_process *process)
{
	const struct sl_device_state *device = fullest(process);
	struct sl_window_facts facts = {0};
	struct sl_answer *answer;
	bool window, stackless;

	if (!device) {
		answer = sl_answer_add(make->to, SL_WORD_NOTHING, "run.ok");
		sl_answer_headline(answer, "PyTorch's allocator held nothing");
		sl_answer_say(answer, SL_LABEL_OPEN, "whether CUDA was used: all may have been freed and given back");
		return;
	}
	sl_window_facts(process->model->header, device->device, &facts);
	window = facts.events >= SL_WINDOW_FEW;
	stackless = has_no_stacks(process, device);
	answer = sl_answer_add(make->to, window ? SL_WORD_OK : SL_WORD_HELD, window ? "run.ok" : "memory.held");
	answer->process = (int)(process - make->report->processes);
	answer->device = device->device;
	answer->bytes = tensors_of(device);
	if (window)
		sl_answer_headline(answer, "no memory ran out, %s of tensors and %s reserved", SL_ANSWER_SIZE(tensors_of(device)),
				   SL_ANSWER_SIZE(device->torch_at_peak.reserved_bytes));
	else
		sl_answer_headline(answer, "%s of tensors as the file was written, %s reserved", SL_ANSWER_SIZE(tensors_of(device)),
				   SL_ANSWER_SIZE(device->torch_at_peak.reserved_bytes));
	sl_answer_figure(answer, "tensors", "bytes", (double)tensors_of(device));
	sl_answer_figure(answer, "reserved", "bytes", (double)device->torch_at_peak.reserved_bytes);
	if (!window && facts.waiting)
		sl_answer_say(answer, SL_LABEL_NOTE, "%s of it was freed, and waits for other streams (record_stream)",
			      SL_ANSWER_SIZE(facts.waiting));
	if (!window && facts.free_pieces)
		sl_answer_say(answer, SL_LABEL_NOTE, "unused memory is in %s pieces, the largest %s", SL_NUMBER(facts.free_pieces),
			      SL_ANSWER_SIZE(facts.free_largest));
	if (window)
		say_cache(answer, process, device);
	if (window && sl_window_rounds(process) < SL_WINDOW_ROUNDS_MIN)
		sl_answer_say(answer, SL_LABEL_OPEN, "leaks: they show in %d passes of a loop, and this window%s%s shows fewer",
			      SL_WINDOW_ROUNDS_MIN, facts.span_ns ? " of " : "", facts.span_ns ? SL_SPAN(facts.span_ns) : "");
	if (stackless)
		put_stackless(answer);
	if (make->report->process_count == 1)
		ask_fit(make, answer, process);
	sl_make_peak(make, answer, process, device, NULL);
	if (!window)
		answer->table.moment = "reserved, at the end";
	else if (facts.span_ns)
		answer->table.moment =
			sl_answers_text(make->to, "reserved, at the peak, %s",
					SL_SPAN(sl_process_unix(process, device->known_peak_ns) - process->started_unix_ns));
	sl_make_next(make, answer, sl_devices_held(process) > 1 ? "tree --by device" : "tree",
		     stackless ? "every size" : "every line at the peak");
	if (window)
		next_fit(make, answer, device->known_peak);
}

void sl_make_windows(struct sl_make *make)
{
	for (unsigned i = 0; i < make->report->process_count; i++) {
		struct sl_process *process = &make->report->processes[i];
		bool found = false;

		for (size_t k = 0; k < make->to->item.count; k++)
			if (make->to->item.item[k]->process == (int)i && make->to->item.item[k]->word < SL_WORD_OK) {
				found = true;
				if (make->report->process_count == 1 && !make->to->item.item[k]->label[SL_LABEL_NEED].count)
					ask_fit(make, make->to->item.item[k], process);
			}
		if (!found)
			add_window(make, process);
	}
}
