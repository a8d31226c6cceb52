/* SPDX-License-Identifier: MIT */
/* The driver's plain memory calls: device, pitched, managed, pinned, registered, and what can be asked about them. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	SIM_BEGIN(cuMemAlloc_v2, ALLOC, .out = {SIM_OUT(address)}, .bytes = bytes, .kind = SIM_KIND_DEVICE);
	call.device = call.ctx->device;
	int error = sim_alloc_device(&call, call.device, call.ctx, bytes, address);
	call.address = error ? 0 : *address;
	SIM_RETURN(error);
}

int cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	SIM_BEGIN(cuMemAllocPitch_v2, ALLOC, .out = {SIM_OUT(address), SIM_OUT(pitch)}, .bytes = width * height,
		  .kind = SIM_KIND_DEVICE);
	call.device = call.ctx->device;
	if (!pitch || (element != 4 && element != 8 && element != 16))
		SIM_RETURN(SIM_INVALID_VALUE);
	uint64_t row = sim_round_up(width, 512);
	int error = sim_alloc_device(&call, call.device, call.ctx, row * height, address);
	if (error)
		SIM_RETURN(error);
	*pitch = row;
	call.bytes = row * height;
	call.address = *address;
	SIM_RETURN(SIM_OK);
}

int cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned flags)
{
	SIM_BEGIN(cuMemAllocManaged, ALLOC, .out = {SIM_OUT(address)}, .bytes = bytes, .kind = SIM_KIND_MANAGED);
	call.device = call.ctx->device;
	if (flags != 1 && flags != 2)
		SIM_RETURN(SIM_INVALID_VALUE);
	int error = sim_alloc_managed(&call, call.device, call.ctx, bytes, address);
	call.address = error ? 0 : *address;
	SIM_RETURN(error);
}

int cuMemFree_v2(uint64_t address)
{
	SIM_BEGIN(cuMemFree_v2, FREE, .address = address, .needs = 1);
	if (address && sim_ctx_check_current(&call.ctx))
		SIM_RETURN(SIM_INVALID_CONTEXT);
	SIM_RETURN(sim_free_device(&call, address));
}

int cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
	SIM_BEGIN(cuMemHostAlloc, ALLOC, .out = {SIM_OUT(p)}, .bytes = bytes, .kind = SIM_KIND_HOST_PINNED);
	int error = sim_alloc_host(&call, call.ctx, bytes, flags, p);
	call.address = error ? 0 : (uintptr_t)*p;
	SIM_RETURN(error);
}

int cuMemAllocHost_v2(void **p, size_t bytes)
{
	SIM_BEGIN(cuMemAllocHost_v2, ALLOC, .out = {SIM_OUT(p)}, .bytes = bytes, .kind = SIM_KIND_HOST_PINNED);
	int error = sim_alloc_host(&call, call.ctx, bytes, 0, p);
	call.address = error ? 0 : (uintptr_t)*p;
	SIM_RETURN(error);
}

int cuMemFreeHost(void *p)
{
	SIM_BEGIN(cuMemFreeHost, FREE, .address = (uintptr_t)p, .kind = SIM_KIND_HOST_PINNED);
	SIM_RETURN(p ? sim_free_host(&call, (uintptr_t)p) : SIM_INVALID_VALUE);
}

int cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
	SIM_BEGIN(cuMemHostRegister_v2, ALLOC, .address = (uintptr_t)p, .bytes = bytes, .kind = SIM_KIND_HOST_REGISTERED);
	SIM_RETURN(sim_register_host(&call, call.ctx, p, bytes, flags));
}

int cuMemHostRegister(void *p, size_t bytes, unsigned flags)
{
	SIM_BEGIN(cuMemHostRegister, ALLOC, .address = (uintptr_t)p, .bytes = bytes, .kind = SIM_KIND_HOST_REGISTERED);
	SIM_RETURN(sim_register_host(&call, call.ctx, p, bytes, flags));
}

int cuMemHostUnregister(void *p)
{
	SIM_BEGIN(cuMemHostUnregister, FREE, .address = (uintptr_t)p, .kind = SIM_KIND_HOST_REGISTERED);
	SIM_RETURN(sim_unregister_host(&call, p));
}

int cuMemHostGetDevicePointer_v2(uint64_t *address, void *p, unsigned flags)
{
	SIM_BEGIN(cuMemHostGetDevicePointer_v2, QUIET, .out = {SIM_OUT(address)});
	if (!address || !sim_object_get((uintptr_t)p, SIM_T_BLOCK))
		SIM_RETURN(SIM_INVALID_VALUE);
	*address = (uintptr_t)p;
	SIM_RETURN(SIM_OK);
}

int cuMemHostGetFlags(unsigned *flags, void *p)
{
	SIM_BEGIN(cuMemHostGetFlags, QUIET, .out = {SIM_OUT(flags)});
	struct sim_block *block = sim_object_get((uintptr_t)p, SIM_T_BLOCK);
	if (!flags || !block || block->device >= 0)
		SIM_RETURN(SIM_INVALID_VALUE);
	*flags = block->flags;
	SIM_RETURN(SIM_OK);
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	SIM_BEGIN(cuMemGetInfo_v2, QUIET, .out = {SIM_OUT(free_bytes), SIM_OUT(total)});
	uint64_t f, t;
	sim_device_stir(sim_device_physical(call.ctx->device));
	sim_device_info(sim_device_physical(call.ctx->device), &f, &t);
	if (free_bytes)
		*free_bytes = f;
	if (total)
		*total = t;
	SIM_RETURN(SIM_OK);
}

/* The range around an address: a block, or a mapping of virtual memory. */
static bool range_of(uint64_t address, uint64_t *base, uint64_t *bytes)
{
	struct sim_object *object = sim_object_get(address, SIM_T_ANY);
	if (!object || (object->type != SIM_T_BLOCK && object->type != SIM_T_MAPPING))
		return false;
	*base = object->key;
	*bytes = object->span;
	return true;
}

int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t address)
{
	SIM_BEGIN(cuMemGetAddressRange_v2, QUIET, .out = {SIM_OUT(base), SIM_OUT(bytes)});
	uint64_t b, n;
	if (!range_of(address, &b, &n))
		SIM_RETURN(SIM_NOT_FOUND);
	if (base)
		*base = b;
	if (bytes)
		*bytes = n;
	SIM_RETURN(SIM_OK);
}

static int mapping_device(uint64_t address)
{
	struct sim_object *mapping = sim_object_get(address, SIM_T_MAPPING);
	return mapping ? sim_mapping_device(mapping) : -2;
}

/* Attribute numbers are CUpointer_attribute's. */
static int attribute(void *data, int which, uint64_t address)
{
	uint64_t base = 0, bytes = 0;
	bool known = range_of(address, &base, &bytes);
	struct sim_block *block = sim_object_get(address, SIM_T_BLOCK);
	bool host = block && block->device < 0;
	switch (which) {
	case 1:
		*(void **)data = block ? block->object.ctx : NULL;
		break;
	case 2:
		*(unsigned *)data = !known ? 0 : host ? 1 : 2;
		break;
	case 3:
		*(uint64_t *)data = address;
		break;
	case 4:
		if (!host && !(block && block->kind == SIM_KIND_MANAGED))
			return SIM_INVALID_VALUE;
		*(uint64_t *)data = address;
		break;
	case 7:
		*(uint64_t *)data = block ? block->id : 0;
		break;
	case 8:
		*(unsigned *)data = block && block->kind == SIM_KIND_MANAGED;
		break;
	case 9:
		*(int *)data = !known ? -2 : block ? (host ? 0 : block->device) : mapping_device(address);
		break;
	case 10:
		*(int *)data = block && block->kind == SIM_KIND_DEVICE;
		break;
	case 11:
		*(uint64_t *)data = base;
		break;
	case 12:
		*(uint64_t *)data = bytes;
		break;
	case 13:
		*(int *)data = known;
		break;
	case 17:
		*(void **)data = block ? block->pool : NULL;
		break;
	case 18:
		*(uint64_t *)data = bytes;
		break;
	case 19:
		*(uint64_t *)data = base;
		break;
	case 20:
		*(uint64_t *)data = block ? block->id : 0;
		break;
	default:
		return SIM_INVALID_VALUE;
	}
	return known ? SIM_OK : SIM_INVALID_VALUE;
}

int cuPointerGetAttribute(void *data, int which, uint64_t address)
{
	SIM_BEGIN(cuPointerGetAttribute, QUIET, .needs = 1);
	SIM_RETURN(data ? attribute(data, which, address) : SIM_INVALID_VALUE);
}

/* Unknown addresses are no error here. */
int cuPointerGetAttributes(unsigned count, const int *which, void **data, uint64_t address)
{
	SIM_BEGIN(cuPointerGetAttributes, QUIET, .needs = 1);
	if (!count || !which || !data)
		SIM_RETURN(SIM_INVALID_VALUE);
	for (unsigned i = 0; i < count; i++)
		attribute(data[i], which[i], address);
	SIM_RETURN(SIM_OK);
}
