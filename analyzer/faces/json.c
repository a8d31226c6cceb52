/* SPDX-License-Identifier: MIT */
#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/faces/faces.h"

static void put_stack(struct sl_json *j, const struct sl_answer *answer)
{
	sl_json_array(j, "lines");
	for (unsigned i = 0; i < answer->frames; i++) {
		const struct sl_answer_line *line = &answer->stack[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "file", line->file);
		sl_json_nonzero(j, "line", line->line);
		sl_json_string(j, "function", line->function);
		sl_json_string(j, "source", line->source);
		sl_json_string(j, "mark", line->mark);
		sl_json_end(j);
	}
	sl_json_end(j);
}

static void put_around(struct sl_json *j, const struct sl_answer *answer)
{
	if (!answer->around.line.count) {
		sl_json_null(j, "around");
		return;
	}
	sl_json_object(j, "around");
	sl_json_string(j, "file", answer->around.file);
	sl_json_uint(j, "first", answer->around.first);
	sl_json_uint(j, "marked", answer->around.marked);
	sl_json_texts(j, "lines", answer->around.line.item, answer->around.line.count);
	sl_json_end(j);
}

static void put_labels(struct sl_json *j, const struct sl_answer *answer)
{
	for (enum sl_said_as label = 0; label < SL_LABEL_COUNT; label++)
		if (answer->label[label].count)
			sl_json_texts(j, sl_answer_label(label), answer->label[label].item, answer->label[label].count);
}

static void put_table(struct sl_json *j, const struct sl_answer_table *table)
{
	struct sl_answer_number *numbers;
	uint64_t unit;

	if (!table->row.count) {
		sl_json_null(j, "table");
		return;
	}
	numbers = sl_memory_must(calloc(table->row.count + 1, sizeof(*numbers)));
	sl_answer_numbers(table, numbers);
	sl_json_object(j, "table");
	sl_json_uint(j, "total_bytes", table->total);
	sl_json_string(j, "total", numbers[0].text);
	sl_json_string(j, "unit", sl_answer_unit(table->total, &unit));
	sl_json_string(j, "moment", table->moment);
	sl_json_array(j, "rows");
	for (size_t i = 0; i < table->row.count; i++) {
		sl_json_object(j, NULL);
		sl_json_uint(j, "bytes", table->row.item[i].bytes);
		sl_json_string(j, "amount", numbers[i + 1].text);
		sl_json_string(j, "name", table->row.item[i].name);
		sl_json_string(j, "text", table->row.item[i].text);
		sl_json_bool(j, "barred", !table->row.item[i].bare);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
	free(numbers);
}

static void put_next(struct sl_json *j, const struct sl_answer *answer, const char *paths)
{
	sl_json_array(j, "next");
	for (size_t i = 0; i < answer->next.count; i++) {
		const struct sl_answer_next *next = &answer->next.item[i];
		bool whole = next->paths && *paths;
		char *command = sl_memory_print("%s%s%s", next->command, whole ? " " : "", whole ? paths : "");

		sl_json_object(j, NULL);
		sl_json_string(j, "command", command);
		sl_json_string(j, "shows", next->shows);
		sl_json_end(j);
		free(command);
	}
	sl_json_end(j);
}

void sl_face_json(struct sl_json *j, const char *key, const struct sl_answers *answers, const char *paths)
{
	static const char *const tones[] = {[SL_TONE_BAD] = "bad", [SL_TONE_WARNING] = "warning", [SL_TONE_GOOD] = "good"};

	sl_json_object(j, key);
	sl_json_string(j, "title", answers->title);
	sl_json_string(j, "right", answers->right);
	sl_json_texts(j, "under", answers->under.item, answers->under.count);
	sl_json_array(j, "verdicts");
	for (size_t i = 0; i < answers->item.count; i++) {
		const struct sl_answer *answer = answers->item.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "word", sl_answer_word(answer->word));
		sl_json_string(j, "id", answer->id);
		sl_json_string(j, "tone", tones[sl_answer_tone(answer->word)]);
		sl_json_string(j, "headline", answer->headline);
		sl_json_known(j, "process", answer->process);
		sl_json_known(j, "device", answer->device);
		sl_json_nonzero(j, "bytes", answer->bytes);
		sl_json_object(j, "figures");
		for (size_t k = 0; k < answer->figure.count; k++) {
			char name[80];

			snprintf(name, sizeof(name), "%s_%s", answer->figure.item[k].name, answer->figure.item[k].unit);
			sl_json_double(j, name, answer->figure.item[k].value);
		}
		sl_json_end(j);
		put_stack(j, answer);
		put_around(j, answer);
		put_labels(j, answer);
		put_table(j, &answer->table);
		put_next(j, answer, paths);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}
