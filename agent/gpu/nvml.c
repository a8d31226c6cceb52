/* SPDX-License-Identifier: MIT */
#include "agent/gpu/gpu.h"

#include <dlfcn.h>

#include "agent/symbols/symbols.h"
#include "common/now.h"

/* Structures of nvml.h, whose licence does not permit a copy; sizes are part of the interface. */
struct memory_v1 {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct process_v1 {
	unsigned pid;
	unsigned long long bytes;
};
struct process_v2 { /* of _v2 and _v3 */
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct memory_v2) == 40 && sizeof(struct process_v2) == 24, "nvml.h");

#define MEMORY_V2     (sizeof(struct memory_v2) | 2u << 24)
#define NOT_AVAILABLE UINT64_MAX
#define NOT_SUPPORTED 3		    /* the device has no memory of its own */
#define UNINITIALIZED 1		    /* the program has shut NVML down for us too */
#define INVALID	      2		    /* the handle is of before that */
#define AGAIN_NS      1000000000ull /* how often it is begun again at most: the program may go on shutting it down */

static int (*init)(void);
static int (*by_uuid)(const char *, struct sl_nvml_device **);
static int (*by_pci)(const char *, struct sl_nvml_device **);
static int (*memory_v2)(struct sl_nvml_device *, struct memory_v2 *);
static int (*memory_v1)(struct sl_nvml_device *, struct memory_v1 *);
static int (*running)(struct sl_nvml_device *, unsigned *, void *);
static bool running_is_v1;

/* The C library's dlsym: ours would return wrappers that obey --limit. */
static void *symbol(void *library, const char *name)
{
	void *(*real)(void *, const char *) = sl_resolve_dlsym();

	return real ? real(library, name) : NULL;
}

static const char *try_open(void)
{
	void *(*open_library)(const char *, int) = sl_resolve_symbol("dlopen");
	void *library;

	if (!open_library)
		return "the program has no dlopen";
	if (sl_sanitizers_present())
		return "beside a sanitizer or valgrind no library is opened";
	library = open_library("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!library)
		return "libnvidia-ml.so.1 cannot be loaded";
	init = symbol(library, "nvmlInit_v2");
	by_uuid = symbol(library, "nvmlDeviceGetHandleByUUID");
	by_pci = symbol(library, "nvmlDeviceGetHandleByPciBusId_v2");
	memory_v2 = symbol(library, "nvmlDeviceGetMemoryInfo_v2");
	memory_v1 = symbol(library, "nvmlDeviceGetMemoryInfo");
	running = symbol(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!running)
		running = symbol(library, "nvmlDeviceGetComputeRunningProcesses_v2");
	if (!running && (running = symbol(library, "nvmlDeviceGetComputeRunningProcesses")))
		running_is_v1 = true;
	if (!init || !memory_v1)
		return "libnvidia-ml.so.1 lacks what we need";
	return init() ? "nvmlInit failed" : NULL;
}

const char *sl_nvml_open(void)
{
	static bool tried;
	static const char *why;

	if (!tried) {
		sl_objects_use_begin(true);
		why = try_open();
		sl_objects_use_end();
	}
	tried = true;
	return why;
}

struct sl_nvml_device *sl_nvml_find(const char *uuid, const char *pci)
{
	struct sl_nvml_device *device = NULL;

	if (*uuid && by_uuid && !by_uuid(uuid, &device))
		return device;
	/* a MIG instance is not found by PCI id, which names the whole device */
	if (strncmp(uuid, "MIG", 3) && *pci && by_pci && !by_pci(pci, &device))
		return device;
	return NULL;
}

static int read_memory(struct sl_nvml_device *device, struct sl_device_sample *sample)
{
	struct memory_v2 v2 = {.version = MEMORY_V2};
	struct memory_v1 v1;
	int error;

	if (memory_v2 && !memory_v2(device, &v2)) {
		sample->total_bytes = v2.total;
		sample->free_bytes = v2.free;
		sample->used_bytes = v2.used;
		return 0;
	}
	if ((error = memory_v1(device, &v1)))
		return error;
	sample->total_bytes = v1.total;
	sample->free_bytes = v1.free;
	sample->used_bytes = v1.used;
	return 0;
}

static void take(struct sl_device_sample *sample, const void *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct process_v1 *v1 = &((const struct process_v1 *)list)[i];
		const struct process_v2 *v2 = &((const struct process_v2 *)list)[i];
		uint64_t pid = running_is_v1 ? v1->pid : v2->pid, bytes = running_is_v1 ? v1->bytes : v2->bytes;

		if (bytes != NOT_AVAILABLE)
			sl_sample_add(sample, pid, bytes);
	}
}

static void read_processes(struct sl_nvml_device *device, struct sl_device_sample *sample)
{
	static struct process_v2 list[512];
	unsigned count = SL_COUNT(list);

	if (!running || running(device, &count, list) || count > SL_COUNT(list))
		return;
	take(sample, list, count);
	sl_sample_listed(sample);
}

static bool begin_again(void)
{
	static uint64_t begun_ns;
	uint64_t now_ns = sl_now_kernel_ns(CLOCK_MONOTONIC);

	if ((begun_ns && now_ns - begun_ns < AGAIN_NS) || !sl_file_has_standard()) /* its files would get those numbers */
		return false;
	begun_ns = now_ns;
	return !init();
}

bool sl_nvml_sample(struct sl_nvml_device **device, const char *uuid, const char *pci, struct sl_device_sample *sample)
{
	struct sl_nvml_device *found;
	int error;

	memset(sample, 0, sizeof(*sample));
	error = read_memory(*device, sample);
	if (((error == UNINITIALIZED && begin_again()) || error == INVALID) && (found = sl_nvml_find(uuid, pci))) {
		*device = found;
		error = read_memory(found, sample);
	}
	if (error && error != NOT_SUPPORTED)
		return false;
	read_processes(*device, sample);
	return true;
}
