/* SPDX-License-Identifier: MIT */
/*
 * Allocators of frameworks other than PyTorch, such as ggml's buffers and XLA's pool.  They report the blocks they hand out but
 * not the segments they hold.  So a driver-level block becomes a segment when such a block lies in it, or when what the pool
 * says it holds grew by the same size.
 */
#include <string.h>

#include "analyzer/model/verbs.h"

/* The first segment that ends after `address`. */
static size_t segment_at(const struct sl_model *model, uint64_t address)
{
	return sl_extent_at(model->pool_segments.item, model->pool_segments.count, sizeof(*model->pool_segments.item), address);
}

static bool lies_in(uint64_t address, uint64_t begin, uint64_t bytes)
{
	return address - begin < bytes;
}

static bool in_segment(const struct sl_model *model, uint64_t address)
{
	size_t at = segment_at(model, address);

	return at < model->pool_segments.count &&
	       lies_in(address, model->pool_segments.item[at].address, model->pool_segments.item[at].bytes);
}

/* cuMemCreate returns a handle: its memory has addresses only through its mappings. */
static bool is_mapping(const struct sl_model *model, const struct sl_live *live)
{
	return model->sites.item[live->site].kind == SL_KIND_vmm;
}

static void adopt(struct sl_model *model, struct sl_device_state *device, struct sl_live *live)
{
	size_t at = segment_at(model, live->address);

	live->flags |= SL_LIVE_TORCH | SL_LIVE_POOL;
	if (is_mapping(model, live))
		sl_vmm_pooled(model, live);
	else
		live->site = sl_ledger_pooled(model, live->site, live->bytes, live->time_ns);
	device->torch.pool_reserved_bytes += live->bytes;
	SL_ROOM(&model->pool_segments);
	memmove(&model->pool_segments.item[at + 1], &model->pool_segments.item[at],
		(model->pool_segments.count - at) * sizeof(*model->pool_segments.item));
	model->pool_segments.item[at] = (struct sl_pool_segment){live->address, live->bytes, device->device};
	model->pool_segments.count++;
}

/* Device memory, allocated or mapped as a whole: pools are made of it. */
static bool is_memory(const struct sl_model *model, const struct sl_live *live)
{
	return live->site != SL_NO_SITE && sl_model_is_on_device(&model->sites.item[live->site]) &&
	       (!is_mapping(model, live) || sl_vmm_is_whole(model->vmm, live));
}

static struct sl_live *memory_at(const struct sl_model *model, uint64_t address)
{
	const struct sl_table *spaces[] = {&model->pointers, sl_vmm_mappings(model->vmm)};

	for (size_t i = 0; i < SL_COUNT(spaces); i++)
		SL_TABLE_EACH(spaces[i], live)
	if (lies_in(address, live->address, live->bytes) && is_memory(model, live))
		return live;
	return NULL;
}

/* True: the block is on this device and no segment yet. */
static bool is_free_for(const struct sl_model *model, const struct sl_device_state *device, const struct sl_live *live)
{
	return is_memory(model, live) && model->sites.item[live->site].device == device->device && !(live->flags & SL_LIVE_TORCH);
}

int sl_pools_device(const struct sl_model *model, uint64_t address)
{
	const struct sl_live *live;

	if (in_segment(model, address))
		return model->pool_segments.item[segment_at(model, address)].device;
	live = memory_at(model, address);
	return live ? model->sites.item[live->site].device : -1;
}

unsigned sl_pools_place(struct sl_model *model, struct sl_device_state *device, uint64_t address)
{
	struct sl_live *live;

	if (device->device < 0 || !device->known)
		return SL_LIVE_POOL | SL_LIVE_ALONE;
	if (in_segment(model, address))
		return SL_LIVE_POOL;
	live = memory_at(model, address);
	if (!live || !is_free_for(model, device, live))
		return 0;
	adopt(model, device, live);
	return SL_LIVE_POOL;
}

/* The largest block of at most `bytes` that is not `last`. */
static struct sl_live *next_fitting(struct sl_model *model, struct sl_device_state *device, uint64_t bytes,
				    const struct sl_live *last)
{
	const struct sl_table *spaces[] = {&model->pointers, sl_vmm_mappings(model->vmm)};
	struct sl_live *best = NULL;

	for (size_t i = 0; i < SL_COUNT(spaces); i++)
		SL_TABLE_EACH(spaces[i], live)
	if (live->bytes <= bytes && live != last && (!best || live->bytes > best->bytes) && is_free_for(model, device, live))
		best = live;
	return best;
}

void sl_pools_told(struct sl_model *model, struct sl_device_state *device, uint64_t held)
{
	uint64_t reserved = device->torch.pool_reserved_bytes;
	struct sl_live *live;

	if (held <= reserved || !(live = next_fitting(model, device, held - reserved, NULL)))
		return;
	/* Two may have grown since; blocks that do not add up to the growth are not taken. */
	if (live->bytes == held - reserved) {
		adopt(model, device, live);
	} else {
		struct sl_live *second = next_fitting(model, device, held - reserved - live->bytes, live);

		if (second && second->bytes == held - reserved - live->bytes) {
			adopt(model, device, live);
			adopt(model, device, second);
		}
	}
}

void sl_pools_drop(struct sl_model *model, uint64_t address, uint64_t bytes)
{
	SL_VECTOR(uint64_t) gone = {0}; /* removing shifts entries, so addresses are collected first */

	SL_TABLE_EACH(&model->blocks, live)
	if (live->flags & SL_LIVE_POOL && lies_in(live->address, address, bytes))
		*SL_PUSH(&gone) = live->address;
	for (size_t i = 0; i < gone.count; i++)
		sl_torch_end(model, gone.item[i]);
	free(gone.item);
}

void sl_pools_release(struct sl_model *model, struct sl_device_state *device, const struct sl_live *segment)
{
	size_t at = segment_at(model, segment->address);

	sl_pools_drop(model, segment->address, segment->bytes);
	device->torch.pool_reserved_bytes -= segment->bytes;
	/* In a damaged trace blocks may overlap; then there is no order by their ends. */
	if (at == model->pool_segments.count || model->pool_segments.item[at].address != segment->address)
		for (at = 0; at < model->pool_segments.count && model->pool_segments.item[at].address != segment->address;)
			at++;
	if (at == model->pool_segments.count)
		return;
	memmove(&model->pool_segments.item[at], &model->pool_segments.item[at + 1],
		(model->pool_segments.count - at - 1) * sizeof(*model->pool_segments.item));
	model->pool_segments.count--;
}
