/* SPDX-License-Identifier: MIT */
#include "analyzer/machine/machine.h"

#include <dlfcn.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "common/base.h"

/* ---- NVML, copied from nvml.h; sizes are part of the interface */

struct memory_v1 {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
#define NOT_SUPPORTED 3
#define MEMORY_V2     (sizeof(struct memory_v2) | 2u << 24)
_Static_assert(sizeof(struct memory_v2) == 40, "nvml.h");

static struct {
	int (*init)(void);
	int (*count)(unsigned *);
	int (*by_index)(unsigned, void **);
	int (*uuid)(void *, char *, unsigned);
	int (*memory_v1)(void *, struct memory_v1 *);
	int (*memory_v2)(void *, struct memory_v2 *);
	int (*mig)(void *, unsigned *, unsigned *);
	int (*driver)(char *, unsigned);
	int (*cuda)(int *);
} nvml;

static const struct {
	const char *name;
	void *place; /* address of the pointer */
	bool needed;
} nvml_calls[] = {
	{"nvmlInit_v2", &nvml.init, true},
	{"nvmlDeviceGetCount_v2", &nvml.count, true},
	{"nvmlDeviceGetHandleByIndex_v2", &nvml.by_index, true},
	{"nvmlDeviceGetUUID", &nvml.uuid, true},
	{"nvmlDeviceGetMemoryInfo", &nvml.memory_v1, true},
	{"nvmlDeviceGetMemoryInfo_v2", &nvml.memory_v2, false},
	{"nvmlDeviceGetMigMode", &nvml.mig, false},
	{"nvmlSystemGetDriverVersion", &nvml.driver, false},
	{"nvmlSystemGetCudaDriverVersion_v2", &nvml.cuda, false},
};

static bool open_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		return false;
	for (size_t i = 0; i < SL_COUNT(nvml_calls); i++) {
		void *call = dlsym(library, nvml_calls[i].name);

		if (!call && nvml_calls[i].needed)
			return false;
		memcpy(nvml_calls[i].place, &call, sizeof(call));
	}
	return !nvml.init();
}

/* NVML refuses the memory of a device that has none of its own (GB10, Jetson). */
static void shared_memory(struct sl_machine_device *device)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t total = 0, available = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "MemTotal: %" SCNu64, &total);
		sscanf(line, "MemAvailable: %" SCNu64, &available);
	}
	if (file)
		fclose(file);
	if (!total || available > total)
		return;
	device->total_bytes = total << 10;
	device->used_bytes = (total - available) << 10;
}

static void nvidia_memory(struct sl_machine_device *device)
{
	struct memory_v2 v2 = {.version = MEMORY_V2};
	struct memory_v1 v1;
	void *handle;
	int error;

	device->total_bytes = device->used_bytes = SL_MACHINE_UNKNOWN;
	if (nvml.by_index(device->index, &handle))
		return;
	if (nvml.memory_v2 && !nvml.memory_v2(handle, &v2)) {
		device->total_bytes = v2.total;
		device->used_bytes = v2.used;
	} else if (!(error = nvml.memory_v1(handle, &v1))) {
		device->total_bytes = v1.total;
		device->used_bytes = v1.used;
	} else if (error == NOT_SUPPORTED && !device->mig) {
		shared_memory(device);
	}
}

static void add_nvidia(struct sl_machine *machine)
{
	unsigned count = 0, mig = 0, pending;
	int cuda = 0;

	if (!open_nvml() || nvml.count(&count))
		return;
	if (nvml.driver)
		nvml.driver(machine->nvidia_driver, sizeof(machine->nvidia_driver));
	if (nvml.cuda && !nvml.cuda(&cuda))
		snprintf(machine->cuda, sizeof(machine->cuda), "%d.%d", cuda / 1000, cuda % 1000 / 10);
	for (unsigned i = 0; i < count; i++) {
		struct sl_machine_device device = {.family = "cuda", .index = i};
		void *handle;

		if (nvml.by_index(i, &handle))
			continue;
		nvml.uuid(handle, device.uuid, sizeof(device.uuid));
		device.mig = nvml.mig && !nvml.mig(handle, &mig, &pending) && mig;
		nvidia_memory(&device);
		*SL_PUSH(&machine->devices) = device;
	}
}

/* ---- amdgpu */

static bool read_line(const char *folder, const char *name, char *line, size_t size)
{
	char path[PATH_MAX];
	FILE *file;
	bool read;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	read = file && fgets(line, (int)size, file);
	if (file)
		fclose(file);
	line[read ? strcspn(line, "\n") : 0] = 0;
	return read;
}

static uint64_t read_number(const char *folder, const char *name)
{
	char line[64];

	return read_line(folder, name, line, sizeof(line)) ? strtoull(line, NULL, 10) : SL_MACHINE_UNKNOWN;
}

static void amd_memory(struct sl_machine_device *device)
{
	char folder[64];

	snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s", device->pci);
	device->total_bytes = read_number(folder, "mem_info_vram_total");
	device->used_bytes = read_number(folder, "mem_info_vram_used");
}

static void add_amd(struct sl_machine *machine)
{
	unsigned index = 0;
	glob_t found;

	if (glob("/sys/bus/pci/drivers/amdgpu/????:??:??.?", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct sl_machine_device device = {.family = "hip", .index = index};

		snprintf(device.pci, sizeof(device.pci), "%s", strrchr(found.gl_pathv[i], '/') + 1);
		read_line(found.gl_pathv[i], "unique_id", device.uuid, sizeof(device.uuid));
		amd_memory(&device);
		if (device.total_bytes == SL_MACHINE_UNKNOWN)
			continue; /* drives no display and computes nothing */
		index++;
		*SL_PUSH(&machine->devices) = device;
	}
	globfree(&found);
}

void sl_machine_look(struct sl_machine *machine)
{
	*machine = (struct sl_machine){0};
	add_nvidia(machine);
	add_amd(machine);
}

void sl_machine_look_again(struct sl_machine *machine)
{
	for (size_t i = 0; i < machine->devices.count; i++)
		(machine->devices.item[i].family[0] == 'c' ? nvidia_memory : amd_memory)(&machine->devices.item[i]);
}

void sl_machine_free(struct sl_machine *machine)
{
	free(machine->devices.item);
	*machine = (struct sl_machine){0};
}
