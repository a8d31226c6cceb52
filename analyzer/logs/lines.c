/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/budget.h"
#include "analyzer/base/input.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/utf8.h"
#include "analyzer/logs/parts.h"
#include "common/base.h"

#define LONGEST	 (256u << 10) /* a longer line is read in pieces */
#define ROOM	 (LONGEST + SL_UTF8_SEQUENCE)
#define PREFIX	 64	    /* bytes before a JSON object */
#define MESSAGES 7	    /* keys of JSON that have a message; only one counts */
#define CHARGE	 (8u << 20) /* bytes between two looks at the budget */

struct reader {
	sl_log_each *each;
	void *context;
	uint64_t lines;
	char *decoded, *wide; /* what a line of JSON says, LONGEST bytes; UTF-16 as UTF-8, ROOM bytes, or NULL: it is none */
	size_t size;	      /* of wide */
};

/* An escape sequence: behind ESC [ up to a letter, behind ESC ] up to BEL or ESC \, else one character. */
static size_t escape_size(const char *at)
{
	size_t size = 1;

	if (at[1] == '[')
		size = 2 + strspn(at + 2, " !\"#$%&'()*+,-./0123456789:;<=>?");
	else if (at[1] == ']')
		size = 2 + strcspn(at + 2, "\a\033");
	size += at[1] == ']' && at[size] == '\033';
	return size + (at[size] != 0);
}

/* Bytes without a control character. */
static size_t plain_size(const char *at, size_t size)
{
	size_t i = 0;

	for (uint64_t eight; i + 8 <= size; i += 8) { /* a byte below 32 borrows into its highest bit */
		memcpy(&eight, at + i, 8);
		if ((eight - 0x2020202020202020) & ~eight & 0x8080808080808080)
			break;
	}
	while (i < size && (unsigned char)at[i] >= ' ')
		i++;
	return i;
}

/* What a terminal would have shown: a carriage return begins a line anew, which tells another one.  at[size] may be written. */
static void show(struct reader *reader, char *at, size_t size)
{
	size_t out = plain_size(at, size);

	for (size_t i = out; i < size;) {
		unsigned char c = (unsigned char)at[i];

		if (c >= ' ' || c == '\t') {
			at[out++] = c == '\t' ? ' ' : (char)c;
			i++;
		} else if (c == '\r' || c == '\n') {
			at[out] = 0;
			if (out)
				reader->each(reader->context, at, out);
			i++;
			at += i;
			size -= i;
			i = out = 0;
		} else {
			i += c == '\033' ? escape_size(at + i) : 1;
		}
	}
	at[out] = 0;
	reader->each(reader->context, at, out);
}

/* The text of a JSON string that begins behind its quote, up to `stop`. */
static size_t decode_string(const char *at, char stop, char *out)
{
	static const char names[] = "nrtbf", values[] = "\n\r\t\b\f";
	char *to = out;

	for (; *at && *at != stop; at++) {
		const char *name;
		unsigned code;

		if (*at != '\\' || !at[1]) {
			*to++ = *at;
			continue;
		}
		name = strchr(names, *++at);
		if (*at == 'u' && strnlen(at + 1, 4) == 4 && sscanf(at + 1, "%4x", &code) == 1) {
			to = sl_utf8_put(to, code);
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
static size_t decode_json(const char *line, size_t length, char *out)
{
	static const char *const keys[] = {"\"log\"",	    "\"MESSAGE\"",   "\"message\"",	"\"msg\"",
					   "\"text\"",	    "\"line\"",	     "\"textPayload\"", "\"exc_info\"",
					   "\"exception\"", "\"traceback\"", "\"stack_trace\"", "\"error\""};
	const char *object = memchr(line, '{', length < PREFIX ? length : PREFIX), *key = object ? object + 1 : NULL;
	size_t size = 0;

	if (!object || key[strspn(key, " ")] != '"' || !memchr(object, '}', length - (size_t)(object - line)))
		return 0;
	for (size_t i = 0; i < SL_COUNT(keys); i++) {
		bool more = i >= MESSAGES;
		size_t part = more == (size > 0) ? decode_value(object, keys[i], out + size + more) : 0;

		if (part && more)
			out[size++] = '\n';
		size += part;
	}
	return size;
}

/* line[size] may be written. */
static void take_line(struct reader *reader, char *line, size_t size)
{
	size_t decoded;

	line[size] = 0;
	decoded = decode_json(line, size, reader->decoded);
	if (!decoded && memchr(line, '\\', size) &&
	    strstr(line, "\\n  File ")) /* a traceback as Python's repr or a shell prints it */
		decoded = decode_string(line, 0, reader->decoded);
	if (decoded)
		show(reader, reader->decoded, decoded);
	else
		show(reader, line, size);
}

/* Takes the lines that end here, what is too long for one, and the last one of all.  at[size] may be written. */
static size_t take_lines(struct reader *reader, char *at, size_t size, bool last)
{
	char *begin = at, *end = at + size, *stop = NULL;

	while (at < end && ((stop = memchr(at, '\n', (size_t)(end - at))) || last || end - at >= LONGEST)) {
		bool whole = stop && stop - at <= LONGEST;
		char behind;

		stop = whole ? stop : end - at < LONGEST ? end : at + LONGEST;
		behind = *stop;
		take_line(reader, at, (size_t)(stop - at));
		*stop = behind;
		reader->lines += whole || (last && stop == end);
		at = stop + whole;
	}
	return (size_t)(at - begin);
}

static size_t take_utf16(struct reader *reader, const uint8_t *at, size_t size, bool little, bool last)
{
	size_t taken = 0, done;

	do {
		for (; taken + 2 <= size && reader->size + SL_UTF8_SEQUENCE <= ROOM; taken += 2) {
			unsigned unit = (unsigned)at[taken + little] << 8 | at[taken + !little];

			if (unit != 0xfeff)
				reader->size = (size_t)(sl_utf8_put(reader->wide + reader->size, unit) - reader->wide);
		}
		done = take_lines(reader, reader->wide, reader->size, last && taken + 2 > size);
		reader->size -= done;
		memmove(reader->wide, reader->wide + done, reader->size);
	} while (taken + 2 <= size);
	return taken;
}

const char *sl_log_lines(FILE *file, sl_log_each *each, void *context, void (*progress)(uint64_t read), uint64_t *lines)
{
	struct sl_input *input = sl_input_open(file);
	struct reader *reader = sl_memory_must(calloc(1, sizeof(*reader)));
	bool last = false;
	const char *why = NULL;
	struct sl_budget budget;
	uint64_t charged = 0;

	reader->decoded = sl_memory_must(malloc(LONGEST + 1));
	reader->each = each;
	reader->context = context;
	sl_budget_begin(&budget, sl_budget_size(fileno(file)));
	sl_budget_resume();
	if (sl_input_fill(input, 2) && input->bytes[0] + input->bytes[1] == 0xff + 0xfe)
		reader->wide = sl_memory_must(malloc(ROOM + 1));
	for (bool little = reader->wide && input->bytes[0] == 0xff; !why && !last;) {
		last = !sl_input_fill(input, input->size - input->at + 1);
		if (reader->wide)
			input->at = take_utf16(reader, input->bytes, input->size, little, last);
		else
			input->at = take_lines(reader, (char *)input->bytes, input->size, last);
		if (sl_input_offset(input) < charged + CHARGE)
			continue;
		charged = sl_input_offset(input);
		if (progress)
			progress(sl_input_read(input));
		why = sl_budget_spent(&budget) ? "reading it takes too long; STORMLOG_READ_SECONDS sets the limit" : NULL;
	}
	*lines += reader->lines;
	why = why ? why : sl_input_why(input);
	sl_input_close(input);
	free(reader->decoded);
	free(reader->wide);
	free(reader);
	return why;
}
