/* SPDX-License-Identifier: MIT */
#include "analyzer/answer/answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "common/base.h"

static const struct {
	const char *text;
	enum sl_tone tone;
} words[SL_WORD_COUNT] = {
	[SL_WORD_OUT_OF_MEMORY] = {"OUT OF MEMORY", SL_TONE_BAD},
	[SL_WORD_NEARLY] = {"NEARLY OUT OF MEMORY", SL_TONE_WARNING},
	[SL_WORD_DOES_NOT_FIT] = {"DOES NOT FIT", SL_TONE_BAD},
	[SL_WORD_DOES_NOT_START] = {"DOES NOT START", SL_TONE_BAD},
	[SL_WORD_LEAK] = {"LEAK", SL_TONE_BAD},
	[SL_WORD_GROWS] = {"GROWS", SL_TONE_WARNING},
	[SL_WORD_HIDDEN] = {"HIDDEN", SL_TONE_WARNING},
	[SL_WORD_UNEVEN] = {"UNEVEN", SL_TONE_WARNING},
	[SL_WORD_HOST_MEMORY] = {"HOST MEMORY", SL_TONE_BAD},
	[SL_WORD_FAILED] = {"FAILED", SL_TONE_BAD},
	[SL_WORD_OK] = {"OK", SL_TONE_GOOD},
	[SL_WORD_FITS] = {"FITS", SL_TONE_GOOD},
	[SL_WORD_MAY_FIT] = {"MAY FIT", SL_TONE_WARNING},
	[SL_WORD_HELD] = {"HELD", SL_TONE_WARNING},
	[SL_WORD_RUNNING] = {"RUNNING", SL_TONE_GOOD},
	[SL_WORD_NOT_AN_ERROR] = {"NOT AN ERROR", SL_TONE_GOOD},
	[SL_WORD_NOTHING] = {"NOTHING", SL_TONE_GOOD},
};

const char *sl_answer_word(enum sl_word word)
{
	return words[word].text;
}

enum sl_tone sl_answer_tone(enum sl_word word)
{
	return words[word].tone;
}

const char *sl_answer_label(enum sl_said_as label)
{
	static const char *const names[SL_LABEL_COUNT] = {"why",  "fix",  "tried", "need",  "fits", "less",
							  "else", "open", "note",  "cards", "ran",  "held"};

	return names[label];
}

struct sl_answers *sl_answers_new(void)
{
	return sl_memory_must(calloc(1, sizeof(struct sl_answers)));
}

void sl_answers_free(struct sl_answers *answers)
{
	if (!answers)
		return;
	for (size_t i = 0; i < answers->item.count; i++) {
		struct sl_answer *answer = answers->item.item[i];

		for (unsigned label = 0; label < SL_LABEL_COUNT; label++)
			SL_DROP(&answer->label[label]);
		for (unsigned row = 0; row < SL_COUNT(answer->grid.row); row++)
			SL_DROP(&answer->grid.row[row].bytes);
		SL_DROP(&answer->grid.head);
		SL_DROP(&answer->around.line);
		SL_DROP(&answer->figure);
		SL_DROP(&answer->table.row);
		SL_DROP(&answer->table.course);
		SL_DROP(&answer->next);
	}
	SL_DROP_EACH(&answers->item);
	SL_DROP(&answers->under);
	SL_DROP(&answers->note);
	sl_arena_free(&answers->arena);
	free(answers);
}

static char *print_text(struct sl_answers *answers, const char *format, va_list arguments)
{
	char *text = sl_memory_vprint(format, arguments), *stored = sl_arena_strdup(&answers->arena, text);

	free(text);
	return stored;
}

#define PRINT(answers, format)                                                                                                     \
	({                                                                                                                         \
		va_list arguments;                                                                                                 \
		va_start(arguments, format);                                                                                       \
		char *text_ = print_text(answers, format, arguments);                                                              \
		va_end(arguments);                                                                                                 \
		text_;                                                                                                             \
	})

char *sl_answers_text(struct sl_answers *answers, const char *format, ...)
{
	return PRINT(answers, format);
}

void sl_answers_under(struct sl_answers *answers, const char *format, ...)
{
	*SL_PUSH(&answers->under) = PRINT(answers, format);
}

void sl_answers_note(struct sl_answers *answers, const char *format, ...)
{
	*SL_PUSH(&answers->note) = PRINT(answers, format);
}

struct sl_answer *sl_answer_add(struct sl_answers *answers, enum sl_word word, const char *id)
{
	struct sl_answer *answer = sl_memory_must(calloc(1, sizeof(*answer)));

	*answer = (struct sl_answer){.word = word, .id = id, .process = -1, .device = -1, .of = answers};
	*SL_PUSH(&answers->item) = answer;
	return answer;
}

void sl_answer_headline(struct sl_answer *answer, const char *format, ...)
{
	answer->headline = PRINT(answer->of, format);
}

void sl_answer_brief(struct sl_answer *answer, const char *format, ...)
{
	answer->brief = PRINT(answer->of, format);
}

void sl_answer_say(struct sl_answer *answer, enum sl_said_as label, const char *format, ...)
{
	*SL_PUSH(&answer->label[label]) = PRINT(answer->of, format);
}

char *sl_answer_join(const struct sl_answer *answer, const char *first, enum sl_said_as label)
{
	char *text = first ? sl_memory_copy(first) : NULL;

	for (size_t i = 0; i < answer->label[label].count; i++) {
		const char *words = answer->label[label].item[i];
		bool anew = (first && !i) || *words == '\n';
		char *longer = sl_memory_print("%s%s%s", text ?: "", !text ? "" : anew ? "; " : " ", words + (*words == '\n'));

		free(text);
		text = longer;
	}
	return text;
}

const char *sl_answer_break(const struct sl_answer *answer, enum sl_said_as label)
{
	return answer->label[label].count ? "\n" : "";
}

void sl_answer_figure(struct sl_answer *answer, const char *name, const char *unit, double value)
{
	sl_answer_judged(answer, name, unit, value, NULL, 0);
}

void sl_answer_judged(struct sl_answer *answer, const char *name, const char *unit, double value, const char *rule, double limit)
{
	*SL_PUSH(&answer->figure) = (struct sl_answer_figure){name, unit, value, rule, limit};
}

static const char *copy(struct sl_answer *answer, const char *text)
{
	return text ? sl_arena_strdup(&answer->of->arena, text) : NULL;
}

bool sl_answer_frame(struct sl_answer *answer, const struct sl_answer_line *line)
{
	if (answer->frames == SL_ANSWER_FRAMES)
		return false;
	answer->stack[answer->frames++] = (struct sl_answer_line){.file = copy(answer, line->file),
								  .function = copy(answer, line->function),
								  .path = copy(answer, line->path),
								  .line = line->line,
								  .source = copy(answer, line->source),
								  .mark = copy(answer, line->mark)};
	return true;
}

void sl_answer_row(struct sl_answer *answer, uint64_t bytes, const char *name, const char *format, ...)
{
	const char *text = format ? PRINT(answer->of, format) : NULL;

	*SL_PUSH(&answer->table.row) = (struct sl_answer_row){.bytes = bytes, .name = copy(answer, name), .text = text};
}

void sl_answer_row_fixed(struct sl_answer *answer, uint64_t bytes, const char *name, const char *text)
{
	*SL_PUSH(&answer->table.row) =
		(struct sl_answer_row){.bytes = bytes, .name = copy(answer, name), .text = copy(answer, text), .fixed = true};
}

void sl_answer_row_bare(struct sl_answer *answer, uint64_t bytes, const char *name, const char *format, ...)
{
	const char *text = format ? PRINT(answer->of, format) : NULL;

	*SL_PUSH(&answer->table.row) =
		(struct sl_answer_row){.bytes = bytes, .name = copy(answer, name), .text = text, .bare = true};
}

void sl_answer_next_of(struct sl_answer *answer, const char *command, const char *paths, const char *shows)
{
	*SL_PUSH(&answer->next) = (struct sl_answer_next){copy(answer, command), copy(answer, paths), copy(answer, shows)};
}

void sl_answer_next(struct sl_answer *answer, const char *shows, const char *format, ...)
{
	const char *command = PRINT(answer->of, format);

	sl_answer_next_of(answer, command, NULL, shows);
}

static const char *const unit_names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

/* Digits behind the point that make three in all. */
static int digits_of(double value)
{
	return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

const char *sl_answer_size(char *out, uint64_t bytes)
{
	double value = (double)bytes;
	unsigned unit = 0;
	char *end;

	for (; value >= 999.5 && unit + 1 < SL_COUNT(unit_names); unit++)
		value /= 1024;
	snprintf(out, 48, "%.*f", unit ? digits_of(value) : 0, value);
	if (strchr(out, '.')) {
		for (end = out + strlen(out); end[-1] == '0'; end--)
			end[-1] = 0;
		if (end[-1] == '.')
			end[-1] = 0;
	}
	snprintf(out + strlen(out), 48 - strlen(out), " %s", unit_names[unit]);
	return out;
}

const char *sl_answer_unit(uint64_t total, uint64_t *bytes)
{
	unsigned unit = 0;

	for (*bytes = 1; (double)total / (double)*bytes >= 999.5 && unit + 1 < SL_COUNT(unit_names); unit++)
		*bytes <<= 10;
	return unit_names[unit];
}

static const double parts_of_one[] = {1, 10, 100}; /* by the digits behind the point */

void sl_answer_number_add(struct sl_answer_number *number, const struct sl_answer_number *other)
{
	number->parts += other->parts;
	number->digits = other->digits;
	snprintf(number->text, sizeof(number->text), "%.*f", number->digits, (double)number->parts / parts_of_one[number->digits]);
}

void sl_answer_numbers(const struct sl_answer_table *table, struct sl_answer_number *out)
{
	size_t count = table->row.count;
	double *rest = sl_memory_must(calloc(count + 1, sizeof(*rest))), scale;
	struct sl_answer_number one = {0};
	uint64_t unit, left;

	sl_answer_unit(table->total, &unit);
	one.digits = unit > 1 ? digits_of((double)table->total / (double)unit) : 0;
	scale = parts_of_one[one.digits] / (double)unit;
	one.parts = left = (uint64_t)rint((double)table->total * scale); /* as printf does in sentences */
	out[0] = (struct sl_answer_number){0};
	sl_answer_number_add(&out[0], &one);
	for (size_t i = 0; i < count; i++) {
		double exact = (double)table->row.item[i].bytes * scale;

		out[i + 1] = (struct sl_answer_number){.parts = (uint64_t)exact};
		rest[i] = exact - (double)out[i + 1].parts;
		left -= out[i + 1].parts < left ? out[i + 1].parts : left;
	}
	for (; left; left--) {
		size_t largest = count;

		for (size_t i = 0; i < count; i++)
			if (rest[i] > 0 && (largest == count || rest[i] > rest[largest]))
				largest = i;
		if (largest == count)
			break;
		out[largest + 1].parts++;
		rest[largest] = 0;
	}
	one.parts = 0;
	for (size_t i = 0; i < count; i++)
		sl_answer_number_add(&out[i + 1], &one);
	free(rest);
}
