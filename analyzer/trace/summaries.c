/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/files.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/compress.h"

#define INDEX_MAX   (256u << 20)
#define CONTENT_MAX (1ull << 30)
#define RATIO_MAX   1000 /* largest allowed ratio of content to bytes of a frame, so that no small file becomes large */

/* The frame that begins a file: zstd's magic number of what is skipped, the size of the text, and the text without its end. */
static const struct mark {
	uint32_t magic, size;
	char text[sizeof(SL_SUMMARY_FORMAT) - 1];
} mark = {0x184d2a5f, sizeof(SL_SUMMARY_FORMAT) - 1, SL_SUMMARY_FORMAT};

bool sl_summaries_named(const char *path)
{
	return sl_paths_ends(path, SL_SUMMARY_SUFFIX);
}

/* One frame with its content. */
static uint8_t *unpack(const void *frame, size_t size, uint64_t limit, size_t *bytes)
{
	unsigned long long content = ZSTD_getFrameContentSize(frame, size);
	uint8_t *out;

	if (content > limit || content / RATIO_MAX > size) /* the two numbers in the messages */
		return NULL;
	out = malloc(content + 1);
	if (!out)
		return NULL;
	*bytes = sl_compress_back(out, content, frame, size);
	if (!ZSTD_isError(*bytes) && *bytes == content)
		return out;
	free(out);
	return NULL;
}

static void take_identity(struct sl_header *header, const msgpack_object *map)
{
	static const struct {
		const char *key;
		size_t at;
	} texts[] = {{"run_id", offsetof(struct sl_header, run_id)},
		     {"host", offsetof(struct sl_header, host)},
		     {"boot_id", offsetof(struct sl_header, boot_id)}};

	for (size_t i = 0; i < SL_COUNT(texts); i++) {
		struct sl_span span = sl_object_text(map, texts[i].key);
		const char *copy = span.text ? sl_arena_strndup(&header->arena, span.text, span.size) : NULL;

		memcpy((char *)header + texts[i].at, &copy, sizeof(copy));
	}
	header->pid = sl_object_i64(map, "pid", 0);
	header->rank = sl_object_i64(map, "rank", -1);
	header->process_start = sl_object_u64(map, "process_start", 0);
	header->started_ns = sl_object_u64(map, "started_ns", 0);
	header->monotonic_ns = sl_object_u64(map, "monotonic_ns", 0);
	header->is_known = header->started_ns != 0;
}

/* The commons of the file, which lie from `at` on, and where they end; each belongs to one user. */
struct commons {
	SL_VECTOR(struct sl_common *) list;
	const char *path;
	uint64_t at, size;
};

/*
 * The size of a frame at `at`, which moves behind it.  Of a torn file it is a byte more than what is left, so that the frame cannot
 * be read, and the process that it is of is damaged and no other.
 */
static uint64_t next_frame(const struct commons *commons, uint64_t bytes, uint64_t *at)
{
	uint64_t left = commons->size - *at;

	*at = bytes < left ? *at + bytes : commons->size;
	return bytes <= left ? bytes : left + 1;
}

static bool take_commons(struct commons *commons, const msgpack_object *sizes)
{
	static char name[] = "the common part of processes";

	for (uint32_t i = 0; sizes && sizes->type == MSGPACK_OBJECT_ARRAY && i < sizes->via.array.size; i++) {
		struct sl_common *common;
		uint64_t bytes = 0;

		if (!sl_object_number(&sizes->via.array.ptr[i], &bytes) || !bytes || i >= commons->size)
			return false;
		common = *SL_PUSH(&commons->list) = sl_memory_must(calloc(1, sizeof(*common)));
		common->at = (struct sl_image){.name = name, .summary = commons->path, .offset = commons->at};
		common->at.bytes = next_frame(commons, bytes, &commons->at);
		common->users = 1;
		pthread_mutex_init(&common->lock, NULL);
	}
	return true;
}

void sl_common_leave(struct sl_common *common)
{
	if (!common || --common->users)
		return;
	sl_trace_close(common->trace);
	pthread_mutex_destroy(&common->lock);
	free(common);
}

static bool take_process(const struct commons *commons, const msgpack_object *map, uint64_t *begin, struct sl_image *image)
{
	uint64_t bytes = sl_object_u64(map, "bytes", 0), common = sl_object_u64(map, "common", 0);
	struct sl_span name = sl_object_text(map, "name");

	if (!name.text || !bytes || common > commons->list.count)
		return false;
	*image = (struct sl_image){.name = strndup(name.text, name.size),
				   .summary = commons->path,
				   .offset = *begin,
				   .identity = sl_memory_must(calloc(1, sizeof(*image->identity))),
				   .common = common ? commons->list.item[common - 1] : NULL,
				   .listing = {sl_object_u64(map, "listing", 0), sl_object_u64(map, "listed", 0)}};
	image->bytes = next_frame(commons, bytes, begin);
	take_identity(image->identity, map);
	if (common)
		image->common->users++;
	return true;
}

/* foreign: it is none of ours, of whatever version. */
static bool take_index(bool *foreign, const msgpack_object *index, struct commons *commons, sl_summaries_add *add, void *context)
{
	const msgpack_object *format = sl_object_get(index, "format"), *list = sl_object_get(index, "processes");
	uint64_t version = sl_object_u64(index, "version", 0), begin;

	*foreign = !sl_object_is_text(format, SL_SUMMARY_FORMAT);
	if (*foreign || version != SL_SUMMARY_VERSION || !list || list->type != MSGPACK_OBJECT_ARRAY ||
	    !take_commons(commons, sl_object_get(index, "commons")))
		return false;
	begin = commons->at;
	for (uint32_t i = 0; i < list->via.array.size; i++) {
		struct sl_image image;

		if (i >= commons->size || !take_process(commons, &list->via.array.ptr[i], &begin, &image))
			return false;
		add(context, &image);
	}
	return true;
}

bool sl_summaries_list(const char *path, sl_summaries_add *add, void *context, bool *foreign, const char **why)
{
	struct stat st;
	int fd = sl_paths_open_regular(path, &st);
	struct commons commons = {.path = path};
	size_t got, first = 0, bytes = 0, at = 0;
	uint8_t *head, *content = NULL;
	msgpack_object index;
	msgpack_zone zone;
	bool fine = false;

	*why = "it is no summary of this version, or it is torn";
	*foreign = false;
	if (fd < 0) {
		*why = strerror(errno);
		return false;
	}
	got = (uint64_t)st.st_size < INDEX_MAX ? (size_t)st.st_size : INDEX_MAX;
	head = malloc(got + 1);
	got = head ? sl_frames_read_at(fd, head, got, 0) : 0;
	close(fd);
	*foreign = head && memcmp(head, &mark, got < sizeof(mark) ? got : sizeof(mark));
	if (!*foreign && got > sizeof(mark))
		first = ZSTD_findFrameCompressedSize(head + sizeof(mark), got - sizeof(mark));
	if (first && !ZSTD_isError(first))
		content = unpack(head + sizeof(mark), first, CONTENT_MAX, &bytes);
	msgpack_zone_init(&zone, 8192);
	commons.at = sizeof(mark) + first;
	commons.size = (uint64_t)st.st_size;
	if (content && sl_object_parse(&index, &zone, content, bytes, &at))
		fine = take_index(foreign, &index, &commons, add, context);
	for (size_t i = 0; i < commons.list.count; i++)
		sl_common_leave(commons.list.item[i]);
	free(commons.list.item);
	msgpack_zone_destroy(&zone);
	free(content);
	free(head);
	return fine;
}

void *sl_summaries_frame(const struct sl_image *image, struct sl_damage *damage)
{
	struct stat st;
	int fd = sl_paths_open_regular(image->summary, &st);
	void *frame = fd >= 0 && image->bytes <= (uint64_t)st.st_size ? malloc(image->bytes) : NULL;
	bool fine = frame && sl_frames_read_at(fd, frame, image->bytes, image->offset) == image->bytes;

	if (fd >= 0)
		close(fd);
	if (fine)
		return frame;
	sl_damage_add(damage, image->summary, (int64_t)image->offset, "cannot be read");
	free(frame);
	return NULL;
}

bool sl_summaries_read(struct sl_summary_part *part, const struct sl_image *image, struct sl_damage *damage)
{
	void *frame = sl_summaries_frame(image, damage);
	size_t bytes = 0, at = 0;

	if (!frame)
		return false;
	*part = (struct sl_summary_part){.bytes = unpack(frame, image->bytes, CONTENT_MAX, &bytes)};
	free(frame);
	msgpack_zone_init(&part->zone, 65536);
	if (part->bytes && sl_object_parse(&part->map, &part->zone, part->bytes, bytes, &at))
		return true;
	sl_damage_add(damage, image->summary, (int64_t)image->offset, "the summary of %s does not open", image->name);
	sl_summaries_close(part);
	return false;
}

void sl_summaries_close(struct sl_summary_part *part)
{
	msgpack_zone_destroy(&part->zone);
	free(part->bytes);
}

static void put_text(msgpack_packer *pk, const char *text)
{
	if (!text) {
		msgpack_pack_nil(pk);
		return;
	}
	msgpack_pack_str(pk, strlen(text));
	msgpack_pack_str_body(pk, text, strlen(text));
}

/* The commons, each once, in the order of the first process that has it.  of: which each process has, from 1; 0: none. */
struct order {
	struct sl_idmap numbers;
	SL_VECTOR(const struct sl_summary_frame *) list;
	uint32_t *of;
};

static void order_commons(struct order *order, const struct sl_summary_frame *frames, size_t count)
{
	order->of = sl_memory_must(calloc(count + 1, sizeof(*order->of)));
	for (size_t i = 0; i < count; i++) {
		uint32_t number = sl_idmap_get(&order->numbers, (uintptr_t)frames[i].common, 0);

		if (frames[i].common && !number) {
			*SL_PUSH(&order->list) = &frames[i];
			number = (uint32_t)order->list.count;
			sl_idmap_set(&order->numbers, (uintptr_t)frames[i].common, number);
		}
		order->of[i] = number;
	}
}

static void put_index(msgpack_packer *pk, const struct sl_summary_frame *frames, size_t count, const struct order *order)
{
	struct sl_idmap counts = {0}; /* how many of each listing */

	for (size_t i = 0; i < count; i++)
		if (frames[i].listing.size)
			sl_idmap_set(&counts, frames[i].listing.key, sl_idmap_get(&counts, frames[i].listing.key, 0) + 1);
	msgpack_pack_map(pk, 5);
	put_text(pk, "def");
	put_text(pk, "summary");
	put_text(pk, "format");
	put_text(pk, SL_SUMMARY_FORMAT);
	put_text(pk, "version");
	msgpack_pack_uint64(pk, SL_SUMMARY_VERSION);
	put_text(pk, "commons");
	msgpack_pack_array(pk, order->list.count);
	for (size_t i = 0; i < order->list.count; i++)
		msgpack_pack_uint64(pk, order->list.item[i]->common_size);
	put_text(pk, "processes");
	msgpack_pack_array(pk, count);
	for (size_t i = 0; i < count; i++) {
		const struct sl_header *header = frames[i].identity;
		const struct {
			const char *key, *text;
		} texts[] = {
			{"name", frames[i].name}, {"run_id", header->run_id}, {"host", header->host}, {"boot_id", header->boot_id}};
		const struct {
			const char *key;
			uint64_t number;
		} numbers[] = {{"process_start", header->process_start},
			       {"started_ns", header->started_ns},
			       {"monotonic_ns", header->monotonic_ns},
			       {"bytes", frames[i].size},
			       {"common", order->of[i]},
			       {"listing", frames[i].listing.key},
			       {"listed", frames[i].listing.size}};
		size_t number_count = SL_COUNT(numbers);

		if (sl_idmap_get(&counts, frames[i].listing.key, 0) >= frames[i].listing.size)
			number_count -= 2;
		msgpack_pack_map(pk, (uint32_t)(SL_COUNT(texts) + number_count + 2));
		for (size_t k = 0; k < SL_COUNT(texts); k++) {
			put_text(pk, texts[k].key);
			put_text(pk, texts[k].text);
		}
		for (size_t k = 0; k < number_count; k++) {
			put_text(pk, numbers[k].key);
			msgpack_pack_uint64(pk, numbers[k].number);
		}
		put_text(pk, "pid");
		msgpack_pack_int64(pk, header->pid);
		put_text(pk, "rank");
		msgpack_pack_int64(pk, header->rank);
	}
	sl_idmap_free(&counts);
}

bool sl_summaries_write(FILE *out, const struct sl_summary_frame *frames, size_t count)
{
	struct order order = {0};
	msgpack_sbuffer index;
	msgpack_packer pk;
	void *packed;
	size_t size;
	bool fine;

	order_commons(&order, frames, count);
	msgpack_sbuffer_init(&index);
	msgpack_packer_init(&pk, &index, msgpack_sbuffer_write);
	put_index(&pk, frames, count, &order);
	packed = sl_memory_must(malloc(ZSTD_compressBound(index.size)));
	size = ZSTD_compress(packed, ZSTD_compressBound(index.size), index.data, index.size, 3);
	fine = !ZSTD_isError(size) && fwrite(&mark, sizeof(mark), 1, out) == 1 && fwrite(packed, 1, size, out) == size;
	for (size_t i = 0; fine && i < order.list.count; i++)
		fine = fwrite(order.list.item[i]->common, 1, order.list.item[i]->common_size, out) ==
		       order.list.item[i]->common_size;
	for (size_t i = 0; fine && i < count; i++)
		fine = fwrite(frames[i].bytes, 1, frames[i].size, out) == frames[i].size;
	sl_idmap_free(&order.numbers);
	free(order.list.item);
	free(order.of);
	free(packed);
	msgpack_sbuffer_destroy(&index);
	return fine;
}
