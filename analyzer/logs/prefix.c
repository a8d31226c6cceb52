/* SPDX-License-Identifier: MIT */
/* What launchers, containers and loggers put before a line: a rank, a process, a time, how bad it is. */
#include "analyzer/logs/lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/logs/log.h"
#include "common/base.h"

#define PREFIXES 10 /* in a row */
#define LONGEST	 96 /* of one */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool same(const char *at, size_t size, const char *word)
{
	return strlen(word) == size && !strncasecmp(at, word, size);
}

/* A rank in the words of a prefix: rank5, RANK 2, rank=3, TP1, Worker_TP0, [1,5]<stderr>. */
static void take_rank(struct sl_log_line *line, const char *at, size_t size)
{
	static const char *const names[] = {"rank", "tp"};

	for (size_t i = 0; i + 2 < size && line->rank < 0; i++)
		for (size_t n = 0; n < SL_COUNT(names); n++) {
			size_t length = strlen(names[n]), k = i + length;

			if ((at[i] | 32) != *names[n] || strncasecmp(at + i, names[n], length) ||
			    (i && isalpha((unsigned char)at[i - 1])))
				continue;
			while (k < size && strchr(" =_:", at[k]))
				k++;
			if (k < size && is_digit(at[k]))
				line->rank = (int)strtol(at + k, NULL, 10);
		}
}

static void take_pid(struct sl_log_line *line, const char *at, size_t size)
{
	for (size_t i = 0; i + 4 < size; i++)
		if (!strncmp(at + i, "pid=", 4) && is_digit(at[i + 4])) {
			line->pid = strtol(at + i + 4, NULL, 10);
			return;
		}
}

static unsigned severity_of(const char *at, size_t size)
{
	static const struct {
		const char *word;
		unsigned severity;
	} words[] = {{"INFO", SL_LOG_INFO},    {"DEBUG", SL_LOG_INFO}, {"I", SL_LOG_INFO},	{"WARNING", SL_LOG_WARNING},
		     {"WARN", SL_LOG_WARNING}, {"W", SL_LOG_WARNING},  {"ERROR", SL_LOG_ERROR}, {"CRITICAL", SL_LOG_ERROR},
		     {"FATAL", SL_LOG_ERROR},  {"E", SL_LOG_ERROR},    {"F", SL_LOG_ERROR},	{"TRACE", SL_LOG_INFO}};

	for (size_t i = 0; i < SL_COUNT(words); i++)
		if (same(at, size, words[i].word))
			return words[i].severity;
	return SL_LOG_PLAIN;
}

static unsigned two_digits(const char *at)
{
	return (unsigned)(at[0] - '0') * 10 + (unsigned)(at[1] - '0');
}

/* The clock of a time: hours, minutes and seconds with a fraction, and what of month and day stands before it. */
static void take_time(struct sl_log_line *line, const char *at, size_t size)
{
	for (size_t i = 0; i + 8 <= size && line->time_ms == SL_LOG_UNKNOWN; i++) {
		const char *t = at + i;
		uint64_t ms = 0, day = 0;

		if (!(is_digit(t[0]) && is_digit(t[1]) && t[2] == ':' && is_digit(t[3]) && is_digit(t[4]) && t[5] == ':' &&
		      is_digit(t[6]) && is_digit(t[7])))
			continue;
		ms = ((two_digits(t) * 60 + two_digits(t + 3)) * 60 + two_digits(t + 6)) * 1000ull;
		if (i + 8 < size && (t[8] == '.' || t[8] == ','))
			for (unsigned k = 0, scale = 100; k < 3 && is_digit(t[9 + k]); k++, scale /= 10)
				ms += (uint64_t)(t[9 + k] - '0') * scale;
		if (i >= 6 && is_digit(t[-2]) && is_digit(t[-3]) && is_digit(t[-5]) && is_digit(t[-6]))
			day = two_digits(t - 6) * 31 + two_digits(t - 3);
		line->time_ms = day * 86400000 + ms;
	}
}

/* A prefix in brackets or parentheses; 0: it is part of the message. */
static size_t in_brackets(struct sl_log_line *line, const char *at)
{
	char close = *at == '[' ? ']' : ')';
	const char *end = memchr(at, close, strnlen(at, LONGEST));
	size_t size = end ? (size_t)(end - at - 1) : 0, behind;
	unsigned severity;

	if (!size || memchr(at + 1, *at, size) || (*at == '(' && !memmem(at, size, "pid=", 4) && !memmem(at, size, "rank", 4)))
		return 0;
	if (at[1] == '\'' || at[1] == '"' || !strncmp(at + 1, "Previous line", 13))
		return 0;
	severity = severity_of(at + 1, size);
	line->severity = severity ? severity : line->severity;
	take_rank(line, at + 1, size);
	take_pid(line, at + 1, size);
	take_time(line, at + 1, size);
	behind = size + 2;
	if (!strncmp(at + behind, "<std", 4)) { /* [1,5]<stderr>: of Open MPI */
		const char *comma = memchr(at, ',', size);

		line->rank = comma ? (int)strtol(comma + 1, NULL, 10) : line->rank;
		behind += strcspn(at + behind, ">") + 1;
	} else if (at[behind] == ':' && strspn(at + 1, "0123456789") == size) { /* [5]: of PyTorch's launchers */
		line->rank = (int)strtol(at + 1, NULL, 10);
	}
	return behind + (at[behind] == ':');
}

/* A word of a prefix: a time, a severity, stdout F, srun's "5:"; 0: it is part of the message. */
static size_t word_prefix(struct sl_log_line *line, const char *at)
{
	size_t size = strcspn(at, " \t"), digits = strspn(at, "0123456789"), clock = strspn(at, "0123456789-:./,TZ+");
	const char *behind = at + size + strspn(at + size, " "), *colon;
	unsigned severity = severity_of(at, size - (size && at[size - 1] == ':'));

	if (size > LONGEST || !size)
		return 0;
	if (digits && digits < 5 && size == digits + 1 && at[digits] == ':') {
		line->rank = line->rank < 0 ? (int)strtol(at, NULL, 10) : line->rank;
		return size;
	}
	if (clock == size && size >= 5 && digits && strpbrk(at, "-:./") < at + size)
		return size;
	if (severity) {
		line->severity = severity;
		return size;
	}
	if (isupper((unsigned char)*at) && (colon = memchr(at, ':', size)) && (severity = severity_of(at, (size_t)(colon - at)))) {
		line->severity = severity; /* WARNING:root: of Python's logging */
		behind = memchr(colon + 1, ':', size - (size_t)(colon + 1 - at));
		return (size_t)((behind ? behind : colon) + 1 - at);
	}
	if (strchr("IWEF", *at) && size == 5 &&
	    strspn(at + 1, "0123456789") == 4) { /* I0614 10:02:11.118201 140231 service.cc:145] */
		const char *end = memchr(at, ']', strnlen(at, LONGEST));

		line->severity = severity_of(at, 1);
		return end ? (size_t)(end + 1 - at) : size;
	}
	if (!strncmp(at, "stdout", 6) || !strncmp(at, "stderr", 6))
		return (size_t)(behind - at) + (strchr("FP|", *behind) != NULL && *behind);
	if (*behind == '|' && behind[1] == ' ' &&
	    strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == size)
		return (size_t)(behind + 1 - at); /* llama-1  | of docker compose */
	if (!strncmp(at, "rank", 4) && is_digit(at[4]) && at[size - 1] == ':') {
		take_rank(line, at, size);
		return size;
	}
	if (same(at, size, ">") || same(at, size, "|") || same(at, size, "E"))
		return size;
	return !strncmp(at, "##[", 3) ? strcspn(at, "]") + 1 : 0;
}

/* "Nov 29 10:21:13 host python[1234]: " of syslog and journald. */
static size_t syslog_prefix(struct sl_log_line *line, const char *at)
{
	const char *end, *open;

	if (!isalpha((unsigned char)at[0]) || strnlen(at, 20) < 20 || at[3] != ' ' || at[6] != ' ' || at[9] != ':' || at[12] != ':')
		return 0;
	take_time(line, at, 16);
	end = strstr(at + 15, ": ");
	if (!end || end - at > LONGEST)
		return 0;
	open = memchr(at, '[', (size_t)(end - at));
	line->pid = open ? strtol(open + 1, NULL, 10) : line->pid;
	return (size_t)(end + 1 - at);
}

void sl_log_line_part(struct sl_log_line *line)
{
	const char *at = line->text;
	unsigned prefixes = 0;

	line->rank = -1;
	line->pid = -1;
	line->severity = SL_LOG_PLAIN;
	line->time_ms = SL_LOG_UNKNOWN;
	take_time(line, at, line->size < 64 ? line->size : 64);
	for (size_t size = 1; size && prefixes < PREFIXES; prefixes++) {
		const char *next = at + (prefixes ? strspn(at, " ") : 0);

		size = *next == '[' || *next == '(' ? in_brackets(line, next) : 0;
		size = size ? size : syslog_prefix(line, next);
		size = size ? size : word_prefix(line, next);
		if (size > strlen(next)) /* a bracket that does not close */
			size = 0;
		if (size)
			at = next + size;
	}
	line->content = (size_t)(at - line->text);
	if (line->content && line->text[line->content] == ' ') /* one blank belongs to the prefix, the others are the indentation */
		line->content++;
}
