/* SPDX-License-Identifier: MIT */
#include "analyzer/base/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#if SL_LZMA
#include <lzma.h>
#endif

#include "analyzer/base/memory.h"
#include "common/base.h"

#define PART (1u << 16)

/* How much one call of a decoder gave; done: the stream has ended, and another one may follow. */
struct unpacked {
	size_t used, made;
	bool done;
	const char *why; /* NULL: fine */
};

struct packed;

struct format {
	const char *magic;
	size_t size;
	bool (*begin)(struct packed *input);
	struct unpacked (*unpack)(struct packed *input, const uint8_t *from, size_t size, uint8_t *to, size_t room);
	void (*end)(struct packed *input);
};

struct packed {
	struct sl_input unpacked;
	FILE *file;
	const struct format *format; /* NULL: the bytes as they are */
	z_stream gzip;
	ZSTD_DStream *zstd;
#if SL_LZMA
	lzma_stream xz;
#endif
	uint8_t *packed;		     /* PART */
	size_t packed_at, packed_size, room; /* room: for unpacked bytes */
	uint64_t read;
	bool ended, between; /* between: a stream has ended and no other has begun */
	const char *why;
};

static bool begin_gzip(struct packed *input)
{
	return inflateInit2(&input->gzip, 16 + MAX_WBITS) == Z_OK;
}

static struct unpacked unpack_gzip(struct packed *input, const uint8_t *from, size_t size, uint8_t *to, size_t room)
{
	z_stream *gzip = &input->gzip;
	int code;

	if (input->between)
		inflateReset(gzip);
	gzip->next_in = (uint8_t *)from;
	gzip->avail_in = (unsigned)size;
	gzip->next_out = to;
	gzip->avail_out = (unsigned)room;
	code = inflate(gzip, Z_NO_FLUSH);
	if (code == Z_MEM_ERROR)
		sl_memory_must(NULL);
	return (struct unpacked){size - gzip->avail_in, room - gzip->avail_out, code == Z_STREAM_END,
				 code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? NULL : "its gzip data are damaged"};
}

static void end_gzip(struct packed *input)
{
	inflateEnd(&input->gzip);
}

static bool begin_zstd(struct packed *input)
{
	return (input->zstd = ZSTD_createDStream()) != NULL;
}

static struct unpacked unpack_zstd(struct packed *input, const uint8_t *from, size_t size, uint8_t *to, size_t room)
{
	ZSTD_inBuffer in = {from, size, 0};
	ZSTD_outBuffer out = {to, room, 0};
	size_t left = ZSTD_decompressStream(input->zstd, &out, &in);

	if (ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation)
		sl_memory_must(NULL);
	return (struct unpacked){in.pos, out.pos, !left, ZSTD_isError(left) ? "its zstd data are damaged" : NULL};
}

static void end_zstd(struct packed *input)
{
	ZSTD_freeDStream(input->zstd);
}

#if SL_LZMA
#define XZ_MEMORY (256ull << 20) /* xz -9 takes 65 MiB */

static bool begin_xz(struct packed *input)
{
	return lzma_stream_decoder(&input->xz, XZ_MEMORY, 0) == LZMA_OK;
}

static struct unpacked unpack_xz(struct packed *input, const uint8_t *from, size_t size, uint8_t *to, size_t room)
{
	lzma_stream *xz = &input->xz;
	lzma_ret code;

	if (input->between && lzma_stream_decoder(xz, XZ_MEMORY, 0) != LZMA_OK)
		sl_memory_must(NULL);
	xz->next_in = from;
	xz->avail_in = size;
	xz->next_out = to;
	xz->avail_out = room;
	code = lzma_code(xz, LZMA_RUN);
	if (code == LZMA_MEM_ERROR)
		sl_memory_must(NULL);
	return (struct unpacked){size - xz->avail_in, room - xz->avail_out, code == LZMA_STREAM_END,
				 code == LZMA_OK || code == LZMA_STREAM_END || code == LZMA_BUF_ERROR ? NULL
												      : "its xz data are damaged"};
}

static void end_xz(struct packed *input)
{
	lzma_end(&input->xz);
}
#else
static bool begin_xz(struct packed *input)
{
	input->why = "this build does not read xz (liblzma was missing): xz -d makes a file that it reads";
	return true;
}

static struct unpacked unpack_xz(struct packed *input, const uint8_t *from, size_t size, uint8_t *to, size_t room)
{
	return (struct unpacked){0, 0, false, input->why};
}

static void end_xz(struct packed *input)
{
}
#endif

/* RFC 1952; RFC 8878; the .xz file format 1.2.1. */
static const struct format formats[] = {
	{"\x1f\x8b", 2, begin_gzip, unpack_gzip, end_gzip},
	{"\x28\xb5\x2f\xfd", 4, begin_zstd, unpack_zstd, end_zstd},
	{"\xfd"
	 "7zXZ",
	 6, begin_xz, unpack_xz, end_xz},
};

static void refill(struct packed *input)
{
	input->packed_at = 0;
	input->packed_size = fread(input->packed, 1, PART, input->file);
	input->read += input->packed_size;
	if (!input->packed_size && ferror(input->file))
		input->why = "it cannot be read";
	input->ended = !input->packed_size;
}

struct sl_input *sl_input_open(FILE *file, long from)
{
	struct packed *input = sl_memory_must(calloc(1, sizeof(*input)));

	clearerr(file);
	fseek(file, from, SEEK_SET);
	input->file = file;
	input->packed = sl_memory_must(malloc(PART));
	refill(input);
	for (size_t i = 0; i < SL_COUNT(formats) && !input->format; i++)
		if (input->packed_size >= formats[i].size && !memcmp(input->packed, formats[i].magic, formats[i].size))
			input->format = &formats[i];
	if (input->format && !input->format->begin(input))
		sl_memory_must(NULL);
	return &input->unpacked;
}

void sl_input_close(struct sl_input *unpacked)
{
	struct packed *input = (struct packed *)unpacked;

	if (input->format)
		input->format->end(input);
	free(input->unpacked.bytes);
	free(input->packed);
	free(input);
}

/* Unpacks some bytes behind those that are there; false: there are no more. */
static bool more(struct packed *input)
{
	struct sl_input *out = &input->unpacked;
	struct unpacked part = {0};

	if (input->packed_at == input->packed_size && !input->ended)
		refill(input);
	if (input->why)
		return false;
	if (!input->format) {
		part.used = part.made = input->packed_size - input->packed_at < input->room - out->size
						? input->packed_size - input->packed_at
						: input->room - out->size;
		memcpy(out->bytes + out->size, input->packed + input->packed_at, part.made);
	} else if (!input->ended || !input->between) {
		part = input->format->unpack(input, input->packed + input->packed_at, input->packed_size - input->packed_at,
					     out->bytes + out->size, input->room - out->size);
		input->between = part.done;
	}
	input->why = part.why;
	if (input->format && input->ended && !part.made && !input->between && !part.why)
		input->why = "its compressed data are cut off";
	input->packed_at += part.used;
	out->size += part.made;
	return !input->why && (part.made || !input->ended);
}

bool sl_input_fill(struct sl_input *unpacked, size_t size)
{
	struct packed *input = (struct packed *)unpacked;

	if (unpacked->at) {
		memmove(unpacked->bytes, unpacked->bytes + unpacked->at, unpacked->size - unpacked->at);
		unpacked->size -= unpacked->at;
		unpacked->before += unpacked->at;
		unpacked->at = 0;
	}
	while (unpacked->size < size) {
		if (input->room < unpacked->size + PART) /* grows with what is there, not with what a length says */
			unpacked->bytes = sl_memory_must(realloc(unpacked->bytes, input->room = 2 * input->room + PART));
		if (!more(input))
			return false;
	}
	return true;
}

const char *sl_input_why(const struct sl_input *unpacked)
{
	return ((const struct packed *)unpacked)->why;
}

bool sl_input_is_whole(const struct sl_input *unpacked)
{
	return ((const struct packed *)unpacked)->between;
}

uint64_t sl_input_read(const struct sl_input *unpacked)
{
	return ((const struct packed *)unpacked)->read;
}
