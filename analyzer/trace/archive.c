/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/files.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/input.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/snapshot/convert.h"
#include "analyzer/snapshot/read.h"

struct opened {
	char *folder; /* NULL: closed, or a snapshot that cannot be read */
	char *why;    /* it cannot be read */
	off_t bytes;  /* of the file, where `why` is told: it may still be written */
	bool torn;
	SL_VECTOR(char *) members;
};

static SL_VECTOR(struct opened) packs;
static struct sl_map by_path; /* by path: index into packs + 1 */
static char within[PATH_MAX]; /* the folder of all of them; "": none yet */
static bool goes_on;
static int unsaved; /* errno */

#define EXIT_UNSAVED 4 /* as in analyzer/commands/commands.h */

static void remove_one(struct opened *pack)
{
	for (size_t i = 0; i < pack->members.count; i++) {
		unlink(pack->members.item[i]);
		free(pack->members.item[i]);
	}
	free(pack->members.item);
	if (pack->folder)
		rmdir(pack->folder);
	free(pack->folder);
	free(pack->why);
	*pack = (struct opened){0};
}

static void remove_all(void)
{
	for (size_t i = 0; i < packs.count; i++)
		remove_one(&packs.item[i]);
	free(packs.item);
	sl_map_free(&by_path);
	rmdir(within);
	sl_save_finished(within);
}

/*
 * Limits what a pack may unpack to.  Traces are compressed already; rings are mostly zeros and have at most 257 MB each.
 * Without a limit 329 kB could fill any disk.
 */
#define UNPACKED_LEAST (1ull << 30)
#define UNPACKED_RATIO 100
#define MEMBERS_MAX    100000
#define PART	       (1u << 16) /* written at once */

struct reader {
	struct sl_input *in;
	uint64_t budget;
	bool too_large;
	int unwritten; /* errno */
};

/* Reads exactly `size` bytes; false: it cannot. */
static bool pull(struct reader *r, void *to, size_t size)
{
	const uint8_t *bytes = sl_input_take(r->in, size);

	if (bytes)
		memcpy(to, bytes, size);
	return bytes;
}

/* True for a plain file name of ours, with no path that could lead out of the folder. */
static bool is_member(const char *name)
{
	return name[0] != '.' && !strchr(name, '/') && sl_images_is_trace(name);
}

static bool copy(struct reader *r, const char *path, uint64_t size)
{
	FILE *out = fopen(path, "wxe");
	bool fine = out != NULL;

	while (fine && size) {
		size_t want = size < PART ? size : PART;
		const uint8_t *part = sl_input_take(r->in, want);

		fine = part && fwrite(part, 1, want, out) == want;
		size -= want;
	}
	r->unwritten = !out || ferror(out) ? errno : 0;
	if (out && fclose(out) && fine)
		r->unwritten = errno;
	return fine && !r->unwritten;
}

static bool take_members(struct reader *r, struct opened *pack)
{
	uint32_t length;
	uint64_t size;
	char name[NAME_MAX + 1], *path;

	for (;;) {
		if (!pull(r, &length, sizeof(length)) || length > NAME_MAX)
			return false;
		if (!length)
			return !sl_input_fill(r->in, 1) && sl_input_is_whole(r->in);
		if (!pull(r, name, length) || !pull(r, &size, sizeof(size)))
			return false;
		name[length] = 0;
		if (strlen(name) != length || !is_member(name))
			return false;
		path = sl_memory_print("%s/%s", pack->folder, name);
		*SL_PUSH(&pack->members) = path;
		r->too_large = size > r->budget || pack->members.count > MEMBERS_MAX;
		if (r->too_large)
			return false;
		r->budget -= size;
		if (!copy(r, path, size))
			return false;
	}
}

/* All packs unpack into subfolders of one folder, so that a signal has one folder to remove. */
static char *make_folder(void)
{
	const char *base = getenv("TMPDIR");
	char *folder;

	if (!*within) {
		snprintf(within, sizeof(within), "%s/stormlog-pack-XXXXXX", base && *base ? base : "/tmp");
		if (!sl_save_make_folder(within)) {
			*within = 0;
			return NULL;
		}
		atexit(remove_all);
	}
	folder = sl_memory_print("%s/%06zu", within, packs.count);
	if (!mkdir(folder, 0700))
		return folder;
	free(folder);
	return NULL;
}

/* A run of which only a part found room gets no message. */
static void tell_no_room(const char *path, int error)
{
	unsaved = error;
	sl_escape_print(stderr, "stormlog-analyze: %s: it cannot be unpacked: %s; TMPDIR=FOLDER names another folder for it\n",
			path, strerror(error));
	if (!goes_on)
		exit(EXIT_UNSAVED);
}

static const char *unpack(FILE *in, const char *path)
{
	struct reader reader = {.in = sl_input_open(in, sizeof(SL_PACK_MAGIC)), .budget = UNPACKED_LEAST};
	struct opened pack = {.folder = make_folder()};
	struct stat st;

	if (!fstat(fileno(in), &st))
		reader.budget += UNPACKED_RATIO * (uint64_t)st.st_size;

	reader.unwritten = pack.folder ? 0 : errno;
	pack.torn = pack.folder && !take_members(&reader, &pack);
	sl_input_close(reader.in);
	if (reader.unwritten && reader.unwritten != EEXIST) { /* EEXIST: two members of one name, which no pack of ours has */
		remove_one(&pack);
		tell_no_room(path, reader.unwritten);
		errno = reader.unwritten;
		return NULL;
	}
	if (pack.torn)
		sl_escape_print(stderr, "stormlog-analyze: %s: offset %ld: %s; %zu files of it are used\n", path, ftell(in),
				reader.too_large ? "the pack is larger than a pack of its size may be"
						 : "the pack is torn or damaged",
				pack.members.count);
	*SL_PUSH(&packs) = pack;
	*sl_map_at(&by_path, path) = packs.count;
	return pack.folder;
}

/* A snapshot of PyTorch's becomes the one trace of its folder.  NULL, errno 0: it is damaged (sl_archive_why). */
static const char *convert(FILE *in, const char *path)
{
	struct opened pack = {.folder = make_folder()};
	struct sl_converted how = {.unwritten = pack.folder ? 0 : errno};
	struct stat st = {0};
	char name[NAME_MAX + 1], *made;
	FILE *out = NULL;
	bool fine = false;

	if (pack.folder) {
		sl_snapshot_member(path, (unsigned)packs.count + 1, name, sizeof(name));
		made = sl_memory_print("%s/%s", pack.folder, name);
		*SL_PUSH(&pack.members) = made;
		out = fopen(made, "wxe");
		how.unwritten = out ? 0 : errno;
	}
	if (out)
		fine = sl_snapshot_convert(in, path, (unsigned)packs.count + 1, out, &how);
	if (out && fclose(out) && fine)
		how.unwritten = errno, fine = false;
	if (fine) {
		*SL_PUSH(&packs) = pack;
		*sl_map_at(&by_path, path) = packs.count;
		return pack.folder;
	}
	remove_one(&pack);
	fstat(fileno(in), &st);
	if (how.unwritten) {
		tell_no_room(path, how.unwritten);
	} else {
		*SL_PUSH(&packs) = (struct opened){
			.why = sl_memory_print("offset %llu: %s", (unsigned long long)how.offset, how.why), .bytes = st.st_size};
		*sl_map_at(&by_path, path) = packs.count;
	}
	errno = how.unwritten;
	return NULL;
}

const char *sl_archive_why(const char *path)
{
	size_t at = sl_map_find(&by_path, path);

	return at ? packs.item[at - 1].why : NULL;
}

bool sl_archive_is_snapshot(const char *path)
{
	FILE *in = sl_paths_open_file(path);
	bool is = in && sl_snapshot_is(in);

	if (in)
		fclose(in);
	return is;
}

const char *sl_archive_open(const char *path)
{
	char magic[sizeof(SL_PACK_MAGIC)];
	const char *folder = NULL;
	size_t at = sl_map_find(&by_path, path);
	struct stat st;
	int error = 0;
	FILE *in;

	unsaved = errno = 0;
	if (at && packs.item[at - 1].folder)
		return packs.item[at - 1].folder;
	in = sl_paths_open_file(path);
	if (!in)
		return NULL;
	if (at && !fstat(fileno(in), &st) && st.st_size == packs.item[at - 1].bytes) {
		fclose(in);
		errno = 0;
		return NULL;
	}
	if (fread(magic, 1, sizeof(magic), in) == sizeof(magic) && !memcmp(magic, SL_PACK_MAGIC, sizeof(magic)))
		error = (folder = unpack(in, path)) ? 0 : errno;
	else if (ferror(in))
		error = errno;
	else if (sl_snapshot_is(in))
		error = (folder = convert(in, path)) ? 0 : errno;
	fclose(in);
	errno = error;
	return folder;
}

void sl_archive_go_on(void)
{
	goes_on = true;
}

int sl_archive_unsaved(void)
{
	return unsaved;
}

static const struct opened *pack_of(const char *file)
{
	for (size_t i = 0; i < packs.count; i++) {
		const char *folder = packs.item[i].folder;

		if (folder && !strncmp(file, folder, strlen(folder)) && (file[strlen(folder)] == '/' || !file[strlen(folder)]))
			return &packs.item[i];
	}
	return NULL;
}

bool sl_archive_is_torn(const char *file)
{
	const struct opened *pack = pack_of(file);

	return pack && pack->torn;
}

const char *sl_archive_member(const char *file)
{
	const struct opened *pack = pack_of(file);

	return pack ? file + strlen(pack->folder) + 1 : file;
}

void sl_archive_close(const char *path)
{
	size_t at = sl_map_find(&by_path, path);

	if (!at)
		return;
	remove_one(&packs.item[at - 1]);
	*sl_map_at(&by_path, path) = 0;
}
