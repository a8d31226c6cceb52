/* SPDX-License-Identifier: MIT */
/* The words that rows may use for their fields, and what fills them.  Only hooks.c and tools/attach/rows.c expand them. */
#pragma once

#include "agent/hooks/parts.h"

/* A pointer or handle as a number. */
#define ADDR(handle) ((uint64_t)(uintptr_t)(handle))

/* The value that the call wrote through `pointer`.  It is read only after success; NULL outputs are allowed. */
#define OUT(pointer) (done && (pointer) ? ADDR(*(pointer)) : 0)

/* Bytes of a pitched allocation of `height` rows: with the pitch that the call returned, or `width` where it failed. */
#define PITCHED(pitch, width, height) ((uint64_t)(done && (pitch) ? *(pitch) : (width)) * (height))

/* A memory location as device ordinal + 1; host locations have no device. */
#define DEVICE_OF(where)                                                                                                           \
	((where).type == SL_LOCATION_DEVICE ? (where).id + 1 : (where).type > SL_LOCATION_DEVICE ? SL_NO_DEVICE : 0)

/* Remembers the device of the pool that the call returned: later allocations name only the pool. */
#define POOL(pool, device) .address = sl_fields_pool(OUT(pool), device), .device_plus_one = (device)
uint64_t sl_fields_pool(uint64_t pool, int device_plus_one);

/* Pool attributes before the release threshold are int, later ones 64 bits. */
#define POOL_VALUE(attribute, value)                                                                                               \
	(!(value) ? 0 : (int)(attribute) >= 4 ? *(const uint64_t *)(value) : (uint64_t) * (const int *)(value))

/* A graph node added by a parameter structure: memory nodes are the row's second meaning, others the row itself. */
#define GRAPH_NODE(row, graph_, node)                                                                                              \
	.object = ADDR(graph_),                                                                                                    \
	.api = !(node)				     ? 0                                                                           \
	       : (node)->type == SL_GRAPH_NODE_ALLOC ? SL_API_##row##_alloc                                                        \
	       : (node)->type == SL_GRAPH_NODE_FREE  ? SL_API_##row##_free                                                         \
						     : 0,                                                                           \
	.kind = (node) && ((node)->type == SL_GRAPH_NODE_ALLOC || (node)->type == SL_GRAPH_NODE_FREE) ? SL_KIND_graph              \
												      : SL_KIND_none,              \
	.address = !(node)					 ? 0                                                               \
		   : (node)->type == SL_GRAPH_NODE_ALLOC && done ? ADDR((node)->alloc.dptr)                                        \
		   : (node)->type == SL_GRAPH_NODE_FREE		 ? ADDR((node)->free.dptr)                                         \
								 : 0,                                                                       \
	.bytes = (node) && (node)->type == SL_GRAPH_NODE_ALLOC ? (node)->alloc.bytesize : 0,                                       \
	.device_plus_one = (node) && (node)->type == SL_GRAPH_NODE_ALLOC ? DEVICE_OF((node)->alloc.poolProps.location) : 0

/* The resources of an UNMAP call: the first for the row, the others for its ALSO row. */
#define RESOURCES(count, resources)                                                                                                \
	.object = (count) > 0 && (resources) ? ADDR(*(resources)) : 0,                                                             \
	.extra = (count) > 0 && (resources) ? (uint64_t)(count) : 0, .more = (void *const *)(resources)

/* Bytes of an array by its descriptor, an estimate for some formats (doc/coverage.md); NULL: 0. */
uint64_t sl_fields_array_v1(const CUDA_ARRAY_DESCRIPTOR_v1 *array);
uint64_t sl_fields_array(const CUDA_ARRAY_DESCRIPTOR *array);
uint64_t sl_fields_array3d_v1(const CUDA_ARRAY3D_DESCRIPTOR_v1 *array);
uint64_t sl_fields_array3d(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels);
uint64_t sl_fields_channels(const struct cudaChannelFormatDesc *format, size_t width, size_t height, size_t depth, unsigned flags,
			    unsigned levels);
uint64_t sl_fields_hip_channels(const struct hipChannelFormatDesc *format, size_t width, size_t height, size_t depth,
				unsigned flags, unsigned levels);

/*
 * Where a pool or region of HSA lies: device, host_pinned or unknown, and device + 1, SL_NO_DEVICE, or 0 unknown.  It is found
 * by asking `iterate` (beside `real`) for the pools of each agent.  A failed call is answered from what earlier calls found.
 */
#define SL_HSA_POOLS   "hsa_amd_agent_iterate_memory_pools"
#define SL_HSA_REGIONS "hsa_agent_iterate_regions"
enum sl_kind sl_fields_hsa_kind(void *real, uint64_t pool, const char *iterate, bool done);
int sl_fields_hsa_device(void *real, uint64_t pool, const char *iterate, bool done);
void sl_fields_hsa_forget(void);
#define HSA_DEVICE(pool)                                                                                                           \
	.object = (pool).handle, .device_plus_one = sl_fields_hsa_device((void *)real, (pool).handle, SL_HSA_POOLS, done)
#define HSA_MEMORY(pool, iterate)                                                                                                  \
	.object = (pool).handle, .kind = sl_fields_hsa_kind((void *)real, (pool).handle, iterate, done),                           \
	.device_plus_one = sl_fields_hsa_device((void *)real, (pool).handle, iterate, done)

/* The same for a handle or pointer that a call has just returned; 0 unknown. */
int sl_fields_hsa_device_of_handle(void *real, hsa_amd_vmem_alloc_handle_t handle);
int sl_fields_hsa_device_of_pointer(void *real, const void *pointer);

/*
 * After the release of a primary context: 1 when it was the last reference.  Asks `state` (beside `real`:
 * cuDevicePrimaryCtxGetState, hipDevicePrimaryCtxGetState), which makes no context.
 */
unsigned sl_fields_primary_gone(void *real, const char *state, int device);

/* Device + 1 of the memory of this handle, which a call has just imported; 0 unknown. */
int sl_fields_device_of_handle(void *real, CUmemGenericAllocationHandle handle);

/* Version of the runtime that contains `real`, in the form of cudaRuntimeGetVersion: 12040; 0 unknown. */
int sl_fields_runtime_version(void *real);

/* Device + 1 that hipMemCreate is asked for; 0 unknown, since HIP 5 orders the members of its properties differently. */
int sl_fields_hip_device(void *real, const hipMemAllocationProp *prop);

/* After a successful look-up by base name and version: replaces the result by its wrapper. */
void sl_fields_by_version(const char *base, void **found, int version, uint64_t flags, enum sl_family family);

/* After NVML's answer: clamps it to --limit, with used = total - free. */
void sl_fields_nvml(void *real, nvmlDevice_t device, unsigned long long *total_bytes, unsigned long long *free_bytes,
		    unsigned long long *used_bytes);

/* After ROCm SMI's or AMD SMI's answer (one pointer is NULL): clamps it to --limit, with used = total - free.  Only for VRAM. */
void sl_fields_rocm_smi(void *real, uint32_t device, unsigned type, uint64_t *total_bytes, uint64_t *used_bytes);
void sl_fields_amd_smi(void *real, amdsmi_processor_handle device, unsigned type, uint64_t *total_bytes, uint64_t *used_bytes);
void sl_fields_amd_smi_usage(void *real, amdsmi_processor_handle device, amdsmi_vram_usage_t *usage);

/* Called where the program asks for the size of memory, and, unless free_bytes is NULL, how much is free.  True: --limit is on. */
bool sl_fields_asked(enum sl_family family, const void *caller, const void *free_bytes);

/*
 * Fills a struct sl_fields from a row's expressions.  A row that names no kind has the kind of its table.  In the variants for a
 * default stream per thread, stream 0 is that one, which can be captured as others can.
 */
#define SL_FILL_FIELDS(fields, verb, kind_, name, ...)                                                                             \
	do {                                                                                                                       \
		(fields) = (struct sl_fields){__VA_ARGS__};                                                                        \
		if (!(fields).kind)                                                                                                \
			(fields).kind = SL_KIND_##kind_;                                                                           \
		if ((SL_VERB_##verb == SL_VERB_ALLOC || SL_VERB_##verb == SL_VERB_FREE) && IS_PER_THREAD(#name) &&                 \
		    !(fields).stream)                                                                                              \
			(fields).stream = STREAM_PER_THREAD;                                                                       \
	} while (0)

#define STREAM_PER_THREAD   2 /* cudaStreamPerThread, CU_STREAM_PER_THREAD, hipStreamPerThread */
#define IS_PER_THREAD(name) (sizeof(name) > sizeof("_ptsz") && !__builtin_strcmp((name) + sizeof(name) - sizeof("_ptsz"), "_ptsz"))
