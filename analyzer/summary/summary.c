/* SPDX-License-Identifier: MIT */
#include "analyzer/summary/summary.h"

#include <zstd.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/pool.h"
#include "analyzer/base/compress.h"
#include "analyzer/model/replay/replay.h"

#define LEVEL	  (-1)	      /* half the time of 1, and a sixth more bytes */
#define HELD_MOST (64u << 20) /* a quarter of what any run may have kept */
#define HELD_FEW  (1u << 20)  /* where processes have nothing in common: filling an empty pool takes longer than what is in it */

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

static void take_slots(struct sl_image_slots *image, const struct sl_process *process)
{
	const struct sl_model *model = process->model;
	const struct sl_defs *defs = &process->trace->defs;

	for (uint32_t d = 0; d <= SL_DEVICES_MAX; d++)
		if (model->devices[d] || model->rows[d])
			*SL_PUSH(&image->slots) = (struct sl_image_slot){.slot = d,
									 .rows = model->rows[d],
									 .row_count = model->rows[d] ? SL_KIND_COUNT : 0,
									 .state = model->devices[d],
									 .state_count = model->devices[d] != NULL};
	image->apis = model->apis;
	image->api_count = model->header->hook_count + 1;
	IDS(image, defs, text_ids, texts);
	IDS(image, defs, native_ids, natives);
	IDS(image, defs, thread_ids, threads);
}

static void free_slots(struct sl_image_slots *image)
{
	free(image->slots.item);
	free(image->text_ids.item);
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

static void put_process(msgpack_sbuffer *out, const struct sl_process *process)
{
	struct sl_image_lines lines = {0};
	struct sl_image_slots slots = {0};
	struct sl_trace own = *process->trace; /* without what is common */

	own.header.hook_count = 0;
	own.header.hooks = NULL;
	own.defs.frames.count = own.defs.files.count = own.defs.pythons.count = 0;
	take_lines(&lines, &process->model->timeline);
	take_slots(&slots, process);
	put_part(out, "trace", &sl_shape_trace, &own, process->model);
	put_part(out, "timeline", &sl_shape_lines, &lines, process->model);
	put_part(out, "model", &sl_shape_model, process->model, process->model);
	put_part(out, "devices", &sl_shape_slots, &slots, process->model);
	put_part(out, "process", &sl_shape_process, process, process->model);
	free(lines.lines.item);
	free_slots(&slots);
}

static void begin_map(msgpack_sbuffer *out, size_t members, const char *def)
{
	msgpack_packer pk;

	msgpack_sbuffer_init(out);
	msgpack_packer_init(&pk, out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, members);
	put_key(out, "def");
	put_key(out, def);
}

static void *end_map(msgpack_sbuffer *out, size_t *size)
{
	void *packed = sl_memory_must(malloc(ZSTD_compressBound(out->size)));

	*size = sl_compress(packed, ZSTD_compressBound(out->size), out->data, out->size, LEVEL);
	msgpack_sbuffer_destroy(out);
	return sl_memory_must(realloc(packed, *size)); /* kept until all ranks are there */
}

void sl_summary_begin(struct sl_summary_commons *commons)
{
	*commons = (struct sl_summary_commons){.lock = PTHREAD_MUTEX_INITIALIZER, .frames = sl_pool_new()};
	sl_pool_enter();
}

void sl_summary_next(struct sl_summary_commons *commons)
{
	pthread_mutex_lock(&commons->lock);
	if (sl_pool_held() > (commons->differed ? HELD_FEW : HELD_MOST)) {
		commons->last = NULL;
		commons->differed = false;
		sl_pool_leave();
		sl_pool_enter();
	}
	pthread_mutex_unlock(&commons->lock);
}

void sl_summary_end(struct sl_summary_commons *commons)
{
	sl_pool_leave();
	sl_pool_free(commons->frames);
	pthread_mutex_destroy(&commons->lock);
}

/* Equal frames have one address.  With the lock; the caller's bytes are freed. */
static const void *keep_frame(struct sl_summary_commons *commons, void *bytes, size_t size)
{
	const void *stored;

	sl_pool_use(commons->frames);
	stored = sl_pool_keep(bytes, size);
	sl_pool_use(NULL);
	free(bytes);
	return stored;
}

static void *pack_common(const struct sl_trace *trace, size_t *size)
{
	const struct sl_defs *defs = &trace->defs;
	struct sl_image_common common = {.hooks = trace->header.hooks, .hook_count = trace->header.hook_count};
	msgpack_sbuffer out;

	memcpy(&common.frames, &defs->frames, sizeof(common.frames));
	memcpy(&common.files, &defs->files, sizeof(common.files));
	memcpy(&common.pythons, &defs->pythons, sizeof(common.pythons));
	IDS(&common, defs, frame_ids, frames);
	IDS(&common, defs, python_ids, pythons);
	begin_map(&out, 2, "common");
	put_part(&out, "common", &sl_shape_common, &common, NULL);
	free(common.frame_ids.item);
	free(common.python_ids.item);
	return end_map(&out, size);
}

/* Two processes of one key have the same in common: equal texts, lists and tables have one address in the pool. */
static void take_key(uint64_t *key, const struct sl_trace *trace)
{
	const struct sl_defs *defs = &trace->defs;
	const uint64_t own[] = {(uintptr_t)trace->header.hooks,
				trace->header.hook_count,
				(uintptr_t)defs->frames.item,
				defs->frames.count,
				(uintptr_t)defs->pythons.item,
				defs->pythons.count,
				(uintptr_t)(defs->files.count
						    ? sl_pool_keep(defs->files.item, defs->files.count * sizeof(*defs->files.item))
						    : NULL),
				defs->files.count,
				(uintptr_t)defs->frame_ids.slot,
				defs->frame_ids.mask,
				defs->frame_ids.count,
				defs->frame_ids.first,
				(uintptr_t)defs->python_ids.slot,
				defs->python_ids.mask,
				defs->python_ids.count,
				defs->python_ids.first};

	memcpy(key, own, sizeof(own));
}

static void find_common(struct sl_summary_frame *frame, struct sl_summary_commons *commons, const struct sl_trace *trace)
{
	uint64_t key[SL_COUNT(commons->key)];
	void *packed;

	take_key(key, trace);
	pthread_mutex_lock(&commons->lock);
	if (!commons->last || memcmp(key, commons->key, sizeof(key))) {
		commons->differed = commons->last != NULL;
		packed = pack_common(trace, &commons->size);
		commons->last = keep_frame(commons, packed, commons->size);
		memcpy(commons->key, key, sizeof(key));
	}
	frame->common = commons->last;
	frame->common_size = commons->size;
	pthread_mutex_unlock(&commons->lock);
}

void sl_summary_pack(struct sl_summary_frame *frame, struct sl_summary_commons *commons, const struct sl_process *process,
		     const struct sl_damage *damage)
{
	msgpack_sbuffer out;

	begin_map(&out, process->trace ? 6 : 2, "process");
	if (process->trace) {
		put_process(&out, process);
		find_common(frame, commons, process->trace);
	} else {
		put_part(&out, "damage", &sl_shape_damage, damage, NULL);
	}
	frame->bytes = end_map(&out, &frame->size);
}

void sl_summary_copy(struct sl_summary_frame *frame, struct sl_summary_commons *commons, const struct sl_image *image,
		     struct sl_damage *damage)
{
	struct sl_common *common = image->common;
	void *bytes;

	frame->size = image->bytes;
	frame->bytes = sl_summaries_frame(image, damage);
	if (!common)
		return;
	pthread_mutex_lock(&commons->lock);
	if (!common->frame && (bytes = sl_summaries_frame(&common->at, damage)))
		common->frame = keep_frame(commons, bytes, common->at.bytes);
	frame->common = common->frame;
	frame->common_size = common->at.bytes;
	pthread_mutex_unlock(&commons->lock);
	if (frame->common)
		return;
	free(frame->bytes);
	frame->bytes = NULL;
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

static void give_ids(struct sl_defs *defs, const struct sl_image_slots *ids)
{
	set_ids(&defs->text_ids, ids->text_ids.item, ids->text_ids.count, defs->texts.count);
	set_ids(&defs->native_ids, ids->native_ids.item, ids->native_ids.count, defs->natives.count);
	set_ids(&defs->thread_ids, ids->thread_ids.item, ids->thread_ids.count, defs->threads.count);
	for (size_t i = 0; i < defs->named.count; i++)
		sl_idmap_set(&defs->named_ids, defs->named.item[i].pc, (uint32_t)i);
}

static void give_common(struct sl_trace *trace, struct sl_image_common *common)
{
	struct sl_defs *defs = &trace->defs;

	trace->header.hooks = common->hooks;
	trace->header.hook_count = common->hook_count;
	memcpy(&defs->frames, &common->frames, sizeof(defs->frames));
	memcpy(&defs->files, &common->files, sizeof(defs->files));
	memcpy(&defs->pythons, &common->pythons, sizeof(defs->pythons));
	set_ids(&defs->frame_ids, common->frame_ids.item, common->frame_ids.count, defs->frames.count);
	set_ids(&defs->python_ids, common->python_ids.item, common->python_ids.count, defs->pythons.count);
	free(common->frame_ids.item);
	free(common->python_ids.item);
	sl_defs_share(defs);
}

static void read_part(const msgpack_object *map, const char *key, const struct sl_shape *shape, void *object,
		      const struct sl_model *model)
{
	const msgpack_object *part = sl_object_get(map, key);

	if (part)
		sl_shape_read(part, shape, object, model);
}

static void read_common(struct sl_common *common)
{
	struct sl_image_common image = {0};
	struct sl_damage unsaid = {0}; /* each process says that it lacks this */
	struct sl_summary_part part;

	common->trace = sl_trace_blank();
	sl_pool_allow(common->at.bytes);
	sl_pool_refused();
	if (sl_summaries_read(&part, &common->at, &unsaid)) {
		read_part(&part.map, "common", &sl_shape_common, &image, NULL);
		give_common(common->trace, &image);
		sl_summaries_close(&part);
		common->sound = true;
	}
	common->full = sl_pool_refused();
	sl_damage_free(&unsaid);
}

static bool is_sound(struct sl_common *common)
{
	pthread_mutex_lock(&common->lock);
	if (!common->trace)
		read_common(common);
	pthread_mutex_unlock(&common->lock);
	return common->sound;
}

/* A process that has a common lacks entries of its own of this kind; entries that a stranger wrote there are dropped. */
static void take_common(struct sl_trace *trace, const struct sl_common *common)
{
	const struct sl_defs *from = &common->trace->defs;
	struct sl_defs *defs = &trace->defs;

	free(defs->frames.item);
	free(defs->pythons.item);
	defs->files.count = 0;
	trace->header.hooks = common->trace->header.hooks;
	trace->header.hook_count = common->trace->header.hook_count;
	defs->frames = from->frames;
	defs->pythons = from->pythons;
	defs->frame_ids = from->frame_ids;
	defs->python_ids = from->python_ids;
	for (size_t i = 0; i < from->files.count; i++)
		*SL_PUSH(&defs->files) = from->files.item[i];
	defs->shared = true;
}

static const char *read_process(struct sl_process *process, const msgpack_object *map)
{
	struct sl_image_lines lines = {0};
	struct sl_image_slots slots = {0};
	struct sl_trace *trace = process->trace;
	struct sl_model *model = process->model = sl_replay_blank(&trace->header, &trace->defs);

	if (!trace->header.is_known || !trace->name)
		return "a process without a header";
	read_part(map, "timeline", &sl_shape_lines, &lines, model);
	give_lines(&model->timeline, &lines);
	read_part(map, "model", &sl_shape_model, model, model);
	read_part(map, "devices", &sl_shape_slots, &slots, model);
	give_slots(model, &slots);
	give_ids(&trace->defs, &slots);
	free_slots(&slots);
	read_part(map, "process", &sl_shape_process, process, model);
	return sl_summary_check(process);
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
		if (image->common && !is_sound(image->common))
			why = "the part that the process shares with others does not open";
		sl_pool_refused();
		read_part(&part.map, "trace", &sl_shape_trace, process->trace, NULL);
		if (image->common && !why)
			take_common(process->trace, image->common);
		why = why ? why : read_process(process, &part.map);
	} else {
		read_part(&part.map, "damage", &sl_shape_damage, damage, NULL);
	}
	sl_summaries_close(&part);
	if (process->trace && (sl_pool_refused() || (image->common && image->common->full)))
		sl_damage_add(why ? damage : &process->trace->damage, image->summary, (int64_t)image->offset, SL_TRACE_FULL,
			      (unsigned long long)sl_pool_megabytes());
	if (why) {
		sl_damage_add(damage, image->summary, (int64_t)image->offset, "%s", why);
		drop(process);
	}
	return process->trace != NULL;
}
