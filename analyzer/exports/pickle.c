/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/export.h"

#include "analyzer/base/escape.h"

#define BATCH 1000

static void put_le(FILE *out, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		fputc((int)(value >> 8 * i & 0xff), out);
}

void sl_pickle_begin(struct sl_pickle *pickle, FILE *out)
{
	*pickle = (struct sl_pickle){.out = out};
	fputs("\x80\x02", out); /* PROTO 2 */
}

void sl_pickle_end(struct sl_pickle *pickle)
{
	fputc('.', pickle->out);
}

static void open_container(struct sl_pickle *pickle, bool dict)
{
	fputc(dict ? '}' : ']', pickle->out);
	fputc('(', pickle->out); /* MARK of the first batch */
	pickle->batch[pickle->depth] = 0;
	pickle->dict[pickle->depth++] = dict;
}

void sl_pickle_list(struct sl_pickle *pickle)
{
	open_container(pickle, false);
}

void sl_pickle_dict(struct sl_pickle *pickle)
{
	open_container(pickle, true);
}

static void end_batch(struct sl_pickle *pickle)
{
	fputc(pickle->dict[pickle->depth - 1] ? 'u' : 'e', pickle->out); /* SETITEMS, APPENDS */
}

void sl_pickle_next(struct sl_pickle *pickle)
{
	if (++pickle->batch[pickle->depth - 1] < BATCH)
		return;
	end_batch(pickle);
	fputc('(', pickle->out);
	pickle->batch[pickle->depth - 1] = 0;
}

void sl_pickle_close(struct sl_pickle *pickle)
{
	end_batch(pickle);
	pickle->depth--;
}

void sl_pickle_text(struct sl_pickle *pickle, const char *text)
{
	char *clean = sl_escape_text(text);
	size_t length = strlen(clean);

	fputc('X', pickle->out); /* BINUNICODE */
	put_le(pickle->out, length, 4);
	fwrite(clean, 1, length, pickle->out);
	free(clean);
}

void sl_pickle_int(struct sl_pickle *pickle, int64_t value)
{
	unsigned bytes = 1;

	if (value >= 0 && value < 256) {
		fputc('K', pickle->out); /* BININT1 */
		put_le(pickle->out, (uint64_t)value, 1);
	} else if (value >= INT32_MIN && value <= INT32_MAX) {
		fputc('J', pickle->out); /* BININT */
		put_le(pickle->out, (uint64_t)value, 4);
	} else { /* LONG1: little-endian two's complement, as short as it goes */
		while (bytes < 8 && (value >> (8 * bytes - 1)) != 0 && (value >> (8 * bytes - 1)) != -1)
			bytes++;
		fputc(0x8a, pickle->out);
		fputc((int)bytes, pickle->out);
		put_le(pickle->out, (uint64_t)value, bytes);
	}
}

void sl_pickle_bool(struct sl_pickle *pickle, bool truth)
{
	fputc(truth ? 0x88 : 0x89, pickle->out);
}

uint32_t sl_pickle_remember(struct sl_pickle *pickle)
{
	fputc('r', pickle->out); /* LONG_BINPUT */
	put_le(pickle->out, pickle->memos, 4);
	return pickle->memos++;
}

void sl_pickle_recall(struct sl_pickle *pickle, uint32_t memo)
{
	fputc('j', pickle->out); /* LONG_BINGET */
	put_le(pickle->out, memo, 4);
}

void sl_pickle_put_int(struct sl_pickle *pickle, const char *key, int64_t value)
{
	sl_pickle_text(pickle, key);
	sl_pickle_int(pickle, value);
	sl_pickle_next(pickle);
}

void sl_pickle_put_text(struct sl_pickle *pickle, const char *key, const char *text)
{
	sl_pickle_text(pickle, key);
	sl_pickle_text(pickle, text);
	sl_pickle_next(pickle);
}

void sl_pickle_put_empty(struct sl_pickle *pickle, const char *key)
{
	sl_pickle_text(pickle, key);
	sl_pickle_list(pickle);
	sl_pickle_close(pickle);
	sl_pickle_next(pickle);
}
