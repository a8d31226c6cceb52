/* SPDX-License-Identifier: MIT */
#include "analyzer/answer/largest.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/report/dry.h"
#include "common/base.h"

#define CELL 11
#define MIB  ((uint64_t)1 << 20)

static const struct sl_largest_device devices[] = {
#define CARD(id, name, measured, memory, major, minor, multiprocessors, threads, shared, shared_optin, l2, blocks, context_low,    \
	     context_high, kernels_low, kernels_high)                                                                              \
	{#id, (memory)*MIB, ((context_low) + (kernels_low)) * MIB, ((context_high) + (kernels_high)) * MIB},
#include "dry/cards.def"
#undef CARD
};

struct sl_largest_device sl_largest_device(const char *id)
{
	for (size_t i = 0; i < SL_COUNT(devices); i++)
		if (!strcasecmp(devices[i].id, id))
			return devices[i];
	return (struct sl_largest_device){.id = id};
}

const char *sl_largest_device_of(uint64_t memory)
{
	for (size_t i = 0; i < SL_COUNT(devices); i++)
		if (memory < devices[i].memory + devices[i].memory / 200 && memory > devices[i].memory - devices[i].memory / 200)
			return devices[i].id;
	return NULL;
}

const char *sl_largest_device_beside(uint64_t memory, bool more)
{
	const struct sl_largest_device *found = NULL;

	for (size_t i = 0; i < SL_COUNT(devices); i++) {
		const struct sl_largest_device *card = &devices[i];

		if ((card->memory >= memory) == more && (!found || (card->memory < found->memory) == more))
			found = card;
	}
	return found ? found->id : NULL;
}

/* "48 on the L4, 170 on the A100": the largest values that fit, or that may; "": no card has one. */
static const char *list(struct sl_answer *answer, const struct sl_largest *l, bool maybe)
{
	const char *text = "";

	for (unsigned c = 0; c < l->cards; c++) {
		const struct sl_largest_card *card = &l->row.item[0].card[c];
		const struct sl_trial *trial = maybe ? card->maybe : card->most;

		if (trial)
			text = sl_answers_text(answer->of, "%s%s%ld on the %s", text, *text ? ", " : "", trial->value, card->name);
	}
	return text;
}

/* The first card's failed request is the stack of the answer. */
static void show_line(struct sl_answer *answer, const struct sl_trial *next)
{
	if (answer->frames || !*next->file || next->fit != SL_TRIAL_FAILS)
		return;
	sl_answer_frame(answer, &(struct sl_answer_line){.file = next->file,
							 .path = *next->path ? next->path : NULL,
							 .line = next->line,
							 .source = *next->source ? next->source : NULL,
							 .mark = *next->mark ? next->mark : NULL});
}

/* What a value that does not fit fails of, and at which line. */
static void say_next(struct sl_answer *answer, const struct sl_largest_card *card)
{
	const struct sl_trial *next = card->next;
	char place[300];
	bool marked, placed;

	if (!next)
		return;
	show_line(answer, next);
	snprintf(place, sizeof(place), "%s:%u", next->file, next->line);
	marked = *next->mark && !strstr(next->why, "asks");
	placed = *next->file && (marked || !strstr(next->why, place));
	sl_answer_say(answer, SL_LABEL_ELSE, "%s%ld on the %s: %s%s%s.", sl_answer_break(answer, SL_LABEL_ELSE), next->value,
		      card->name, marked ? place : next->why,
		      marked   ? " "
		      : placed ? ", at "
			       : "",
		      marked   ? next->mark
		      : placed ? place
			       : "");
}

static void say_card(struct sl_answer *answer, const struct sl_largest_card *card)
{
	const struct sl_trial *most = card->most;
	char span[SL_FORMAT_SPAN_BYTES];

	if (!most)
		return;
	sl_format_span(span, most->low, most->high);
	sl_answer_say(answer, SL_LABEL_NEED, "%s%ld on the %s: %s of %s.", sl_answer_break(answer, SL_LABEL_NEED), most->value,
		      card->name, span, SL_ANSWER_SIZE(most->capacity));
	sl_answer_figure(answer, card->name, "value", (double)most->value);
	if (*most->why)
		sl_answer_say(answer, SL_LABEL_OPEN, "%s%ld on the %s: %s", sl_answer_break(answer, SL_LABEL_OPEN), most->value,
			      card->name, most->why);
}

static void say_one(struct sl_answer *answer, const struct sl_largest *l)
{
	const char *maybe = list(answer, l, true);

	for (unsigned c = 0; c < l->cards; c++) {
		say_card(answer, &l->row.item[0].card[c]);
		say_next(answer, &l->row.item[0].card[c]);
	}
	if (*maybe)
		sl_answer_say(answer, SL_LABEL_OPEN, "%s%s may fit, by what the card takes itself.",
			      sl_answer_break(answer, SL_LABEL_OPEN), maybe);
}

/* A cell behind the others of its line. */
static const char *add_cell(struct sl_answer *answer, const char *line, const char *text)
{
	return sl_answers_text(answer->of, "%s  %*.*s", line, CELL, CELL, text);
}

static void end_line(struct sl_answer *answer, const char *line)
{
	sl_answer_say(answer, SL_LABEL_FITS, "%s%s", sl_answer_break(answer, SL_LABEL_FITS), line);
}

/* A table: the largest value of the first name, for each value of the other one. */
static void say_table(struct sl_answer *answer, const struct sl_largest *l)
{
	const char *line = sl_answers_text(answer->of, "%*s", CELL, l->other);

	for (unsigned c = 0; c < l->cards; c++)
		line = add_cell(answer, line, l->row.item[0].card[c].name);
	end_line(answer, line);
	for (size_t r = 0; r < l->row.count; r++) {
		const struct sl_largest_row *row = &l->row.item[r];

		line = sl_answers_text(answer->of, "%*ld", CELL, row->other);
		for (unsigned c = 0; c < l->cards; c++) {
			char number[24] = "none";

			if (row->card[c].most)
				snprintf(number, sizeof(number), "%ld", row->card[c].most->value);
			line = add_cell(answer, line, number);
		}
		end_line(answer, line);
	}
	sl_answer_headline(answer, "the largest %s at each %s", l->name, l->other);
}

struct sl_answers *sl_answer_largest(const struct sl_largest *l)
{
	struct sl_answers *answers = sl_answers_new();
	const struct sl_largest_row *row = &l->row.item[0];
	const struct sl_trial *shown = NULL;
	bool may = false;
	struct sl_answer *answer;
	const char *cards = "";

	for (unsigned c = 0; c < l->cards; c++) {
		cards = sl_answers_text(answers, "%s%s%s", cards, c ? ", " : "", row->card[c].name);
		shown = shown ?: row->card[c].next;
	}
	for (size_t r = 0; r < l->row.count; r++)
		for (unsigned c = 0; c < l->cards; c++) {
			const struct sl_trial *most = l->row.item[r].card[c].most;

			may |= most && *most->why;
		}
	answers->title = sl_answers_text(answers, "%s", l->program);
	answers->right = cards;
	sl_answers_under(answers, "DRY RUN: " SL_DRY_WORDS);
	answer = sl_answer_add(answers, !l->any ? SL_WORD_DOES_NOT_FIT : may ? SL_WORD_MAY_FIT : SL_WORD_FITS, "dry.fits");
	if (l->other)
		say_table(answer, l);
	else
		say_one(answer, l);
	if (!l->any)
		sl_answer_headline(answer, "no %s that was tried fits", l->name);
	else if (!l->other)
		sl_answer_headline(answer, "%s is at most %s", l->name, list(answer, l, false));
	if (l->steady)
		sl_answer_say(answer, SL_LABEL_NOTE, "%s", l->steady);
	sl_answer_say(answer, SL_LABEL_RAN, "%u dry runs; each value above ran on its card", l->runs);
	if (shown)
		sl_answer_next(answer, sl_answers_text(answers, "what %s=%ld held there", l->name, shown->value),
			       "stormlog-analyze %s", shown->traces);
	return answers;
}
