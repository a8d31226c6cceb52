/* SPDX-License-Identifier: MIT */
/* Longer than other files: the search adds to the list that the grouping goes through, and both tell what does not count. */
#include "analyzer/trace/files.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/trace/parts.h"
#include "common/tracefile.h"

/* One of these ends, or that of a packed file behind it. */
static bool has_end(const char *name, const char *const *ends, size_t count)
{
	static const char *const packed[] = {"", ".gz", ".zst", ".xz"};
	char end[16];

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < SL_COUNT(packed); k++) {
			snprintf(end, sizeof(end), "%s%s", ends[i], packed[k]);
			if (sl_paths_ends(name, end))
				return true;
		}
	return false;
}

bool sl_images_is_ring(const char *name)
{
	static const char *const ends[] = {SL_RING_SUFFIX};

	return has_end(name, ends, SL_COUNT(ends));
}

bool sl_images_is_trace(const char *name)
{
	return sl_paths_ends(name, SL_TRACE_SUFFIX) || sl_images_is_ring(name);
}

bool sl_images_is_pack(const char *name)
{
	return sl_paths_ends(name, SL_PACK_SUFFIX);
}

bool sl_images_may_be_snapshot(const char *name)
{
	static const char *const ends[] = {".pickle", ".pkl"};

	return has_end(name, ends, SL_COUNT(ends));
}

/* True when the name is one that people give to what a program prints: train.log, slurm-17.out, 5.err, and those packed. */
static bool names_may_be_log(const char *name)
{
	static const char *const ends[] = {".log", ".out", ".err"};

	return has_end(name, ends, SL_COUNT(ends));
}

/* The path without segment and suffix, malloc'ed; *segment as above. */
static char *names_stem(const char *path, unsigned *segment)
{
	char *stem = strdup(path), *end = stem, *dot;

	for (char *at = stem; (at = strstr(at, sl_images_is_ring(path) ? SL_RING_SUFFIX : SL_TRACE_SUFFIX)); at++)
		end = at;
	*end = 0;
	*segment = 1;
	dot = strrchr(stem, '.');
	if (dot && strlen(dot) == 7 && strspn(dot + 1, "0123456789") == 6) {
		*segment = (unsigned)atoi(dot + 1);
		*dot = 0;
	}
	return stem;
}

unsigned sl_images_segment(const char *path)
{
	unsigned segment;

	free(names_stem(path, &segment));
	return segment;
}

static uintptr_t *files_of(struct sl_siblings *siblings, const char *path)
{
	unsigned segment;
	char *stem = names_stem(path, &segment);
	uintptr_t *at = sl_map_at(&siblings->stems, stem);

	free(stem);
	return at;
}

/* folder: with its slash; "" is the current one. */
static void list(struct sl_siblings *siblings, const char *folder)
{
	struct dirent *entry;
	DIR *dir = opendir(*folder ? folder : ".");

	while (dir && (entry = readdir(dir))) {
		struct sl_sibling_files *files;
		uintptr_t *at;
		char *path;

		if (!sl_images_is_trace(entry->d_name))
			continue;
		path = sl_memory_print("%s%s", folder, entry->d_name);
		at = files_of(siblings, path);
		if (!*at)
			*at = (uintptr_t)sl_memory_must(calloc(1, sizeof(*files)));
		files = (struct sl_sibling_files *)*at;
		*SL_PUSH(&files->paths) = path;
	}
	if (dir)
		closedir(dir);
}

/*
 * The traces and ring of the process whose trace or ring `path` is, this one among them; NULL: they were given before, or the
 * folder cannot be listed.  Valid until the end.
 */
static const struct sl_sibling_files *siblings_once(struct sl_siblings *siblings, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = sl_memory_print("%.*s", slash ? (int)(slash + 1 - path) : 0, path);
	uintptr_t *listed = sl_map_at(&siblings->folders, folder);
	struct sl_sibling_files *files;

	if (!*listed) {
		*listed = 1;
		list(siblings, folder);
	}
	free(folder);
	files = (struct sl_sibling_files *)*files_of(siblings, path);
	if (!files || files->given)
		return NULL;
	files->given = true;
	return files;
}

static void free_siblings(struct sl_siblings *siblings)
{
	const char *stem;

	for (size_t at = 0; (stem = sl_map_next(&siblings->stems, &at));) {
		struct sl_sibling_files *files = (struct sl_sibling_files *)sl_map_find(&siblings->stems, stem);

		if (files)
			SL_DROP_EACH(&files->paths);
		free(files);
	}
	sl_map_free(&siblings->stems);
	sl_map_free(&siblings->folders);
}

#define DEPTH_MAX 4

/* True, and reported once: the search has reached its limit and ends. */
static bool too_many(struct sl_images *folder, const char *path)
{
	uint64_t limit = sl_budget_files();

	if (++folder->looked_at == limit + 1)
		sl_damage_add(&folder->copies, path, -1, "more than %llu files and folders; from here on they are not read",
			      (unsigned long long)limit);
	folder->found_count += folder->looked_at > limit;
	return folder->looked_at > limit;
}

/* False: the file or folder was met before, under this or another path or link. */
static bool is_new(struct sl_images *folder, dev_t device, ino_t number)
{
	char identity[64];
	uintptr_t *met;

	snprintf(identity, sizeof(identity), "%llx:%llx", (unsigned long long)device, (unsigned long long)number);
	met = sl_map_at(&folder->met, identity);
	folder->found_count += *met != 0;
	return !(*met)++;
}

static struct sl_image *image_of(struct sl_images *folder, const char *stem)
{
	uintptr_t *at = sl_map_at(&folder->stems, stem);

	if (*at)
		return &folder->images[*at - 1];
	folder->images = sl_arena_grow(folder->images, &folder->capacity, folder->image_count, sizeof(*folder->images));
	*at = ++folder->image_count;
	folder->images[*at - 1] = (struct sl_image){0};
	folder->images[*at - 1].name = sl_memory_print("%s%s", stem, SL_TRACE_SUFFIX);
	return &folder->images[*at - 1];
}

static void add_told(void *context, const struct sl_image *image)
{
	struct sl_images *folder = context;

	folder->images = sl_arena_grow(folder->images, &folder->capacity, folder->image_count, sizeof(*folder->images));
	folder->images[folder->image_count++] = *image;
}

static void add_summary(struct sl_images *folder, const char *path)
{
	const char *why;
	bool foreign;

	if (sl_summaries_list(*SL_PUSH(&folder->summaries) = strdup(path), add_told, folder, &foreign, &why))
		return;
	sl_damage_note(&folder->copies, path, "%s", foreign ? "it is no summary of stormlog's" : why);
	if (!foreign)
		*SL_PUSH(&folder->unseen) = strdup(path);
}

static void add_trace(struct sl_images *folder, const char *path)
{
	struct sl_image *image;
	unsigned segment;
	char *stem;

	stem = names_stem(path, &segment);
	image = image_of(folder, stem);
	free(stem);
	if (sl_images_is_ring(path)) {
		if (!image->ring)
			image->ring = strdup(path);
		return;
	}
	image->files = sl_arena_grow(image->files, &image->capacity, image->file_count, sizeof(*image->files));
	image->files[image->file_count++] = strdup(path);
}

/* The folder of a file that the user did not name, and whose else it may be: the owner of the one that he named. */
struct parent {
	struct stat in;
	uid_t named;
};

/* parent NULL: the user named it. */
static bool is_trusted(struct sl_images *folder, const char *path, const struct parent *parent)
{
	if (!parent || !sl_paths_is_strangers(path, &parent->in, parent->named))
		return true;
	*SL_PUSH(&folder->strangers) = strdup(path);
	return false;
}

static void tell_strangers(struct sl_images *folder, size_t before)
{
	size_t count = folder->strangers.count - before;

	if (count == 1)
		sl_damage_note(&folder->copies, folder->strangers.item[before],
			       "is not read, because it belongs to another user than you, root and its folder's owner; name it to "
			       "read it");
	else if (count)
		sl_damage_note(&folder->copies, folder->strangers.item[before],
			       "and %zu more are not read, because they belong to other users; name them to read them", count - 1);
}

#define NOT_LISTED "may not be listed by you and is passed over"

static void count_closed(struct sl_images *folder, const char *path)
{
	if (!strcmp(sl_paths_name(path), "lost+found")) { /* a volume's own: nobody puts traces there */
		sl_damage_note(&folder->copies, path, NOT_LISTED);
		return;
	}
	*SL_PUSH(&folder->closed) = strdup(path);
}

static void tell_closed(struct sl_images *folder, size_t before)
{
	size_t count = folder->closed.count - before;

	if (count == 1)
		sl_damage_note(&folder->copies, folder->closed.item[before], NOT_LISTED);
	else if (count)
		sl_damage_note(&folder->copies, folder->closed.item[before],
			       "and %zu more folders may not be listed by you and are passed over", count - 1);
}

static bool is_ours(const char *name)
{
	return sl_summaries_named(name) || sl_images_is_pack(name) || sl_images_is_trace(name) || sl_images_may_be_snapshot(name);
}

/*
 * True: a regular file, or a link to one whose own name `is` accepts: a link under the name of a trace may lead to a private key.
 * Said before anything is opened.
 */
static bool paths_is_honest(const char *path, bool (*is)(const char *name))
{
	struct stat st;
	char *real;
	bool honest;

	if (lstat(path, &st) || !S_ISLNK(st.st_mode))
		return S_ISREG(st.st_mode);
	real = realpath(path, NULL);
	honest = real && is(real) && !stat(real, &st) && S_ISREG(st.st_mode);
	free(real);
	return honest;
}

/* A link that the user did not name must lead to a file whose own name is one of ours. */
static bool leads_to_ours(struct sl_images *folder, const char *path)
{
	bool leads = is_ours(path) ? paths_is_honest(path, is_ours) : !names_may_be_log(path);

	if (!leads && is_ours(path)) {
		sl_damage_note(&folder->copies, path, "is not read: it is a link to a file that is no trace by its name");
		*SL_PUSH(&folder->links) = strdup(path);
	}
	return leads;
}

static void add_file(struct sl_images *folder, const char *path, dev_t device, ino_t number, const struct parent *parent)
{
	bool snapshot = sl_images_may_be_snapshot(path), is_summary = sl_summaries_named(path),
	     log = folder->packs_apart && parent && names_may_be_log(path), packed = snapshot || log || sl_images_is_pack(path);

	if (!(log || is_ours(path)) || (snapshot && !sl_archive_is_snapshot(path)))
		return;
	folder->found_count++;
	if (!is_trusted(folder, path, parent) || !is_new(folder, device, number))
		return;
	if (is_summary)
		add_summary(folder, path);
	else if (packed)
		*SL_PUSH(&folder->packs) = strdup(path);
	else
		add_trace(folder, path);
}

struct level {
	SL_VECTOR(char *) folders;
};

/* The listing usually says enough about a file; only links, folders and entries without a type need a stat. */
static void look_at(struct sl_images *folder, const char *path, const struct dirent *entry, const struct stat *in,
		    struct level *below)
{
	struct stat st = {.st_dev = in->st_dev, .st_ino = entry->d_ino, .st_mode = S_IFREG};
	const struct parent parent = {*in, in->st_uid};

	if (entry->d_type != DT_REG && stat(path, &st)) {
		if (errno == EACCES) /* a link that we may not follow */
			count_closed(folder, path);
		return;
	}
	if (S_ISREG(st.st_mode) && (entry->d_type == DT_REG || leads_to_ours(folder, path)))
		add_file(folder, path, st.st_dev, st.st_ino, &parent);
	else if (S_ISDIR(st.st_mode) && is_trusted(folder, path, &parent) && is_new(folder, st.st_dev, st.st_ino))
		*SL_PUSH(&below->folders) = strdup(path);
}

static void look_into(struct sl_images *folder, const char *path, struct level *below)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	struct stat st = {0};

	if (dir)
		fstat(dirfd(dir), &st);
	else if (errno == EACCES) /* a note, and incomplete for the gate */
		count_closed(folder, path);
	else if (errno != ENOENT)
		sl_damage_add(&folder->copies, path, -1, "the folder cannot be opened: %s", strerror(errno));
	while (dir && !(folder->one_is_enough && folder->image_count) && (entry = readdir(dir))) {
		char *inside;

		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "analysis"))
			continue;
		if (too_many(folder, path))
			break;
		inside = sl_memory_print("%s%s%s", path, *path && path[strlen(path) - 1] == '/' ? "" : "/", entry->d_name);
		look_at(folder, inside, entry, &st, below);
		free(inside);
	}
	if (dir)
		closedir(dir);
}

/* Level by level, so that of two ways to a folder the shorter counts. */
static void search(struct sl_images *folder, const char *path)
{
	struct level level = {0}, below = {0};
	struct stat st;

	if (stat(path, &st) || !is_new(folder, st.st_dev, st.st_ino))
		return;
	look_into(folder, path, &level);
	for (unsigned depth = DEPTH_MAX; level.folders.count && depth; depth--) {
		qsort(level.folders.item, level.folders.count, sizeof(char *), sl_stats_by_text);
		for (size_t i = 0; i < level.folders.count; i++)
			look_into(folder, level.folders.item[i], &below);
		SL_DROP_EACH(&level.folders);
		level = below;
		below = (struct level){0};
	}
	SL_DROP_EACH(&level.folders);
}

static void add_pack(struct sl_images *folder, const char *path)
{
	const char *unpacked = sl_archive_open(path);

	if (!unpacked) {
		sl_damage_note(&folder->copies, path, "%s",
			       sl_archive_why(path)	 ? sl_archive_why(path)
			       : errno			 ? strerror(errno)
			       : sl_images_is_pack(path) ? "it is no pack of stormlog's, or it is torn"
							 : "it is not a trace, a summary or a pack");
		*SL_PUSH(&folder->unseen) = strdup(path);
		return;
	}
	search(folder, unpacked);
	if (sl_archive_is_torn(unpacked))
		sl_damage_add(&folder->copies, sl_paths_name(path), -1, "the pack is damaged: a part of the run is missing");
}

/* Packs in the order of their names, whatever that of the listing is. */
static void add_folder(struct sl_images *folder, const char *path)
{
	size_t at = folder->packs.count;

	search(folder, path);
	if (folder->packs.count > at)
		qsort(&folder->packs.item[at], folder->packs.count - at, sizeof(char *), sl_stats_by_text);
	for (; at < folder->packs.count && !folder->packs_apart; at++)
		add_pack(folder, folder->packs.item[at]);
}

static struct parent parent_of(const char *path)
{
	struct stat named = {0}, in = {0};
	char *folder = strdup(path);

	lstat(path, &named);
	stat(dirname(folder), &in);
	free(folder);
	return (struct parent){in, named.st_uid};
}

static bool add(struct sl_images *folder, const char *path)
{
	const struct sl_sibling_files *files;
	struct parent where;
	struct stat st;

	if (stat(path, &st))
		return false;
	if (S_ISDIR(st.st_mode)) {
		if (access(path, R_OK | X_OK))
			return false;
		add_folder(folder, path);
		return true;
	}
	if (S_ISREG(st.st_mode) && !sl_images_is_pack(path) && !sl_images_may_be_snapshot(path))
		add_file(folder, path, st.st_dev, st.st_ino, NULL);
	if (sl_summaries_named(path))
		return true;
	if (!sl_images_is_trace(path)) {
		add_pack(folder, path);
		return true;
	}
	/* A file named alone brings in the other files of its process. */
	where = parent_of(path);
	files = siblings_once(&folder->siblings, path);
	for (size_t i = 0; files && i < files->paths.count && !too_many(folder, path); i++)
		if (strcmp(files->paths.item[i], path) != 0 && !stat(files->paths.item[i], &st) && S_ISREG(st.st_mode) &&
		    leads_to_ours(folder, files->paths.item[i]))
			add_file(folder, files->paths.item[i], st.st_dev, st.st_ino, &where);
	return true;
}

bool sl_images_add(struct sl_images *folder, const char *path)
{
	size_t strangers = folder->strangers.count, closed = folder->closed.count, copies = folder->copies.count;
	bool damaged = folder->copies.damaged, found;
	uint64_t found_count = folder->found_count;

	found = add(folder, path);

	tell_strangers(folder, strangers);
	tell_closed(folder, closed);
	if (found && folder->found_count == found_count && folder->copies.count == copies)
		*SL_PUSH(&folder->empty) = strdup(path);
	if (folder->copies.damaged && !damaged)
		*SL_PUSH(&folder->broken) = strdup(path);
	return found;
}

static int compare(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Folders of several hosts may contain the same names; then the processes' identity decides, also for processes in summaries. */
static int by_process(const struct sl_header *a, const struct sl_header *b)
{
	return compare(a->host, b->host) ?: compare(a->run_id, b->run_id) ?: SL_RISING(a->started_ns, b->started_ns)
	       ?: SL_RISING(a->pid, b->pid);
}

/* A trace comes before a summary of the same process. */
static int by_name(const void *a, const void *b)
{
	const struct sl_image *x = a, *y = b;
	int order = strcmp(x->name, y->name) ?: SL_RISING(x->identity != NULL, y->identity != NULL);

	if (!order && x->identity)
		order = by_process(x->identity, y->identity);
	return order ?: compare(x->summary, y->summary);
}

/* Sorts by segment number, then by path. */
static int by_segment(const void *a, const void *b)
{
	unsigned x = sl_images_segment(*(char *const *)a), y = sl_images_segment(*(char *const *)b);

	return SL_RISING(x, y) ?: sl_stats_by_text(a, b);
}

static unsigned run_of(struct sl_images *folder, struct sl_map *by_id, const char *id, uint64_t started_ns, int64_t rank)
{
	uintptr_t *at = sl_map_at(by_id, id);
	struct sl_run *run;

	if (!*at) {
		folder->runs = sl_arena_grow(folder->runs, &folder->run_capacity, folder->run_count, sizeof(*folder->runs));
		folder->runs[folder->run_count] =
			(struct sl_run){.id = strdup(id), .started_ns = started_ns, .number = folder->run_count};
		*at = ++folder->run_count;
	}
	run = &folder->runs[*at - 1];
	if (started_ns && started_ns < run->started_ns)
		run->started_ns = started_ns;
	run->rank = run->images++ ? -1 : rank;
	return (unsigned)*at - 1;
}

static int newest_first(const void *a, const void *b)
{
	const struct sl_run *x = a, *y = b;

	return SL_FALLING(x->started_ns, y->started_ns) ?: SL_RISING(x->number, y->number);
}

/* Sorts runs newest first; run_of is renumbered. */
static void sort_runs(struct sl_images *folder)
{
	unsigned *place = sl_memory_must(calloc(folder->run_count + 1, sizeof(*place)));

	if (folder->run_count)
		qsort(folder->runs, folder->run_count, sizeof(*folder->runs), newest_first);
	for (unsigned i = 0; i < folder->run_count; i++)
		place[folder->runs[i].number] = i;
	for (unsigned i = 0; i < folder->image_count; i++)
		folder->run_of[i] = place[folder->run_of[i]];
	free(place);
}

void sl_images_drop(struct sl_image *image)
{
	for (unsigned f = 0; f < image->file_count; f++)
		free(image->files[f]);
	free(image->files);
	free(image->name);
	free(image->ring);
	if (image->identity)
		sl_header_free(image->identity);
	free(image->identity);
	sl_common_leave(image->common);
}

/*
 * Where in the folder the header was met before, as an index + 1; 0: nowhere, and it is at `kept_count`.  A process that executes
 * another program counts as two. named: only an image of the same name counts.
 */
static unsigned met_before(struct sl_map *headers, const struct sl_header *header, const struct sl_image *image, bool named,
			   unsigned kept_count)
{
	struct sl_arena arena = {0};
	unsigned before;
	uintptr_t *at;

	if (!header->is_known || !header->started_ns)
		return 0;
	at = sl_map_at(headers, sl_arena_printf(&arena, "%s\n%s\n%s\n%s\n%lld %lld %llu %llu %llu", named ? image->name : "",
						header->run_id ? header->run_id : "", header->host ? header->host : "",
						header->boot_id ? header->boot_id : "", (long long)header->pid,
						(long long)header->rank, (unsigned long long)header->process_start,
						(unsigned long long)header->started_ns, (unsigned long long)header->monotonic_ns));
	before = (unsigned)*at;
	if (!before)
		*at = kept_count + 1;
	sl_arena_free(&arena);
	return before;
}

/* The first of two images of one process counts. */
static void drop_copy(struct sl_images *folder, const struct sl_image *counted, struct sl_image *copy)
{
	if (strcmp(counted->name, copy->name))
		sl_damage_note(&folder->copies, copy->name, "is a copy of %s and not counted", counted->name);
	sl_images_drop(copy);
}

void sl_images_group(struct sl_images *folder)
{
	struct sl_map headers = {0}, runs = {0};
	unsigned kept_count = 0;

	if (folder->image_count)
		qsort(folder->images, folder->image_count, sizeof(*folder->images), by_name);
	folder->run_of = sl_memory_must(calloc(folder->image_count + 1, sizeof(*folder->run_of)));
	for (unsigned i = 0; i < folder->image_count; i++) {
		struct sl_image *image = &folder->images[i];
		struct sl_header header;
		bool has_identity = image->identity != NULL;
		unsigned before;

		if (image->file_count)
			qsort(image->files, image->file_count, sizeof(*image->files), by_segment);
		if (image->identity)
			header = *image->identity;
		else
			sl_image_header(image, &header);
		before = met_before(&headers, &header, image, folder->copies_too, kept_count);
		if (before) {
			drop_copy(folder, &folder->images[before - 1], image);
		} else {
			image->rank = header.is_known ? header.rank : -1;
			folder->run_of[kept_count] =
				run_of(folder, &runs, header.run_id ? header.run_id : "", header.started_ns, image->rank);
			image->pid = header.is_known ? header.pid : -1;
			folder->images[kept_count++] = *image;
		}
		if (!has_identity)
			sl_header_free(&header);
	}
	folder->image_count = kept_count;
	sl_map_free(&headers);
	sl_map_free(&runs);
	sort_runs(folder);
}

int sl_images_choose(const struct sl_images *folder, const char *run)
{
	if (sl_images_is_all(run))
		return -1;
	for (unsigned i = 0; run && i < folder->run_count; i++)
		if (!strcmp(folder->runs[i].id, run))
			return (int)i;
	if (!run)
		return 0;
	sl_escape_print(stderr, "stormlog-analyze: no run %s; there are:\n", run);
	for (unsigned i = 0; i < folder->run_count; i++)
		sl_escape_print(stderr, "  %s\n", folder->runs[i].id);
	return -2;
}

bool sl_images_is_of(const struct sl_images *folder, unsigned image, int run)
{
	return run < 0 || folder->run_of[image] == (unsigned)run || !folder->runs[folder->run_of[image]].id[0];
}

void sl_images_free(struct sl_images *folder)
{
	for (unsigned i = 0; i < folder->image_count; i++)
		sl_images_drop(&folder->images[i]);
	for (unsigned i = 0; i < folder->run_count; i++)
		free(folder->runs[i].id);
	free(folder->images);
	free(folder->run_of);
	free(folder->runs);
	sl_damage_free(&folder->copies);
	SL_DROP_EACH(&folder->strangers);
	SL_DROP_EACH(&folder->unseen);
	SL_DROP_EACH(&folder->closed);
	SL_DROP_EACH(&folder->links);
	SL_DROP_EACH(&folder->empty);
	SL_DROP_EACH(&folder->broken);
	SL_DROP_EACH(&folder->summaries);
	SL_DROP_EACH(&folder->packs);
	free_siblings(&folder->siblings);
	sl_map_free(&folder->stems);
	sl_map_free(&folder->met);
	*folder = (struct sl_images){0};
}
