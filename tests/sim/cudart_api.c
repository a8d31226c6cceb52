/* SPDX-License-Identifier: MIT */
/*
 * The runtime's functions: each says what it is for and which driver call does it. Longer than other files: one function for
 * each call of the API.
 */
#include "cudart.h"

#include <string.h>

#ifdef SIM_STATIC
#define LEVEL SIM_EMBEDDED
#else
#define LEVEL SIM_RUNTIME
#endif

#define PER_THREAD ((void *)2)
enum { NOT_SUPPORTED = 801, INVALID_VALUE = 1 };

/* RT(name, verb, parameters, expression, fields of the call...): `d` is the driver. */
#define RT_BODY(fn, api_verb, per_thread, expression, ...)                                                                         \
	static struct sim_api api = {.name = #fn, .verb = SIM_##api_verb, .level = LEVEL};                                         \
	struct sim_call call = {.api = &api, .device = -1, __VA_ARGS__};                                                           \
	const struct driver *d = sim_rt_driver(per_thread);                                                                        \
	(void)d;                                                                                                                   \
	return sim_rt_end(&call, sim_rt_begin(&call) ? call.result : (expression));
#define RT(fn, api_verb, params, expression, ...)                                                                                  \
	int fn params                                                                                                              \
	{                                                                                                                          \
		RT_BODY(fn, api_verb, false, expression, __VA_ARGS__)                                                              \
	}
#define RT_STREAM(fn, api_verb, params, expression, ...)                                                                           \
	RT(fn, api_verb, params, expression, __VA_ARGS__)                                                                          \
	int fn##_ptsz params                                                                                                       \
	{                                                                                                                          \
		RT_BODY(fn##_ptsz, api_verb, true, expression, __VA_ARGS__)                                                        \
	}
#define RT_COPY(fn, params, expression)                                                                                            \
	RT(fn, QUIET, params, expression, .kind = 0)                                                                               \
	int fn##_ptds params                                                                                                       \
	{                                                                                                                          \
		RT_BODY(fn##_ptds, QUIET, true, expression, .kind = 0)                                                             \
	}

#define SIZE(n)	   .bytes = (n)
#define KIND(k)	   .kind = SIM_KIND_##k
#define OUT1(p)	   .out = {SIM_OUT(p)}
#define OUT2(p, q) .out = {SIM_OUT(p), SIM_OUT(q)}
#define NO_CONTEXT .needs = 1
#define NOTHING	   .needs = 2

struct extent {
	size_t width, height, depth;
};
struct pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct channels {
	int x, y, z, w, kind; /* 0 signed, 1 unsigned, 2 float */
};
struct array3d {
	size_t width, height, depth;
	unsigned format, channels, flags;
};
struct pointer_attributes {
	int type, device;
	void *device_pointer, *host_pointer;
};

/* ---- memory ---- */

static int nothing(void **p)
{
	*p = NULL;
	return 0;
}

RT(cudaMalloc, ALLOC, (void **p, size_t n),
   !p  ? INVALID_VALUE
   : n ? d->cuMemAlloc(p, n)
       : nothing(p),
   SIZE(n), KIND(DEVICE), OUT1(p))
RT(cudaMallocPitch, ALLOC, (void **p, size_t *pitch, size_t width, size_t height),
   width &&height ? d->cuMemAllocPitch(p, pitch, width, height, 4) : nothing(p), SIZE(width *height), KIND(DEVICE), OUT2(p, pitch))
RT(cudaMallocManaged, ALLOC, (void **p, size_t n, unsigned flags), d->cuMemAllocManaged(p, n, flags), SIZE(n), KIND(MANAGED),
   OUT1(p))
RT(cudaMallocHost, ALLOC, (void **p, size_t n), d->cuMemHostAlloc(p, n, 0), SIZE(n), KIND(HOST_PINNED), OUT1(p))
RT(cudaHostAlloc, ALLOC, (void **p, size_t n, unsigned flags), d->cuMemHostAlloc(p, n, flags), SIZE(n), KIND(HOST_PINNED), OUT1(p))
RT(cudaHostRegister, ALLOC, (void *p, size_t n, unsigned flags), d->cuMemHostRegister(p, n, flags), SIZE(n), KIND(HOST_REGISTERED),
   .address = (uintptr_t)p)
RT(cudaHostUnregister, FREE, (void *p), d->cuMemHostUnregister(p), KIND(HOST_REGISTERED), .address = (uintptr_t)p)
RT(cudaHostGetDevicePointer, QUIET, (void **out, void *p, unsigned flags), d->cuMemHostGetDevicePointer(out, p, flags), OUT1(out))
RT(cudaHostGetFlags, QUIET, (unsigned *flags, void *p), d->cuMemHostGetFlags(flags, p), OUT1(flags))
RT(cudaFree, FREE, (void *p), p ? d->cuMemFree(p) : 0, .address = (uintptr_t)p)
RT(cudaFreeHost, FREE, (void *p), p ? d->cuMemFreeHost(p) : 0, KIND(HOST_PINNED), .address = (uintptr_t)p)
RT(cudaMemGetInfo, QUIET, (size_t * free_bytes, size_t *total), d->cuMemGetInfo(free_bytes, total), OUT2(free_bytes, total))

static int malloc3d(const struct driver *d, struct pitched *out, struct extent extent)
{
	int error = d->cuMemAllocPitch(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth, 4);
	out->xsize = extent.width;
	out->ysize = extent.height;
	return error;
}
RT(cudaMalloc3D, ALLOC, (struct pitched * out, struct extent extent), malloc3d(d, out, extent),
   SIZE(extent.width *extent.height *extent.depth), KIND(DEVICE), OUT1(out))

static int pointer_attributes(const struct driver *d, struct pointer_attributes *out, const void *p)
{
	unsigned type = 0, managed = 0;
	int at = -1;
	if (!out)
		return INVALID_VALUE;
	memset(out, 0, sizeof *out);
	out->device = -2;
	if (d->cuPointerGetAttribute(&type, 2, p) || !type)
		return SIM_CUDART_MAJOR < 11 ? INVALID_VALUE : 0;
	d->cuPointerGetAttribute(&managed, 8, p);
	d->cuPointerGetAttribute(&at, 9, p);
	out->type = managed ? 3 : (int)type;
	out->device = at;
	out->device_pointer = (void *)p;
	out->host_pointer = type == 1 || managed ? (void *)p : NULL;
	return 0;
}
RT(cudaPointerGetAttributes, QUIET, (struct pointer_attributes * out, const void *p), pointer_attributes(d, out, p), KIND(NONE))

/* ---- stream-ordered ---- */

RT_STREAM(cudaMallocAsync, ALLOC, (void **p, size_t n, void *stream), n ? d->cuMemAllocAsync(p, n, stream) : nothing(p), SIZE(n),
	  KIND(POOL), OUT1(p))
RT_STREAM(cudaMallocFromPoolAsync, ALLOC, (void **p, size_t n, void *pool, void *stream),
	  d->cuMemAllocFromPoolAsync(p, n, pool, stream), SIZE(n), KIND(POOL), OUT1(p))
RT_STREAM(cudaFreeAsync, FREE, (void *p, void *stream), p ? d->cuMemFreeAsync(p, stream) : 0, KIND(POOL), .address = (uintptr_t)p)
RT(cudaMemPoolCreate, OTHER, (void **pool, const void *props), d->cuMemPoolCreate(pool, props), OUT1(pool))
RT(cudaMemPoolDestroy, OTHER, (void *pool), d->cuMemPoolDestroy(pool), KIND(NONE))
RT(cudaMemPoolTrimTo, OTHER, (void *pool, size_t keep), d->cuMemPoolTrimTo(pool, keep), SIZE(keep))
RT(cudaMemPoolGetAttribute, QUIET, (void *pool, int which, void *value), d->cuMemPoolGetAttribute(pool, which, value), KIND(NONE))
RT(cudaMemPoolSetAttribute, OTHER, (void *pool, int which, void *value), d->cuMemPoolSetAttribute(pool, which, value), KIND(NONE))
RT(cudaMemPoolSetAccess, OTHER, (void *pool, const void *access, size_t count), d->cuMemPoolSetAccess(pool, access, count),
   KIND(NONE))
RT(cudaMemPoolExportToShareableHandle, OTHER, (void *out, void *pool, int type, unsigned flags),
   d->cuMemPoolExportToShareableHandle(out, pool, type, flags), KIND(NONE))
RT(cudaMemPoolImportFromShareableHandle, OTHER, (void **out, void *handle, int type, unsigned flags),
   d->cuMemPoolImportFromShareableHandle(out, handle, type, flags), OUT1(out))
RT(cudaMemPoolExportPointer, OTHER, (void *out, void *p), d->cuMemPoolExportPointer(out, p), KIND(NONE))
RT(cudaMemPoolImportPointer, ALLOC, (void **out, void *pool, void *data), d->cuMemPoolImportPointer(out, pool, data),
   KIND(IMPORTED), OUT1(out))
RT(cudaDeviceGetDefaultMemPool, QUIET, (void **pool, int at), d->cuDeviceGetDefaultMemPool(pool, at), OUT1(pool))
RT(cudaDeviceGetMemPool, QUIET, (void **pool, int at), d->cuDeviceGetMemPool(pool, at), OUT1(pool))
RT(cudaDeviceSetMemPool, OTHER, (int at, void *pool), d->cuDeviceSetMemPool(at, pool), KIND(NONE))
#if SIM_CUDART_MAJOR >= 13
RT(cudaMemGetDefaultMemPool, QUIET, (void **pool, void *at, int type), d->cuMemGetDefaultMemPool(pool, at, type), OUT1(pool))
RT(cudaMemGetMemPool, QUIET, (void **pool, void *at, int type), d->cuMemGetMemPool(pool, at, type), OUT1(pool))
RT(cudaMemSetMemPool, OTHER, (void *at, int type, void *pool), d->cuMemSetMemPool(at, type, pool), KIND(NONE))
#endif

/* ---- arrays ---- */

/* Needs no driver and cannot fail; C++ programs reach it by a template of channel_descriptor.h. */
struct channels cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
{
	return (struct channels){x, y, z, w, kind};
}

static bool is_channel(int bits)
{
	return bits == 0 || bits == 8 || bits == 16 || bits == 32;
}

static bool is_format(const struct channels *c)
{
	return c && c->x && is_channel(c->x) && is_channel(c->y) && is_channel(c->z) && is_channel(c->w);
}

static struct array3d describe(const struct channels *c, size_t width, size_t height, size_t depth, unsigned flags)
{
	static const unsigned formats[3][3] = {{8, 9, 10}, {1, 2, 3}, {0, 0x10, 0x20}};
	int size = c->x == 8 ? 0 : c->x == 16 ? 1 : 2;
	int kind = c->kind >= 0 && c->kind < 3 ? c->kind : 1;
	return (struct array3d){width, height, depth, formats[kind][size], (c->x > 0) + (c->y > 0) + (c->z > 0) + (c->w > 0),
				flags};
}

static int make_array(const struct driver *d, void **out, const struct channels *c, struct extent e, unsigned flags, bool plain)
{
	if (!out || !is_format(c))
		return INVALID_VALUE;
	struct array3d a = describe(c, e.width, e.height, e.depth, flags);
	struct {
		size_t width, height;
		unsigned format, channels;
	} two = {a.width, a.height, a.format, a.channels};
	return plain && !flags ? d->cuArrayCreate(out, &two) : d->cuArray3DCreate(out, &a);
}

static int make_mipmap(const struct driver *d, void **out, const struct channels *c, struct extent e, unsigned levels,
		       unsigned flags)
{
	struct array3d a = describe(c, e.width, e.height, e.depth, flags);
	return d->cuMipmappedArrayCreate(out, &a, levels);
}

RT(cudaMallocArray, ALLOC, (void **out, const struct channels *c, size_t width, size_t height, unsigned flags),
   make_array(d, out, c, ((struct extent){width, height, 0}), flags, true), KIND(ARRAY), OUT1(out))
RT(cudaMalloc3DArray, ALLOC, (void **out, const struct channels *c, struct extent e, unsigned flags),
   make_array(d, out, c, e, flags, false), KIND(ARRAY), OUT1(out))
RT(cudaMallocMipmappedArray, ALLOC, (void **out, const struct channels *c, struct extent e, unsigned levels, unsigned flags),
   make_mipmap(d, out, c, e, levels, flags), KIND(ARRAY), OUT1(out))
RT(cudaFreeArray, FREE, (void *array), array ? d->cuArrayDestroy(array) : 0, KIND(ARRAY), .address = (uintptr_t)array)
RT(cudaFreeMipmappedArray, FREE, (void *array), array ? d->cuMipmappedArrayDestroy(array) : 0, KIND(ARRAY),
   .address = (uintptr_t)array)
RT(cudaGetMipmappedArrayLevel, QUIET, (void **out, void *array, unsigned level), d->cuMipmappedArrayGetLevel(out, array, level),
   OUT1(out))

/* ---- other processes, other APIs ---- */

RT(cudaIpcGetMemHandle, OTHER, (void *handle, void *p), d->cuIpcGetMemHandle(handle, p), .address = (uintptr_t)p)
RT(cudaIpcOpenMemHandle, ALLOC, (void **out, struct ipc_handle handle, unsigned flags), d->cuIpcOpenMemHandle(out, handle, flags),
   KIND(IMPORTED), OUT1(out))
RT(cudaIpcCloseMemHandle, FREE, (void *p), d->cuIpcCloseMemHandle(p), KIND(IMPORTED), .address = (uintptr_t)p)
RT(cudaImportExternalMemory, OTHER, (void **out, const void *desc), d->cuImportExternalMemory(out, desc), OUT1(out))
RT(cudaExternalMemoryGetMappedBuffer, ALLOC, (void **out, void *memory, const void *desc),
   d->cuExternalMemoryGetMappedBuffer(out, memory, desc), KIND(IMPORTED), OUT1(out))
RT(cudaDestroyExternalMemory, OTHER, (void *memory), d->cuDestroyExternalMemory(memory), KIND(NONE))
RT(cudaGraphicsGLRegisterBuffer, OTHER, (void **out, unsigned buffer, unsigned flags),
   d->cuGraphicsGLRegisterBuffer(out, buffer, flags), OUT1(out))
RT(cudaGraphicsMapResources, OTHER, (int n, void **resources, void *s), d->cuGraphicsMapResources(n, resources, s), KIND(NONE))
RT(cudaGraphicsUnmapResources, OTHER, (int n, void **resources, void *s), d->cuGraphicsUnmapResources(n, resources, s), KIND(NONE))
RT(cudaGraphicsResourceGetMappedPointer, OTHER, (void **out, size_t *n, void *resource),
   d->cuGraphicsResourceGetMappedPointer(out, n, resource), OUT2(out, n))
RT(cudaGraphicsUnregisterResource, OTHER, (void *resource), d->cuGraphicsUnregisterResource(resource), KIND(NONE))

/* ---- devices ---- */

RT(cudaSetDevice, OTHER, (int at), sim_rt_set_device(at, SIM_CUDART_MAJOR >= 12), NO_CONTEXT, .other = (unsigned)at)
RT(cudaGetDevice, QUIET, (int *at), (*at = sim_rt_device(), 0), NO_CONTEXT, OUT1(at))
RT(cudaGetDeviceCount, QUIET, (int *count), d->cuDeviceGetCount(count), NO_CONTEXT, OUT1(count))
RT(cudaDeviceReset, OTHER, (void), sim_rt_reset(), NO_CONTEXT)
#if SIM_CUDART_MAJOR < 13 /* their names before CUDA 4, gone in 13 */
RT(cudaThreadExit, OTHER, (void), sim_rt_reset(), NO_CONTEXT)
RT(cudaThreadSynchronize, QUIET, (void), d->cuCtxSynchronize(), KIND(NONE))
#endif
RT(cudaDeviceSynchronize, QUIET, (void), d->cuCtxSynchronize(), KIND(NONE))
RT(cudaDeviceSetLimit, OTHER, (int limit, size_t value), d->cuCtxSetLimit(limit, value), SIZE(value))
RT(cudaDeviceGetLimit, QUIET, (size_t * value, int limit), d->cuCtxGetLimit(value, limit), OUT1(value))
RT(cudaDeviceGetPCIBusId, QUIET, (char *text, int len, int at), d->cuDeviceGetPCIBusId(text, len, at), NO_CONTEXT)
RT(cudaDeviceGetAttribute, QUIET, (int *value, int which, int at), d->cuDeviceGetAttribute(value, which, at), NO_CONTEXT,
   OUT1(value))
RT(cudaDriverGetVersion, QUIET, (int *version), d->cuDriverGetVersion(version), NOTHING, OUT1(version))
RT(cudaRuntimeGetVersion, QUIET, (int *version), (*version = SIM_CUDART_VERSION, 0), NOTHING, OUT1(version))
#if SIM_CUDART_MAJOR >= 12
RT(cudaInitDevice, OTHER, (int at, unsigned device_flags, unsigned flags), sim_rt_set_device(at, true), NO_CONTEXT)
#endif

RT(cudaDeviceCanAccessPeer, QUIET, (int *can, int at, int peer), d->cuDeviceCanAccessPeer(can, at, peer), NO_CONTEXT, OUT1(can))
RT(cudaDeviceEnablePeerAccess, QUIET, (int peer, unsigned flags), 0, KIND(NONE))
RT(cudaDeviceDisablePeerAccess, QUIET, (int peer), 0, KIND(NONE))
RT(cudaDeviceGetStreamPriorityRange, QUIET, (int *least, int *greatest), d->cuCtxGetStreamPriorityRange(least, greatest),
   KIND(NONE))
RT(cudaProfilerStart, QUIET, (void), 0, NOTHING)
RT(cudaProfilerStop, QUIET, (void), 0, NOTHING)

enum { PROPERTIES_11 = 728, PROPERTIES_12 = 1032, PROPERTIES_13 = 1008 }; /* sizeof(struct cudaDeviceProp) */
RT(cudaGetDeviceProperties, QUIET, (char *out, int at),
   sim_rt_properties(d, out, SIM_CUDART_MAJOR < 13 ? PROPERTIES_11 : PROPERTIES_13, at), NO_CONTEXT)
#if SIM_CUDART_MAJOR == 12
RT(cudaGetDeviceProperties_v2, QUIET, (char *out, int at), sim_rt_properties(d, out, PROPERTIES_12, at), NO_CONTEXT)
#endif

/* ---- errors: not counted as calls ---- */

int cudaGetLastError(void)
{
	return sim_rt_last_error(true);
}

int cudaPeekAtLastError(void)
{
	return sim_rt_last_error(false);
}

static const char *error_text(int code, bool name)
{
	const char *text = NULL;
	const struct driver *d = sim_rt_driver(false);
	if (d->cuGetErrorName && name)
		d->cuGetErrorName(code, &text);
	else if (d->cuGetErrorString)
		d->cuGetErrorString(code, &text);
	return text ? text : "unrecognized error code";
}

const char *cudaGetErrorString(int code)
{
	return code == 35 ? "CUDA driver version is insufficient for CUDA runtime version" : error_text(code, false);
}

const char *cudaGetErrorName(int code)
{
	return code == 2 ? "cudaErrorMemoryAllocation" : code == 35 ? "cudaErrorInsufficientDriver" : error_text(code, true);
}

/* ---- streams, events, copies, kernels ---- */

RT(cudaStreamCreate, QUIET, (void **out), d->cuStreamCreate(out, 0), OUT1(out))
RT(cudaStreamCreateWithFlags, QUIET, (void **out, unsigned flags), d->cuStreamCreate(out, flags), OUT1(out))
RT(cudaStreamCreateWithPriority, QUIET, (void **out, unsigned flags, int priority),
   d->cuStreamCreateWithPriority(out, flags, priority), OUT1(out))
RT(cudaStreamDestroy, QUIET, (void *stream), d->cuStreamDestroy(stream), KIND(NONE))
RT_STREAM(cudaStreamSynchronize, QUIET, (void *stream), d->cuStreamSynchronize(stream), KIND(NONE))
RT_STREAM(cudaStreamQuery, QUIET, (void *stream), d->cuStreamQuery(stream), KIND(NONE))
RT_STREAM(cudaStreamWaitEvent, QUIET, (void *stream, void *event, unsigned flags), d->cuStreamWaitEvent(stream, event, flags),
	  KIND(NONE))
RT_STREAM(cudaStreamBeginCapture, QUIET, (void *stream, int mode), d->cuStreamBeginCapture(stream, mode), KIND(NONE))
RT_STREAM(cudaStreamEndCapture, QUIET, (void *stream, void **graph), d->cuStreamEndCapture(stream, graph), OUT1(graph))
RT_STREAM(cudaStreamIsCapturing, QUIET, (void *stream, int *status), d->cuStreamIsCapturing(stream, status), OUT1(status))
RT(cudaThreadExchangeStreamCaptureMode, QUIET, (int *mode), d->cuThreadExchangeStreamCaptureMode(mode), KIND(NONE))
#if SIM_CUDART_MAJOR >= 13
RT_STREAM(cudaStreamGetCaptureInfo, QUIET,
	  (void *stream, int *status, unsigned long long *id, void **graph, const void **deps, const void **edges, size_t *n),
	  d->cuStreamGetCaptureInfo(stream, status, id, graph, deps, n), OUT1(status))
#else
RT_STREAM(cudaStreamGetCaptureInfo, QUIET, (void *stream, int *status, unsigned long long *id),
	  d->cuStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL), OUT1(status))
RT_STREAM(cudaStreamGetCaptureInfo_v2, QUIET,
	  (void *stream, int *status, unsigned long long *id, void **graph, const void **deps, size_t *n),
	  d->cuStreamGetCaptureInfo(stream, status, id, graph, deps, n), OUT1(status))
#endif
RT_STREAM(cudaEventRecordWithFlags, QUIET, (void *event, void *stream, unsigned flags), d->cuEventRecord(event, stream), KIND(NONE))
RT(cudaEventCreate, QUIET, (void **out), d->cuEventCreate(out, 0), OUT1(out))
RT(cudaEventCreateWithFlags, QUIET, (void **out, unsigned flags), d->cuEventCreate(out, flags), OUT1(out))
RT(cudaEventDestroy, QUIET, (void *event), d->cuEventDestroy(event), KIND(NONE))
RT_STREAM(cudaEventRecord, QUIET, (void *event, void *stream), d->cuEventRecord(event, stream), KIND(NONE))
RT(cudaEventSynchronize, QUIET, (void *event), d->cuEventSynchronize(event), KIND(NONE))
RT(cudaEventQuery, QUIET, (void *event), d->cuEventQuery(event), KIND(NONE))
RT(cudaEventElapsedTime, QUIET, (float *ms, void *start, void *end), d->cuEventElapsedTime(ms, start, end), OUT1(ms))
RT_COPY(cudaMemcpy, (void *to, const void *from, size_t n, int direction), d->cuMemcpy(to, from, n))
RT_STREAM(cudaMemcpyAsync, QUIET, (void *to, const void *from, size_t n, int direction, void *stream),
	  d->cuMemcpyAsync(to, from, n, stream), KIND(NONE))
RT_COPY(cudaMemset, (void *to, int value, size_t n), d->cuMemsetD8(to, value, n))
RT_STREAM(cudaMemsetAsync, QUIET, (void *to, int value, size_t n, void *stream), d->cuMemsetD8Async(to, value, n, stream),
	  KIND(NONE))

RT(cudaMemAdvise, QUIET, (const void *p, size_t n, int advice, int at), 0, KIND(NONE))
RT_STREAM(cudaMemPrefetchAsync, QUIET, (const void *p, size_t n, int at, void *stream), 0, KIND(NONE))
RT_STREAM(cudaStreamAttachMemAsync, QUIET, (void *stream, void *p, size_t n, unsigned flags), 0, KIND(NONE))

#if SIM_CUDART_MAJOR < 13
RT(cudaMemAdvise_v2, QUIET, (const void *p, size_t n, int advice, int type, int at), 0, KIND(NONE))
RT_STREAM(cudaMemPrefetchAsync_v2, QUIET, (const void *p, size_t n, uint64_t at, unsigned flags, void *stream), 0, KIND(NONE))
#endif

static int copy_rows(const struct driver *d, char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width,
		     size_t height)
{
	int error = 0;

	for (size_t i = 0; i < height && !error; i++)
		error = d->cuMemcpy(to + i * to_pitch, from + i * from_pitch, width);
	return error;
}

RT_COPY(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int direction),
	copy_rows(d, to, to_pitch, from, from_pitch, width, height))
RT_STREAM(cudaMemcpy2DAsync, QUIET,
	  (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int direction,
	   void *stream),
	  copy_rows(d, to, to_pitch, from, from_pitch, width, height), KIND(NONE))
RT(cudaMemcpyPeer, QUIET, (void *to, int there, const void *from, int here, size_t n), d->cuMemcpy(to, from, n), KIND(NONE))
RT(cudaMemcpyPeerAsync, QUIET, (void *to, int there, const void *from, int here, size_t n, void *stream),
   d->cuMemcpyAsync(to, from, n, stream), KIND(NONE))
RT_STREAM(cudaStreamGetFlags, QUIET, (void *stream, unsigned *flags), d->cuStreamGetFlags(stream, flags), OUT1(flags))
RT_STREAM(cudaStreamGetPriority, QUIET, (void *stream, int *priority), d->cuStreamGetPriority(stream, priority), OUT1(priority))
#if SIM_CUDART_MAJOR >= 12
RT_STREAM(cudaStreamGetId, QUIET, (void *stream, unsigned long long *id), d->cuStreamGetId(stream, id), OUT1(id))
RT_STREAM(cudaStreamGetDevice, QUIET, (void *stream, int *at), d->cuStreamGetDevice(stream, at), OUT1(at))
#endif
RT(cudaSetDeviceFlags, QUIET, (unsigned flags), 0, NO_CONTEXT)
RT(cudaFuncSetAttribute, QUIET, (const void *f, int which, int value), 0, KIND(NONE))
RT(cudaFuncSetCacheConfig, QUIET, (const void *f, int config), 0, KIND(NONE))

struct dim3 {
	unsigned x, y, z;
};
RT_STREAM(cudaLaunchKernel, QUIET, (const void *f, struct dim3 grid, struct dim3 block, void **args, size_t shared, void *stream),
	  0, KIND(NONE))
RT_STREAM(cudaLaunchHostFunc, QUIET, (void *stream, void (*f)(void *), void *data), d->cuLaunchHostFunc(stream, f, data),
	  KIND(NONE))

#if SIM_CUDART_MAJOR >= 12
RT(cudaLibraryLoadData, OTHER,
   (void **out, const void *code, void *jit, void **jit_values, unsigned jit_count, void *options, void **values, unsigned count),
   d->cuLibraryLoadData(out, code, jit, jit_values, jit_count, options, values, count), OUT1(out))
RT(cudaLibraryUnload, OTHER, (void *library), d->cuLibraryUnload(library), KIND(NONE))
RT(cudaLibraryGetKernel, OTHER, (void **out, void *library, const char *name), d->cuLibraryGetKernel(out, library, name), OUT1(out))
#endif

/* ---- graphs ---- */

RT(cudaGraphCreate, QUIET, (void **out, unsigned flags), d->cuGraphCreate(out, flags), OUT1(out))
RT(cudaGraphDestroy, OTHER, (void *graph), d->cuGraphDestroy(graph), KIND(NONE))
RT(cudaGraphAddEmptyNode, QUIET, (void **out, void *graph, void *const *deps, size_t n),
   d->cuGraphAddEmptyNode(out, graph, deps, n), OUT1(out))
RT(cudaGraphAddMemAllocNode, ALLOC, (void **out, void *graph, void *const *deps, size_t n, void *params),
   d->cuGraphAddMemAllocNode(out, graph, deps, n, params), KIND(GRAPH), OUT1(out))
RT(cudaGraphAddMemFreeNode, OTHER, (void **out, void *graph, void *const *deps, size_t n, void *p),
   d->cuGraphAddMemFreeNode(out, graph, deps, n, p), KIND(GRAPH), OUT1(out))
#if SIM_CUDART_MAJOR >= 13
RT(cudaGraphAddNode, OTHER, (void **out, void *graph, void *const *deps, const void *edges, size_t n, void *params),
   d->cuGraphAddNode(out, graph, deps, n, params), OUT1(out))
#elif SIM_CUDART_MAJOR == 12
RT(cudaGraphAddNode, OTHER, (void **out, void *graph, void *const *deps, size_t n, void *params),
   d->cuGraphAddNode(out, graph, deps, n, params), OUT1(out))
RT(cudaGraphAddNode_v2, OTHER, (void **out, void *graph, void *const *deps, const void *edges, size_t n, void *params),
   d->cuGraphAddNode(out, graph, deps, n, params), OUT1(out))
#endif
#if SIM_CUDART_MAJOR >= 12
RT(cudaGraphInstantiate, OTHER, (void **out, void *graph, unsigned long long flags),
   d->cuGraphInstantiateWithFlags(out, graph, flags), OUT1(out))
RT_STREAM(cudaGraphInstantiateWithParams, OTHER, (void **out, void *graph, void *params),
	  d->cuGraphInstantiateWithParams(out, graph, params), OUT1(out))
#else
RT(cudaGraphInstantiate, OTHER, (void **out, void *graph, void **bad_node, char *log, size_t size),
   d->cuGraphInstantiateWithFlags(out, graph, 0), OUT1(out))
#endif
RT(cudaGraphInstantiateWithFlags, OTHER, (void **out, void *graph, unsigned long long flags),
   d->cuGraphInstantiateWithFlags(out, graph, flags), OUT1(out))
RT(cudaGraphGetNodes, QUIET, (void *graph, void **nodes, size_t *n), d->cuGraphGetNodes(graph, nodes, n), KIND(NONE))
RT_STREAM(cudaGraphUpload, OTHER, (void *exec, void *stream), d->cuGraphUpload(exec, stream), KIND(NONE))
RT_STREAM(cudaGraphLaunch, OTHER, (void *exec, void *stream), d->cuGraphLaunch(exec, stream), KIND(NONE))
RT(cudaGraphExecDestroy, OTHER, (void *exec), d->cuGraphExecDestroy(exec), KIND(NONE))
RT(cudaDeviceGraphMemTrim, OTHER, (int at), d->cuDeviceGraphMemTrim(at), KIND(NONE))
RT(cudaDeviceGetGraphMemAttribute, QUIET, (int at, int which, void *value), d->cuDeviceGetGraphMemAttribute(at, which, value),
   KIND(NONE))
RT(cudaDeviceSetGraphMemAttribute, QUIET, (int at, int which, void *value), d->cuDeviceSetGraphMemAttribute(at, which, value),
   KIND(NONE))

/* ---- look-ups ---- */

static int entry_point(const char *name, void **out, int version, uint64_t flags, int *status)
{
	*out = sim_rt_ask(name, version, flags);
	if (status)
		*status = *out ? 0 : 1;
	return *out || status ? 0 : SIM_NOT_FOUND;
}

#if SIM_CUDART_MAJOR >= 12
RT_STREAM(cudaGetDriverEntryPoint, QUIET, (const char *name, void **out, unsigned long long flags, int *status),
	  entry_point(name, out, SIM_CUDART_VERSION,
		      flags			 ? flags
		      : d == sim_rt_driver(true) ? 2
						 : 1,
		      status),
	  NO_CONTEXT)
RT_STREAM(cudaGetDriverEntryPointByVersion, QUIET,
	  (const char *name, void **out, unsigned version, unsigned long long flags, int *status),
	  entry_point(name, out, version,
		      flags			 ? flags
		      : d == sim_rt_driver(true) ? 2
						 : 1,
		      status),
	  NO_CONTEXT)
#else
RT_STREAM(cudaGetDriverEntryPoint, QUIET, (const char *name, void **out, unsigned long long flags),
	  entry_point(name, out, SIM_CUDART_VERSION,
		      flags			 ? flags
		      : d == sim_rt_driver(true) ? 2
						 : 1,
		      NULL),
	  NO_CONTEXT)
#endif

/* ---- what nvcc's code calls before main ---- */

void **__cudaRegisterFatBinary(void *binary)
{
	static void *handle[1];
	return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

void __cudaUnregisterFatBinary(void **handle)
{
}

/* Registration says nothing about memory, and no kernel runs. */
#define REGISTRATION(fn)                                                                                                           \
	int fn(void)                                                                                                               \
	{                                                                                                                          \
		return 0;                                                                                                          \
	}
REGISTRATION(__cudaRegisterFunction)
REGISTRATION(__cudaRegisterVar)
REGISTRATION(__cudaRegisterManagedVar)
REGISTRATION(__cudaRegisterHostVar)
REGISTRATION(__cudaRegisterUnifiedTable)
REGISTRATION(__cudaInitModule)
REGISTRATION(__cudaPushCallConfiguration)
REGISTRATION(__cudaPopCallConfiguration)
#if SIM_CUDART_MAJOR >= 13
REGISTRATION(__cudaGetKernel)
REGISTRATION(__cudaLaunchKernel)
#endif
