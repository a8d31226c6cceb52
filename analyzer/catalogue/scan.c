/* SPDX-License-Identifier: MIT */
#include "analyzer/catalogue/catalogue.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/library.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/terminal.h"
#include "analyzer/base/paths.h"
#include "analyzer/pipeline/pipeline.h"

/* Vectors (base/vector.h) that functions hand on. */
struct paths {
	char **item;
	size_t count, capacity;
};

/* The runs in one file that holds several. */
struct runs {
	int64_t *item;
	size_t count, capacity;
};

/* The state of files before they are read, so that what is written meanwhile is read again. */
struct before {
	struct sl_store_file *item;
	size_t count, capacity;
};

static void add_path(struct paths *paths, const char *path)
{
	*SL_PUSH(paths) = strdup(path);
}

static void free_paths(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->item[i]);
	SL_DROP(paths);
}

/* ---- which files are known */

static void found(void *context, int64_t run)
{
	struct sl_scan *scan = context;
	char key[24];

	snprintf(key, sizeof(key), "%lld", (long long)run);
	if (!(*sl_map_at(&scan->met, key))++)
		*SL_PUSH(&scan->runs) = run;
}

bool sl_scan_found(const struct sl_scan *scan, int64_t run)
{
	char key[24];

	snprintf(key, sizeof(key), "%lld", (long long)run);
	return sl_map_find(&scan->met, key) != 0;
}

static bool state_of(const char *path, struct sl_store_file *file)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	*file = (struct sl_store_file){path, st.st_size, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
	return true;
}

/* By absolute path, so that a catalogue means the same from every folder. */
static bool is_known(struct sl_scan *scan, const char *path, bool *unchanged)
{
	char *whole = realpath(path, NULL);
	struct sl_store_file file;
	bool fine = true;

	*unchanged = false;
	if (whole && state_of(whole, &file))
		fine = sl_store_file_known(scan->store, &file, unchanged, found, scan);
	free(whole);
	return fine;
}

/* ---- reading new ones */

static void look_at(struct before *before, const char *path)
{
	struct sl_store_file file;
	char *whole = realpath(path, NULL);

	if (whole && state_of(whole, &file))
		*SL_PUSH(before) = file;
	else
		free(whole);
}

/* Where no run was read, or names of it are missing, the next scan reads the files again. */
static bool put_files(struct sl_scan *scan, const struct before *before, const struct runs *runs)
{
	scan->unread |= !runs->count && !scan->nameless;
	for (size_t i = 0; i < before->count && runs->count && !scan->nameless; i++)
		if (!sl_store_file_put(scan->store, &before->item[i], runs->item, runs->count))
			return false;
	return true;
}

static void forget(struct before *before)
{
	for (size_t i = 0; i < before->count; i++)
		free((char *)before->item[i].path);
	SL_DROP(before);
}

static void say(const struct sl_report *report, unsigned lines)
{
	for (unsigned i = 0; i < lines; i++)
		sl_escape_print(stderr, "stormlog-analyze: %s\n", report->warnings.item[i]);
}

/* Replays one run and stores its card.  run_images as in struct sl_pipeline_options.  False: the store failed. */
static bool learn(struct sl_scan *scan, struct sl_images *run_images, char *const *paths, unsigned count, const char *id,
		  const char *source, struct runs *runs)
{
	struct sl_pipeline_options options = {.found = run_images, .run = id, .quiet = true};
	struct sl_report report = {0};
	unsigned lacks = sl_library_lacks();
	bool fine = true, nameless = false;
	struct sl_card card;
	int64_t run = 0;

	if (!scan->quiet && sl_terminal_rewrites(STDERR_FILENO))
		sl_escape_print(stderr, "\r\033[K%u runs read, at %.60s", scan->read, id);
	sl_card_init(&card);
	if (sl_pipeline_run(&report, paths, count, &options) == SL_PIPELINE_FINE) {
		say(&report, report.damage_lines);
		sl_card_take(&card, &report, source);
		nameless = sl_library_lacks() != lacks;
		scan->nameless |= nameless;
		/* a card without names does not take the place of a whole one */
		fine = nameless ? sl_store_find(scan->store, id, &run) : sl_store_put(scan->store, &card, &run);
	} else {
		say(&report, (unsigned)report.warnings.count);
	}
	if (run) {
		found(scan, run);
		*SL_PUSH(runs) = run;
		scan->read += !nameless;
	}
	if (!scan->quiet && sl_terminal_rewrites(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	sl_card_free(&card);
	sl_report_free(&report);
	return fine;
}

/* ---- traces and summaries */

struct others {
	struct paths *paths;
	const struct sl_map *found_now; /* those that were found this time */
	char *outside;			/* an existing path that we may not read */
};

static bool add_known(void *context, const char *path)
{
	struct others *others = context;
	struct stat st;
	int file = sl_paths_open_regular(path, &st);

	if (file >= 0 && !sl_map_find(others->found_now, path))
		add_path(others->paths, path);
	else if (file < 0 && errno == EACCES && !others->outside)
		others->outside = strdup(path);
	if (file >= 0)
		close(file);
	return true;
}

/* The folder of a file. */
static char *folder_of(const char *path)
{
	char *whole = realpath(path, NULL), *slash = whole ? strrchr(whole, '/') : NULL;

	if (slash && slash > whole)
		*slash = 0;
	return whole;
}

/* The images of each run, one after the other: those of run r from at[r] to at[r + 1]. */
struct by_run {
	unsigned *at, *images;
};

static struct by_run by_run(const struct sl_images *images)
{
	struct by_run by = {.at = sl_memory_must(calloc(images->run_count + 2, sizeof(*by.at))),
			    .images = sl_memory_must(calloc(images->image_count + 1, sizeof(*by.images)))};

	for (unsigned i = 0; i < images->image_count; i++)
		by.at[images->run_of[i] + 2]++;
	for (unsigned r = 2; r < images->run_count + 2; r++)
		by.at[r] += by.at[r - 1];
	for (unsigned i = 0; i < images->image_count; i++)
		by.images[by.at[images->run_of[i] + 1]++] = i;
	return by;
}

static void add_found(struct sl_map *found_now, const char *path)
{
	char *whole = realpath(path, NULL);

	if (whole)
		*sl_map_at(found_now, whole) = 1;
	free(whole);
}

/* The files of an image.  True: it is a part of a summary, which other files complete. */
static bool list_image(const struct sl_image *image, struct before *before, struct paths *paths, struct sl_map *found_now)
{
	size_t first = paths->count;

	for (unsigned f = 0; f < image->file_count; f++) {
		look_at(before, image->files[f]);
		add_path(paths, image->files[f]);
	}
	if (image->ring) {
		look_at(before, image->ring);
		add_path(paths, image->ring);
	}
	if (image->summary)
		add_path(paths, image->summary);
	for (size_t i = first; i < paths->count; i++)
		add_found(found_now, paths->item[i]);
	return image->listing.size;
}

/*
 * Moves the images of a run, so that it is not searched for among the files of all runs.  What a summary's image is of stays
 * known.
 */
static struct sl_images take_images(struct sl_images *images, const unsigned *which, unsigned count)
{
	struct sl_images moved = {.images = sl_memory_must(calloc(count + 1, sizeof(*moved.images))), .image_count = count};

	for (unsigned i = 0; i < count; i++) {
		struct sl_image *image = &images->images[which[i]];

		moved.images[i] = *image;
		*image = (struct sl_image){.summary = image->summary};
	}
	return moved;
}

/* A run with at least one unknown file; its other processes were read before. */
static bool learn_run(struct sl_scan *scan, struct sl_images *images, unsigned number, const struct by_run *by)
{
	const unsigned *which = &by->images[by->at[number]], count = by->at[number + 1] - by->at[number];
	const char *id = images->runs[number].id;
	struct paths paths = {0}, more = {0};
	struct before before = {0};
	struct runs runs = {0};
	struct sl_images moved = {0};
	struct sl_map found_now = {0};
	struct others others = {&more, &found_now, NULL};
	int64_t run = 0;
	char *source = NULL;
	bool fine = sl_store_find(scan->store, id, &run), part = false;

	scan->nameless = false;
	for (unsigned i = 0; i < count; i++)
		part |= list_image(&images->images[which[i]], &before, &paths, &found_now);
	fine = fine && (!run || sl_store_files(scan->store, run, add_known, &others));
	source = paths.count ? folder_of(paths.item[0]) : NULL;
	if (others.outside) {
		sl_escape_print(stderr,
				"stormlog-analyze: run %s stays as it was: name the folder of %s too, which is a part of it\n", id,
				others.outside);
		found(scan, run);
		forget(&before);
	} else if (fine && *id && paths.count) {
		for (size_t i = 0; i < more.count; i++)
			add_path(&paths, more.item[i]);
		if (!part && !more.count)
			moved = take_images(images, which, count);
		fine = learn(scan, moved.image_count ? &moved : NULL, paths.item, (unsigned)paths.count, id, source, &runs);
	} else {
		for (size_t i = 0; fine && i < paths.count; i++)
			sl_escape_print(stderr, "stormlog-analyze: %s: no header can be read: it is of no run\n", paths.item[i]);
	}
	fine = fine && put_files(scan, &before, &runs);
	free(source);
	free(others.outside);
	SL_DROP(&runs);
	sl_map_free(&found_now);
	forget(&before);
	free_paths(&paths);
	free_paths(&more);
	return fine;
}

/* A summary with several runs is known only when all of them are. */
static bool put_summaries(struct sl_scan *scan, const struct sl_images *images, const struct before *before)
{
	struct runs *of = sl_memory_must(calloc(before->count + 1, sizeof(*of)));
	struct sl_map numbers = {0};
	const char *last = NULL;
	uintptr_t number = 0;
	bool fine = true;

	for (size_t s = 0; s < before->count; s++)
		*sl_map_at(&numbers, before->item[s].path) = s + 1;
	for (unsigned i = 0; i < images->image_count && fine; i++) {
		const char *summary = images->images[i].summary;
		int64_t run = 0;

		if (summary && summary != last) {
			char *whole = realpath(summary, NULL);

			number = whole ? sl_map_find(&numbers, whole) : 0;
			last = summary;
			free(whole);
		}
		if (summary && number)
			fine = sl_store_find(scan->store, images->runs[images->run_of[i]].id, &run);
		if (run)
			*SL_PUSH(&of[number - 1]) = run;
	}
	for (size_t s = 0; s < before->count; s++) {
		scan->unread |= !of[s].count && !sl_library_lacked();
		fine = fine && (sl_library_lacked() || !of[s].count ||
				sl_store_file_put(scan->store, &before->item[s], of[s].item, of[s].count));
		SL_DROP(&of[s]);
	}
	sl_map_free(&numbers);
	free(of);
	return fine;
}

static bool learn_loose(struct sl_scan *scan, const struct paths *fresh)
{
	struct sl_images images = {0};
	struct before summaries = {0};
	struct by_run by;
	bool fine = true;

	for (size_t i = 0; i < fresh->count; i++) {
		if (sl_summaries_named(fresh->item[i]))
			look_at(&summaries, fresh->item[i]);
		sl_images_add(&images, fresh->item[i]);
	}
	sl_images_group(&images);
	by = by_run(&images);
	for (unsigned i = images.run_count; i-- && fine;) /* oldest first, as if they had come one by one */
		fine = learn_run(scan, &images, i, &by);
	fine = fine && put_summaries(scan, &images, &summaries);
	free(by.at);
	free(by.images);
	forget(&summaries);
	sl_images_free(&images);
	return fine;
}

/* ---- packs */

static bool learn_pack(struct sl_scan *scan, char *path)
{
	struct sl_images images = {0};
	struct before before = {0};
	struct by_run by;
	struct runs runs = {0};
	char *whole = realpath(path, NULL);
	bool fine = true;

	if (!sl_archive_open(path) && errno) {
		if (sl_archive_unsaved()) /* it is reported */
			scan->unsaved = true;
		else
			sl_paths_failed(path);
		scan->unread |= !scan->unsaved;
		free(whole);
		return true; /* the next scan tries it again */
	}
	scan->nameless = false;
	look_at(&before, path);
	sl_images_add(&images, path);
	sl_images_group(&images);
	by = by_run(&images);
	for (unsigned i = images.run_count; i-- && fine;) {
		struct sl_images moved = {0};

		if (!*images.runs[i].id)
			continue;
		if (!images.copies.count) /* report warnings about the pack once per run in it */
			moved = take_images(&images, &by.images[by.at[i]], by.at[i + 1] - by.at[i]);
		fine = learn(scan, moved.image_count ? &moved : NULL, &path, 1, images.runs[i].id, whole, &runs);
	}
	if (!images.image_count)
		sl_escape_print(stderr, "stormlog-analyze: %s: no pack of a run\n", path);
	fine = fine && put_files(scan, &before, &runs);
	free(by.at);
	free(by.images);
	sl_images_free(&images);
	sl_archive_close(path);
	SL_DROP(&runs);
	forget(&before);
	free(whole);
	return fine;
}

/* ---- all */

static bool take_fresh(struct sl_scan *scan, const char *path, struct paths *fresh)
{
	bool unchanged;

	if (!is_known(scan, path, &unchanged))
		return false;
	if (!unchanged)
		add_path(fresh, path);
	return true;
}

/* Reads traces and summaries of the paths that are new or have changed. */
static bool find_loose(struct sl_scan *scan, const struct sl_images *images, struct paths *fresh)
{
	for (unsigned i = 0; i < images->image_count; i++) {
		const struct sl_image *image = &images->images[i];

		for (unsigned f = 0; f < image->file_count; f++)
			if (!take_fresh(scan, image->files[f], fresh))
				return false;
		if (image->ring && !take_fresh(scan, image->ring, fresh))
			return false;
	}
	for (size_t i = 0; i < images->summaries.count; i++)
		if (!take_fresh(scan, images->summaries.item[i], fresh))
			return false;
	return true;
}

/*
 * Stores the file as known, and the card of the log.  A log that the user did not name gets a card only if its text tells of
 * memory.  *run: the card's number, or unchanged.
 */
static bool put_log(struct sl_store *store, const struct sl_log *log, const char *path, const struct stat *st, bool named,
		    int64_t *run)
{
	char *whole = realpath(path, NULL);
	struct sl_store_file file = {whole, st->st_size, (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec};
	bool fine = true;

	if (whole) {
		struct sl_card card;

		sl_card_init(&card);
		sl_card_take_log(&card, log, whole, file.changed_ns);
		fine = (!named && !log->verdict) || sl_store_put(store, &card, run);
		fine = fine && sl_store_file_put(store, &file, run, *run != 0);
		sl_card_free(&card);
	}
	free(whole);
	return fine;
}

/* A log of what a program printed, or a pack. */
static bool learn_file(struct sl_scan *scan, char *path, bool named)
{
	struct stat st;
	struct sl_log *log = sl_images_is_pack(path) ? NULL : sl_card_read_log(path, &st);
	int64_t run = 0;
	bool fine = log ? put_log(scan->store, log, path, &st, named, &run) : learn_pack(scan, path);

	if (run) {
		found(scan, run);
		scan->read++;
	}
	free(log);
	return fine;
}

bool sl_scan_paths(struct sl_scan *scan, char *const *paths, unsigned count)
{
	struct sl_images images = {.packs_apart = true};
	struct paths fresh = {0}, packs = {0};
	bool fine = true, unchanged;
	size_t named;

	sl_archive_go_on();
	for (unsigned i = 0; i < count && fine; i++) {
		struct stat st;

		if (stat(paths[i], &st)) {
			scan->missing = paths[i];
			fine = false;
		} else if (S_ISDIR(st.st_mode) || sl_images_is_trace(sl_paths_name(paths[i])) || sl_summaries_named(paths[i])) {
			fine = sl_images_add(&images, paths[i]);
			scan->missing = fine ? scan->missing : paths[i];
		} else {
			add_path(&packs, paths[i]);
		}
	}
	named = packs.count;
	for (size_t i = 0; i < images.packs.count; i++)
		add_path(&packs, images.packs.item[i]);
	scan->empty = !images.image_count && !images.summaries.count && !packs.count;
	sl_damage_print(&images.copies);
	fine = fine && find_loose(scan, &images, &fresh);
	sl_images_free(&images);
	fine = fine && (!fresh.count || learn_loose(scan, &fresh));
	for (size_t i = 0; i < packs.count && fine; i++) {
		fine = is_known(scan, packs.item[i], &unchanged);
		if (fine && !unchanged)
			fine = learn_file(scan, packs.item[i], i < named);
	}
	free_paths(&fresh);
	free_paths(&packs);
	return fine;
}

void sl_scan_free(struct sl_scan *scan)
{
	SL_DROP(&scan->runs);
	sl_map_free(&scan->met);
}
