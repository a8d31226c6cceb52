/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/archive.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "analyzer/base/paths.h"
#include "analyzer/exports/redact.h"
#include "analyzer/trace/archive.h"
#include "common/tracefile.h"

#define LEVEL	    9
#define CONTENT_MAX (64u << 20) /* of a frame, unpacked */

struct packer {
	FILE *out;
	ZSTD_CCtx *zstd;
	struct sl_redaction redaction; /* salt 0: none */
	uint8_t packed[1 << 16];
};

static bool push(struct packer *p, const void *bytes, size_t size, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = {bytes, size, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {p->packed, sizeof(p->packed), 0};

		left = ZSTD_compressStream2(p->zstd, &out, &in, how);
		if (ZSTD_isError(left) || fwrite(p->packed, 1, out.pos, p->out) != out.pos)
			return false;
	} while (in.pos < in.size || (how == ZSTD_e_end && left));
	return true;
}

static bool push_head(struct packer *p, const char *name, uint64_t size)
{
	uint32_t length = (uint32_t)strlen(name);

	return push(p, &length, sizeof(length), ZSTD_e_continue) && push(p, name, length, ZSTD_e_continue) &&
	       push(p, &size, sizeof(size), ZSTD_e_continue);
}

/* A file as a member, some of it at a time.  What it has grown by since it was opened is not taken; what it lacks is zeroes. */
static bool push_file(struct packer *p, const char *path, const char *name)
{
	static const uint8_t zeroes[1 << 16];
	uint8_t bytes[1 << 16];
	struct stat st;
	int fd = sl_paths_open_regular(path, &st);
	bool fine = fd >= 0 && push_head(p, name, (uint64_t)st.st_size);

	for (uint64_t left = fine ? (uint64_t)st.st_size : 0; left && fine;) {
		size_t wanted = left < sizeof(bytes) ? left : sizeof(bytes);
		ssize_t got = read(fd, bytes, wanted);

		fine = got >= 0 && push(p, got ? bytes : zeroes, got ? (size_t)got : wanted, ZSTD_e_continue);
		left -= got ? (size_t)got : wanted;
	}
	if (fd >= 0)
		close(fd);
	return fine;
}

static uint8_t *read_whole(const char *path, size_t *size)
{
	FILE *in = fopen(path, "re");
	struct stat st;
	uint8_t *bytes = NULL;

	*size = 0;
	if (in && !fstat(fileno(in), &st) && (bytes = malloc((size_t)st.st_size + 1)))
		*size = fread(bytes, 1, (size_t)st.st_size, in);
	if (in)
		fclose(in);
	return bytes;
}

/* ---- redaction: frames with names are opened, masked and closed again; events have numbers alone */

struct growing {
	uint8_t *bytes;
	size_t size, capacity;
};

static void append(struct growing *to, const void *bytes, size_t size)
{
	while (to->size + size > to->capacity) {
		to->capacity = to->capacity ? to->capacity * 2 : 1 << 16;
		to->bytes = realloc(to->bytes, to->capacity);
		if (!to->bytes)
			abort();
	}
	if (size) /* before the first byte there is nowhere to copy to */
		memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
}

/* The agent's frames do not say how large they are inside. */
static bool inflate(struct growing *to, const uint8_t *frame, size_t size)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	ZSTD_inBuffer in = {frame, size, 0};
	uint8_t part[1 << 16];
	size_t left = 1;

	while (left && !ZSTD_isError(left)) {
		ZSTD_outBuffer out = {part, sizeof(part), 0};
		size_t before = in.pos;

		left = ZSTD_decompressStream(zstd, &out, &in);
		append(to, part, out.pos);
		if (to->size > CONTENT_MAX)
			break; /* as for the reader, no frame of ours */
		if (!out.pos && in.pos == before)
			break; /* torn */
	}
	ZSTD_freeDCtx(zstd);
	return left == 0;
}

static bool append_masked(struct packer *p, struct growing *to, struct sl_frame_index index, const uint8_t *frame)
{
	struct growing plain = {0};
	bool fine = inflate(&plain, frame, index.compressed);
	size_t bound = ZSTD_compressBound(plain.size), packed;
	uint8_t *again = malloc(bound);
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	if (!again || !zstd)
		abort();
	if (fine) {
		sl_redact_maps(&p->redaction, plain.bytes, plain.size);
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
		packed = ZSTD_compress2(zstd, again, bound, plain.bytes, plain.size);
		fine = !ZSTD_isError(packed);
		index.compressed = (uint32_t)packed;
		index.check = sl_frame_check(&index);
	}
	if (fine) {
		append(to, &index, sizeof(index));
		append(to, again, index.compressed);
	}
	ZSTD_freeCCtx(zstd);
	free(plain.bytes);
	free(again);
	return fine;
}

/* What cannot be opened is left out: nobody can say what names are in it. */
static void mask_trace(struct packer *p, uint8_t **bytes, size_t *size)
{
	struct growing masked = {0};

	for (size_t at = 0; at + sizeof(struct sl_frame_index) <= *size;) {
		struct sl_frame_index index;

		memcpy(&index, *bytes + at, sizeof(index));
		if (!sl_frame_valid(*bytes + at, *size - at) || index.compressed > *size - at - sizeof(index)) {
			at++;
			continue;
		}
		at += sizeof(index);
		if (index.kind == SL_FRAME_BLOCK) {
			append(&masked, &index, sizeof(index));
			append(&masked, *bytes + at, index.compressed);
		} else {
			append_masked(p, &masked, index, *bytes + at);
		}
		at += index.compressed;
	}
	free(*bytes);
	*bytes = masked.bytes;
	*size = masked.size;
}

static void mask_log(struct packer *p, uint8_t *segment)
{
	for (size_t at = 0; at + 8 <= SL_SEGMENT_BYTES;) {
		uint64_t word;

		memcpy(&word, segment + at, sizeof(word));
		if (((word & 0xff) != SL_DEF_WRITING && (word & 0xff) != SL_DEF_DONE) || word >> 8 > SL_SEGMENT_BYTES - at - 8)
			return;
		sl_redact_maps(&p->redaction, segment + at + 8, word >> 8);
		at += SL_DEF_SIZE(word >> 8);
	}
}

/* Masked as it lies: masks are as long as names.  False: too damaged to know where its names are. */
static bool mask_ring(struct packer *p, uint8_t *bytes, size_t size)
{
	struct sl_ringfile *head = (struct sl_ringfile *)bytes;

	if (size < SL_RINGFILE_HEAD || memcmp(head->magic, SL_RINGFILE_MAGIC, sizeof(head->magic)) ||
	    head->header_bytes > SL_RINGFILE_HEAD - SL_RINGFILE_HEADER_AT || head->version != SL_RINGFILE_VERSION)
		return false;
	sl_redact_maps(&p->redaction, bytes + SL_RINGFILE_HEADER_AT, head->header_bytes);
	memset(head->trace, 0, sizeof(head->trace));
	for (unsigned i = 0; i < SL_SEGMENT_MAX; i++) {
		size_t at = SL_RINGFILE_HEAD + (size_t)i * SL_SEGMENT_BYTES;

		if (at + SL_SEGMENT_BYTES > size)
			break;
		if (atomic_load(&head->segment[i].use) != SL_SEGMENT_EVENTS)
			mask_log(p, bytes + at);
	}
	return true;
}

static bool add_file(struct packer *p, const char *path, const char *name, bool ring)
{
	size_t size;
	uint8_t *bytes;
	bool fine, known = true;

	if (!p->redaction.salt)
		return push_file(p, path, name);
	bytes = read_whole(path, &size);
	fine = bytes != NULL;
	if (bytes && ring)
		known = mask_ring(p, bytes, size);
	else if (bytes)
		mask_trace(p, &bytes, &size);
	fine = fine && (!known || (push_head(p, name, size) && push(p, bytes, size, ZSTD_e_continue)));
	free(bytes);
	return fine;
}

static bool add_image(struct packer *p, const struct sl_image *image)
{
	const char *slash = strrchr(image->name, '/'), *base = slash ? slash + 1 : image->name;
	struct sl_damage damage = {0};
	struct sl_trace *trace = sl_trace_open(image, &damage);
	const char *ring = trace && trace->ring.path ? trace->ring.path : image->ring; /* it may lie elsewhere */
	char name[NAME_MAX + 1];
	bool fine = true;

	snprintf(name, sizeof(name), "%.*s%s", (int)(strlen(base) - strlen(SL_TRACE_SUFFIX)), base, SL_RING_SUFFIX);
	if (ring)
		fine = add_file(p, ring, name, true);
	for (unsigned i = 0; i < image->file_count && fine; i++) {
		slash = strrchr(image->files[i], '/');
		fine = add_file(p, image->files[i], slash ? slash + 1 : image->files[i], false);
	}
	sl_damage_free(&damage);
	if (trace)
		sl_trace_close(trace);
	return fine;
}

bool sl_pack_write(FILE *out, const struct sl_images *images, int run, uint64_t salt)
{
	struct packer p = {.out = out, .zstd = ZSTD_createCCtx(), .redaction = {.salt = salt}};
	uint32_t end = 0;
	bool fine = p.zstd && fwrite(SL_PACK_MAGIC, 1, sizeof(SL_PACK_MAGIC), out) == sizeof(SL_PACK_MAGIC);

	ZSTD_CCtx_setParameter(p.zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(p.zstd, ZSTD_c_checksumFlag, 1);
	for (unsigned i = 0; i < images->image_count && fine; i++)
		if (run < 0 || images->run_of[i] == (unsigned)run)
			fine = add_image(&p, &images->images[i]);
	fine = fine && push(&p, &end, sizeof(end), ZSTD_e_end);
	ZSTD_freeCCtx(p.zstd);
	if (salt && fine)
		sl_redact_say(&p.redaction, stderr);
	sl_map_free(&p.redaction.kept);
	return fine;
}
