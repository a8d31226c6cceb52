/* SPDX-License-Identifier: MIT */
/*
 * The simulated CUDA runtime, built once per major version and once as a static archive. It reaches the driver as
 * NVIDIA's does: dlopen("libcuda.so.1"), dlsym of cuGetProcAddress (of _v2 since CUDA 12), and every other function
 * by name and version through that. Its functions do not call each other by their exported names.
 */
#include "sim.h"
#include "cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { INSUFFICIENT_DRIVER = 35 };

static struct driver drivers[2]; /* legacy and per-thread default stream */
static const struct sim_table *journal;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static int load_error;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *primary[SIM_MAX_DEVICES]; /* retained by this runtime */
static bool initialized;
static __thread int last_error, device;

typedef int get_v1(const char *, void **, int, uint64_t);
typedef int get_v2(const char *, void **, int, uint64_t, int *);
static get_v1 *get1;
static get_v2 *get2;

/* CUDA 11 has the first form only; since CUDA 12 a missing name gives a status instead of an error. */
static void *ask(const char *name, int version, uint64_t flags)
{
	void *function = NULL;
	int status = 0;
	int error = get2 ? get2(name, &function, version, flags, &status) : get1(name, &function, version, flags);
	return error || status ? NULL : function;
}

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	load_error = INSUFFICIENT_DRIVER;
	if (!library)
		return;
	if (SIM_CUDART_MAJOR >= 12)
		get2 = (get_v2 *)dlsym(library, "cuGetProcAddress_v2");
	else
		get1 = (get_v1 *)dlsym(library, "cuGetProcAddress");
	if (!get1 && !get2)
		return;
	ask("", 2000, 0); /* NVIDIA's first question is the empty name */
	for (int flags = 0; flags < 2; flags++) {
		struct driver *d = &drivers[flags];
#define DRIVER(name, version, params) d->name = ask(#name, version, flags ? 2 : 0);
#include "cudart_driver.def"
#undef DRIVER
	}
	/* Asked for again: a tracer may wrap the answers, and programs get these functions from the runtime. */
	ask("cuGetProcAddress", 11030, 0);
	ask("cuGetProcAddress", 12000, 0);
	ask("cuIpcOpenMemHandle", 11000, 0);
	ask("cuGraphAddNode", 12030, 0);
	int version = 0;
	if (!drivers[0].cuInit || drivers[0].cuDriverGetVersion(&version) || version / 1000 < SIM_CUDART_MAJOR)
		return;
	if (drivers[0].cuGetExportTable((const void **)&journal, sim_journal_uuid))
		journal = NULL;
	load_error = 0;
}

const struct driver *sim_rt_driver(bool per_thread)
{
	return &drivers[per_thread];
}

static int retain(int ordinal, void **ctx)
{
	int error = 0;
	pthread_mutex_lock(&lock);
	if (!primary[ordinal])
		error = drivers[0].cuDevicePrimaryCtxRetain(&primary[ordinal], ordinal);
	if (error)
		primary[ordinal] = NULL;
	*ctx = primary[ordinal];
	pthread_mutex_unlock(&lock);
	return error;
}

int sim_rt_init(void)
{
	if (__atomic_load_n(&initialized, __ATOMIC_ACQUIRE))
		return 0;
	int error = drivers[0].cuInit(0);
	if (!error)
		__atomic_store_n(&initialized, true, __ATOMIC_RELEASE);
	return error;
}

/* A context the program made current itself is used; otherwise the device's primary one is. */
static int ensure_context(void)
{
	void *current = NULL, *ctx = NULL;
	int ordinal = device, error = sim_rt_init();
	if (error)
		return error;
	if ((error = drivers[0].cuCtxGetCurrent(&current)))
		return error;
	bool ours = current == NULL;
	for (int d = 0; d < SIM_MAX_DEVICES && current; d++)
		if (primary[d] == current)
			return 0;
	if (current) { /* the program's, or a primary one from before a reset */
		int active = 0, at = -1;
		if (!drivers[0].cuCtxGetDevice(&at))
			return 0;
		ours = !drivers[0].cuDevicePrimaryCtxGetState(ordinal, NULL, &active) && !active;
	}
	if (!ours)
		return 0;
	if (!(error = retain(ordinal, &ctx)))
		error = drivers[0].cuCtxSetCurrent(ctx);
	return error;
}

int sim_rt_begin(struct sim_call *call)
{
	pthread_once(&loaded, load);
	call->result = load_error;
	if (call->api->verb == SIM_ALLOC)
		call->device = device; /* in case the call fails before it reaches the driver */
	if (journal)
		journal->open(call);
	if (!call->result && call->needs < 2)
		call->result = call->needs ? sim_rt_init() : ensure_context();
	return call->result;
}

int sim_rt_end(struct sim_call *call, int result)
{
	if (result)
		last_error = result;
	return journal ? journal->close(call, result) : result;
}

int sim_rt_last_error(bool clear)
{
	int error = last_error;
	if (clear)
		last_error = 0;
	return error;
}

int sim_rt_device(void)
{
	int at = device;
	void *current = NULL;
	if (initialized && !drivers[0].cuCtxGetCurrent(&current) && current)
		drivers[0].cuCtxGetDevice(&at);
	return at;
}

int sim_rt_set_device(int ordinal, bool make_context)
{
	int count = 0, error = sim_rt_init();
	void *ctx = NULL;
	if (error || (error = drivers[0].cuDeviceGetCount(&count)))
		return error;
	if (ordinal < 0 || ordinal >= count)
		return SIM_INVALID_DEVICE;
	device = ordinal;
	if (make_context || primary[ordinal]) {
		if ((error = retain(ordinal, &ctx)))
			return error;
		return drivers[0].cuCtxSetCurrent(ctx);
	}
	return drivers[0].cuCtxSetCurrent(NULL);
}

int sim_rt_reset(void)
{
	int ordinal = sim_rt_device(), error = sim_rt_init();
	if (error || (error = drivers[0].cuDevicePrimaryCtxReset(ordinal)))
		return error;
	pthread_mutex_lock(&lock);
	bool held = primary[ordinal] != NULL;
	primary[ordinal] = NULL;
	pthread_mutex_unlock(&lock);
	if (held)
		drivers[0].cuDevicePrimaryCtxRelease(ordinal);
	return drivers[0].cuCtxSetCurrent(NULL);
}

void *sim_rt_ask(const char *name, int version, uint64_t flags)
{
	return ask(name, version, flags);
}
