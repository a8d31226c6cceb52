/* SPDX-License-Identifier: MIT */
/*
 * The simulated HIP runtime. As AMD's it is not linked -Bsymbolic: hipMallocHost and others call older exported functions
 * through the PLT, so a tracer sees the call twice. Plain allocations call hsa_amd_memory_pool_allocate through the PLT,
 * too. The bookkeeping in libhsa-runtime64.so.1 does the rest.
 */
#include "cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { POOL_DEVICE = 0x100, POOL_FINE_HOST = 0x200, POOL_MANAGED = 0x300 };
enum { HIP_NO_DEVICE = 100, HSA_OUT_OF_RESOURCES = 0x1008 };

int hsa_init(void);
int hsa_amd_memory_pool_allocate(uint64_t pool, size_t bytes, uint32_t flags, void **out);
int hsa_amd_memory_pool_free(void *p);
void *sim_hsa_lookup(const char *name, int version, uint64_t flags);

static struct driver d;
static const struct sim_table *journal;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *primary[SIM_MAX_DEVICES];
static __thread int last_error, device;

static void load(void)
{
#define DRIVER(name, version, params) d.name = sim_hsa_lookup(#name, version, 0);
#include "cudart_driver.def"
#undef DRIVER
	d.cuGetExportTable((const void **)&journal, sim_journal_uuid);
}

static int initialize(void)
{
	static bool done;
	int error = __atomic_load_n(&done, __ATOMIC_ACQUIRE) ? 0 : d.cuInit(0);
	if (!error)
		__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	return error;
}

static int ensure_context(void)
{
	void *current = NULL;
	int error = 0;
	if (!d.cuCtxGetCurrent(&current) && current && current == primary[device])
		return 0;
	pthread_mutex_lock(&lock);
	if (!primary[device] && (error = d.cuDevicePrimaryCtxRetain(&primary[device], device)))
		primary[device] = NULL;
	pthread_mutex_unlock(&lock);
	return error ? error : d.cuCtxSetCurrent(primary[device]);
}

static int begin(struct sim_call *call)
{
	pthread_once(&loaded, load);
	if (call->api->verb == SIM_ALLOC)
		call->device = device;
	journal->open(call);
	if (!call->result)
		call->result = initialize();
	if (!call->result && !call->needs)
		call->result = ensure_context();
	return call->result;
}

static int end(struct sim_call *call, int result)
{
	if (result)
		last_error = result;
	return journal->close(call, result);
}

#define HIP(fn, api_verb, params, expression, ...)                                                                                 \
	int fn params                                                                                                              \
	{                                                                                                                          \
		static struct sim_api api = {.name = #fn, .verb = SIM_##api_verb, .level = SIM_RUNTIME};                           \
		struct sim_call call = {.api = &api, .device = -1, __VA_ARGS__};                                                   \
		return end(&call, begin(&call) ? call.result : (expression));                                                      \
	}
#define SIZE(n)	   .bytes = (n)
#define KIND(k)	   .kind = SIM_KIND_##k
#define OUT1(p)	   .out = {SIM_OUT(p)}
#define NO_CONTEXT .needs = 1

static int from_pool(int pool, void **out, size_t bytes)
{
	if (!out)
		return SIM_INVALID_VALUE;
	*out = NULL;
	if (!bytes)
		return SIM_OK;
	int status = hsa_amd_memory_pool_allocate(pool, bytes, 0, out);
	return !status ? SIM_OK : status == HSA_OUT_OF_RESOURCES ? SIM_OUT_OF_MEMORY : SIM_INVALID_VALUE;
}

/* HSA does not know stream-ordered memory, which has a pool (attribute 17). */
static int give_back(void *p)
{
	if (!p)
		return SIM_OK;
	void *pool = NULL;
	if (!d.cuPointerGetAttribute(&pool, 17, p) && pool)
		return d.cuMemFree(p);
	return hsa_amd_memory_pool_free(p) ? SIM_INVALID_VALUE : SIM_OK;
}

HIP(hipMalloc, ALLOC, (void **p, size_t n), from_pool(POOL_DEVICE | device, p, n), SIZE(n), KIND(DEVICE), OUT1(p))
HIP(hipExtMallocWithFlags, ALLOC, (void **p, size_t n, unsigned flags), from_pool(POOL_DEVICE | device, p, n), SIZE(n),
    KIND(DEVICE), OUT1(p))
HIP(hipMallocManaged, ALLOC, (void **p, size_t n, unsigned flags), from_pool(POOL_MANAGED | device, p, n), SIZE(n), KIND(MANAGED),
    OUT1(p))
HIP(hipHostMalloc, ALLOC, (void **p, size_t n, unsigned flags), from_pool(POOL_FINE_HOST, p, n), SIZE(n), KIND(HOST_PINNED),
    OUT1(p))
HIP(hipFree, FREE, (void *p), give_back(p), .address = (uintptr_t)p)
HIP(hipHostFree, FREE, (void *p), give_back(p), KIND(HOST_PINNED), .address = (uintptr_t)p)

/* These call other exported functions through the PLT. */
HIP(hipMallocHost, ALLOC, (void **p, size_t n), hipHostMalloc(p, n, 0), SIZE(n), KIND(HOST_PINNED), OUT1(p))
HIP(hipHostAlloc, ALLOC, (void **p, size_t n, unsigned flags), hipHostMalloc(p, n, flags), SIZE(n), KIND(HOST_PINNED), OUT1(p))
HIP(hipMemAllocHost, ALLOC, (void **p, size_t n), hipHostMalloc(p, n, 0), SIZE(n), KIND(HOST_PINNED), OUT1(p))
HIP(hipFreeHost, FREE, (void *p), hipHostFree(p), KIND(HOST_PINNED), .address = (uintptr_t)p)

static int pitched(void **p, size_t *pitch, size_t width, size_t height)
{
	size_t row = (width + 511) / 512 * 512;
	int error = pitch ? from_pool(POOL_DEVICE | device, p, row * height) : SIM_INVALID_VALUE;
	if (!error)
		*pitch = row;
	return error;
}
HIP(hipMallocPitch, ALLOC, (void **p, size_t *pitch, size_t width, size_t height), pitched(p, pitch, width, height),
    SIZE(width *height), KIND(DEVICE), .out = {SIM_OUT(p), SIM_OUT(pitch)})
HIP(hipMemAllocPitch, ALLOC, (void **p, size_t *pitch, size_t width, size_t height, unsigned element),
    hipMallocPitch(p, pitch, width, height), SIZE(width *height), KIND(DEVICE), .out = {SIM_OUT(p), SIM_OUT(pitch)})

struct dim3 {
	unsigned x, y, z;
};

struct extent {
	size_t width, height, depth;
};
struct pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};
static int malloc3d(struct pitched *out, struct extent e)
{
	out->xsize = e.width;
	out->ysize = e.height;
	return pitched(&out->ptr, &out->pitch, e.width, e.height * e.depth);
}
HIP(hipMalloc3D, ALLOC, (struct pitched * out, struct extent e), malloc3d(out, e), SIZE(e.width *e.height *e.depth), KIND(DEVICE),
    OUT1(out))

HIP(hipHostRegister, ALLOC, (void *p, size_t n, unsigned flags), d.cuMemHostRegister(p, n, flags), SIZE(n), KIND(HOST_REGISTERED),
    .address = (uintptr_t)p)
HIP(hipHostUnregister, FREE, (void *p), d.cuMemHostUnregister(p), KIND(HOST_REGISTERED), .address = (uintptr_t)p)
HIP(hipMemGetInfo, QUIET, (size_t * free_bytes, size_t *total), d.cuMemGetInfo(free_bytes, total), KIND(NONE))

HIP(hipMallocAsync, ALLOC, (void **p, size_t n, void *s), d.cuMemAllocAsync(p, n, s), SIZE(n), KIND(POOL), OUT1(p))
HIP(hipMallocFromPoolAsync, ALLOC, (void **p, size_t n, void *pool, void *s), d.cuMemAllocFromPoolAsync(p, n, pool, s), SIZE(n),
    KIND(POOL), OUT1(p))
HIP(hipFreeAsync, FREE, (void *p, void *s), p ? d.cuMemFreeAsync(p, s) : 0, KIND(POOL), .address = (uintptr_t)p)
HIP(hipMemPoolCreate, OTHER, (void **pool, const void *props), d.cuMemPoolCreate(pool, props), OUT1(pool))
HIP(hipMemPoolDestroy, OTHER, (void *pool), d.cuMemPoolDestroy(pool), KIND(NONE))
HIP(hipMemPoolTrimTo, OTHER, (void *pool, size_t keep), d.cuMemPoolTrimTo(pool, keep), SIZE(keep))
HIP(hipMemPoolSetAttribute, OTHER, (void *pool, int which, void *v), d.cuMemPoolSetAttribute(pool, which, v), KIND(NONE))
HIP(hipMemPoolGetAttribute, QUIET, (void *pool, int which, void *v), d.cuMemPoolGetAttribute(pool, which, v), KIND(NONE))
HIP(hipDeviceGetDefaultMemPool, QUIET, (void **pool, int at), d.cuDeviceGetDefaultMemPool(pool, at), OUT1(pool))
HIP(hipDeviceGetMemPool, QUIET, (void **pool, int at), d.cuDeviceGetMemPool(pool, at), OUT1(pool))
HIP(hipDeviceSetMemPool, OTHER, (int at, void *pool), d.cuDeviceSetMemPool(at, pool), KIND(NONE))

/* Calls with CUDA's arguments. The CUDA function is looked up by name at first use. */
#define LOOKED_UP(fn, api_verb, params, args, cuda, version, ...)                                                                  \
	static int cuda##_below params                                                                                             \
	{                                                                                                                          \
		static int(*below) params;                                                                                         \
		if (!below)                                                                                                        \
			below = sim_hsa_lookup(#cuda, version, 0);                                                                 \
		return below args;                                                                                                 \
	}                                                                                                                          \
	HIP(fn, api_verb, params, cuda##_below args, __VA_ARGS__)

LOOKED_UP(hipMemCreate, ALLOC, (void **out, size_t n, const void *prop, unsigned long long flags), (out, n, prop, flags),
	  cuMemCreate, 10020, SIZE(n), KIND(VMM), OUT1(out))
LOOKED_UP(hipMemRelease, FREE, (void *handle), (handle), cuMemRelease, 10020, KIND(VMM), .address = (uintptr_t)handle)
LOOKED_UP(hipMemAddressReserve, OTHER, (void **out, size_t n, size_t align, void *wish, unsigned long long flags),
	  (out, n, align, wish, flags), cuMemAddressReserve, 10020, SIZE(n), OUT1(out))
LOOKED_UP(hipMemAddressFree, OTHER, (void *p, size_t n), (p, n), cuMemAddressFree, 10020, SIZE(n))
LOOKED_UP(hipMemMap, OTHER, (void *p, size_t n, size_t offset, void *handle, unsigned long long flags),
	  (p, n, offset, handle, flags), cuMemMap, 10020, SIZE(n))
LOOKED_UP(hipMemUnmap, OTHER, (void *p, size_t n), (p, n), cuMemUnmap, 10020, SIZE(n))
LOOKED_UP(hipMemSetAccess, OTHER, (void *p, size_t n, const void *desc, size_t count), (p, n, desc, count), cuMemSetAccess, 10020,
	  SIZE(n))
LOOKED_UP(hipMemRetainAllocationHandle, OTHER, (void **out, void *p), (out, p), cuMemRetainAllocationHandle, 11000, OUT1(out))
LOOKED_UP(hipMemGetAllocationGranularity, QUIET, (size_t * out, const void *prop, int option), (out, prop, option),
	  cuMemGetAllocationGranularity, 10020, OUT1(out))
LOOKED_UP(hipArrayCreate, ALLOC, (void **out, const void *desc), (out, desc), cuArrayCreate, 3020, KIND(ARRAY), OUT1(out))
LOOKED_UP(hipArray3DCreate, ALLOC, (void **out, const void *desc), (out, desc), cuArray3DCreate, 3020, KIND(ARRAY), OUT1(out))
LOOKED_UP(hipArrayDestroy, FREE, (void *array), (array), cuArrayDestroy, 2000, KIND(ARRAY), .address = (uintptr_t)array)
LOOKED_UP(hipIpcGetMemHandle, OTHER, (void *handle, void *p), (handle, p), cuIpcGetMemHandle, 4010, KIND(NONE))
LOOKED_UP(hipIpcOpenMemHandle, ALLOC, (void **out, struct ipc_handle handle, unsigned flags), (out, handle, flags),
	  cuIpcOpenMemHandle, 11000, KIND(IMPORTED), OUT1(out))
LOOKED_UP(hipIpcCloseMemHandle, FREE, (void *p), (p), cuIpcCloseMemHandle, 4010, KIND(IMPORTED), .address = (uintptr_t)p)

HIP(hipGraphicsGLRegisterBuffer, OTHER, (void **out, unsigned buffer, unsigned flags),
    d.cuGraphicsGLRegisterBuffer(out, buffer, flags), OUT1(out))
HIP(hipGraphicsMapResources, OTHER, (int n, void **resources, void *s), d.cuGraphicsMapResources(n, resources, s), KIND(NONE))
HIP(hipGraphicsUnmapResources, OTHER, (int n, void **resources, void *s), d.cuGraphicsUnmapResources(n, resources, s), KIND(NONE))
HIP(hipGraphicsResourceGetMappedPointer, OTHER, (void **out, size_t *n, void *resource),
    d.cuGraphicsResourceGetMappedPointer(out, n, resource), .out = {SIM_OUT(out), SIM_OUT(n)})
HIP(hipGraphicsUnregisterResource, OTHER, (void *resource), d.cuGraphicsUnregisterResource(resource), KIND(NONE))

struct channels {
	int x, y, z, w, kind;
};
static int make_array(void **out, const struct channels *c, size_t width, size_t height, unsigned flags)
{
	struct {
		size_t width, height;
		unsigned format, channels;
	} desc = {width, height, c->x == 8 ? 1 : c->x == 16 ? 2 : 3, (c->x > 0) + (c->y > 0) + (c->z > 0) + (c->w > 0)};
	return d.cuArrayCreate(out, &desc);
}
HIP(hipMallocArray, ALLOC, (void **out, const struct channels *c, size_t width, size_t height, unsigned flags),
    make_array(out, c, width, height, flags), KIND(ARRAY), OUT1(out))
HIP(hipFreeArray, FREE, (void *array), array ? d.cuArrayDestroy(array) : 0, KIND(ARRAY), .address = (uintptr_t)array)

/* ---- devices, errors, streams ---- */

static int set_device(int at)
{
	int count = 0, error = d.cuDeviceGetCount(&count);
	if (error || at < 0 || at >= count)
		return error ? error : SIM_INVALID_DEVICE;
	device = at;
	return d.cuCtxSetCurrent(primary[at]);
}

static int reset(void)
{
	int error = d.cuDevicePrimaryCtxReset(device);
	pthread_mutex_lock(&lock);
	bool held = primary[device] != NULL;
	primary[device] = NULL;
	pthread_mutex_unlock(&lock);
	if (held)
		d.cuDevicePrimaryCtxRelease(device);
	d.cuCtxSetCurrent(NULL);
	return error;
}

HIP(hipInit, OTHER, (unsigned flags), flags ? SIM_INVALID_VALUE : SIM_OK, NO_CONTEXT)
HIP(hipSetDevice, OTHER, (int at), set_device(at), NO_CONTEXT, .other = (unsigned)at)
HIP(hipGetDevice, QUIET, (int *at), (*at = device, 0), NO_CONTEXT)
HIP(hipGetDeviceCount, QUIET, (int *count), d.cuDeviceGetCount(count), NO_CONTEXT)
HIP(hipDeviceReset, OTHER, (void), reset(), NO_CONTEXT)
HIP(hipDeviceSynchronize, QUIET, (void), d.cuCtxSynchronize(), KIND(NONE))
HIP(hipDeviceTotalMem, QUIET, (size_t * bytes, int at), d.cuDeviceTotalMem(bytes, at), NO_CONTEXT)
HIP(hipDeviceGetName, QUIET, (char *name, int len, int at), d.cuDeviceGetName(name, len, at), NO_CONTEXT)
HIP(hipDeviceGetPCIBusId, QUIET, (char *text, int len, int at), d.cuDeviceGetPCIBusId(text, len, at), NO_CONTEXT)
HIP(hipDeviceGetUuid, QUIET, (void *uuid, int at), d.cuDeviceGetUuid(uuid, at), NO_CONTEXT)
HIP(hipDeviceGetAttribute, QUIET, (int *value, int which, int at), d.cuDeviceGetAttribute(value, which == 16 ? 18 : 0, at),
    NO_CONTEXT)
HIP(hipRuntimeGetVersion, QUIET, (int *version), (*version = SIM_HIP_VERSION, 0), NO_CONTEXT)
HIP(hipDriverGetVersion, QUIET, (int *version), (*version = SIM_HIP_VERSION, 0), NO_CONTEXT)
HIP(hipStreamCreate, QUIET, (void **out), d.cuStreamCreate(out, 0), OUT1(out))
HIP(hipStreamCreateWithFlags, QUIET, (void **out, unsigned flags), d.cuStreamCreate(out, flags), OUT1(out))
HIP(hipStreamDestroy, QUIET, (void *s), d.cuStreamDestroy(s), KIND(NONE))
HIP(hipStreamSynchronize, QUIET, (void *s), d.cuStreamSynchronize(s), KIND(NONE))
HIP(hipMemcpy, QUIET, (void *to, const void *from, size_t n, int way), d.cuMemcpy(to, from, n), KIND(NONE))
HIP(hipMemset, QUIET, (void *to, int value, size_t n), d.cuMemsetD8(to, value, n), KIND(NONE))
HIP(hipMemsetAsync, QUIET, (void *to, int value, size_t n, void *s), d.cuMemsetD8(to, value, n), KIND(NONE))
HIP(hipMemcpyHtoD, QUIET, (void *to, void *from, size_t n), d.cuMemcpy(to, from, n), KIND(NONE))
HIP(hipLaunchKernel, QUIET, (const void *f, struct dim3 grid, struct dim3 block, void **args, size_t n, void *s), 0, KIND(NONE))
HIP(hipModuleLaunchKernel, QUIET,
    (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned n, void *s, void **args,
     void **extra),
    0, KIND(NONE))

int hipGetLastError(void)
{
	int error = last_error;
	last_error = 0;
	return error;
}

int hipPeekAtLastError(void)
{
	return last_error;
}

const char *hipGetErrorString(int code)
{
	const char *text = NULL;
	pthread_once(&loaded, load);
	d.cuGetErrorString(code, &text);
	return text ? text : "unrecognized error code";
}

const char *hipGetErrorName(int code)
{
	return code == 0 ? "hipSuccess" : code == 2 ? "hipErrorOutOfMemory" : code == 100 ? "hipErrorNoDevice" : "hipErrorUnknown";
}

#if SIM_HIP_MAJOR >= 6
/* Looks in this library only; the version is ignored. */
int hipGetProcAddress(const char *name, void **out, int version, uint64_t flags, int *status)
{
	void *self = dlopen("libamdhip64.so." SIM_HIP_MAJOR_TEXT, RTLD_NOLOAD | RTLD_LAZY);
	*out = self && name ? dlsym(self, name) : NULL;
	if (status)
		*status = *out ? 0 : 1;
	return *out ? SIM_OK : SIM_INVALID_VALUE;
}
#endif
