/* SPDX-License-Identifier: MIT */
#include "analyzer/source/file.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/trace/files.h"

struct sl_source {
	struct sl_map files; /* by whole path: struct sl_source_file */
	struct sl_map interned;
	struct sl_arena texts;
	size_t bytes;
	char host[HOST_NAME_MAX + 1];
};

struct sl_source *sl_source_new(void)
{
	struct sl_source *source = sl_memory_must(calloc(1, sizeof(*source)));

	gethostname(source->host, sizeof(source->host) - 1);
	return source;
}

void sl_source_free(struct sl_source *source)
{
	const char *path;
	size_t at = 0;

	if (!source)
		return;
	while ((path = sl_map_next(&source->files, &at))) {
		struct sl_source_file *file = (void *)sl_map_find(&source->files, path);

		free(file->text);
		SL_DROP(&file->lines);
		free(file);
	}
	sl_map_free(&source->files);
	sl_map_free(&source->interned);
	sl_arena_free(&source->texts);
	free(source);
}

const char *sl_source_says(enum sl_source_why why)
{
	static const char *const texts[SL_SOURCE_WHY_END] = {
		[SL_SOURCE_FOUND] = "",
		[SL_SOURCE_OFF] = "sources are not read",
		[SL_SOURCE_NO_LINE] = "the frame has no line of a source file",
		[SL_SOURCE_ELSEWHERE] = "the run was recorded elsewhere",
		[SL_SOURCE_OUTSIDE] = "the file is not below the folder in which the program ran",
		[SL_SOURCE_MISSING] = "the file is not there",
		[SL_SOURCE_STRANGER] = "the file belongs to somebody else",
		[SL_SOURCE_CHANGED] = "the file has changed since",
		[SL_SOURCE_LARGE] = "the file is too large",
		[SL_SOURCE_SHORT] = "the file has no such line",
	};

	return texts[why];
}

static bool is_source(const char *path)
{
	static const char *const suffixes[] = {".py", ".c",  ".cc",  ".cpp", ".cxx", ".C",   ".cu",  ".cuh", ".hip",
					       ".h",  ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".pyx", ".jl",  ".rs"};

	for (size_t i = 0; i < SL_COUNT(suffixes); i++)
		if (sl_paths_ends(path, suffixes[i]))
			return true;
	return false;
}

/* The whole path without "." and "..", in `out` of PATH_MAX bytes; false: it is too long, or climbs above the root. */
static bool make_whole(char *out, const char *folder, const char *path)
{
	char joined[PATH_MAX], *rest, *name;
	size_t size = 0;

	if ((size_t)snprintf(joined, sizeof(joined), "%s/%s", *path == '/' ? "" : folder, path) >= sizeof(joined))
		return false;
	*out = 0;
	for (name = strtok_r(joined, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
		if (!strcmp(name, "."))
			continue;
		if (strcmp(name, "..") != 0) {
			size += (size_t)snprintf(out + size, PATH_MAX - size, "/%s", name);
			continue;
		}
		if (!size)
			return false;
		while (out[--size] != '/')
			;
		out[size] = 0;
	}
	return true;
}

static bool is_below(const char *path, const char *folder)
{
	size_t size = strlen(folder);

	return size > 1 && !strncmp(path, folder, size) && path[size] == '/';
}

/* Opens a regular file to which no link leads: folder by folder, since another process may change them meanwhile. */
static int open_plain(const char *path, struct stat *st)
{
	int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	char name[NAME_MAX + 1];
	size_t size;

	for (; at >= 0 && *path; at = next) {
		path++; /* the slash */
		size = strcspn(path, "/");
		snprintf(name, sizeof(name), "%.*s", (int)size, path);
		if (size > NAME_MAX)
			next = -1;
		else if (path[size])
			next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		else /* first looked at, because opening some devices has effects */
			next = !fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st->st_mode)
				       ? openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
				       : -1;
		close(at);
		path += size;
	}
	if (at >= 0 && !fstat(at, st) && S_ISREG(st->st_mode))
		return at;
	if (at >= 0)
		close(at);
	return -1;
}

static void split_lines(struct sl_source_file *file)
{
	char *at = file->text, *end = at + file->size, *next;

	if (file->size >= 3 && !memcmp(at, "\xef\xbb\xbf", 3))
		at += 3;
	for (; at < end; at = next + 1) {
		*SL_PUSH(&file->lines) = (uint32_t)(at - file->text);
		next = memchr(at, '\n', (size_t)(end - at)) ?: end;
		*next = 0;
	}
}

static bool read_whole(struct sl_source_file *file, int fd)
{
	size_t done = 0;
	ssize_t got = 1;

	file->text = sl_memory_must(calloc(1, file->size + 1));
	for (; done < file->size && got > 0; done += got > 0 ? (size_t)got : 0)
		got = pread(fd, file->text + done, file->size - done, (off_t)done);
	return done == file->size;
}

/* Whether it may be read depends on the process, and is asked each time. */
static struct sl_source_file *load(struct sl_source *source, const char *path)
{
	struct sl_source_file *file = sl_memory_must(calloc(1, sizeof(*file)));
	struct stat st;
	int fd = open_plain(path, &st);

	if (fd < 0) {
		file->why = SL_SOURCE_MISSING;
		return file;
	}
	file->owner = st.st_uid;
	file->changed_ns = (uint64_t)st.st_mtim.tv_sec * SL_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	file->size = (size_t)st.st_size;
	if (st.st_size > SL_SOURCE_FILE || source->bytes + file->size > SL_SOURCE_FILES)
		file->why = SL_SOURCE_LARGE;
	else if (!read_whole(file, fd))
		file->why = SL_SOURCE_MISSING;
	else
		split_lines(file);
	source->bytes += file->why ? 0 : file->size;
	close(fd);
	return file;
}

static enum sl_source_why refusal(const struct sl_source *source, const struct sl_trace *trace)
{
	const struct sl_header *header = &trace->header;

	if (!header->host || strcmp(header->host, source->host) != 0)
		return SL_SOURCE_ELSEWHERE;
	if (!trace->file_count || sl_archive_member(trace->files[0].path) != trace->files[0].path)
		return SL_SOURCE_ELSEWHERE;
	return header->cwd && *header->cwd == '/' ? SL_SOURCE_FOUND : SL_SOURCE_OUTSIDE;
}

static bool may_read(const struct sl_trace *trace, uid_t owner)
{
	uid_t recorded = trace->files[0].owner;

	return owner == recorded || (!recorded && owner == geteuid());
}

const struct sl_source_file *sl_source_open(struct sl_source *source, const struct sl_trace *trace, const char *path,
					    enum sl_source_why *why)
{
	struct sl_source_file *file;
	char whole[PATH_MAX];
	uintptr_t *entry;

	*why = !source ? SL_SOURCE_OFF : !path || !is_source(path) ? SL_SOURCE_NO_LINE : refusal(source, trace);
	if (!*why && (!make_whole(whole, trace->header.cwd, path) || !is_below(whole, trace->header.cwd)))
		*why = SL_SOURCE_OUTSIDE;
	if (*why)
		return NULL;
	entry = sl_map_at(&source->files, whole);
	if (!*entry)
		*entry = (uintptr_t)load(source, whole);
	file = (void *)*entry;
	if (file->why == SL_SOURCE_MISSING)
		*why = file->why;
	else if (!may_read(trace, file->owner))
		*why = SL_SOURCE_STRANGER;
	else if (file->changed_ns > trace->header.started_ns)
		*why = SL_SOURCE_CHANGED;
	else
		*why = file->why;
	return *why ? NULL : file;
}

const char *sl_source_keep(struct sl_source *source, const char *text)
{
	return sl_map_intern(&source->interned, text);
}

const char *sl_source_text(struct sl_source *source, const struct sl_trace *trace, const char *path, uint32_t line,
			   enum sl_source_why *why)
{
	const struct sl_source_file *file = NULL;
	const char *text;
	size_t size;

	*why = source ? SL_SOURCE_NO_LINE : SL_SOURCE_OFF;
	if (line)
		file = sl_source_open(source, trace, path, why);
	if (!file)
		return NULL;
	text = sl_source_file_line(file, line) ?: "";
	size = strnlen(text, SL_SOURCE_LINE);
	if (text[size]) /* not amid a character of UTF-8 */
		while (size && (text[size] & 0xc0) == 0x80)
			size--;
	while (size && strchr(" \t\f\r", text[size - 1]))
		size--;
	if (!size) {
		*why = SL_SOURCE_SHORT;
		return NULL;
	}
	return sl_arena_strndup(&source->texts, text, size);
}

const char *sl_source_line(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frame,
			   enum sl_source_why *why)
{
	enum sl_source_why ignored;
	const char *text = sl_source_text(source, trace, frame->file, frame->line, why ?: &ignored);

	return text ? text + strspn(text, " \t\f\r") : NULL;
}

enum sl_source_answer sl_source_copies(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frame)
{
	const char *text = frame->file ? sl_source_line(source, trace, frame, NULL) : NULL;

	if (!text)
		return SL_SOURCE_UNKNOWN;
	return strstr(text, ".cuda(") || (strstr(text, ".to(") && (strstr(text, "device") || strstr(text, "cuda"))) ? SL_SOURCE_YES
														    : SL_SOURCE_NO;
}
