/* SPDX-License-Identifier: MIT */
/*
 * Stream-ordered pools. A pool takes whole steps from its device (reserved) and gives parts of them out (taken). What
 * a stream has freed stays taken until a synchronisation, but the same stream may reuse it at once. The bytes in use are
 * exact and in the stream's order, as those of an H200. At each synchronisation the pool shrinks to its release threshold.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PTSZ(stream) ((stream) ? (stream) : (void *)2)

struct location {
	int type, id;
};
struct pool_props {
	int alloc_type, handle_types;
	struct location location;
	void *security;
	size_t max_size;
	unsigned short usage;
	unsigned char reserved[54];
};
struct shared_pool { /* sent through a file descriptor */
	char magic[8];
	int device, host;
};
struct shared_pointer { /* CUmemPoolPtrExportData: 64 bytes of ours */
	char magic[8];
	uint64_t address, bytes;
	int pid;
	char pad[36];
};
_Static_assert(sizeof(struct shared_pointer) == 64, "as large as the vendor's");

static struct sim_pool *defaults[SIM_MAX_DEVICES], *current[SIM_MAX_DEVICES];

static uint64_t charge_of(uint64_t bytes)
{
	return sim_round_up(bytes, 512);
}

static int va_device(const struct sim_pool *pool)
{
	return pool->device < 0 ? 0 : pool->device;
}

static struct sim_pool *new_pool(int device)
{
	struct sim_pool *pool = sim_object_new(sizeof *pool, SIM_T_POOL, NULL);
	if (pool)
		pool->device = device;
	return pool;
}

struct sim_pool *sim_pool_default(int device)
{
	if (!defaults[device] && (defaults[device] = new_pool(device)))
		defaults[device]->is_default = true;
	return defaults[device];
}

struct sim_pool *sim_pool_current(int device)
{
	return current[device] ? current[device] : sim_pool_default(device);
}

/* Gives back what is neither used nor to be kept. */
void sim_pool_shrink(struct sim_pool *pool, uint64_t keep)
{
	uint64_t taken = sim_round_up(pool->taken, sim_config.granularity);
	uint64_t floor = keep > taken ? keep : taken;
	if (floor >= pool->reserved)
		return;
	uint64_t give = (pool->reserved - floor) / sim_config.granularity * sim_config.granularity;
	if (pool->device >= 0)
		sim_device_give(pool->device, give);
	pool->reserved -= give;
}

static void bury(struct sim_pool *pool)
{
	sim_pool_shrink(pool, 0);
	sim_object_remove(&pool->object);
	free(pool);
}

void sim_pool_settle(struct sim_pool *pool, struct sim_pending *p)
{
	pool->taken -= charge_of(p->bytes);
	pool->blocks--;
	sim_va_give(va_device(pool), p->address, p->bytes);
	sim_pool_shrink(pool, pool->doomed ? 0 : pool->threshold);
	if (pool->doomed && !pool->blocks)
		bury(pool);
}

static void shrink_one(struct sim_object *object, void *unused)
{
	sim_pool_shrink((struct sim_pool *)object, 0);
}

static int grow(struct sim_pool *pool, uint64_t charge)
{
	uint64_t needed = pool->taken + charge;
	uint64_t more = sim_round_up(needed - pool->reserved, sim_config.pool_step);
	if (pool->max_size && pool->reserved + more > pool->max_size)
		return SIM_OUT_OF_MEMORY;
	int error = pool->device < 0 ? SIM_OK : sim_device_take(pool->device, more);
	if (error) { /* as the driver does: wait for pending frees, empty the caches, try again */
		sim_stream_complete_all(NULL);
		sim_object_each(SIM_T_POOL, shrink_one, NULL);
		needed = pool->taken + charge;
		if (needed <= pool->reserved)
			return SIM_OK;
		more = sim_round_up(needed - pool->reserved, sim_config.granularity);
		error = sim_device_take(pool->device, more);
	}
	if (!error)
		pool->reserved += more;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	return error;
}

/* Reuses, at the same address, a block that this stream freed and that no synchronisation has settled. */
static uint64_t reuse_pending(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes)
{
	for (struct sim_pending **link = &stream->pending; *link; link = &(*link)->next) {
		struct sim_pending *p = *link;
		if (p->pool != pool || charge_of(p->bytes) != charge_of(bytes))
			continue;
		uint64_t address = p->address;
		*link = p->next;
		free(p);
		return address;
	}
	return 0;
}

int sim_pool_alloc(struct sim_call *call, struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes, uint64_t *out)
{
	call->device = pool->device;
	if (!bytes || !out || pool->doomed)
		return SIM_INVALID_VALUE;
	if (stream->capture)
		return sim_graph_capture_alloc(call, stream->capture, pool->device, bytes, out);
	uint64_t address = reuse_pending(pool, stream, bytes);
	if (!address) {
		uint64_t charge = charge_of(bytes);
		int error = charge < bytes			     ? SIM_OUT_OF_MEMORY
			    : pool->taken + charge <= pool->reserved ? SIM_OK
								     : grow(pool, charge);
		if (error)
			return error;
		address = sim_va_take(va_device(pool), bytes);
		if (!address)
			return SIM_OUT_OF_MEMORY;
		pool->taken += charge;
		pool->blocks++;
	}
	call->ctx = stream->object.ctx;
	struct sim_block *block = sim_block_add(call, SIM_KIND_POOL, pool->device, address, bytes);
	if (!block)
		return SIM_OUT_OF_MEMORY;
	block->pool = pool;
	pool->used += bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	call->other = (uintptr_t)pool;
	*out = call->address = address;
	return SIM_OK;
}

/* Without a stream (cuMemFree) the free is complete at once. */
int sim_pool_free(struct sim_call *call, struct sim_block *block, struct sim_stream *stream)
{
	struct sim_pending *p = stream ? malloc(sizeof *p) : NULL;
	if (!p) {
		sim_block_drop(block, call, SIM_EFFECT_FREE);
		return SIM_OK;
	}
	*p = (struct sim_pending){
		.pool = block->pool, .address = block->object.key, .bytes = block->bytes, .next = stream->pending};
	stream->pending = p;
	block->pool->used -= block->bytes;
	block->pool = NULL; /* settled by the stream */
	sim_block_drop(block, call, SIM_EFFECT_FREE);
	return SIM_OK;
}

static int alloc_async(struct sim_call *call, uint64_t *out, size_t bytes, void *pool_handle, void *stream_handle)
{
	struct sim_stream *stream = sim_stream_of(call, stream_handle);
	if (!stream)
		return SIM_INVALID_HANDLE;
	struct sim_pool *pool =
		pool_handle ? sim_object_get((uintptr_t)pool_handle, SIM_T_POOL) : sim_pool_current(stream->object.ctx->device);
	if (stream->capture)
		call->kind = SIM_KIND_GRAPH;
	return pool ? sim_pool_alloc(call, pool, stream, bytes, out) : SIM_INVALID_VALUE;
}

#define ALLOC_ASYNC .out = {SIM_OUT(out)}, .bytes = bytes, .kind = SIM_KIND_POOL

int cuMemAllocAsync(uint64_t *out, size_t bytes, void *stream)
{
	SIM_BEGIN(cuMemAllocAsync, ALLOC, ALLOC_ASYNC);
	SIM_RETURN(alloc_async(&call, out, bytes, NULL, stream));
}

int cuMemAllocAsync_ptsz(uint64_t *out, size_t bytes, void *stream)
{
	SIM_BEGIN(cuMemAllocAsync_ptsz, ALLOC, ALLOC_ASYNC);
	SIM_RETURN(alloc_async(&call, out, bytes, NULL, PTSZ(stream)));
}

int cuMemAllocFromPoolAsync(uint64_t *out, size_t bytes, void *pool, void *stream)
{
	SIM_BEGIN(cuMemAllocFromPoolAsync, ALLOC, ALLOC_ASYNC);
	SIM_RETURN(pool ? alloc_async(&call, out, bytes, pool, stream) : SIM_INVALID_VALUE);
}

int cuMemAllocFromPoolAsync_ptsz(uint64_t *out, size_t bytes, void *pool, void *stream)
{
	SIM_BEGIN(cuMemAllocFromPoolAsync_ptsz, ALLOC, ALLOC_ASYNC);
	SIM_RETURN(pool ? alloc_async(&call, out, bytes, pool, PTSZ(stream)) : SIM_INVALID_VALUE);
}

static int free_async(struct sim_call *call, uint64_t address, void *handle)
{
	struct sim_stream *stream = sim_stream_of(call, handle);
	struct sim_block *block = sim_object_get(address, SIM_T_BLOCK);
	if (!stream)
		return SIM_INVALID_HANDLE;
	if (stream->capture)
		return sim_graph_capture_free(call, stream->capture, address);
	if (!block || block->object.key != address)
		return SIM_INVALID_VALUE;
	call->kind = block->kind;
	call->device = block->device;
	call->bytes = block->bytes;
	return block->kind == SIM_KIND_POOL ? sim_pool_free(call, block, stream) : sim_free_device(call, address);
}

int cuMemFreeAsync(uint64_t address, void *stream)
{
	SIM_BEGIN(cuMemFreeAsync, FREE, .address = address, .kind = SIM_KIND_POOL);
	SIM_RETURN(free_async(&call, address, stream));
}

int cuMemFreeAsync_ptsz(uint64_t address, void *stream)
{
	SIM_BEGIN(cuMemFreeAsync_ptsz, FREE, .address = address, .kind = SIM_KIND_POOL);
	SIM_RETURN(free_async(&call, address, PTSZ(stream)));
}

int cuMemPoolCreate(void **out, const struct pool_props *props)
{
	SIM_BEGIN(cuMemPoolCreate, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	if (!out || !props || props->location.type < 1 || props->location.type > 4)
		SIM_RETURN(SIM_INVALID_VALUE);
	bool host = props->location.type != 1;
	if (!host && sim_device_physical(props->location.id) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	struct sim_pool *pool = new_pool(host ? -1 : props->location.id);
	if (!pool)
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	pool->max_size = props->max_size;
	pool->handle_types = props->handle_types;
	call.device = pool->device;
	call.other = (uintptr_t)pool;
	*out = pool;
	SIM_RETURN(SIM_OK);
}

/* The pool is removed when its last block is freed, at once if it has none. */
int cuMemPoolDestroy(void *handle)
{
	SIM_BEGIN(cuMemPoolDestroy, OTHER, .other = (uintptr_t)handle, .needs = 1);
	struct sim_pool *pool = sim_object_get((uintptr_t)handle, SIM_T_POOL);
	if (!pool || pool->is_default || pool->doomed)
		SIM_RETURN(SIM_INVALID_VALUE);
	for (int d = 0; d < SIM_MAX_DEVICES; d++)
		if (current[d] == pool)
			current[d] = NULL;
	pool->doomed = true;
	if (!pool->blocks)
		bury(pool);
	SIM_RETURN(SIM_OK);
}

int cuMemPoolTrimTo(void *handle, size_t keep)
{
	SIM_BEGIN(cuMemPoolTrimTo, OTHER, .other = (uintptr_t)handle, .bytes = keep, .needs = 1);
	struct sim_pool *pool = sim_object_get((uintptr_t)handle, SIM_T_POOL);
	if (!pool)
		SIM_RETURN(SIM_INVALID_VALUE);
	sim_pool_shrink(pool, keep);
	SIM_RETURN(SIM_OK);
}

static uint64_t *wide_attribute(struct sim_pool *pool, int which)
{
	switch (which) {
	case 4:
		return &pool->threshold;
	case 5:
		return &pool->reserved;
	case 6:
		return &pool->reserved_high;
	case 7:
		return &pool->used;
	case 8:
		return &pool->used_high;
	}
	return NULL;
}

int cuMemPoolGetAttribute(void *handle, int which, void *value)
{
	SIM_BEGIN(cuMemPoolGetAttribute, QUIET, .needs = 1);
	struct sim_pool *pool = sim_object_get((uintptr_t)handle, SIM_T_POOL);
	if (!pool || !value || which < 1 || which > 8)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (which <= 3)
		*(int *)value = pool->flags[which - 1];
	else
		*(uint64_t *)value = *wide_attribute(pool, which);
	SIM_RETURN(SIM_OK);
}

int cuMemPoolSetAttribute(void *handle, int which, void *value)
{
	SIM_BEGIN(cuMemPoolSetAttribute, OTHER, .other = (uintptr_t)handle, .address = which, .needs = 1);
	struct sim_pool *pool = sim_object_get((uintptr_t)handle, SIM_T_POOL);
	if (!pool || !value || which < 1 || which > 8 || which == 5 || which == 7)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (which <= 3) {
		pool->flags[which - 1] = *(int *)value;
	} else if (which == 4) {
		pool->threshold = *(uint64_t *)value;
		call.bytes = pool->threshold;
	} else { /* a high-water mark can only be reset */
		if (*(uint64_t *)value)
			SIM_RETURN(SIM_INVALID_VALUE);
		*wide_attribute(pool, which) = *wide_attribute(pool, which - 1);
	}
	SIM_RETURN(SIM_OK);
}

static int get_pool(int device, void **out, struct sim_pool *(*which)(int))
{
	if (!out)
		return SIM_INVALID_VALUE;
	if (sim_device_physical(device) < 0)
		return SIM_INVALID_DEVICE;
	*out = which(device);
	return SIM_OK;
}

int cuDeviceGetDefaultMemPool(void **out, int device)
{
	SIM_BEGIN(cuDeviceGetDefaultMemPool, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(get_pool(device, out, sim_pool_default));
}

int cuDeviceGetMemPool(void **out, int device)
{
	SIM_BEGIN(cuDeviceGetMemPool, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(get_pool(device, out, sim_pool_current));
}

int cuDeviceSetMemPool(int device, void *handle)
{
	SIM_BEGIN(cuDeviceSetMemPool, OTHER, .device = device, .other = (uintptr_t)handle, .needs = 1);
	struct sim_pool *pool = sim_object_get((uintptr_t)handle, SIM_T_POOL);
	if (!pool || sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_VALUE);
	current[device] = pool;
	SIM_RETURN(SIM_OK);
}

int cuMemGetDefaultMemPool(void **out, const struct location *at, int type)
{
	SIM_BEGIN(cuMemGetDefaultMemPool, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(at && at->type == 1 ? get_pool(at->id, out, sim_pool_default) : SIM_INVALID_VALUE);
}

int cuMemGetMemPool(void **out, const struct location *at, int type)
{
	SIM_BEGIN(cuMemGetMemPool, QUIET, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(at && at->type == 1 ? get_pool(at->id, out, sim_pool_current) : SIM_INVALID_VALUE);
}

int cuMemSetMemPool(const struct location *at, int type, void *handle)
{
	SIM_BEGIN(cuMemSetMemPool, OTHER, .other = (uintptr_t)handle, .needs = 1);
	struct sim_pool *pool = sim_object_get((uintptr_t)handle, SIM_T_POOL);
	if (!at || at->type != 1 || !pool || sim_device_physical(at->id) < 0)
		SIM_RETURN(SIM_INVALID_VALUE);
	current[at->id] = pool;
	SIM_RETURN(SIM_OK);
}

int cuMemPoolSetAccess(void *handle, const void *descriptors, size_t count)
{
	SIM_BEGIN(cuMemPoolSetAccess, OTHER, .other = (uintptr_t)handle, .needs = 1);
	SIM_RETURN(sim_object_get((uintptr_t)handle, SIM_T_POOL) ? SIM_OK : SIM_INVALID_VALUE);
}

int cuMemPoolExportToShareableHandle(void *out, void *handle, int type, unsigned long long flags)
{
	SIM_BEGIN(cuMemPoolExportToShareableHandle, OTHER, .other = (uintptr_t)handle, .needs = 1);
	struct sim_pool *pool = sim_object_get((uintptr_t)handle, SIM_T_POOL);
	if (!pool || !out || type != 1 || !(pool->handle_types & 1))
		SIM_RETURN(SIM_INVALID_VALUE);
	struct shared_pool shared = {.magic = "SIMPOOL", .device = pool->device, .host = pool->device < 0};
	int fd = memfd_create("sim-pool", MFD_CLOEXEC);
	if (fd < 0 || write(fd, &shared, sizeof shared) != sizeof shared)
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	*(int *)out = fd;
	SIM_RETURN(SIM_OK);
}

int cuMemPoolImportFromShareableHandle(void **out, void *handle, int type, unsigned long long flags)
{
	SIM_BEGIN(cuMemPoolImportFromShareableHandle, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	struct shared_pool shared;
	if (!out || type != 1 || pread((int)(intptr_t)handle, &shared, sizeof shared, 0) != sizeof shared ||
	    memcmp(shared.magic, "SIMPOOL", 8))
		SIM_RETURN(SIM_INVALID_VALUE);
	struct sim_pool *pool = new_pool(shared.device);
	if (!pool)
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	pool->imported = true;
	call.other = (uintptr_t)pool;
	*out = pool;
	SIM_RETURN(SIM_OK);
}

int cuMemPoolExportPointer(struct shared_pointer *out, uint64_t address)
{
	SIM_BEGIN(cuMemPoolExportPointer, OTHER, .address = address, .out = {SIM_OUT(out)}, .needs = 1);
	struct sim_block *block = sim_object_get(address, SIM_T_BLOCK);
	if (!out || !block || block->kind != SIM_KIND_POOL)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = (struct shared_pointer){.magic = "SIMPPTR", .address = address, .bytes = block->bytes, .pid = getpid()};
	SIM_RETURN(SIM_OK);
}

int cuMemPoolImportPointer(uint64_t *out, void *handle, const struct shared_pointer *data)
{
	SIM_BEGIN(cuMemPoolImportPointer, ALLOC, .kind = SIM_KIND_IMPORTED, .out = {SIM_OUT(out)}, .needs = 1);
	struct sim_pool *pool = sim_object_get((uintptr_t)handle, SIM_T_POOL);
	if (!out || !pool || !pool->imported || !data || memcmp(data->magic, "SIMPPTR", 8))
		SIM_RETURN(SIM_INVALID_VALUE);
	uint64_t address = sim_va_take(va_device(pool), data->bytes);
	call.device = pool->device;
	call.bytes = data->bytes;
	if (!address || !sim_block_add(&call, SIM_KIND_IMPORTED, va_device(pool), address, data->bytes))
		SIM_RETURN(SIM_OUT_OF_MEMORY);
	*out = call.address = address;
	SIM_RETURN(SIM_OK);
}
