/* SPDX-License-Identifier: MIT */
/*
 * Code: a module or library costs SIM_MODULE_BYTES on its device, at load with CUDA_MODULE_LOADING=EAGER, else when the
 * first function of a module is looked up or a library's kernel launched, as since CUDA 12.2. No kernel runs.
 */
#include "sim.h"

#include <stdlib.h>

struct module {
	struct sim_object object;
	int device;
	uint64_t charge;
	struct module **at; /* a kernel's function on another device than its first: where its library keeps it */
	struct module *on[SIM_MAX_DEVICES];
};

static int load_code(struct module *m, int device)
{
	if (m->charge)
		return SIM_OK;
	uint64_t bytes = sim_round_up(sim_config.module_bytes, sim_config.granularity);
	int error = sim_device_take(device, bytes);
	if (!error) {
		m->charge = bytes;
		m->device = device;
	}
	return error;
}

static void drop_module(struct sim_object *object, struct sim_call *call)
{
	struct module *m = (struct module *)object;
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		if (m->on[i])
			drop_module(&m->on[i]->object, call);
	if (m->at)
		*m->at = NULL;
	if (m->charge)
		sim_device_give(m->device, m->charge);
	sim_object_remove(object);
	free(m);
}

static int load(struct sim_call *call, void **out, const void *image)
{
	struct sim_ctx *ctx = sim_ctx_current();
	if (!out || !image)
		return SIM_INVALID_VALUE;
	call->device = ctx ? ctx->device : -1;
	struct module *m = sim_object_new(sizeof *m, SIM_T_MODULE, ctx);
	if (!m)
		return SIM_OUT_OF_MEMORY;
	m->object.drop = drop_module;
	int error = ctx && !sim_config.lazy_modules ? load_code(m, ctx->device) : SIM_OK;
	if (error) {
		drop_module(&m->object, call);
		return error;
	}
	*out = m;
	call->bytes = m->charge;
	call->other = m->object.key;
	return SIM_OK;
}

static int unload(struct sim_call *call, void *handle)
{
	struct module *m = sim_object_get((uintptr_t)handle, SIM_T_MODULE);
	if (!m)
		return SIM_INVALID_HANDLE;
	call->bytes = m->charge;
	drop_module(&m->object, call);
	return SIM_OK;
}

/* A function's handle is its module's, since functions of a module do not differ here. */
static int get_function(struct sim_call *call, void **out, void *handle)
{
	struct module *m = sim_object_get((uintptr_t)handle, SIM_T_MODULE);
	struct sim_ctx *ctx = sim_ctx_current();
	if (!out || !m)
		return SIM_INVALID_HANDLE;
	uint64_t before = m->charge;
	int error = ctx ? load_code(m, ctx->device) : SIM_OK;
	call->bytes = m->charge - before;
	call->other = m->object.key;
	if (!error)
		*out = m;
	return error;
}

/* A kernel has a function, and its code, on each device that asks for it. */
static int get_kernel_function(struct sim_call *call, void **out, void *handle)
{
	struct module *m = sim_object_get((uintptr_t)handle, SIM_T_MODULE);
	struct sim_ctx *ctx = sim_ctx_current();
	if (m && ctx && m->charge && m->device != ctx->device) {
		struct module **at = &m->on[ctx->device];
		if (!*at && (*at = sim_object_new(sizeof **at, SIM_T_MODULE, ctx))) {
			(*at)->object.drop = drop_module;
			(*at)->at = at;
		}
		handle = *at;
	}
	return get_function(call, out, handle);
}

/* Loads no code: a library kernel's code is loaded at its first launch or when its function is looked up. */
static int get_kernel(struct sim_call *call, void **out, void *handle)
{
	struct module *m = sim_object_get((uintptr_t)handle, SIM_T_MODULE);
	if (!out || !m)
		return SIM_INVALID_HANDLE;
	call->other = m->object.key;
	*out = m;
	return SIM_OK;
}

#define LOAD(fn, params)                                                                                                           \
	int fn params                                                                                                              \
	{                                                                                                                          \
		SIM_BEGIN(fn, OTHER, .out = {SIM_OUT(out)});                                                                       \
		SIM_RETURN(load(&call, out, image));                                                                               \
	}
#define LOAD_LIBRARY(fn, params)                                                                                                   \
	int fn params                                                                                                              \
	{                                                                                                                          \
		SIM_BEGIN(fn, OTHER, .out = {SIM_OUT(out)}, .needs = 1);                                                           \
		SIM_RETURN(load(&call, out, image));                                                                               \
	}
#define UNLOAD(fn)                                                                                                                 \
	int fn(void *handle)                                                                                                       \
	{                                                                                                                          \
		SIM_BEGIN(fn, OTHER, .other = (uintptr_t)handle, .needs = 1);                                                      \
		SIM_RETURN(unload(&call, handle));                                                                                 \
	}
#define GET(fn, params)                                                                                                            \
	int fn params                                                                                                              \
	{                                                                                                                          \
		SIM_BEGIN(fn, OTHER, .out = {SIM_OUT(out)}, .needs = 1);                                                           \
		SIM_RETURN(get_function(&call, out, handle));                                                                      \
	}
#define LAUNCH(fn, params)                                                                                                         \
	int fn params                                                                                                              \
	{                                                                                                                          \
		SIM_BEGIN(fn, OTHER);                                                                                              \
		void *out_value, **out = &out_value;                                                                               \
		SIM_RETURN(get_function(&call, out, handle));                                                                      \
	}

LOAD(cuModuleLoad, (void **out, const char *image))
LOAD(cuModuleLoadData, (void **out, const void *image))
LOAD(cuModuleLoadDataEx, (void **out, const void *image, unsigned count, void *options, void **values))
LOAD(cuModuleLoadFatBinary, (void **out, const void *image))
LOAD_LIBRARY(cuLibraryLoadData, (void **out, const void *image, void *jit, void **jit_values, unsigned jit_count, void *options,
				 void **values, unsigned count))
LOAD_LIBRARY(cuLibraryLoadFromFile, (void **out, const char *image, void *jit, void **jit_values, unsigned jit_count, void *options,
				     void **values, unsigned count))
UNLOAD(cuModuleUnload)
UNLOAD(cuLibraryUnload)
GET(cuModuleGetFunction, (void **out, void *handle, const char *name))
int cuLibraryGetKernel(void **out, void *handle, const char *name)
{
	SIM_BEGIN(cuLibraryGetKernel, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(get_kernel(&call, out, handle));
}

GET(cuLibraryGetModule, (void **out, void *handle))
int cuKernelGetFunction(void **out, void *handle)
{
	SIM_BEGIN(cuKernelGetFunction, OTHER, .out = {SIM_OUT(out)}, .needs = 1);
	SIM_RETURN(get_kernel_function(&call, out, handle));
}
LAUNCH(cuLaunchKernel, (void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
			void *stream, void **params, void **extra))
LAUNCH(cuLaunchKernel_ptsz, (void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			     unsigned shared, void *stream, void **params, void **extra))
LAUNCH(cuLaunchKernelEx, (const void *config, void *handle, void **params, void **extra))
LAUNCH(cuLaunchKernelEx_ptsz, (const void *config, void *handle, void **params, void **extra))

/* One variable of 256 bytes, in the module's own memory: its address is no allocation. */
static int get_global(struct sim_call *call, uint64_t *address, size_t *bytes, void *handle)
{
	void *ignored;
	int error = get_function(call, &ignored, handle);
	if (error)
		return error;
	if (address)
		*address = 0x1f0000000000ull + ((uintptr_t)handle & 0xffffffffff);
	if (bytes)
		*bytes = 256;
	return SIM_OK;
}

int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *handle, const char *name)
{
	SIM_BEGIN(cuModuleGetGlobal_v2, OTHER);
	SIM_RETURN(get_global(&call, address, bytes, handle));
}

int cuLibraryGetGlobal(uint64_t *address, size_t *bytes, void *handle, const char *name)
{
	SIM_BEGIN(cuLibraryGetGlobal, OTHER, .needs = 1);
	SIM_RETURN(get_global(&call, address, bytes, handle));
}

int cuLibraryGetManaged(uint64_t *address, size_t *bytes, void *handle, const char *name)
{
	SIM_BEGIN(cuLibraryGetManaged, OTHER, .needs = 1);
	SIM_RETURN(get_global(&call, address, bytes, handle));
}

int cuModuleGetLoadingMode(int *mode)
{
	SIM_BEGIN(cuModuleGetLoadingMode, QUIET, .needs = 1);
	*mode = sim_config.lazy_modules ? 2 : 1;
	SIM_RETURN(SIM_OK);
}
