/* SPDX-License-Identifier: MIT */
#include "analyzer/logs/lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/budget.h"
#include "analyzer/base/input.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/utf8.h"
#include "common/base.h"

#define LONGEST (256u << 10) /* a longer line is read in pieces */
#define PREFIX	64	     /* bytes before a JSON object */
#define CHARGE	(8u << 20)   /* bytes between two looks at the budget */

struct reader {
	sl_log_each *each;
	void *context;
	char *raw, *clean, *decoded; /* LONGEST and a byte each */
	size_t size;
	uint64_t lines;
	enum { UTF8, UTF16_LITTLE, UTF16_BIG } encoding;
	int half; /* first byte of a unit of UTF-16; -1: none */
};

/* An escape sequence: behind ESC [ up to a letter, behind ESC ] up to BEL or ESC \, else one character. */
static size_t escape_size(const char *at, size_t left)
{
	size_t i = 2;

	if (left < 2)
		return left;
	if (at[1] == '[') {
		while (i < left && (at[i] < '@' || at[i] > '~'))
			i++;
		return i < left ? i + 1 : left;
	}
	if (at[1] != ']')
		return 2;
	while (i < left && at[i] != '\a' && at[i] != '\033')
		i++;
	return i + 1 < left && at[i] == '\033' ? i + 2 : i < left ? i + 1 : left;
}

/* What a terminal would have shown: a carriage return begins a line anew, which tells another one. */
static void show(struct reader *reader, const char *at, size_t size)
{
	char *out = reader->clean;

	for (size_t i = 0; i < size;) {
		unsigned char c = (unsigned char)at[i];

		if (c >= ' ' || c == '\t') {
			*out++ = (char)c;
			i++;
		} else if (c == '\r' || c == '\n') {
			*out = 0;
			if (out > reader->clean)
				reader->each(reader->context, reader->clean, (size_t)(out - reader->clean));
			out = reader->clean;
			i++;
		} else {
			i += c == '\033' ? escape_size(at + i, size - i) : 1;
		}
	}
	*out = 0;
	reader->each(reader->context, reader->clean, (size_t)(out - reader->clean));
}

static unsigned hex_of(const char *at)
{
	char digits[5] = {0};

	memcpy(digits, at, 4);
	return (unsigned)strtoul(digits, NULL, 16);
}

/* The text of a JSON string that begins behind its quote, up to `stop`. */
static size_t decode_string(const char *at, char stop, char *out)
{
	static const char names[] = "nrtbf", values[] = "\n\r\t\b\f";
	char *to = out;

	for (; *at && *at != stop; at++) {
		const char *name;

		if (*at != '\\' || !at[1]) {
			*to++ = *at;
			continue;
		}
		name = strchr(names, *++at);
		if (*at == 'u' && strnlen(at + 1, 4) == 4) {
			to = sl_utf8_put(to, hex_of(at + 1));
			at += 4;
		} else {
			*to++ = name ? values[name - names] : *at;
		}
	}
	return (size_t)(to - out);
}

/* journald writes a message that is no UTF-8 as numbers. */
static size_t decode_bytes(const char *at, char *out)
{
	char *to = out, *end;

	for (; *at && *at != ']'; at = *end == ',' ? end + 1 : end) {
		long byte = strtol(at, &end, 10);

		if (end == at)
			break;
		*to++ = (char)byte;
	}
	return (size_t)(to - out);
}

/* The value of a key of a JSON object; 0: it has none that is a text. */
static size_t decode_value(const char *line, const char *key, char *out)
{
	for (const char *at = strstr(line, key); at; at = strstr(at, key)) {
		at += strlen(key);
		at += strspn(at, " ");
		if (*at != ':') /* "level":"error" */
			continue;
		at++;
		at += strspn(at, " ");
		return *at == '"' ? decode_string(at + 1, '"', out) : *at == '[' ? decode_bytes(at + 1, out) : 0;
	}
	return 0;
}

/* What a line says that docker, journald or a logger wrote as JSON, with the traceback that some put into a key of its own. */
static size_t decode_json(const char *line, char *out)
{
	static const char *const keys[] = {"\"log\"",  "\"MESSAGE\"", "\"message\"",	"\"msg\"",
					   "\"text\"", "\"line\"",    "\"textPayload\""},
				 *const more[] = {"\"exc_info\"", "\"exception\"", "\"traceback\"", "\"stack_trace\"", "\"error\""};
	const char *object = strstr(line, "{\"") ?: strstr(line, "{ \"");
	size_t size = 0;

	if (!object || object - line > PREFIX || !strchr(object, '}'))
		return 0;
	for (size_t i = 0; i < SL_COUNT(keys) && !size; i++)
		size = decode_value(object, keys[i], out);
	for (size_t i = 0; i < SL_COUNT(more) && size; i++) {
		size_t part = decode_value(object, more[i], out + size + 1);

		out[size] = '\n';
		size += part ? part + 1 : 0;
	}
	return size;
}

static void end_line(struct reader *reader)
{
	size_t size;

	reader->raw[reader->size] = 0;
	size = decode_json(reader->raw, reader->decoded);
	if (!size && strstr(reader->raw, "\\n  File ")) /* a traceback that Python's repr or a shell has put into one line */
		size = decode_string(reader->raw, 0, reader->decoded);
	if (size)
		show(reader, reader->decoded, size);
	else
		show(reader, reader->raw, reader->size);
	reader->size = 0;
}

/* Bytes of UTF-8 without a line break; what does not fit is another line. */
static void add(struct reader *reader, const char *at, size_t size)
{
	while (size) {
		size_t room = LONGEST - reader->size, part = size < room ? size : room;

		memcpy(reader->raw + reader->size, at, part);
		reader->size += part;
		at += part;
		size -= part;
		if (reader->size == LONGEST)
			end_line(reader);
	}
}

static void take_utf8(struct reader *reader, const char *at, size_t size)
{
	const char *end = at + size, *line;

	for (; (line = memchr(at, '\n', (size_t)(end - at))); at = line + 1) {
		add(reader, at, (size_t)(line - at));
		end_line(reader);
		reader->lines++;
	}
	add(reader, at, (size_t)(end - at));
}

static void take_utf16(struct reader *reader, const uint8_t *at, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char text[SL_UTF8_SEQUENCE];
		unsigned unit;

		if (reader->half < 0) {
			reader->half = at[i];
			continue;
		}
		unit = reader->encoding == UTF16_LITTLE ? (unsigned)reader->half | (unsigned)at[i] << 8
							: (unsigned)reader->half << 8 | at[i];
		reader->half = -1;
		if (unit == '\n') {
			end_line(reader);
			reader->lines++;
		} else if (unit != 0xfeff) {
			add(reader, text, (size_t)(sl_utf8_put(text, unit) - text));
		}
	}
}

const char *sl_log_lines(FILE *file, sl_log_each *each, void *context, void (*progress)(uint64_t read), uint64_t *lines)
{
	struct sl_input *input = sl_input_open(file);
	struct reader reader = {.each = each, .context = context, .half = -1};
	struct sl_budget budget;
	const char *why = NULL;
	size_t charged = 0;

	reader.raw = sl_memory_must(malloc(LONGEST + 1));
	reader.clean = sl_memory_must(malloc(LONGEST + 1));
	reader.decoded = sl_memory_must(malloc(LONGEST + 1));
	sl_budget_begin(&budget, sl_budget_size(fileno(file)));
	sl_budget_resume();
	if (sl_input_fill(input, 2) && input->bytes[input->at] + input->bytes[input->at + 1] == 0xff + 0xfe)
		reader.encoding = input->bytes[input->at] == 0xff ? UTF16_LITTLE : UTF16_BIG;
	while (!why && sl_input_fill(input, 1)) {
		size_t size = input->size - input->at;

		if (reader.encoding == UTF8)
			take_utf8(&reader, (const char *)input->bytes + input->at, size);
		else
			take_utf16(&reader, input->bytes + input->at, size);
		input->at = input->size;
		charged += size;
		if (charged < CHARGE)
			continue;
		charged = 0;
		if (progress)
			progress(sl_input_read(input));
		why = sl_budget_spent(&budget) ? "reading it takes too long; STORMLOG_READ_SECONDS sets the limit" : NULL;
	}
	if (reader.size) {
		end_line(&reader);
		reader.lines++;
	}
	*lines += reader.lines;
	why = why ? why : sl_input_why(input);
	sl_input_close(input);
	free(reader.raw);
	free(reader.clean);
	free(reader.decoded);
	return why;
}
