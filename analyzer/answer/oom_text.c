/* SPDX-License-Identifier: MIT */
/* Causes of an error that the program's source proves, where the recording agrees with it. */
#include <stdio.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/change.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"
#include "analyzer/source/source.h"

/* One error, and the program's own lines that led to it, innermost first. */
struct error {
	struct sl_answer *answer;
	struct sl_process *process;
	const struct sl_oom *oom;
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count;
};

static const char *put_line(char out[SL_MAKE_LINE], const struct sl_stack_frame *frame)
{
	snprintf(out, SL_MAKE_LINE, "%s:%u", sl_paths_name(frame->file), frame->line);
	return out;
}
#define LINE(frame) put_line((char[SL_MAKE_LINE]){0}, frame)

/* What was held for a purpose, as far as the largest owners tell. */
static uint64_t held_for(const struct error *e, enum sl_role role)
{
	uint64_t bytes[SL_ROLE_COUNT];

	sl_roles_at_error(e->process, e->oom, bytes);
	return bytes[role];
}

/* An evaluation with autograd on, or the answer of a teacher: number `at` of the frames is of it. */
static bool is_with_grad(const struct sl_process *process, const struct sl_stack_frame *frames, unsigned count, unsigned *at,
			 bool *teacher)
{
	struct sl_source *source = process->report->source;

	*teacher = source && count && sl_source_is_teacher(source, process->trace, frames, count, at);
	return source && count &&
	       (*teacher || sl_source_is_evaluation(source, process->trace, frames, count, at) == SL_SOURCE_YES) &&
	       sl_source_without_grad(source, process->trace, frames, count) == SL_SOURCE_NO;
}

static void say_no_grad(struct sl_answer *answer, enum sl_said_as label, const struct sl_stack_frame *frame)
{
	sl_answer_say(answer, label, "run %s under torch.no_grad(): eval() does not turn autograd off", LINE(frame));
}

bool sl_make_no_grad(struct sl_answer *answer, struct sl_process *process, struct sl_stack stack, enum sl_said_as label)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned at = 0;
	bool teacher;

	if (!is_with_grad(process, frames, sl_process_own(process, frames, stack), &at, &teacher))
		return false;
	say_no_grad(answer, label, &frames[at]);
	return true;
}

void sl_make_no_grad_at_peak(struct sl_answer *answer, struct sl_process *process, const struct sl_device_state *device)
{
	const struct sl_site *largest = NULL, *site = NULL;
	uint64_t bytes = 0, max_bytes = 0, held_bytes;

	while (device && (site = sl_owners_next(process, device->device, SL_WEIGH_PEAK, site, &held_bytes))) {
		if (sl_roles_of(process, site) != SL_ROLE_ACTIVATIONS)
			continue;
		bytes += held_bytes;
		largest = held_bytes > max_bytes ? site : largest;
		max_bytes = held_bytes > max_bytes ? held_bytes : max_bytes;
	}
	if (largest && bytes >= device->known_peak / 2)
		sl_make_no_grad(answer, process, largest->stack, SL_LABEL_LESS);
}

static bool tell_evaluation(struct error *e)
{
	uint64_t bytes = held_for(e, SL_ROLE_ACTIVATIONS);
	unsigned at = 0;
	bool teacher;

	if (bytes < e->oom->live_bytes / 2 || !is_with_grad(e->process, e->frames, e->count, &at, &teacher) ||
	    !sl_make_change(e->answer, e->process, "no_grad"))
		return false;
	sl_answer_headline(e->answer, "%s keeps activations for a backward pass that never comes", LINE(&e->frames[at]));
	sl_answer_say(e->answer, SL_LABEL_WHY, "autograd is on, and activations have %s. The %s.", SL_ANSWER_SIZE(bytes),
		      teacher ? "model of that line is in eval(), and the program gives its parameters to no optimizer"
			      : "function of that line calls eval() and asks for no gradient");
	say_no_grad(e->answer, SL_LABEL_FIX, &e->frames[at]);
	return true;
}

static bool tell_late_zero(struct error *e)
{
	const struct sl_change *change = sl_change_of_kind(e->process->changes, "zero_early");
	uint64_t bytes = held_for(e, SL_ROLE_GRADIENTS);
	unsigned at = 0;

	if (!sl_change_ends_step(change) ||
	    !sl_source_zeroes_late(e->process->report->source, e->process->trace, e->frames, e->count, &at) ||
	    !sl_make_change(e->answer, e->process, "zero_early"))
		return false;
	sl_answer_headline(e->answer, "gradients of the step before stay through the forward pass");
	sl_answer_say(e->answer, SL_LABEL_WHY, "they have %s: the loop calls zero_grad() only behind %s.", SL_ANSWER_SIZE(bytes),
		      LINE(&e->frames[at]));
	sl_answer_say(e->answer, SL_LABEL_FIX, "call zero_grad() before %s, as right behind the optimizer's step()",
		      LINE(&e->frames[at]));
	return true;
}

/* An earlier error came by the same lines, and its memory did not come back. */
static bool tell_kept_error(struct error *e)
{
	const struct sl_oom *first = e->process->model->ooms.item;
	struct sl_stack_frame keeper;

	if (first == e->oom || first->device != e->oom->device ||
	    first->torch.allocated_bytes > 2 * e->oom->torch.allocated_bytes ||
	    sl_place_key(e->process, first->stack) != sl_place_key(e->process, e->oom->stack) ||
	    !sl_source_keeps_error(e->process->report->source, e->process->trace, e->frames, e->count, &keeper))
		return false;
	sl_answer_headline(e->answer, "the exception that %s keeps holds what the failed try had got", LINE(&keeper));
	sl_answer_say(e->answer, SL_LABEL_WHY,
		      "an exception has the frames of its stack, and they have their tensors: %s were held at the next try's end.",
		      SL_ANSWER_SIZE(e->oom->torch.allocated_bytes));
	sl_answer_say(e->answer, SL_LABEL_FIX, "keep str() of the exception at %s, not the exception", LINE(&keeper));
	return true;
}

/* Most of what is held waits in a queue: the line that made it puts it there. */
static bool tell_queue(struct error *e)
{
	const struct sl_site *site;
	const struct sl_owner *largest = sl_owners_at_error(e->process, e->oom, NULL, &site);
	struct sl_stack_frame frames[SL_STACK_MAX];
	const char *text = largest && largest->bytes >= e->oom->live_bytes / 2 && sl_process_own(e->process, frames, site->stack)
				   ? sl_source_line(e->process->report->source, e->process->trace, &frames[0], NULL)
				   : NULL;

	if (!text || (!strstr(text, ".put(") && !strstr(text, ".put_nowait(")))
		return false;
	sl_answer_headline(e->answer, "%s fills a queue with %s on the card", LINE(&frames[0]), SL_ANSWER_SIZE(largest->bytes));
	sl_answer_say(e->answer, SL_LABEL_WHY, "%s of its blocks wait to be taken.", SL_NUMBER(largest->blocks));
	sl_answer_say(e->answer, SL_LABEL_FIX, "put batches of the host into the queue of %s, or let it hold two (maxsize=2)",
		      LINE(&frames[0]));
	return true;
}

bool sl_make_text(struct sl_answer *answer, struct sl_process *process, const struct sl_oom *oom)
{
	struct error e = {answer, process, oom, .count = 0};

	if (!process->report->source || !e.oom->torch.used || e.oom->free_bytes == SL_UNKNOWN)
		return false;
	e.count = sl_process_own(process, e.frames, e.oom->stack);
	return e.count && (tell_kept_error(&e) || tell_queue(&e) || tell_evaluation(&e) || tell_late_zero(&e));
}
