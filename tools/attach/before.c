/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <dlfcn.h>

struct device;
struct process { /* The layout of _v2 and _v3.  Drivers before 11 have only the plain call, which is not asked. */
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};

#define PROCESSES     1024
#define NOT_AVAILABLE UINT64_MAX

static int (*init)(void), (*count_of)(unsigned *), (*by_index)(unsigned, struct device **),
	(*running)(struct device *, unsigned *, struct process *);

static bool open_nvml(void)
{
	static bool tried;
	void *library = tried ? NULL : dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);

	tried = true;
	if (!library)
		return running != NULL;
	init = (__typeof__(init))dlsym(library, "nvmlInit_v2");
	count_of = (__typeof__(count_of))dlsym(library, "nvmlDeviceGetCount_v2");
	by_index = (__typeof__(by_index))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	running = (__typeof__(running))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!running)
		running = (__typeof__(running))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
	if (!init || !count_of || !by_index || init())
		running = NULL;
	return running != NULL;
}

bool sl_before_bytes(long pid, uint64_t *bytes)
{
	static struct process list[PROCESSES];
	unsigned devices = 0;
	bool known = false;

	*bytes = 0;
	if (!open_nvml() || count_of(&devices))
		return false;
	for (unsigned d = 0; d < devices; d++) {
		unsigned count = PROCESSES;
		struct device *device;

		if (by_index(d, &device) || running(device, &count, list) || count > PROCESSES)
			continue;
		for (unsigned i = 0; i < count; i++)
			if (list[i].pid == (unsigned long)pid && list[i].bytes != NOT_AVAILABLE) {
				*bytes += list[i].bytes;
				known = true;
			}
	}
	return known;
}
