/* SPDX-License-Identifier: MIT */
/*
 * The simulated libnvidia-ml.so.1: the device file's figures, of all processes. With SIM_MIG the devices are instances of
 * one GPU; only that GPU is counted and found by index or PCI id.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_TOO_SMALL = 7,
	NVML_MISMATCH = 25
};
enum { MAX_PROCESSES = 512, WHOLE = SIM_MAX_DEVICES };

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
struct process_v3 {
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};
struct pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};

static int users, begun; /* begun: how often the first user came */
/* A device's handle is the address of its entry, until the last user has gone; WHOLE: the GPU of the instances. */
static char all_handles[2][SIM_MAX_DEVICES + 1];
#define handles (all_handles[begun & 1])

/* NVML sees every device, whatever CUDA_VISIBLE_DEVICES says. */
static int count_all(void)
{
	unsigned long long n = 0;
	uint64_t f, total;
	for (total = 1; total && n < SIM_MAX_DEVICES; n += total != 0)
		sim_device_info(n, &f, &total);
	return n;
}

static int index_of(void *handle)
{
	char *h = handle;
	if (users && sim_config.mig && h == &handles[WHOLE])
		return WHOLE;
	return users && h >= handles && h < handles + count_all() ? h - handles : -1;
}

static int no_device(void)
{
	return users ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
}

int nvmlInit_v2(void)
{
	sim_process_check();
	if (__atomic_add_fetch(&users, 1, __ATOMIC_RELAXED) == 1)
		begun++;
	return 0;
}

int nvmlInit(void)
{
	return nvmlInit_v2();
}

int nvmlInitWithFlags(unsigned flags)
{
	return nvmlInit_v2();
}

int nvmlShutdown(void)
{
	if (!users)
		return NVML_UNINITIALIZED;
	__atomic_sub_fetch(&users, 1, __ATOMIC_RELAXED);
	return 0;
}

const char *nvmlErrorString(int code)
{
	return code ? "simulated NVML error" : "Success";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
	snprintf(text, size, "%s", sim_driver_text);
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	if (!users)
		return NVML_UNINITIALIZED;
	*count = sim_config.mig ? 1 : count_all();
	return 0;
}

int nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
	if (!users)
		return NVML_UNINITIALIZED;
	if (!out || index >= (sim_config.mig ? 1 : (unsigned)count_all()))
		return NVML_INVALID_ARGUMENT;
	*out = &handles[sim_config.mig ? WHOLE : index];
	return 0;
}

int nvmlDeviceGetHandleByIndex(unsigned index, void **out)
{
	return nvmlDeviceGetHandleByIndex_v2(index, out);
}

static void uuid_text(int device, char *text, size_t size)
{
	unsigned char u[16];
	if (device == WHOLE)
		sim_device_whole_uuid(0, u);
	else
		sim_device_uuid(device, u);
	snprintf(text, size, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 sim_config.mig && device != WHOLE ? "MIG" : "GPU", u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9],
		 u[10], u[11], u[12], u[13], u[14], u[15]);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
	char text[64];
	for (int i = 0; users && uuid && i <= WHOLE; i++) {
		if (index_of(&handles[i]) < 0)
			continue;
		uuid_text(i, text, sizeof text);
		if (!strcmp(text, uuid)) {
			*out = &handles[i];
			return 0;
		}
	}
	return users ? NVML_NOT_FOUND : NVML_UNINITIALIZED;
}

/* Accepts a domain of four or of eight digits. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out)
{
	unsigned domain, bus, slot;
	if (!users || !id || sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return users ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
	if (domain || slot || !bus || bus > (sim_config.mig ? 1 : (unsigned)count_all()))
		return NVML_NOT_FOUND;
	*out = &handles[sim_config.mig ? WHOLE : bus - 1];
	return 0;
}

int nvmlDeviceGetHandleByPciBusId(const char *id, void **out)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, out);
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned size)
{
	int i = index_of(handle);
	if (i < 0)
		return no_device();
	uuid_text(i, text, size);
	return 0;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned size)
{
	int i = index_of(handle);
	if (i < 0)
		return no_device();
	sim_device_name(text, size, i == WHOLE ? 0 : i);
	return 0;
}

int nvmlDeviceGetIndex(void *handle, unsigned *index)
{
	int i = index_of(handle);
	*index = i == WHOLE ? 0 : i;
	return i < 0 ? no_device() : 0;
}

int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *out)
{
	int i = index_of(handle);
	if (i < 0)
		return no_device();
	memset(out, 0, sizeof *out);
	out->bus = sim_config.mig ? 1 : i + 1;
	sim_device_pci(i, out->text, sizeof out->text);
	snprintf(out->legacy, sizeof out->legacy, "%s", out->text + 4);
	return 0;
}

static unsigned asked;

/* How often this process has read a device's memory figures. */
unsigned sim_nvml_asked(void)
{
	return __atomic_load_n(&asked, __ATOMIC_ACQUIRE);
}

static void memory_of(int device, uint64_t *f, uint64_t *t)
{
	*f = *t = 0;
	for (int i = device == WHOLE ? 0 : device, n = device == WHOLE ? count_all() : i + 1; i < n; i++) {
		uint64_t one_free, one_total;
		sim_device_stir(i);
		sim_device_info(i, &one_free, &one_total);
		*f += one_free;
		*t += one_total;
	}
}

/* An integrated device's figures are refused. */
static int told(void *figures, size_t size)
{
	__atomic_add_fetch(&asked, 1, __ATOMIC_RELEASE);
	if (sim_config.integrated)
		memset(figures, 0, size);
	return sim_config.integrated ? NVML_NOT_SUPPORTED : 0;
}

int nvmlDeviceGetMemoryInfo(void *handle, struct memory_v1 *out)
{
	int i = index_of(handle);
	uint64_t f, t;
	if (i < 0 || !out)
		return no_device();
	memory_of(i, &f, &t);
	*out = (struct memory_v1){t, f, t - f};
	return told(out, sizeof *out);
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *out)
{
	int i = index_of(handle);
	uint64_t f, t;
	if (i < 0 || !out)
		return no_device();
	if (out->version != (sizeof *out | 2u << 24))
		return NVML_MISMATCH;
	memory_of(i, &f, &t);
	*out = (struct memory_v2){out->version, t, 0, f, t - f};
	return told(out, sizeof *out);
}

static int processes(void *handle, unsigned *count, void *out, bool with_instances)
{
	int pids[MAX_PROCESSES], which = index_of(handle);
	uint64_t bytes[MAX_PROCESSES];
	unsigned n = 0, room = count ? *count : 0;
	if (which < 0 || !count)
		return no_device();
	for (int i = which == WHOLE ? 0 : which, end = which == WHOLE ? count_all() : i + 1; i < end; i++) {
		unsigned here = sim_device_processes(i, pids, bytes, MAX_PROCESSES),
			 instance = sim_config.mig ? (unsigned)i + 1 : ~0u;
		for (unsigned p = 0; p < here && p < MAX_PROCESSES && n + p < room && out; p++)
			if (with_instances)
				((struct process_v3 *)out)[n + p] =
					(struct process_v3){pids[p], bytes[p], instance, sim_config.mig ? 0 : ~0u};
			else
				((struct process_v1 *)out)[n + p] = (struct process_v1){pids[p], bytes[p]};
		n += here;
	}
	*count = n;
	return n > room ? NVML_TOO_SMALL : 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, struct process_v3 *out)
{
	return processes(handle, count, out, true);
}

int nvmlDeviceGetComputeRunningProcesses_v2(void *handle, unsigned *count, struct process_v3 *out)
{
	return processes(handle, count, out, true);
}

int nvmlDeviceGetComputeRunningProcesses(void *handle, unsigned *count, struct process_v1 *out)
{
	return processes(handle, count, out, false);
}

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending)
{
	if (index_of(handle) < 0)
		return NVML_INVALID_ARGUMENT;
	*current = *pending = sim_config.mig;
	return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count)
{
	int i = index_of(handle);
	*count = i == WHOLE ? count_all() : 0;
	return i < 0 ? no_device() : 0;
}

int nvmlDeviceIsMigDeviceHandle(void *handle, unsigned *is)
{
	int i = index_of(handle);
	*is = sim_config.mig && i >= 0 && i != WHOLE;
	return i < 0 ? no_device() : 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **out)
{
	if (index_of(handle) != WHOLE)
		return NVML_INVALID_ARGUMENT;
	if (index >= (unsigned)count_all())
		return NVML_NOT_FOUND;
	*out = &handles[index];
	return 0;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *handle, void **out)
{
	int i = index_of(handle);
	*out = &handles[WHOLE];
	return sim_config.mig && i >= 0 && i != WHOLE ? 0 : NVML_INVALID_ARGUMENT;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	*version = sim_config.driver_version;
	return 0;
}

int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor)
{
	int i = index_of(handle);
	if (i < 0)
		return no_device();
	*major = sim_device_attribute(75, i == WHOLE ? 0 : i);
	*minor = sim_device_attribute(76, i == WHOLE ? 0 : i);
	return 0;
}

/* Programs look these up and expect to find them, though they do not need them. */
#define UNSUPPORTED(fn)                                                                                                            \
	int fn(void)                                                                                                               \
	{                                                                                                                          \
		return NVML_NOT_SUPPORTED;                                                                                         \
	}
UNSUPPORTED(nvmlDeviceGetProcessUtilization) /* asked by HAMi-core, which calls NULL where it is not there */
UNSUPPORTED(nvmlDeviceGetNvLinkState)
UNSUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
UNSUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
UNSUPPORTED(nvmlDeviceGetGpuFabricInfoV)
UNSUPPORTED(nvmlDeviceGetNumaNodeId)
UNSUPPORTED(nvmlDeviceGetCpuAffinity)
UNSUPPORTED(nvmlDeviceGetP2PStatus)
