/* SPDX-License-Identifier: MIT */
/* Takes lines from a file, tells logs from other files, and parts the prefixes of a line from its text. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/budget.h"
#include "analyzer/base/input.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/terminal.h"
#include "analyzer/base/utf8.h"
#include "analyzer/logs/parts.h"
#include "common/base.h"

#define HEAD	 4096	      /* bytes that tell what a file is */
#define LONGEST	 (256u << 10) /* a longer line is read in pieces */
#define OBJECT	 64	      /* bytes before a JSON object */
#define MESSAGES 7	      /* keys of JSON that have a message; only one counts */
#define CHARGE	 (8u << 20)   /* bytes between two looks at the budget */
#define PREFIXES 10	      /* in a row */
#define PREFIX	 96	      /* bytes of one */

struct reader {
	sl_log_each *each;
	void *context;
	uint64_t *lines;
	char *decoded, *wide; /* what a line of JSON says, LONGEST bytes; UTF-16 as UTF-8, NULL: it is none */
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

/* What a terminal would have shown: a carriage return begins a line anew, which tells another one.  at[size] may be written. */
static void show(struct reader *reader, char *at, size_t size)
{
	char *end = at + size, *to = at;

	while (to < end && (unsigned char)*to >= ' ') /* most lines are fine as they are */
		to++;
	*end = 0; /* an escape sequence may have no end */
	for (char *from = to; from < end;) {
		unsigned char c = (unsigned char)*from;

		if (c >= ' ' || c == '\t') {
			*to++ = c == '\t' ? ' ' : *from;
			from++;
		} else if (c == '\r' || c == '\n') {
			*to = 0;
			if (to > at)
				reader->each(reader->context, at, (size_t)(to - at));
			at = to = ++from;
		} else {
			from += c == '\033' ? escape_size(from) : 1;
		}
	}
	*to = 0;
	reader->each(reader->context, at, (size_t)(to - at));
}

/* What a JSON string says, from behind its quote to `stop`, or an array: journald writes what is no UTF-8 as numbers of bytes. */
static size_t decode(const char *at, char stop, char *out)
{
	static const char names[] = "nrtbf", values[] = "\n\r\t\b\f";
	char *to = out, *end;

	for (; *at && *at != stop; at++) {
		const char *name;
		unsigned code;

		if (stop == ']') {
			long byte = strtol(at, &end, 10);

			if (end == at)
				break;
			*to++ = (char)byte;
			at = end - (*end != ',');
		} else if (*at != '\\' || !at[1]) {
			*to++ = *at;
		} else if (*++at == 'u' && strnlen(at + 1, 4) == 4 && sscanf(at + 1, "%4x", &code) == 1) {
			to = sl_utf8_put(to, code);
			at += 4;
		} else {
			name = strchr(names, *at);
			*to++ = name ? values[name - names] : *at;
		}
	}
	return (size_t)(to - out);
}

/* The value of a key of a JSON object; 0: it has none that is a text. */
static size_t decode_value(const char *line, const char *key, char *out)
{
	for (const char *at = line; (at = strstr(at, key));) {
		at += strlen(key);
		at += strspn(at, " ");
		if (*at != ':') /* "level":"error" */
			continue;
		at += 1 + strspn(at + 1, " ");
		return *at == '"' ? decode(at + 1, '"', out) : *at == '[' ? decode(at + 1, ']', out) : 0;
	}
	return 0;
}

/* What a line says that docker, journald or a logger wrote as JSON, with the traceback that some put into a key of its own. */
static size_t decode_json(const char *line, size_t length, char *out)
{
	static const char *const keys[] = {"\"log\"",	    "\"MESSAGE\"",   "\"message\"",	"\"msg\"",
					   "\"text\"",	    "\"line\"",	     "\"textPayload\"", "\"exc_info\"",
					   "\"exception\"", "\"traceback\"", "\"stack_trace\"", "\"error\""};
	const char *object = memchr(line, '{', length < OBJECT ? length : OBJECT), *key = object ? object + 1 : NULL;
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
	if (!decoded && memchr(line, '\\', size) && strstr(line, "\\n  File "))
		decoded = decode(line, 0, reader->decoded); /* a traceback as Python's repr or a shell prints it */
	show(reader, decoded ? reader->decoded : line, decoded ?: size);
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
		*reader->lines += whole || (last && stop == end);
		at = stop + whole;
	}
	return (size_t)(at - begin);
}

static size_t take_utf16(struct reader *reader, const uint8_t *at, size_t size, bool little, bool last)
{
	size_t consumed, done;

	reader->wide = sl_memory_must(realloc(reader->wide, reader->size + 2 * size + 1)); /* two bytes are three at most */
	for (consumed = 0; consumed + 2 <= size; consumed += 2) {
		unsigned unit = (unsigned)at[consumed + little] << 8 | at[consumed + !little];

		if (unit != 0xfeff)
			reader->size = (size_t)(sl_utf8_put(reader->wide + reader->size, unit) - reader->wide);
	}
	done = take_lines(reader, reader->wide, reader->size, last);
	reader->size -= done;
	memmove(reader->wide, reader->wide + done, reader->size);
	return consumed;
}

const char *sl_log_lines(FILE *file, sl_log_each *each, void *context, const char *shown, uint64_t *lines)
{
	struct sl_input *input = sl_input_open(file, 0);
	struct reader reader = {each, context, lines, .decoded = sl_memory_must(malloc(LONGEST + 1))};
	bool last = false;
	const char *why = NULL;
	struct sl_budget budget;
	uint64_t charged = 0, bytes = sl_budget_size(fileno(file));

	sl_budget_begin(&budget, bytes);
	sl_budget_resume();
	if (sl_input_fill(input, 2) && input->bytes[0] + input->bytes[1] == 0xff + 0xfe)
		reader.wide = sl_memory_must(malloc(1));
	for (bool little = reader.wide && input->bytes[0] == 0xff; !why && !last;) {
		last = !sl_input_fill(input, input->size - input->at + 1);
		input->at = reader.wide ? take_utf16(&reader, input->bytes, input->size, little, last)
					: take_lines(&reader, (char *)input->bytes, input->size, last);
		if (sl_input_offset(input) < charged + CHARGE)
			continue;
		charged = sl_input_offset(input);
		if (shown)
			sl_terminal_reading(shown, sl_input_read(input), bytes);
		why = sl_budget_spent(&budget) ? "reading it takes too long; STORMLOG_READ_SECONDS sets the limit" : NULL;
	}
	if (shown)
		sl_terminal_reading(shown, UINT64_MAX, bytes);
	why = why ?: sl_input_why(input);
	sl_input_close(input);
	free(reader.decoded);
	free(reader.wide);
	return why;
}

static bool begins(const char *at, const char *words)
{
	return !strncmp(at, words, strlen(words));
}

/* words: each ends in NUL, the last one in two. */
static bool has_word(const char *line, const char *words)
{
	while (*words && !strstr(line, words))
		words += strlen(words) + 1;
	return *words;
}

enum sl_log_kind sl_log_kind_of(const char *head, size_t size)
{
	/* keys with which docker, journald, Kubernetes and loggers of lines write what a program printed, and Python Stormlog's */
	static const char logged[] = "\"log\":\0\"stream\":\0\"MESSAGE\"\0\"__REALTIME_TIMESTAMP\"\0\"msg\":\0\"message\":\0"
				     "\"textPayload\":\0\"levelname\":\0\"level\":\0",
			  events[] = "\"schema_version\"\0\"event_type\"\0\"session_id\"\0",
			  columns[] = "timestamp\0memory_allocated\0event_type\0";
	char text[HEAD + 1] = "", *at = text, *next;
	bool blanks;
	size_t odd = 0;

	size = size < HEAD ? size : HEAD;
	for (size_t i = 0; i < size; i++) {
		odd += (unsigned char)head[i] < ' ' && !strchr("\t\n\r\033\b\a\f\v", head[i]);
		text[i] = head[i] ?: ' ';
	}
	if (begins(text, "\xff\xfe") || begins(text, "\xfe\xff"))
		return SL_LOG_IS_TEXT; /* UTF-16 with its mark */
	at += begins(text, "\xef\xbb\xbf") ? 3 : 0;
	at += strspn(at, " \t\r\n");
	if (!*at)
		return SL_LOG_IS_RECORDS; /* empty: its reader says it */
	next = at + 1 + strspn(at + 1, " \t\r\n");
	blanks = strpbrk(text, " \n");
	at[strcspn(at, "\n")] = 0;
	if (*at == '{' && *next == '"' && !has_word(at, events) && has_word(at, logged))
		return SL_LOG_IS_TEXT;
	if (*at == '{' || *at == '[')
		return strchr("\"{[]}", *next) ? SL_LOG_IS_RECORDS : SL_LOG_IS_TEXT;
	if (size > 4 && begins(text, "\177ELF"))
		return SL_LOG_IS_PROGRAM;
	if (memchr(head, 0, size) || odd > size / 50)
		return SL_LOG_IS_BINARY;
	if (size == HEAD && !blanks)
		return SL_LOG_IS_RECORDS; /* a program prints words: their reader tells what is wrong with such a line */
	return strchr(at, ',') && !strchr(at, ' ') && has_word(at, columns) ? SL_LOG_IS_RECORDS : SL_LOG_IS_TEXT;
}

enum sl_log_kind sl_log_kind_of_file(const char *path)
{
	FILE *file = sl_paths_open_file(path);
	enum sl_log_kind kind = SL_LOG_IS_RECORDS;

	if (file) {
		struct sl_input *input = sl_input_open(file, 0);

		sl_input_fill(input, HEAD);
		kind = sl_log_kind_of((const char *)input->bytes, input->size < HEAD ? input->size : HEAD);
		sl_input_close(input);
		fclose(file);
	}
	return kind;
}

/* A rank or process in the words of a prefix: rank5, RANK 2, rank=3, mpirank:6, TP1, Worker_TP0, default3 of torchrun, pid=77. */
static void take_process(struct sl_log_line *line, const char *at, size_t size)
{
	for (const char *end = at + size, *first = at; at < end; at++) {
		size_t length = strncasecmp(at, "rank", 4) ? 0 : 4;
		const char *number;

		if (at == first || !isalpha((unsigned char)at[-1]))
			length = length ?: begins(at, "default") ? 7 : strncasecmp(at, "tp", 2) ? 0 : 2;
		number = at + length + strspn(at + length, " =_:");
		if (line->from.rank < 0 && length && number < end && SL_LOG_IS_DIGIT(*number))
			line->from.rank = (int)strtol(number, NULL, 10);
		if (begins(at, "pid=") && at + 4 < end && SL_LOG_IS_DIGIT(at[4]))
			line->from.pid = strtol(at + 4, NULL, 10);
	}
}

/* A word, or what is in brackets. */
static bool take_severity(struct sl_log_line *line, const char *at, size_t size)
{
	static const char *const words[] = {[SL_LOG_INFO] = " INFO DEBUG I TRACE ",
					    [SL_LOG_WARNING] = " WARNING WARN W ",
					    [SL_LOG_ERROR] = " ERROR CRITICAL FATAL E F "};
	char word[12];

	if (!size || size > 8 || memchr(at, ' ', size))
		return false;
	snprintf(word, sizeof(word), " %.*s ", (int)size, at);
	for (unsigned i = SL_LOG_INFO; i < SL_COUNT(words); i++)
		if (strcasestr(words[i], word)) {
			line->from.severity = i;
			return true;
		}
	return false;
}

/* The clock of a time: hours, minutes and seconds with a fraction, and month and day before it. */
static void take_time(struct sl_log_line *line)
{
	for (const char *at = line->text; at + 8 <= line->text + line->size && at < line->text + PREFIX; at++) {
		unsigned month, day, hour, minute, second;
		char fraction[12] = "0.";

		if (!SL_LOG_IS_DIGIT(*at) || at[2] != ':' || at[5] != ':' ||
		    sscanf(at, "%2u:%2u:%2u%*1[.,]%9[0-9]", &hour, &minute, &second, fraction + 2) < 3)
			continue;
		if (at < line->text + 6 || sscanf(at - 6, "%2u%*1[-/]%2u", &month, &day) != 2)
			month = day = 0;
		line->from.time_ms = ((((month * 31ull + day) * 24 + hour) * 60 + minute) * 60 + second) * 1000 +
				     (uint64_t)(strtod(fraction, NULL) * 1000 + 0.5);
		return;
	}
}

/* A prefix in brackets or parentheses; 0: it is part of the message. */
static size_t in_brackets(struct sl_log_line *line, const char *at)
{
	const char *end = memchr(at, *at == '[' ? ']' : ')', strnlen(at, PREFIX)), *comma;
	size_t size = end ? (size_t)(end - at - 1) : 0;

	if (!strchr("[(", *at) || !size || memchr(at + 1, *at, size) || strchr("'\"", at[1]) || begins(at + 1, "Previous line") ||
	    (*at == '(' && !memmem(at, size, "pid=", 4) && !memmem(at, size, "rank", 4)))
		return 0;
	take_severity(line, at + 1, size);
	take_process(line, at + 1, size);
	comma = memchr(at, ',', size);
	if (begins(++end, "<std")) { /* [1,5]<stderr>: of Open MPI */
		line->from.rank = comma && SL_LOG_IS_DIGIT(comma[1]) ? (int)strtol(comma + 1, NULL, 10) : line->from.rank;
		end += strcspn(end, ">") + 1;
	} else if (*end == ':' && strspn(at + 1, SL_LOG_DIGITS) == size) { /* [5]: of PyTorch's launchers */
		line->from.rank = (int)strtol(at + 1, NULL, 10);
	}
	return (size_t)(end + (*end == ':') - at);
}

/* A word of a prefix: a time, a severity, stdout F, srun's "5:", rank5:; 0: it is part of the message. */
static size_t word_prefix(struct sl_log_line *line, const char *at)
{
	const char *rank = at + 4 * begins(at, "rank"), *end;
	size_t size = strcspn(at, " "), digits = strspn(rank, SL_LOG_DIGITS), bare = size - (size && at[size - 1] == ':');
	const char *behind = at + size + strspn(at + size, " "), *colon = memchr(at, ':', size);

	if (size > PREFIX || !size)
		return 0;
	if (digits && digits < 5 && rank + digits == at + bare && bare < size) {
		line->from.rank = line->from.rank < 0 ? (int)strtol(rank, NULL, 10) : line->from.rank;
		return size;
	}
	if (digits && size >= 5 && strspn(at, SL_LOG_DIGITS "-:./,TZ+") == size &&
	    (strcspn(at, "-:/") < size || (size > 10 && digits < size))) /* a time */
		return size;
	if (take_severity(line, at, bare))
		return size;
	if (isupper((unsigned char)*at) && colon && take_severity(line, at, (size_t)(colon - at))) {
		end = memchr(colon + 1, ':', size - (size_t)(colon + 1 - at)); /* WARNING:root: of Python's logging */
		return (size_t)((end ?: colon) + 1 - at);
	}
	if (strchr("IWEF", *at) && size == 5 && strspn(at + 1, SL_LOG_DIGITS) == 4) {
		end = memchr(at, ']', strnlen(at, PREFIX)); /* I0614 10:02:11.118201 140231 service.cc:145] */
		take_severity(line, at, 1);
		return end ? (size_t)(end + 1 - at) : size;
	}
	if (begins(at, "stdout") || begins(at, "stderr") || /* llama-1  | of docker compose */
	    (begins(behind, "| ") && strspn(at, SL_LOG_WORD "-") == size))
		return (size_t)(behind - at) + (*behind && strchr("FP|", *behind));
	return begins(at, "##[") ? strcspn(at, "]") + 1 : size == 1 && strchr(">|", *at);
}

/* "Nov 29 10:21:13 host python[1234]: " of syslog and journald. */
static size_t syslog_prefix(struct sl_log_line *line, const char *at)
{
	const char *end, *open;

	if (!isalpha((unsigned char)at[0]) || strnlen(at, 20) < 20 || at[3] != ' ' || at[6] != ' ' || at[9] != ':' || at[12] != ':')
		return 0;
	end = strstr(at + 15, ": ");
	if (!end || end - at > PREFIX)
		return 0;
	open = memchr(at, '[', (size_t)(end - at));
	line->from.pid = open ? strtol(open + 1, NULL, 10) : line->from.pid;
	return (size_t)(end + 1 - at);
}

void sl_log_line_part(struct sl_log_line *line)
{
	const char *at = line->text;
	size_t size = 1;

	line->parted = true;
	line->from = (struct sl_log_origin){-1, -1, SL_LOG_UNKNOWN, SL_LOG_PLAIN};
	take_time(line);
	for (unsigned prefixes = 0; size && prefixes < PREFIXES; prefixes++) {
		const char *next = at + (prefixes ? strspn(at, " ") : 0);

		size = in_brackets(line, next) ?: syslog_prefix(line, next) ?: word_prefix(line, next);
		size = size > strlen(next) ? 0 : size; /* a bracket that does not close */
		at = size ? next + size : at;
	}
	line->content = (size_t)(at - line->text);
	line->content += line->content && *at == ' '; /* one blank belongs to the prefix, the others are the indentation */
}
