/* SPDX-License-Identifier: MIT */
/* Reads the records of a file: CSV, JSON, or lines of JSON. */
#include "analyzer/upstream/records/records.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analyzer/base/budget.h"
#include "analyzer/base/paths.h"

#define ASK_EVERY 64 /* records, between two looks at the clock */

struct clock {
	struct sl_budget budget;
	uint32_t records;
};

static void start_clock(struct clock *clock, FILE *file)
{
	clock->records = 0;
	sl_budget_resume();
	sl_budget_begin(&clock->budget, sl_budget_size(fileno(file)));
}

/* To be asked at each record.  True, with a problem: the file's time is used up (base/budget.h). */
static bool is_spent(struct clock *clock, const struct sl_source_reader *reader, const char *path, uint32_t line)
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
	struct clock clock;
	uint32_t number = 0;
	bool whole;

	if (!file) {
		problem(reader, SL_SOURCE_FILE, path, 0, reason);
		return false;
	}
	start_clock(&clock, file);
	for (size_t length; (length = next_line(file, &line, &size, &whole)) > 0;) {
		struct sl_value_error error;
		bool ended = line[length - 1] == '\n';

		number++;
		if (is_spent(&clock, reader, path, number))
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

#define FIELD_MAX_BYTES (16u << 20)

/* One row: fields in quotes may hold commas, line breaks and doubled quotes. */
struct row {
	struct sl_arena arena;
	const char **fields;
	size_t count, capacity;
	char *text;
	size_t length, size;
	bool cut; /* a field was longer than FIELD_MAX_BYTES */
};

static void push_char(struct row *row, int c)
{
	if (row->length == FIELD_MAX_BYTES) {
		row->cut = true;
		return;
	}
	row->text = sl_arena_grow(row->text, &row->size, row->length, 1);
	row->text[row->length++] = (char)c;
}

static void end_field(struct row *row)
{
	row->fields = sl_arena_grow(row->fields, &row->capacity, row->count, sizeof(*row->fields));
	row->fields[row->count++] = sl_arena_strndup(&row->arena, row->text ? row->text : "", row->length);
	row->length = 0;
}

/* false at the end of the file. *line counts the lines read. */
static bool read_row(FILE *file, struct row *row, uint32_t *line)
{
	bool quoted = false, any = false;
	int c;

	sl_arena_reset(&row->arena);
	row->count = row->length = 0;
	row->cut = false;
	while ((c = getc(file)) != EOF) {
		*line += c == '\n';
		any = true;
		if (quoted) {
			int next = c == '"' ? getc(file) : 0;

			if (c != '"') {
				push_char(row, c);
			} else if (next == '"') {
				push_char(row, '"');
			} else {
				quoted = false;
				ungetc(next, file);
			}
		} else if (c == '"' && row->length == 0) {
			quoted = true;
		} else if (c == ',') {
			end_field(row);
		} else if (c == '\n') {
			break;
		} else if (c != '\r') {
			push_char(row, c);
		}
	}
	if (any)
		end_field(row);
	return any;
}

static bool is_in(const char *key, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(key, names[i]) == 0)
			return true;
	return false;
}

static bool is_whole_column(const char *key)
{
	static const char *const names[] = {"schema_version",
					    "timestamp_ns",
					    "sampling_interval_ms",
					    "pid",
					    "rank",
					    "local_rank",
					    "world_size",
					    "device_id",
					    "allocator_allocated_bytes",
					    "allocator_reserved_bytes",
					    "allocator_active_bytes",
					    "allocator_inactive_bytes",
					    "allocator_change_bytes",
					    "device_used_bytes",
					    "device_free_bytes",
					    "device_total_bytes",
					    "memory_allocated",
					    "memory_reserved",
					    "memory_change",
					    "total_memory"};

	return is_in(key, names, sizeof(names) / sizeof(*names));
}

/* A number of a whole column is exact when it is written as one, else truncated as int(float(text)). */
static bool to_value(struct sl_arena *arena, const char *key, const char *text, struct sl_value *value)
{
	struct sl_value_error error;
	const struct sl_value *parsed;
	char *end;

	*value = (struct sl_value){.kind = SL_VALUE_NULL};
	if (*text == 0)
		return true;
	if (strcmp(key, "metadata") == 0) {
		parsed = sl_value_parse(arena, text, strlen(text), 1, &error);
		*value = sl_value_is(parsed, SL_VALUE_OBJECT) ? *parsed : (struct sl_value){.kind = SL_VALUE_OBJECT};
		return true;
	}
	bool whole = is_whole_column(key);

	if (!whole && strcmp(key, "timestamp") != 0) {
		*value = (struct sl_value){.kind = SL_VALUE_STRING, .text = text};
		return true;
	}
	parsed = sl_value_parse(arena, *text == '+' ? text + 1 : text, strlen(text) - (*text == '+'), 1, &error);
	if (whole && sl_value_is(parsed, SL_VALUE_INT)) {
		*value = *parsed;
		return true;
	}
	double real = strtod(text, &end);

	if (*end || end == text || (whole && !(fabs(real) < 1e37)))
		return false;
	*value = whole ? (struct sl_value){.kind = SL_VALUE_INT, .integer = (__int128)real}
		       : (struct sl_value){.kind = SL_VALUE_DOUBLE, .real = real};
	return true;
}

static void give_row(const char *const *names, size_t names_count, struct row *row, const char *path, uint32_t line,
		     const struct sl_source_reader *reader)
{
	size_t count = row->count < names_count ? row->count : names_count;
	struct sl_member *members = sl_arena_alloc(&row->arena, (names_count + 1) * sizeof(*members));

	for (size_t i = 0; i < names_count; i++) {
		const char *text = i < count ? sl_utf8_strip(&row->arena, row->fields[i]) : "";

		members[i].key = names[i];
		if (!to_value(&row->arena, names[i], text, &members[i].value)) {
			char reason[160];

			snprintf(reason, sizeof(reason), "%.60s: not a number: %.60s", names[i], text);
			sl_utf8_printable(reason);
			reader->problem(reader->context, SL_SOURCE_RECORD, path, line, reason);
			return;
		}
	}
	struct sl_value object = {.kind = SL_VALUE_OBJECT, .count = (uint32_t)names_count, .line = line, .members = members};

	reader->record(reader->context, &object, line);
}

/* A record needs a time, so a file without a column for it is no telemetry, whatever else it is. */
static bool has_time(const struct row *header)
{
	for (size_t i = 0; i < header->count; i++)
		if (!strcmp(header->fields[i], "timestamp_ns") || !strcmp(header->fields[i], "timestamp"))
			return true;
	return false;
}

/*
 * Telemetry exported as CSV: the first row names the columns, each further row is one record.  The line of a record is the one the
 * row begins on.
 */
static void read_rows(FILE *file, const char *path, const struct sl_source_reader *reader)
{
	struct row header = {0}, row = {0};
	struct clock clock;
	uint32_t line = 1, begin = 1;
	bool any = false;

	if (!read_row(file, &header, &line)) {
		reader->problem(reader->context, SL_SOURCE_FILE, path, 1, "empty file");
		return;
	}
	start_clock(&clock, file);
	for (begin = line; read_row(file, &row, &line) && !is_spent(&clock, reader, path, begin); begin = line)
		if (row.cut)
			reader->problem(reader->context, SL_SOURCE_RECORD, path, begin, "a field of more than 16 MiB");
		else if (row.count > 1 || *row.fields[0])
			give_row(header.fields, header.count, &row, path, begin, reader), any = true;
	if (!any && !has_time(&header)) /* of rows each is told */
		reader->problem(reader->context, SL_SOURCE_FILE, path, 1, "no column is timestamp_ns or timestamp");
	if (ferror(file))
		reader->problem(reader->context, SL_SOURCE_FILE, path, line, strerror(errno));
	sl_arena_free(&header.arena);
	sl_arena_free(&row.arena);
	free(header.fields);
	free(header.text);
	free(row.fields);
	free(row.text);
}

static bool read_csv(const char *path, const struct sl_source_reader *reader)
{
	char reason[128];
	FILE *file = sl_paths_open_limited(path, FILE_MAX_GB, reason, sizeof(reason));

	if (!file) {
		problem(reader, SL_SOURCE_FILE, path, 0, reason);
		return false;
	}
	read_rows(file, path, reader);
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
