/* SPDX-License-Identifier: MIT */
#include "analyzer/logs/log.h"

#include <string.h>

#include "analyzer/base/input.h"
#include "analyzer/base/paths.h"
#include "common/base.h"

#define HEAD 4096

/* words: each ends in NUL, the last one in two. */
static bool has(const char *line, size_t size, const char *words)
{
	while (*words && !memmem(line, size, words, strlen(words)))
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
	size_t at = 0, line, odd = 0;
	const char *end;

	if (size >= 2 && ((uint8_t)head[0] ^ (uint8_t)head[1]) == 1 && ((uint8_t)head[0] & (uint8_t)head[1]) == 0xfe)
		return SL_LOG_IS_TEXT; /* UTF-16 with its mark */
	if (size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3))
		at = 3;
	while (at < size && strchr(" \t\r\n", head[at]))
		at++;
	if (at == size)
		return SL_LOG_IS_RECORDS; /* empty: its reader says it */
	end = memchr(head + at, '\n', size - at);
	line = end ? (size_t)(end - head) - at : size - at;
	if (head[at] == '{' || head[at] == '[') {
		size_t next = at + 1;

		while (next < size && strchr(" \t\r\n", head[next]))
			next++;
		if (next < size && head[at] == '{' && head[next] == '"' && !has(head + at, line, events) &&
		    has(head + at, line, logged))
			return SL_LOG_IS_TEXT;
		return next == size || strchr("\"{[]}", head[next]) ? SL_LOG_IS_RECORDS : SL_LOG_IS_TEXT;
	}
	if (size > 4 && !memcmp(head, "\177ELF", 4))
		return SL_LOG_IS_PROGRAM;
	for (size_t i = at; i < size; i++)
		odd += !head[i] || (head[i] < ' ' && head[i] > 0 && !strchr("\t\n\r\033\b\a\f\v", head[i]));
	if (memchr(head, 0, size) || odd > size / 50)
		return SL_LOG_IS_BINARY;
	if (size == HEAD && !memchr(head, ' ', size) && !memchr(head, '\n', size))
		return SL_LOG_IS_RECORDS; /* a program prints words: their reader tells what is wrong with such a line */
	return memchr(head + at, ',', line) && !memchr(head + at, ' ', line) && has(head + at, line, columns) ? SL_LOG_IS_RECORDS
													      : SL_LOG_IS_TEXT;
}

enum sl_log_kind sl_log_kind_of_file(const char *path)
{
	FILE *file = sl_paths_open_file(path);
	enum sl_log_kind kind = SL_LOG_IS_RECORDS;

	if (file) {
		struct sl_input *input = sl_input_open(file);

		sl_input_fill(input, HEAD);
		kind = sl_log_kind_of((const char *)input->bytes, input->size < HEAD ? input->size : HEAD);
		sl_input_close(input);
		fclose(file);
	}
	return kind;
}
