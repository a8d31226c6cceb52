/* SPDX-License-Identifier: MIT */
/* Stand-ins for the rooms around the agent's core, so that the core can be tried without a GPU's libraries. */
#include "tests/agent/fakes.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "agent/gpu/gpu.h"
#include "agent/process/hook_rows.h"
#include "agent/symbols/symbols.h"

const struct sl_hooks_row sl_hooks[] = {
	{"", SL_VERB_CALL, SL_KIND_none, SL_FAMILY_process, false},
	{"cudaMalloc", SL_VERB_ALLOC, SL_KIND_device, SL_FAMILY_cuda_runtime, true},
	{"cudaFree", SL_VERB_FREE, SL_KIND_unknown, SL_FAMILY_cuda_runtime, true},
	{"cuMemAlloc_v2", SL_VERB_ALLOC, SL_KIND_device, SL_FAMILY_cuda_driver, true},
	{"cuDevicePrimaryCtxRetain", SL_VERB_PRIMARY_RETAIN, SL_KIND_none, SL_FAMILY_cuda_driver, true},
	{"c10::reportMemoryUsageToProfiler", SL_VERB_BLOCK_ALLOC, SL_KIND_block, SL_FAMILY_torch, true},
	{"nvtxRangePushA", SL_VERB_RANGE_PUSH, SL_KIND_none, SL_FAMILY_label, true},
	{"nvtxRangePop", SL_VERB_RANGE_POP, SL_KIND_none, SL_FAMILY_label, true},
	{"c10::reportMemoryUsageToProfiler", SL_VERB_BLOCK_FREE, SL_KIND_block, SL_FAMILY_torch, true},
	{"c10::reportOutOfMemoryToProfiler", SL_VERB_BLOCK_OOM, SL_KIND_block, SL_FAMILY_torch, true},
};
const unsigned sl_hook_count = sizeof(sl_hooks) / sizeof(sl_hooks[0]);

struct sl_resolve_place sl_resolve_place(const void *address)
{
	return (struct sl_resolve_place){0};
}

void *sl_resolve_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

void *sl_resolve_beside(const void *address, const char *name)
{
	return NULL;
}

void *sl_resolve_next(const char *name)
{
	return NULL;
}

bool sl_resolve_is_behind_us(const char *name)
{
	return false;
}

void *sl_resolve_before_us(const char *name, const struct link_map *after)
{
	return NULL;
}

bool sl_resolve_loaded(const void *address)
{
	Dl_info object;

	return dladdr(address, &object);
}

bool sl_sanitizers_of_threads(void)
{
	return false;
}

bool sl_sanitizers_present(void)
{
	return false;
}

bool sl_limit_active;

void sl_limit_start(const struct sl_options *options)
{
}

bool sl_limit_injects(unsigned api, enum sl_kind kind, uint64_t bytes)
{
	return false;
}

uint64_t fake_claimed;

bool sl_limit_refuses(int device, enum sl_kind kind, uint64_t bytes, struct sl_limit_claim *claim)
{
	*claim = (struct sl_limit_claim){.bytes = bytes, .device = 3};
	fake_claimed += bytes;
	return false;
}

/* Gives the claim back at once: fake_claimed counts calls under way alone. */
void sl_limit_allocated(struct sl_vendor_context place, enum sl_kind kind, uint64_t address, uint64_t bytes,
			struct sl_limit_claim *claim)
{
	sl_limit_release(claim);
}

void sl_limit_freed(enum sl_kind kind, uint64_t address, struct sl_limit_claim *claim)
{
}

void sl_limit_release(struct sl_limit_claim *claim)
{
	if (claim->bytes && claim->device != 3)
		abort();
	fake_claimed -= claim->bytes;
	claim->bytes = 0;
}

void sl_limit_primary(struct sl_vendor_context place)
{
}

void sl_limit_context_gone(struct sl_vendor_context place)
{
}

void sl_device_used(int ordinal, enum sl_family family)
{
}

void sl_vendor_forget(void)
{
}

void sl_device_child(void)
{
}

void sl_device_sample(uint64_t now_ns)
{
}

void sl_device_sample_last(uint64_t now_ns)
{
}

void sl_device_sample_host(uint64_t now_ns)
{
}

bool sl_device_news(void)
{
	return false;
}

void sl_device_oom(uint32_t thread, uint64_t seq, int device, enum sl_family family, enum sl_kind kind, uint64_t now_ns)
{
}

struct sl_vendor_context sl_device_current(enum sl_family family)
{
	return (struct sl_vendor_context){0, 0xc0};
}

int sl_device_of_pointer(enum sl_family family, uint64_t address)
{
	return 0;
}

void sl_device_remember(uint64_t handle, int device_plus_one)
{
}

int sl_device_named(uint64_t pool, uint64_t stream)
{
	return 0;
}

uint64_t sl_device_size_of(enum sl_family family, uint64_t address)
{
	return 0;
}

bool sl_device_capturing(enum sl_family family, uint64_t stream, uint64_t *graph)
{
	return false;
}

uint64_t sl_device_free_bytes(enum sl_family family)
{
	return 0;
}
