/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyzer/base/memory.h"

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
	int names = strcmp(x->image->name, y->image->name);

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return names ? names : strcmp(one ? one : "", other ? other : "");
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

void sl_parts_keep(struct sl_images *folder, unsigned part, unsigned parts)
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
