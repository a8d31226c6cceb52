/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/records.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/base/paths.h"

#define ASK_EVERY 64 /* records, between two looks at the clock */

void sl_source_clock_start(struct sl_source_clock *clock, FILE *file)
{
	clock->records = 0;
	sl_budget_resume();
	sl_budget_begin(&clock->budget, sl_budget_size(fileno(file)));
}

bool sl_source_clock_spent(struct sl_source_clock *clock, const struct sl_source_reader *reader, const char *path, uint32_t line)
{
	if (++clock->records % ASK_EVERY || !sl_budget_spent(&clock->budget))
		return false;
	reader->problem(reader->context, SL_SOURCE_FILE, path, line,
			"it takes more of the processor's time than it may; from here on it is not read");
	return true;
}

#define LINE_MAX_BYTES (16u << 20)
#define FILE_MAX_GB    16 /* of lines or rows; a million samples have half of one */

enum sl_source_form sl_source_form(const char *path)
{
	const char *suffix = strrchr(path, '.');

	if (suffix && strcasecmp(suffix, ".csv") == 0)
		return SL_SOURCE_CSV;
	if (suffix && strcasecmp(suffix, ".json") == 0)
		return SL_SOURCE_JSON;
	return SL_SOURCE_LINES;
}

static void problem(const struct sl_source_reader *reader, enum sl_source_loss loss, const char *file, uint32_t line,
		    const char *reason)
{
	reader->problem(reader->context, loss, file, line, reason);
}

static bool is_blank_line(const char *line, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!sl_utf8_is_space((unsigned char)line[i]) || (unsigned char)line[i] >= 128)
			return false;
	return true;
}

/*
 * Reads the next line into a buffer that grows to LINE_MAX_BYTES and returns its length, 0 at the end.  Of a longer line the
 * first bytes are returned, and *whole is false.
 */
static size_t next_line(FILE *file, char **line, size_t *capacity, bool *whole)
{
	size_t length = 0;
	int c;

	*whole = true;
	while ((c = getc_unlocked(file)) != EOF) {
		if (length == LINE_MAX_BYTES)
			*whole = false;
		else {
			if (length == *capacity)
				*line = sl_arena_grow(*line, capacity, length, 1);
			(*line)[length++] = (char)c;
		}
		if (c == '\n')
			break;
	}
	return length;
}

static bool read_lines(const char *path, const struct sl_source_reader *reader)
{
	char reason[128], *line = NULL;
	FILE *file = sl_paths_open_limited(path, FILE_MAX_GB, reason, sizeof(reason));
	struct sl_arena arena = {0};
	size_t size = 0;
	struct sl_source_clock clock;
	uint32_t number = 0;
	bool whole;

	if (!file) {
		problem(reader, SL_SOURCE_FILE, path, 0, reason);
		return false;
	}
	sl_source_clock_start(&clock, file);
	for (size_t length; (length = next_line(file, &line, &size, &whole)) > 0;) {
		struct sl_value_error error;
		bool ended = line[length - 1] == '\n';

		number++;
		if (sl_source_clock_spent(&clock, reader, path, number))
			break;
		if (!whole) {
			problem(reader, SL_SOURCE_RECORD, path, number, "a line of more than 16 MiB");
			continue;
		}
		if (is_blank_line(line, length))
			continue;
		const struct sl_value *value = sl_value_parse(&arena, line, length, number, &error);

		if (value)
			reader->record(reader->context, value, number);
		else
			problem(reader, ended ? SL_SOURCE_RECORD : SL_SOURCE_TORN, path, number,
				ended ? error.reason : "unfinished last line");
		sl_arena_reset(&arena);
	}
	bool ok = !ferror(file);

	if (!ok)
		problem(reader, SL_SOURCE_FILE, path, number + 1, strerror(errno));
	free(line);
	fclose(file);
	sl_arena_free(&arena);
	return ok;
}

static bool looks_like_event(const struct sl_value *payload)
{
	static const char *const keys[] = {"schema_version", "event_type", "type",	  "memory_allocated",
					   "memory_mb",	     "timestamp",  "timestamp_ns"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (sl_value_get(payload, keys[i]))
			return true;
	return false;
}

static void give_items(const struct sl_value *items, const struct sl_source_reader *reader)
{
	for (uint32_t i = 0; i < items->count; i++)
		reader->record(reader->context, &items->items[i], items->items[i].line);
}

static bool read_json(const char *path, const struct sl_source_reader *reader)
{
	struct sl_arena arena = {0};
	struct sl_value_error error;
	const struct sl_value *payload = sl_value_read(&arena, path, &error), *events;
	bool ok = payload != NULL;

	if (!payload && strcmp(error.reason, "text after the JSON value") == 0)
		ok = read_lines(path, reader); /* JSON lines under another name */
	else if (!payload)
		problem(reader, SL_SOURCE_FILE, path, error.line, error.reason);
	else if (payload->kind == SL_VALUE_ARRAY)
		give_items(payload, reader);
	else if (sl_value_is(events = sl_value_get(payload, "events"), SL_VALUE_ARRAY))
		give_items(events, reader);
	else if (looks_like_event(payload))
		reader->record(reader->context, payload, payload->line);
	else
		problem(reader, SL_SOURCE_FILE, path, payload->line, "no telemetry events in this JSON");
	sl_arena_free(&arena);
	return ok;
}

static bool read_csv(const char *path, const struct sl_source_reader *reader)
{
	char reason[128];
	FILE *file = sl_paths_open_limited(path, FILE_MAX_GB, reason, sizeof(reason));

	if (!file) {
		problem(reader, SL_SOURCE_FILE, path, 0, reason);
		return false;
	}
	sl_csv_read(file, path, reader);
	fclose(file);
	return true;
}

bool sl_source_read(const char *path, const struct sl_source_reader *reader)
{
	switch (sl_source_form(path)) {
	case SL_SOURCE_CSV:
		return read_csv(path, reader);
	case SL_SOURCE_JSON:
		return read_json(path, reader);
	default:
		return read_lines(path, reader);
	}
}
