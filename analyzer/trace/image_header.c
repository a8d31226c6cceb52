/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/files.h"

#include <sys/stat.h>

static bool peek_file(const char *path, struct sl_header *header)
{
	struct sl_damage damage = {0};
	struct sl_inflate inflate = {0};
	struct sl_frames frames;
	msgpack_object object;
	msgpack_zone zone;
	size_t at = 0;

	if (!sl_frames_open(&frames, path, 0, &damage))
		return false;
	msgpack_zone_init(&zone, 8192);
	if (frames.count && sl_frame_read(&inflate, &frames, &frames.frame[0], NULL) &&
	    sl_object_parse(&object, &zone, inflate.out, inflate.bytes, &at))
		sl_header_identify(header, &object);
	msgpack_zone_destroy(&zone);
	sl_inflate_free(&inflate);
	sl_frames_close(&frames);
	sl_damage_free(&damage);
	return header->known;
}

bool sl_image_header(const struct sl_image *image, struct sl_header *header)
{
	struct sl_damage damage = {0};
	msgpack_object object;
	struct sl_recovered_ring ring;
	msgpack_zone zone;
	size_t at = 0;

	*header = (struct sl_header){0};
	for (unsigned i = 0; i < image->file_count; i++)
		if (peek_file(image->files[i], header))
			return true;
	if (!image->ring || !sl_ring_open(&ring, image->ring, SL_RING_OF_ANY, &damage)) {
		sl_damage_free(&damage);
		return false;
	}
	msgpack_zone_init(&zone, 8192);
	if (ring.header_map && sl_object_parse(&object, &zone, ring.header_map, ring.head->header_bytes, &at))
		sl_header_identify(header, &object);
	msgpack_zone_destroy(&zone);
	sl_ring_free(&ring);
	sl_damage_free(&damage);
	return header->known;
}

static bool is_older(const char *path, int64_t since)
{
	struct stat st;

	return !stat(path, &st) && st.st_mtime < since;
}

bool sl_image_written(const struct sl_image *image, int64_t since)
{
	bool older = (!image->ring || is_older(image->ring, since)) && (!image->summary || is_older(image->summary, since));

	for (unsigned i = 0; i < image->file_count && older; i++)
		older = is_older(image->files[i], since);
	return !older;
}

bool sl_image_lives(const struct sl_image *image)
{
	struct sl_recovered_ring ring;
	struct sl_damage unsaid = {0};
	bool alive = false;

	if (image->ring && sl_ring_open_head(&ring, image->ring, &unsaid)) {
		alive = ring.alive;
		sl_ring_free(&ring);
	}
	sl_damage_free(&unsaid);
	return alive;
}
