/* SPDX-License-Identifier: MIT */
#include "analyzer/machine/machine.h"

#include <ctype.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/below.h"

/* ---- NVML, copied from nvml.h; sizes are part of the interface */

struct memory_v1 {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct pci {
	char old[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};
#define NOT_SUPPORTED 3
#define MEMORY_V2     (sizeof(struct memory_v2) | 2u << 24)
_Static_assert(sizeof(struct memory_v2) == 40 && sizeof(struct pci) == 68, "nvml.h");

static struct {
	int (*init)(void);
	int (*count)(unsigned *);
	int (*by_index)(unsigned, void **);
	int (*name)(void *, char *, unsigned);
	int (*uuid)(void *, char *, unsigned);
	int (*pci)(void *, struct pci *);
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
	{"nvmlDeviceGetName", &nvml.name, true},
	{"nvmlDeviceGetUUID", &nvml.uuid, true},
	{"nvmlDeviceGetMemoryInfo", &nvml.memory_v1, true},
	{"nvmlDeviceGetMemoryInfo_v2", &nvml.memory_v2, false},
	{"nvmlDeviceGetPciInfo_v3", &nvml.pci, false},
	{"nvmlDeviceGetMigMode", &nvml.mig, false},
	{"nvmlSystemGetDriverVersion", &nvml.driver, false},
	{"nvmlSystemGetCudaDriverVersion_v2", &nvml.cuda, false},
};

/* Why NVML does not answer; NULL: it does. */
static const char *open_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		return "libnvidia-ml.so.1 cannot be loaded";
	for (size_t i = 0; i < SL_COUNT(nvml_calls); i++) {
		void *call = dlsym(library, nvml_calls[i].name);

		if (!call && nvml_calls[i].needed)
			return "libnvidia-ml.so.1 lacks what we need";
		memcpy(nvml_calls[i].place, &call, sizeof(call));
	}
	return nvml.init() ? "nvmlInit failed: is the driver loaded?" : NULL;
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
	device->shares_host = true;
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

	machine->no_nvml = open_nvml();
	if (machine->no_nvml || nvml.count(&count))
		return;
	if (nvml.driver)
		nvml.driver(machine->nvidia_driver, sizeof(machine->nvidia_driver));
	if (nvml.cuda && !nvml.cuda(&cuda))
		snprintf(machine->cuda, sizeof(machine->cuda), "%d.%d", cuda / 1000, cuda % 1000 / 10);
	for (unsigned i = 0; i < count; i++) {
		struct sl_machine_device device = {.family = "cuda", .index = i};
		struct pci pci = {0};
		void *handle;

		if (nvml.by_index(i, &handle))
			continue;
		nvml.name(handle, device.name, sizeof(device.name));
		nvml.uuid(handle, device.uuid, sizeof(device.uuid));
		if (nvml.pci && !nvml.pci(handle, &pci))
			snprintf(device.pci, sizeof(device.pci), "%.31s", pci.bus_id);
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

	read_line("/sys/module/amdgpu", "version", machine->amdgpu, sizeof(machine->amdgpu));
	if (glob("/sys/bus/pci/drivers/amdgpu/????:??:??.?", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct sl_machine_device device = {.family = "hip", .index = index};

		snprintf(device.pci, sizeof(device.pci), "%s", strrchr(found.gl_pathv[i], '/') + 1);
		read_line(found.gl_pathv[i], "product_name", device.name, sizeof(device.name));
		read_line(found.gl_pathv[i], "unique_id", device.uuid, sizeof(device.uuid));
		amd_memory(&device);
		if (device.total_bytes == SL_MACHINE_UNKNOWN)
			continue; /* drives no display and computes nothing */
		index++;
		*SL_PUSH(&machine->devices) = device;
	}
	globfree(&found);
}

/* ---- libraries */

static const struct {
	const char *pattern, *what;
} wanted[] = {
	{"/libcuda.so.1", "CUDA driver calls"},
	{"/libcudart.so.*", "CUDA runtime calls"},
	{"/libamdhip64.so.*", "HIP calls"},
	{"/libhsa-runtime64.so.1", "HSA calls"},
	{"/libnccl.so.2", "collectives of NCCL"},
	{"/librccl.so.1", "collectives of RCCL"},
	{"/libnvToolsExt.so.1", "NVTX ranges"},
	{"/libroctx64.so.*", "roctx ranges"},
	{"/libnvidia-ml.so.1", "samples of the device by NVML"},
	{"/librocm_smi64.so.*", "samples of the device by ROCm SMI"},
	{"/libunwind.so.8", "native stacks"},
};

/* Looks as the loader of a program with our environment would, without its cache: in the folders where such libraries lie. */
static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu",
				      "/usr/lib/aarch64-linux-gnu",
				      "/usr/lib64",
				      "/usr/lib",
				      "/lib/x86_64-linux-gnu",
				      "/usr/local/lib",
				      "/usr/local/cuda*/lib64",
				      "/usr/local/cuda*/targets/*/lib",
				      "/opt/rocm*/lib",
				      "/usr/local/nvidia/lib64"};

static void add_library(struct sl_machine *machine, const char *path, const char *what)
{
	char real[PATH_MAX];

	/* libcudart.so.13, but not a linker script beside it */
	if (!isdigit((unsigned char)path[strlen(path) - 1]) || !realpath(path, real) ||
	    strlen(real) >= sizeof(machine->libraries.item->path))
		return;
	for (size_t i = 0; i < machine->libraries.count; i++)
		if (!strcmp(machine->libraries.item[i].path, real))
			return;
	struct sl_machine_library *library = SL_PUSH(&machine->libraries);

	library->what = what;
	strcpy(library->path, real);
}

static void look_in(struct sl_machine *machine, const char *folder)
{
	for (size_t i = 0; i < SL_COUNT(wanted) && *folder; i++) {
		glob_t found;

		if (!sl_below_glob(folder, wanted[i].pattern, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++)
			add_library(machine, found.gl_pathv[k], wanted[i].what);
		globfree(&found);
	}
}

static void add_libraries(struct sl_machine *machine)
{
	const char *path = getenv("LD_LIBRARY_PATH");
	char *copy = strdup(path ? path : ""), *at = copy, *folder;

	while ((folder = strsep(&at, ":;")))
		look_in(machine, folder);
	for (size_t i = 0; i < SL_COUNT(folders); i++)
		look_in(machine, folders[i]);
	free(copy);
}

void sl_machine_look(struct sl_machine *machine, bool libraries)
{
	*machine = (struct sl_machine){0};
	add_nvidia(machine);
	add_amd(machine);
	if (libraries)
		add_libraries(machine);
}

void sl_machine_look_again(struct sl_machine *machine)
{
	for (size_t i = 0; i < machine->devices.count; i++)
		(machine->devices.item[i].family[0] == 'c' ? nvidia_memory : amd_memory)(&machine->devices.item[i]);
}

void sl_machine_free(struct sl_machine *machine)
{
	free(machine->devices.item);
	free(machine->libraries.item);
	*machine = (struct sl_machine){0};
}
