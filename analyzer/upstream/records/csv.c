/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/records.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

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

void sl_csv_read(FILE *file, const char *path, const struct sl_source_reader *reader)
{
	struct row header = {0}, row = {0};
	struct sl_source_clock clock;
	uint32_t line = 1, begin = 1;
	bool any = false;

	if (!read_row(file, &header, &line)) {
		reader->problem(reader->context, SL_SOURCE_FILE, path, 1, "empty file");
		return;
	}
	sl_source_clock_start(&clock, file);
	for (begin = line; read_row(file, &row, &line) && !sl_source_clock_spent(&clock, reader, path, begin); begin = line)
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
