/* SPDX-License-Identifier: MIT */
/*
 * Allocators of frameworks other than PyTorch, such as ggml's buffers and XLA's pool.  They report the blocks they hand out but
 * not the segments they hold.  So a driver-level block becomes a segment when such a block is in it, or when what the pool
 * says it holds grew by the same size.
 */

#include "analyzer/model/replay/replay.h"

#define GROWN_MAX 8 /* segments of one growth; JAX made four at once on an H200 */

/* True: a mapping.  The memory of cuMemCreate has a handle, and addresses only through mappings. */
static bool is_mapping(const struct sl_model *model, const struct sl_live *live)
{
	return model->sites.item[live->site].kind == SL_KIND_vmm;
}

static void adopt(struct sl_model *model, struct sl_device_state *device, struct sl_live *live)
{
	live->flags |= SL_LIVE_TORCH | SL_LIVE_POOL;
	if (is_mapping(model, live))
		sl_vmm_pooled(model, live);
	else
		live->site = sl_ledger_pooled(model, live->site, live->bytes, live->time_ns);
	device->torch.pool_reserved_bytes += live->bytes;
	if (live->bytes > device->torch.pool_most_bytes) {
		device->torch.pool_most_bytes = live->bytes;
		device->torch.pool_site = live->site + 1;
	}
}

/* True: device memory, allocated or mapped as a whole, as pools use it. */
static bool is_memory(const struct sl_model *model, const struct sl_live *live)
{
	return live->site != SL_NO_SITE && sl_model_is_on_device(&model->sites.item[live->site]) &&
	       (!is_mapping(model, live) || sl_vmm_is_whole(model->vmm, live));
}

/* A segment, or memory that may become one. */
static struct sl_live *memory_at(struct sl_model *model, uint64_t address)
{
	struct sl_table *spaces[] = {&model->pointers, sl_vmm_mappings(model->vmm)};

	for (size_t i = 0; i < SL_COUNT(spaces); i++) {
		struct sl_live *live = sl_table_around(spaces[i], address);

		if (live && (live->flags & SL_LIVE_POOL || is_memory(model, live)))
			return live;
	}
	return NULL;
}

/* True: the block is on this device and no segment yet. */
static bool is_free_for(const struct sl_model *model, const struct sl_device_state *device, const struct sl_live *live)
{
	return is_memory(model, live) && model->sites.item[live->site].device == device->device && !(live->flags & SL_LIVE_TORCH);
}

int sl_pools_device(struct sl_model *model, uint64_t address)
{
	const struct sl_live *live = memory_at(model, address);

	return live ? model->sites.item[live->site].device : -1;
}

unsigned sl_pools_place(struct sl_model *model, struct sl_device_state *device, uint64_t address)
{
	struct sl_live *live;

	if (device->device < 0 || !device->known)
		return SL_LIVE_POOL | SL_LIVE_ALONE;
	live = memory_at(model, address);
	if (live && live->flags & SL_LIVE_POOL)
		return SL_LIVE_POOL;
	if (!live || !is_free_for(model, device, live))
		return 0;
	adopt(model, device, live);
	return SL_LIVE_POOL;
}

/* The largest block of at most `bytes`. */
static struct sl_live *next_fitting(struct sl_model *model, struct sl_device_state *device, uint64_t bytes)
{
	const struct sl_table *spaces[] = {&model->pointers, sl_vmm_mappings(model->vmm)};
	struct sl_live *best = NULL;

	if (!sl_ledger_may_look(model, spaces[0]->mask + spaces[1]->mask))
		return NULL;
	for (size_t i = 0; i < SL_COUNT(spaces); i++)
		SL_TABLE_EACH(spaces[i], live)
	if (live->bytes <= bytes && (!best || live->bytes > best->bytes) && is_free_for(model, device, live))
		best = live;
	return best;
}

void sl_pools_told(struct sl_model *model, struct sl_device_state *device, uint64_t held)
{
	uint64_t reserved = device->torch.pool_reserved_bytes, left = held > reserved ? held - reserved : 0;
	struct sl_live *grown[GROWN_MAX];
	unsigned count = 0;

	while (left && count < GROWN_MAX && (grown[count] = next_fitting(model, device, left))) {
		grown[count]->flags |= SL_LIVE_TORCH; /* it is taken */
		left -= grown[count++]->bytes;
	}
	/* blocks that do not add up to the growth are not taken: two pools may have grown */
	for (unsigned i = 0; i < count; i++)
		if (left)
			grown[i]->flags &= ~(unsigned)SL_LIVE_TORCH;
		else
			adopt(model, device, grown[i]);
}

void sl_pools_drop(struct sl_model *model, uint64_t address, uint64_t bytes)
{
	struct sl_extent range = {address, bytes};

	for (const struct sl_live *live; (live = sl_table_next(&model->blocks, &range));)
		if (live->flags & SL_LIVE_POOL)
			sl_torch_end(model, live->address);
}

void sl_pools_release(struct sl_model *model, struct sl_device_state *device, const struct sl_live *segment)
{
	sl_pools_drop(model, segment->address, segment->bytes);
	device->torch.pool_reserved_bytes -= segment->bytes;
}
