/* SPDX-License-Identifier: MIT */
#include "analyzer/answer/trial.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/base/format.h"

const char *const sl_trial_words[] = {
	[SL_TRIAL_OTHER] = "no answer", [SL_TRIAL_FAILS] = "does not fit", [SL_TRIAL_MAY] = "may fit", [SL_TRIAL_FITS] = "fits"};

/* "48 on the L4, 512 or more on the A100": the largest values that fit, or that may.  "or more": the range ends.  "": no value. */
static const char *list(struct sl_answer *answer, const struct sl_largest *l, bool maybe)
{
	const char *text = "";

	for (unsigned c = 0; c < l->cards; c++) {
		const struct sl_largest_card *is = &l->row[0][c];
		const struct sl_trial *trial = maybe ? is->may : is->fits;
		bool ends = !is->next && (maybe || !is->may);

		if (trial)
			text = sl_answers_text(answer->of, "%s%s%ld%s on the %s", text, *text ? ", " : "", trial->value[0],
					       ends ? " or more" : "", l->card_name[c]);
	}
	return text;
}

/* A line of a label: "170 on the A100: ..." */
static void say(struct sl_answer *answer, enum sl_said_as label, const struct sl_trial *t, const char *card, const char *text)
{
	sl_answer_say(answer, label, "%s%ld on the %s: %s", sl_answer_break(answer, label), t->value[0], card, text);
}

/* What a value that does not fit fails of, and at which line.  The first card's failed request is the stack of the answer. */
static void say_next(struct sl_answer *answer, const struct sl_trial *next, const char *card)
{
	const struct sl_answer_line *line = next->line;
	const char *why = next->why ?: "", *place;

	if (line && line->file) {
		if (!answer->frames)
			sl_answer_frame(answer, line);
		place = sl_answers_text(answer->of, "%s:%u", line->file, line->line);
		if (line->mark && !strstr(why, "asks"))
			why = sl_answers_text(answer->of, "%s %s", place, line->mark);
		else if (!strstr(why, place))
			why = sl_answers_text(answer->of, "%s, at %s", why, place);
	}
	say(answer, SL_LABEL_ELSE, next, card, sl_answers_text(answer->of, "%s.", why));
}

static void say_card(struct sl_answer *answer, const struct sl_largest_card *is, const char *card)
{
	const struct sl_dry_need *need = is->fits ? &is->fits->need : NULL;
	char span[SL_FORMAT_SPAN_BYTES];

	if (need) {
		sl_format_span(span, need->job + need->low, need->job + need->unsure + need->high);
		say(answer, SL_LABEL_NEED, is->fits, card,
		    sl_answers_text(answer->of, "%s of %s.", span, SL_ANSWER_SIZE(need->capacity)));
		sl_answer_figure(answer, card, "value", (double)is->fits->value[0]);
	}
	if (need && is->fits->why)
		say(answer, SL_LABEL_OPEN, is->fits, card, is->fits->why);
	if (is->next)
		say_next(answer, is->next, card);
}

/* A table: for each card, the largest value of the first name by values of the other one. */
static void put_grid(struct sl_answer *answer, const struct sl_largest *l)
{
	answer->grid.corner = l->other;
	answer->grid.counts = true;
	answer->grid.rows = l->cards;
	for (unsigned r = 0; r < l->rows; r++)
		*SL_PUSH(&answer->grid.head) = sl_answers_text(answer->of, "%ld", l->at[r]);
	for (unsigned c = 0; c < l->cards; c++) {
		answer->grid.row[c].name = l->card_name[c];
		for (unsigned r = 0; r < l->rows; r++)
			*SL_PUSH(&answer->grid.row[c].bytes) =
				l->row[r][c].fits ? (uint64_t)l->row[r][c].fits->value[0] : UINT64_MAX;
	}
}

struct sl_answers *sl_answer_largest(const struct sl_largest *l)
{
	struct sl_answers *answers = sl_answers_new();
	struct sl_answer *answer = sl_answer_add(answers, l->any ? SL_WORD_FITS : SL_WORD_DOES_NOT_FIT, "dry.fits");
	const struct sl_trial *shown = NULL;
	const char *maybe;

	answers->title = sl_answers_text(answers, "%s", l->program);
	answers->right = "";
	sl_answers_under(answers, "DRY RUN: " SL_DRY_WORDS);
	for (unsigned c = 0; c < l->cards; c++) {
		answers->right = sl_answers_text(answers, "%s%s%s", answers->right, c ? ", " : "", l->card_name[c]);
		shown = shown ?: l->row[0][c].next;
		if (!l->other)
			say_card(answer, &l->row[0][c], l->card_name[c]);
		for (unsigned r = 0; r < l->rows; r++)
			if (l->row[r][c].fits && l->row[r][c].fits->why)
				answer->word = SL_WORD_MAY_FIT;
	}
	maybe = l->other ? "" : list(answer, l, true);
	if (*maybe)
		sl_answer_say(answer, SL_LABEL_OPEN, "%s%s may fit, by what the card takes itself.",
			      sl_answer_break(answer, SL_LABEL_OPEN), maybe);
	if (!l->any)
		sl_answer_headline(answer, "no %s that was tried fits", l->name);
	else if (l->other)
		sl_answer_headline(answer, "the largest %s at each %s", l->name, l->other);
	else
		sl_answer_headline(answer, "the largest %s is %s", l->name, list(answer, l, false));
	if (l->other)
		put_grid(answer, l);
	if (l->falls)
		sl_answer_say(answer, SL_LABEL_NOTE,
			      "memory also falls with larger values: values beside the first that fails were tried too");
	else if (l->stays && !l->rises)
		sl_answer_say(answer, SL_LABEL_NOTE, "memory does not change with it");
	sl_answer_say(answer, SL_LABEL_RAN, "%u dry runs; each value above ran on its card", l->runs);
	if (shown)
		sl_answer_next(answer, sl_answers_text(answers, "what %s=%ld held there", l->name, shown->value[0]),
			       "stormlog-analyze %s", shown->traces);
	return answers;
}
