/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/files.h"

#include <sys/stat.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "common/fnv.h"

static uint64_t size_of(const char *path)
{
	struct stat st;

	return path && !stat(path, &st) ? (uint64_t)st.st_size : 0;
}

/* Bytes of the image's files; for a process in a summary, of its frame. */
static uint64_t weight_of(const struct sl_image *image)
{
	uint64_t bytes = image->bytes;

	if (image->summary)
		return bytes;
	for (unsigned f = 0; f < image->file_count; f++)
		bytes += size_of(image->files[f]);
	return bytes + size_of(image->ring);
}

struct weighed {
	uint64_t bytes;
	const struct sl_image *image;
};

/* A total order, so that the order of the listing does not matter. */
static int heaviest_first(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;
	const char *one = x->image->summary, *other = y->image->summary;

	return SL_FALLING(x->bytes, y->bytes) ?: strcmp(x->image->name, y->image->name)
	       ?: strcmp(one ? one : "", other ? other : "");
}

/* Gives each image, largest first, to the part with the fewest bytes so far.  is_mine: one flag for each image. */
static void deal(const struct sl_images *folder, unsigned part, unsigned parts, bool *is_mine)
{
	struct weighed *order = sl_memory_must(calloc(folder->image_count + 1, sizeof(*order)));
	uint64_t *has = sl_memory_must(calloc(parts, sizeof(*has)));

	for (unsigned i = 0; i < folder->image_count; i++)
		order[i] = (struct weighed){weight_of(&folder->images[i]), &folder->images[i]};
	if (folder->image_count)
		qsort(order, folder->image_count, sizeof(*order), heaviest_first);
	for (unsigned i = 0; i < folder->image_count; i++) {
		unsigned lightest = 0;

		for (unsigned p = 1; p < parts; p++)
			if (has[p] < has[lightest])
				lightest = p;
		has[lightest] += order[i].bytes + 1; /* + 1 because opening a file costs something too */
		is_mine[order[i].image - folder->images] = lightest == part;
	}
	free(order);
	free(has);
}

void sl_shards_keep(struct sl_images *folder, unsigned part, unsigned parts)
{
	bool *is_mine = sl_memory_must(calloc(folder->image_count + 1, sizeof(*is_mine)));
	unsigned kept = 0;

	deal(folder, part, parts, is_mine);
	for (unsigned i = 0; i < folder->image_count; i++)
		if (is_mine[i])
			folder->images[kept++] = folder->images[i];
		else
			sl_images_drop(&folder->images[i]);
	folder->image_count = kept;
	free(is_mine);
}

void sl_shards_list(struct sl_images *folder)
{
	struct sl_listing listing = {.size = folder->image_count};

	for (unsigned i = 0; i < folder->image_count; i++)
		listing.key += sl_fnv_text(sl_paths_name(folder->images[i].name));
	for (unsigned i = 0; i < folder->image_count; i++)
		if (!folder->images[i].listing.size)
			folder->images[i].listing = listing;
}

void sl_shards_miss(struct sl_images *folder)
{
	struct sl_idmap here = {0};

	for (unsigned i = 0; i < folder->image_count; i++) {
		const struct sl_listing *listing = &folder->images[i].listing;

		if (listing->size)
			sl_idmap_set(&here, listing->key, sl_idmap_get(&here, listing->key, 0) + 1);
	}
	for (unsigned i = 0; i < folder->image_count; i++) {
		const struct sl_listing *listing = &folder->images[i].listing;
		uint32_t count = listing->size ? sl_idmap_get(&here, listing->key, 0) : 0;

		if (!count)
			continue;
		if (count < listing->size)
			sl_damage_add(&folder->copies, folder->images[i].summary, -1,
				      "%llu of %llu processes are in parts of the summary that are not here",
				      (unsigned long long)(listing->size - count), (unsigned long long)listing->size);
		sl_idmap_set(&here, listing->key, 0); /* said */
	}
	sl_idmap_free(&here);
}
