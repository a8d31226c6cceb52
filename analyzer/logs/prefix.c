/* SPDX-License-Identifier: MIT */
/* What launchers, containers and loggers put before a line: a rank, a process, a time, how bad it is. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/logs/parts.h"
#include "common/base.h"

#define PREFIXES 10 /* in a row */
#define LONGEST	 96 /* of one */
#define DIGITS	 "0123456789"
#define LETTERS	 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool begins(const char *at, const char *words)
{
	return !strncmp(at, words, strlen(words));
}

/* A rank or process in the words of a prefix: rank5, RANK 2, rank=3, mpirank:6, TP1, Worker_TP0, default3 of torchrun, pid=77. */
static void take_process(struct sl_log_line *line, const char *at, size_t size)
{
	for (const char *end = at + size, *first = at; at < end; at++) {
		bool word = at == first || !isalpha((unsigned char)at[-1]);
		size_t length = line->rank >= 0			    ? 0
				: !strncasecmp(at, "rank", 4)	    ? 4
				: word && !strncasecmp(at, "tp", 2) ? 2
				: word && begins(at, "default")	    ? 7
								    : 0;
		const char *number = at + length + (length ? strspn(at + length, " =_:") : 0);

		if (length && number < end && sl_log_digit(*number))
			line->rank = (int)strtol(number, NULL, 10);
		if (begins(at, "pid=") && at + 4 < end && sl_log_digit(at[4]))
			line->pid = strtol(at + 4, NULL, 10);
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
			line->severity = i;
			return true;
		}
	return false;
}

/* The clock of a time: hours, minutes and seconds with a fraction, and month and day before it. */
static void take_time(struct sl_log_line *line)
{
	for (const char *at = line->text; at + 8 <= line->text + line->size && at < line->text + LONGEST; at++) {
		unsigned month, day, hour, minute, second;
		char fraction[8] = "0.";

		if (!sl_log_digit(*at) || at[2] != ':' || at[5] != ':' || sscanf(at, "%2u:%2u:%2u", &hour, &minute, &second) != 3)
			continue;
		if (at < line->text + 6 || sscanf(at - 6, "%2u%*1[-/]%2u", &month, &day) != 2)
			month = day = 0;
		if (at[8] == '.' || at[8] == ',')
			snprintf(fraction, sizeof(fraction), "0.%.*s", (int)strspn(at + 9, DIGITS), at + 9);
		line->time_ms = ((((month * 31ull + day) * 24 + hour) * 60 + minute) * 60 + second) * 1000 +
				(uint64_t)(strtod(fraction, NULL) * 1000 + 0.5);
		return;
	}
}

/* A prefix in brackets or parentheses; 0: it is part of the message. */
static size_t in_brackets(struct sl_log_line *line, const char *at)
{
	const char *end = memchr(at, *at == '[' ? ']' : ')', strnlen(at, LONGEST)), *comma;
	size_t size = end ? (size_t)(end - at - 1) : 0;

	if (!size || memchr(at + 1, *at, size) || strchr("'\"", at[1]) || begins(at + 1, "Previous line") ||
	    (*at == '(' && !memmem(at, size, "pid=", 4) && !memmem(at, size, "rank", 4)))
		return 0;
	take_severity(line, at + 1, size);
	take_process(line, at + 1, size);
	comma = memchr(at, ',', size);
	if (begins(++end, "<std")) { /* [1,5]<stderr>: of Open MPI */
		line->rank = comma && sl_log_digit(comma[1]) ? (int)strtol(comma + 1, NULL, 10) : line->rank;
		end += strcspn(end, ">") + 1;
	} else if (*end == ':' && strspn(at + 1, DIGITS) == size) { /* [5]: of PyTorch's launchers */
		line->rank = (int)strtol(at + 1, NULL, 10);
	}
	return (size_t)(end + (*end == ':') - at);
}

/* A word of a prefix: a time, a severity, stdout F, srun's "5:"; 0: it is part of the message. */
static size_t word_prefix(struct sl_log_line *line, const char *at)
{
	size_t size = strcspn(at, " "), digits = strspn(at, DIGITS), bare = size - (size && at[size - 1] == ':');
	const char *behind = at + size + strspn(at + size, " "), *colon = memchr(at, ':', size), *end;

	if (size > LONGEST || !size)
		return 0;
	if (digits && digits < 5 && size == digits + 1 && bare == digits) {
		line->rank = line->rank < 0 ? (int)strtol(at, NULL, 10) : line->rank;
		return size;
	}
	if (digits && size >= 5 && strspn(at, DIGITS "-:./,TZ+") == size &&
	    (strcspn(at, "-:/") < size || (size > 10 && digits < size))) /* a time */
		return size;
	if (take_severity(line, at, bare))
		return size;
	if (isupper((unsigned char)*at) && colon && take_severity(line, at, (size_t)(colon - at))) {
		end = memchr(colon + 1, ':', size - (size_t)(colon + 1 - at)); /* WARNING:root: of Python's logging */
		return (size_t)((end ? end : colon) + 1 - at);
	}
	if (strchr("IWEF", *at) && size == 5 && strspn(at + 1, DIGITS) == 4) { /* I0614 10:02:11.118201 140231 service.cc:145] */
		end = memchr(at, ']', strnlen(at, LONGEST));
		take_severity(line, at, 1);
		return end ? (size_t)(end + 1 - at) : size;
	}
	if (begins(at, "stdout") || begins(at, "stderr"))
		return (size_t)(behind - at) + (*behind && strchr("FP|", *behind));
	if (begins(behind, "| ") && strspn(at, LETTERS DIGITS "_.-") == size) /* llama-1  | of docker compose */
		return (size_t)(behind + 1 - at);
	if (begins(at, "rank") && sl_log_digit(at[4]) && bare < size) {
		take_process(line, at, size);
		return size;
	}
	if (size == 1 && strchr(">|", *at))
		return size;
	return begins(at, "##[") ? strcspn(at, "]") + 1 : 0;
}

/* "Nov 29 10:21:13 host python[1234]: " of syslog and journald. */
static size_t syslog_prefix(struct sl_log_line *line, const char *at)
{
	const char *end, *open;

	if (!isalpha((unsigned char)at[0]) || strnlen(at, 20) < 20 || at[3] != ' ' || at[6] != ' ' || at[9] != ':' || at[12] != ':')
		return 0;
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
	size_t size = 1;

	line->parted = true;
	line->rank = -1;
	line->pid = -1;
	line->severity = SL_LOG_PLAIN;
	line->time_ms = SL_LOG_UNKNOWN;
	take_time(line);
	for (unsigned prefixes = 0; size && prefixes < PREFIXES; prefixes++) {
		const char *next = at + (prefixes ? strspn(at, " ") : 0);

		size = *next == '[' || *next == '(' ? in_brackets(line, next) : 0;
		size = size ?: syslog_prefix(line, next) ?: word_prefix(line, next);
		if (size > strlen(next)) /* a bracket that does not close */
			size = 0;
		if (size)
			at = next + size;
	}
	line->content = (size_t)(at - line->text);
	if (line->content && *at == ' ') /* one blank belongs to the prefix, the others are the indentation */
		line->content++;
}
