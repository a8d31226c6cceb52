/* SPDX-License-Identifier: MIT */
/*
 * The simulated libhsa-runtime64.so.1: the level below HIP, where AMD's memory comes from. It holds the same devices and
 * bookkeeping as libcuda.so.1, so HIP behaves as CUDA does wherever nothing is said.
 */
#include "sim.h"

#include <string.h>

/* Pool handles, as hsa_amd_memory_pool_t.handle: which memory, and of which device. */
enum { POOL_DEVICE = 0x100, POOL_FINE_HOST = 0x200, POOL_MANAGED = 0x300, POOL_MASK = 0xf00 };
enum { HSA_ERROR = 0x1000, HSA_INVALID_ARGUMENT = 0x1001, HSA_INVALID_ALLOCATION = 0x1003, HSA_OUT_OF_RESOURCES = 0x1008 };

static int hsa_status(int error)
{
	switch (error) {
	case SIM_OK: return 0;
	case SIM_OUT_OF_MEMORY: return HSA_OUT_OF_RESOURCES;
	case SIM_INVALID_VALUE: return HSA_INVALID_ARGUMENT;
	}
	return HSA_ERROR;
}

int hsa_amd_memory_pool_allocate(uint64_t pool, size_t bytes, uint32_t flags, void **out)
{
	SIM_BEGIN(hsa_amd_memory_pool_allocate, ALLOC, .out = {SIM_OUT(out)}, .bytes = bytes, .needs = 2);
	int device = pool & 0xff;
	uint64_t address = 0;
	int error = SIM_INVALID_VALUE;
	call.ctx = sim_ctx_current();
	switch (pool & POOL_MASK) {
	case POOL_DEVICE:
		call.kind = SIM_KIND_DEVICE;
		call.device = device;
		error = sim_alloc_device(&call, device, call.ctx, bytes, &address);
		break;
	case POOL_MANAGED:
		call.kind = SIM_KIND_MANAGED;
		call.device = device;
		error = sim_alloc_managed(&call, device, call.ctx, bytes, &address);
		break;
	case POOL_FINE_HOST:
		call.kind = SIM_KIND_HOST_PINNED;
		error = sim_alloc_host(&call, call.ctx, bytes, flags, (void **)&address);
		break;
	}
	if (!error)
		*out = (void *)address;
	call.address = address;
	SIM_RETURN(hsa_status(error));
}

int hsa_amd_memory_pool_free(void *p)
{
	SIM_BEGIN(hsa_amd_memory_pool_free, FREE, .address = (uintptr_t)p, .needs = 2);
	int error = sim_free_device(&call, (uintptr_t)p);
	if (error)
		error = sim_free_host(&call, (uintptr_t)p);
	SIM_RETURN(error ? HSA_INVALID_ALLOCATION : 0);
}

/* HSA_AMD_MEMORY_POOL_INFO_LOCATION: 0 on the host, 1 on a GPU. */
int hsa_amd_memory_pool_get_info(uint64_t pool, int attribute, void *value)
{
	if (attribute != 17 || !value)
		return HSA_INVALID_ARGUMENT;
	*(int *)value = (pool & POOL_MASK) == POOL_DEVICE;
	return 0;
}

int hsa_init(void)
{
	sim_process_check();
	return sim_device_count() ? 0 : HSA_ERROR;
}

int hsa_shut_down(void)
{
	return 0;
}

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);

/* For hip.c alone: the bookkeeping below, by the names CUDA has for it. */
void *sim_hsa_lookup(const char *name, int version, uint64_t flags)
{
	void *function = NULL;
	int status = 0;
	return cuGetProcAddress_v2(name, &function, version, flags, &status) ? NULL : function;
}
