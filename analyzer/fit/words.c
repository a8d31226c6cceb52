/* SPDX-License-Identifier: MIT */
/* Answers as a reader has them. */
#include <stdio.h>
#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/fit/answer.h"

const char *sl_fit_why(const struct sl_fit_subject *subject, char *out, size_t size)
{
	if (subject->recording->doubt)
		return subject->recording->doubt;
	if (sl_fit_spent(subject))
		return SL_FIT_SPENT;
	if (subject->check.refused)
		return "settings that the program made are not understood";
	if (subject->check.moved) {
		snprintf(out, size, "the replay puts %s of the window's blocks elsewhere", SL_NUMBER(subject->check.moved));
		return out;
	}
	if (subject->check.error == SL_UNKNOWN)
		return "the replay of the recorded run is granted what was refused, or the other way round";
	snprintf(out, size, "the replay of the recorded run is off by up to %s", SL_SIZE(subject->check.error));
	return out;
}

const char *sl_fit_span(const struct sl_fit_answer *a, char out[SL_FORMAT_SPAN_BYTES])
{
	return a->high == SL_UNKNOWN ? "unknown" : sl_format_span(out, a->low, a->high);
}

const char *sl_fit_word(const struct sl_fit_answer *a, unsigned capacity)
{
	static const char *const words[] = {[SL_FIT_FITS] = "fits", [SL_FIT_FAILS] = "no", [SL_FIT_UNKNOWN] = "unknown"};

	return a->ambiguous[capacity] ? "either" : words[a->at[capacity].verdict];
}

void sl_fit_notes(const struct sl_fit_subject *subject, bool of_allocator, void (*say)(void *context, const char *text),
		  void *context)
{
	const struct sl_fit_recording *r = subject->recording;
	char text[200];

	for (unsigned c = 0; subject->answers && c < subject->choice_count; c++)
		if (subject->choices[c].wrong) {
			snprintf(text, sizeof(text), "no verdict for %.90s: %s", subject->choices[c].name,
				 subject->choices[c].wrong);
			say(context, text);
		}
	if (subject->choice_count && subject->choices[subject->choice_count - 1].release)
		say(context, SL_FIT_OTHER_RELEASE);
	if (!subject->answers)
		say(context, sl_fit_why(subject, text, sizeof(text)));
	if (r->unasked) {
		snprintf(text, sizeof(text),
			 "of %s requests the size is not known, and the block's is taken: other settings can be off",
			 SL_NUMBER(r->unasked));
		say(context, text);
	}
	if (!of_allocator && !r->others_known)
		say(context, "no verdict for a device: no sample has the memory of contexts and other processes; "
			     "--allocator-capacity asks without them");
	if (!of_allocator && r->unsure) {
		snprintf(text, sizeof(text),
			 "a card may take up to %s more than these sizes: either says that a verdict depends on it",
			 SL_SIZE(r->unsure));
		say(context, text);
	}
	if (r->blind && !(r->settings.fraction > 0))
		say(context, "this PyTorch hides a memory fraction that the program sets: "
			     "name it by --settings per_process_memory_fraction:0.8");
	if (r->asks_free)
		say(context, "it asks how much memory is free, so it may behave differently on another card");
	if (r->lacked)
		say(context,
		    "memory ran out outside of PyTorch's allocator: with more of it, what the program would have done is not "
		    "known");
	if (r->window && r->ooms)
		say(context, "memory ran out in the window: figures are up to the first request that was refused");
	else if (r->goes_on || r->ooms > 1)
		say(context, "it went on after an out-of-memory, so it behaves differently on another card");
}

const char *sl_fit_text(const struct sl_fit_subject *subject, unsigned choice)
{
	const struct sl_fit_choice *one = &subject->choices[choice];

	return one->release ? one->name : one->text ? one->text : subject->recording->text;
}

const char *sl_fit_name(const struct sl_fit_subject *subject, unsigned choice)
{
	const char *text = sl_fit_text(subject, choice);

	return *text ? text : "(none)";
}
