/* SPDX-License-Identifier: MIT */
/*
 * Devices and contexts: their cost, their references, and what is freed with them. Longer than other files: one function for
 * each call of the API.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_DEPTH = 32 };

/* Contexts are never freed: a stale handle in some thread's stack must still say that it is destroyed. */
static struct sim_ctx *primary[SIM_MAX_DEVICES];
static __thread struct sim_ctx *stack[STACK_DEPTH];
static __thread int depth;
static __thread uint32_t stack_generation;

static void check_stack(void)
{
	if (stack_generation != sim_process.generation) {
		depth = 0;
		stack_generation = sim_process.generation;
	}
}

struct sim_ctx *sim_ctx_current(void)
{
	check_stack();
	return depth ? stack[depth - 1] : NULL;
}

int sim_ctx_check_current(struct sim_ctx **out)
{
	*out = sim_ctx_current();
	if (!*out)
		return SIM_INVALID_CONTEXT;
	return (*out)->active ? SIM_OK : SIM_CONTEXT_IS_DESTROYED;
}

static void set_current(struct sim_ctx *ctx)
{
	check_stack();
	if (depth)
		stack[depth - 1] = ctx;
	else if (ctx)
		stack[depth++] = ctx;
	if (depth && !stack[depth - 1])
		depth--;
}

static int push(struct sim_ctx *ctx)
{
	check_stack();
	if (depth == STACK_DEPTH)
		return SIM_INVALID_VALUE;
	stack[depth++] = ctx;
	return SIM_OK;
}

static struct sim_ctx *context_of(void *handle)
{
	return sim_object_get((uintptr_t)handle, SIM_T_CTX);
}

static struct sim_ctx *new_context(int device, bool is_primary)
{
	struct sim_ctx *ctx = sim_object_new(sizeof *ctx, SIM_T_CTX, NULL);
	if (ctx) {
		ctx->device = device;
		ctx->primary = is_primary;
	}
	return ctx;
}

static int activate(struct sim_call *call, struct sim_ctx *ctx)
{
	uint64_t cost = sim_round_up(sim_config.ctx_bytes, sim_config.granularity);
	int error = sim_device_take(ctx->device, cost);
	if (error)
		return error;
	ctx->charge = cost;
	ctx->active = true;
	ctx->limit_charge = 0;
	memset(ctx->limits, 0, sizeof ctx->limits);
	ctx->limits[0] = 1024;
	ctx->limits[1] = 1 << 20;
	ctx->limits[2] = 8 << 20;
	call->bytes = cost;
	return SIM_OK;
}

/* Frees everything that was made in the context, too (implicit frees). */
static void deactivate(struct sim_call *call, struct sim_ctx *ctx)
{
	if (!ctx->active)
		return;
	sim_stream_complete_all(ctx);
	while (ctx->owned)
		ctx->owned->drop(ctx->owned, call);
	ctx->default_streams[0] = ctx->default_streams[1] = NULL;
	sim_device_give(ctx->device, ctx->charge + ctx->limit_charge);
	ctx->active = false;
	call->bytes = ctx->charge;
}

int cuInit(unsigned flags)
{
	SIM_BEGIN(cuInit, OTHER, .needs = 2);
	if (flags)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (sim_process.forked)
		SIM_RETURN(SIM_NOT_INITIALIZED);
	if (!sim_device_count())
		SIM_RETURN(SIM_NO_DEVICE);
	sim_process.initialized = true;
	SIM_RETURN(SIM_OK);
}

int cuDriverGetVersion(int *version)
{
	SIM_BEGIN(cuDriverGetVersion, QUIET, .needs = 2);
	if (!version)
		SIM_RETURN(SIM_INVALID_VALUE);
	*version = sim_config.driver_version;
	SIM_RETURN(SIM_OK);
}

int cuDeviceGetCount(int *count)
{
	SIM_BEGIN(cuDeviceGetCount, QUIET, .needs = 1);
	if (!count)
		SIM_RETURN(SIM_INVALID_VALUE);
	*count = sim_device_count();
	SIM_RETURN(SIM_OK);
}

int cuDeviceGet(int *device, int ordinal)
{
	SIM_BEGIN(cuDeviceGet, QUIET, .needs = 1);
	if (!device)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (sim_device_physical(ordinal) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	*device = ordinal;
	SIM_RETURN(SIM_OK);
}

int cuDeviceGetName(char *name, int len, int device)
{
	SIM_BEGIN(cuDeviceGetName, QUIET, .needs = 1);
	if (!name || len <= 0)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	sim_device_name(name, len, sim_device_physical(device));
	SIM_RETURN(SIM_OK);
}

static int total_memory(struct sim_call *call, int device, size_t *bytes)
{
	uint64_t free_bytes, total;
	if (!bytes)
		return SIM_INVALID_VALUE;
	if (sim_device_physical(device) < 0)
		return SIM_INVALID_DEVICE;
	sim_device_info(sim_device_physical(device), &free_bytes, &total);
	*bytes = total;
	return SIM_OK;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	SIM_BEGIN(cuDeviceTotalMem_v2, QUIET, .out = {SIM_OUT(bytes)}, .needs = 1);
	SIM_RETURN(total_memory(&call, device, bytes));
}

static int get_uuid(int device, void *uuid, void (*which)(int, unsigned char[16]))
{
	if (!uuid)
		return SIM_INVALID_VALUE;
	if (sim_device_physical(device) < 0)
		return SIM_INVALID_DEVICE;
	which(sim_device_physical(device), uuid);
	return SIM_OK;
}

int cuDeviceGetUuid(void *uuid, int device)
{
	SIM_BEGIN(cuDeviceGetUuid, QUIET, .needs = 1);
	SIM_RETURN(get_uuid(device, uuid, sim_device_whole_uuid));
}

int cuDeviceGetUuid_v2(void *uuid, int device)
{
	SIM_BEGIN(cuDeviceGetUuid_v2, QUIET, .needs = 1);
	SIM_RETURN(get_uuid(device, uuid, sim_device_uuid));
}

int cuDeviceGetPCIBusId(char *text, int len, int device)
{
	SIM_BEGIN(cuDeviceGetPCIBusId, QUIET, .needs = 1);
	char full[32];
	if (!text || len < 13)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	sim_device_pci(sim_device_physical(device), full, sizeof full);
	snprintf(text, len, "%s", full + 4); /* CUDA writes a domain of four digits, NVML of eight */
	SIM_RETURN(SIM_OK);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	SIM_BEGIN(cuDeviceGetAttribute, QUIET, .out = {SIM_OUT(value)}, .needs = 1);
	if (!value)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	*value = sim_device_attribute(attribute, sim_device_physical(device));
	SIM_RETURN(SIM_OK);
}

int cuDevicePrimaryCtxRetain(void **out, int device)
{
	SIM_BEGIN(cuDevicePrimaryCtxRetain, OTHER, .out = {SIM_OUT(out)}, .device = device, .needs = 1);
	if (!out)
		SIM_RETURN(SIM_INVALID_VALUE);
	if (sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	if (!primary[device])
		primary[device] = new_context(device, true);
	struct sim_ctx *ctx = primary[device];
	int error = !ctx ? SIM_OUT_OF_MEMORY : ctx->active ? SIM_OK : activate(&call, ctx);
	if (error)
		SIM_RETURN(error);
	ctx->references++;
	call.other = ctx->references;
	*out = ctx;
	SIM_RETURN(SIM_OK);
}

static int release_primary(struct sim_call *call, int device)
{
	if (sim_device_physical(device) < 0)
		return SIM_INVALID_DEVICE;
	struct sim_ctx *ctx = primary[device];
	if (!ctx || !ctx->references)
		return SIM_INVALID_CONTEXT;
	call->other = --ctx->references;
	if (!ctx->references)
		deactivate(call, ctx);
	return SIM_OK;
}

int cuDevicePrimaryCtxRelease(int device)
{
	SIM_BEGIN(cuDevicePrimaryCtxRelease, OTHER, .device = device, .needs = 1);
	SIM_RETURN(release_primary(&call, device));
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	SIM_BEGIN(cuDevicePrimaryCtxRelease_v2, OTHER, .device = device, .needs = 1);
	SIM_RETURN(release_primary(&call, device));
}

/* A reset releases nothing: the references stay, and the next retain makes a new context. */
static int reset_primary(struct sim_call *call, int device)
{
	if (sim_device_physical(device) < 0)
		return SIM_INVALID_DEVICE;
	if (primary[device])
		deactivate(call, primary[device]);
	return SIM_OK;
}

int cuDevicePrimaryCtxReset(int device)
{
	SIM_BEGIN(cuDevicePrimaryCtxReset, OTHER, .device = device, .needs = 1);
	SIM_RETURN(reset_primary(&call, device));
}

int cuDevicePrimaryCtxReset_v2(int device)
{
	SIM_BEGIN(cuDevicePrimaryCtxReset_v2, OTHER, .device = device, .needs = 1);
	SIM_RETURN(reset_primary(&call, device));
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	SIM_BEGIN(cuDevicePrimaryCtxGetState, QUIET, .needs = 1);
	if (sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	if (flags)
		*flags = primary[device] ? primary[device]->flags : 0;
	if (active)
		*active = primary[device] && primary[device]->active;
	SIM_RETURN(SIM_OK);
}

int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
	SIM_BEGIN(cuDevicePrimaryCtxSetFlags_v2, QUIET, .needs = 1);
	if (sim_device_physical(device) < 0)
		SIM_RETURN(SIM_INVALID_DEVICE);
	if (!primary[device])
		primary[device] = new_context(device, true);
	primary[device]->flags = flags;
	SIM_RETURN(SIM_OK);
}

static int create(struct sim_call *call, void **out, unsigned flags, int device)
{
	call->device = device;
	if (!out)
		return SIM_INVALID_VALUE;
	if (sim_device_physical(device) < 0)
		return SIM_INVALID_DEVICE;
	struct sim_ctx *ctx = new_context(device, false);
	int error = ctx ? activate(call, ctx) : SIM_OUT_OF_MEMORY;
	if (!error)
		error = push(ctx);
	if (error)
		return error;
	ctx->flags = flags;
	ctx->references = 1;
	*out = ctx;
	return SIM_OK;
}

int cuCtxCreate_v2(void **out, unsigned flags, int device)
{
	SIM_BEGIN(cuCtxCreate_v2, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(create(&call, out, flags, device));
}

int cuCtxCreate(void **out, unsigned flags, int device)
{
	SIM_BEGIN(cuCtxCreate, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(create(&call, out, flags, device));
}

int cuCtxCreate_v3(void **out, void *params, int count, unsigned flags, int device)
{
	SIM_BEGIN(cuCtxCreate_v3, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(create(&call, out, flags, device));
}

int cuCtxCreate_v4(void **out, void *params, unsigned flags, int device)
{
	SIM_BEGIN(cuCtxCreate_v4, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(create(&call, out, flags, device));
}

static int destroy(struct sim_call *call, void *handle)
{
	struct sim_ctx *ctx = context_of(handle);
	if (!ctx || ctx->primary || !ctx->active)
		return SIM_INVALID_CONTEXT;
	call->device = ctx->device;
	deactivate(call, ctx);
	if (sim_ctx_current() == ctx)
		depth--;
	return SIM_OK;
}

int cuCtxDestroy_v2(void *ctx)
{
	SIM_BEGIN(cuCtxDestroy_v2, OTHER, .other = (uintptr_t)ctx, .needs = 1);
	SIM_RETURN(destroy(&call, ctx));
}

int cuCtxDestroy(void *ctx)
{
	SIM_BEGIN(cuCtxDestroy, OTHER, .other = (uintptr_t)ctx, .needs = 1);
	SIM_RETURN(destroy(&call, ctx));
}

int cuCtxAttach(void **out, unsigned flags)
{
	SIM_BEGIN(cuCtxAttach, OTHER, .out = {SIM_OUT(out)});
	call.ctx->references++;
	*out = call.ctx;
	SIM_RETURN(SIM_OK);
}

int cuCtxDetach(void *handle)
{
	SIM_BEGIN(cuCtxDetach, OTHER, .other = (uintptr_t)handle, .needs = 1);
	struct sim_ctx *ctx = context_of(handle);
	if (!ctx || !ctx->active)
		SIM_RETURN(SIM_INVALID_CONTEXT);
	if (--ctx->references > 0 || ctx->primary)
		SIM_RETURN(SIM_OK);
	SIM_RETURN(destroy(&call, handle));
}

int cuCtxPushCurrent_v2(void *handle)
{
	SIM_BEGIN(cuCtxPushCurrent_v2, QUIET, .needs = 1);
	SIM_RETURN(context_of(handle) ? push(context_of(handle)) : SIM_INVALID_CONTEXT);
}

int cuCtxPopCurrent_v2(void **out)
{
	SIM_BEGIN(cuCtxPopCurrent_v2, QUIET, .needs = 1);
	struct sim_ctx *ctx = sim_ctx_current();
	if (!ctx)
		SIM_RETURN(SIM_INVALID_CONTEXT);
	if (out)
		*out = ctx;
	depth--;
	SIM_RETURN(SIM_OK);
}

int cuCtxSetCurrent(void *handle)
{
	SIM_BEGIN(cuCtxSetCurrent, QUIET, .needs = 1);
	if (handle && !context_of(handle))
		SIM_RETURN(SIM_INVALID_CONTEXT);
	set_current(handle);
	SIM_RETURN(SIM_OK);
}

int cuCtxGetCurrent(void **out)
{
	SIM_BEGIN(cuCtxGetCurrent, QUIET, .needs = 1);
	if (!out)
		SIM_RETURN(SIM_INVALID_VALUE);
	*out = sim_ctx_current();
	SIM_RETURN(SIM_OK);
}

int cuCtxGetDevice(int *device)
{
	SIM_BEGIN(cuCtxGetDevice, QUIET, .out = {SIM_OUT(device)});
	if (!device)
		SIM_RETURN(SIM_INVALID_VALUE);
	*device = call.ctx->device;
	SIM_RETURN(SIM_OK);
}

int cuCtxGetDevice_v2(int *device, void *handle)
{
	SIM_BEGIN(cuCtxGetDevice_v2, QUIET, .out = {SIM_OUT(device)}, .needs = 1);
	struct sim_ctx *ctx = handle ? context_of(handle) : sim_ctx_current();
	if (!ctx)
		SIM_RETURN(SIM_INVALID_CONTEXT);
	*device = ctx->device;
	SIM_RETURN(SIM_OK);
}

int cuCtxGetFlags(unsigned *flags)
{
	SIM_BEGIN(cuCtxGetFlags, QUIET);
	*flags = call.ctx->flags;
	SIM_RETURN(SIM_OK);
}

int cuCtxGetId(void *handle, unsigned long long *id)
{
	SIM_BEGIN(cuCtxGetId, QUIET, .needs = 1);
	struct sim_ctx *ctx = handle ? context_of(handle) : sim_ctx_current();
	if (!ctx || !id)
		SIM_RETURN(ctx ? SIM_INVALID_VALUE : SIM_INVALID_CONTEXT);
	*id = (uintptr_t)ctx;
	SIM_RETURN(SIM_OK);
}

int cuCtxGetApiVersion(void *handle, unsigned *version)
{
	SIM_BEGIN(cuCtxGetApiVersion, QUIET, .needs = 1);
	*version = 3020;
	SIM_RETURN(SIM_OK);
}

int cuCtxSynchronize(void)
{
	SIM_BEGIN(cuCtxSynchronize, QUIET);
	sim_stream_complete_all(call.ctx);
	SIM_RETURN(SIM_OK);
}

int cuCtxSynchronize_v2(void *handle)
{
	SIM_BEGIN(cuCtxSynchronize_v2, QUIET, .needs = 1);
	struct sim_ctx *ctx = handle ? context_of(handle) : sim_ctx_current();
	if (!ctx)
		SIM_RETURN(SIM_INVALID_CONTEXT);
	sim_stream_complete_all(ctx);
	SIM_RETURN(SIM_OK);
}

/* Stack is per thread of the device (108 processors of 2048 threads here), the other limits are plain buffers. */
static uint64_t limit_cost(const uint64_t *limits)
{
	uint64_t stack_extra = limits[0] > 1024 ? (limits[0] - 1024) * 108 * 2048 : 0;
	uint64_t fifo_extra = limits[1] > 1 << 20 ? limits[1] - (1 << 20) : 0;
	uint64_t heap_extra = limits[2] > 8 << 20 ? limits[2] - (8 << 20) : 0;
	return sim_round_up(stack_extra + fifo_extra + heap_extra, sim_config.granularity);
}

int cuCtxSetLimit(unsigned limit, size_t value)
{
	SIM_BEGIN(cuCtxSetLimit, OTHER, .bytes = value, .other = limit);
	if (limit >= SIM_ARRAY_SIZE(call.ctx->limits))
		SIM_RETURN(SIM_INVALID_VALUE);
	struct sim_ctx *ctx = call.ctx;
	uint64_t wanted[SIM_ARRAY_SIZE(ctx->limits)];
	call.device = ctx->device;
	memcpy(wanted, ctx->limits, sizeof wanted);
	wanted[limit] = value;
	uint64_t cost = limit_cost(wanted);
	int error = cost > ctx->limit_charge ? sim_device_take(ctx->device, cost - ctx->limit_charge) : SIM_OK;
	if (error)
		SIM_RETURN(error);
	if (cost < ctx->limit_charge)
		sim_device_give(ctx->device, ctx->limit_charge - cost);
	ctx->limit_charge = cost;
	ctx->limits[limit] = value;
	SIM_RETURN(SIM_OK);
}

int cuCtxGetLimit(size_t *value, unsigned limit)
{
	SIM_BEGIN(cuCtxGetLimit, QUIET, .out = {SIM_OUT(value)});
	if (!value || limit >= SIM_ARRAY_SIZE(call.ctx->limits))
		SIM_RETURN(SIM_INVALID_VALUE);
	*value = call.ctx->limits[limit];
	SIM_RETURN(SIM_OK);
}

int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	SIM_BEGIN(cuDeviceCanAccessPeer, QUIET, .out = {SIM_OUT(can)}, .needs = 1);
	if (!can || sim_device_physical(device) < 0 || sim_device_physical(peer) < 0)
		SIM_RETURN(can ? SIM_INVALID_DEVICE : SIM_INVALID_VALUE);
	*can = device != peer;
	SIM_RETURN(SIM_OK);
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	SIM_BEGIN(cuCtxGetStreamPriorityRange, QUIET);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	SIM_RETURN(SIM_OK);
}
