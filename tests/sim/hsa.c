/* SPDX-License-Identifier: MIT */
/*
 * The simulated libhsa-runtime64.so.1: the level below HIP, where AMD's memory comes from. It holds the same devices and
 * bookkeeping as libcuda.so.1, so HIP behaves as CUDA does unless a comment says otherwise.
 */
#include "sim.h"

#include <string.h>

/* Pool handles, as hsa_amd_memory_pool_t.handle: which memory, and of which device. */
enum { POOL_DEVICE = 0x100, POOL_FINE_HOST = 0x200, POOL_MANAGED = 0x300, POOL_MASK = 0xf00 };
enum { HSA_ERROR = 0x1000, HSA_INVALID_ARGUMENT = 0x1001, HSA_INVALID_ALLOCATION = 0x1003, HSA_OUT_OF_RESOURCES = 0x1008 };

static int hsa_status(int error)
{
	switch (error) {
	case SIM_OK:
		return 0;
	case SIM_OUT_OF_MEMORY:
		return HSA_OUT_OF_RESOURCES;
	case SIM_INVALID_VALUE:
		return HSA_INVALID_ARGUMENT;
	}
	return HSA_ERROR;
}

/* After the last hsa_shut_down the same handles name pools of other devices. */
static _Atomic int begun, turn;

static int device_of(uint64_t pool)
{
	return (int)((pool & 0xff) + (unsigned)turn) % sim_device_count();
}

static uint64_t pool_on(uint64_t memory, uint64_t device)
{
	return memory | (device + (unsigned)(sim_device_count() - turn)) % (unsigned)sim_device_count();
}

int hsa_amd_memory_pool_allocate(uint64_t pool, size_t bytes, uint32_t flags, void **out)
{
	SIM_BEGIN(hsa_amd_memory_pool_allocate, ALLOC, .out = {SIM_OUT(out)}, .bytes = bytes, .needs = 2);
	int device = device_of(pool);
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

/* ---- agents: the host, then a GPU each; a region is a pool by an older name ---- */

enum { AGENT_HOST = 0x10, AGENT_GPU = 0x20, AGENT_INFO_DEVICE = 17 };

int hsa_iterate_agents(int (*visit)(uint64_t agent, void *data), void *data)
{
	int status = visit(AGENT_HOST, data);
	for (int i = 0; !status && i < sim_device_count(); i++)
		status = visit(AGENT_GPU | (uint64_t)i, data);
	return status;
}

int hsa_agent_get_info(uint64_t agent, int attribute, void *value)
{
	if (attribute != AGENT_INFO_DEVICE || !value)
		return HSA_INVALID_ARGUMENT;
	*(int *)value = agent != AGENT_HOST; /* CPU, GPU */
	return 0;
}

int hsa_amd_agent_iterate_memory_pools(uint64_t agent, int (*visit)(uint64_t pool, void *data), void *data)
{
	int status;
	if (agent == AGENT_HOST)
		return visit(POOL_FINE_HOST, data);
	status = visit(pool_on(POOL_DEVICE, agent & 0xf), data);
	return status ? status : visit(pool_on(POOL_MANAGED, agent & 0xf), data);
}

int hsa_agent_iterate_regions(uint64_t agent, int (*visit)(uint64_t region, void *data), void *data)
{
	return hsa_amd_agent_iterate_memory_pools(agent, visit, data);
}

/* ---- calls that CUDA has by another name ---- */

int cuInit(unsigned flags);
int cuMemCreate(uint64_t *out, size_t bytes, const void *prop, unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemRetainAllocationHandle(uint64_t *out, void *address);
int cuMemGetAllocationPropertiesFromHandle(void *out, uint64_t handle);
int cuMemAddressReserve(uint64_t *out, size_t bytes, size_t alignment, uint64_t wish, unsigned long long flags);
int cuMemAddressFree(uint64_t address, size_t bytes);
int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemUnmap(uint64_t address, size_t bytes);
int cuMemSetAccess(uint64_t address, size_t bytes, const void *descriptors, size_t count);
int cuMemExportToShareableHandle(void *out, uint64_t handle, int type, unsigned long long flags);
int cuMemImportFromShareableHandle(uint64_t *out, void *from, int type);
int cuPointerGetAttribute(void *data, int which, uint64_t address);
struct ipc_handle { /* CUipcMemHandle, as ipc.c fills it */
	char magic[8];
	unsigned char what[32], rest[24]; /* what fits into HSA's 32 bytes */
};
int cuIpcGetMemHandle(struct ipc_handle *out, uint64_t address);
int cuIpcOpenMemHandle_v2(uint64_t *out, struct ipc_handle handle, unsigned flags);
int cuIpcCloseMemHandle(uint64_t address);

struct memory_prop { /* CUmemAllocationProp */
	int type, handle_types;
	struct {
		int type, id;
	} location;
	void *windows;
	unsigned char flags[8];
};

static int begin(struct sim_call *call)
{
	sim_call_open(call);
	return call->result ? call->result : cuInit(0);
}

#define HSA(fn, api_verb, params, expression, ...)                                                                                 \
	int fn params                                                                                                              \
	{                                                                                                                          \
		static struct sim_api api = {.name = #fn, .verb = SIM_##api_verb, .level = SIM_DRIVER};                            \
		struct sim_call call = {.api = &api, .device = -1, __VA_ARGS__};                                                   \
		int error = begin(&call);                                                                                          \
		return sim_call_close(&call, hsa_status(error ? error : (expression)));                                            \
	}

static int make(uint64_t *out, uint64_t pool, size_t bytes)
{
	struct memory_prop prop = {.type = 1, .location = {(pool & POOL_MASK) == POOL_DEVICE ? 1 : 2, device_of(pool)}};
	return cuMemCreate(out, bytes, &prop, 0);
}

static int pool_of(uint64_t handle, uint64_t *pool, int *type)
{
	struct memory_prop prop;
	int error = cuMemGetAllocationPropertiesFromHandle(&prop, handle);
	if (error)
		return error;
	*pool = prop.location.type == 1 ? pool_on(POOL_DEVICE, (uint64_t)prop.location.id) : POOL_FINE_HOST;
	*type = prop.type;
	return SIM_OK;
}

static int export(void *out, uint64_t address)
{
	struct ipc_handle handle;
	int error = cuIpcGetMemHandle(&handle, address);
	if (!error)
		memcpy(out, handle.what, sizeof handle.what);
	return error;
}

static int attach(const void *from, uint64_t *out)
{
	struct ipc_handle handle = {.magic = "SIMIPC"};
	memcpy(handle.what, from, sizeof handle.what);
	return cuIpcOpenMemHandle_v2(out, handle, 0);
}

struct pointer_info {
	uint32_t size;
	int type;
	uint64_t agent_base, host_base, bytes;
	void *user;
	uint64_t owner;
	uint32_t flags;
};

static int info_of(uint64_t address, struct pointer_info *out)
{
	int device = -1, error = cuPointerGetAttribute(&device, 9, address);
	if (!error)
		out->owner = device < 0 ? AGENT_HOST : AGENT_GPU | (uint64_t)device;
	return error;
}

HSA(hsa_amd_ipc_memory_create, OTHER, (uint64_t address, size_t bytes, void *out), export(out, address), .address = address)
HSA(hsa_amd_ipc_memory_attach, ALLOC, (const void *from, size_t bytes, uint32_t count, const void *agents, uint64_t *out),
    attach(from, out), .bytes = bytes, .kind = SIM_KIND_IMPORTED, .out = {SIM_OUT(out)})
HSA(hsa_amd_ipc_memory_detach, FREE, (uint64_t address), cuIpcCloseMemHandle(address), .kind = SIM_KIND_IMPORTED,
    .address = address)
HSA(hsa_amd_pointer_info, QUIET, (uint64_t address, struct pointer_info *out, void *alloc, uint32_t *count, void *agents),
    info_of(address, out), .kind = 0)
HSA(hsa_memory_allocate, ALLOC, (uint64_t region, size_t bytes, void **out),
    hsa_amd_memory_pool_allocate(region, bytes, 0, out) ? SIM_OUT_OF_MEMORY : SIM_OK, .bytes = bytes, .kind = SIM_KIND_DEVICE,
    .out = {SIM_OUT(out)})
HSA(hsa_memory_free, FREE, (void *p), hsa_amd_memory_pool_free(p) ? SIM_INVALID_VALUE : SIM_OK, .address = (uintptr_t)p)
HSA(hsa_amd_vmem_handle_create, ALLOC, (uint64_t pool, size_t bytes, int type, uint64_t flags, uint64_t *out),
    make(out, pool, bytes), .bytes = bytes, .kind = SIM_KIND_VMM, .out = {SIM_OUT(out)})
HSA(hsa_amd_vmem_handle_release, FREE, (uint64_t handle), cuMemRelease(handle), .kind = SIM_KIND_VMM, .address = handle)
HSA(hsa_amd_vmem_retain_alloc_handle, OTHER, (uint64_t * out, void *at), cuMemRetainAllocationHandle(out, at),
    .out = {SIM_OUT(out)})
HSA(hsa_amd_vmem_get_alloc_properties_from_handle, QUIET, (uint64_t handle, uint64_t *pool, int *type), pool_of(handle, pool, type),
    .kind = 0)
HSA(hsa_amd_vmem_address_reserve, OTHER, (uint64_t * out, size_t bytes, uint64_t wish, uint64_t flags),
    cuMemAddressReserve(out, bytes, 0, wish, flags), .bytes = bytes, .out = {SIM_OUT(out)})
HSA(hsa_amd_vmem_address_reserve_align, OTHER, (uint64_t * out, size_t bytes, uint64_t wish, uint64_t alignment, uint64_t flags),
    cuMemAddressReserve(out, bytes, alignment, wish, flags), .bytes = bytes, .out = {SIM_OUT(out)})
HSA(hsa_amd_vmem_address_free, OTHER, (uint64_t at, size_t bytes), cuMemAddressFree(at, bytes), .bytes = bytes)
HSA(hsa_amd_vmem_map, OTHER, (uint64_t at, size_t bytes, size_t offset, uint64_t handle, uint64_t flags),
    cuMemMap(at, bytes, offset, handle, flags), .bytes = bytes)
HSA(hsa_amd_vmem_unmap, OTHER, (uint64_t at, size_t bytes), cuMemUnmap(at, bytes), .bytes = bytes)
HSA(hsa_amd_vmem_set_access, OTHER, (uint64_t at, size_t bytes, const void *access, size_t count),
    cuMemSetAccess(at, bytes, access, count), .bytes = bytes)
HSA(hsa_amd_vmem_export_shareable_handle, OTHER, (int *fd, uint64_t handle, uint64_t flags),
    cuMemExportToShareableHandle(fd, handle, 1, flags), .kind = 0)
HSA(hsa_amd_vmem_import_shareable_handle, ALLOC, (int fd, uint64_t *out),
    cuMemImportFromShareableHandle(out, (void *)(intptr_t)fd, 1), .kind = SIM_KIND_IMPORTED, .out = {SIM_OUT(out)})

int hsa_init(void)
{
	sim_process_check();
	if (!sim_device_count())
		return HSA_ERROR;
	begun++;
	return 0;
}

int hsa_shut_down(void)
{
	if (!begun)
		return HSA_ERROR;
	if (!--begun)
		turn = (turn + 1) % sim_device_count();
	return 0;
}

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);

/* For hip.c only: finds the shared bookkeeping by its CUDA names. */
void *sim_hsa_lookup(const char *name, int version, uint64_t flags)
{
	void *function = NULL;
	int status = 0;
	return cuGetProcAddress_v2(name, &function, version, flags, &status) ? NULL : function;
}
