/* SPDX-License-Identifier: MIT */
/* Blocks of memory behind every API: device, managed, pinned and registered. */
#include "sim.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t pinned_bytes, next_id = 1;

static void drop_with_context(struct sim_object *object, struct sim_call *call)
{
	sim_block_drop((struct sim_block *)object, call, SIM_EFFECT_IMPLICIT);
}

struct sim_block *sim_block_add(struct sim_call *call, enum sim_kind kind, int device, uint64_t address, uint64_t bytes)
{
	struct sim_block *block = calloc(1, sizeof *block);
	if (!block)
		return NULL;
	block->object = (struct sim_object){
		.key = address, .span = bytes ? bytes : 1, .type = SIM_T_BLOCK, .ctx = call->ctx, .drop = drop_with_context};
	block->kind = kind;
	block->device = device;
	block->bytes = bytes;
	block->id = next_id++;
	sim_object_insert(&block->object);
	sim_journal_effect(call, SIM_EFFECT_ALLOC, kind, device, address, bytes);
	return block;
}

/* Frees a block of any kind. If `pool` is NULL, its stream gives back the pool memory later. */
void sim_block_drop(struct sim_block *block, struct sim_call *call, enum sim_effect effect)
{
	uint64_t address = block->object.key;
	sim_journal_effect(call, effect, block->kind, block->device, address, block->bytes);
	sim_object_remove(&block->object);
	if (block->charge)
		sim_device_discharge(block->device, block->charge);
	if (block->kind == SIM_KIND_DEVICE)
		sim_va_give(block->device, address, block->bytes);
	if (block->kind == SIM_KIND_POOL && block->pool) {
		block->pool->used -= block->bytes;
		sim_pool_settle(block->pool, &(struct sim_pending){.pool = block->pool, .address = address, .bytes = block->bytes});
	}
	if (block->kind == SIM_KIND_GRAPH)
		sim_graph_block_gone(block);
	if (block->kind == SIM_KIND_HOST_PINNED)
		pinned_bytes -= block->bytes;
	if (block->host)
		munmap(block->host, sim_round_up(block->bytes, 4096));
	if (block->file)
		unlink(block->file);
	free(block->file);
	free(block);
}

int sim_alloc_device(struct sim_call *call, int device, struct sim_ctx *ctx, uint64_t bytes, uint64_t *address)
{
	uint64_t charge;
	if (!bytes || !address)
		return SIM_INVALID_VALUE;
	int error = sim_device_charge(device, bytes, &charge);
	if (error)
		return error;
	uint64_t at = sim_va_take(device, bytes);
	struct sim_block *block = at ? sim_block_add(call, SIM_KIND_DEVICE, device, at, bytes) : NULL;
	if (!block) {
		sim_device_discharge(device, charge);
		return SIM_OUT_OF_MEMORY;
	}
	block->charge = charge;
	*address = at;
	return SIM_OK;
}

static void *map_host(uint64_t bytes)
{
	void *p = mmap(NULL, sim_round_up(bytes, 4096), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Managed memory is host memory until a kernel touches it, and no kernel runs here. */
int sim_alloc_managed(struct sim_call *call, int device, struct sim_ctx *ctx, uint64_t bytes, uint64_t *address)
{
	if (!bytes || !address)
		return SIM_INVALID_VALUE;
	void *p = map_host(bytes);
	struct sim_block *block = p ? sim_block_add(call, SIM_KIND_MANAGED, device, (uintptr_t)p, bytes) : NULL;
	if (!block)
		return SIM_OUT_OF_MEMORY;
	block->host = p;
	*address = (uintptr_t)p;
	return SIM_OK;
}

int sim_alloc_host(struct sim_call *call, struct sim_ctx *ctx, uint64_t bytes, uint32_t flags, void **out)
{
	if (!bytes || !out)
		return SIM_INVALID_VALUE;
	if (bytes > sim_config.pinned_limit || pinned_bytes > sim_config.pinned_limit - bytes)
		return SIM_OUT_OF_MEMORY;
	void *p = map_host(bytes);
	struct sim_block *block = p ? sim_block_add(call, SIM_KIND_HOST_PINNED, -1, (uintptr_t)p, bytes) : NULL;
	if (!block)
		return SIM_OUT_OF_MEMORY;
	pinned_bytes += bytes;
	block->host = p;
	block->flags = flags;
	*out = p;
	return SIM_OK;
}

/* cuMemFree: frees memory of any kind that a device pointer can name. */
int sim_free_device(struct sim_call *call, uint64_t address)
{
	struct sim_block *block = sim_object_get(address, SIM_T_BLOCK);
	if (!address)
		return SIM_OK;
	if (!block || block->object.key != address)
		return SIM_INVALID_VALUE;
	call->bytes = block->bytes;
	call->kind = block->kind;
	call->device = block->device;
	switch (block->kind) {
	case SIM_KIND_HOST_PINNED:
	case SIM_KIND_HOST_REGISTERED:
		return SIM_INVALID_VALUE;
	case SIM_KIND_IMPORTED:
		if (block->references)
			return SIM_INVALID_VALUE; /* opened by IPC: only closing helps */
		sim_va_give(block->device, address, block->bytes);
		break;
	case SIM_KIND_POOL:
		return sim_pool_free(call, block, NULL);
	case SIM_KIND_GRAPH:
		return sim_graph_free_block(call, block);
	default:
		break;
	}
	sim_block_drop(block, call, SIM_EFFECT_FREE);
	return SIM_OK;
}

int sim_free_host(struct sim_call *call, uint64_t address)
{
	struct sim_block *block = sim_object_get(address, SIM_T_BLOCK);
	if (!block || block->object.key != address || block->kind != SIM_KIND_HOST_PINNED)
		return SIM_INVALID_VALUE;
	call->bytes = block->bytes;
	sim_block_drop(block, call, SIM_EFFECT_FREE);
	return SIM_OK;
}

int sim_register_host(struct sim_call *call, struct sim_ctx *ctx, void *p, uint64_t bytes, uint32_t flags)
{
	if (!p || !bytes)
		return SIM_INVALID_VALUE;
	struct sim_object probe = {.key = (uintptr_t)p, .span = bytes};
	for (uint64_t at = probe.key; at < probe.key + bytes; at += 4096)
		if (sim_object_get(at, SIM_T_BLOCK))
			return SIM_ALREADY_REGISTERED;
	if (sim_object_get(probe.key + bytes - 1, SIM_T_BLOCK))
		return SIM_ALREADY_REGISTERED;
	struct sim_block *block = sim_block_add(call, SIM_KIND_HOST_REGISTERED, -1, probe.key, bytes);
	if (!block)
		return SIM_OUT_OF_MEMORY;
	block->flags = flags;
	return SIM_OK;
}

int sim_unregister_host(struct sim_call *call, void *p)
{
	struct sim_block *block = sim_object_get((uintptr_t)p, SIM_T_BLOCK);
	if (!block || block->object.key != (uintptr_t)p || block->kind != SIM_KIND_HOST_REGISTERED)
		return p ? SIM_NOT_REGISTERED : SIM_INVALID_VALUE;
	call->bytes = block->bytes;
	sim_block_drop(block, call, SIM_EFFECT_FREE);
	return SIM_OK;
}
