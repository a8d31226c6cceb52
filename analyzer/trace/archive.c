/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/archive.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "analyzer/base/door.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/trace/defs.h"
#include "analyzer/trace/names.h"

#define PACKS_MAX 64 /* open at once */

static struct opened {
	char *path, *folder;
} packs[PACKS_MAX];
static unsigned pack_count;
static SL_VECTOR(char *) members;
static bool watched; /* for the program's end */

static void remove_all(void)
{
	for (size_t i = 0; i < members.count; i++)
		unlink(members.item[i]);
	for (unsigned i = 0; i < pack_count; i++)
		rmdir(packs[i].folder);
}

/*
 * What a pack may unpack to: traces are compressed already, rings are mostly zeros and have 257 MB at most each.  329 kB could
 * fill any disk.
 */
#define UNPACKED_LEAST (1ull << 30)
#define UNPACKED_RATIO 100
#define MEMBERS_MAX    100000

struct reader {
	FILE *in;
	uint64_t budget;
	bool too_large;
	ZSTD_DStream *zstd;
	uint8_t bytes[1 << 16];
	ZSTD_inBuffer have;
	bool ended;
};

/* Exactly `size` bytes, or false. */
static bool pull(struct reader *r, void *to, size_t size)
{
	ZSTD_outBuffer out = {to, size, 0};

	while (out.pos < size) {
		size_t left, before = out.pos;

		if (r->have.pos == r->have.size && !r->ended) {
			r->have = (ZSTD_inBuffer){r->bytes, fread(r->bytes, 1, sizeof(r->bytes), r->in), 0};
			r->ended = !r->have.size;
		}
		left = ZSTD_decompressStream(r->zstd, &out, &r->have);
		if (ZSTD_isError(left) || (r->ended && out.pos == before))
			return false;
	}
	return true;
}

/* A name of our own kind, without a way out of the folder. */
static bool is_member(const char *name)
{
	return name[0] != '.' && !strchr(name, '/') && sl_names_is_trace(name);
}

static bool copy(struct reader *r, const char *path, uint64_t size)
{
	FILE *out = fopen(path, "wxe");
	uint8_t part[1 << 16];
	bool fine = out != NULL;

	while (fine && size) {
		size_t want = size < sizeof(part) ? size : sizeof(part);

		fine = pull(r, part, want) && fwrite(part, 1, want, out) == want;
		size -= want;
	}
	if (out)
		fine = !fclose(out) && fine;
	return fine;
}

static bool take_members(struct reader *r, const char *folder)
{
	uint32_t length;
	uint64_t size;
	char name[NAME_MAX + 1], *path;

	for (;;) {
		if (!pull(r, &length, sizeof(length)) || length > NAME_MAX)
			return false;
		if (!length)
			return true;
		if (!pull(r, name, length) || !pull(r, &size, sizeof(size)))
			return false;
		name[length] = 0;
		if (strlen(name) != length || !is_member(name))
			return false;
		path = sl_memory_print("%s/%s", folder, name);
		*SL_PUSH(&members) = path;
		r->too_large = size > r->budget || members.count > MEMBERS_MAX;
		if (r->too_large)
			return false;
		r->budget -= size;
		if (!copy(r, path, size))
			return false;
	}
}

static char *make_folder(void)
{
	const char *base = getenv("TMPDIR");
	char *folder;

	folder = sl_memory_print("%s/stormlog-pack-XXXXXX", base && *base ? base : "/tmp");
	if (mkdtemp(folder)) {
		sl_save_unfinished(folder);
		return folder;
	}
	sl_door_print(stderr, "stormlog-analyze: %s: %s\n", folder, strerror(errno));
	free(folder);
	return NULL;
}

static const char *unpack(FILE *in, const char *path)
{
	struct reader reader = {.in = in, .zstd = ZSTD_createDStream(), .budget = UNPACKED_LEAST};
	char *folder = make_folder();
	struct stat st;

	if (!fstat(fileno(in), &st))
		reader.budget += UNPACKED_RATIO * (uint64_t)st.st_size;

	if (folder) {
		if (!watched)
			atexit(remove_all);
		watched = true;
		packs[pack_count++] = (struct opened){strdup(path), folder};
		if (!take_members(&reader, folder))
			sl_door_print(stderr, "stormlog-analyze: %s: offset %ld: the pack is %s; %zu files of it are used\n", path,
				      ftell(in), reader.too_large ? "larger than a pack of its size may be" : "torn or damaged",
				      members.count);
	}
	ZSTD_freeDStream(reader.zstd);
	return folder;
}

const char *sl_pack_open(const char *path)
{
	char magic[sizeof(SL_PACK_MAGIC)];
	const char *folder = NULL;
	FILE *in;

	for (unsigned i = 0; i < pack_count; i++)
		if (!strcmp(packs[i].path, path))
			return packs[i].folder;
	in = sl_paths_open_file(path);
	if (!in)
		return NULL;
	if (fread(magic, 1, sizeof(magic), in) == sizeof(magic) && !memcmp(magic, SL_PACK_MAGIC, sizeof(magic)) &&
	    pack_count < PACKS_MAX)
		folder = unpack(in, path);
	fclose(in);
	return folder;
}

void sl_pack_close(const char *path)
{
	unsigned at = 0;
	size_t kept = 0;

	while (at < pack_count && strcmp(packs[at].path, path) != 0)
		at++;
	if (at == pack_count)
		return;
	for (size_t i = 0; i < members.count; i++) {
		size_t length = strlen(packs[at].folder);

		if (strncmp(members.item[i], packs[at].folder, length) != 0 || members.item[i][length] != '/') {
			members.item[kept++] = members.item[i];
			continue;
		}
		unlink(members.item[i]);
		free(members.item[i]);
	}
	members.count = kept;
	rmdir(packs[at].folder);
	sl_save_finished(packs[at].folder);
	free(packs[at].path);
	free(packs[at].folder);
	packs[at] = packs[--pack_count];
}
