/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/images.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyzer/trace/archive.h"
#include "common/tracefile.h"
#include "analyzer/trace/names.h"

#define DEPTH_MAX 4

static struct sl_image *image_of(struct sl_images *folder, const char *stem)
{
	struct sl_image *image;
	char *name;

	if (asprintf(&name, "%s%s", stem, SL_TRACE_SUFFIX) < 0)
		abort();
	for (unsigned i = 0; i < folder->image_count; i++)
		if (!strcmp(folder->images[i].name, name)) {
			free(name);
			return &folder->images[i];
		}
	folder->images = realloc(folder->images, (folder->image_count + 1) * sizeof(*folder->images));
	if (!folder->images)
		abort();
	image = &folder->images[folder->image_count++];
	*image = (struct sl_image){.name = name};
	return image;
}

/* Files of an image stay sorted by path: segments count up with six digits. */
static void add_file(struct sl_image *image, const char *path)
{
	unsigned at = image->file_count;

	for (unsigned i = 0; i < image->file_count; i++)
		if (!strcmp(image->files[i], path))
			return;
	image->files = realloc(image->files, (image->file_count + 1) * sizeof(*image->files));
	if (!image->files)
		abort();
	for (; at; at--) {
		if (sl_names_segment(image->files[at - 1]) <= sl_names_segment(path))
			break;
		image->files[at] = image->files[at - 1];
	}
	image->files[at] = strdup(path);
	image->file_count++;
}

static void add_path(struct sl_images *folder, const char *path)
{
	unsigned segment;
	char *stem = sl_names_stem(path, &segment);
	struct sl_image *image = image_of(folder, stem);

	free(stem);
	if (!sl_names_is_ring(path))
		add_file(image, path);
	else if (!image->ring)
		image->ring = strdup(path);
}

static void add_folder(struct sl_images *folder, const char *path, unsigned depth)
{
	struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir))) {
		struct stat st;
		char *inside;

		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "analysis"))
			continue;
		if (asprintf(&inside, "%s%s%s", path, *path && path[strlen(path) - 1] == '/' ? "" : "/", entry->d_name) < 0)
			abort();
		if (!stat(inside, &st)) {
			if (S_ISDIR(st.st_mode) && depth)
				add_folder(folder, inside, depth - 1);
			else if (S_ISREG(st.st_mode) && sl_names_is_trace(entry->d_name))
				add_path(folder, inside);
		}
		free(inside);
	}
	if (dir)
		closedir(dir);
}

bool sl_images_add(struct sl_images *folder, const char *path)
{
	static const char *const others[] = {SL_TRACE_SUFFIX, (".[0-9][0-9][0-9][0-9][0-9][0-9]" SL_TRACE_SUFFIX), SL_RING_SUFFIX};
	struct stat st;
	unsigned segment;
	char *stem, *beside;

	if (stat(path, &st))
		return false;
	if (S_ISDIR(st.st_mode)) {
		add_folder(folder, path, DEPTH_MAX);
		return true;
	}
	if (!sl_names_is_trace(path)) {
		const char *unpacked = sl_pack_open(path);

		if (unpacked)
			add_folder(folder, unpacked, DEPTH_MAX);
		return true;
	}
	add_path(folder, path);
	/* A file named alone brings the others of its process. */
	stem = sl_names_stem(path, &segment);
	for (size_t i = 0; i < SL_COUNT(others); i++) {
		glob_t found;

		if (asprintf(&beside, "%s%s", stem, others[i]) < 0)
			abort();
		if (!glob(beside, 0, NULL, &found)) {
			for (size_t f = 0; f < found.gl_pathc; f++)
				add_path(folder, found.gl_pathv[f]);
			globfree(&found);
		}
		free(beside);
	}
	free(stem);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct sl_image *)a)->name, ((const struct sl_image *)b)->name);
}

static unsigned run_of(struct sl_images *folder, const char *id, uint64_t started_ns)
{
	unsigned i = 0;

	while (i < folder->run_count && strcmp(folder->runs[i].id, id))
		i++;
	if (i == folder->run_count) {
		folder->runs = realloc(folder->runs, (folder->run_count + 1) * sizeof(*folder->runs));
		if (!folder->runs)
			abort();
		folder->runs[folder->run_count++] = (struct sl_run){.id = strdup(id), .started_ns = started_ns};
	}
	if (started_ns && started_ns < folder->runs[i].started_ns)
		folder->runs[i].started_ns = started_ns;
	folder->runs[i].images++;
	return i;
}

/* Newest first; run_of follows. */
static void sort_runs(struct sl_images *folder)
{
	for (unsigned i = 1; i < folder->run_count; i++)
		for (unsigned j = i; j && folder->runs[j].started_ns > folder->runs[j - 1].started_ns; j--) {
			struct sl_run other = folder->runs[j];

			folder->runs[j] = folder->runs[j - 1];
			folder->runs[j - 1] = other;
			for (unsigned k = 0; k < folder->image_count; k++)
				folder->run_of[k] = folder->run_of[k] == j	 ? j - 1
						    : folder->run_of[k] == j - 1 ? j
										 : folder->run_of[k];
		}
}

void sl_images_group(struct sl_images *folder)
{
	if (folder->image_count)
		qsort(folder->images, folder->image_count, sizeof(*folder->images), by_name);
	folder->run_of = calloc(folder->image_count + 1, sizeof(*folder->run_of));
	for (unsigned i = 0; i < folder->image_count; i++) {
		struct sl_header header;

		sl_trace_peek(&folder->images[i], &header);
		folder->run_of[i] = run_of(folder, header.run_id ? header.run_id : "", header.started_ns);
		sl_header_free(&header);
	}
	sort_runs(folder);
}

void sl_images_free(struct sl_images *folder)
{
	for (unsigned i = 0; i < folder->image_count; i++) {
		struct sl_image *image = &folder->images[i];

		for (unsigned f = 0; f < image->file_count; f++)
			free(image->files[f]);
		free(image->files);
		free(image->name);
		free(image->ring);
	}
	for (unsigned i = 0; i < folder->run_count; i++)
		free(folder->runs[i].id);
	free(folder->images);
	free(folder->run_of);
	free(folder->runs);
	*folder = (struct sl_images){0};
}
