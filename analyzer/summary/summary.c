/* SPDX-License-Identifier: MIT */
#include "analyzer/summary/summary.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/pool.h"
#include "analyzer/model/replay.h"
#include "analyzer/summary/image.h"
#include "analyzer/summary/shape.h"
#include "analyzer/trace/summaries.h"

#define LEVEL 1

/* ---- to bytes */

static void take_lines(struct sl_image_lines *image, const struct sl_timeline *timeline)
{
	image->begin_ns = timeline->begin_ns;
	image->end_ns = timeline->end_ns;
	image->shift = timeline->shift;
	for (unsigned i = 0; i < timeline->line_count; i++) {
		const struct sl_line *line = timeline->lines[i];

		if (line->begun)
			memset(line->bins, 0, line->first * sizeof(*line->bins));
		*SL_PUSH(&image->lines) = (struct sl_image_line){.what = line->what,
								 .device = line->device,
								 .index = line->index,
								 .begun = line->begun,
								 .first = line->first,
								 .bin = line->bin,
								 .site = line->site,
								 .count = line->begun ? line->bin + 1 : 0,
								 .value = line->value,
								 .last_ns = line->last_ns,
								 .bins = line->bins};
	}
}

#define IDS(image, defs, map, vector)                                                                                              \
	take_ids((image)->map.item = new_ids(&(image)->map.count, (defs)->vector.count), (defs)->vector.count, &(defs)->map)

static uint64_t *new_ids(size_t *count, size_t wanted)
{
	uint64_t *ids = sl_memory_must(malloc((wanted + 1) * sizeof(*ids)));

	memset(ids, 0xff, (wanted + 1) * sizeof(*ids));
	*count = wanted;
	return ids;
}

static void take_ids(uint64_t *ids, size_t count, const struct sl_idmap *map)
{
	for (uint32_t i = 0; !map->slot && i < map->count && i < count; i++)
		ids[i] = map->first + i;
	for (uint32_t i = 0; map->slot && i <= map->mask; i++)
		if (map->slot[i].used && map->slot[i].value < count)
			ids[map->slot[i].value] = map->slot[i].id;
}

static void take_slots(struct sl_image_slots *image, const struct sl_process *process, const struct sl_image *files)
{
	const struct sl_model *model = process->model;
	const struct sl_defs *defs = &process->trace->defs;
	char real[PATH_MAX];

	for (uint32_t d = 0; d <= SL_DEVICES_MAX; d++)
		if (model->devices[d] || model->rows[d])
			*SL_PUSH(&image->slots) = (struct sl_image_slot){.slot = d,
									 .rows = model->rows[d],
									 .row_count = model->rows[d] ? SL_KIND_COUNT : 0,
									 .state = model->devices[d],
									 .state_count = model->devices[d] != NULL};
	image->apis = model->apis;
	image->api_count = model->header->hook_count + 1;
	for (unsigned i = 0; i < files->file_count; i++)
		*SL_PUSH(&image->files) = strdup(realpath(files->files[i], real) ? real : files->files[i]);
	image->ring = files->ring && realpath(files->ring, real) ? sl_pool_keep(real, strlen(real)) : NULL;
	IDS(image, defs, text_ids, texts);
	IDS(image, defs, frame_ids, frames);
	IDS(image, defs, python_ids, pythons);
	IDS(image, defs, native_ids, natives);
	IDS(image, defs, thread_ids, threads);
}

static void free_slots(struct sl_image_slots *image)
{
	for (size_t i = 0; i < image->files.count; i++)
		free(image->files.item[i]);
	free(image->files.item);
	free(image->slots.item);
	free(image->text_ids.item);
	free(image->frame_ids.item);
	free(image->python_ids.item);
	free(image->native_ids.item);
	free(image->thread_ids.item);
}

static void put_key(msgpack_sbuffer *out, const char *key)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_str(&pk, strlen(key));
	msgpack_pack_str_body(&pk, key, strlen(key));
}

static void put_part(msgpack_sbuffer *out, const char *key, const struct sl_shape *shape, const void *object,
		     const struct sl_model *model)
{
	put_key(out, key);
	sl_shape_write(out, shape, object, model);
}

static void put_process(msgpack_sbuffer *out, const struct sl_process *process, const struct sl_image *image)
{
	struct sl_image_lines lines = {0};
	struct sl_image_slots slots = {0};

	take_lines(&lines, &process->model->timeline);
	take_slots(&slots, process, image);
	put_part(out, "trace", &sl_shape_trace, process->trace, process->model);
	put_part(out, "timeline", &sl_shape_lines, &lines, process->model);
	put_part(out, "model", &sl_shape_model, process->model, process->model);
	put_part(out, "devices", &sl_shape_slots, &slots, process->model);
	put_part(out, "process", &sl_shape_process, process, process->model);
	free(lines.lines.item);
	free_slots(&slots);
}

void *sl_summary_pack(const struct sl_process *process, const struct sl_image *image, const struct sl_damage *damage, size_t *size)
{
	static const char def[] = "process";
	msgpack_sbuffer out;
	msgpack_packer pk;
	void *packed;

	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, process->trace ? 6 : 2);
	put_key(&out, "def");
	put_key(&out, def);
	if (process->trace)
		put_process(&out, process, image);
	else
		put_part(&out, "damage", &sl_shape_damage, damage, NULL);
	packed = sl_memory_must(malloc(ZSTD_compressBound(out.size)));
	*size = ZSTD_compress(packed, ZSTD_compressBound(out.size), out.data, out.size, LEVEL);
	msgpack_sbuffer_destroy(&out);
	return sl_memory_must(realloc(packed, *size)); /* kept until all ranks are there */
}

/* ---- and back */

static void set_ids(struct sl_idmap *map, const uint64_t *ids, size_t count, size_t named)
{
	for (size_t i = 0; i < count && i < named; i++)
		if (ids[i] != SL_UNKNOWN)
			sl_idmap_set(map, ids[i], (uint32_t)i);
}

/* Lines get their address before anything points to them. */
static void give_lines(struct sl_timeline *timeline, struct sl_image_lines *image)
{
	timeline->begin_ns = image->begin_ns;
	timeline->end_ns = image->end_ns;
	timeline->shift = image->shift < 64 ? image->shift : 63;
	for (size_t i = 0; i < image->lines.count; i++) {
		struct sl_image_line *from = &image->lines.item[i];
		struct sl_line *line = sl_timeline_add(timeline, from->what, from->device, from->index);

		line->begun = from->begun && from->first <= from->bin && from->bin < from->count && from->count <= SL_TIMELINE_BINS;
		line->first = from->first;
		line->bin = from->bin;
		line->site = from->site;
		line->value = from->value;
		line->last_ns = from->last_ns;
		line->bins = from->bins;
		line->capacity = from->count;
	}
	free(image->lines.item);
}

static void give_slots(struct sl_model *model, struct sl_image_slots *image)
{
	for (size_t i = 0; i < image->slots.count; i++) {
		struct sl_image_slot *slot = &image->slots.item[i];
		bool fits = slot->slot <= SL_DEVICES_MAX;

		if (fits && !model->rows[slot->slot] && slot->row_count == SL_KIND_COUNT) {
			model->rows[slot->slot] = slot->rows;
			slot->rows = NULL;
		}
		if (fits && !model->devices[slot->slot] && slot->state_count == 1) {
			model->devices[slot->slot] = slot->state;
			slot->state->device = (int)slot->slot - 1;
			slot->state = NULL;
		}
		free(slot->rows);
		free(slot->state);
	}
	model->apis = image->apis;
	if (image->api_count == model->header->hook_count + 1)
		return;
	free(image->apis);
	model->apis = sl_memory_must(calloc(model->header->hook_count + 1, sizeof(*model->apis)));
}

static void give_origin(struct sl_process *process, struct sl_image_slots *image)
{
	struct sl_image *origin = &process->origin;

	origin->name = strdup(process->trace->name);
	origin->ring = image->ring ? strdup(image->ring) : NULL;
	origin->files = image->files.item;
	origin->file_count = (unsigned)image->files.count;
	image->files.item = NULL;
	image->files.count = 0;
}

static void give_ids(struct sl_defs *defs, const struct sl_image_slots *ids)
{
	set_ids(&defs->text_ids, ids->text_ids.item, ids->text_ids.count, defs->texts.count);
	set_ids(&defs->frame_ids, ids->frame_ids.item, ids->frame_ids.count, defs->frames.count);
	set_ids(&defs->python_ids, ids->python_ids.item, ids->python_ids.count, defs->pythons.count);
	set_ids(&defs->native_ids, ids->native_ids.item, ids->native_ids.count, defs->natives.count);
	set_ids(&defs->thread_ids, ids->thread_ids.item, ids->thread_ids.count, defs->threads.count);
	for (size_t i = 0; i < defs->named.count; i++)
		sl_idmap_set(&defs->named_ids, defs->named.item[i].pc, (uint32_t)i);
	sl_defs_share(defs);
}

static void read_part(const msgpack_object *map, const char *key, const struct sl_shape *shape, void *object,
		      const struct sl_model *model)
{
	const msgpack_object *part = sl_object_get(map, key);

	if (part)
		sl_shape_read(part, shape, object, model);
}

static const char *read_process(struct sl_process *process, const msgpack_object *map)
{
	struct sl_image_lines lines = {0};
	struct sl_image_slots slots = {0};
	struct sl_trace *trace = process->trace;
	struct sl_model *model = process->model = sl_replay_blank(&trace->header, &trace->defs);

	if (!trace->header.known || !trace->name)
		return "a process without a header";
	read_part(map, "timeline", &sl_shape_lines, &lines, model);
	give_lines(&model->timeline, &lines);
	read_part(map, "model", &sl_shape_model, model, model);
	read_part(map, "devices", &sl_shape_slots, &slots, model);
	give_slots(model, &slots);
	give_origin(process, &slots);
	give_ids(&trace->defs, &slots);
	free_slots(&slots);
	read_part(map, "process", &sl_shape_process, process, model);
	return sl_check_process(process);
}

static void drop(struct sl_process *process)
{
	sl_process_free(process);
	*process = (struct sl_process){0};
}

bool sl_summary_open(struct sl_process *process, const struct sl_image *image, struct sl_damage *damage)
{
	struct sl_summary_part part;
	const char *why = NULL;

	if (!sl_summaries_read(&part, image, damage))
		return false;
	if (sl_object_get(&part.map, "trace")) {
		process->trace = sl_trace_blank();
		process->trace->disk_bytes = image->bytes;
		sl_pool_allow(image->bytes);
		sl_pool_refused();
		read_part(&part.map, "trace", &sl_shape_trace, process->trace, NULL);
		why = read_process(process, &part.map);
	} else {
		read_part(&part.map, "damage", &sl_shape_damage, damage, NULL);
	}
	sl_summaries_close(&part);
	if (process->trace && sl_pool_refused())
		sl_damage_add(why ? damage : &process->trace->damage, image->summary, (int64_t)image->offset, SL_TRACE_FULL,
			      (unsigned long long)sl_pool_megabytes());
	if (why) {
		sl_damage_add(damage, image->summary, (int64_t)image->offset, "%s", why);
		drop(process);
	}
	return process->trace != NULL;
}
